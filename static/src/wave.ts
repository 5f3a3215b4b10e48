/** `<studio-wave data-peaks data-seconds data-start data-end>`: the waveform of the current take, drawn from the server's peaks. */
import type WaveSurfer from "wavesurfer.js";
import { peaksFetch } from "./peaks";
import { TICK, type StudioPlayer } from "./player";

export class StudioWave extends HTMLElement {
  private wave: WaveSurfer | null = null;
  private gone = false;

  connectedCallback(): void {
    this.gone = false;
    document.addEventListener(TICK, this.tick);
    document.addEventListener("studio:theme", this.redraw);
    void this.draw();
  }
  disconnectedCallback(): void {
    this.gone = true;
    document.removeEventListener(TICK, this.tick);
    document.removeEventListener("studio:theme", this.redraw);
    this.wave?.destroy();
    this.wave = null;
  }

  private redraw = (): void => {
    this.wave?.destroy();
    this.wave = null;
    this.replaceChildren();
    void this.draw();
  };

  private async draw(): Promise<void> {
    const url = this.dataset.peaks;
    if (!url) return;
    try {
      const [{ default: Wave }, peaks] = await Promise.all([import("wavesurfer.js"), peaksFetch(url)]);
      if (this.gone || this.wave) return;
      const seconds = Number(this.dataset.seconds) || peaks.seconds;
      this.shade(seconds);
      const wave = Wave.create({
        container: this,
        peaks: [peaks.values],
        duration: seconds,
        height: 62,
        normalize: true,
        barWidth: 2,
        barGap: 1,
        barRadius: 1,
        cursorWidth: 2,
        waveColor: this.colour("--ink-3"),
        progressColor: this.colour("--accent"),
        cursorColor: this.colour("--accent"),
      });
      wave.on("interaction", (time: number) => document.querySelector<StudioPlayer>("studio-player")?.seekInTake(time));
      this.wave = wave;
    } catch {
      this.setAttribute("data-missing", ""); // the sentence still plays; only its picture is missing
    }
  }

  /** What is trimmed away lies in shade. */
  private shade(seconds: number): void {
    const start = Number(this.dataset.start) || 0;
    const end = Number(this.dataset.end) || seconds;
    if (!seconds) return;
    for (const [side, share] of [["start", start / seconds], ["end", 1 - end / seconds]] as const) {
      const cover = document.createElement("i");
      cover.className = `trimmed ${side}`;
      cover.style.inlineSize = `${Math.max(0, Math.min(1, share)) * 100}%`;
      this.append(cover);
    }
  }

  /** A token as a colour a canvas understands. */
  private colour(token: string): string {
    this.style.color = `var(${token})`;
    const colour = getComputedStyle(this).color;
    this.style.color = "";
    return colour;
  }

  private tick = (event: Event): void => {
    const { element, time } = (event as CustomEvent<{ element: HTMLElement; time: number }>).detail;
    if (element.id === `segment-${this.closest<HTMLElement>("[data-segment]")?.dataset.segment}`) this.wave?.setTime(time);
  };
}
