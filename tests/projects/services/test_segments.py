"""Edits, staleness, integrity."""

from __future__ import annotations

import pytest

from projects.models import Segment
from projects.recipe import spoken_digest
from projects.services.segments import (
    EmptyText,
    StaleRevision,
    TakeNotOfSegment,
    block_text_proof,
    segment_edit_text,
    segment_move,
    take_choose,
)
from projects.states import RenderState
from tests.factories import project_make, segments_of, take_make, user_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def segment():
    return next(s for s in segments_of(project_make()) if s.spoken and s.block.kind == "paragraph")


def is_stale(segment):
    return Segment.objects.with_stale().get(pk=segment.pk).is_stale


def test_an_edit_turns_stale_and_keeps_the_take(segment):
    take = take_make(segment)
    assert not is_stale(segment)
    saved = segment_edit_text(segment, text="Something else.", text_rev=1, user=user_make())
    assert is_stale(saved)
    assert (saved.chosen_take, saved.text_rev, saved.state) == (take, 2, "ready")
    segment_edit_text(saved, text=segment.text, text_rev=2, user=None)
    assert not is_stale(saved)  # the words are back, and so is the take


def test_an_edit_of_an_older_text_is_refused(segment):
    segment_edit_text(segment, text="One.", text_rev=1, user=None)
    with pytest.raises(StaleRevision):
        segment_edit_text(segment, text="Two.", text_rev=1, user=None)
    assert Segment.objects.get(pk=segment.pk).text == "One."


def test_an_edit_without_words_is_refused(segment):
    with pytest.raises(EmptyText):
        segment_edit_text(segment, text="  \n ", text_rev=1, user=None)


def test_spoken_words_by_hand_and_back(segment):
    take_make(segment)
    printed = segment.text
    segment = segment_edit_text(segment, text=printed, text_rev=1, user=None, spoken="Say it so.")
    assert (segment.text, segment.spoken, segment.spoken_set) == (printed, "Say it so.", True)
    assert is_stale(segment)
    segment = segment_edit_text(segment, text=printed, text_rev=2, user=None, spoken="")
    assert not segment.spoken_set
    assert not is_stale(segment)


def test_choosing_another_take_never_makes_stale(segment):
    first = take_make(segment)
    second = take_make(segment, variant=7)
    for take in (first, second, first):
        take_choose(segment, take)
        assert not is_stale(segment)


def test_a_recording_is_stale_only_when_the_spoken_text_changed(segment):
    take_make(
        segment, origin="recording", recipe="", fingerprint="", spoken_digest=spoken_digest(segment.spoken)
    )
    Segment.objects.filter(pk=segment.pk).update(recipe="f" * 64)  # another voice
    assert not is_stale(segment)
    segment.refresh_from_db()
    segment_edit_text(segment, text="Other words.", text_rev=1, user=None)
    assert is_stale(segment)


def test_a_take_of_another_sentence_cannot_be_chosen(segment):
    other = next(s for s in segments_of(segment.document) if s.spoken and s.pk != segment.pk)
    with pytest.raises(TakeNotOfSegment):
        take_choose(segment, take_make(other))


def test_a_refused_move_says_so_and_changes_nothing(segment):
    assert not segment_move(segment.pk, RenderState.RENDERING)
    assert segment_move(segment.pk, RenderState.QUEUED)
    assert segment_move(segment.pk, RenderState.RENDERING)
    assert not segment_move(segment.pk, RenderState.QUEUED, text_rev=99)
    assert Segment.objects.get(pk=segment.pk).state == "rendering"


def test_every_change_is_numbered(segment):
    before = segment.version
    segment_move(segment.pk, RenderState.QUEUED)
    segment.refresh_from_db()
    assert segment.version == before + 1
    assert segment.changed_at is not None


def test_text_integrity_is_provable_through_edits(segment):
    block = segment.block

    def proof():
        return block_text_proof(list(block.segments.order_by("order_key").prefetch_related("edits")))

    assert proof() == block.source_text
    segment_edit_text(segment, text="First change.", text_rev=1, user=None)
    segment.refresh_from_db()
    segment_edit_text(segment, text="Second change.", text_rev=2, user=None)
    assert proof() == block.source_text
    Segment.objects.filter(pk=segment.pk).update(text="Tampered.")  # a write that left no edit
    assert proof() != block.source_text
