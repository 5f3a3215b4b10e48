"""Where everything lies in the finished book, in samples.

The one source for sound, chapter marks, captions, overlays and markers. Positions are sums of exact fractions of a
second, rounded once each to a sample at 44,100 Hz, so that no error adds up however long the book is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

RATE_HZ = 44_100  # the delivery rate of every format
# Every chapter lasts a whole number of AAC frames (1,024 samples; the tail grows by less than 24 ms). So chapters
# can be encoded apart and joined packet by packet without drift, and every format shares one timeline.
GRID = 1_024


@dataclass(frozen=True, slots=True)
class Clip:
    """A take: `key` is what the caller's open_clip understands. Positions are samples at `rate_hz`, end exclusive."""

    key: str
    rate_hz: int
    speech_start: int
    speech_end: int
    samples: int
    gain_db: float = 0.0  # fixed gain of the voice
    segment: str = ""
    loudness_lufs: float | None = None  # as measured, before gain_db; None = measured when it is needed

    def __post_init__(self) -> None:
        """Refuse positions that cannot be."""
        if self.rate_hz <= 0 or not 0 <= self.speech_start <= self.speech_end <= self.samples:
            raise ValueError(
                f"Clip {self.key}: speech {self.speech_start}…{self.speech_end} of {self.samples} samples, "
                f"{self.rate_hz} Hz."
            )


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence as it is heard. The text fields serve captions, transcript and overlays."""

    clip: Clip
    pause_after_ms: (
        int  # from its end of speech to the next line's start; the last line's is the chapter's tail
    )
    text: str = ""  # as printed
    spoken: str = ""
    separator: str = " "  # between this and the next line of the same block
    block: str = ""  # lines with equal, non-empty block ids are one paragraph
    kind: str = "paragraph"  # the block's kind
    language: str = ""  # "" = the book's
    speaker: str = ""
    source: str = ""  # where the block came from, "OEBPS/ch1.xhtml#p3"


@dataclass(frozen=True, slots=True)
class ChapterPlan:
    """A chapter: its lines in order and the silence before and after them."""

    title: str
    lines: tuple[Line, ...]
    head_ms: int = 500
    tail_ms: int = 1500
    kind: str = "chapter"
    key: str = ""  # the caller's name for it, e.g. the document's id


@dataclass(frozen=True, slots=True)
class BookPlan:
    """Everything an export needs to know; an exporter asks nobody else."""

    title: str
    chapters: tuple[ChapterPlan, ...]
    subtitle: str = ""
    authors: tuple[str, ...] = ()
    narrator: str = ""
    language: str = "en"  # BCP 47
    publisher: str = ""
    description: str = ""
    year: str = ""
    series: str = ""
    series_position: str = ""
    isbn: str = ""
    copyright: str = ""
    genre: str = "Audiobook"
    cover: bytes | None = None
    cover_type: str = ""  # image/jpeg or image/png
    translator: str = ""
    phonogram: str = ""  # the ℗ line
    abridged: bool = False
    explicit: bool = False
    identifier: str = ""  # a stable name for the book, e.g. "urn:uuid:…"
    ai_narrated: bool = False


@dataclass(frozen=True, slots=True)
class PlacedLine:
    """A line and where its speech lies: samples at RATE_HZ from the start of the book, end exclusive."""

    line: Line
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class PlacedChapter:
    """A chapter on the timeline: samples at RATE_HZ from the start of the book; `index` counts from 0."""

    index: int
    title: str
    kind: str
    key: str
    start: int
    end: int
    lines: tuple[PlacedLine, ...]

    @property
    def samples(self) -> int:
        """Length in samples."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Timeline:
    """The whole book: chapters touch each other, the first starts at 0, the last ends at `samples`."""

    chapters: tuple[PlacedChapter, ...]
    rate_hz: int = RATE_HZ

    @property
    def samples(self) -> int:
        """Length of the book in samples."""
        return self.chapters[-1].end if self.chapters else 0

    @property
    def duration_ms(self) -> int:
        """Length of the book in ms, rounded once."""
        return samples_ms(self.samples, self.rate_hz)

    def lines(self) -> Iterator[PlacedLine]:
        """Yield every line in reading order."""
        for chapter in self.chapters:
            yield from chapter.lines


def samples_ms(samples: int, rate_hz: int = RATE_HZ) -> int:
    """Return a position in ms, the nearest one (a half goes up): exact integer arithmetic."""
    return (samples * 2000 + rate_hz) // (2 * rate_hz)


def timeline(plan: BookPlan) -> Timeline:
    """Lay the book out. Pure; chapters without lines are left out (see chapters_left_out).

    Within a chapter: head, then speech and pauses, then the tail, which runs from the end of the last line's speech
    and is stretched to the grid. A line without speech takes no time of its own.
    """
    rates = {line.clip.rate_hz for chapter in plan.chapters for line in chapter.lines}
    second = lcm(RATE_HZ, 1000, *rates)  # ticks in a second: every duration is a whole number of ticks
    ms = second // 1000
    start = 0  # samples: chapters start on the grid, so they are exact
    chapters: list[PlacedChapter] = []
    for plan_chapter in plan.chapters:
        if not plan_chapter.lines:
            continue
        at = max(plan_chapter.head_ms, 0) * ms  # ticks since the chapter's start
        placed: list[PlacedLine] = []
        pause = 0
        for line in plan_chapter.lines:
            at += pause
            clip = line.clip
            speech = (clip.speech_end - clip.speech_start) * (second // clip.rate_hz)
            placed.append(PlacedLine(line, start + _sample(at, second), start + _sample(at + speech, second)))
            at += speech
            pause = max(line.pause_after_ms, 0) * ms
        at += max(plan_chapter.tail_ms, 0) * ms
        length = max(-(-_sample(at, second) // GRID), 1) * GRID
        chapters.append(
            PlacedChapter(
                index=len(chapters),
                title=plan_chapter.title,
                kind=plan_chapter.kind,
                key=plan_chapter.key,
                start=start,
                end=start + length,
                lines=tuple(placed),
            )
        )
        start += length
    return Timeline(tuple(chapters))


def chapters_left_out(plan: BookPlan) -> tuple[str, ...]:
    """Return the titles of chapters that have nothing to be heard."""
    return tuple(chapter.title for chapter in plan.chapters if not chapter.lines)


def _sample(ticks: int, second: int) -> int:
    """Round a position in ticks to the nearest sample (a half goes up)."""
    return (2 * ticks * RATE_HZ + second) // (2 * second)
