import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { select } from "./current";
import { place, parse } from "./morph";
import { StudioPlayer } from "./player";
import { block, chapter, seg, segment } from "./testing";

/** Audio without a device: time goes on with the (fake) clock while it plays. */
class Sound {
  static all = new Map<HTMLAudioElement, { at: number; since: number | null }>();
  static of(audio: HTMLAudioElement) {
    let sound = Sound.all.get(audio);
    if (!sound) Sound.all.set(audio, (sound = { at: 0, since: null }));
    return sound;
  }
}

const heard: string[] = [];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
  vi.stubGlobal("requestAnimationFrame", () => 0);
  vi.stubGlobal("cancelAnimationFrame", () => undefined);
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  heard.length = 0;
  Sound.all.clear();
  Object.defineProperties(HTMLAudioElement.prototype, {
    readyState: { configurable: true, get: () => 4 },
    duration: { configurable: true, get: () => 10 },
    error: { configurable: true, get: () => null },
    currentTime: {
      configurable: true,
      get(this: HTMLAudioElement) {
        const sound = Sound.of(this);
        return sound.at + (sound.since === null ? 0 : ((performance.now() - sound.since) / 1000) * this.playbackRate);
      },
      set(this: HTMLAudioElement, value: number) {
        const sound = Sound.of(this);
        sound.at = value;
        if (sound.since !== null) sound.since = performance.now();
      },
    },
    play: {
      configurable: true,
      value(this: HTMLAudioElement) {
        Sound.of(this).since = performance.now();
        heard.push(`${this.dataset.url}@${Math.round(performance.now() - began)}`);
        return Promise.resolve();
      },
    },
    pause: {
      configurable: true,
      value(this: HTMLAudioElement) {
        const sound = Sound.of(this);
        sound.at = this.currentTime;
        sound.since = null;
      },
    },
  });
  if (!customElements.get("studio-player")) customElements.define("studio-player", StudioPlayer);
});
afterEach(() => {
  document.body.innerHTML = "";
  vi.useRealTimers();
});

let began = 0;
function open(...blocks: string[]): StudioPlayer {
  chapter(...blocks);
  document.body.insertAdjacentHTML(
    "beforeend",
    `<studio-player><button class="play"></button><b data-role="now"></b><span data-role="total"></span><p data-role="status"></p>
     <select data-role="speed"><option value="1" selected>1</option><option value="2">2</option></select>
     <div class="line"><svg></svg><input type="range"></div><audio></audio><audio></audio></studio-player>`,
  );
  began = performance.now();
  return document.querySelector<StudioPlayer>("studio-player")!;
}
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe("the player", () => {
  it("plays take after take with the pauses of the page, from end of speech to start of speech", async () => {
    const player = open(block([{ id: "1", audio: "/1", start: 0.2, end: 1.2, pause: 300 }, { id: "2", audio: "/2", start: 0.1, end: 0.6 }]), block([{ id: "3", audio: "/3" }]));
    player.play(seg("1"));
    await pass(5000);
    // 1 s of speech + 300 ms; 0.5 s + 650 ms
    expect(heard).toEqual(["/1@0", expect.stringMatching(/^\/2@(129\d|130\d)$/), expect.stringMatching(/^\/3@(24[45]\d|24[34]\d)$/)]);
    expect(player.dataset.phase).toBe("stopped");
    expect(player.hasAttribute("data-playing")).toBe(false);
  });

  it("moves the current sentence along and starts each take at its speech", async () => {
    const player = open(block([{ id: "1", audio: "/1", end: 1 }, { id: "2", audio: "/2", start: 0.4, end: 1 }]));
    player.play(seg("1"));
    await pass(100);
    expect(seg("1").getAttribute("aria-current")).toBe("true");
    const ahead = Array.from(player.querySelectorAll("audio")).find((a) => a.dataset.url === "/2")!;
    expect(ahead.currentTime).toBeCloseTo(0.4); // loaded and in position while the first still plays
    await pass(1350);
    expect(seg("2").getAttribute("aria-current")).toBe("true");
    expect(seg("1").hasAttribute("aria-current")).toBe(false);
  });

  it("plays one sentence only when asked so", async () => {
    const player = open(block([{ id: "1", audio: "/1" }, { id: "2", audio: "/2" }]));
    player.play(seg("1"), { one: true });
    await pass(5000);
    expect(heard).toEqual(["/1@0"]);
  });

  it("waits at a sentence that is being made, says so, and goes on when it is pushed", async () => {
    const player = open(block([{ id: "1", audio: "/1", end: 1 }, { id: "2", state: "rendering" }, { id: "3", audio: "/3" }]));
    player.play(seg("1"));
    await pass(3000);
    expect(player.dataset.phase).toBe("waiting");
    expect(player.querySelector("[data-role=status]")!.textContent).toBe("waiting");
    place(parse(segment({ id: "2", version: 2, audio: "/2", end: 1 }))[0]!);
    await pass(10);
    expect(player.dataset.phase).toBe("playing");
    await pass(5000);
    expect(heard.map((h) => h.split("@")[0])).toEqual(["/1", "/2", "/3"]);
  });

  it("passes over a sentence that failed while it was waited for", async () => {
    const player = open(block([{ id: "1", state: "queued" }, { id: "2", audio: "/2" }]));
    player.play(seg("1"));
    await pass(10);
    expect(player.dataset.phase).toBe("waiting");
    place(parse(segment({ id: "1", version: 2, state: "failed" }))[0]!);
    await pass(10);
    expect(heard.map((h) => h.split("@")[0])).toEqual(["/2"]);
  });

  it("goes on where it was paused", async () => {
    const player = open(block([{ id: "1", audio: "/1", start: 0.2, end: 3 }]));
    select(seg("1"), { quiet: true });
    player.toggle();
    await pass(1000);
    player.toggle();
    expect(player.dataset.phase).toBe("stopped");
    await pass(5000);
    player.toggle();
    await pass(10);
    const sounding = Array.from(player.querySelectorAll("audio")).find((a) => a.dataset.url === "/1")!;
    expect(sounding.currentTime).toBeCloseTo(1.21, 1);
  });

  it("plays and pauses faster at twice the speed", async () => {
    const player = open(block([{ id: "1", audio: "/1", end: 2, pause: 400 }, { id: "2", audio: "/2" }]));
    player.querySelector("select")!.value = "2";
    player.play(seg("1"));
    await pass(4000);
    expect(Number(heard[1]!.split("@")[1])).toBeGreaterThan(1180);
    expect(Number(heard[1]!.split("@")[1])).toBeLessThan(1215);
  });

  it("jumps to the sentence chosen by hand while it plays", async () => {
    const player = open(block([{ id: "1", audio: "/1", end: 5 }, { id: "2", audio: "/2" }, { id: "3", audio: "/3" }]));
    player.play(seg("1"));
    await pass(500);
    select(seg("3"), { byHand: true });
    await pass(10);
    expect(heard.map((h) => h.split("@")[0])).toEqual(["/1", "/3"]);
  });

  it("says so when nothing sounds from here on", async () => {
    const player = open(block([{ id: "1" }, { id: "2" }]));
    player.play(seg("1"));
    await pass(10);
    expect(player.dataset.phase).toBe("stopped");
    expect(player.querySelector("[data-role=status]")!.textContent).toBe("no-sound-left");
  });
});
