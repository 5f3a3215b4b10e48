"""`make simulate`: seeded schedules of the whole flow, and proof that the simulation would notice."""

from __future__ import annotations

import os
import time

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, flow_of
from tests.simulation.shrink import shrink, story
from tests.simulation.world import FLOW, Violation, play

SEEDS = int(os.environ.get("SIMULATE_SEEDS", "600"))
FIRST = int(os.environ.get("SEED", "0"))
MUTANT_SEEDS = 3_000  # each is found long before


def test_nothing_breaks(capsys: pytest.CaptureFixture[str]):
    """SIMULATE_SEEDS schedules beginning at SEED; a failing one is shrunk and told."""
    began = time.process_time()
    for seed in range(FIRST, FIRST + SEEDS):
        try:
            play(seed)
        except Violation as exc:
            pytest.fail(f"{exc}\n{story(seed, shrink(seed))}", pytrace=False)
    with capsys.disabled():
        took = time.process_time() - began
        print(f" {SEEDS} schedules in {took:.1f} CPU s ({SEEDS / took:.0f} per second) ", end="")  # noqa: T201


def test_a_seed_is_a_schedule():
    """The same seed plays the same, event for event."""
    for seed in range(20):
        one, two = play(seed), play(seed)
        assert one.rows.events == two.rows.events
        assert one.choices.made == two.choices.made


def test_the_schedules_are_worth_something():
    """What the faults are for happens: everything that a job may go through, some job goes through."""
    seen: set[tuple[str, str]] = set()
    reasons: set[str] = set()
    for seed in range(150):
        for event in play(seed).rows.events:
            seen.add((str(event.source), str(event.to)))
            reasons.add(event.reason)
    moves = {
        "waiting>leased",
        "leased>waiting",
        "leased>done",
        "waiting>done",
        "leased>failed",
        "leased>cancelled",
    }
    assert moves <= {f"{source}>{to}" for source, to in seen}
    assert reasons >= {
        "worker_busy", "worker_unreachable", "storage_refused", "expired", "unconfirmed", "internal", "held",
        "voice_not_found", "text_not_speakable", "text_changed", "worker_lost", "superseded",
    }  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_missing_guard_is_noticed(mutant: Mutant):
    flow = flow_of(mutant)
    for seed in range(mutant.first, mutant.first + MUTANT_SEEDS):
        try:
            play(seed, flow=flow)
        except Violation:
            return
    pytest.fail(f"{MUTANT_SEEDS} schedules did not notice: {mutant.name}")


def test_a_failing_schedule_is_made_short():
    mutant = next(m for m in MUTANTS if m.name == "failures are not fenced")
    flow = flow_of(mutant)
    seed = next(seed for seed in range(50) if _fails(seed, flow))
    turns = shrink(seed, flow=flow)
    assert len(turns) <= 6
    told = story(seed, turns, flow=flow)
    assert "P4" in told
    play(seed, flow=FLOW)  # and with the guard in place it holds


def _fails(seed: int, flow: object) -> bool:
    try:
        play(seed, flow=flow)
    except Violation:
        return True
    return False
