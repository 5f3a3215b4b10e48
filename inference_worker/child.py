"""The child process that owns one device: loads an engine, warms it up, measures it, speaks what it is sent.

Standard input brings work, standard output carries answers; when the input closes the process ends, so a server
that dies takes its children with it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inference_worker import frames
from inference_worker.engines import engine_class
from inference_worker.engines.base import About, Engine, Speech, Utterance
from inference_worker.errors import DeviceFault, OutOfMemory, SpeechError

WARMUP_BUDGET_S = 20.0
KNEE_SLACK = 1.05
"""The smallest batch within 5 % of the best time per item is the one to use: small batches keep previews short."""


def is_out_of_memory(exc: BaseException) -> bool:
    """Ours, torch's or Python's, told by name so that torch need not be imported here."""
    return isinstance(exc, OutOfMemory | MemoryError) or type(exc).__name__ == "OutOfMemoryError"


def is_device_fault(exc: BaseException) -> bool:
    """After any other CUDA error the context is poisoned; only a new process helps."""
    text = str(exc)
    return (
        isinstance(exc, DeviceFault)
        or type(exc).__name__ == "AcceleratorError"
        or "CUDA error" in text
        or "device-side assert" in text
    )


def knee_of(table: list[tuple[int, float]]) -> int:
    """Batch size to use, from (items, seconds per item) measured: the smallest within KNEE_SLACK of the best."""
    best = min(per_item for _, per_item in table)
    return next(items for items, per_item in table if per_item <= best * KNEE_SLACK)


def warm_up(engine: Engine, about: About, budget_s: float = WARMUP_BUDGET_S) -> dict[str, Any]:
    """Speak texts of three lengths, then batches of growing size; what was measured, as JSON values."""
    voice = about.voices[0].id if about.voices else ""
    language = next((x for x in about.languages if x != "*"), "")
    text = about.warmup_text

    def run(texts: list[str]) -> tuple[float, float]:
        start = time.perf_counter()
        out = engine.speak([Utterance(t, voice, language) for t in texts], lambda: False)
        seconds = time.perf_counter() - start
        audio = 0.0
        for item in out:
            if isinstance(item, SpeechError):
                raise RuntimeError(f"warm-up text refused: {item.message}")
            audio += len(item.samples) / about.sample_rate
        return seconds, audio

    begun = time.perf_counter()
    run([text])  # the first run pays for allocation and compilation
    if about.max_batch > 1:
        run([" ".join(text.split()[:4])])
    best: dict[int, tuple[float, float]] = {}  # items → (wall, CPU) seconds of the quickest run

    def measure(items: int) -> float:
        cpu = time.process_time()
        seconds, audio = run([text] * items)
        cpu = time.process_time() - cpu
        old = best.get(items, (seconds, cpu))
        best[items] = (min(old[0], seconds), min(old[1], cpu))
        return audio / items

    audio = measure(1)
    items = 2
    while items <= about.max_batch:
        expected = items * best[items // 2][0] / (items // 2)
        if time.perf_counter() - begun + 3 * expected > budget_s:
            break
        try:
            run([text] * items)
            measure(items)
        except Exception as exc:
            if not is_out_of_memory(exc):
                raise
            engine.free()
            best.pop(items, None)
            break
        items *= 2
    # Once more and again, sizes in turn, so that a neighbour's load for a moment does not choose the size.
    for _ in range(2):
        for items in list(best):
            if time.perf_counter() - begun + best[items][0] < budget_s and len(best) > 1:
                measure(items)
    # On a CPU its own time is steadier than the clock on the wall; a device leaves the CPU waiting.
    column = 1 if all(cpu > 0.1 * wall for wall, cpu in best.values()) else 0
    table = [(n, seconds[column] / n) for n, seconds in sorted(best.items())]
    knee = knee_of(table)
    return {
        "knee": knee,
        "table": [[n, round(t, 6)] for n, t in table],
        "seconds_per_char": max(0.01, (audio - 0.3) / len(text)),
        "device_s_per_audio_s": best[knee][0] / knee / max(audio, 0.05),
        "warmup_s": time.perf_counter() - begun,
    }


class Child:
    """The loop between the pipes."""

    def __init__(self, engine: Engine, out: BinaryIO) -> None:
        self.engine = engine
        self.out = out
        self.work: queue.Queue[tuple[dict[str, Any], bytes] | None] = queue.Queue()
        self.cancelled: set[int] = set()

    def send(self, head: dict[str, Any], tail: bytes = b"") -> None:
        """Write one message and flush."""
        self.out.write(frames.pack(head, tail))
        self.out.flush()

    def listen(self, stream: BinaryIO) -> None:
        """Thread: cancellations act at once, work is queued, the end of the stream ends the process."""
        while (message := frames.read(stream)) is not None:
            if message[0]["op"] == "cancel":
                self.cancelled.add(message[0]["batch"])
            else:
                self.work.put(message)
        os._exit(0)

    def run(self, rate_hz: int) -> None:
        """Answer batches until told to stop."""
        while (message := self.work.get()) is not None:
            head = message[0]
            if head["op"] == "stop":
                return
            self._speak(head, rate_hz)

    def _speak(self, head: dict[str, Any], rate_hz: int) -> None:
        number = head["batch"]
        self.cancelled = {n for n in self.cancelled if n >= number}  # those that came too late
        batch = [Utterance(**item) for item in head["items"]]
        start = time.perf_counter()
        try:
            out = self.engine.speak(batch, lambda: number in self.cancelled)
            if len(out) != len(batch):
                raise RuntimeError(f"{len(batch)} utterances, {len(out)} results")
        except Exception as exc:
            seconds = time.perf_counter() - start
            if is_out_of_memory(exc):
                del exc
                self.engine.free()
                self.send({"op": "oom", "batch": number, "seconds": seconds})
            elif is_device_fault(exc):
                self.send({"op": "fault", "batch": number, "message": str(exc)[:500]})
                os._exit(70)
            else:
                import traceback

                traceback.print_exc(file=sys.stderr)
                self.send(
                    {"op": "failed", "batch": number, "message": type(exc).__name__, "seconds": seconds}
                )
            return
        results: list[dict[str, Any]] = []
        blobs: list[bytes] = []
        for item in out:
            if isinstance(item, Speech):
                pcm = to_pcm(item.samples)
                blobs.append(pcm)
                results.append(
                    {"bytes": len(pcm), "truncated": item.truncated, "seed_exact": item.seed_exact}
                )
            else:
                results.append({"code": item.code, "message": item.message, "param": item.param})
        seconds = time.perf_counter() - start
        done = {"op": "done", "batch": number, "results": results, "seconds": seconds}
        done["memory"] = self.engine.memory_bytes()
        self.send(done, b"".join(blobs))


def to_pcm(samples: np.ndarray) -> bytes:
    """Float samples in [-1, 1] as 16 bit little endian; what lies beyond is clipped, not wrapped."""
    return np.rint(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2").tobytes()


def main() -> None:
    """Entry: one argument, the replica's settings as JSON."""
    settings = json.loads(sys.argv[1])
    # Ctrl-C and a service manager's SIGTERM reach the whole group: the server drains first, then closes our pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stdin = os.fdopen(os.dup(0), "rb")
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints goes to the log, not between the messages
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    folder = Path(settings["folder"]) if settings.get("folder") else None
    engine: Engine | None = None
    try:
        engine = engine_class(settings["engine"])(settings.get("options", {}), folder)
        child = Child(engine, stdout)
        threading.Thread(target=child.listen, args=(stdin,), daemon=True).start()
        about = engine.load(settings.get("device", "cpu"), int(settings.get("threads", 1)))
        child.send({"op": "loaded", "about": about.to_wire()})
        measured = warm_up(engine, about, float(settings.get("warmup_budget_s", WARMUP_BUDGET_S)))
        child.send({"op": "ready", "measured": measured, "memory": engine.memory_bytes()})
    except Exception as exc:
        import traceback

        traceback.print_exc(file=sys.stderr)
        stdout.write(frames.pack({"op": "unfit", "message": f"{type(exc).__name__}: {exc}"[:500]}))
        stdout.flush()
        os._exit(69)
    child.run(about.sample_rate)
    os._exit(0)


if __name__ == "__main__":
    main()
