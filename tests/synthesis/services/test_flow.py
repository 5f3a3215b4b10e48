"""Dispatch and results over the database: fences, windows, exactly once. Runs on SQLite and PostgreSQL."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from projects.models import Segment, Take
from projects.services.segments import segment_edit_text
from projects.work import WorkState
from synthesis.flow.dispatch import dispatch
from synthesis.flow.ports import Limits
from synthesis.flow.results import Settled, settle
from synthesis.flow.upkeep import leases_expire, order_lost
from synthesis.models import Pool, SegmentJob
from synthesis.services.conversions import Only, Scope, conversion_cancel, conversion_start
from synthesis.services.rows import OrmRows
from synthesis.speaking.conveyor import ConveyorDown
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult, TakeFacts
from tests.factories import chapters_of, project_make, segments_of

pytestmark = pytest.mark.django_db

ROWS = OrmRows()
LIMITS = Limits(window=4, preview_reserve=1, max_attempts=3)


class Belt:
    """A conveyor that keeps what it carries; `down` makes it refuse."""

    def __init__(self) -> None:
        self.orders: list[SpeechOrder] = []
        self.down = False

    def publish(self, order: SpeechOrder) -> None:
        if self.down:
            raise ConveyorDown("away")
        self.orders.append(order)


@pytest.fixture
def belt():
    return Belt()


@pytest.fixture
def project():
    return project_make()


def run(belt, limits=LIMITS):
    return dispatch("cpu", rows=ROWS, conveyor=belt, limits=limits)


def done(order, sha="a" * 64):
    facts = TakeFacts(
        audio_key=f"p/x/{sha}.flac", peaks_key=f"p/x/{sha}.dat", sha256=sha, size_bytes=9, samples=24000,
        rate_hz=24000, speech_start=100, speech_end=20000, rms_db=-20.0, peak_db=-3.0, noise_floor_db=-70.0,
        loudness_lufs=-19.0, model=order.model, revision=order.revision, seed=order.seed,
    )  # fmt: skip
    return SpeechResult.of(order, Outcome.DONE, take=facts.to_wire())


def settled(result):
    return settle(result, rows=ROWS, objects=SHELF, limits=LIMITS, random=random.Random(1))


class Shelf:
    """Storage that has everything but what is `missing`."""

    def __init__(self) -> None:
        self.missing: set[str] = set()

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        return key not in self.missing


SHELF = Shelf()


def segment_of(order):
    return Segment.objects.with_stale().get(public_id=order.segment)


def test_the_window_bounds_what_is_in_flight(project, belt):
    conversion_start(None, Scope.PROJECT, project)
    assert run(belt) == 3  # one place is kept for previews
    assert run(belt) == 0
    assert SegmentJob.objects.filter(state=WorkState.LEASED).count() == 3
    assert {segment_of(o).state for o in belt.orders} == {"rendering"}
    settled(done(belt.orders[0]))
    assert run(belt) == 1


def test_a_preview_passes_a_full_window(project, belt):
    conversion_start(None, Scope.DOCUMENT, chapters_of(project)[0])
    run(belt)
    last = segments_of(project)[-1]
    conversion_start(None, Scope.SEGMENT, last)
    assert run(belt) == 1
    assert (belt.orders[-1].lane, belt.orders[-1].segment) == ("preview", str(last.public_id))


def test_two_books_share(belt):
    one, two = project_make(), project_make()
    conversion_start(None, Scope.PROJECT, one)
    conversion_start(None, Scope.PROJECT, two)
    run(belt, replace(LIMITS, window=5))
    assert sorted({o.project for o in belt.orders}) == sorted([str(one.public_id), str(two.public_id)])


def test_success_makes_the_take_current_and_ends_the_conversion(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion = conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    assert settled(done(belt.orders[0])) is Settled.RECORDED
    segment.refresh_from_db()
    conversion.refresh_from_db()
    assert (segment.state, segment.chosen_take.number, conversion.state) == ("ready", 1, "done")
    assert not segment_of(belt.orders[0]).is_stale


def test_delivered_twice_is_recorded_once(project, belt):
    conversion_start(None, Scope.PROJECT, project)
    run(belt)
    assert settled(done(belt.orders[0])) is Settled.RECORDED
    assert settled(done(belt.orders[0], "b" * 64)) is Settled.OLD
    assert Take.objects.count() == 1
    assert Take.objects.get().sha256 == "a" * 64  # the first ingested wins


def test_busy_twice_leaves_the_new_lease_alone(project, belt):
    """Dispatch, busy, dispatch, then a duplicate of the first busy: the new lease stands."""
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    first = belt.orders[0]
    busy = SpeechResult.of(first, Outcome.BUSY, code="worker_busy", retry_after_ms=0)
    assert settled(busy) is Settled.WAITING
    SegmentJob.objects.update(not_before=None)
    run(belt)
    second = belt.orders[1]
    assert second.dispatch_no == first.dispatch_no + 1
    assert settled(busy) is Settled.OLD
    job = SegmentJob.objects.get()
    assert (job.state, job.dispatch_no, job.attempts) == (WorkState.LEASED, second.dispatch_no, 0)


def test_a_late_success_of_an_older_dispatch_counts(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    SegmentJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert leases_expire(rows=ROWS, limits=LIMITS) == 1
    SegmentJob.objects.update(not_before=None)
    run(belt)
    assert settled(done(belt.orders[0])) is Settled.RECORDED
    assert settled(done(belt.orders[1], "b" * 64)) is Settled.OLD
    assert Take.objects.count() == 1


def test_expiry_touches_nothing_that_moved_on(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    SegmentJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    seen = ROWS.expired(10)
    settled(done(belt.orders[0]))  # finishes between upkeep's read and its write
    assert len(seen) == 1
    assert [order_lost(lost, rows=ROWS, limits=LIMITS) for lost in seen] == [False]
    assert SegmentJob.objects.get().state == WorkState.DONE


def test_transient_failures_use_the_budget_then_fail_with_words(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion = conversion_start(None, Scope.SEGMENT, segment)
    for attempt in (1, 2, 3):
        run(belt)
        result = SpeechResult.of(belt.orders[-1], Outcome.FAILED, code="internal", detail="boom")
        assert settled(result) is (Settled.FAILED if attempt == 3 else Settled.WAITING)
        SegmentJob.objects.filter(state=WorkState.WAITING).update(not_before=None)
    segment.refresh_from_db()
    conversion.refresh_from_db()
    assert (segment.state, segment.failure_code, segment.failure_detail) == ("failed", "internal", "boom")
    assert conversion.state == "done"


def test_permanent_failures_are_not_retried(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    result = SpeechResult.of(belt.orders[0], Outcome.FAILED, code="text_not_speakable", permanent=True)
    assert settled(result) is Settled.FAILED
    assert SegmentJob.objects.get().attempts == 1


def test_an_outage_costs_no_attempt_and_says_since_when(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    for _ in range(6):
        run(belt)
        settled(
            SpeechResult.of(belt.orders[-1], Outcome.UNREACHABLE, code="worker_unreachable", detail="refused")
        )
        SegmentJob.objects.update(not_before=None)
    job = SegmentJob.objects.get()
    assert (job.state, job.attempts) == (WorkState.WAITING, 0)
    assert Pool.objects.get(name="cpu").unreachable_since is not None
    run(belt)
    settled(done(belt.orders[-1]))
    assert Pool.objects.get(name="cpu").unreachable_since is None


def test_an_unpublished_lease_goes_back_at_once(project, belt):
    belt.down = True
    conversion_start(None, Scope.PROJECT, project)
    assert run(belt) == 0
    assert not SegmentJob.objects.filter(state=WorkState.LEASED).exists()
    assert {s.state for s in segments_of(project) if s.spoken} == {"queued"}
    belt.down = False
    SegmentJob.objects.update(not_before=None)
    assert run(belt) == 3


def test_cancelled_means_cancelled(project, belt):
    conversion = conversion_start(None, Scope.PROJECT, project)
    run(belt)
    conversion_cancel(conversion)
    assert settled(done(belt.orders[0])) is Settled.OLD
    assert not Take.objects.exists()
    assert {s.state for s in segments_of(project)} == {"empty"}


def test_a_result_for_a_text_that_moved_on_is_an_old_take(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    segment_edit_text(segment, text="Quite another sentence.", text_rev=1, user=None)
    assert settled(done(belt.orders[0])) is Settled.WAITING
    segment.refresh_from_db()
    assert segment.chosen_take is None
    SegmentJob.objects.update(not_before=None)
    run(belt)
    assert belt.orders[1].spoken == "Quite another sentence."
    assert belt.orders[1].fingerprint != belt.orders[0].fingerprint
    assert settled(done(belt.orders[1], "b" * 64)) is Settled.RECORDED
    segment.refresh_from_db()
    assert (segment.state, segment.takes.count(), segment.chosen_take.sha256) == ("ready", 2, "b" * 64)


def test_an_edit_while_it_waits_is_what_is_spoken(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    segment_edit_text(segment, text="Changed in time.", text_rev=1, user=None)
    run(belt)
    assert [o.spoken for o in belt.orders] == ["Changed in time."]


def test_a_new_take_of_a_locked_line_is_a_candidate(project, belt):
    segment = next(s for s in segments_of(project) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    run(belt)
    settled(done(belt.orders[0]))
    Segment.objects.filter(pk=segment.pk).update(lock_at=timezone.now())
    conversion_start(None, Scope.SEGMENT, segment, only=Only.ALL, new_variant=True)
    run(belt)
    assert settled(done(belt.orders[1], "b" * 64)) is Settled.RECORDED
    segment.refresh_from_db()
    assert segment.chosen_take.sha256 == "a" * 64
    assert segment.takes.get(sha256="b" * 64).is_candidate
    assert segment.state == "ready"


def test_unknown_jobs_are_no_error():
    result = SpeechResult("00000000-0000-7000-8000-000000000000", 1, "f", Outcome.FAILED.value)
    assert settled(result) is Settled.UNKNOWN
