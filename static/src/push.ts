/**
 * The line to the server: what arrives over the websocket, in which portions it is put into the page, and how the page
 * catches up after a break.
 *
 * The protocol, all of it:
 *  - `<main ws-connect="/ws/documents/<uuid>/">` (or `/ws/projects/<uuid>/`, `/ws/library/`) opens the socket (htmx-ext-ws: it reconnects by itself).
 *  - A message is HTML. Each top-level element with an `id` is morphed into the element of that id (morph.ts; no
 *    `hx-swap-oob` needed, and harmless if there). An element whose id is not in the page is appended to the list named by
 *    its `data-list`, or dropped. At most ROWS_A_FRAME are placed per animation frame; a newer arrival for an id replaces
 *    an older one that still waits.
 *  - `<template id="stamp" data-stamp="…">` anywhere in a message or an answer says: whoever has seen this has seen
 *    everything up to the stamp. The stamp is opaque. The page starts with `<main data-stamp="…">`.
 *  - On every open of the socket, the first one too, the page fetches `GET <main data-catchup>?since=<stamp>` and places
 *    what comes back: HTML as in a message. (Between rendering the page and joining the group something may have changed.)
 *  - Where there is no `data-catchup` but `data-refresh="#id"`, the page itself is fetched on every *re*-open and that
 *    element is morphed; with `data-moving` (something runs while the page is rendered) on the first open too, and always
 *    when an element arrives whose `data-list` is not in the page.
 *  - Close codes: 4401 signed out, 4403/4404 may not see it (any more): no reconnect, said with a button to load again.
 *  - In answers to htmx requests, top-level elements with `data-version` and an `id` are treated the same way.
 */
import htmx from "./htmx";
import { morph, parse, place } from "./morph";
import { hush, say, toast } from "./words";

export const ROWS_A_FRAME = 20;

/** Elements waiting for their frame, by id. */
const waiting = new Map<string, Element>();
let frame = 0;

/** Queue elements; stamps are taken at once only when everything before them is in place. */
let stampWaiting: string | null = null;

function root(): HTMLElement | null {
  return document.querySelector<HTMLElement>("[ws-connect]");
}

function settle(): void {
  if (stampWaiting !== null && waiting.size === 0) {
    root()?.setAttribute("data-stamp", stampWaiting);
    stampWaiting = null;
  }
}

function work(): void {
  frame = 0;
  let left = ROWS_A_FRAME;
  for (const [id, element] of waiting) {
    if (left-- === 0) break;
    waiting.delete(id);
    const placed = place(element);
    if (!placed) refreshFor(element);
    else if (!placed.classList.contains("seg")) htmx.process(placed as HTMLElement); // sentences hold nothing of htmx
  }
  settle();
  if (waiting.size) frame = requestAnimationFrame(work);
}

/** Put HTML from the server in line. */
export function receive(html: string): void {
  for (const element of parse(html)) {
    if (element.id === "stamp") {
      stampWaiting = element.getAttribute("data-stamp");
      continue;
    }
    if (!element.id) continue;
    const before = waiting.get(element.id);
    if (before && Number(before.getAttribute("data-version") ?? 0) > Number(element.getAttribute("data-version") ?? 0)) continue;
    waiting.delete(element.id); // the newest goes to the end of the line
    waiting.set(element.id, element);
  }
  // a hidden page has no frames; rows would pile up
  if (!frame && waiting.size) frame = document.hidden ? (setTimeout(work, 50) as unknown as number) : requestAnimationFrame(work);
  settle();
}

let refreshing = 0;

/** A new element of a list that this page does not show yet (the first book on an empty shelf): the page is fetched. */
function refreshFor(element: Element): void {
  const list = element.getAttribute("data-list");
  const selector = root()?.dataset.refresh;
  if (!list || !selector || document.getElementById(list) || refreshing) return;
  refreshing = window.setTimeout(() => {
    refreshing = 0;
    refresh(selector).catch(() => undefined);
  }, 100);
}

/** How many elements wait for their frame. */
export function pending(): number {
  return waiting.size;
}

let opened = 0;

async function catchUp(main: HTMLElement): Promise<void> {
  const url = main.dataset.catchup;
  const headers = { "HX-Request": "true", Accept: "text/html" };
  try {
    if (url) {
      const answer = await fetch(`${url}${url.includes("?") ? "&" : "?"}since=${encodeURIComponent(main.dataset.stamp ?? "")}`, { headers, credentials: "same-origin" });
      if (answer.ok) receive(await answer.text());
    } else if (main.dataset.refresh && (opened > 1 || main.hasAttribute("data-moving"))) {
      await refresh(main.dataset.refresh);
    }
  } catch {
    // the line broke again; the next open catches up
  }
}

/** Fetch this page anew and morph one element of it. */
export async function refresh(selector: string): Promise<void> {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok || answer.redirected) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(selector);
  const here = document.querySelector(selector);
  if (!fresh || !here) return;
  const placed = morph(here, fresh);
  if (placed) htmx.process(placed as HTMLElement);
}

function reloadButton(): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn small";
  button.textContent = say("reload");
  button.addEventListener("click", () => location.reload());
  return button;
}

/** Register the `morph` swap style and listen to the socket. */
export function connect(): void {
  htmx.defineExtension("morph", {
    isInlineSwap: (style: string) => style === "morph",
    handleSwap(style: string, target: Node, fragment: Node): Node[] | boolean {
      if (style !== "morph") return false;
      const next = fragment instanceof Element ? fragment : (fragment as DocumentFragment).firstElementChild;
      if (!next || !(target instanceof Element)) return []; // everything in the answer was placed by id
      const placed = morph(target, next);
      return placed ? [placed] : [];
    },
    transformResponse(text: string, xhr: XMLHttpRequest | null): string {
      // versioned elements beside the answer find their own place; whole pages (hx-select) are left alone
      if (!xhr || !text.includes("data-version") || /^\s*<!doctype/i.test(text)) return text;
      const template = document.createElement("template");
      template.innerHTML = text;
      let changed = false;
      for (const element of Array.from(template.content.children)) {
        if (element.id && element.id !== "stamp" && element.hasAttribute("data-version") && document.getElementById(element.id)) {
          element.setAttribute("hx-swap-oob", "morph");
          changed = true;
        }
      }
      return changed ? template.innerHTML : text;
    },
    // the rest of the interface, unused
    init: () => null as unknown as string[],
    getSelectors: () => null,
    onEvent: () => true,
    encodeParameters: () => null,
  } as unknown as Parameters<typeof htmx.defineExtension>[1]);

  document.addEventListener("htmx:wsBeforeMessage", (event) => {
    event.preventDefault(); // placed by us, in portions
    receive((event as CustomEvent<{ message: string }>).detail.message);
  });
  let away = 0;
  document.addEventListener("htmx:wsOpen", (event) => {
    opened += 1;
    clearTimeout(away);
    document.documentElement.removeAttribute("data-offline");
    if (document.querySelector('#toasts > [data-key="line"]')) {
      hush("line");
      toast(say("online"), "ok");
    }
    void catchUp(event.target as HTMLElement);
  });
  document.addEventListener("htmx:wsClose", (event) => {
    const code = (event as CustomEvent<{ event: CloseEvent }>).detail.event.code;
    if (code >= 4400 && code < 4500) {
      toast(say("signed-out"), "warn", { key: "line", stay: true, action: reloadButton() });
      return;
    }
    clearTimeout(away);
    // a restart of the server is over in a moment: no alarm for that
    away = window.setTimeout(() => {
      document.documentElement.setAttribute("data-offline", "");
      toast(say("offline"), "warn", { key: "line", stay: true });
    }, 1500);
  });
  window.addEventListener("pagehide", () => clearTimeout(away));
}
