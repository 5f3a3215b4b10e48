"""Room tone: a soft, even noise under a file, so that gaps are never digital silence."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_LOOP_S = 20  # long enough that nobody hears it come round; it joins its own start without a seam


@lru_cache(maxsize=4)
def _loop(rate_hz: int, seed: int) -> np.ndarray:
    """Return one turn of noise with an RMS of 1: level to 200 Hz, then falling 6 dB an octave, as rooms sound."""
    size = _LOOP_S * rate_hz
    frequency = np.fft.rfftfreq(size, 1.0 / rate_hz)
    shape = 1.0 / np.sqrt(1.0 + np.square(frequency / 200.0))
    shape *= 1.0 / np.sqrt(1.0 + (30.0 / np.maximum(frequency, 1e-3)) ** 4)  # no rumble
    phase = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, len(frequency))
    noise = np.fft.irfft(shape * np.exp(1j * phase), size)
    return (noise / np.sqrt(np.mean(np.square(noise)))).astype(np.float32)


def room_tone(start: int, count: int, rate_hz: int, level_db: float, *, seed: int = 1) -> np.ndarray:
    """Return `count` samples of room tone from position `start`, RMS `level_db` dBFS. Equal calls give equal sound."""
    loop = _loop(rate_hz, seed)
    at = start % len(loop)
    turns = -(-(at + count) // len(loop))
    return np.tile(loop, turns)[at : at + count] * np.float32(10.0 ** (level_db / 20.0))
