"""Rows to HTML: one template serves first paint, save and push."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import UUID

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from projects.failures import failure_words
from projects.models import Block, Document, Segment, Take
from projects.pauses import pause_ms

MEMO_ROWS = 5_000  # rendered rows kept per process


@dataclass(frozen=True, slots=True)
class SegmentRow:
    """A sentence as its template sees it. Times in ms or s as named."""

    pk: int
    uuid: UUID
    version: int
    number: int
    text: str
    spoken: str
    text_rev: int
    separator: str
    state: str
    state_label: str
    marks: str
    flags: str
    failure: str
    remedy: str
    take_count: int
    duration_s: float | None
    audio_url: str
    peaks_url: str
    speech_start_s: float | None
    speech_end_s: float | None
    pause_ms: int
    pause_set: bool
    skip_reason: str
    language: str


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A paragraph as its template sees it."""

    uuid: UUID
    version: int
    kind: str
    number: int | None
    rows: list[SegmentRow]
    skip_reason: str
    spoken: str
    pause_ms: int
    pause_set: bool
    page: str


def _skip_reason(segment: Segment) -> str:
    if segment.spoken:
        return ""
    if segment.block.skip_reason:
        return segment.block.skip_reason
    reasons = [value for _start, _end, role, value in segment.spans if role == "skip" and value]
    return reasons[0] if reasons else _("nothing to say")


def segment_row(segment: Segment, number: int = 0, rules: dict[str, int] | None = None) -> SegmentRow:
    """A sentence's row. Wants `is_stale` and `take_count` annotated, block and chosen take selected."""
    take: Take | None = segment.chosen_take
    marks = [
        name
        for name, at in (
            ("edit", segment.edit_at),
            ("qc", segment.qc_at),
            ("pickup", segment.pickup_at),
            ("lock", segment.lock_at),
        )
        if at
    ]
    failed = segment.state == Segment.State.FAILED
    failure, remedy = failure_words(segment.failure_code, segment.failure_detail) if failed else ("", "")
    return SegmentRow(
        pk=segment.pk,
        uuid=segment.public_id,
        version=segment.version,
        number=number,
        text=segment.text,
        spoken=segment.spoken,
        text_rev=segment.text_rev,
        separator=segment.separator,
        state=segment.state,
        state_label=segment.get_state_display(),
        marks=" ".join(marks),
        flags="stale" if getattr(segment, "is_stale", False) else "",
        failure=failure,
        remedy=remedy,
        take_count=getattr(segment, "take_count", 0),
        duration_s=round(take.samples / take.rate_hz, 3) if take else None,
        audio_url=reverse("synthesis:take-audio", args=[take.public_id]) if take else "",
        peaks_url=reverse("synthesis:take-peaks", args=[take.public_id]) if take else "",
        speech_start_s=round(take.speech_start / take.rate_hz, 3) if take else None,
        speech_end_s=round(take.speech_end / take.rate_hz, 3) if take else None,
        pause_ms=pause_ms(segment.boundary, rules, segment.pause_after_ms),
        pause_set=segment.pause_after_ms is not None,
        skip_reason=_skip_reason(segment),
        language=segment.language or segment.block.language,
    )


def pause_rules(document: Document) -> dict[str, int]:
    """The book's own pauses, ms by boundary."""
    return {name: int(ms) for name, ms in (document.project.rules.get("pauses") or {}).items()}


def block_rows(blocks: Iterable[Block], segments: Iterable[Segment], rules: dict[str, int]) -> list[BlockRow]:
    """A chapter's paragraphs with their sentences, both in order; paragraphs are numbered as a reader counts them."""
    by_block: dict[int, list[SegmentRow]] = {}
    last: dict[int, Segment] = {}
    for number, segment in enumerate(segments, start=1):
        by_block.setdefault(segment.block_id, []).append(segment_row(segment, number, rules))
        last[segment.block_id] = segment
    rows, paragraph = [], 0
    for block in blocks:
        inner = by_block.get(block.pk, [])
        counted = block.kind not in ("heading", "subheading", "part_title", "scene_break")
        paragraph += counted
        own = block.pause_after_ms
        spoken = ""
        if block.kind in ("heading", "part_title"):
            said = " ".join(row.spoken for row in inner if row.spoken)
            printed = " ".join(row.text for row in inner)
            spoken = said if said.rstrip(".") != printed.rstrip(".") else ""  # a full stop alone is no news
        end = last.get(block.pk)
        rows.append(
            BlockRow(
                uuid=block.public_id,
                version=block.version,
                kind=block.kind,
                number=paragraph if counted else None,
                rows=inner,
                skip_reason=block.skip_reason,
                spoken=spoken,
                pause_ms=pause_ms(end.boundary, rules, own if own is not None else end.pause_after_ms)
                if end
                else 0,
                pause_set=own is not None or bool(end and end.pause_after_ms is not None),
                page=block.page,
            )
        )
    return rows


_memo: OrderedDict[tuple[Any, ...], str] = OrderedDict()
_memo_lock = Lock()


def segment_html(row: SegmentRow, language: str) -> str:
    """A sentence's element, rendered once per (segment, version, number, locale)."""
    key = (
        row.uuid,
        row.version,
        row.number,
        row.flags,
        row.take_count,
        row.pause_ms,
        get_language(),
        language,
    )
    with _memo_lock:
        if key in _memo:
            _memo.move_to_end(key)
            return _memo[key]
    html = render_to_string("projects/_segment.html", {"row": row, "language": language})
    with _memo_lock:
        _memo[key] = html
        while len(_memo) > MEMO_ROWS:
            _memo.popitem(last=False)
    return html


def stamp_html(stamp: str) -> str:
    """The element that says how far whoever receives it has seen."""
    return format_html('<template id="stamp" data-stamp="{}"></template>', stamp)
