import { beforeEach, describe, expect, it, vi } from "vitest";
import { editing, SELECTED, select } from "./current";
import { StudioEditor } from "./editor";
import { parse, place } from "./morph";
import { block, chapter, seg, segment } from "./testing";

if (!customElements.get("studio-editor")) customElements.define("studio-editor", StudioEditor);

function open(options: { dirty?: boolean } = {}): { editor: StudioEditor; field: HTMLTextAreaElement } {
  // inserted whole, as a swap does
  const whole = document.createElement("studio-editor");
  whole.dataset.segment = "1";
  whole.toggleAttribute("data-dirty", options.dirty ?? false);
  whole.innerHTML = '<form method="post"><textarea name="text">Words 1.</textarea><button>Save</button></form>';
  document.getElementById("inspector-body")!.replaceChildren(whole);
  const editor = editing() as StudioEditor;
  return { editor, field: editor.querySelector("textarea")! };
}
function type(field: HTMLTextAreaElement, words: string): void {
  field.value = words;
  field.dispatchEvent(new Event("input", { bubbles: true }));
}
const press = (field: Element, key: string, init: KeyboardEventInit = {}): boolean =>
  field.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...init }));

beforeEach(() => {
  chapter(block([{ id: "1" }, { id: "2" }]));
  document.body.insertAdjacentHTML("beforeend", '<div id="toasts"></div><span id="saved"></span>');
});

describe("editing", () => {
  it("marks form and sentence while the words differ, and no longer", () => {
    const { editor, field } = open();
    expect(editor.hasAttribute("data-dirty")).toBe(false);
    type(field, "Other words.");
    expect(editor.hasAttribute("data-dirty")).toBe(true);
    expect(seg("1").hasAttribute("data-dirty")).toBe(true);
    type(field, "Words 1.");
    expect(editor.hasAttribute("data-dirty")).toBe(false);
    expect(seg("1").hasAttribute("data-dirty")).toBe(false);
  });

  it("holds a push back until the words are saved", () => {
    const { editor, field } = open();
    type(field, "Mine.");
    place(parse(segment({ id: "1", version: 5, state: "queued" }))[0]!);
    expect(seg("1").dataset.state).toBe("empty");
    editor.saved();
    expect(seg("1").dataset.state).toBe("queued");
    expect(field.value).toBe("Mine.");
  });

  it("sends with Ctrl+Enter, not while an input method composes", () => {
    const { editor, field } = open();
    const send = vi.fn();
    editor.form!.requestSubmit = send;
    press(field, "Enter", { ctrlKey: true, isComposing: true });
    press(field, "Enter");
    expect(send).not.toHaveBeenCalled();
    press(field, "Enter", { ctrlKey: true });
    expect(send).toHaveBeenCalledOnce();
  });

  it("gives up with Esc and offers the words back", () => {
    const { field } = open();
    type(field, "Nearly lost.");
    press(field, "Escape");
    expect(editing()).toBeNull();
    expect(seg("1").hasAttribute("data-dirty")).toBe(false);
    expect(document.querySelector('#toasts [data-key="discarded"] button')).not.toBeNull();
  });

  it("asks nothing when nothing was written", () => {
    const { field } = open();
    press(field, "Escape");
    expect(document.querySelector("#toasts > *")).toBeNull();
  });

  it("counts a conflict as unsaved from the start", () => {
    const { editor } = open({ dirty: true });
    expect(editor.hasAttribute("data-dirty")).toBe(true);
    expect(seg("1").hasAttribute("data-dirty")).toBe(true);
  });
});

describe("the current sentence", () => {
  it("is one, has the only tab stop, and says who chose it", () => {
    const seen: unknown[] = [];
    document.addEventListener(SELECTED, (event) => seen.push((event as CustomEvent).detail.byHand), { once: true });
    select(seg("1"), { quiet: true });
    select(seg("2"), { byHand: true, quiet: true });
    expect(seen).toEqual([false]);
    expect(document.querySelectorAll("[aria-current]")).toHaveLength(1);
    expect([seg("1").tabIndex, seg("2").tabIndex]).toEqual([-1, 0]);
  });
});
