"""Five bugs that the best job systems had, each as a test, on rows in memory and in the database (RELIABILITY §5)."""

from __future__ import annotations

import random

import pytest

from synthesis.flow.collection import garbage_find, garbage_sweep
from synthesis.flow.dispatch import dispatch
from synthesis.flow.ports import JobState, Limits
from synthesis.flow.results import Settled, settle
from synthesis.flow.upkeep import leases_expire, order_lost
from synthesis.speaking.conveyor import ConveyorDown
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult
from tests.synthesis.flow.benches import POOL, facts, heads, lease, record, view

pytestmark = pytest.mark.django_db
LIMITS = Limits(window=4, preview_reserve=1, grace_s=60.0)


class Shelf:
    """Objects; `before_delete` is where the collector can be held."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)
        self.before_delete = lambda: None

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        return key in self.keys

    def old(self, *, seconds: float):
        yield sorted(self.keys)

    def delete(self, key: str) -> None:
        self.before_delete()
        self.keys.discard(key)


class Belt:
    """A conveyor; `reader` is called inside publish: a worker of no time at all."""

    def __init__(self, reader=lambda order: None) -> None:
        self.orders: list[SpeechOrder] = []
        self.reader = reader

    def publish(self, order: SpeechOrder) -> None:
        self.orders.append(order)
        self.reader(order)


def settled(bench, result: SpeechResult, shelf: Shelf | None = None) -> Settled:
    objects = shelf or Shelf(*_keys(result))
    return settle(result, rows=bench.rows, objects=objects, limits=LIMITS, random=random.Random(1))


def _keys(result: SpeechResult) -> list[str]:
    return [result.facts.audio_key, result.facts.peaks_key] if result.facts else []


def done(order: SpeechOrder) -> SpeechResult:
    return SpeechResult.of(order, Outcome.DONE, take=facts(order).to_wire())


def test_two_runs_one_token(bench):
    """Temporal: a retry had its predecessor's token. Dispatch, busy, dispatch, then the first busy once more."""
    conversion = bench.start()
    (first,) = lease(bench, conversion)
    busy = SpeechResult.of(first, Outcome.BUSY, code="worker_busy", retry_after_ms=1000)
    assert settled(bench, busy) is Settled.WAITING
    bench.later(60)
    (second,) = lease(bench, conversion)
    assert (second.job, second.dispatch_no) == (first.job, first.dispatch_no + 1)
    assert settled(bench, busy) is Settled.OLD
    job = view(bench, second)
    assert (job.state, job.dispatch_no, job.attempts) == (JobState.LEASED, 2, 0)


@pytest.mark.parametrize("reclaimed", [False, True])
def test_rescue_from_a_stale_snapshot(bench, reclaimed):
    """River: stuck jobs were read, then updated by id. Finish, or finish and hand out anew, between the two."""
    conversion = bench.start()
    (order,) = lease(bench, conversion, seconds=5)
    bench.later(6)
    (lost,) = bench.rows.expired(9)
    if reclaimed:
        assert settled(bench, SpeechResult.of(order, Outcome.BUSY)) is Settled.WAITING
        (order,) = lease(bench, conversion)
    else:
        assert settled(bench, done(order)) is Settled.RECORDED
    events = len(bench.history(view(bench, order).id))
    assert not order_lost(lost, rows=bench.rows, limits=LIMITS)
    job = view(bench, order)
    assert (job.state, job.dispatch_no) == (
        (JobState.LEASED, 2) if reclaimed else (JobState.DONE, order.dispatch_no)
    )
    assert len(bench.history(job.id)) == events


def test_a_slot_given_back_twice(bench):
    """Solid Queue: a stopped worker was pruned, woke up, and both sides gave its slot back. The window is counted from
    the rows, and whoever comes second changes none."""
    conversion = bench.start()
    orders = lease(bench, conversion, 3, seconds=5)
    bench.later(6)
    assert leases_expire(rows=bench.rows, limits=LIMITS) == 3
    assert leases_expire(rows=bench.rows, limits=LIMITS) == 0
    belt = Belt()
    assert dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS) == 3
    for order in orders:  # the stopped worker goes on
        assert settled(bench, SpeechResult.of(order, Outcome.FAILED, code="internal")) is Settled.OLD
    assert sum(flight.count for flight in bench.rows.in_flight(POOL)) == 3
    assert dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS) == 0
    for order in orders:  # … and once more, successfully: each frees its one place
        assert settled(bench, done(order)) is Settled.RECORDED
        assert settled(bench, done(order)) is Settled.OLD
    assert list(bench.rows.in_flight(POOL)) == []


def test_published_before_recorded(bench):
    """Conductor: "in progress" was written over a faster completion. An engine of no time at all."""
    conversion = bench.start()
    outcomes = []
    belt = Belt(lambda order: outcomes.append(settled(bench, done(order))))
    assert dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS) == 3
    assert outcomes == [Settled.RECORDED] * 3
    assert [view(bench, order).state for order in belt.orders] == [JobState.DONE] * 3
    assert list(bench.rows.in_flight(POOL)) == []
    assert len(heads(bench, conversion)) == 3


def test_a_crash_between_publish_and_the_next_write(bench):
    """… and the other half: the dispatcher dies after publishing. Leases decide, not what the broker holds."""
    bench.start()

    class Killed(BaseException):
        pass

    def die(order: SpeechOrder) -> None:
        raise Killed

    belt = Belt(die)
    with pytest.raises(Killed):
        dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS)
    (order,) = belt.orders
    assert view(bench, order).state is JobState.LEASED  # committed before it was published
    bench.later(LIMITS.confirm_lease_s + 1)
    assert leases_expire(rows=bench.rows, limits=LIMITS) == 3  # seconds later, not a whole lease
    assert settled(bench, done(order)) is Settled.RECORDED


def test_collected_while_being_pushed(bench):
    """Docker's registry: a blob whose manifest arrives during the sweep was deleted. Whichever comes first, the take
    plays."""
    conversion = bench.start()
    (order,) = lease(bench, conversion)
    result = done(order)
    shelf = Shelf(*_keys(result))
    assert garbage_find(rows=bench.rows, objects=shelf, limits=LIMITS) == 2
    bench.later(61)
    # ingested between the collector's list and its delete
    due = list(bench.rows.garbage_due(seconds=60, limit=9))
    assert sorted(due) == sorted(_keys(result))
    assert settled(bench, result, shelf) is Settled.RECORDED
    assert garbage_sweep(rows=bench.rows, objects=shelf, limits=LIMITS) == 0
    assert set(_keys(result)) <= shelf.keys
    # … and when it was swept first, the result is not believed: the sentence is made again, at no cost
    (other,) = lease(bench, conversion)
    late = done(other)
    shelf = Shelf(*_keys(late))
    garbage_find(rows=bench.rows, objects=shelf, limits=LIMITS)
    bench.later(61)
    assert garbage_sweep(rows=bench.rows, objects=shelf, limits=LIMITS) == 2
    assert settled(bench, late, shelf) is Settled.WAITING
    job = view(bench, other)
    assert (job.state, job.attempts, bench.takes()) == (JobState.WAITING, 0, 1)
    (again,) = lease(bench, conversion)
    shelf.keys |= set(_keys(late))  # the worker puts the same bytes again
    assert settled(bench, done(again), shelf) is Settled.RECORDED


def test_no_confirm_is_dispatched_anew_in_seconds(bench):
    """A lost confirm: the order is out, nobody knows. It is handed out anew, and whichever result comes first counts."""
    bench.start()
    belt = Belt()

    def refuse(order: SpeechOrder) -> None:
        raise ConveyorDown("no confirm in 5 s")

    belt.reader = refuse
    assert dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS) == 0
    assert list(bench.rows.in_flight(POOL)) == []
    bench.later(LIMITS.publish_wait_s + 1)
    belt.reader = lambda order: None
    assert dispatch(POOL, rows=bench.rows, conveyor=belt, limits=LIMITS) == 3
    first, again = belt.orders[0], belt.orders[1]
    assert (first.job, first.dispatch_no + 1) == (again.job, again.dispatch_no)
    assert settled(bench, done(first)) is Settled.RECORDED
    assert settled(bench, done(again)) is Settled.OLD
    assert bench.takes() == 1


def test_poison_is_failed_and_its_neighbours_are_not(bench):
    """An order that is lost three times while later ones are answered; what waits in an outage is not blamed."""
    conversion = bench.start()
    for round_ in (1, 2, 3):
        (poison,) = lease(bench, conversion, 1, seconds=5)
        bench.rows.lease_extend(poison.job, poison.dispatch_no, seconds=5)
        (other,) = lease(bench, conversion, 1, seconds=60)
        bench.later(6)
        record(bench, other, "abc"[round_ - 1])
        bench.rows.pool_seen(POOL, "", handed_at=view(bench, other).leased_at)
        leases_expire(rows=bench.rows, limits=LIMITS)
    job = view(bench, poison)
    assert (job.state, job.attempts) == (JobState.FAILED, 0)
    assert bench.segment(job.segment)[:2] == ("failed", "worker_lost")
    for _ in range(5):  # silence
        (order,) = lease(bench, conversion, 1, seconds=5)
        bench.rows.lease_extend(order.job, order.dispatch_no, seconds=5)
        bench.later(6)
        leases_expire(rows=bench.rows, limits=LIMITS)
    assert view(bench, order).state is JobState.WAITING
    assert bench.job(view(bench, order).id)["losses"] == 0
