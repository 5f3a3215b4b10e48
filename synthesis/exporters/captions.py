"""Captions: every sentence as printed, at the time it is heard, as SubRip (SRT) and WebVTT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from synthesis.audio.render import OpenClip
from synthesis.audio.timeline import BookPlan, PlacedLine, samples_ms
from synthesis.exporters.base import (
    ExportFacts,
    FileFacts,
    Progress,
    atomic_file,
    file_sha256,
    plan_check,
    title_clean,
)


@dataclass(frozen=True, slots=True)
class Cue:
    """One caption; times in ms."""

    start_ms: int
    end_ms: int
    text: str


def cues(lines: Iterable[PlacedLine], *, origin: int = 0) -> Iterator[Cue]:
    """Yield a cue for every line that has text and takes time. `origin` is the sample that counts as 0.

    The lines' own positions are used, so cues never overlap and never cover a pause.
    """
    last = 0
    for placed in lines:
        text = title_clean(placed.line.text)
        start, end = samples_ms(placed.start - origin), samples_ms(placed.end - origin)
        start = max(start, last)
        if text and end > start:
            yield Cue(start, end, text)
            last = end


def clock(ms: int, point: str) -> str:
    """Return hh:mm:ss and the milliseconds behind `point`; hours grow as they must."""
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{seconds:02d}{point}{ms:03d}"


def srt(made: Iterable[Cue]) -> Iterator[str]:
    """Yield the parts of an SRT file."""
    for number, cue in enumerate(made, start=1):
        yield f"{number}\n{clock(cue.start_ms, ',')} --> {clock(cue.end_ms, ',')}\n{cue.text}\n\n"


def vtt(made: Iterable[Cue], *, language: str = "") -> Iterator[str]:
    """Yield the parts of a WebVTT file. `&`, `<` and `>` are escaped, as its cue text demands."""
    yield f"WEBVTT\nKind: captions\nLanguage: {language}\n\n" if language else "WEBVTT\n\n"
    for number, cue in enumerate(made, start=1):
        text = cue.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        yield f"{number}\n{clock(cue.start_ms, '.')} --> {clock(cue.end_ms, '.')}\n{text}\n\n"


@dataclass(frozen=True, slots=True)
class SrtExporter:
    """Captions for the whole book in one SRT file; times are those of the M4B."""

    name: str = "srt"
    label: str = "Captions (SRT)"
    extension: str = ".srt"
    mime: str = "application/x-subrip"
    is_set: bool = False

    def export(self, plan: BookPlan, *, open_clip: OpenClip, out: Path, progress: Progress) -> ExportFacts:
        """Write the captions. No take is opened. See base.Exporter."""
        line, notes = plan_check(plan)
        return text_written(
            out, srt(cues(line.lines())), plan, line.duration_ms, len(line.chapters), notes, progress
        )


@dataclass(frozen=True, slots=True)
class VttExporter:
    """Captions for the whole book in one WebVTT file; times are those of the M4B."""

    name: str = "vtt"
    label: str = "Captions (WebVTT)"
    extension: str = ".vtt"
    mime: str = "text/vtt"
    is_set: bool = False

    def export(self, plan: BookPlan, *, open_clip: OpenClip, out: Path, progress: Progress) -> ExportFacts:
        """Write the captions. No take is opened. See base.Exporter."""
        line, notes = plan_check(plan)
        parts = vtt(cues(line.lines()), language=plan.language)
        return text_written(out, parts, plan, line.duration_ms, len(line.chapters), notes, progress)


def text_written(
    out: Path,
    parts: Iterable[str],
    plan: BookPlan,
    duration_ms: int,
    chapters: int,
    notes: list[str],
    progress: Progress,
) -> ExportFacts:
    """Write text parts to `out` as UTF-8 and return the facts."""
    with atomic_file(out) as part:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
        size, digest = part.stat().st_size, file_sha256(part)
    progress(1.0)
    files = (FileFacts(out.name, size, duration_ms, plan.title, sha256=digest),)
    return ExportFacts(duration_ms, size, chapters, files=files, notes=tuple(notes))
