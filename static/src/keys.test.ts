import { beforeEach, describe, expect, it } from "vitest";
import { actionFor } from "./keys";

function press(code: string, init: Partial<KeyboardEventInit & { keyCode: number }> = {}, target: Element = document.body): string | null {
  const event = new KeyboardEvent("keydown", { code, key: init.key ?? "", bubbles: true, cancelable: true, ...init });
  if (init.keyCode !== undefined) Object.defineProperty(event, "keyCode", { value: init.keyCode });
  let found: string | null = null;
  const listen = (e: Event): void => {
    found = actionFor(e as KeyboardEvent);
  };
  document.addEventListener("keydown", listen, { once: true });
  target.dispatchEvent(event);
  document.removeEventListener("keydown", listen);
  return found;
}

beforeEach(() => {
  document.body.innerHTML = `
    <button id="button">b</button><a id="link" href="#">a</a><input id="text"><input id="range" type="range"><input id="check" type="checkbox">
    <textarea id="area"></textarea><select id="select"><option>1</option></select><div id="editable" contenteditable="true"><b id="inner">x</b></div>
    <span class="seg" id="segment-1" tabindex="0">s</span>`;
});
const at = (id: string): Element => document.getElementById(id)!;

describe("keys", () => {
  it.each([
    ["Space", "play"],
    ["KeyJ", "back"],
    ["KeyK", "stop"],
    ["KeyL", "forward"],
    ["ArrowUp", "before"],
    ["ArrowDown", "after"],
    ["KeyR", "regenerate"],
    ["KeyE", "edit"],
    ["KeyN", "next-problem"],
  ])("%s does %s", (code, action) => expect(press(code)).toBe(action));

  it("go by the physical key: KeyJ on a Korean or Russian layout too", () => {
    expect(press("KeyJ", { key: "ㅓ" })).toBe("back");
    expect(press("KeyJ", { key: "о" })).toBe("back");
  });

  it("except ?, which lies elsewhere on every layout", () => {
    expect(press("Minus", { key: "?", shiftKey: true })).toBe("keys");
  });

  it("with Shift are others", () => {
    expect(press("Space", { shiftKey: true })).toBe("play-one");
    expect(press("KeyN", { shiftKey: true })).toBe("problem-before");
    expect(press("KeyR", { shiftKey: true })).toBeNull();
  });

  it.each(["text", "area", "select", "range", "editable", "inner"])("do not fire while typing in %s", (id) => {
    for (const code of ["Space", "KeyR", "KeyE", "ArrowDown"]) expect(press(code, {}, at(id))).toBeNull();
  });

  it("do not fire while an input method composes", () => {
    expect(press("KeyR", { isComposing: true })).toBeNull();
    expect(press("KeyR", { keyCode: 229 })).toBeNull();
  });

  it.each(["ctrlKey", "metaKey", "altKey"])("leave %s to the browser", (name) => expect(press("KeyR", { [name]: true })).toBeNull());

  it("leave Space to buttons and links, but not on a sentence", () => {
    expect(press("Space", {}, at("button"))).toBeNull();
    expect(press("Space", {}, at("link"))).toBeNull();
    expect(press("Space", {}, at("check"))).toBeNull();
    expect(press("Space", {}, at("segment-1"))).toBe("play");
    expect(press("KeyR", {}, at("button"))).toBe("regenerate");
  });

  it("do nothing while a dialog is open", () => {
    document.body.insertAdjacentHTML("beforeend", "<dialog open></dialog>");
    expect(press("KeyR")).toBeNull();
  });

  it("held down repeat movement only", () => {
    expect(press("ArrowDown", { repeat: true })).toBe("after");
    expect(press("KeyR", { repeat: true })).toBeNull();
    expect(press("Space", { repeat: true })).toBeNull();
  });

  it("nobody knows do nothing", () => expect(press("KeyZ")).toBeNull());
});
