/** The current sentence: one place, shown in the text, followed by the inspector, remembered per chapter. */
import htmx from "./htmx";
import { CHANGED } from "./morph";
import { isOf, type Kind } from "./lines";

/** The current sentence is another one. */
export const SELECTED = "studio:selected";
export interface Selected {
  element: HTMLElement;
  /** Chosen by a person, not by playback. */
  byHand: boolean;
  /** Where in the sentence it was clicked, 0 … 1; null when not by the pointer. */
  fraction: number | null;
}

const NIL = "00000000-0000-0000-0000-000000000000";

export const manuscript = (): HTMLElement | null => document.getElementById("manuscript");
export const desk = (): HTMLElement | null => document.querySelector<HTMLElement>(".desk");
export const segments = (): HTMLElement[] => Array.from(manuscript()?.querySelectorAll<HTMLElement>(".seg") ?? []);
export const current = (): HTMLElement | null => manuscript()?.querySelector<HTMLElement>(".seg[aria-current]") ?? null;
export const uuidOf = (element: Element): string => element.id.replace("segment-", "");

/** An address of the current chapter's sentences: `name` is a data attribute of the desk with a nil uuid in it. */
export function address(name: "inspect" | "edit" | "make", element: Element): string | null {
  return desk()?.dataset[name]?.replace(NIL, uuidOf(element)) ?? null;
}

const body = (): HTMLElement | null => document.getElementById("inspector-body");

/** Whether the inspector holds unsaved words. */
export function editing(): HTMLElement | null {
  return body()?.querySelector<HTMLElement>("studio-editor") ?? null;
}

let asking = 0;

/** Fetch the inspector for the current sentence, unless words are being written in it. */
export function inspect(delay = 120): void {
  clearTimeout(asking);
  asking = window.setTimeout(() => {
    const element = current();
    const home = body();
    if (!element || !home || editing()?.hasAttribute("data-dirty")) return;
    const url = address("inspect", element);
    if (url) void intoInspector(url, document.body);
  }, delay);
}

let expected = ""; // the newest address asked for; answers to older questions are not shown

/** Fetch something into the inspector. Requests of one `source` wait for each other; only the last is shown. */
export async function intoInspector(url: string, source: Element): Promise<void> {
  const home = body();
  if (!home) return;
  clearTimeout(asking);
  expected = url;
  await htmx.ajax("get", url, { source, target: home, swap: "innerHTML" }).catch(() => undefined); // said by the error listeners
}

/** Make a sentence the current one. */
export function select(element: HTMLElement, options: { byHand?: boolean; focus?: boolean; fraction?: number | null; quiet?: boolean } = {}): void {
  const before = current();
  if (before && before !== element) {
    before.removeAttribute("aria-current");
    before.tabIndex = -1;
  }
  element.setAttribute("aria-current", "true");
  element.tabIndex = 0;
  if (options.focus) element.focus({ preventScroll: true });
  if (before !== element && !options.quiet) inspect(options.byHand ? 80 : 400);
  const doc = desk()?.dataset.document;
  if (doc) {
    try {
      localStorage.setItem(`place:${doc}`, element.id);
    } catch {
      // storage may be off; the place is then not remembered
    }
  }
  const detail: Selected = { element, byHand: options.byHand ?? false, fraction: options.fraction ?? null };
  element.dispatchEvent(new CustomEvent<Selected>(SELECTED, { bubbles: true, detail }));
}

/** Bring a sentence into the middle band of the desk, if it is not there. */
export function show(element: HTMLElement, smooth = true): void {
  const view = desk()?.getBoundingClientRect();
  const box = element.getBoundingClientRect();
  if (!view) return;
  if (box.top >= view.top + view.height * 0.12 && box.bottom <= view.top + view.height * 0.72) return;
  const still = !smooth || matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block: "center", behavior: still ? "instant" : "smooth" });
}

/** Go `by` sentences on (or back); to the first when there is no current one. */
export function go(by: number, filter?: Kind): HTMLElement | null {
  const all = segments().filter((s) => s.offsetParent !== null || s === current());
  const here = current();
  let index = here ? all.indexOf(here) : by > 0 ? -1 : all.length;
  do index += by;
  while (filter && index >= 0 && index < all.length && !isOf(filter, all[index]!));
  const next = all[index];
  if (!next) return null;
  select(next, { byHand: true, focus: true });
  show(next);
  return next;
}

/** Where in the sentence a point lies, 0 … 1, by its characters. */
function fractionAt(element: HTMLElement, event: MouseEvent): number | null {
  const words = element.querySelector(".t");
  const range = document.caretRangeFromPoint?.(event.clientX, event.clientY);
  if (!words || !range || !words.contains(range.startContainer)) return null;
  const before = document.createRange();
  before.setStart(words, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const whole = words.textContent?.length ?? 0;
  return whole ? before.toString().length / whole : null;
}

/** Clicks in the text, and the first place. */
export function start(): void {
  const text = manuscript();
  if (!text) return;
  text.addEventListener("click", (event) => {
    const element = (event.target as Element).closest<HTMLElement>(".seg");
    if (!element || String(getSelection()).length > 0) return; // words are being marked, to copy them
    select(element, { byHand: true, focus: true, fraction: fractionAt(element, event) });
  });
  text.addEventListener("focusin", (event) => {
    const element = event.target as HTMLElement;
    // by the keyboard; a click says where
    if (element.matches(".seg:focus-visible:not([aria-current])")) select(element, { byHand: true });
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { detail } = event as CustomEvent<{ target: Element; shouldSwap: boolean; requestConfig: { verb: string; path: string } }>;
    if (detail.target === body() && detail.requestConfig.verb === "get" && detail.requestConfig.path !== expected) detail.shouldSwap = false;
  });
  // a push changed the current sentence: the inspector follows
  document.addEventListener(CHANGED, (event) => {
    const element = event.target as Element;
    if (element.classList.contains("seg") && element === current() && !editing()) inspect(150);
  });
  let first: HTMLElement | null = null;
  try {
    const last = location.hash.slice(1) || localStorage.getItem(`place:${desk()?.dataset.document}`);
    first = last ? document.getElementById(last) : null;
  } catch {
    first = null;
  }
  const place = first?.classList.contains("seg") ? first : (segments().find((s) => !s.hasAttribute("data-skip")) ?? segments()[0]);
  if (place) {
    select(place, { quiet: body()?.querySelector("[data-segment]")?.getAttribute("data-segment") === uuidOf(place) });
    if (first) show(place, false);
  }
}
