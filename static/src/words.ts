/** What the scripts say: the translated strings stand in `#words` (templates/_words.html). */

/** The string `data-<name>` with {placeholders} filled in; the name itself where the page has none. */
export function say(name: string, values: Record<string, string | number> = {}): string {
  const text = document.getElementById("words")?.getAttribute(`data-${name}`) ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key: string) => (key in values ? String(values[key]) : whole));
}

/** Seconds as m:ss, or h:mm:ss from an hour on. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = String(whole % 60).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** A symbol of the sprite. */
export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "i");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

type Urgency = "" | "ok" | "warn" | "bad";

/** Say something at the foot of the page. Toasts with a `key` replace each other; `stay` keeps them until `hush`. */
export function toast(text: string, urgency: Urgency = "", options: { key?: string; stay?: boolean; action?: HTMLElement } = {}): void {
  const home = document.getElementById("toasts");
  if (!home) return;
  if (options.key) hush(options.key);
  const box = document.createElement("div");
  box.className = `toast ${urgency}`;
  if (options.key) box.dataset.key = options.key;
  const words = document.createElement("span");
  words.className = "grow";
  words.textContent = text;
  box.append(icon(urgency === "bad" ? "failed" : urgency === "warn" ? "suspect" : urgency === "ok" ? "edit" : "info"), words);
  if (options.action) box.append(options.action);
  home.append(box);
  if (!options.stay) setTimeout(() => box.remove(), urgency === "bad" ? 9000 : 4000);
}

/** Take a toast away. */
export function hush(key: string): void {
  document.querySelectorAll(`#toasts > [data-key="${key}"]`).forEach((box) => box.remove());
}
