"""Pauses as data: how long the silence is between the end of one line's speech and the start of the next. Pure."""

from __future__ import annotations

from collections.abc import Mapping

# Milliseconds from end of speech to start of speech, by what lies between two lines. What a producer would set;
# a project may override each. `chapter_end` is nothing: there the chapter's tail and the next one's head speak.
DEFAULT_PAUSES_MS: dict[str, int] = {
    "within_sentence": 60,
    "clause_split": 120,
    "sentence": 350,
    "paragraph": 650,
    "dialogue_turn": 500,
    "verse_line": 250,
    "stanza": 900,
    "list_item": 450,
    "chapter_number": 500,
    "heading": 1500,
    "subheading_before": 1500,
    "subheading_after": 900,
    "part_title": 2500,
    "scene_break": 2000,
    "quotation": 900,
    "note": 700,
    "chapter_end": 0,
}

MAX_PAUSE_MS = 60_000  # an override beyond a minute is a slip of the finger


def pause_ms(boundary: str, rules: Mapping[str, int] | None = None, override: int | None = None) -> int:
    """Return the pause after a line, ms in [0, MAX_PAUSE_MS].

    `override` (set by hand on the line) wins over `rules` (the project's), which win over the defaults.
    Raises KeyError for a boundary kind that nobody knows.
    """
    if override is not None:
        chosen = override
    elif rules is not None and boundary in rules:
        chosen = rules[boundary]
    else:
        chosen = DEFAULT_PAUSES_MS[boundary]
    return min(max(int(chosen), 0), MAX_PAUSE_MS)
