import { describe, expect, it } from "vitest";
import { estimate, isOf, lineAt, linesIn, stepFrom, timeline } from "./lines";
import { block, chapter, seg, type SegmentShape } from "./testing";

function lines(...blocks: SegmentShape[][]) {
  chapter(...blocks.map((b) => block(b)));
  return linesIn(document.getElementById("manuscript")!);
}

describe("reading the page", () => {
  it("takes pauses from between sentences and from the end of the paragraph", () => {
    const read = lines([{ id: "1", audio: "/1", pause: 250 }, { id: "2", audio: "/2" }], [{ id: "3", audio: "/3" }]);
    expect(read.map((l) => l.pauseMs)).toEqual([250, 650, 650]);
  });

  it("measures speech, not the file", () => {
    const [line] = lines([{ id: "1", audio: "/1", start: 0.2, end: 1.7 }]);
    expect(line).toMatchObject({ start: 0.2, end: 1.7, estimated: false });
    expect(line!.length).toBeCloseTo(1.5);
  });

  it("estimates what has no take, CJK more slowly", () => {
    const [line] = lines([{ id: "1", text: "A sentence of some forty characters here." }]);
    expect(line!.estimated).toBe(true);
    expect(line!.length).toBeCloseTo(0.2 + 41 / 14.5);
    expect(estimate("吾輩は猫である")).toBeGreaterThan(estimate("abcdefg"));
  });

  it("passes over a paragraph that is not read", () => {
    chapter(block([{ id: "1", audio: "/1" }]), block([{ id: "2", audio: "/2" }]));
    document.getElementById("block-2")!.setAttribute("data-skip", "");
    const read = linesIn(document.getElementById("manuscript")!);
    expect(read[1]).toMatchObject({ skip: true, length: 0, pauseMs: 0 });
    expect(stepFrom(read, 1)).toEqual({ kind: "end" });
  });
});

describe("what comes next", () => {
  it("is the next line with sound", () => {
    const read = lines([{ id: "1", audio: "/1" }, { id: "2", audio: "/2" }]);
    expect(stepFrom(read, 1, read[0])).toEqual({ kind: "play", index: 1, pauseMs: 350 });
  });

  it("passes over lines that nobody makes, and keeps the longest silence", () => {
    const read = lines([{ id: "1", audio: "/1" }, { id: "2" }, { id: "3", state: "failed" }], [{ id: "4", audio: "/4" }]);
    expect(stepFrom(read, 1, read[0])).toEqual({ kind: "play", index: 3, pauseMs: 650 });
  });

  it.each(["queued", "rendering"])("waits for a line that is %s", (state) => {
    const read = lines([{ id: "1", audio: "/1" }, { id: "2", state }, { id: "3", audio: "/3" }]);
    expect(stepFrom(read, 1, read[0])).toMatchObject({ kind: "wait", index: 1 });
  });

  it("plays the old take of a line that is being made again", () => {
    const read = lines([{ id: "1", audio: "/1", state: "rendering", flags: "stale" }]);
    expect(stepFrom(read, 0)).toMatchObject({ kind: "play", index: 0 });
  });

  it("ends where nothing is left", () => {
    const read = lines([{ id: "1", audio: "/1" }, { id: "2" }]);
    expect(stepFrom(read, 1, read[0])).toEqual({ kind: "end" });
    expect(stepFrom(read, 9)).toEqual({ kind: "end" });
  });
});

describe("the timeline", () => {
  const read = () => lines([{ id: "1", audio: "/1", end: 2 }, { id: "2", skip: true }, { id: "3", audio: "/3", end: 3 }]);

  it("adds speech and pauses, and nothing for what is not read", () => {
    const { placed, total, estimated } = timeline(read());
    expect(placed.map((p) => p.at)).toEqual([0, 2.35, 2.35]);
    expect(total).toBeCloseTo(2.35 + 3 + 0.65);
    expect(estimated).toBe(false);
  });

  it("finds the line at a time; within a pause, the next one", () => {
    const { placed } = timeline(read());
    expect(lineAt(placed, 1.5)).toEqual({ index: 0, offset: 1.5 });
    expect(lineAt(placed, 2.1)).toEqual({ index: 2, offset: 0 });
    expect(lineAt(placed, 3.35)!.offset).toBeCloseTo(1);
    expect(lineAt(placed, 99)!.index).toBe(2);
    expect(lineAt([], 1)).toBeNull();
  });
});

describe("filters", () => {
  it("know problems, what has no sound, what is stale", () => {
    lines([{ id: "1", state: "failed" }, { id: "2", audio: "/2", flags: "stale" }, { id: "3", audio: "/3", marks: "edit pickup" }, { id: "4", audio: "/4", marks: "qc" }, { id: "5", skip: true }]);
    const of = (kind: Parameters<typeof isOf>[0]) => ["1", "2", "3", "4", "5"].filter((id) => isOf(kind, seg(id)));
    expect(of("problems")).toEqual(["1", "2", "3"]);
    expect(of("missing")).toEqual(["1"]);
    expect(of("stale")).toEqual(["2"]);
  });
});
