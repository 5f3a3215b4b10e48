import { beforeEach, describe, expect, it, vi } from "vitest";
import { pending, receive, ROWS_A_FRAME } from "./push";
import { block, chapter, seg, segment } from "./testing";

let frames: FrameRequestCallback[] = [];
function frame(): void {
  const due = frames;
  frames = [];
  for (const callback of due) callback(0);
}

beforeEach(() => {
  while (pending()) frame();
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (callback: FrameRequestCallback) => frames.push(callback));
  chapter(block(Array.from({ length: 50 }, (_, i) => ({ id: String(i) }))));
  document.querySelector("main")!.setAttribute("ws-connect", "/ws/documents/d/");
});

describe("pushes", () => {
  it(`are placed ${ROWS_A_FRAME} a frame`, () => {
    receive(Array.from({ length: 50 }, (_, i) => segment({ id: String(i), version: 2, state: "queued" })).join(""));
    const queued = () => document.querySelectorAll('[data-state="queued"]').length;
    expect(queued()).toBe(0);
    frame();
    expect(queued()).toBe(20);
    frame();
    expect(queued()).toBe(40);
    frame();
    expect(queued()).toBe(50);
    expect(pending()).toBe(0);
  });

  it("for the same sentence are one, the newest", () => {
    receive(segment({ id: "1", version: 3, state: "rendering" }));
    receive(segment({ id: "1", version: 4, state: "ready" }));
    receive(segment({ id: "1", version: 2, state: "queued" })); // overtaken on its way
    expect(pending()).toBe(1);
    frame();
    expect(seg("1").dataset.state).toBe("ready");
  });

  it("move the stamp on only when everything before it stands in the page", () => {
    const main = document.querySelector("main")!;
    receive(Array.from({ length: 30 }, (_, i) => segment({ id: String(i), version: 2 })).join("") + '<template id="stamp" data-stamp="7"></template>');
    frame();
    expect(main.dataset.stamp).toBeUndefined();
    frame();
    expect(main.dataset.stamp).toBe("7");
    receive('<template id="stamp" data-stamp="8"></template>');
    expect(main.dataset.stamp).toBe("8");
  });
});
