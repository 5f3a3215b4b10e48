"""Loudness as ITU-R BS.1770-4 and EBU R 128 define it, for whole arrays, in numpy.

FFmpeg's ebur128 answers nothing for a take shorter than 400 ms; sentences such as "No." are. Here a short clip
counts as one block of its own length. The test compares the rest with ebur128.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

ABSOLUTE_GATE_LUFS = -70.0  # BS.1770-4, annex 1
RELATIVE_GATE_LU = -10.0
BLOCK_S = 0.4
HOP_S = 0.1  # 75 % overlap
_OFFSET = -0.691
_RING_S = 0.25  # the high-pass rings this long; the FFT must not wrap it around


def _biquads(rate_hz: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the K-weighting's two filters for any rate, as (b, a).

    BS.1770 gives coefficients for 48 kHz only; these are the analogue prototypes behind them, as worked out by
    Brecht De Man ("Evaluation of implementations of the EBU R128 loudness measurement", AES 145, 2018) and used
    by libebur128.
    """
    f0, gain_db, q = 1681.974450955533, 3.999843853973347, 0.7071752369554196
    k = np.tan(np.pi * f0 / rate_hz)
    vh = 10.0 ** (gain_db / 20.0)
    vb = vh**0.4996667741545416
    a0 = 1.0 + k / q + k * k
    shelf_b = np.array([vh + vb * k / q + k * k, 2.0 * (k * k - vh), vh - vb * k / q + k * k]) / a0
    shelf_a = np.array([1.0, 2.0 * (k * k - 1.0) / a0, (1.0 - k / q + k * k) / a0])
    f0, q = 38.13547087602444, 0.5003270373238773
    k = np.tan(np.pi * f0 / rate_hz)
    a0 = 1.0 + k / q + k * k
    high_a = np.array([1.0, 2.0 * (k * k - 1.0) / a0, (1.0 - k / q + k * k) / a0])
    return [(shelf_b, shelf_a), (np.array([1.0, -2.0, 1.0]), high_a)]


def k_weighted(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    """Return the K-weighted signal, float64 of the same length. Filtered in the frequency domain."""
    size = 1 << int(len(samples) + _RING_S * rate_hz).bit_length()
    z = np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size)
    response = np.ones(size // 2 + 1, dtype=np.complex128)
    for b, a in _biquads(rate_hz):
        response *= (b[0] + b[1] * z + b[2] * z * z) / (a[0] + a[1] * z + a[2] * z * z)
    return np.fft.irfft(np.fft.rfft(samples, size) * response, size)[: len(samples)]


def energy_lufs(energy: float) -> float:
    """Return the loudness of a mean square, LUFS; -inf for nothing."""
    return _OFFSET + 10.0 * float(np.log10(energy)) if energy > 0.0 else float("-inf")


def block_energies(samples: np.ndarray, rate_hz: int) -> np.ndarray:
    """Return the K-weighted mean squares of the 400 ms blocks (every 100 ms); one block if it is shorter."""
    if len(samples) == 0:
        return np.zeros(0)
    squares = np.square(k_weighted(samples, rate_hz))
    block, hop = round(BLOCK_S * rate_hz), round(HOP_S * rate_hz)
    if len(squares) < block:
        return np.array([squares.mean()])
    sums = np.concatenate(([0.0], np.cumsum(squares)))
    starts = np.arange(0, len(squares) - block + 1, hop)
    return np.maximum(sums[starts + block] - sums[starts], 0.0) / block


def gated_lufs(energies: np.ndarray) -> float | None:
    """Return the integrated loudness of block energies with both gates of BS.1770-4; None if all is silence."""
    floor = 10.0 ** ((ABSOLUTE_GATE_LUFS - _OFFSET) / 10.0)
    loud = energies[energies > floor]
    if not len(loud):
        return None
    kept = loud[loud > loud.mean() * 10.0 ** (RELATIVE_GATE_LU / 10.0)]
    return energy_lufs(float(kept.mean()))


def loudness_lufs(samples: np.ndarray, rate_hz: int) -> float | None:
    """Return the integrated loudness of mono samples, LUFS; None for silence.

    A clip longer than a minute is taken in pieces, so that memory stays bounded; the seams shift nothing that
    can be heard or measured (< 0.01 LU).
    """
    piece = 60 * rate_hz
    parts = [
        block_energies(samples[start : start + piece], rate_hz)
        for start in range(0, len(samples), piece)
        if start == 0 or len(samples) - start >= BLOCK_S * rate_hz
    ]
    return gated_lufs(np.concatenate(parts)) if parts else None


def combined_lufs(parts: Iterable[tuple[float, float, float]]) -> float | None:
    """Return the integrated loudness that a meter will read of speech laid out with pauses; None for silence.

    `parts` are (start in s, end in s, LUFS) of each take, in order. Every take counts as even sound of its own
    loudness, every pause as silence, and both gates of BS.1770-4 act on the 400 ms blocks of that envelope. The
    blocks at a sentence's ends hold part of a pause; a mean over takes alone would put a book 0.4 LU too low.
    """
    kept = [part for part in parts if part[1] > part[0] and part[2] > ABSOLUTE_GATE_LUFS]
    if not kept:
        return None
    table = np.array(kept)
    # The envelope's running energy is piecewise linear: interpolating it at the blocks' edges is exact.
    energy = 10.0 ** ((table[:, 2] - _OFFSET) / 10.0)
    edges = table[:, :2].reshape(-1)
    steps = np.stack((energy * (table[:, 1] - table[:, 0]), np.zeros(len(table))), axis=1).reshape(-1)
    running = np.concatenate(([0.0], np.cumsum(steps)))[: len(edges)]
    starts = np.arange(table[0, 0] - BLOCK_S, table[-1, 1], HOP_S)
    filled = np.interp(starts + BLOCK_S, edges, running) - np.interp(starts, edges, running)
    return gated_lufs(filled / BLOCK_S)
