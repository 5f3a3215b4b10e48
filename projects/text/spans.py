"""Stretches of a text that are treated apart: not read, read otherwise, or in another language."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that is treated apart.

    `start` and `end` are offsets in code points, end exclusive. Roles:
    `skip`: not read aloud, `value` says why; `say`: `value` is spoken instead (a ruby reading; where
    start == end it is spoken besides, as the marker of a list item); `lang`: `value` is a BCP 47 tag.
    """

    start: int
    end: int
    role: str
    value: str = ""


def spans_slice(spans: Iterable[Span], start: int, end: int) -> tuple[Span, ...]:
    """The parts of `spans` within [start, end), relative to `start`."""
    kept = []
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if low < high or (span.start == span.end and start <= span.start < max(end, start + 1)):
            kept.append(replace(span, start=low - start, end=max(high, low) - start))
    return tuple(kept)


def spans_apply(text: str, spans: Iterable[Span]) -> str:
    """`text` as it is to be spoken: skipped stretches gone, readings in place of what they stand for."""
    pieces, at = [], 0
    for span in sorted((s for s in spans if s.role in ("skip", "say")), key=lambda s: (s.start, s.end)):
        if span.start < at:
            continue  # overlaps one that was applied already: the first one wins
        pieces.append(text[at : span.start])
        if span.role == "say":
            pieces.append(span.value)
        at = span.end
    pieces.append(text[at:])
    return "".join(pieces)


def skipped_mask(text: str, spans: Iterable[Span]) -> bytearray:
    """One byte per code point of `text`: 1 where a span says that it is not read."""
    mask = bytearray(len(text))
    for span in spans:
        if span.role == "skip":
            low, high = max(0, span.start), min(len(text), span.end)
            mask[low:high] = b"\1" * max(0, high - low)
    return mask


def spans_after_edit(old: str, new: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Carry `spans` of `old` over to the edited text `new`.

    A span moves with its characters; one whose own characters were changed is dropped, because what it
    says about them may no longer be true. A language stretch grows and shrinks with the edits inside it.
    """
    spans = tuple(spans)
    if old == new or not spans:
        return spans
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()

    def moved(offset: int, *, at_end: bool) -> int | None:
        for a, b, size in blocks:
            if a <= offset < a + size or (at_end and a < offset <= a + size):
                return b + offset - a
        return None

    kept = []
    for span in spans:
        if span.start == span.end:
            start = 0 if span.start == 0 else moved(span.start, at_end=True)
            end = start
        else:
            start, end = moved(span.start, at_end=False), moved(span.end, at_end=True)
        if start is None or end is None or end < start:
            continue
        if span.role == "lang" or new[start:end] == old[span.start : span.end]:
            kept.append(replace(span, start=start, end=end))
    return tuple(kept)
