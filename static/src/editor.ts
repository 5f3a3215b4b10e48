/**
 * Editing a sentence in the inspector. `<studio-editor data-segment="<uuid>">` wraps the form; while its words differ from
 * what was loaded, it and the sentence carry `data-dirty`, and pushes leave both alone.
 */
import htmx from "./htmx";
import { address, current, desk, editing, inspect, intoInspector, show } from "./current";
import { release } from "./morph";
import { hush, say, toast } from "./words";

let justSaved = false; // the focus goes back to the sentence, once

export class StudioEditor extends HTMLElement {
  private loaded = "";

  connectedCallback(): void {
    const field = this.field;
    if (!field) return;
    htmx.process(this); // now, not after the swap settles: Ctrl+Enter may come first, and the browser would leave the page
    this.loaded = this.hasAttribute("data-dirty") ? "\u0000" : this.words; // a conflict stays unsaved whatever is typed
    this.addEventListener("input", () => this.mark());
    this.addEventListener("keydown", this.pressed);
    this.mark();
    field.focus({ preventScroll: true });
    field.setSelectionRange(field.value.length, field.value.length);
  }

  get field(): HTMLTextAreaElement | null {
    return this.querySelector("textarea");
  }
  get form(): HTMLFormElement | null {
    return this.querySelector("form");
  }
  get segment(): HTMLElement | null {
    return document.getElementById(`segment-${this.dataset.segment}`);
  }
  /** All that was written, to tell whether anything was. */
  private get words(): string {
    return Array.from(this.querySelectorAll("textarea"), (field) => field.value).join("\u0001");
  }
  get dirty(): boolean {
    return this.field !== null && this.words !== this.loaded;
  }

  private mark(): void {
    this.toggleAttribute("data-dirty", this.dirty);
    this.segment?.toggleAttribute("data-dirty", this.dirty);
    if (!this.dirty && this.segment) release(this.segment);
    const saved = document.getElementById("saved");
    if (saved && this.dirty) saved.textContent = say("unsaved");
  }

  private pressed = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.form?.requestSubmit();
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.close();
    }
  };

  /** Saved: let go of the sentence, so that its new row may take its place. */
  saved(): void {
    this.removeAttribute("data-dirty");
    if (this.segment) release(this.segment);
    this.loaded = this.words;
    const saved = document.getElementById("saved");
    if (saved) saved.textContent = say("saved", { time: new Date().toLocaleTimeString(document.documentElement.lang || undefined, { hour: "2-digit", minute: "2-digit" }) });
  }

  /** Give up. What was written can be brought back for a while. */
  close(): void {
    const segment = this.segment;
    const words = this.field?.value ?? "";
    const lost = this.dirty && this.loaded !== "\u0000";
    this.removeAttribute("data-dirty");
    const saved = document.getElementById("saved");
    if (saved) saved.textContent = "";
    if (segment) {
      release(segment);
      segment.focus({ preventScroll: true });
    }
    this.remove();
    inspect(0);
    if (!lost || !segment) return;
    const back = document.createElement("button");
    back.type = "button";
    back.className = "btn small";
    back.textContent = say("bring-back");
    back.addEventListener("click", () => {
      hush("discarded");
      void edit(segment, words);
    });
    toast(say("discarded"), "", { key: "discarded", action: back });
  }
}

/** Open the form for a sentence; `words` are put into it (unsaved). */
export async function edit(element: HTMLElement | null = current(), words?: string): Promise<void> {
  if (!element || !desk()?.hasAttribute("data-may-edit")) return;
  const open = editing() as StudioEditor | null;
  if (open?.dirty) {
    open.field?.focus();
    return;
  }
  const url = address("edit", element);
  if (!url) return;
  const inspector = document.getElementById("inspector");
  inspector?.setAttribute("data-open", "");
  inspector?.querySelector(".grip")?.setAttribute("aria-expanded", "true");
  const home = document.getElementById("inspector-body");
  if (home) await intoInspector(url, home);
  show(element); // the sheet of a narrow screen may cover it
  const editor = editing() as StudioEditor | null;
  if (words !== undefined && editor?.field) {
    editor.field.value = words;
    editor.field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Answers to a save, double clicks, and leaving the page with unsaved words. */
export function listen(): void {
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, requestConfig } = (event as CustomEvent<{ xhr: XMLHttpRequest; requestConfig: { elt: Element; verb: string } }>).detail;
    const editor = requestConfig.elt.closest<StudioEditor>("studio-editor");
    if (editor && requestConfig.verb === "post" && xhr.status < 300) {
      editor.saved();
      justSaved = true;
    }
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    // the answer to a save may be the row alone, which found its own place: then the inspector is empty and fetched
    const home = event.target as Element;
    if (home.id !== "inspector-body") return;
    if (!home.firstElementChild) inspect(0);
    if (justSaved && !home.querySelector("studio-editor")) current()?.focus({ preventScroll: true });
    justSaved = false;
  });
  document.addEventListener("dblclick", (event) => {
    const element = (event.target as Element).closest<HTMLElement>(".manuscript .seg");
    if (!element) return;
    getSelection()?.removeAllRanges();
    void edit(element);
  });
  window.addEventListener("beforeunload", (event) => {
    if ((editing() as StudioEditor | null)?.dirty) event.preventDefault();
  });
}
