"""The sound of a chapter: takes on the timeline, one resampling, fades, fixed gains, room tone, limiter.

Streamed: what is in memory is one take and about a second of the book, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import av
import numpy as np

from synthesis.audio.codec import AudioUnreadable, wav_read
from synthesis.audio.limiter import limited
from synthesis.audio.loudness import combined_lufs, loudness_lufs
from synthesis.audio.resample import resample
from synthesis.audio.roomtone import room_tone
from synthesis.audio.timeline import RATE_HZ, Clip, PlacedChapter, Timeline

OpenClip = Callable[[str], BinaryIO]

BLOCK = RATE_HZ  # samples a block: one second
# What a take itself has before and after its speech (breath, room) is let in, faded, as far as it reaches.
_PRE_ROLL = round(0.060 * RATE_HZ)
_POST_ROLL = round(0.150 * RATE_HZ)
_POST_SHARE = 0.6  # of a pause belongs to the line before it, the rest to the line after
# Where a take has nothing outside its speech, this much of the speech is faded, so that no edge clicks.
_MIN_FADE = round(0.003 * RATE_HZ)


class ClipUnusable(ValueError):
    """Raised when a take cannot be had or is not what the plan says. `key` names it, `segment` its line."""

    def __init__(self, clip: Clip, message: str) -> None:
        super().__init__(message)
        self.key = clip.key
        self.segment = clip.segment


@dataclass(frozen=True, slots=True)
class Mastering:
    """How a book is brought to level. None switches a part off."""

    target_lufs: float | None = -18.0  # gated speech loudness of the whole book
    ceiling_dbtp: float | None = -1.5
    room_tone_db: float | None = None  # RMS, dBFS, continuous under every file
    highpass_hz: float | None = None


def clip_read(clip: Clip, open_clip: OpenClip) -> np.ndarray:
    """Return a take's samples at its own rate. Raises ClipUnusable for a missing, damaged or different take."""
    try:
        with open_clip(clip.key) as file:
            samples, rate_hz = wav_read(file.read())  # whole: an object store's body cannot be sought in
    except (AudioUnreadable, FileNotFoundError, KeyError) as exc:
        raise ClipUnusable(clip, f"The take {clip.key} cannot be read: {exc}") from exc
    if rate_hz != clip.rate_hz:
        raise ClipUnusable(clip, f"The take {clip.key} has {rate_hz} Hz, not {clip.rate_hz} Hz as recorded.")
    if len(samples) < clip.speech_end:
        raise ClipUnusable(
            clip, f"The take {clip.key} ends at sample {len(samples)}, its speech at {clip.speech_end}."
        )
    return samples


def book_loudness(line: Timeline, open_clip: OpenClip) -> float | None:
    """Return the gated loudness of the book as it is laid out, LUFS, voices' gains included; None without speech.

    Takes bring their measured loudness along; only those that do not are opened.
    """

    def parts() -> Iterator[tuple[float, float, float]]:
        for placed in line.lines():
            clip = placed.line.clip
            if clip.speech_end <= clip.speech_start:
                continue
            lufs = clip.loudness_lufs
            if lufs is None:
                speech = clip_read(clip, open_clip)[clip.speech_start : clip.speech_end]
                lufs = loudness_lufs(speech, clip.rate_hz)
            if lufs is not None:
                yield placed.start / RATE_HZ, placed.end / RATE_HZ, lufs + clip.gain_db

    return combined_lufs(parts())


def book_gain_db(line: Timeline, open_clip: OpenClip, mastering: Mastering) -> float:
    """Return the one gain of the whole book, dB. Never a gain per sentence: that would make the level jump."""
    if mastering.target_lufs is None:
        return 0.0
    lufs = book_loudness(line, open_clip)
    return 0.0 if lufs is None else mastering.target_lufs - lufs


def chapter_render(
    chapter: PlacedChapter, *, open_clip: OpenClip, gain_db: float, mastering: Mastering
) -> Iterator[np.ndarray]:
    """Yield a chapter's samples, float32 mono at RATE_HZ, chapter.samples of them in all. Raises ClipUnusable."""
    blocks = _rechunked(_pieces(chapter, open_clip, gain_db), BLOCK)
    if mastering.highpass_hz:
        blocks = _highpassed(blocks, mastering.highpass_hz)
    if mastering.room_tone_db is not None:
        blocks = _over_room_tone(blocks, mastering.room_tone_db)
    if mastering.ceiling_dbtp is not None:
        blocks = limited(blocks, mastering.ceiling_dbtp, RATE_HZ)
    return _rechunked(blocks, BLOCK)


def _pieces(chapter: PlacedChapter, open_clip: OpenClip, gain_db: float) -> Iterator[np.ndarray]:
    """Yield silence and takes in turn, from the chapter's start to its end."""
    at = chapter.start
    for index, placed in enumerate(chapter.lines):
        if placed.end <= placed.start:
            continue
        clip = placed.line.clip
        before = placed.start - at
        following = next((p.start for p in chapter.lines[index + 1 :] if p.end > p.start), None)
        after = (following if following is not None else chapter.end) - placed.end
        samples = clip_read(clip, open_clip)
        had_before = clip.speech_start * RATE_HZ // clip.rate_hz
        had_after = (len(samples) - clip.speech_end) * RATE_HZ // clip.rate_hz
        pre = min(_PRE_ROLL, had_before, before)
        post = min(_POST_ROLL, had_after, round(after * _POST_SHARE) if following is not None else after)
        count = pre + (placed.end - placed.start) + post
        piece = resample(samples, clip.rate_hz, RATE_HZ, origin=clip.speech_start, first=-pre, count=count)
        piece = piece * np.float32(10.0 ** ((gain_db + clip.gain_db) / 20.0))
        fade_in, fade_out = max(pre, _MIN_FADE), max(post, _MIN_FADE)
        if fade_in + fade_out > count:
            fade_in = fade_out = count // 2
        piece[:fade_in] *= _fade(fade_in)
        piece[count - fade_out :] *= _fade(fade_out)[::-1]
        yield np.zeros(before - pre, dtype=np.float32)
        yield piece
        at = placed.end + post
    yield np.zeros(chapter.end - at, dtype=np.float32)


def _fade(count: int) -> np.ndarray:
    """Return a raised cosine from 0 to 1, `count` samples long: neither end has a corner that could click."""
    return (0.5 - 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / max(count, 1))).astype(np.float32)


def _rechunked(parts: Iterable[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """Yield the same samples in blocks of `size`, the last one shorter; long silence is never held whole."""
    held: list[np.ndarray] = []
    have = 0
    for part in parts:
        while have + len(part) >= size:
            cut = size - have
            yield np.concatenate([*held, part[:cut]]) if held else part[:cut]
            part, held, have = part[cut:], [], 0
        if len(part):
            held.append(part)
            have += len(part)
    if held:
        yield np.concatenate(held)


def _over_room_tone(blocks: Iterable[np.ndarray], level_db: float) -> Iterator[np.ndarray]:
    """Lay room tone under the whole file: in gaps only it would be heard coming and going."""
    at = 0
    for block in blocks:
        yield block + room_tone(at, len(block), RATE_HZ, level_db)
        at += len(block)


def _highpassed(blocks: Iterable[np.ndarray], cutoff_hz: float) -> Iterator[np.ndarray]:
    """Take away rumble below `cutoff_hz` (second order Butterworth, FFmpeg's). As many samples come out."""
    graph = av.filter.Graph()
    source = graph.add_abuffer(format="fltp", sample_rate=RATE_HZ, layout="mono")
    filter_ = graph.add("highpass", f"f={cutoff_hz}:p=2")
    sink = graph.add("abuffersink")
    source.link_to(filter_)
    filter_.link_to(sink)
    graph.configure()
    at = 0
    for block in blocks:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block[None]), format="fltp", layout="mono")
        frame.sample_rate = RATE_HZ
        frame.pts = at
        at += len(block)
        graph.push(frame)
        while True:
            try:
                yield graph.pull().to_ndarray()[0]
            except (av.error.BlockingIOError, av.error.EOFError):
                break
