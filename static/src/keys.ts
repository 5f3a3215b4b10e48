/** Keys of the chapter page: by physical key, so that they lie alike on every layout; never while somebody types. */
import { act } from "./actions";

/** Physical key (with Shift+ before it) → action. `?` is the one that goes by what is printed on the key. */
export const KEYS: Readonly<Record<string, string>> = {
  Space: "play",
  "Shift+Space": "play-one",
  KeyJ: "back",
  KeyK: "stop",
  KeyL: "forward",
  ArrowUp: "before",
  ArrowDown: "after",
  KeyN: "next-problem",
  "Shift+KeyN": "problem-before",
  KeyE: "edit",
  KeyR: "regenerate",
};

const TYPING = 'input:not([type="checkbox"], [type="radio"], [type="button"], [type="submit"]), textarea, select, [contenteditable]:not([contenteditable="false"])';

/** Whether the event belongs to somebody who writes, to an input method, to the browser, or to an open dialog. */
export function isTaken(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return true;
  if (event.ctrlKey || event.metaKey || event.altKey) return true;
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest(TYPING)) return true;
  if (document.querySelector("dialog[open]")) return true;
  // Space presses what has the focus; arrows move within menus and radio groups
  const space = event.code === "Space";
  if (space && target?.closest("button, a[href], summary, input, [role=button], audio, video")) return true;
  if (event.code.startsWith("Arrow") && target?.closest("[popover], [role=menu], input, audio, video")) return true;
  return false;
}

/** The action a key stands for, or null. */
export function actionFor(event: KeyboardEvent): string | null {
  if (isTaken(event)) return null;
  if (event.key === "?") return "keys";
  const name = `${event.shiftKey ? "Shift+" : ""}${event.code}`;
  const action = KEYS[name] ?? null;
  // holding a key down repeats movement, nothing else
  if (event.repeat && action && !["before", "after", "back", "forward"].includes(action)) return null;
  return action;
}

export class StudioKeys extends HTMLElement {
  connectedCallback(): void {
    document.addEventListener("keydown", this.pressed);
  }
  disconnectedCallback(): void {
    document.removeEventListener("keydown", this.pressed);
  }
  private pressed = (event: KeyboardEvent): void => {
    const action = actionFor(event);
    if (!action) return;
    event.preventDefault();
    act(action);
  };
}
