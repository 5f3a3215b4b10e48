/** The chapter as a sequence of lines to be heard: read from the page, decided without it. Times in seconds. */

export interface Line {
  element: HTMLElement;
  /** Address of the chosen take, "" while there is none. */
  audio: string;
  /** Start and end of speech within the take; end 0 = the end of the file. */
  start: number;
  end: number;
  /** Length of speech; estimated from the text while there is no take. */
  length: number;
  estimated: boolean;
  /** Silence after it, milliseconds. */
  pauseMs: number;
  state: string;
  /** Not read aloud. */
  skip: boolean;
}

export interface Placed {
  line: Line;
  at: number;
}

const CJK = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]/g;

/** How long the words may take: about 155 words, or 320 CJK characters, a minute. */
export function estimate(text: string): number {
  const dense = text.match(CJK)?.length ?? 0;
  return 0.2 + dense / 5.3 + (text.length - dense) / 14.5;
}

function number(value: string | undefined): number {
  const parsed = Number(value);
  return value && Number.isFinite(parsed) ? parsed : 0;
}

/** The silence after a sentence: the pause that stands before the next one, or the gap after its paragraph. */
export function pauseAfter(element: HTMLElement): number {
  for (let next = element.nextElementSibling; next; next = next.nextElementSibling) {
    if (next.classList.contains("seg")) return 0;
    if (next.classList.contains("pause")) return number((next as HTMLElement).dataset.ms);
  }
  const gap = element.closest(".block")?.querySelector<HTMLElement>(":scope > .gap");
  return number(gap?.dataset.ms);
}

/** One sentence as it stands in the page. */
export function lineOf(element: HTMLElement): Line {
  const { audio = "", state = "empty" } = element.dataset;
  const start = number(element.dataset.start);
  const end = number(element.dataset.end);
  const seconds = number(element.dataset.seconds);
  const measured = end > start ? end - start : Math.max(0, seconds - start);
  const skip = element.hasAttribute("data-skip") || element.closest(".block")?.hasAttribute("data-skip") === true;
  const estimated = !audio || measured === 0;
  const length = skip ? 0 : estimated ? estimate(element.querySelector(".t")?.textContent ?? "") : measured;
  return { element, audio, start, end, length, estimated, pauseMs: skip ? 0 : pauseAfter(element), state, skip };
}

/** All sentences under `root` in reading order. */
export function linesIn(root: ParentNode): Line[] {
  return Array.from(root.querySelectorAll<HTMLElement>(".seg"), lineOf);
}

export type Step = { kind: "play" | "wait"; index: number; pauseMs: number } | { kind: "end" };

/**
 * What is heard at or after `from`: the first line with sound, or the first that is being made (playback waits for it).
 * Lines without sound that nobody makes are passed over. `pauseMs` is the longest silence that was passed.
 */
export function stepFrom(lines: Line[], from: number, before?: Line): Step {
  let pauseMs = before?.pauseMs ?? 0;
  for (let index = Math.max(0, from); index < lines.length; index += 1) {
    const line = lines[index]!;
    if (!line.skip) {
      if (line.audio) return { kind: "play", index, pauseMs };
      if (line.state === "queued" || line.state === "rendering") return { kind: "wait", index, pauseMs };
    }
    pauseMs = Math.max(pauseMs, line.pauseMs);
  }
  return { kind: "end" };
}

/** Where every line begins in the chapter, and how long the chapter is. */
export function timeline(lines: Line[]): { placed: Placed[]; total: number; estimated: boolean } {
  let at = 0;
  let estimated = false;
  const placed: Placed[] = [];
  for (const line of lines) {
    placed.push({ line, at });
    if (line.skip) continue;
    estimated ||= line.estimated;
    at += line.length + line.pauseMs / 1000;
  }
  return { placed, total: at, estimated };
}

/** The line heard at a time of the chapter, and how far into it; a time within a pause gives the next line's start. */
export function lineAt(placed: Placed[], time: number): { index: number; offset: number } | null {
  let found: { index: number; offset: number } | null = null;
  for (let index = 0; index < placed.length; index += 1) {
    const { line, at } = placed[index]!;
    if (line.skip) continue;
    if (time < at + line.length) return { index, offset: Math.max(0, time - at) };
    found = { index, offset: Math.max(0, line.length - 0.05) };
  }
  return found;
}

export type Kind = "problems" | "missing" | "stale";

/** Whether a sentence is of a kind the chapter page can be filtered by. The same conditions stand in studio.css. */
export function isOf(kind: Kind, element: HTMLElement): boolean {
  if (element.hasAttribute("data-skip")) return false;
  const flags = ` ${element.dataset.flags ?? ""} `;
  const marks = ` ${element.dataset.marks ?? ""} `;
  const { state, audio } = element.dataset;
  if (kind === "stale") return flags.includes(" stale ");
  if (kind === "missing") return !audio;
  return state === "failed" || flags.includes(" stale ") || flags.includes(" suspect ") || marks.includes(" pickup ");
}
