/**
 * The transport: plays takes one after the other with the pauses of the page between them.
 *
 * Two audio elements take turns; while one sounds, the other has the next take loaded and stands at its start of speech.
 * A take ends at its end of speech, not at the end of its file; the pause is counted from there.
 * Attributes for all to see: `data-phase` = stopped | playing | silence | waiting, `data-playing` while not stopped.
 */
import { current, desk, inspect, manuscript, segments, select, SELECTED, show, type Selected } from "./current";
import { isOf, lineAt, lineOf, linesIn, stepFrom, timeline, type Line, type Placed } from "./lines";
import { CHANGED } from "./morph";
import { clock, icon, say } from "./words";

type Phase = "stopped" | "playing" | "silence" | "waiting";

/** Somebody else begins to sound; the player falls silent. */
export const SOUND = "studio:sound";
/** Where playback stands within the current take: {element, time}. */
export const TICK = "studio:tick";

export class StudioPlayer extends HTMLElement {
  private audios: HTMLAudioElement[] = [];
  private turn = 0;
  private phase: Phase = "stopped";
  private one = false;
  private line: Line | null = null;
  private run = 0; // every start and stop makes older callbacks void
  private timer = 0;
  private frame = 0;
  private following = true;
  private placed: Placed[] = [];
  private total = 0;
  private dragging = false;
  private repaint = 0;

  connectedCallback(): void {
    this.audios = Array.from(this.querySelectorAll("audio"));
    for (const audio of this.audios) {
      audio.addEventListener("ended", () => audio === this.audio && this.phase === "playing" && this.lineEnded());
      audio.addEventListener("error", () => audio === this.audio && audio.hasAttribute("src") && this.audioFailed());
    }
    const speed = this.piece<HTMLSelectElement>("speed");
    if (speed) {
      const last = recall("speed");
      if (last && Array.from(speed.options).some((option) => option.value === last)) speed.value = last;
      speed.addEventListener("change", () => {
        remember("speed", speed.value);
        this.audio.playbackRate = this.rate;
        if (this.phase === "playing") this.watchEnd(this.run);
      });
    }
    const range = this.range;
    range?.addEventListener("input", () => {
      this.dragging = true;
      this.say(range.valueAsNumber);
    });
    range?.addEventListener("change", () => {
      this.dragging = false;
      this.seek(range.valueAsNumber);
    });
    document.addEventListener(CHANGED, this.changed);
    document.addEventListener(SELECTED, this.selected);
    document.addEventListener(SOUND, this.otherSound);
    const home = desk();
    for (const name of ["wheel", "touchmove"] as const) home?.addEventListener(name, this.letGo, { passive: true });
    home?.addEventListener("keydown", (event) => {
      if (["PageUp", "PageDown", "Home", "End"].includes(event.key)) this.letGo();
    });
    navigator.mediaSession?.setActionHandler("play", () => this.toggle());
    navigator.mediaSession?.setActionHandler("pause", () => this.pause());
    this.paint();
  }

  disconnectedCallback(): void {
    this.stop();
    document.removeEventListener(CHANGED, this.changed);
    document.removeEventListener(SELECTED, this.selected);
    document.removeEventListener(SOUND, this.otherSound);
  }

  private get audio(): HTMLAudioElement {
    return this.audios[this.turn]!;
  }
  private get spare(): HTMLAudioElement {
    return this.audios[1 - this.turn]!;
  }
  private get range(): HTMLInputElement | null {
    return this.querySelector<HTMLInputElement>('input[type="range"]');
  }
  private get rate(): number {
    return Number(this.piece<HTMLSelectElement>("speed")?.value ?? 1) || 1;
  }
  private piece<T extends HTMLElement>(role: string): T | null {
    return this.querySelector<T>(`[data-role="${role}"]`);
  }

  /* ---- what can be asked of it ---- */

  /** Play from the current sentence, or pause; a paused sentence goes on where it stopped. */
  toggle(): void {
    if (this.phase !== "stopped") {
      this.pause();
      return;
    }
    const here = current() ?? segments()[0];
    if (!here) return;
    const line = this.line;
    const { currentTime } = this.audio;
    if (line && line.element === here && line.audio === lineOf(here).audio && currentTime > line.start && (!line.end || currentTime < line.end - 0.05)) {
      this.following = true;
      this.one = false;
      void this.sound(line, currentTime - line.start);
      return;
    }
    this.play(here);
  }

  /** Play a sentence and go on from there; `one` stops after it. `offset` is in seconds of its speech. */
  play(element: HTMLElement, options: { one?: boolean; offset?: number } = {}): void {
    this.one = options.one ?? false;
    this.setFollow(true);
    const line = lineOf(element);
    if (this.one && !line.audio) {
      this.stop();
      this.tell(say(line.skip ? "skipped" : "no-sound"));
      return;
    }
    this.advance(element, 0, undefined, options.offset ?? 0);
  }

  /** Stop because somebody said so. */
  pause(): void {
    if (this.phase === "stopped") return;
    this.stop();
    this.tell(say("paused"));
  }

  /** Silence; the place is kept. */
  stop(): void {
    this.run += 1;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    for (const audio of this.audios) audio.pause();
    const was = this.phase;
    this.become("stopped");
    if (was !== "stopped") inspect(0);
  }

  /** Five seconds back or on, or any other number. */
  seekBy(seconds: number): void {
    this.seek(this.position() + seconds);
  }

  /** Go to a time of the chapter; playing goes on. */
  seek(time: number): void {
    this.measure();
    const found = lineAt(this.placed, Math.max(0, Math.min(time, this.total)));
    if (!found) return;
    const { line } = this.placed[found.index]!;
    if (this.phase === "stopped") {
      select(line.element, { byHand: true });
      show(line.element);
      if (line.audio) void this.stand(line, found.offset);
      else this.say((this.placed[found.index]?.at ?? 0) + found.offset);
      return;
    }
    this.play(line.element, { offset: line.audio ? found.offset : 0 });
  }

  /** Go to a time within the current take (seconds of the file), as the waveform asks. */
  seekInTake(time: number): void {
    const here = current();
    if (!here) return;
    const line = lineOf(here);
    if (!line.audio) return;
    const offset = Math.max(0, time - line.start);
    if (this.phase === "stopped") void this.stand(line, offset);
    else this.play(here, { offset, one: this.one });
  }

  /** Whether the text follows the sentence being played. */
  toggleFollow(): void {
    this.setFollow(!this.following);
    const here = current();
    if (this.following && here) show(here);
  }

  /* ---- from line to line ---- */

  /** Play what comes at or after `element` (or the one after it, `skip` = 1). */
  private advance(element: HTMLElement, skip: number, before?: Line, offset = 0, endedAt = performance.now()): void {
    const root = manuscript();
    if (!root) return;
    const lines = linesIn(root);
    const index = lines.findIndex((line) => line.element === element);
    const step = stepFrom(lines, index + skip, before);
    const run = ++this.run;
    clearTimeout(this.timer);
    if (step.kind === "end") {
      this.stop();
      const left = lines.slice(index + skip).some((line) => !line.skip && !line.audio);
      this.tell(say(left ? "no-sound-left" : "ended"));
      return;
    }
    const line = lines[step.index]!;
    if (step.kind === "wait") {
      for (const audio of this.audios) audio.pause();
      this.line = line;
      this.become("waiting");
      this.reach(line);
      this.tell(say("waiting", { n: line.element.dataset.n ?? "" }));
      return;
    }
    const start = line.element === element ? offset : 0;
    if (!before || step.pauseMs <= 0) {
      void this.sound(line, start);
      return;
    }
    this.become("silence");
    const due = endedAt + step.pauseMs / this.rate - performance.now();
    this.timer = window.setTimeout(() => run === this.run && void this.sound(line, start), Math.max(0, due));
  }

  /** Let one line sound, `offset` seconds into its speech. */
  private async sound(line: Line, offset: number): Promise<void> {
    const run = ++this.run;
    clearTimeout(this.timer);
    document.dispatchEvent(new CustomEvent(SOUND, { detail: this }));
    if (this.spare.dataset.url === line.audio) {
      this.audio.pause();
      this.turn = 1 - this.turn;
    }
    this.line = line;
    this.become("playing");
    this.reach(line);
    try {
      await this.load(this.audio, line, offset);
      if (run !== this.run) return;
      this.audio.playbackRate = this.rate;
      await this.audio.play();
    } catch (reason) {
      if (run !== this.run || (reason as Error).name === "AbortError") return;
      if ((reason as Error).name === "NotAllowedError") this.stop();
      else this.audioFailed();
      return;
    }
    if (run !== this.run) return;
    this.tell(say("playing", { n: line.element.dataset.n ?? "" }));
    this.watchEnd(run);
    this.tick();
    if (!this.one) this.preload(line);
  }

  /** Load a take and stand at `offset` seconds of its speech, silently. */
  private async stand(line: Line, offset: number): Promise<void> {
    const run = ++this.run;
    this.line = line;
    try {
      await this.load(this.audio, line, offset);
    } catch {
      if (run === this.run) this.audioFailed();
      return;
    }
    if (run === this.run) this.moved();
  }

  private async load(audio: HTMLAudioElement, line: Line, offset: number): Promise<void> {
    if (audio.dataset.url !== line.audio || audio.error) {
      audio.dataset.url = line.audio;
      audio.src = line.audio;
    }
    if (audio.readyState < HTMLMediaElement.HAVE_METADATA) {
      // no listening for "emptied": it is fired, late, by setting this very source
      await new Promise<void>((done, fail) => {
        const settle = (): void => {
          audio.removeEventListener("loadedmetadata", settle);
          audio.removeEventListener("error", settle);
          if (audio.error) fail(new Error("not loaded"));
          else done();
        };
        audio.addEventListener("loadedmetadata", settle);
        audio.addEventListener("error", settle);
      });
    }
    if (audio.dataset.url !== line.audio) return; // another take was put in meanwhile; its own caller goes on
    const target = line.start + offset;
    if (Math.abs(audio.currentTime - target) > 0.02) audio.currentTime = target;
  }

  private preload(line: Line): void {
    const root = manuscript();
    if (!root) return;
    const lines = linesIn(root);
    const step = stepFrom(lines, lines.findIndex((other) => other.element === line.element) + 1);
    const next = step.kind === "play" ? lines[step.index] : undefined;
    if (!next || next.audio === this.audio.dataset.url) return;
    this.load(this.spare, next, 0).catch(() => undefined); // its own turn will say so
  }

  /** Call `lineEnded` at the end of speech. Timers are checked against the audio's own clock. */
  private watchEnd(run: number): void {
    clearTimeout(this.timer);
    if (run !== this.run || this.phase !== "playing" || !this.line) return;
    const end = this.line.end || this.audio.duration;
    if (!Number.isFinite(end)) return; // "ended" will tell
    const left = ((end - this.audio.currentTime) / this.rate) * 1000;
    if (left <= 4) {
      this.lineEnded(left);
      return;
    }
    this.timer = window.setTimeout(() => this.watchEnd(run), left > 120 ? left - 60 : left);
  }

  private lineEnded(left = 0): void {
    const line = this.line;
    if (!line) return;
    const endedAt = performance.now() + Math.max(0, left);
    this.audio.pause();
    cancelAnimationFrame(this.frame);
    if (this.one) {
      this.stop();
      return;
    }
    this.advance(line.element, 1, lineOf(line.element), 0, endedAt);
  }

  private audioFailed(): void {
    const line = this.line;
    this.stop();
    for (const audio of this.audios) {
      delete audio.dataset.url; // the next try loads anew
    }
    this.tell(say("audio-failed", { n: line?.element.dataset.n ?? "" }), true);
  }

  /** Make a line's sentence the current one. */
  private reach(line: Line): void {
    if (current() !== line.element) select(line.element);
    if (this.following && !document.documentElement.hasAttribute("data-blind")) show(line.element);
    this.moved();
  }

  /* ---- what others do ---- */

  private changed = (event: Event): void => {
    const element = event.target as Element;
    if (!element.classList.contains("seg") && !element.classList.contains("block")) return;
    this.paintSoon();
    if (this.phase !== "waiting" || !this.line) return;
    const now = lineOf(this.line.element);
    if (now.audio || (now.state !== "queued" && now.state !== "rendering")) this.advance(this.line.element, 0);
  };

  private selected = (event: Event): void => {
    const { element, byHand, fraction } = (event as CustomEvent<Selected>).detail;
    if (this.phase === "stopped") {
      this.moved();
      return;
    }
    if (!byHand) return; // our own step to the next line
    if (element === this.line?.element && fraction === null) return; // focus came to what plays already
    const line = lineOf(element);
    this.play(element, { one: this.one, offset: fraction !== null && line.audio ? fraction * line.length : 0 });
  };

  private otherSound = (event: Event): void => {
    if ((event as CustomEvent).detail !== this && this.phase !== "stopped") this.stop();
  };

  private letGo = (): void => {
    if (this.phase !== "stopped" && this.following) this.setFollow(false);
  };

  private setFollow(on: boolean): void {
    this.following = on;
    this.querySelector('[data-action="follow"]')?.setAttribute("aria-pressed", String(on));
  }

  /* ---- what is shown ---- */

  private become(phase: Phase): void {
    this.phase = phase;
    this.dataset.phase = phase;
    this.toggleAttribute("data-playing", phase !== "stopped");
    const button = this.querySelector<HTMLElement>(".play");
    const on = phase !== "stopped";
    button?.replaceChildren(icon(on ? "pause" : "play"), hiddenWords(say(on ? "pause" : "play")));
    if (navigator.mediaSession) navigator.mediaSession.playbackState = on ? "playing" : "paused";
  }

  private tell(text: string, alarm = false): void {
    const status = this.piece("status");
    if (!status) return;
    status.textContent = text;
    // seen by all when it explains a silence
    status.classList.toggle("vh", !(alarm || this.phase === "waiting" || (this.phase === "stopped" && text !== say("paused"))));
  }

  private tick = (): void => {
    cancelAnimationFrame(this.frame);
    this.moved();
    if (this.phase === "playing") this.frame = requestAnimationFrame(this.tick);
  };

  /** Seconds into the chapter. */
  position(): number {
    const here = this.phase === "stopped" && this.line?.element !== current() ? current() : (this.line?.element ?? current());
    const placed = this.placed.find((p) => p.line.element === here);
    if (!placed) return 0;
    const inside = this.line?.element === here && this.audio.dataset.url === this.line?.audio ? this.audio.currentTime - this.line.start : 0;
    return placed.at + Math.max(0, Math.min(inside, placed.line.length));
  }

  private moved(): void {
    const time = this.position();
    if (!this.dragging) {
      if (this.range) this.range.value = String(time);
      this.say(time);
    }
    if (this.line && this.line.element === current()) {
      this.dispatchEvent(new CustomEvent(TICK, { bubbles: true, detail: { element: this.line.element, time: this.audio.currentTime } }));
    }
  }

  private shown = "";
  private say(time: number): void {
    const x = this.total ? (1000 * time) / this.total : 0;
    this.querySelector(".line .head")?.setAttribute("d", `M${x.toFixed(1)} 0V44`);
    const text = clock(time);
    if (text === this.shown) return;
    this.shown = text;
    const now = this.piece("now");
    if (now) now.textContent = text;
    const element = current();
    this.range?.setAttribute("aria-valuetext", say("place", { now: text, total: clock(this.total), n: element?.dataset.n ?? "" }));
  }

  private paintSoon(): void {
    this.repaint ||= window.setTimeout(() => {
      this.repaint = 0;
      this.paint();
    }, this.placed.length > 300 ? 1000 : 250); // a long chapter costs some milliseconds
  }

  private measure(): void {
    const root = manuscript();
    if (!root) return;
    const { placed, total } = timeline(linesIn(root));
    this.placed = placed;
    this.total = total;
  }

  /** Draw the chapter: one bar a sentence, by what is to be said of it; count the filters. */
  private paint(): void {
    this.measure();
    const svg = this.querySelector(".line svg");
    const paths: Record<string, string> = {};
    const add = (kind: string, d: string): void => {
      paths[kind] = (paths[kind] ?? "") + d;
    };
    const count = { all: 0, problems: 0, missing: 0, stale: 0 };
    let estimated = false;
    for (const { line, at } of this.placed) {
      if (line.skip) continue;
      const { element } = line;
      count.all += 1;
      const problem = isOf("problems", element);
      if (problem) count.problems += 1;
      if (isOf("missing", element)) count.missing += 1;
      if (isOf("stale", element)) count.stale += 1;
      estimated ||= line.estimated;
      if (!this.total) continue;
      const x = (1000 * at) / this.total;
      const width = Math.max(0.6, (1000 * line.length) / this.total - 0.8);
      const marks = element.dataset.marks ?? "";
      const bad = line.state === "failed" || marks.includes("pickup");
      if (line.state === "rendering") add("move", bar(x, width, 3));
      else if (!line.audio) add(bad ? "bad" : "wait", bad ? bar(x, width, 3) : `M${x.toFixed(1)} 22h${width.toFixed(1)}`);
      else add(bad ? "bad" : problem ? "warn" : marks.includes("qc") ? "ok" : "done", bar(x, width, height(element)));
      if (bad || problem) add(bad ? "bad" : "warn", `M${x.toFixed(1)} 0h${width.toFixed(1)}v2.500h-${width.toFixed(1)}z`);
    }
    svg?.replaceChildren(
      ...Object.entries(paths).map(([kind, d]) => path(kind, d)),
      path("head", "M0 0V44"),
    );
    if (this.range) this.range.max = String(this.total);
    const total = this.piece("total");
    if (total) total.textContent = this.total ? `${estimated ? "≈ " : ""}${clock(this.total)}` : "–";
    for (const [name, n] of Object.entries(count)) {
      const place = document.querySelector(`[data-count="${name}"]`);
      if (place) place.textContent = String(n);
      // the last of its kind was mended: an empty page would look broken
      const shown = document.getElementById("manuscript");
      if (n === 0 && name !== "all" && shown?.dataset.filter === name) document.querySelector<HTMLElement>('[data-filter="all"][data-action="filter"]')?.click();
    }
    this.shown = "";
    this.moved();
  }
}

/** Longer sentences stand a little taller, so that the eye finds its place. */
function height(element: HTMLElement): number {
  return Math.min(26, 6 + (element.querySelector(".t")?.textContent?.length ?? 0) / 10);
}

function bar(x: number, width: number, tall: number): string {
  return `M${x.toFixed(1)} ${(22 - tall / 2).toFixed(1)}h${width.toFixed(1)}v${tall.toFixed(1)}h-${width.toFixed(1)}z`;
}

function path(kind: string, d: string): SVGPathElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", "path");
  element.setAttribute("class", kind);
  element.setAttribute("d", d);
  return element;
}

function hiddenWords(text: string): HTMLElement {
  const span = document.createElement("span");
  span.className = "vh";
  span.textContent = text;
  return span;
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem(name, value);
  } catch {
    // storage is off
  }
}

function recall(name: string): string | null {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
