import { beforeEach, describe, expect, it } from "vitest";
import { CHANGED, morph, parse, place, release } from "./morph";
import { block, chapter, seg, segment, type SegmentShape } from "./testing";

const one = (s: SegmentShape): Element => parse(segment(s))[0]!;

beforeEach(() => chapter(block([{ id: "1", version: 3, text: "Old words." }, { id: "2", version: 3 }])));

describe("versions", () => {
  it("drops what is older than the page", () => {
    expect(place(one({ id: "1", version: 2, state: "queued", text: "Older." }))).toBeNull();
    expect(seg("1").dataset.state).toBe("empty");
    expect(seg("1").querySelector(".t")!.textContent).toBe("Old words.");
  });

  it.each([3, 4, 12])("takes version %i over 3", (version) => {
    place(one({ id: "1", version, state: "queued" }));
    expect(seg("1").dataset.state).toBe("queued");
    expect(seg("1").dataset.version).toBe(String(version));
  });

  it("compares numbers, not strings", () => {
    place(one({ id: "1", version: 10, state: "ready" }));
    place(one({ id: "1", version: 9, state: "queued" }));
    expect(seg("1").dataset.state).toBe("ready");
  });

  it("guards every sentence inside a pushed paragraph by itself", () => {
    place(one({ id: "1", version: 9, state: "ready" }));
    place(parse(block([{ id: "1", version: 3, state: "queued" }, { id: "2", version: 4, state: "queued" }], 900))[0]!);
    expect(seg("1").dataset.state).toBe("ready");
    expect(seg("2").dataset.state).toBe("queued");
    expect(document.querySelector<HTMLElement>(".gap")!.dataset.ms).toBe("900");
  });
});

describe("what the page owns", () => {
  it("keeps the current sentence, its tab stop and its element", () => {
    const before = seg("1");
    before.setAttribute("aria-current", "true");
    before.tabIndex = 0;
    place(one({ id: "1", version: 4, state: "ready", flags: "stale" }));
    expect(seg("1")).toBe(before);
    expect(before.getAttribute("aria-current")).toBe("true");
    expect(before.tabIndex).toBe(0);
    expect(before.querySelector(".m.stale")).not.toBeNull();
  });

  it("leaves the words alone when they are equal, with the marker of the word being spoken", () => {
    seg("1").querySelector(".t")!.innerHTML = 'Old <span class="now">words</span>.';
    place(one({ id: "1", version: 4, text: "Old words.", state: "ready" }));
    expect(seg("1").querySelector(".now")!.textContent).toBe("words");
    place(one({ id: "1", version: 5, text: "New words.", state: "ready" }));
    expect(seg("1").querySelector(".now")).toBeNull();
    expect(seg("1").querySelector(".t")!.textContent).toBe("New words.");
  });

  it("does not open or shut details", () => {
    document.body.insertAdjacentHTML("beforeend", '<details id="conversion" data-version="1"><summary>a</summary></details>');
    place(parse('<details id="conversion" open data-version="2"><summary>b</summary></details>')[0]!);
    const details = document.querySelector("details")!;
    expect(details.open).toBe(false);
    expect(details.textContent).toBe("b");
  });

  it("never overwrites the value of the field with the focus", () => {
    document.body.insertAdjacentHTML("beforeend", '<form id="f"><input id="i" value="a"></form>');
    const input = document.querySelector<HTMLInputElement>("#i")!;
    input.focus();
    input.value = "typed";
    morph(document.getElementById("f")!, parse('<form id="f"><input id="i" value="pushed"></form>')[0]!);
    expect(document.querySelector<HTMLInputElement>("#i")!.value).toBe("typed");
  });
});

describe("a button with the focus", () => {
  it("keeps the focus and changes its words", () => {
    document.body.insertAdjacentHTML("beforeend", '<div id="conversion"><div class="bar"><button hx-post="/pause">Pause</button></div></div>');
    const button = document.querySelector("button")!;
    button.focus();
    place(parse('<div id="conversion"><div class="bar"><button hx-post="/resume">Go on</button></div></div>')[0]!);
    expect(document.activeElement).toBe(button);
    expect(button.textContent).toBe("Go on");
    expect(button.getAttribute("hx-post")).toBe("/resume");
  });
});

describe("unsaved words", () => {
  it("are left alone, and what arrived meanwhile takes its place when they are let go", () => {
    seg("1").setAttribute("data-dirty", "");
    expect(place(one({ id: "1", version: 4, state: "queued" }))).toBeNull();
    expect(place(one({ id: "1", version: 5, state: "ready" }))).toBeNull();
    expect(seg("1").dataset.state).toBe("empty");
    release(seg("1"));
    expect(seg("1").dataset.state).toBe("ready");
    expect(seg("1").hasAttribute("data-dirty")).toBe(false);
  });

  it("survive a push of the whole paragraph", () => {
    seg("2").setAttribute("data-dirty", "");
    place(parse(block([{ id: "1", version: 4, state: "ready" }, { id: "2", version: 4, state: "ready" }]))[0]!);
    expect(seg("1").dataset.state).toBe("ready");
    expect(seg("2").dataset.state).toBe("empty");
    release(seg("2"));
    expect(seg("2").dataset.state).toBe("ready");
  });

  it("that were older than what is there do not come back on release", () => {
    seg("1").setAttribute("data-dirty", "");
    place(one({ id: "1", version: 4, state: "queued" }));
    seg("1").dataset.version = "7"; // saved: the answer's row
    release(seg("1"));
    expect(seg("1").dataset.state).toBe("empty");
  });
});

describe("placing", () => {
  it("appends what is new to its list, or puts it first", () => {
    document.body.innerHTML = '<ul id="import-rows"><li id="a"></li></ul>';
    place(parse('<li id="b" data-version="1" data-list="import-rows">b</li>')[0]!);
    place(parse('<li id="c" data-version="1" data-list="import-rows" data-at="start">c</li>')[0]!);
    expect(Array.from(document.querySelectorAll("li"), (li) => li.id)).toEqual(["c", "a", "b"]);
  });

  it("drops what has no place", () => {
    expect(place(one({ id: "99", version: 1 }))).toBeNull();
    expect(document.querySelectorAll(".seg")).toHaveLength(2);
  });

  it("parses table rows", () => {
    document.body.innerHTML = '<table><tbody id="project-rows"><tr id="project-1" data-version="1"><td>1</td></tr></tbody></table>';
    place(parse('<tr id="project-1" data-version="2"><td>2</td></tr>')[0]!);
    expect(document.querySelector("td")!.textContent).toBe("2");
  });

  it("says what changed", () => {
    const seen: string[] = [];
    document.addEventListener(CHANGED, (event) => seen.push((event.target as Element).id), { once: false });
    place(one({ id: "1", version: 4, state: "ready" }));
    place(one({ id: "1", version: 2, state: "queued" }));
    expect(seen).toEqual(["segment-1"]);
  });
});
