"""Credits and samples: what every set opens and closes with, and what a shop plays to the curious.

Texts are English patterns with names put in; the studio makes editable documents of them.
"""

from __future__ import annotations

from dataclasses import replace

from synthesis.audio.timeline import BookPlan, ChapterPlan, Line
from synthesis.exporters.base import title_clean

SAMPLE_MAX_MS = 300_000  # five minutes: the most that ACX takes
_MARGIN_MS = 5_000  # for head and tail


def names_spoken(names: tuple[str, ...]) -> str:
    """Return names as they are said: "A", "A and B", "A, B and C"."""
    kept = [title_clean(name) for name in names if name.strip()]
    return kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}" if kept else ""


def opening_credits(plan: BookPlan) -> tuple[str, ...]:
    """Return the sentences of the opening credits: title, authors, translator, narrator, as the metadata has them."""
    title = title_clean(plan.title)
    sentences = [f"{title}. {title_clean(plan.subtitle)}." if plan.subtitle.strip() else f"{title}."]
    if plan.series.strip():
        number = title_clean(plan.series_position)
        sentences.append(
            f"{title_clean(plan.series)}, book {number}." if number else f"{title_clean(plan.series)}."
        )
    if authors := names_spoken(plan.authors):
        sentences.append(f"Written by {authors}.")
    if plan.translator.strip():
        sentences.append(f"Translated by {title_clean(plan.translator)}.")
    if plan.narrator.strip():
        sentences.append(f"Narrated by {title_clean(plan.narrator)}.")
    return tuple(sentences)


def closing_credits(plan: BookPlan) -> tuple[str, ...]:
    """Return the sentences of the closing credits; they say that the book is over."""
    title, authors = title_clean(plan.title), names_spoken(plan.authors)
    sentences = [f"You have been listening to {title}{f', written by {authors}' if authors else ''}."]
    if plan.narrator.strip():
        sentences.append(f"Narrated by {title_clean(plan.narrator)}.")
    if plan.publisher.strip():
        year = f", {title_clean(plan.year)}" if plan.year.strip() else ""
        sentences.append(f"Published by {title_clean(plan.publisher)}{year}.")
    sentences += [f"{title_clean(line)}." for line in (plan.copyright,) if line.strip()]
    return (*sentences, "The End.")


def sample_lines(lines: tuple[Line, ...], max_ms: int = SAMPLE_MAX_MS) -> tuple[Line, ...]:
    """Return as many lines from the start as fit, ending with a paragraph where that leaves at least half."""
    length, fits, last_break = 0.0, 0, 0
    for number, line in enumerate(lines):
        length += (line.clip.speech_end - line.clip.speech_start) * 1000 / line.clip.rate_hz
        if length > max_ms - _MARGIN_MS:
            break
        length += line.pause_after_ms
        fits = number + 1
        if number + 1 == len(lines) or not line.block or lines[number + 1].block != line.block:
            last_break = fits
    return lines[: last_break if last_break * 2 >= fits else fits]


def sample_chapter(plan: BookPlan, max_ms: int = SAMPLE_MAX_MS) -> ChapterPlan | None:
    """Return the retail sample: the first minutes of the first chapter; None where there is no chapter with sound.

    It starts with narration: a heading's line is left out.
    """
    for chapter in plan.chapters:
        if chapter.kind != "chapter":
            continue
        lines = tuple(line for line in chapter.lines if line.kind not in ("heading", "part_title"))
        kept = sample_lines(lines, max_ms)
        if kept:
            return replace(chapter, title="Retail Sample", kind="retail_sample", lines=kept, key="")
    return None
