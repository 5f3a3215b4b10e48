"""From a take's own rate to the delivery rate, once, exactly on the sample.

A polyphase windowed-sinc filter as one matrix product: output n is the signal's value at the input position
origin + n * from_hz / to_hz, so there is no delay to make up for. As fast as FFmpeg's resampler on our clips.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np

_ZERO_CROSSINGS = 48  # each side; stop band about -90 dB with the window below
_KAISER_BETA = 9.0
_CUTOFF = 0.95  # of the lower of the two Nyquist frequencies
_MAX_PHASES = 2048  # rates whose ratio needs more go the slow way
_ONE_THREAD = 1 << 18  # multiplications; OpenBLAS interface/gemm.c, 65,536 * GEMM_MULTITHREAD_THRESHOLD
_MIN_OUT = 128  # outputs a row, so that small ratios still make a product worth its while


def resample(
    samples: np.ndarray,
    from_hz: int,
    to_hz: int,
    *,
    origin: int = 0,
    first: int = 0,
    count: int | None = None,
) -> np.ndarray:
    """Return `count` float32 samples at to_hz, beginning with output `first` (may be negative).

    Output 0 lies exactly on input sample `origin`. What lies outside the input is silence. Without `count`, all
    that the input covers.
    """
    if count is None:
        count = -((-(len(samples) - origin) * to_hz) // from_hz) - first
    if count <= 0:
        return np.zeros(0, dtype=np.float32)
    if from_hz == to_hz:
        return _window(samples, origin + first, count)
    divisor = gcd(from_hz, to_hz)
    up, down = to_hz // divisor, from_hz // divisor
    if up > _MAX_PHASES or down > 2 * _MAX_PHASES:
        return _resample_any(samples, from_hz, to_hz, origin, first, count)
    group = -(-_MIN_OUT // up)
    matrix, reach = _bank(up, down, group)
    row_out, row_in = up * group, down * group
    first_row = first // row_out
    rows = (first + count - 1) // row_out - first_row + 1
    span = matrix.shape[0]
    begin = origin + first_row * row_in - reach
    window = _window(samples, begin, (rows - 1) * row_in + span)
    strided = np.lib.stride_tricks.sliding_window_view(window, span)[::row_in]
    out = product(np.ascontiguousarray(strided), matrix).reshape(-1)  # BLAS takes no overlapping rows
    skip = first - first_row * row_out
    return np.ascontiguousarray(out[skip : skip + count])


def product(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return rows @ matrix, float32, in pieces so small that OpenBLAS does not spread them over threads.

    Beside an encoder the threads wait for each other in a busy loop: measured, 4 times the CPU time for nothing.
    """
    batch = max(1, _ONE_THREAD // matrix.size)
    whole = len(rows) // batch * batch
    out = np.empty((len(rows), matrix.shape[1]), dtype=np.float32)
    shape = (-1, batch)
    np.matmul(
        rows[:whole].reshape(*shape, rows.shape[1]), matrix, out=out[:whole].reshape(*shape, matrix.shape[1])
    )
    if whole < len(rows):
        np.matmul(rows[whole:], matrix, out=out[whole:])
    return out


def _window(samples: np.ndarray, start: int, count: int) -> np.ndarray:
    """Return samples[start : start + count] as float32, silence where there are none."""
    out = np.zeros(count, dtype=np.float32)
    lo, hi = max(start, 0), min(start + count, len(samples))
    if hi > lo:
        out[lo - start : hi - start] = samples[lo:hi]
    return out


def _kernel(at: np.ndarray, cutoff: float, reach: float) -> np.ndarray:
    """Return the low-pass filter's value at distances `at` in input samples."""
    inside = np.clip(1.0 - np.square(at / reach), 0.0, 1.0)
    window = np.i0(_KAISER_BETA * np.sqrt(inside)) / np.i0(_KAISER_BETA)
    return np.where(np.abs(at) < reach, cutoff * np.sinc(cutoff * at) * window, 0.0)


@lru_cache(maxsize=16)
def _bank(up: int, down: int, group: int) -> tuple[np.ndarray, int]:
    """Return (matrix of shape (inputs, outputs), inputs before a row's first) for one ratio."""
    cutoff = _CUTOFF * min(1.0, up / down)
    reach = int(np.ceil(_ZERO_CROSSINGS / min(1.0, up / down)))
    outputs = np.arange(up * group) * (down / up)
    inputs = np.arange(down * group + 2 * reach) - reach
    matrix = _kernel(outputs[None, :] - inputs[:, None], cutoff, reach)
    matrix /= matrix.sum(axis=0, keepdims=True)  # a constant stays exactly what it is
    return np.ascontiguousarray(matrix, dtype=np.float32), reach


def _resample_any(
    samples: np.ndarray, from_hz: int, to_hz: int, origin: int, first: int, count: int
) -> np.ndarray:
    """Do the same for rates without a handy ratio: every output gets a filter of its own. Slow, and rare."""
    cutoff = _CUTOFF * min(1.0, to_hz / from_hz)
    reach = int(np.ceil(_ZERO_CROSSINGS / min(1.0, to_hz / from_hz)))
    taps = np.arange(-reach + 1, reach + 1)
    out = np.empty(count, dtype=np.float32)
    for done in range(0, count, 4096):
        n = np.arange(first + done, first + min(done + 4096, count), dtype=np.int64)
        whole, rest = np.divmod(n * from_hz, to_hz)
        low = origin + int(whole[0]) - reach + 1
        window = _window(samples, low, int(whole[-1] - whole[0]) + 2 * reach)
        weights = _kernel((rest / to_hz)[:, None] - taps[None, :], cutoff, reach)
        weights /= weights.sum(axis=1, keepdims=True)
        picked = window[(whole - whole[0])[:, None] + np.arange(2 * reach)[None, :]]
        out[done : done + len(n)] = np.einsum("ij,ij->i", picked, weights)
    return out
