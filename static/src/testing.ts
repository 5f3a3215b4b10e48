/** Small pages for the tests: the shape of templates/projects/_segment.html and _block.html. */

export interface SegmentShape {
  id: string;
  text?: string;
  version?: number;
  state?: string;
  marks?: string;
  flags?: string;
  audio?: string;
  start?: number;
  end?: number;
  skip?: boolean;
  pause?: number;
}

export function segment(s: SegmentShape): string {
  const sound = s.audio ? ` data-audio="${s.audio}" data-start="${s.start ?? 0}" data-end="${s.end ?? 1}" data-seconds="${(s.end ?? 1) + 0.1}"` : "";
  return `<span class="seg" id="segment-${s.id}" data-version="${s.version ?? 1}" data-state="${s.state ?? (s.audio ? "ready" : "empty")}" data-marks="${s.marks ?? ""}" data-flags="${s.flags ?? ""}"${sound}${s.skip ? " data-skip" : ""} data-n="${s.id}" tabindex="-1"><span class="t">${s.text ?? `Words ${s.id}.`}</span>${(s.flags ?? "").includes("stale") ? '<span class="m stale">!</span>' : ""}</span>`;
}

export function block(segments: SegmentShape[], gap = 650, id = segments[0]?.id ?? "0"): string {
  const rows = segments.map((s, i) => segment(s) + (i < segments.length - 1 ? `<span class="pause" data-ms="${s.pause ?? 350}"></span> ` : "")).join("");
  return `<div class="block" id="block-${id}" data-version="1"><p class="prose">${rows}</p><div class="gap" data-ms="${gap}"></div></div>`;
}

/** Put a chapter page into the document. */
export function chapter(...blocks: string[]): void {
  document.body.innerHTML = `<main class="desk" id="main" data-document="d" data-may-edit><article class="manuscript" id="manuscript">${blocks.join("")}</article></main><div id="inspector-body"></div>`;
}

export const seg = (id: string): HTMLElement => document.getElementById(`segment-${id}`)!;
