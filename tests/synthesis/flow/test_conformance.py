"""One suite for two kinds of rows: those in memory, which the simulation runs on, and the database's.

What the simulation proves holds for the real thing only as far as both behave alike; here they are held to that, on
SQLite and, in the suite's second run, on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Protocol

import pytest
from django.db.models import F
from django.utils import timezone

from projects.models import Segment, Take
from projects.services.segments import segment_edit_text
from projects.work import WorkState
from synthesis.flow.ports import JobState, Limits, Move
from synthesis.flow.simulated import SimulatedRows
from synthesis.models import Breaker, Conversion, Garbage, JobEvent, Pool, SegmentJob
from synthesis.services.conversions import (
    Only,
    Scope,
    _jobs_create,
    conversion_cancel,
    conversion_pause,
    conversion_resume,
    conversion_start,
)
from synthesis.services.rows import OrmRows
from synthesis.speaking.wire import SpeechOrder, TakeFacts
from tests.factories import project_make, segments_of, voice_make

LIMITS = Limits(window=4, preview_reserve=1)
POOL = "cpu"


class Bench(Protocol):
    """Rows with one book of six sentences, and what a test needs to look at and to move time."""

    rows: Any
    segments: list[int]

    def start(self, segments: list[int] | None = None, *, lane: str = "bulk") -> int: ...
    def rival(self, segment: int) -> None: ...
    def other_voice(self) -> int: ...
    def voice_of(self, job: int) -> int: ...
    def edit(self, segment: int) -> None: ...
    def keep(self, segment: int) -> None: ...
    def cancel(self, conversion: int) -> int: ...
    def pause(self, conversion: int) -> bool: ...
    def resume(self, conversion: int) -> bool: ...
    def later(self, seconds: float) -> None: ...
    def job(self, pk: int) -> dict[str, Any]: ...
    def segment(self, pk: int) -> tuple[str, str, bool]: ...
    def conversion(self, pk: int) -> str: ...
    def takes(self) -> int: ...
    def candidates(self) -> int: ...
    def history(self, pk: int) -> list[tuple[str, str, int, int, str]]: ...


class MemoryBench:
    def __init__(self, *, exclusive: bool) -> None:
        self.rows = SimulatedRows(LIMITS, exclusive=exclusive)
        self.segments = [self.rows.segment_add(f"words {n}") for n in range(6)]
        self._edits = 0

    def start(self, segments=None, *, lane="bulk"):
        wanted = self.segments if segments is None else segments
        return self.rows.conversion_start(wanted, lane=lane, pool=POOL)

    def rival(self, segment):
        self.start([segment], lane="preview")

    def other_voice(self):
        return 2

    def voice_of(self, job):
        return self.rows.tables["job"][job]["voice"]

    def edit(self, segment):
        self._edits += 1
        self.rows.segment_edit(segment, f"other words {self._edits}")

    def keep(self, segment):
        self.rows.tables["segment"][segment]["kept"] = True

    def cancel(self, conversion):
        return self.rows.conversion_cancel(conversion)

    def pause(self, conversion):
        return self.rows.conversion_switch(conversion, "paused")

    def resume(self, conversion):
        return self.rows.conversion_switch(conversion, "running")

    def later(self, seconds):
        self.rows.now += seconds

    def job(self, pk):
        return self.rows.tables["job"][pk]

    def segment(self, pk):
        row = self.rows.tables["segment"][pk]
        return row["state"], row["code"], row["chosen"] is not None

    def conversion(self, pk):
        return self.rows.tables["conversion"][pk]["state"]

    def takes(self):
        return len(self.rows.tables["take"])

    def candidates(self):
        return sum(take["candidate"] for take in self.rows.tables["take"].values())

    def history(self, pk):
        return [
            (e.source, e.to, e.dispatch_no, e.attempts, e.reason) for e in self.rows.events if e.job == pk
        ]


class DatabaseBench:
    """Time moves by shifting every stored time into the past."""

    _TIMES = (
        (SegmentJob, ("not_before", "lease_until", "leased_at")),
        (Pool, ("answered_at", "unreachable_since")),
        (Breaker, ("opened_at", "probe_at")),
        (Garbage, ("marked_at", "swept_at")),
        (Conversion, ("created_at", "handed_at")),
    )

    def __init__(self) -> None:
        self.rows = OrmRows()
        words = ("One lamp.", "Two lamps.", "Three lamps.", "Four lamps.", "Five lamps.", "Six lamps.")
        self.project = project_make(chapters=[("One", (" ".join(words),))], headings=False)
        self.segments = [segment.pk for segment in segments_of(self.project)]
        assert len(self.segments) == 6
        self._edits = 0

    def start(self, segments=None, *, lane="bulk"):
        if segments is None:
            made = conversion_start(None, Scope.PROJECT, self.project)
            return made.pk
        assert lane == "preview"
        made = [
            conversion_start(None, Scope.SEGMENT, Segment.objects.get(pk=pk), only=Only.ALL)
            for pk in segments
        ]
        return made[-1].pk if made[-1] else 0

    def rival(self, segment):
        """Another open job of a sentence, as two tabs at the same moment make it."""
        conversion = Conversion.objects.create(project=self.project, scope="segment", lane="preview")
        _jobs_create(conversion, [Segment.objects.get(pk=segment)], new_variant=False)

    def other_voice(self):
        return voice_make("Bea").pk

    def voice_of(self, job):
        return SegmentJob.objects.get(pk=job).voice_id

    def edit(self, segment):
        self._edits += 1
        row = Segment.objects.get(pk=segment)
        segment_edit_text(row, text=f"Other words {self._edits}.", text_rev=row.text_rev, user=None)

    def keep(self, segment):
        Segment.objects.filter(pk=segment).update(lock_at=timezone.now())

    def cancel(self, conversion):
        return conversion_cancel(Conversion.objects.get(pk=conversion))

    def pause(self, conversion):
        return conversion_pause(Conversion.objects.get(pk=conversion))

    def resume(self, conversion):
        return conversion_resume(Conversion.objects.get(pk=conversion))

    def later(self, seconds):
        for model, names in self._TIMES:
            for name in names:
                model.objects.exclude(**{name: None}).update(**{name: F(name) - timedelta(seconds=seconds)})

    def job(self, pk):
        return SegmentJob.objects.values().get(pk=pk)

    def segment(self, pk):
        row = Segment.objects.get(pk=pk)
        return row.state, row.failure_code, row.chosen_take_id is not None

    def conversion(self, pk):
        return Conversion.objects.get(pk=pk).state

    def takes(self):
        return Take.objects.count()

    def candidates(self):
        return Take.objects.filter(is_candidate=True).count()

    def history(self, pk):
        events = JobEvent.objects.filter(kind="synthesis.segmentjob", job=pk).order_by("seq")
        return list(events.values_list("source", "to", "dispatch_no", "attempts", "reason"))


@pytest.fixture(params=["memory", "memory, exclusive", "database"])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "database":
        request.getfixturevalue("db")
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr("synthesis.services.conversions.dispatch_soon", lambda _pool: None)
        yield DatabaseBench()
    else:
        yield MemoryBench(exclusive="exclusive" in request.param)


pytestmark = pytest.mark.django_db


def heads(bench: Bench, conversion: int, limit: int = 9, lane: str = "bulk", **more: Any) -> list[int]:
    return list(bench.rows.heads(POOL, lane, conversion, limit, **more))


def lease(bench: Bench, conversion: int, count: int = 1, seconds: float = 60.0) -> list[SpeechOrder]:
    with bench.rows.dispatcher(POOL) as alone:
        assert alone
        return list(bench.rows.lease(heads(bench, conversion, count), seconds=seconds))


def view(bench: Bench, order: SpeechOrder):
    with bench.rows.atomic():
        return bench.rows.job_lock(order.job)


def move(bench: Bench, order: SpeechOrder, to: JobState, **more: Any) -> bool:
    seen = more.pop("seen", JobState.LEASED)
    dispatch_no = more.pop("dispatch_no", order.dispatch_no)
    return bench.rows.job_move(Move(order.job, seen, dispatch_no, to, "results", **more))


def facts(order: SpeechOrder, sha: str = "a") -> TakeFacts:
    key = f"p/x/takes/{order.fingerprint}/{sha * 64}"
    return TakeFacts(
        audio_key=f"{key}.flac", peaks_key=f"{key}.dat", sha256=sha * 64, size_bytes=9, samples=24000,
        rate_hz=24000, speech_start=100, speech_end=20000, rms_db=-20.0, peak_db=-3.0, noise_floor_db=-70.0,
        loudness_lufs=-19.0, model=order.model, revision=order.revision, seed=order.seed,
    )  # fmt: skip


def record(bench: Bench, order: SpeechOrder, sha: str = "a") -> int:
    with bench.rows.atomic():
        job = bench.rows.job_lock(order.job)
        take = bench.rows.take_record(job, facts(order, sha))
        bench.rows.take_choose(job, take)
        bench.rows.job_move(Move(order.job, job.state, job.dispatch_no, JobState.DONE, "results"))
    return take


# -- dispatch ----------------------------------------------------------------------------------------------------------
def test_jobs_wait_in_reading_order(bench):
    conversion = bench.start()
    jobs = heads(bench, conversion)
    assert [
        bench.job(pk)["segment_id" if "segment_id" in bench.job(pk) else "segment"] for pk in jobs
    ] == bench.segments
    assert heads(bench, conversion, 2) == jobs[:2]
    assert heads(bench, conversion, lane="preview") == []
    assert list(bench.rows.heads("elsewhere", "bulk", conversion, 9)) == []


def test_voices_can_be_left_out_or_wanted(bench):
    conversion = bench.start()
    jobs = heads(bench, conversion)
    voice, other = bench.voice_of(jobs[0]), bench.other_voice()
    assert heads(bench, conversion, without=[voice]) == []
    assert heads(bench, conversion, without=[other]) == jobs
    assert heads(bench, conversion, only=voice) == jobs
    assert heads(bench, conversion, only=other) == []


def test_a_lease_counts_itself_and_names_its_dispatch(bench):
    conversion = bench.start()
    orders = lease(bench, conversion, 2)
    assert [order.dispatch_no for order in orders] == [1, 1]
    job = view(bench, orders[0])
    assert (job.state, job.dispatch_no, job.attempts, job.in_lease) == (JobState.LEASED, 1, 0, True)
    assert [flight.count for flight in bench.rows.in_flight(POOL)] == [2]
    assert bench.segment(job.segment) == ("rendering", "", False)
    assert bench.history(job.id) == [("", "waiting", 0, 0, ""), ("waiting", "leased", 1, 0, "")]


def test_what_is_leased_is_not_leased_again(bench):
    conversion = bench.start()
    jobs = heads(bench, conversion, 2)
    assert len(bench.rows.lease(jobs, seconds=60)) == 2
    assert list(bench.rows.lease(jobs, seconds=60)) == []
    assert bench.job(jobs[0])["dispatch_no"] == 1


def test_a_lease_is_extended_only_by_its_own_dispatch(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion, 1, seconds=10)
    assert not bench.rows.lease_extend(order.job, 2, seconds=100)
    assert not bench.job(view(bench, order).id)["published"]
    assert bench.rows.lease_extend(order.job, 1, seconds=100)
    bench.later(50)
    assert view(bench, order).in_lease
    assert bench.job(view(bench, order).id)["published"]
    assert list(bench.rows.expired(9)) == []
    assert move(bench, order, JobState.DONE)
    assert not bench.rows.lease_extend(order.job, 1, seconds=100)


def test_an_edit_re_aims_what_waits(bench):
    conversion = bench.start()
    first = heads(bench, conversion, 1)[0]
    before = bench.job(first)["fingerprint"]
    bench.edit(bench.segments[0])
    (order,) = lease(bench, conversion)
    assert order.fingerprint != before
    assert view(bench, order).recipe == view(bench, order).segment_recipe


def test_two_jobs_that_come_to_want_the_same_take_become_one(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    bench.edit(bench.segments[0])  # the leased job still makes the old words
    bench.rival(bench.segments[0])
    assert move(bench, order, JobState.WAITING)
    again = heads(bench, conversion, 1)
    assert list(bench.rows.lease(again, seconds=60)) == []
    assert bench.job(again[0])["state"] == "cancelled"
    assert bench.history(again[0])[-1][1:] == ("cancelled", 1, 0, "superseded")
    assert bench.segment(bench.segments[0])[0] == "queued"  # the other still wants it


def test_asked_for_twice_is_one_job(bench):
    bench.start([bench.segments[0]], lane="preview")
    again = bench.start([bench.segments[0]], lane="preview")
    if again:
        assert heads(bench, again, lane="preview") == []


def test_paused_and_cancelled_conversions_stand_in_no_line(bench):
    conversion = bench.start()
    assert [line.conversion for line in bench.rows.lines("bulk")] == [conversion]
    assert list(bench.rows.lines("preview")) == []
    assert bench.pause(conversion)
    assert not bench.pause(conversion)
    assert list(bench.rows.lines("bulk")) == []
    assert bench.resume(conversion)
    (line,) = bench.rows.lines("bulk")
    assert line.idle_s < 5
    bench.later(40)
    assert bench.rows.lines("bulk")[0].idle_s >= 40
    lease(bench, conversion)
    assert bench.rows.lines("bulk")[0].idle_s < 5
    bench.cancel(conversion)
    assert list(bench.rows.lines("bulk")) == []


# -- results -----------------------------------------------------------------------------------------------------------
def test_unknown_jobs_are_none(bench):
    with bench.rows.atomic():
        assert bench.rows.job_lock("00000000-0000-7000-8000-000000000000") is None


@pytest.mark.parametrize(
    ("guard", "moves"),
    [
        ({}, True),
        ({"dispatch_no": 2}, False),
        ({"dispatch_no": 0}, False),
        ({"seen": JobState.WAITING}, False),
        ({"seen": JobState.DONE}, False),
    ],
)
def test_a_move_changes_what_its_guard_says_or_nothing(bench, guard, moves):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    assert move(bench, order, JobState.WAITING, code="busy", **guard) is moves
    job = view(bench, order)
    assert job.state is (JobState.WAITING if moves else JobState.LEASED)
    assert len(bench.history(job.id)) == (3 if moves else 2)


def test_waiting_again_is_not_before_its_time(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    job = view(bench, order)
    assert move(bench, order, JobState.WAITING, wait_s=30, attempts=1, losses=2, code="internal")
    assert bench.segment(job.segment)[0] == "queued"
    assert job.id not in heads(bench, conversion)
    bench.later(31)
    assert heads(bench, conversion)[0] == job.id
    assert (bench.job(job.id)["attempts"], bench.job(job.id)["losses"]) == (1, 2)
    assert bench.history(job.id)[-1] == ("leased", "waiting", 1, 1, "internal")
    (again,) = lease(bench, conversion)
    assert again.dispatch_no == 2


def test_who_reports_late_is_alive(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    move(bench, order, JobState.WAITING, losses=2)
    job = view(bench, order)
    with bench.rows.atomic():
        bench.rows.job_alive(job)
    assert (bench.job(job.id)["losses"], bench.job(job.id)["state"]) == (0, "waiting")
    assert len(bench.history(job.id)) == 3  # no change of state


def test_a_failure_stands_on_job_and_sentence(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    job = view(bench, order)
    assert move(bench, order, JobState.FAILED, attempts=3, code="internal", detail="boom")
    assert bench.segment(job.segment) == ("failed", "internal", False)
    assert (bench.job(job.id)["state"], bench.job(job.id)["attempts"]) == ("failed", 3)
    assert bench.history(job.id)[-1] == ("leased", "failed", 1, 3, "internal")
    for to in JobState:  # closed is closed
        assert not move(bench, order, to)


def test_the_first_take_of_a_fingerprint_is_the_take(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    with bench.rows.atomic():
        job = bench.rows.job_lock(order.job)
        first = bench.rows.take_record(job, facts(order, "a"))
        assert bench.rows.take_record(job, facts(order, "b")) == first
        bench.rows.take_choose(job, first)
        bench.rows.job_move(Move(order.job, job.state, 1, JobState.DONE, "results"))
    assert bench.takes() == 1
    assert bench.segment(job.segment) == ("ready", "", True)


def test_the_last_job_closes_its_conversion(bench):
    conversion = bench.start()
    orders = lease(bench, conversion, 6)
    for order in orders[:-1]:
        record(bench, order)
        assert bench.conversion(conversion) == "running"
    move(bench, orders[-1], JobState.FAILED, code="internal")
    assert bench.conversion(conversion) == "done"


def test_a_rolled_back_transaction_leaves_nothing(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)

    class Crash(Exception):
        pass

    def crash() -> None:
        with bench.rows.atomic():
            job = bench.rows.job_lock(order.job)
            bench.rows.take_choose(job, bench.rows.take_record(job, facts(order)))
            bench.rows.job_move(Move(order.job, job.state, 1, JobState.DONE, "results"))
            raise Crash

    with pytest.raises(Crash):
        crash()
    assert bench.takes() == 0
    assert view(bench, order).state is JobState.LEASED
    assert bench.segment(bench.segments[0]) == ("rendering", "", False)
    assert len(bench.history(view(bench, order).id)) == 2


def test_a_kept_line_gets_a_candidate(bench):
    conversion = bench.start()
    orders = lease(bench, conversion, 6)
    for order in orders:
        record(bench, order)
    bench.keep(bench.segments[0])
    bench.edit(bench.segments[0])
    again = bench.start([bench.segments[0]], lane="preview")
    with bench.rows.dispatcher(POOL):
        (order,) = bench.rows.lease(heads(bench, again, lane="preview"), seconds=60)
    record(bench, order, "b")
    assert (bench.takes(), bench.candidates()) == (7, 1)
    assert bench.segment(bench.segments[0]) == ("ready", "", True)


def test_cancel_closes_what_is_open_and_nothing_else(bench):
    conversion = bench.start()
    orders = lease(bench, conversion, 2)
    record(bench, orders[0])
    assert bench.cancel(conversion) == 5
    assert bench.conversion(conversion) == "cancelled"
    assert bench.segment(bench.segments[0]) == ("ready", "", True)
    assert bench.segment(bench.segments[1]) == ("empty", "", False)
    assert not move(bench, orders[1], JobState.WAITING)
    assert bench.history(view(bench, orders[1]).id)[-1][:2] == ("leased", "cancelled")


# -- upkeep ------------------------------------------------------------------------------------------------------------
def test_expired_leases_say_whether_the_order_is_to_blame(bench):
    conversion = bench.start()
    (before,) = lease(bench, conversion, 1, seconds=100)
    bench.later(5)
    one, two, three = lease(bench, conversion, 3, seconds=10)
    for order in (one, two):
        bench.rows.lease_extend(order.job, order.dispatch_no, seconds=10)
    assert list(bench.rows.expired(9)) == []
    bench.later(11)
    lost = bench.rows.expired(9)
    assert {entry.public_id for entry in lost} == {one.job, two.job, three.job}
    assert [entry.blamed for entry in lost] == [False] * 3  # the pool has been silent: an outage
    assert len(bench.rows.expired(2)) == 2
    bench.rows.pool_seen(POOL, "", handed_at=None)
    bench.rows.pool_seen(POOL, "", handed_at=view(bench, before).leased_at)
    assert [entry.blamed for entry in bench.rows.expired(9)] == [
        False
    ] * 3  # only what was handed out earlier
    later = view(bench, lease(bench, conversion, 1, seconds=100)[0]).leased_at
    bench.rows.pool_seen(POOL, "", handed_at=later)
    blamed = {entry.public_id: entry.blamed for entry in bench.rows.expired(9)}
    assert blamed == {one.job: True, two.job: True, three.job: False}  # never confirmed: nobody had it
    bench.rows.pool_seen(POOL, "", handed_at=view(bench, before).leased_at)  # late news moves nothing back
    assert {entry.public_id: entry.blamed for entry in bench.rows.expired(9)} == blamed


# -- breaker -----------------------------------------------------------------------------------------------------------
def test_a_breaker_opens_is_probed_and_closes(bench):
    conversion = bench.start()
    voice = bench.voice_of(heads(bench, conversion, 1)[0])
    rows = bench.rows
    with rows.atomic():
        fresh = rows.breaker_lock(POOL, voice)
        assert (fresh.streak, fresh.code, fresh.is_open) == (0, "", False)
        rows.breaker_set(fresh.subject, streak=2, code="internal", detail="", last=7, open_for_s=None)
    assert list(rows.holds(POOL)) == []
    with rows.atomic():
        seen = rows.breaker_lock(POOL, voice)
        assert (seen.streak, seen.code, seen.last, seen.is_open) == (2, "internal", 7, False)
        rows.breaker_set(seen.subject, streak=3, code="internal", detail="", last=8, open_for_s=30.0)
    (hold,) = rows.holds(POOL)
    assert (hold.subject, hold.voice, hold.probe_due) == (seen.subject, voice, False)
    assert list(rows.holds("elsewhere")) == []
    assert not rows.breaker_probed(hold.subject, most_s=50)
    bench.later(31)
    assert rows.holds(POOL)[0].probe_due
    assert rows.breaker_probed(hold.subject, most_s=50)
    assert not rows.breaker_probed(hold.subject, most_s=50)  # one probe at a time
    bench.later(31)
    assert rows.breaker_probed(
        hold.subject, most_s=50
    )  # the next waits twice as long, but no longer than that
    bench.later(49)
    assert not rows.breaker_probed(hold.subject, most_s=50)
    bench.later(2)
    assert rows.breaker_probed(hold.subject, most_s=50)
    assert rows.breakers_reset(POOL, voice)
    assert list(rows.holds(POOL)) == []
    assert not rows.breakers_reset(POOL, voice)


def test_a_pool_is_a_subject_of_its_own(bench):
    bench.start()
    with bench.rows.atomic():
        pool = bench.rows.breaker_lock(POOL, None)
        bench.rows.breaker_set(pool.subject, streak=3, code="internal", detail="", last=1, open_for_s=9.0)
    assert [(hold.subject, hold.voice) for hold in bench.rows.holds(POOL)] == [(f"pool:{POOL}", None)]


# -- collection --------------------------------------------------------------------------------------------------------
def test_only_what_no_take_points_at_is_unreferenced(bench):
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    record(bench, order)
    mine, other = facts(order, "a"), facts(order, "b")
    keys = [mine.audio_key, mine.peaks_key, other.audio_key, other.peaks_key]
    assert sorted(bench.rows.unreferenced(keys)) == sorted(keys[2:])


def test_marks_age_are_held_and_swept_once(bench):
    rows, key = bench.rows, "p/x/takes/f/" + "c" * 64 + ".flac"
    assert rows.garbage_mark([key]) == 1
    bench.later(50)
    assert rows.garbage_mark([key]) == 0  # it keeps its time
    assert list(rows.garbage_due(seconds=60, limit=9)) == []
    with rows.atomic():
        assert not rows.garbage_hold(key, seconds=60)
    bench.later(11)
    assert list(rows.garbage_due(seconds=60, limit=9)) == [key]
    with rows.atomic():
        assert rows.garbage_hold(key, seconds=60)
        rows.garbage_swept(key)
    with rows.atomic():
        assert not rows.garbage_hold(key, seconds=60)
        assert rows.garbage_lock([key])  # remembered for a while
    assert list(rows.garbage_due(seconds=0, limit=9)) == []
    assert rows.garbage_forget(seconds=60) == 0
    bench.later(61)
    assert rows.garbage_forget(seconds=60) == 1
    with rows.atomic():
        assert not rows.garbage_lock([key])


def test_what_was_swept_and_lies_there_again_is_marked_anew(bench):
    rows, key = bench.rows, "p/x/takes/f/" + "d" * 64 + ".flac"
    rows.garbage_mark([key])
    bench.later(100)
    with rows.atomic():
        assert rows.garbage_hold(key, seconds=60)
        rows.garbage_swept(key)
    rows.garbage_mark([key])
    with rows.atomic():
        assert not rows.garbage_hold(key, seconds=60)
    bench.later(61)
    with rows.atomic():
        assert rows.garbage_hold(key, seconds=60)


def test_a_cleared_mark_is_gone(bench):
    rows, key = bench.rows, "p/x/takes/f/" + "e" * 64 + ".flac"
    rows.garbage_mark([key])
    with rows.atomic():
        assert rows.garbage_lock([key])
        rows.garbage_clear([key])
    bench.later(100)
    assert list(rows.garbage_due(seconds=0, limit=9)) == []
    with rows.atomic():
        assert not rows.garbage_hold(key, seconds=0)
        assert not rows.garbage_lock([key])


def test_the_flow_and_the_rows_mean_the_same_states():
    assert {state.value for state in JobState} == {state.value for state in WorkState}
