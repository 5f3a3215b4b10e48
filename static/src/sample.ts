/** `<studio-sample data-audio="…">` around a button: plays a short recording, one at a time in the page. */
import { SOUND } from "./player";
import { icon, say, toast } from "./words";

let sounding: StudioSample | null = null;
const audio = typeof Audio === "undefined" ? null : new Audio();

export class StudioSample extends HTMLElement {
  connectedCallback(): void {
    this.addEventListener("click", this.clicked);
    document.addEventListener(SOUND, this.otherSound);
  }
  disconnectedCallback(): void {
    this.stop();
    document.removeEventListener(SOUND, this.otherSound);
  }
  private clicked = (): void => {
    if (sounding === this) {
      this.stop();
      return;
    }
    const url = this.dataset.audio;
    if (!audio || !url) return;
    document.dispatchEvent(new CustomEvent(SOUND, { detail: this }));
    sounding = this;
    this.show(true);
    audio.onended = () => this.stop();
    audio.onerror = () => {
      if (sounding === this) toast(say("no-sound"), "warn", { key: "sample" });
      this.stop();
    };
    audio.src = url;
    audio.play().catch(() => this.stop());
  };
  private otherSound = (event: Event): void => {
    if ((event as CustomEvent).detail !== this) this.stop();
  };
  private stop(): void {
    if (sounding !== this) return;
    sounding = null;
    audio?.pause();
    this.show(false);
  }
  private show(on: boolean): void {
    const button = this.querySelector("button");
    button?.setAttribute("aria-pressed", String(on));
    button?.querySelector("svg")?.replaceWith(icon(on ? "pause" : "play"));
  }
}
