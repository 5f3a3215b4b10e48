/**
 * The guarded morph: how an element from the server takes its place in a page somebody works in.
 *
 * Rules, for every versioned element (`id` and `data-version`) inside what arrives:
 *  - a lower version than the one in the page is old news and dropped; the same version is taken;
 *  - what carries `data-dirty` (unsaved words) is left alone; the arrival is kept and put in place by `release`;
 *  - the value of the field with the focus is never touched;
 *  - what only this page knows stays: the current sentence, its tab stop, the selection, the word being spoken, what is
 *    open or shut.
 */
import { Idiomorph } from "idiomorph";

/** Attributes this page owns; pushes neither set nor remove them. */
const OURS = new Set(["aria-current", "tabindex", "data-selected", "data-dirty", "data-over", "data-busy", "open"]);

/** Arrivals that found their place dirty, newest last, by id. */
const held = new Map<string, Element>();

/** A versioned element was morphed; `detail` is what stands in the page now. */
export const CHANGED = "studio:changed";

function version(element: Element): number | null {
  const value = element.getAttribute("data-version");
  return value === null || value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}

/** Whether `next` may take the place of `current`. */
export function mayReplace(current: Element, next: Element): boolean {
  const here = version(current);
  const there = version(next);
  return here === null || there === null || there >= here;
}

function ours(name: string, element: Element): boolean {
  if (name === "open") return element.localName === "details" || element.localName === "dialog";
  if (name === "aria-current") return element.classList.contains("seg");
  if (name === "tabindex") return element.classList.contains("seg");
  return OURS.has(name);
}

/** What stands in a sentence beside its words: marks. */
function marksOf(element: Element): string {
  let html = "";
  for (const child of element.children) if (!child.classList.contains("t")) html += child.outerHTML;
  return html;
}

/** The short way for a sentence, of which thousands may come: attributes, marks, and the words only if they differ. */
function morphSegment(current: Element, next: Element): void {
  for (const { name, value } of Array.from(next.attributes)) {
    if (!ours(name, current) && current.getAttribute(name) !== value) current.setAttribute(name, value);
  }
  for (const { name } of Array.from(current.attributes)) {
    if (!ours(name, current) && !next.hasAttribute(name)) current.removeAttribute(name);
  }
  const words = current.querySelector(":scope > .t");
  const fresh = next.querySelector(":scope > .t");
  if (!words || !fresh) {
    current.replaceChildren(...Array.from(next.cloneNode(true).childNodes));
    return;
  }
  if (words.textContent !== fresh.textContent) words.textContent = fresh.textContent;
  if (marksOf(current) === marksOf(next)) return;
  const marks = Array.from(next.children).filter((child) => child !== fresh);
  current.replaceChildren(words, ...marks.map((mark) => document.importNode(mark, true)));
}

/** Put `next` where `current` stands. Returns what stands there afterwards, or null where nothing was done. */
export function morph(current: Element, next: Element): Element | null {
  if (!mayReplace(current, next)) return null;
  if (current.hasAttribute("data-dirty")) {
    if (current.id) held.set(current.id, next);
    return null;
  }
  if (current.classList.contains("seg") && next.classList.contains("seg")) {
    morphSegment(current, next);
    current.dispatchEvent(new CustomEvent(CHANGED, { bubbles: true }));
    return current;
  }
  const changed: Element[] = [];
  const result = Idiomorph.morph(current, next, {
    morphStyle: "outerHTML",
    // of a field only: a button with the focus changes its words like everything else
    ignoreActiveValue: document.activeElement?.matches("input, textarea, select") ?? false,
    restoreFocus: true,
    callbacks: {
      beforeNodeMorphed(old: Node, fresh: Node) {
        if (!(old instanceof Element) || !(fresh instanceof Element)) return true;
        if (old.hasAttribute("data-dirty") && old.id === fresh.id) {
          if (old.id) held.set(old.id, fresh.cloneNode(true) as Element);
          return false;
        }
        if (old.id && old.id === fresh.id && !mayReplace(old, fresh)) return false;
        // the words with the marker of the word being spoken: equal words stay as they are
        if (old.classList.contains("t") && old.textContent === fresh.textContent) return false;
        // filled by our own script
        if (old.localName === "studio-wave" && old.getAttribute("data-peaks") === fresh.getAttribute("data-peaks")) return false;
        return true;
      },
      afterNodeMorphed(old: Node, fresh: Node) {
        if (old instanceof Element && fresh instanceof Element && old.id && fresh.hasAttribute("data-version")) changed.push(old);
      },
      beforeNodeRemoved(old: Node) {
        return !(old instanceof Element && old.hasAttribute("data-dirty"));
      },
      beforeAttributeUpdated(name: string, element: Element) {
        return !ours(name, element);
      },
    },
  });
  const now = Array.isArray(result) ? (result.find((node) => node instanceof Element) as Element | undefined) : undefined;
  const standing = now ?? current;
  for (const element of changed) element.dispatchEvent(new CustomEvent(CHANGED, { bubbles: true }));
  return standing;
}

/** The words are saved or given up: put what arrived meanwhile in its place. */
export function release(element: Element): void {
  element.removeAttribute("data-dirty");
  const next = element.id ? held.get(element.id) : undefined;
  if (!next) return;
  held.delete(element.id);
  morph(element, next);
}

/**
 * Place one element that came over the socket or beside an answer: morphed where its id stands; new ones go to the end (`data-at="start"`: the beginning) of
 * the list named by `data-list`; others are nobody's and dropped. Returns the element in the page, or null.
 */
export function place(next: Element): Element | null {
  if (!next.id) return null;
  next.removeAttribute("hx-swap-oob");
  const current = document.getElementById(next.id);
  if (current) return morph(current, next);
  const list = next.getAttribute("data-list");
  const home = list ? document.getElementById(list) : null;
  if (!home) return null;
  const fresh = document.importNode(next, true);
  if (fresh.getAttribute("data-at") === "start") home.prepend(fresh);
  else home.append(fresh);
  fresh.dispatchEvent(new CustomEvent(CHANGED, { bubbles: true }));
  return fresh;
}

/** The top-level elements of an answer. A template element parses table rows too. */
export function parse(html: string): Element[] {
  const template = document.createElement("template");
  template.innerHTML = html;
  return Array.from(template.content.children);
}
