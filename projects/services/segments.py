"""Writes on sentences: state moves, edits, choice of takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from accounts.models import User
from projects import notify
from projects.models import Segment, SegmentEdit, Take
from projects.recipe import spoken_digest
from projects.services.recipes import language_of, recipe_of
from projects.states import RenderState, at_rest, sources
from projects.text.estimate import estimated_ms, words_count
from projects.text.normalise import FRONTEND_REV, spoken_text
from projects.text.spans import Span, spans_after_edit


class StaleRevision(Exception):
    """Raised when somebody else changed the sentence since it was opened."""


class EmptyText(Exception):
    """Raised when an edit would leave a sentence without printed words: exclude or delete it instead."""


class TakeNotOfSegment(Exception):
    """Raised when a take of another sentence, or a deleted one, is to be chosen."""


def segments_touch(segments: QuerySet[Segment], **changes: Any) -> int:
    """Update rows, number the change and say when; the number of rows. The caller notifies."""
    return segments.update(version=F("version") + 1, changed_at=Now(), **changes)


@transaction.atomic
def segment_move(
    segment_id: int, to: RenderState, *, failure: tuple[str, str] = ("", ""), **guard: Any
) -> bool:
    """Move a segment's render state, or return False if it may not go there (any more).

    One compare-and-swap UPDATE; `guard` adds conditions, `failure` is (code, detail). The caller notifies.
    """
    moved = segments_touch(
        Segment.objects.filter(pk=segment_id, state__in=sources(to), **guard),
        state=to,
        failure_code=failure[0],
        failure_detail=failure[1],
    )
    return bool(moved)


def segment_settle(segment_id: int, *, wanted: bool) -> None:
    """Bring a segment to rest after a job: ready with a take, empty without; queued while another job wants it."""
    segment = Segment.objects.only("pk", "chosen_take_id").get(pk=segment_id)
    if wanted:
        segment_move(segment_id, RenderState.QUEUED)
    else:
        segment_move(segment_id, at_rest(segment.chosen_take_id is not None))


@transaction.atomic
def segment_edit_text(
    segment: Segment, *, text: str, text_rev: int, user: User | None, spoken: str | None = None
) -> Segment:
    """Change a sentence's printed words, and with them the spoken ones.

    `spoken` sets the spoken words by hand; "" gives them back to the normaliser, and so does another text that comes
    without them. The old take stays and the sentence turns stale. Raises StaleRevision if `text_rev` is not the current one, EmptyText for no words.
    """
    text = " ".join(text.split())
    if not text:
        raise EmptyText
    # Two statements: what the lock waited for may have been another voice for the book, and only a statement that
    # begins after it sees that.
    Segment.objects.select_for_update().only("pk").get(pk=segment.pk)
    held = Segment.objects.select_related("document__project__voice", "block", "voice").get(pk=segment.pk)
    if held.text_rev != text_rev:
        raise StaleRevision
    before, spoken_before = held.text, held.spoken
    asked = None if spoken is None else " ".join(spoken.split())
    by_hand = bool(asked)
    as_it_was = asked is None or (by_hand == held.spoken_set and asked in ("", held.spoken))
    if text == before and as_it_was:  # saved unchanged: a newer normaliser must not touch it
        return held

    spans = spans_after_edit(before, text, tuple(Span(*item) for item in held.spans))
    said = asked or spoken_text(text, language=language_of(held), spans=spans, kind=held.block.kind)
    held.text, held.spoken = text, said
    changed = segments_touch(
        Segment.objects.filter(pk=held.pk, text_rev=text_rev),
        text=text,
        spans=[[s.start, s.end, s.role, s.value] for s in spans],
        spoken=said,
        spoken_digest=spoken_digest(said),
        spoken_set=by_hand,
        frontend_rev=FRONTEND_REV,
        recipe=recipe_of(held),
        estimated_ms=estimated_ms(said),
        words=words_count(said),
        text_rev=text_rev + 1,
    )
    if not changed:
        raise StaleRevision
    SegmentEdit.objects.create(
        segment=held,
        text_rev=text_rev + 1,
        text_before=before,
        text_after=text,
        spoken_before=spoken_before,
        spoken_after=said,
        by=user,
    )
    notify.segments_changed(held.document.public_id, [held.pk])
    held.refresh_from_db()
    return held


@transaction.atomic
def take_choose(segment: Segment, take: Take) -> None:
    """Make a take the current one; that never makes a sentence stale of itself. Raises TakeNotOfSegment."""
    if take.segment_id != segment.pk or take.deleted_at is not None:
        raise TakeNotOfSegment
    held = Segment.objects.select_for_update().only("pk", "state").get(pk=segment.pk)
    Take.objects.filter(pk=take.pk).update(is_candidate=False)
    changes: dict[str, Any] = {"chosen_take": take}
    if held.state in (RenderState.EMPTY, RenderState.FAILED):
        changes |= {"state": RenderState.READY, "failure_code": "", "failure_detail": ""}
    segments_touch(Segment.objects.filter(pk=segment.pk), **changes)
    notify.segments_changed(segment.document.public_id, [segment.pk])


def block_text_proof(segments: Sequence[Segment]) -> str:
    """The source text as a block's segments hold it: each as it was before its first edit, with its separators.

    Equal to the block's `source_text` unless words were lost: text integrity, provable. Needs `edits` prefetched or
    fetches them.
    """
    parts = []
    for segment in segments:
        edits = sorted(segment.edits.all(), key=lambda e: e.text_rev)
        text = segment.text
        for edit in reversed(edits):  # replay backwards; a gap in the chain is a loss and must show
            if edit.text_after != text:
                return ""
            text = edit.text_before
        parts.append(text + segment.separator)
    return "".join(parts)
