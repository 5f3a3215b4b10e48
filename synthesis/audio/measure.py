"""What a take is like: where its speech starts and ends, and how loud it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synthesis.audio.loudness import loudness_lufs

SILENCE_DB = -120.0  # what is shown for digital silence; -inf is no JSON number

_FRAME_S = 0.010
_HOP_S = 0.005
_SURE_ABOVE_FLOOR_DB = 12.0  # a frame this far above the noise is speech ...
_SURE_BELOW_PEAK_DB = 40.0  # ... unless it is this far below the loudest
_SURE_RUN = 4  # frames in a row (25 ms): a click of one frame is no speech
_SOFT_ABOVE_FLOOR_DB = 5.0  # how far a soft onset ("h", "f", a breath out) may sink and still belong to it
_SOFT_BELOW_PEAK_DB = 55.0
_REACH_S = 0.250  # how far the edge may follow a soft onset or a dying sound
_BRIDGE_S = 0.030  # a gap this short inside an onset ("st-") is crossed
_ABSOLUTE_DB = -75.0  # nothing softer is ever speech
_LEAD_S = 0.008  # kept before the first speech frame
_TRAIL_S = 0.020  # kept after the last


@dataclass(frozen=True, slots=True)
class Measured:
    """A take's measures. Positions are samples at `rate_hz`, the end exclusive.

    A take without speech has speech_start == speech_end == 0 and no loudness. `rms_db` is of the speech, `peak_db`
    of everything, dBFS; `noise_floor_db` is the softest tenth of what is not speech (of all, where all is speech).
    """

    samples: int
    rate_hz: int
    speech_start: int
    speech_end: int
    rms_db: float
    peak_db: float
    noise_floor_db: float
    loudness_lufs: float | None


def decibel(value: float) -> float:
    """Return an amplitude in dBFS, never under SILENCE_DB."""
    return max(20.0 * float(np.log10(value)), SILENCE_DB) if value > 0.0 else SILENCE_DB


def frame_levels_db(samples: np.ndarray, rate_hz: int) -> tuple[np.ndarray, int]:
    """Return the RMS in dBFS of 10 ms frames every 5 ms, and the hop in samples. DC does not count."""
    frame, hop = max(1, round(_FRAME_S * rate_hz)), max(1, round(_HOP_S * rate_hz))
    centred = samples.astype(np.float64) - float(np.mean(samples, dtype=np.float64))
    sums = np.concatenate(([0.0], np.cumsum(np.square(centred))))
    starts = np.arange(0, max(1, len(samples) - frame + hop), hop)
    ends = np.minimum(starts + frame, len(samples))
    power = np.maximum(sums[ends] - sums[np.minimum(starts, len(samples))], 0.0) / np.maximum(
        ends - starts, 1
    )
    return np.maximum(10.0 * np.log10(np.maximum(power, 1e-30)), SILENCE_DB), hop


def speech_bounds(samples: np.ndarray, rate_hz: int) -> tuple[int, int]:
    """Return (start, end) of speech in samples, end exclusive; (0, 0) where there is none.

    Two thresholds, as an endpoint detector with hysteresis has them (Rabiner and Sambur, Bell System Technical
    Journal 54, 1975): loud frames say that there is speech, then the edges follow softer ones outwards.
    """
    if not len(samples):
        return 0, 0
    levels, hop = frame_levels_db(samples, rate_hz)
    peak = float(levels.max())
    if peak < _ABSOLUTE_DB:
        return 0, 0
    heard = levels[levels > SILENCE_DB]
    floor = float(np.percentile(heard, 5)) if len(heard) else SILENCE_DB
    if peak - floor < 15.0:  # speech without any pause: its own softest part says nothing about the noise
        floor = SILENCE_DB
    sure_gate = max(min(floor + _SURE_ABOVE_FLOOR_DB, peak - 6.0), peak - _SURE_BELOW_PEAK_DB, _ABSOLUTE_DB)
    soft_gate = max(min(floor + _SOFT_ABOVE_FLOOR_DB, sure_gate), peak - _SOFT_BELOW_PEAK_DB, _ABSOLUTE_DB)
    sure = levels >= sure_gate
    run = min(_SURE_RUN, len(sure))
    runs = np.flatnonzero(np.convolve(sure, np.ones(run, dtype=np.int64), "valid") == run)
    if not len(runs):
        return 0, 0
    first = _edge(levels, int(runs[0]), -1, soft_gate)
    last = _edge(levels, int(runs[-1]) + run - 1, 1, soft_gate)
    frame = round(_FRAME_S * rate_hz)
    start = first * hop - round(_LEAD_S * rate_hz)
    end = last * hop + frame + round(_TRAIL_S * rate_hz)
    return max(start, 0), min(end, len(samples))


def _edge(levels: np.ndarray, index: int, step: int, gate: float) -> int:
    """Walk outwards from a sure frame while it is not silent yet; return the last frame that belongs to speech."""
    reach, bridge = round(_REACH_S / _HOP_S), round(_BRIDGE_S / _HOP_S)
    best, quiet = index, 0
    for offset in range(1, reach + 1):
        here = index + step * offset
        if not 0 <= here < len(levels):
            break
        if levels[here] >= gate:
            best, quiet = here, 0
        else:
            quiet += 1
            if quiet > bridge:
                break
    return best


def measure(samples: np.ndarray, rate_hz: int) -> Measured:
    """Measure a take: mono float samples (samples,). Never raises for sound, however odd; NaN counts as silence."""
    clean = np.nan_to_num(np.asarray(samples, dtype=np.float32), posinf=0.0, neginf=0.0)
    start, end = speech_bounds(clean, rate_hz)
    speech = clean[start:end]
    levels = frame_levels_db(clean, rate_hz)[0] if len(clean) else np.array([SILENCE_DB])
    hop = max(1, round(_HOP_S * rate_hz))
    centres = np.arange(len(levels)) * hop
    outside = levels[(centres + 2 * hop < start) | (centres > end)]
    floor_of = outside if len(outside) >= 6 else levels
    return Measured(
        samples=len(clean),
        rate_hz=rate_hz,
        speech_start=start,
        speech_end=end,
        rms_db=decibel(float(np.sqrt(np.mean(np.square(speech, dtype=np.float64)))))
        if len(speech)
        else SILENCE_DB,
        peak_db=decibel(float(np.max(np.abs(clean)))) if len(clean) else SILENCE_DB,
        noise_floor_db=float(np.percentile(floor_of, 10)),
        loudness_lufs=loudness_lufs(speech, rate_hz),
    )
