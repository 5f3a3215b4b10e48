"""The plain transcript: what was recorded, as printed, chapter by chapter, one paragraph a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from synthesis.audio.render import OpenClip
from synthesis.audio.timeline import BookPlan, PlacedChapter, PlacedLine, Timeline, samples_ms
from synthesis.exporters.base import ExportFacts, Progress, people, plan_check, title_clean
from synthesis.exporters.captions import clock, text_written


@dataclass(frozen=True, slots=True)
class TranscriptExporter:
    """A text file. With `times`, every paragraph begins with the time at which it is heard."""

    times: bool = False
    name: str = "transcript"
    label: str = "Transcript (text)"
    extension: str = ".txt"
    mime: str = "text/plain"
    is_set: bool = False

    def export(self, plan: BookPlan, *, open_clip: OpenClip, out: Path, progress: Progress) -> ExportFacts:
        """Write the transcript. No take is opened. See base.Exporter."""
        line, notes = plan_check(plan)
        parts = transcript(plan, line, times=self.times)
        return text_written(out, parts, plan, line.duration_ms, len(line.chapters), notes, progress)


def paragraphs(chapter: PlacedChapter) -> Iterator[list[PlacedLine]]:
    """Yield the lines of each block; a line without a block id stands alone."""
    keyed = ((line.line.block or f"\0{number}", line) for number, line in enumerate(chapter.lines))
    for _, group in groupby(keyed, key=lambda pair: pair[0]):
        yield [line for _, line in group]


def paragraph_text(lines: list[PlacedLine]) -> str:
    """Return a block's text on one line, with the separators it had in the manuscript."""
    text = "".join(
        placed.line.text + (placed.line.separator if number < len(lines) - 1 else "")
        for number, placed in enumerate(lines)
    )
    return title_clean(text)


def transcript(plan: BookPlan, line: Timeline, *, times: bool) -> Iterator[str]:
    """Yield the transcript in parts."""
    yield title_clean(plan.title) + "\n"
    if plan.authors:
        yield people(plan.authors) + "\n"
    for chapter in line.chapters:
        yield f"\n\n{title_clean(chapter.title)}\n"
        for group in paragraphs(chapter):
            text = paragraph_text(group)
            if text and text != title_clean(chapter.title):
                at = f"[{clock(samples_ms(group[0].start), '.')}] " if times else ""
                yield f"\n{at}{text}\n"
