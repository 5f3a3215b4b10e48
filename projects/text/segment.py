"""From a block to its segments: sentences, lines of verse, pieces an engine can take. Nothing is lost."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from .kinds import HEADING_KINDS, LINE_KINDS, QUOTED_KINDS
from .languages import CJK_LANGUAGES, is_speakable, language_base
from .normalise import spoken_text
from .sentences import sentence_ends
from .spans import Span, skipped_mask, spans_slice

SEGMENT_MAX_CHARS = 400
"""Longest segment, in code points. Engines stop or hallucinate beyond some 500 phonemes."""

SEGMENT_MAX_CHARS_CJK = 140
"""The same for Korean, Japanese and Chinese, where a character is a syllable or more."""

SILENT_KINDS = frozenset({"scene_break"})
"""Blocks that are a pause and nothing else."""

_CLAUSE = re.compile(
    r"[;:，、；：,،؛—–]+[”’\"'»)\]」』]*(?=\s|[^\x00-\u2fff])|[，、；：；，]+|[,;:—–]+[”’\"'»)\]]*(?=\s|$)"
)


@dataclass(frozen=True, slots=True)
class SegmentDraft:
    """A segment before it has a row.

    `text` is an exact slice [start, end) of the block's text, `separator` what stands between it and the next
    segment of the block. `boundary` is the kind of boundary to the next segment inside the block; for the
    last one the caller asks boundary_between(). `spoken` "" means: not read aloud. Spans are relative to `text`.
    """

    text: str
    separator: str
    start: int
    end: int
    boundary: str
    spoken: str
    spans: tuple[Span, ...] = ()
    language: str = ""


def segment_block(
    kind: str,
    text: str,
    *,
    language: str,
    spans: Iterable[Span] = (),
    spoken: str | None = None,
    skip_reason: str = "",
    max_chars: int | None = None,
) -> list[SegmentDraft]:
    """Cut a block's text into segments.

    `spoken` is the spoken form of a whole heading. A block with a `skip_reason` gives segments that are
    not read aloud. The texts and separators of the result join to `text` exactly; an empty text gives [].
    """
    if not text:
        return []
    spans = tuple(spans)
    limit = max_chars or (
        SEGMENT_MAX_CHARS_CJK if language_base(language) in CJK_LANGUAGES else SEGMENT_MAX_CHARS
    )
    cuts = _cuts(kind, text, language, spans, limit, spoken)
    drafts = []
    lines = spoken.split("\n") if spoken is not None else []
    for number, (start, end, boundary) in enumerate(cuts):
        piece = text[start:end]
        after = cuts[number + 1][0] if number + 1 < len(cuts) else len(text)
        inner = spans_slice(spans, start, end)
        tag = _language_of(inner, len(piece))
        if skip_reason or kind in SILENT_KINDS:
            said = ""
        elif spoken is not None and len(lines) == len(cuts):
            said = lines[number].strip()
        elif spoken is not None and len(cuts) == 1:
            said = spoken.replace("\n", " ").strip()
        else:
            said = spoken_text(piece, language=tag or language, spans=inner, kind=kind)
        if said and not is_speakable(said):
            said = ""
        drafts.append(SegmentDraft(piece, text[end:after], start, end, boundary, said, inner, tag))
    return drafts


def boundary_between(kind: str, next_kind: str | None, *, dialogue: bool = False) -> str:
    """The boundary after the last segment of a block of `kind`, before one of `next_kind` (None: chapter end).

    `dialogue`: both blocks are speech, of one speaker and then of another.
    """
    if next_kind is None:
        return "chapter_end"
    if "scene_break" in (kind, next_kind):
        return "scene_break"
    if kind == "part_title":
        return "part_title"
    if kind == "heading":
        return "chapter_number" if next_kind == "heading" else "heading"
    if next_kind in HEADING_KINDS:
        return "subheading_before"
    if kind == "subheading":
        return "subheading_after"
    if "note" in (kind, next_kind):
        return "note"
    if kind == "verse" or next_kind == "verse":
        return "stanza"
    if kind == next_kind == "list_item":
        return "list_item"
    if kind in QUOTED_KINDS or next_kind in QUOTED_KINDS:
        return "paragraph" if kind == next_kind else "quotation"
    if dialogue:
        return "dialogue_turn"
    return "paragraph"


_SPEECH_OPENS = re.compile(r"[“‘\"'«„「『—–―‹]|- ")


def is_dialogue(text: str) -> bool:
    """Does a paragraph begin with speech? Told by its first mark."""
    return bool(_SPEECH_OPENS.match(text.lstrip()))


def _cuts(
    kind: str, text: str, language: str, spans: tuple[Span, ...], limit: int, spoken: str | None
) -> list[tuple[int, int, str]]:
    """(start, end, boundary to the next) of every segment."""
    if kind in HEADING_KINDS or kind in SILENT_KINDS:
        lines = _line_cuts(text)
        if spoken is not None and len(spoken.split("\n")) != len(lines):
            lines = [(lines[0][0], lines[-1][1])]
        return [
            (start, end, "chapter_number" if kind != "scene_break" else "scene_break") for start, end in lines
        ]
    if kind in LINE_KINDS:
        pieces = []
        for start, end in _line_cuts(text):
            parts = _fit(text, start, end, limit, spans)
            pieces += [(a, b, "clause_split") for a, b in parts[:-1]] + [(*parts[-1], "verse_line")]
        return pieces
    whole = []
    for start, end in _sentence_cuts(text, language, spans):
        parts = _fit(text, start, end, limit, spans)
        whole += [(a, b, "clause_split") for a, b in parts[:-1]] + [(*parts[-1], "sentence")]
    return whole


def _line_cuts(text: str) -> list[tuple[int, int]]:
    """The lines of a text without the white space around them; all of it if there is nothing but white space."""
    cuts = [
        (m.start() + len(m[0]) - len(m[0].lstrip()), m.start() + len(m[0].rstrip()))
        for m in re.finditer(r"[^\n]+", text)
        if m[0].strip()
    ]
    if not cuts:
        return [(0, len(text))]
    cuts[0] = (0, cuts[0][1])  # nothing may stand before the first segment
    return cuts


def _sentence_cuts(text: str, language: str, spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    """Sentences of the text as a listener meets it: what is skipped neither makes nor hides a sentence end."""
    mask = skipped_mask(text, spans)
    if not any(mask):
        ends = sentence_ends(text, language)
        visible_at = None
    else:
        kept = [i for i in range(len(text)) if not mask[i]]
        seen = "".join(text[i] for i in kept)
        ends = []
        for end in sentence_ends(seen, language):
            at = kept[end - 1] + 1
            while at < len(text) and mask[at]:  # a note mark stays with the sentence it follows
                at += 1
            ends.append(at)
        visible_at = kept
    if not ends or (visible_at is not None and not visible_at):
        return [(0, len(text))]
    inside = [s for s in spans if s.role == "say" and s.end > s.start]
    ends = [e for e in ends[:-1] if not any(s.start < e < s.end for s in inside)] + [ends[-1]]
    cuts, start = [], 0
    for number, end in enumerate(ends):
        if number + 1 == len(ends):
            end = max(end, len(text.rstrip()))
        if end <= start:
            continue
        cuts.append((start, end))
        start = end
        while start < len(text) and text[start].isspace():
            start += 1
    return cuts


def _fit(text: str, start: int, end: int, limit: int, spans: tuple[Span, ...]) -> list[tuple[int, int]]:
    """Cut [start, end) so that no piece is longer than `limit`: after a clause, else at a blank, else anywhere
    between two characters that are not joined."""
    if end - start <= limit:
        return [(start, end)]
    shut = [(s.start, s.end) for s in spans if s.role in ("say", "skip") and s.end - s.start <= limit]

    def free(at: int) -> bool:
        return not any(a < at < b for a, b in shut)

    parts = []
    while end - start > limit:
        window = text[start : start + limit]
        cut = 0
        # The last clause end; one in the second half of the window if there is one, to avoid tiny pieces.
        ends = [m.end() for m in _CLAUSE.finditer(window) if m.end() < len(window) and free(start + m.end())]
        if ends:
            cut = ends[-1]
            rest = end - start - cut
            if rest < limit // 6 and len(ends) > 1:  # leave no crumb at the end
                cut = next((e for e in reversed(ends) if end - start - e >= limit // 6), cut)
        if not cut:
            blanks = [m.start() for m in re.finditer(r"\s+", window) if m.start() and free(start + m.start())]
            cut = blanks[-1] if blanks else 0
        if not cut:
            cut = limit
            while cut > 1 and (not free(start + cut) or _joined(text, start + cut)):
                cut -= 1
            if cut == 1:
                cut = limit
        parts.append((start, start + cut))
        start += cut
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        parts.append((start, end))
    return parts


def _joined(text: str, at: int) -> bool:
    """Do the characters around `at` form one: combining marks, joiners, surrogate-like sequences?"""
    after, before = text[at : at + 1], text[at - 1 : at]
    return (
        (after != "" and unicodedata.category(after)[0] == "M")
        or "\u200d" in (after, before)
        or after in ("\ufe0e", "\ufe0f", "\u200c")
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    )


def _language_of(spans: tuple[Span, ...], length: int) -> str:
    """The language of a segment that is marked as a whole."""
    return next((s.value for s in spans if s.role == "lang" and s.start == 0 and s.end >= length > 0), "")
