"""Sound for tests: made here, speech-like in level and rhythm."""

import numpy as np
import pytest


def _speechy(seconds, rate_hz, *, amplitude=0.2, seed=1):
    """A buzzing voice: harmonics of a moving pitch, syllables four times a second."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / rate_hz
    voice = sum(np.sin(k * pitch + rng.uniform(0, 6)) / k for k in range(1, 12))
    envelope = (0.5 + 0.5 * np.sin(2 * np.pi * 4 * t - 1.5)) ** 1.5
    return (amplitude / 2 * voice * envelope).astype(np.float32)


@pytest.fixture(scope="session")
def speechy():
    return _speechy
