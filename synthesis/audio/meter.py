"""What a finished file sounds like to a meter: loudness, RMS, peaks, noise floor, head and tail.

Measured on the decoded file, never on what went into the encoder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, BinaryIO

import av
import numpy as np

from synthesis.audio.codec import AudioReader
from synthesis.audio.limiter import interval_peaks
from synthesis.audio.loudness import ABSOLUTE_GATE_LUFS, RELATIVE_GATE_LU
from synthesis.audio.measure import SILENCE_DB, decibel

_SPAN_S = 0.5  # the noise floor is that of the quietest half second, as Audacity's "ACX Check" takes it
_STEP_S = 0.05
_EDGE = 12  # samples that the true-peak filter looks ahead and back
_SPEECH_DB = -45.0  # RMS of 50 ms above which a file's head or tail has ended


@dataclass(frozen=True, slots=True)
class Levels:
    """A file's measures. dB values never lie under SILENCE_DB; loudness is None for silence."""

    samples: int
    rate_hz: int
    lufs: float | None  # integrated, EBU R 128
    rms_db: float  # of the whole file, ungated
    peak_db: float  # sample peak
    true_peak_db: float
    noise_floor_db: float
    head_s: float  # before the first sound above _SPEECH_DB
    tail_s: float  # after the last
    digital_silence_s: float  # the longest run of exact zeros
    # How many 400 ms blocks had which momentary loudness: (tenths of LUFS, count). Lets several files be summed up.
    blocks: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.samples / self.rate_hz if self.rate_hz else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what from_json takes."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Levels:
        """Return measures that were stored. Raises TypeError or KeyError for anything else."""
        return cls(**{**data, "blocks": tuple((int(level), int(count)) for level, count in data["blocks"])})


def levels_joined(parts: Sequence[Levels]) -> Levels | None:
    """Return the measures of files played one after the other; None for no files.

    Loudness comes from the counted blocks, gated anew over all of them, so it is what a meter reads of the whole
    (within 0.05 LU: blocks are counted in tenths, and those across a seam are missing).
    """
    if not parts:
        return None
    samples = sum(part.samples for part in parts)
    power = sum(10.0 ** (part.rms_db / 10.0) * part.samples for part in parts) / max(samples, 1)
    counts: Counter[int] = Counter()
    for part in parts:
        counts.update(dict(part.blocks))
    return Levels(
        samples=samples,
        rate_hz=parts[0].rate_hz,
        lufs=_gated(counts),
        rms_db=decibel(float(np.sqrt(power))),
        peak_db=max(part.peak_db for part in parts),
        true_peak_db=max(part.true_peak_db for part in parts),
        noise_floor_db=min(part.noise_floor_db for part in parts),
        head_s=parts[0].head_s,
        tail_s=parts[-1].tail_s,
        digital_silence_s=max(part.digital_silence_s for part in parts),
        blocks=tuple(sorted(counts.items())),
    )


def _gated(counts: Mapping[int, int]) -> float | None:
    """Return the integrated loudness of counted blocks."""
    if not counts:
        return None
    levels = np.array(list(counts), dtype=np.float64) / 10.0
    numbers = np.array(list(counts.values()), dtype=np.float64)
    energies = 10.0 ** (levels / 10.0)
    mean = float(np.average(energies, weights=numbers))
    kept = energies > mean * 10.0 ** (RELATIVE_GATE_LU / 10.0)
    return 10.0 * float(np.log10(np.average(energies[kept], weights=numbers[kept])))


class Meter:
    """Measures a sound as it passes by: push() blocks of float32 mono, then levels()."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._graph = av.filter.Graph()
        self._source = self._graph.add_abuffer(format="flt", sample_rate=rate_hz, layout="mono")
        meter = self._graph.add("ebur128", "metadata=1:dualmono=0")
        sink = self._graph.add("abuffersink")
        self._source.link_to(meter)
        meter.link_to(sink)
        self._graph.configure()
        self._samples = 0
        self._lufs: float | None = None
        self._blocks: Counter[int] = Counter()
        self._square_sum = 0.0
        self._peak = 0.0
        self._true_peak = 0.0
        self._context = np.zeros(2 * _EDGE, dtype=np.float32)
        self._step = max(1, round(_STEP_S * rate_hz))
        self._rest = np.zeros(0, dtype=np.float32)
        self._powers: list[np.ndarray] = []  # mean squares of 50 ms steps: 576 kB an hour
        self._zeros = self._zeros_longest = 0

    def push(self, block: np.ndarray) -> None:
        """Take the next samples."""
        if not len(block):
            return
        self._loudness(block)
        self._samples += len(block)
        self._square_sum += float(np.sum(np.square(block, dtype=np.float64)))
        peak = float(np.max(np.abs(block)))
        self._peak = max(self._peak, peak)
        around = np.concatenate((self._context, block))
        if peak > self._true_peak * 0.5:
            self._true_peak = max(self._true_peak, peak, self._between(around, _EDGE))
        self._context = around[-2 * _EDGE :]
        joined = np.concatenate((self._rest, block)) if len(self._rest) else block
        whole = len(joined) // self._step * self._step
        if whole:
            grid = joined[:whole].reshape(-1, self._step)
            self._powers.append(np.mean(np.square(grid, dtype=np.float64), axis=1).astype(np.float32))
        self._rest = joined[whole:]
        self._count_zeros(block)

    def _loudness(self, block: np.ndarray) -> None:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block[None]), format="flt", layout="mono")
        frame.sample_rate = self._rate_hz
        frame.pts = self._samples
        self._graph.push(frame)
        self._pull()

    def _pull(self) -> None:
        """Read the meter: it answers every 100 ms with the last 400 ms (M) and all so far (I)."""
        whole = self._lufs if self._lufs is not None else ABSOLUTE_GATE_LUFS
        while True:
            try:
                found = self._graph.pull().metadata
            except (av.error.BlockingIOError, av.error.EOFError):
                break
            momentary = float(found.get("lavfi.r128.M", "nan"))
            if momentary > ABSOLUTE_GATE_LUFS:
                self._blocks[round(momentary * 10)] += 1
            whole = float(found.get("lavfi.r128.I", whole))
        self._lufs = whole if whole > ABSOLUTE_GATE_LUFS else None

    def _between(self, samples: np.ndarray, drop: int) -> float:
        """Return the highest peak between samples; those whose surroundings are not known here do not count."""
        peaks = interval_peaks(samples, max(self._true_peak, 1e-6))[_EDGE : len(samples) - drop]
        return float(peaks.max()) if len(peaks) else 0.0

    def _count_zeros(self, block: np.ndarray) -> None:
        loud = np.flatnonzero(block)
        if not len(loud):
            self._zeros += len(block)
        else:
            gaps = np.diff(loud)
            inner = int(gaps.max()) - 1 if len(gaps) else 0
            self._zeros_longest = max(self._zeros_longest, self._zeros + int(loud[0]), inner)
            self._zeros = len(block) - 1 - int(loud[-1])
        self._zeros_longest = max(self._zeros_longest, self._zeros)

    def levels(self) -> Levels:
        """Return the measures of all that was pushed; push nothing after it."""
        self._graph.push(None)
        self._pull()
        self._true_peak = max(self._true_peak, self._between(self._context, 0))
        powers = np.concatenate(self._powers).astype(np.float64) if self._powers else np.zeros(0)
        span = round(_SPAN_S / _STEP_S)
        sums = np.concatenate(([0.0], np.cumsum(powers)))
        spans = (sums[span:] - sums[:-span]) / span if len(powers) >= span else powers
        quiet = float(np.sqrt(max(spans.min(), 0.0))) if len(spans) else 0.0
        loud = np.flatnonzero(powers >= 10.0 ** (_SPEECH_DB / 10.0))
        step_s = self._step / self._rate_hz
        duration = self._samples / self._rate_hz
        return Levels(
            samples=self._samples,
            rate_hz=self._rate_hz,
            lufs=self._lufs,
            rms_db=decibel(float(np.sqrt(self._square_sum / self._samples))) if self._samples else SILENCE_DB,
            peak_db=decibel(self._peak),
            true_peak_db=decibel(self._true_peak),
            noise_floor_db=decibel(quiet),
            head_s=float(loud[0]) * step_s if len(loud) else duration,
            tail_s=max(duration - float(loud[-1] + 1) * step_s, 0.0) if len(loud) else 0.0,
            digital_silence_s=self._zeros_longest / self._rate_hz,
            blocks=tuple(sorted(self._blocks.items())),
        )


def levels_read(file: BinaryIO) -> Levels:
    """Decode a file and measure it; several channels are averaged first. Raises AudioUnreadable."""
    with AudioReader(file) as reader:
        return blocks_measured(reader.blocks(), reader.rate_hz)


def blocks_measured(blocks: Iterable[np.ndarray], rate_hz: int) -> Levels:
    """Measure blocks of any length as they come."""
    meter = Meter(rate_hz)
    held: list[np.ndarray] = []
    have = 0
    for block in blocks:  # codecs hand out 20-25 ms at a time: measure a second at once
        held.append(block)
        have += len(block)
        if have >= rate_hz:
            meter.push(np.concatenate(held))
            held, have = [], 0
    if held:
        meter.push(np.concatenate(held))
    return meter.levels()
