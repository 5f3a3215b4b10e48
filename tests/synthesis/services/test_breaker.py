"""What fails again and again is held, says so, is probed and goes on; nothing is charged meanwhile."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from projects.work import WorkState
from synthesis.flow.dispatch import dispatch
from synthesis.flow.ports import Limits
from synthesis.flow.results import Settled, settle
from synthesis.models import Breaker, SegmentJob
from synthesis.selectors import conversion_row
from synthesis.services.conversions import Scope, conversion_start
from synthesis.services.rows import OrmRows
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult
from tests.factories import book_make, project_make, segments_of, voice_make
from tests.synthesis.flow.benches import facts

pytestmark = pytest.mark.django_db
ROWS = OrmRows()
LIMITS = Limits(window=4, preview_reserve=0, probe_s=30.0)
WORDS = " ".join(f"Lamp {n} was lit." for n in range(12))


class Everything:
    """A store that has everything and keeps it."""

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        return True

    def old(self, *, seconds: float) -> Iterator[Sequence[str]]:
        return iter(())

    def delete(self, key: str) -> None:
        raise AssertionError(key)


class Belt:
    def __init__(self) -> None:
        self.orders: list[SpeechOrder] = []

    def publish(self, order: SpeechOrder) -> None:
        self.orders.append(order)


def book():
    return project_make(book=book_make(chapters=[("One", (WORDS,))], headings=False))


def run(belt: Belt) -> int:
    SegmentJob.objects.filter(state=WorkState.WAITING).update(not_before=None)
    return dispatch("cpu", rows=ROWS, conveyor=belt, limits=LIMITS) or 0


def settled(order: SpeechOrder, outcome: Outcome, **more) -> Settled:
    result = SpeechResult.of(order, outcome, **more)
    return settle(result, rows=ROWS, objects=Everything(), limits=LIMITS, random=random.Random(1))


def failed(order: SpeechOrder, code: str = "voice_not_found", *, permanent: bool = True) -> Settled:
    return settled(order, Outcome.FAILED, code=code, permanent=permanent, detail="no such voice")


def done(order: SpeechOrder) -> Settled:
    return settled(order, Outcome.DONE, take=facts(order).to_wire())


def later(seconds: float) -> None:
    Breaker.objects.exclude(probe_at=None).update(probe_at=F("probe_at") - timedelta(seconds=seconds))


def test_a_broken_voice_is_held_after_three_and_says_so():
    project = book()
    conversion = conversion_start(None, Scope.PROJECT, project)
    belt = Belt()
    assert run(belt) == 4
    assert [failed(order) for order in belt.orders] == [
        Settled.FAILED, Settled.FAILED, Settled.WAITING, Settled.WAITING
    ]  # fmt: skip
    assert run(belt) == 0  # held: nothing more is attempted
    waiting = SegmentJob.objects.filter(state=WorkState.WAITING)
    assert (waiting.count(), set(waiting.values_list("attempts", flat=True))) == (10, {0})
    why = conversion_row(conversion).waiting_why
    assert project.voice.name in why
    assert "not installed" in why


def test_one_order_probes_and_a_success_lets_everything_go_on():
    project = book()
    conversion = conversion_start(None, Scope.PROJECT, project)
    belt = Belt()
    run(belt)
    for order in belt.orders:
        failed(order)
    later(31)
    assert run(belt) == 1
    assert run(belt) == 0
    assert failed(belt.orders[-1]) is Settled.WAITING  # the probe costs nothing either
    later(31)
    assert run(belt) == 1  # and the next waits longer
    later(31)
    assert run(belt) == 0
    assert done(belt.orders[-1]) is Settled.RECORDED
    assert not Breaker.objects.exclude(opened_at=None).exists()
    assert conversion_row(conversion).waiting_why == ""
    assert run(belt) == 4


def test_another_voice_of_the_pool_goes_on():
    one, two = book(), book()
    conversion_start(None, Scope.PROJECT, one)
    belt = Belt()
    run(belt)
    for order in belt.orders:
        failed(order)
    conversion = conversion_start(None, Scope.PROJECT, two)
    assert run(belt) == 4
    assert {order.voice for order in belt.orders[4:]} == {two.voice.engine_voice}
    assert conversion_row(conversion).waiting_why == ""


def test_three_voices_failing_alike_hold_the_pool():
    belt = Belt()
    for _ in range(3):
        project = book()
        conversion_start(None, Scope.SEGMENT, segments_of(project)[0])
    run(belt)
    assert len({order.voice for order in belt.orders}) == 3
    outcomes = [failed(order, "internal", permanent=False) for order in belt.orders]
    assert outcomes == [Settled.WAITING] * 3
    assert Breaker.objects.get(subject="pool:cpu").opened_at is not None
    assert run(belt) == 0
    later(31)
    assert run(belt) == 1
    done(belt.orders[-1])
    assert run(belt) == 2


def test_words_that_cannot_be_spoken_stop_nobody():
    project = book()
    conversion_start(None, Scope.PROJECT, project)
    belt = Belt()
    run(belt)
    assert {failed(order, "text_not_speakable") for order in belt.orders} == {Settled.FAILED}
    assert not Breaker.objects.exists()
    assert run(belt) == 4


def test_a_success_in_between_ends_the_row_of_failures():
    project = book()
    conversion_start(None, Scope.PROJECT, project)
    belt = Belt()
    run(belt)
    failed(belt.orders[0])
    failed(belt.orders[1])
    done(belt.orders[2])
    assert failed(belt.orders[3]) is Settled.FAILED
    assert not Breaker.objects.exclude(opened_at=None).exists()


def test_the_same_sentence_failing_again_counts_once():
    project = book()
    conversion_start(None, Scope.SEGMENT, segments_of(project)[0])
    belt = Belt()
    for attempt in (1, 2, 3):
        run(belt)
        outcome = failed(belt.orders[-1], "internal", permanent=False)
        assert outcome is (Settled.FAILED if attempt == 3 else Settled.WAITING)
    assert not Breaker.objects.exclude(opened_at=None).exists()


def test_a_retired_voice_takes_its_breaker_along():
    voice = voice_make()
    Breaker.objects.create(subject=f"voice:{voice.pk}", pool="cpu", voice=voice, opened_at=timezone.now())
    voice.delete()
    assert not Breaker.objects.exists()
