"""A look-ahead limiter that holds true peaks under a ceiling, and the true-peak meter behind it.

True peak as in ITU-R BS.1770-4, annex 2: the signal is looked at four times as finely as it is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from synthesis.audio.resample import product

_OVERSAMPLE = 4
_REACH = 12  # input samples each side of a point
_ROW = 32  # input samples a row of the matrix product
_HOT = 0.5  # an inter-sample peak of speech never is more than 6 dB over its neighbours
_ATTACK_S = 0.005  # look-ahead; the gain is down before the peak arrives
_RELEASE_DB_S = 80.0  # the gain comes back this fast


def _matrix() -> np.ndarray:
    """Return the interpolation filter, shape (row + 2 reach, row * 4)."""
    at = np.arange(_ROW * _OVERSAMPLE) / _OVERSAMPLE
    inputs = np.arange(_ROW + 2 * _REACH) - _REACH
    distance = at[None, :] - inputs[:, None]
    window = np.where(np.abs(distance) < _REACH, np.cos(np.pi * distance / (2 * _REACH)) ** 2, 0.0)
    return np.ascontiguousarray(np.sinc(distance) * window, dtype=np.float32)


_INTERPOLATION = _matrix()


def interval_peaks(samples: np.ndarray, floor: float) -> np.ndarray:
    """Return for each sample the highest true peak up to the next sample, float32 of the same length.

    Stretches that cannot come near `floor` (linear) are answered with 0: they are most of a book.
    """
    count = len(samples)
    rows = -(-count // _ROW)
    padded = np.zeros(rows * _ROW + 2 * _REACH, dtype=np.float32)
    padded[_REACH : _REACH + count] = samples
    windows = np.lib.stride_tricks.sliding_window_view(padded, _ROW + 2 * _REACH)[::_ROW]
    hot = np.flatnonzero(np.abs(windows).max(axis=1) >= floor * _HOT)
    out = np.zeros((rows, _ROW), dtype=np.float32)
    if len(hot):
        fine = np.abs(product(windows[hot], _INTERPOLATION)).reshape(len(hot), _ROW, _OVERSAMPLE)
        out[hot] = fine.max(axis=2)
    return out.reshape(-1)[:count]


def true_peak(samples: np.ndarray) -> float:
    """Return the true peak of mono samples, linear."""
    if not len(samples):
        return 0.0
    peak = float(np.max(np.abs(samples)))
    return max(peak, float(interval_peaks(samples, peak).max())) if peak > 0.0 else 0.0


def limited(blocks: Iterable[np.ndarray], ceiling_db: float, rate_hz: int) -> Iterator[np.ndarray]:
    """Yield the blocks' samples (as many, in order) with no true peak above `ceiling_db` dBTP.

    Sound that needs no limiting comes out bit for bit as it went in.
    """
    window = max(2, round(_ATTACK_S * rate_hz))
    weights = np.hanning(window + 2)[1:-1]
    weights /= weights.sum()
    slope = _RELEASE_DB_S / rate_hz
    ceiling = 10.0 ** (ceiling_db / 20.0)
    held = np.zeros(0, dtype=np.float32)  # samples: some that went out (history), then those still to go
    need = np.zeros(0)  # dB to take away at each of held, release included; shorter than held by _REACH
    gone = 0  # how many of held have gone out

    def extend(final: bool) -> None:
        """Work out `need` as far as the samples allow."""
        nonlocal need
        known, until = len(need), len(held) if final else len(held) - _REACH
        if until <= known:
            return
        low = max(known - _REACH - 1, 0)
        if (not known or need[-1] <= 0.0) and np.max(np.abs(held[low:])) < ceiling * _HOT:
            need = np.concatenate((need, np.zeros(until - known)))
            return
        peaks = interval_peaks(held[low:], ceiling)
        around = np.maximum(peaks, np.concatenate(([0.0], peaks[:-1])))[known - low : until - low]
        before = need[-1] if known else 0.0
        if before <= 0.0 and around.max() <= ceiling:
            need = np.concatenate((need, np.zeros(until - known)))
            return
        raw = np.maximum(20.0 * np.log10(np.maximum(around / ceiling, 1e-9)), 0.0)
        ramp = slope * np.arange(1, len(raw) + 1)
        released = np.maximum.accumulate(np.concatenate(([before], raw + ramp)))[1:] - ramp
        need = np.concatenate((need, np.maximum(released, 0.0)))

    def take(until: int) -> np.ndarray:
        """Return held[gone:until], turned down where it must be."""
        left, right = max(gone - window + 1, 0), min(until + window - 1, len(need))
        part = need[left:right]
        if not part.any():
            return held[gone:until]
        padded = np.concatenate((part, np.zeros(window - 1)))
        ahead = np.lib.stride_tricks.sliding_window_view(padded, window).max(axis=1)
        # Every value of `ahead` in the window covers the sample itself, so the mean is never less than it needs.
        smooth = np.convolve(np.concatenate((np.zeros(window - 1), ahead)), weights, "valid")[: len(part)]
        smooth = np.maximum(smooth, part)[gone - left : until - left]
        return (held[gone:until] * 10.0 ** (-smooth / 20.0)).astype(np.float32)

    for block in blocks:
        held = np.concatenate((held, block))
        extend(final=False)
        until = len(need) - window
        if until > gone:
            yield take(until)
            gone = until
            drop = gone - window - _REACH - 1
            if drop > 0:
                held, need, gone = held[drop:], need[drop:], gone - drop
    extend(final=True)
    if len(held) > gone:
        yield take(len(held))
