"""What a user starts: scope, refusals, double clicks, pause, cancel."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from projects.models import Segment
from projects.services.projects import project_set_voice
from projects.services.segments import segment_edit_text
from projects.work import WorkState
from synthesis.models import Conversion, SegmentJob
from synthesis.services.conversions import (
    ConversionRefused,
    Only,
    Scope,
    conversion_cancel,
    conversion_pause,
    conversion_resume,
    conversion_retry,
    conversion_start,
    wanted,
)
from tests.factories import (
    chapters_of,
    project_make,
    segments_of,
    take_make,
    takes_make,
    user_make,
    voice_make,
)

pytestmark = pytest.mark.django_db


def test_one_job_per_sentence_in_reading_order():
    project = project_make()
    chapter = chapters_of(project)[0]
    conversion = conversion_start(None, Scope.DOCUMENT, chapter)
    jobs = list(conversion.jobs.order_by("position").values_list("segment_id", flat=True))
    assert jobs == [s.pk for s in segments_of(chapter) if s.spoken]
    assert {s.state for s in segments_of(chapter) if s.spoken} == {"queued"}


def test_added_twice_is_one_job():
    project = project_make()
    chapter = chapters_of(project)[0]
    first = conversion_start(None, Scope.DOCUMENT, chapter)
    assert conversion_start(None, Scope.DOCUMENT, chapter) is None
    assert SegmentJob.objects.count() == first.jobs.count()


def test_the_same_key_is_the_same_conversion():
    project, user = project_make(), user_make()
    one = conversion_start(user, Scope.PROJECT, project, idempotency_key="k")
    two = conversion_start(user, Scope.PROJECT, project, idempotency_key="k")
    assert one == two


def test_only_what_is_missing_or_stale():
    project = project_make()
    chapter = chapters_of(project)[0]
    takes_make(chapter)
    first = next(s for s in segments_of(chapter) if s.spoken)
    segment_edit_text(first, text="Another line.", text_rev=1, user=None)
    assert [s.pk for s in wanted(Scope.DOCUMENT, chapter, Only.MISSING_STALE).segments] == [first.pk]
    assert [s.pk for s in wanted(Scope.DOCUMENT, chapter, Only.STALE).segments] == [first.pk]
    assert wanted(Scope.DOCUMENT, chapter, Only.MISSING).segments == []


def test_left_out_chapters_and_locked_lines_are_not_made():
    project = project_make()
    one, two = chapters_of(project)
    one.included = False
    one.save()
    kept = next(s for s in segments_of(two) if s.spoken)
    Segment.objects.filter(pk=kept.pk).update(lock_at=timezone.now())
    plan = wanted(Scope.PROJECT, project, Only.ALL)
    assert {s.document_id for s in plan.segments} == {two.pk}
    assert kept.pk not in {s.pk for s in plan.segments}
    assert plan.kept == 1


def test_a_language_nobody_speaks_is_refused_before_anything_is_queued():
    project = project_make()
    Segment.objects.filter(document__project=project).update(language="ko")
    voice_make("Minji", languages=["ko"])
    with pytest.raises(ConversionRefused, match="Minji") as refused:
        conversion_start(None, Scope.PROJECT, project)
    assert refused.value.code == "language_not_supported"
    assert not SegmentJob.objects.exists()
    assert not Conversion.objects.exists()


def test_no_voice_is_refused_naming_what_can():
    project = project_make()
    project.voice = None
    project.save()
    with pytest.raises(ConversionRefused, match="Ada"):
        conversion_start(None, Scope.PROJECT, project)


def test_a_take_that_exists_is_chosen_without_synthesis():
    project = project_make()
    segment = next(s for s in segments_of(project) if s.spoken)
    take = take_make(segment)
    other = voice_make("Other")
    first_voice = project.voice
    project_set_voice(project, other)
    segment.refresh_from_db()
    assert Segment.objects.with_stale().get(pk=segment.pk).is_stale
    project_set_voice(project, first_voice)
    Segment.objects.filter(pk=segment.pk).update(chosen_take=None, state="empty")
    conversion = conversion_start(None, Scope.SEGMENT, segment, only=Only.ALL)
    segment.refresh_from_db()
    assert (segment.chosen_take, segment.state, conversion.state) == (take, "ready", "done")
    assert not conversion.jobs.exists()


def test_pause_resume_cancel():
    project = project_make()
    chapter = chapters_of(project)[0]
    had = takes_make(chapter)
    conversion = conversion_start(None, Scope.DOCUMENT, chapter, only=Only.ALL, new_variant=True)
    assert conversion_pause(conversion)
    assert not conversion_pause(conversion)
    assert conversion_resume(conversion)
    assert conversion_cancel(conversion) == len(had)
    assert conversion_cancel(conversion) == 0
    assert {j.state for j in conversion.jobs.all()} == {WorkState.CANCELLED}
    assert {s.state for s in segments_of(chapter) if s.spoken} == {"ready"}  # the old takes stay


def test_cancel_of_what_had_no_sound():
    project = project_make()
    conversion = conversion_start(None, Scope.PROJECT, project)
    conversion_cancel(conversion)
    assert {s.state for s in segments_of(project)} == {"empty"}


def test_what_failed_and_then_lost_its_words_is_not_tried_again():
    project = project_make()
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion = conversion_start(None, Scope.SEGMENT, segment)
    conversion.jobs.update(state=WorkState.FAILED)
    noted = {"text": "Hello [3]", "spans": [[6, 9, "skip", "note"]]}
    Segment.objects.filter(pk=segment.pk).update(state="failed", **noted)
    segment_edit_text(segment, text="[3]", text_rev=1, user=None)
    assert not Segment.objects.get(pk=segment.pk).spoken
    assert conversion_retry(None, conversion) is None  # an order without words would stop its pool for good
    assert not SegmentJob.objects.filter(recipe="").exists()


def test_a_take_that_exists_waits_for_a_choice_where_the_line_is_approved():
    project = project_make()
    segment = next(s for s in segments_of(project) if s.spoken)
    first = take_make(segment)
    segment_edit_text(segment, text="Other words.", text_rev=1, user=None)
    segment.refresh_from_db()
    second = take_make(segment, choose=False)
    Segment.objects.filter(pk=segment.pk).update(qc_at=timezone.now())
    conversion_start(None, Scope.SEGMENT, segment)
    segment.refresh_from_db()
    second.refresh_from_db()
    assert (segment.chosen_take, second.is_candidate) == (first, True)


def test_cancel_locks_every_job_before_any_sentence(monkeypatch):
    """The lock order of the whole pipeline: whoever holds a sentence asks for no job any more."""
    monkeypatch.setattr("synthesis.services.conversions.CHUNK", 2)
    conversion = conversion_start(None, Scope.PROJECT, project_make())
    assert conversion.jobs.count() > 4
    with CaptureQueriesContext(connection) as queries:
        conversion_cancel(conversion)
    writes = [q["sql"] for q in queries if q["sql"].startswith("UPDATE")]
    tables = ["job" if '"synthesis_segmentjob" SET' in sql else "segment" for sql in writes
              if '"synthesis_segmentjob" SET' in sql or '"projects_segment" SET' in sql]  # fmt: skip
    assert tables == sorted(tables)
    assert set(tables) == {"job", "segment"}


def test_waiting_work_follows_another_voice_and_its_pool(django_capture_on_commit_callbacks):
    project = project_make()
    conversion_start(None, Scope.DOCUMENT, chapters_of(project)[0])
    other = voice_make("Gretel", pool="gpu")
    with django_capture_on_commit_callbacks(execute=True):
        project_set_voice(project, other)
    jobs = SegmentJob.objects.exclude(state=WorkState.CANCELLED)
    assert jobs.exists()
    assert {(j.voice, j.pool) for j in jobs} == {(other, "gpu")}
    assert all(j.recipe == j.segment.recipe for j in jobs)
