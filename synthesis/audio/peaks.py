"""Waveform overviews in audiowaveform's binary format, version 2, 8 bit.

Layout, little endian: int32 version = 2, uint32 flags (bit 0: 8 bit), int32 sample rate, int32 samples per point,
uint32 points, int32 channels, then one signed (min, max) pair of bytes a point.
Source: github.com/bbc/audiowaveform, doc/DataFormat.md.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

POINTS_PER_SECOND = 100
_HEADER = struct.Struct("<iIiiIi")


@dataclass(frozen=True, slots=True)
class Peaks:
    """A read waveform: `pairs` is int8 of shape (points, 2), minimum and maximum of each point."""

    rate_hz: int
    samples_per_point: int
    pairs: np.ndarray


def peaks_encode(samples: np.ndarray, rate_hz: int) -> bytes:
    """Return the .dat bytes of mono float samples, 100 points a second (nearest whole number of samples each)."""
    step = max(1, round(rate_hz / POINTS_PER_SECOND))
    points = -(-len(samples) // step)
    padded = np.zeros(points * step, dtype=np.float32)
    padded[: len(samples)] = samples
    if points * step > len(samples) > 0:
        padded[len(samples) :] = samples[-1]  # a short last point must not gain a zero it does not have
    grid = np.clip(padded.reshape(points, step), -1.0, 1.0)
    pairs = np.empty((points, 2), dtype=np.int8)
    if points:
        pairs[:, 0] = np.clip(np.floor(grid.min(axis=1) * 128.0), -128, 127)
        pairs[:, 1] = np.clip(np.ceil(grid.max(axis=1) * 127.0), -128, 127)
    return _HEADER.pack(2, 1, rate_hz, step, points, 1) + pairs.tobytes()


def peaks_decode(data: bytes) -> Peaks:
    """Read .dat bytes of version 2, 8 bit, one channel back. Raises ValueError for anything else."""
    if len(data) < _HEADER.size:
        raise ValueError("Too short for a waveform.")
    version, flags, rate_hz, step, points, channels = _HEADER.unpack_from(data)
    if version != 2 or flags != 1 or channels != 1:
        raise ValueError(f"Not an 8 bit mono waveform of version 2 (version {version}, flags {flags}).")
    if len(data) != _HEADER.size + 2 * points:
        raise ValueError(f"{points} points announced, {(len(data) - _HEADER.size) // 2} there.")
    return Peaks(rate_hz, step, np.frombuffer(data, np.int8, offset=_HEADER.size).reshape(points, 2))
