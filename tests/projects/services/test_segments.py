"""Edits, staleness, integrity."""

from __future__ import annotations

import pytest
from django.db.models import QuerySet

from projects.importers.base import ParsedBlock, ParsedChapter
from projects.models import Project, Segment
from projects.recipe import spoken_digest
from projects.services.books import chapter_add
from projects.services.projects import project_set_voice
from projects.services.recipes import recipe_of
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
from tests.factories import project_make, segments_of, take_make, user_make, voice_make

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


def test_saving_unchanged_changes_nothing_even_under_a_newer_normaliser(segment, monkeypatch):
    monkeypatch.setattr("projects.services.segments.spoken_text", lambda *args, **kwargs: "Otherwise.")
    saved = segment_edit_text(segment, text=segment.text, text_rev=1, user=None, spoken="")
    assert (saved.spoken, saved.text_rev, saved.edits.count()) == (segment.spoken, 1, 0)


def _meanwhile(monkeypatch, act):
    """Let `act` happen at the moment the next row lock was waited for, as in a transaction that committed just then."""
    fetch, done = QuerySet._fetch_all, []

    def fetched(rows):
        locks = rows.query.select_for_update and rows._result_cache is None
        fetch(rows)
        if locks and rows.model is Segment and not done:
            done.append(True)
            act()

    monkeypatch.setattr(QuerySet, "_fetch_all", fetched)
    return done


def test_an_edit_that_waited_for_another_voice_has_its_recipe(segment, monkeypatch):
    project, other = segment.document.project, voice_make("Bea")
    done = _meanwhile(monkeypatch, lambda: Project.objects.filter(pk=project.pk).update(voice=other))
    segment_edit_text(segment, text="Something else.", text_rev=1, user=None)
    monkeypatch.undo()
    assert done
    found = segments_of(project)[1]
    assert found.recipe == recipe_of(found)


def test_another_voice_that_waited_for_an_edit_keeps_the_new_words(segment, monkeypatch):
    project = segment.document.project

    def edit():
        Segment.objects.filter(pk=segment.pk).update(spoken="Quite other words.")

    done = _meanwhile(monkeypatch, edit)
    project_set_voice(project, voice_make("Bea"))
    monkeypatch.undo()
    assert done
    assert all(found.recipe == recipe_of(found) for found in segments_of(project))


def test_a_chapter_added_while_the_voice_changed_is_of_the_new_voice(segment):
    stale, other = segment.document.project, voice_make("Bea")
    project_set_voice(Project.objects.get(pk=stale.pk), other)  # behind the back of who holds `stale`
    added = chapter_add(
        stale, ParsedChapter(title="More", kind="chapter", blocks=(ParsedBlock("paragraph", "One more."),)),
        at_start=False,
    )  # fmt: skip
    assert all(found.recipe == recipe_of(found) for found in segments_of(added))
