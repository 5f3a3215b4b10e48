"""Tones as long as speech would last, and faults on demand: for tests and machines without a model."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from inference_worker.engines.base import About, Speech, Utterance, VoiceInfo
from inference_worker.errors import DeviceFault, OutOfMemory, SpeechError

RATE_HZ = 24_000
SECONDS_PER_CHAR = 0.06


class FakeEngine:
    """Deterministic: the tone's pitch hangs on voice, seed and text, its length on the text and the speed.

    Options (all strings): `delay_ms_per_char` (device time per padded character), `delay_ms` (per batch),
    `load_ms`, `error_on`, `crash_on`, `hang_on`, `fault_on`, `runaway_on` (a word; a text that holds it
    fails, kills the process, hangs, breaks the device, babbles), `oom_above` (padded characters of a batch),
    `fail_load`, `revision`, `max_batch`, `languages` (comma list), `crash_once_file` (crash_on acts only
    until this file exists).
    """

    name = "fake"

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        self.options = dict(options)

    def _number(self, name: str) -> float:
        return float(self.options.get(name, 0) or 0)

    def _hit(self, name: str, text: str) -> bool:
        word = self.options.get(name, "")
        return bool(word) and word in text

    def load(self, device: str, threads: int) -> About:
        """Nothing to load; waits `load_ms` so that tests can watch a slow start."""
        if self.options.get("fail_load"):
            raise RuntimeError("The fake engine was told not to load.")
        time.sleep(self._number("load_ms") / 1000)
        languages = tuple(self.options.get("languages", "*").split(","))
        return About(
            engine=self.name,
            revision=self.options.get("revision", "fake-1"),
            sample_rate=RATE_HZ,
            languages=languages,
            voices=(
                VoiceInfo("tone", "Tone", languages),
                VoiceInfo("low", "Low tone", languages, "male"),
                VoiceInfo("high", "High tone", languages, "female"),
            ),
            licence="Apache-2.0",
            max_batch=int(self._number("max_batch") or 8),
            features=("speed", "seed"),
        )

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """A tone per utterance after the configured delay, or the configured fault."""
        padded = len(batch) * max(len(u.text) for u in batch)
        for u in batch:
            if self._hit("crash_on", u.text) and not self._crashed_before():
                os._exit(139)
            if self._hit("hang_on", u.text):
                time.sleep(3600)
            if self._hit("fault_on", u.text):
                raise DeviceFault("the fake device broke")
        limit = self._number("oom_above")
        if limit and padded > limit:
            raise OutOfMemory(f"{padded} padded characters")
        until = (
            time.monotonic() + (self._number("delay_ms_per_char") * padded + self._number("delay_ms")) / 1000
        )
        while (left := until - time.monotonic()) > 0 and not stop():
            time.sleep(min(left, 0.02))
        return [self._one(u) for u in batch]

    def _crashed_before(self) -> bool:
        """True when `crash_once_file` says that the crash has been had; makes the file otherwise."""
        marker = self.options.get("crash_once_file")
        if not marker:
            return False
        if os.path.exists(marker):
            return True
        Path(marker).touch()
        return False

    def _one(self, u: Utterance) -> Speech | SpeechError:
        if self._hit("error_on", u.text):
            return SpeechError("text_not_speakable", "The fake engine was told not to speak this.", "input")
        seconds = len(u.text) * SECONDS_PER_CHAR / u.speed
        if self._hit("runaway_on", u.text):
            seconds *= 50
        truncated = bool(u.max_seconds) and seconds > u.max_seconds
        if truncated:
            seconds = u.max_seconds
        base = {"low": 110.0, "high": 330.0}.get(u.voice, 220.0)
        digest = hashlib.sha256(f"{u.voice}|{u.seed}|{u.text}".encode()).digest()
        hz = base * (1 + digest[0] / 512)
        n = max(1, round(seconds * RATE_HZ))
        t = np.arange(n, dtype=np.float32) / RATE_HZ
        samples = (0.2 * np.sin(2 * np.pi * hz * t)).astype(np.float32)
        edge = min(n // 2, RATE_HZ // 100)
        if edge:
            ramp = np.linspace(0, 1, edge, dtype=np.float32)
            samples[:edge] *= ramp
            samples[-edge:] *= ramp[::-1]
        return Speech(samples, truncated)

    def free(self) -> None:
        """Holds nothing."""

    def memory_bytes(self) -> int:
        """Holds nothing."""
        return 0


ENGINE = FakeEngine
