"""The queue by itself, with a clock that only moves when told: examples, then whole days in milliseconds."""

import random

import pytest

from inference_worker.scheduler import Ask, Batch, CostModel, Lane, Limits, Refused, Scheduler, Wait


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def make(**limits) -> tuple[Scheduler, Clock]:
    clock = Clock()
    defaults = {"max_items": 4, "linger_s": 0.0, "max_queue_s": 1e9, "bulk_batch_s": 1e9}
    scheduler = Scheduler(Limits(**{**defaults, **limits}), clock, CostModel(device_s_per_audio_s=0.1))
    return scheduler, clock


def ids(batch: Batch | Wait) -> list[str]:
    assert isinstance(batch, Batch)
    return sorted(t for e in batch.entries for t in e.tickets)


def test_nearest_lengths_are_batched_around_the_oldest():
    s, _ = make(max_items=3)
    for name, cost in [("a", 5.0), ("b", 50.0), ("c", 5.2), ("d", 4.9), ("e", 49.0), ("f", 5.5)]:
        s.offer(Ask(name, cost))
    assert ids(s.next()) == ["a", "c", "d"]
    assert ids(s.next()) == ["b", "e"]
    assert ids(s.next()) == ["f"]
    assert s.next() == Wait(None)


def test_waste_bound_keeps_a_short_line_out_of_a_long_batch():
    s, _ = make(max_items=8, waste=1.15)
    s.offer(Ask("long", 10.0))
    s.offer(Ask("short", 1.0))
    assert ids(s.next()) == ["long"]


def test_memory_budget_bounds_items_times_longest():
    s, _ = make(max_items=8, memory_cost=31.0)
    for i in range(8):
        s.offer(Ask(str(i), 10.0))
    batch = s.next()
    assert isinstance(batch, Batch)
    assert len(batch.entries) == 3
    assert batch.padded == 30.0


def test_bulk_batch_is_capped_in_device_seconds_but_one_long_text_goes_alone():
    s, _ = make(max_items=8, bulk_batch_s=2.0)  # 20 s of audio
    for i in range(4):
        s.offer(Ask(str(i), 9.0))
    s.offer(Ask("long", 60.0, job="other"))
    assert len(s.next().entries) == 2
    assert ids(s.next()) == ["long"]


def test_interactive_goes_first_and_alone():
    s, _ = make()
    for i in range(10):
        s.offer(Ask(f"b{i}", 5.0))
    s.offer(Ask("p", 5.0, Lane.INTERACTIVE))
    assert ids(s.next()) == ["p"]


def test_bulk_gets_a_batch_each_ageing_period_under_interactive_pressure():
    s, clock = make(max_items=1, ageing_s=25.0)
    s.offer(Ask("bulk", 5.0))
    n, seen = 0, None
    while seen is None and n < 100:
        s.offer(Ask(f"p{n}", 5.0, Lane.INTERACTIVE))
        n += 1
        clock.now += 1.0
        if ids(s.next()) == ["bulk"]:
            seen = clock.now
    assert seen == pytest.approx(25.0, abs=1.0)


def test_round_robin_over_jobs():
    s, _ = make(max_items=1)
    for i in range(5):
        s.offer(Ask(f"big{i}", 5.0, job="big"))
    for i in range(2):
        s.offer(Ask(f"small{i}", 5.0, job="small"))
    assert [ids(s.next())[0] for _ in range(7)] == [
        "big0",
        "small0",
        "big1",
        "small1",
        "big2",
        "big3",
        "big4",
    ]


def test_groups_are_not_mixed():
    s, _ = make(max_items=8)
    for i in range(6):
        s.offer(Ask(str(i), 5.0, group="en" if i % 2 else "de"))
    assert ids(s.next()) == ["0", "2", "4"]
    assert ids(s.next()) == ["1", "3", "5"]


def test_full_queue_refuses_with_the_time_until_half_is_done():
    s, _ = make(max_queue_s=10.0)
    for i in range(10):
        assert s.offer(Ask(str(i), 10.0)) is None  # a second of device time each
    refused = s.offer(Ask("late", 10.0))
    assert refused == Refused(pytest.approx(5.0))
    assert s.offer(Ask("preview", 10.0, Lane.INTERACTIVE)) is None  # a book does not refuse previews
    assert s.waiting() == 11


def test_a_request_larger_than_the_queue_is_taken_when_it_is_empty():
    s, _ = make(max_queue_s=1.0)
    assert s.offer(Ask("huge", 1000.0)) is None


def test_deadline_never_reaches_the_device_and_is_told_once():
    s, clock = make()
    s.offer(Ask("a", 5.0, deadline=10.0))
    s.offer(Ask("b", 5.0, deadline=20.0))
    clock.now = 10.0
    assert s.expire() == ["a"]
    assert s.expire() == []
    assert ids(s.next()) == ["b"]
    clock.now = 30.0
    assert s.expire() == []  # running: it will be answered


def test_departed_callers_are_dropped():
    s, _ = make()
    s.offer(Ask("a", 5.0))
    s.offer(Ask("b", 5.0))
    assert s.cancel("a")
    assert not s.cancel("a")
    assert ids(s.next()) == ["b"]
    assert not s.cancel("b")
    assert s.queued_s() == 0.0


def test_single_flight_only_while_queued_and_a_preview_lifts_it():
    s, _ = make(max_items=1)
    s.offer(Ask("x", 5.0, key="k0"))
    s.offer(Ask("a", 5.0, key="k"))
    s.offer(Ask("b", 5.0, Lane.INTERACTIVE, key="k"))
    assert s.waiting() == 2
    assert ids(s.next()) == ["a", "b"]
    s.offer(Ask("c", 5.0, key="k"))
    assert s.waiting() == 2  # "a" runs already: its sound is not shared any more


def test_one_of_two_sharers_may_leave():
    s, _ = make()
    s.offer(Ask("a", 5.0, key="k"))
    s.offer(Ask("b", 5.0, key="k"))
    s.cancel("a")
    assert ids(s.next()) == ["b"]


def test_linger_only_for_bulk_on_an_idle_device():
    s, clock = make(linger_s=0.015)
    s.offer(Ask("a", 5.0))
    assert s.next() == Wait(pytest.approx(0.015))
    s.offer(Ask("p", 5.0, Lane.INTERACTIVE))
    assert ids(s.next()) == ["p"]
    clock.now = 0.016
    assert ids(s.next()) == ["a"]


def test_no_linger_when_the_device_was_busy():
    s, clock = make(linger_s=0.015)
    s.offer(Ask("a", 5.0))
    clock.now = 3.0  # the device came free
    assert ids(s.next()) == ["a"]


def test_out_of_memory_halves_and_learns():
    s, _ = make(max_items=8, memory_cost=1000.0)
    for i in range(8):
        s.offer(Ask(str(i), 10.0))
    batch = s.next()
    assert s.oom(batch) == []
    assert s.limits.memory_cost == pytest.approx(64.0)
    first, second = s.next(), s.next()
    assert len(first.entries) == len(second.entries) == 4
    for i in range(8, 16):
        s.offer(Ask(str(i), 10.0))
    assert len(s.next().entries) == 6  # 6 × 10 ≤ 64


def test_out_of_memory_alone_is_refused():
    s, _ = make(max_items=1)
    s.offer(Ask("a", 10.0))
    batch = s.next()
    assert s.oom(batch) == batch.entries


def test_poison_runs_alone_after_two_crashes_then_is_refused_and_neighbours_live():
    s, _ = make(max_items=4)
    for name in ("a", "poison", "c", "d"):
        s.offer(Ask(name, 5.0))
    refused, answered, crashes = [], [], 0
    while isinstance(batch := s.next(), Batch):
        if "poison" in ids(batch):
            crashes += 1
            refused += [t for e in s.crashed(batch) for t in e.tickets]
        else:
            answered += ids(batch)
    assert crashes == 3
    assert refused == ["poison"]
    assert sorted(answered) == ["a", "c", "d"]


def test_what_left_during_a_crash_does_not_come_back():
    s, _ = make()
    s.offer(Ask("a", 5.0))
    s.offer(Ask("b", 5.0))
    batch = s.next()
    assert s.crashed(batch, gone=lambda t: t == "a") == []
    assert ids(s.next()) == ["b"]


def test_engine_error_isolates_each_entry():
    s, _ = make()
    for name in "abc":
        s.offer(Ask(name, 5.0))
    assert s.failed(s.next()) == []
    singles = [s.next() for _ in range(3)]
    assert [len(b.entries) for b in singles] == [1, 1, 1]
    assert s.failed(singles[0]) == singles[0].entries


def test_cancel_reaches_forced_halves():
    s, _ = make(max_items=2)
    s.offer(Ask("a", 5.0))
    s.offer(Ask("b", 5.0))
    s.oom(s.next())
    s.cancel("a")
    assert ids(s.next()) == ["b"]
    assert s.next() == Wait(None)


def test_drain_of_one_lane():
    s, _ = make()
    s.offer(Ask("a", 5.0))
    s.offer(Ask("p", 5.0, Lane.INTERACTIVE))
    assert s.drain(Lane.BULK) == ["a"]
    assert ids(s.next()) == ["p"]


def test_cost_model_learns_a_slow_voice():
    model = CostModel(seconds_per_char=0.05)
    for _ in range(60):
        model.learn_audio("slow", "x" * 100, 10.3)
    assert model.audio_s("slow", "x" * 100) == pytest.approx(10.3, rel=0.05)
    assert model.audio_s("other", "x" * 100) == pytest.approx(5.3)
    assert model.audio_s("slow", "x" * 100, speed=2.0) == pytest.approx(5.15, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_simulation_of_ten_thousand_requests(seed: int):
    """Two replicas, crashes, lack of memory, leavers, deadlines: every request ends exactly once, in bounds."""
    rng = random.Random(seed)
    clock = Clock()
    limits = Limits(max_items=8, memory_cost=200.0, max_queue_s=400.0, ageing_s=25.0, linger_s=0.015)
    s = Scheduler(limits, clock, CostModel(device_s_per_audio_s=0.02))
    s.replicas = 2
    real_memory = 120.0  # what the device truly holds: found out by failing
    total = 10_000
    arrivals = sorted(
        (rng.uniform(0, 700) if rng.random() < 0.8 else rng.choice([100.0, 300.0]), i) for i in range(total)
    )
    ends: dict[str, str] = {}
    asked: dict[str, tuple[float, Lane]] = {}
    waits: dict[Lane, list[float]] = {lane: [] for lane in Lane}
    bulk_waits: list[float] = []

    def end(name: str, how: str) -> None:
        assert name not in ends, f"{name} answered twice: {ends[name]}, {how}"
        ends[name] = how

    free = [0.0, 0.0]
    running: list[tuple[float, int, Batch]] = []
    leaving: list[tuple[float, str]] = []
    at = 0
    while len(ends) < total:
        while at < total and arrivals[at][0] <= clock.now:
            i = arrivals[at][1]
            at += 1
            name = str(i)
            lane = Lane.INTERACTIVE if rng.random() < 0.1 else Lane.BULK
            deadline = clock.now + rng.uniform(1, 200) if rng.random() < 0.1 else None
            cost = rng.uniform(0.5, 20.0)
            asked[name] = (clock.now, lane)
            refused = s.offer(Ask(name, cost, lane, f"job{i % 7}", "en" if i % 5 else "ko", None, deadline))
            if refused:
                assert s.queued_s(lane) > 0.9 * limits.max_queue_s - 1
                end(name, "refused")
            elif rng.random() < 0.05:
                leaving.append((clock.now + rng.uniform(0, 60), name))
        for when, name in [x for x in leaving if x[0] <= clock.now]:
            leaving.remove((when, name))
            if s.cancel(name):
                end(name, "left")
        for name in s.expire():
            end(name, "deadline")
        for job in [r for r in running if r[0] <= clock.now]:
            running.remove(job)
            _, slot, batch = job
            free[slot] = clock.now
            if batch.padded > real_memory and len(batch.entries) > 1:
                assert s.oom(batch) == []
                continue
            if rng.random() < 0.01:
                for e in s.crashed(batch):
                    for t in list(e.tickets):
                        end(t, "poison")
                continue
            for e in batch.entries:
                for t in e.tickets:
                    end(t, "ok")
        busy = {slot for _, slot, _ in running}
        for slot in (0, 1):
            if slot in busy:
                continue
            decision = s.next()
            if not isinstance(decision, Batch):
                break
            assert len(decision.entries) <= limits.max_items
            assert decision.padded <= max(200.0, decision.entries[0].cost)
            if len(decision.entries) > 1:
                assert decision.padded <= limits.waste * decision.real * 1.0001
                assert len({e.group for e in decision.entries}) == 1
            for e in decision.entries:
                for t in e.tickets:
                    when, lane = asked[t]
                    waits[lane].append(clock.now - when)
                    bulk_waits.append(clock.now - when)
            running.append((clock.now + 0.02 * decision.padded + 0.05, slot, decision))
        steps = [r[0] for r in running]
        if at < total:
            steps.append(arrivals[at][0])
        steps += [w for w, _ in leaving]
        steps.append(clock.now + 0.02)
        clock.now = max(clock.now + 1e-6, min(x for x in steps if x > clock.now))
        assert clock.now < 5_000, "it does not end"
    assert len(ends) == total
    assert sorted(ends, key=int) == [str(i) for i in range(total)]
    assert max(waits[Lane.INTERACTIVE]) < 30
    # Nothing starves: the bound of the queue, stretched by padding, overhead and the previews that went first.
    assert max(bulk_waits) < 1.6 * limits.max_queue_s
    outcomes = set(ends.values())
    assert {"ok", "left", "deadline"} <= outcomes
    assert sum(v == "ok" for v in ends.values()) > 0.5 * total
    assert s.waiting() == 0
    assert s.queued_s() == pytest.approx(0.0, abs=1e-6)
