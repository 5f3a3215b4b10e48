"""What the files of a set are called, by the custom of where they go. Names are ASCII and all different."""

from __future__ import annotations

import re
from collections.abc import Callable

from synthesis.audio.timeline import BookPlan, PlacedChapter, Timeline
from synthesis.exporters.base import name_safe

_LEADING = re.compile(
    r"^\s*(chapter|kapitel|chapitre|cap[ií]tulo)\s+[\w-]+\s*[.:\u2013\u2014-]*\s*", re.IGNORECASE
)
_FIXED = {"opening_credits": "Opening_Credits", "closing_credits": "Closing_Credits"}

Naming = Callable[[BookPlan, Timeline, str], list[str]]


def names_numbered(plan: BookPlan, line: Timeline, extension: str) -> list[str]:
    """001_Opening_Credits.mp3, 002_Chapter_01_The_Letter.mp3, …, Retail_Sample.mp3."""
    names, number, chapter_number = [], 0, 0
    digits = len(str(sum(chapter.kind == "chapter" for chapter in line.chapters)))
    for chapter in line.chapters:
        if chapter.kind == "retail_sample":
            names.append(f"Retail_Sample{extension}")
            continue
        number += 1
        label = _FIXED.get(chapter.kind) or name_safe(chapter.title)
        if chapter.kind == "chapter":
            chapter_number += 1
            rest = (
                name_safe(_LEADING.sub("", chapter.title)) if _LEADING.sub("", chapter.title).strip() else ""
            )
            label = f"Chapter_{chapter_number:0{max(digits, 2)}d}" + (f"_{rest}" if rest else "")
        names.append(f"{number:03d}_{label}{extension}")
    return _distinct(names)


def names_google(plan: BookPlan, line: Timeline, extension: str) -> list[str]:
    """9780000000002_1of42.mp3, as Google Play takes them."""
    count = len(line.chapters)
    return [f"{_isbn(plan)}_{number}of{count}{extension}" for number in range(1, count + 1)]


def names_library(plan: BookPlan, line: Timeline, extension: str) -> list[str]:
    """9780000000002_001_The_Letter.mp3, as library platforms take them."""
    return _distinct(
        [f"{_isbn(plan)}_{c.index + 1:03d}_{name_safe(c.title)}{extension}" for c in line.chapters]
    )


NAMINGS: dict[str, Naming] = {"numbered": names_numbered, "google": names_google, "library": names_library}


def _isbn(plan: BookPlan) -> str:
    """Return the ISBN's digits, or the title where there is none."""
    return re.sub(r"[^0-9Xx]", "", plan.isbn) or name_safe(plan.title, limit=40)


def _distinct(names: list[str]) -> list[str]:
    """Number names that come twice; case does not make them different on every file system."""
    seen: set[str] = set()
    out = []
    for name in names:
        stem, dot, extension = name.rpartition(".")
        candidate, turn = name, 1
        while candidate.lower() in seen:
            turn += 1
            candidate = f"{stem}_{turn}{dot}{extension}"
        seen.add(candidate.lower())
        out.append(candidate)
    return out


def chapter_label(chapter: PlacedChapter) -> str:
    """Return a chapter's title as it is shown in tags."""
    return " ".join(chapter.title.split()) or f"Chapter {chapter.index + 1}"
