"""Splitting what is too long for one file: chapters at a paragraph, books into volumes."""

from __future__ import annotations

from dataclasses import replace

from synthesis.audio.timeline import BookPlan, ChapterPlan, Line, timeline

_SLACK_MS = 30_000  # a file ends this much before the limit: heads, tails, tags


def chapter_length_ms(chapter: ChapterPlan) -> float:
    """Return how long a chapter will be, ms."""
    return timeline(BookPlan("", (chapter,))).duration_ms


def chapters_split(plan: BookPlan, max_ms: int) -> tuple[BookPlan, list[str]]:
    """Return the plan with chapters longer than `max_ms` parted at the last paragraph before it, and notes on it.

    A chapter that is one endless paragraph is parted at a sentence; a single line is never cut.
    """
    if max_ms <= 0:
        return plan, []
    chapters: list[ChapterPlan] = []
    notes = []
    for chapter in plan.chapters:
        if not chapter.lines or chapter_length_ms(chapter) <= max_ms:
            chapters.append(chapter)
            continue
        parts = _parts(
            chapter.lines, max(max_ms - _SLACK_MS, max_ms // 2) - chapter.head_ms - chapter.tail_ms
        )
        for number, lines in enumerate(parts, start=1):
            title = f"{chapter.title} ({number}/{len(parts)})" if len(parts) > 1 else chapter.title
            chapters.append(replace(chapter, title=title, lines=lines))
        if len(parts) > 1:
            notes.append(
                f"{chapter.title} is longer than {max_ms // 60_000} minutes; it is parted into {len(parts)}."
            )
    return replace(plan, chapters=tuple(chapters)), notes


def _parts(lines: tuple[Line, ...], limit_ms: int) -> list[tuple[Line, ...]]:
    """Part lines into stretches no longer than the limit, at paragraphs where there are any."""
    parts: list[tuple[Line, ...]] = []
    start, length, last_break = 0, 0.0, 0
    at = 0
    while at < len(lines):
        line = lines[at]
        speech = (line.clip.speech_end - line.clip.speech_start) * 1000 / line.clip.rate_hz
        if at > start and (not line.block or line.block != lines[at - 1].block):
            last_break = at
        if at > start and length + speech > limit_ms:
            cut = last_break if last_break > start else at
            parts.append(lines[start:cut])
            start = at = last_break = cut
            length = 0.0
            continue
        length += speech + line.pause_after_ms
        at += 1
    parts.append(lines[start:])
    return parts


def volumes_split(plan: BookPlan, max_ms: int) -> list[BookPlan]:
    """Return the book as volumes of whole chapters no longer than `max_ms`; one too long stands alone.

    A single volume keeps the book's title; several are numbered.
    """
    volumes: list[list[ChapterPlan]] = [[]]
    length = 0.0
    for chapter in plan.chapters:
        own = chapter_length_ms(chapter) if chapter.lines else 0.0
        if volumes[-1] and max_ms > 0 and length + own > max_ms:
            volumes.append([])
            length = 0.0
        volumes[-1].append(chapter)
        length += own
    if len(volumes) == 1:
        return [plan]
    return [
        replace(plan, title=f"{plan.title}, Volume {number}", chapters=tuple(chapters))
        for number, chapters in enumerate(volumes, start=1)
    ]
