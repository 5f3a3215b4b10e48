/** What buttons and keys do: `data-action="name"` anywhere in the page, and `act(name)` for keys. */
import htmx from "./htmx";
import { address, current, desk, go } from "./current";
import { edit, type StudioEditor } from "./editor";
import { parse } from "./morph";
import type { StudioPlayer } from "./player";
import { say, toast } from "./words";

const root = document.documentElement;

/** Kept in a cookie, so that the server renders the page right from the first paint. */
function keep(name: string, value: string): void {
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=/; max-age=${value ? 31_536_000 : 0}; samesite=lax${secure}`;
}

function setting(name: "density" | "pauses", on: string, button: Element | null): void {
  const now = root.dataset[name] === on ? "" : on;
  if (now) root.dataset[name] = now;
  else delete root.dataset[name];
  button?.setAttribute("aria-pressed", String(now !== ""));
  keep(name, now);
}

const player = (): StudioPlayer | null => document.querySelector<StudioPlayer>("studio-player");

function choose(button: Element): void {
  for (const other of button.parentElement?.querySelectorAll(".chip") ?? []) other.setAttribute("aria-pressed", String(other === button));
}

const ACTIONS: Record<string, (button: HTMLElement | null) => void> = {
  theme() {
    const order = ["", "light", "dark"];
    const next = order[(order.indexOf(root.dataset.theme ?? "") + 1) % order.length]!;
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    keep("theme", next);
    document.dispatchEvent(new CustomEvent("studio:theme"));
  },
  density: (button) => setting("density", "compact", button),
  pauses: (button) => setting("pauses", "on", button),
  blind(button) {
    const on = root.toggleAttribute("data-blind");
    button?.setAttribute("aria-pressed", String(on));
  },
  keys: () => (document.getElementById("keys-dialog") as HTMLDialogElement | null)?.showModal(),
  sheet(button) {
    const open = document.getElementById("inspector")?.toggleAttribute("data-open") ?? false;
    button?.setAttribute("aria-expanded", String(open));
  },
  filter(button) {
    if (!button) return;
    choose(button);
    const text = document.getElementById("manuscript");
    if (!text) return;
    text.dataset.filter = button.dataset.filter ?? "all";
    const none = text.dataset.filter !== "all" && button.querySelector("[data-count]")?.textContent === "0";
    if (none) toast(say("missing"), "", { key: "filter" });
    desk()?.scrollTo({ top: 0 });
  },
  parts(button) {
    if (!button) return;
    choose(button);
    document.querySelector<HTMLElement>("table.parts")?.setAttribute("data-show", button.dataset.show ?? "all");
  },
  "dialog-close": (button) => button?.closest("dialog")?.close(),

  play: () => player()?.toggle(),
  "play-one"() {
    const here = current();
    if (here) player()?.play(here, { one: true });
  },
  "play-here"() {
    const here = current();
    if (here) player()?.play(here);
  },
  stop: () => player()?.pause(),
  back: () => player()?.seekBy(-5),
  forward: () => player()?.seekBy(5),
  follow: () => player()?.toggleFollow(),
  before: () => void go(-1),
  after: () => void go(1),
  "next-problem"() {
    if (!go(1, "problems")) toast(say("missing"), "", { key: "filter" });
  },
  "problem-before"() {
    if (!go(-1, "problems")) toast(say("missing"), "", { key: "filter" });
  },

  edit: () => void edit(),
  "edit-cancel": (button) => button?.closest<StudioEditor>("studio-editor")?.close(),
  regenerate() {
    const here = current();
    if (!here) {
      toast(say("nothing-chosen"), "", { key: "regenerate" });
      return;
    }
    if (!desk()?.hasAttribute("data-may-edit") || here.hasAttribute("data-skip")) return;
    if (here.dataset.state === "queued" || here.dataset.state === "rendering") {
      toast(say("asked", { n: here.dataset.n ?? "" }), "", { key: "regenerate" });
      return;
    }
    const url = address("make", here);
    if (url) void htmx.ajax("post", url, { source: "#inspector-body", target: "#inspector-body", swap: "none" }).catch(() => undefined);
  },
};

/** Do it; false where nobody knows how. */
export function act(name: string, button: HTMLElement | null = null): boolean {
  const action = ACTIONS[name];
  if (!action) return false;
  action(button ?? document.querySelector<HTMLElement>(`[data-action="${name}"]`));
  return true;
}

/** One listener for all buttons; dialogs that came with an answer; what did not work. */
export function listen(): void {
  document.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-action]");
    if (button && !button.hasAttribute("disabled")) act(button.dataset.action!, button);
    // a click beside a dialog closes it
    if (event.target instanceof HTMLDialogElement && event.target.open) event.target.close();
  });
  const openDialogs = (): void => {
    for (const dialog of document.querySelectorAll<HTMLDialogElement>("dialog[data-open-now]:not([open])")) {
      dialog.showModal();
      dialog.addEventListener("close", () => dialog.remove(), { once: true });
    }
  };
  document.addEventListener("htmx:afterSettle", openDialogs);
  openDialogs();
  document.addEventListener("htmx:afterRequest", (event) => {
    const { successful, requestConfig } = (event as CustomEvent<{ successful: boolean; requestConfig: { elt: Element } }>).detail;
    if (successful) requestConfig?.elt.closest?.<HTMLDialogElement>("dialog[open] .dialog-form")?.closest("dialog")?.close();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    // `<div data-toast="bad">why</div>` as an answer: said, and nothing on the page is replaced
    const { detail } = event as CustomEvent<{ serverResponse: string; shouldSwap: boolean }>;
    if (!detail.serverResponse?.includes("data-toast")) return;
    const box = parse(detail.serverResponse).find((element) => element.hasAttribute("data-toast"));
    if (!box) return;
    detail.shouldSwap = false;
    toast(box.textContent?.trim() ?? "", (box.getAttribute("data-toast") ?? "") as "bad", { key: "request" });
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { status } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail.xhr;
    toast(status === 403 ? say("denied") : say("failed", { status }), "bad", { key: "request" });
  });
  document.addEventListener("htmx:sendError", () => toast(say("unreachable"), "bad", { key: "request" }));
}
