"""One suite for two kinds of rows: those in memory, which the simulation runs on, and the database's.

What the simulation proves holds for the real thing only as far as both behave alike; here they are held to that, on
SQLite and, in the suite's second run, on PostgreSQL.
"""

from __future__ import annotations

import pytest

from projects.work import WorkState
from synthesis.flow.ports import JobState, Move
from tests.synthesis.flow.benches import POOL, facts, heads, lease, move, record, view

pytestmark = pytest.mark.django_db


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
