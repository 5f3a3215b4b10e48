import { describe, expect, it } from "vitest";
import { peaksFromBinary, peaksFromJson } from "./peaks";

function dat(version: number, pairs: [number, number][]): ArrayBuffer {
  const head = version === 2 ? 24 : 20;
  const view = new DataView(new ArrayBuffer(head + pairs.length * 2));
  view.setInt32(0, version, true);
  view.setUint32(4, 1, true);
  view.setInt32(8, 24_000, true);
  view.setInt32(12, 240, true);
  view.setUint32(16, pairs.length, true);
  if (version === 2) view.setInt32(20, 1, true);
  pairs.forEach(([low, high], i) => {
    view.setInt8(head + 2 * i, low);
    view.setInt8(head + 2 * i + 1, high);
  });
  return view.buffer;
}

describe("peaks", () => {
  it.each([1, 2])("are read from audiowaveform data, version %i", (version) => {
    const { values, seconds } = peaksFromBinary(dat(version, [[-64, 32], [-128, 127]]));
    expect(Array.from(values)).toEqual([0.25, -0.5, 127 / 128, -1].map((v) => expect.closeTo(v, 5)));
    expect(seconds).toBeCloseTo(0.02);
  });

  it("are refused when cut short or of another kind", () => {
    expect(() => peaksFromBinary(dat(2, [[-1, 1]]).slice(0, 25))).toThrow(/cut short/);
    expect(() => peaksFromBinary(new TextEncoder().encode("<!doctype html><p>sign in").buffer as ArrayBuffer)).toThrow(/version/);
    expect(() => peaksFromBinary(new ArrayBuffer(4))).toThrow(/too short/);
  });

  it("are read from JSON", () => {
    const { values, seconds } = peaksFromJson({ bits: 8, data: [-64, 32, -128, 127] });
    expect(values[0]).toBeCloseTo(0.25);
    expect(values[1]).toBeCloseTo(-0.5);
    expect(seconds).toBeCloseTo(0.02);
  });
});
