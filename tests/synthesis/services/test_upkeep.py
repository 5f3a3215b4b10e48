"""Confirms that never come, letters that died, history that is kept, and what a user puts first."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import dramatiq
import pytest
from django.db.models import F

from projects.work import WorkState
from synthesis.models import DeadLetter, JobEvent, SegmentJob
from synthesis.services import dispatching
from synthesis.services.conversions import Scope, conversion_cancel, conversion_first, conversion_start
from synthesis.services.deadletters import _letter_record, dead_letters_read
from synthesis.services.history import events_drop
from synthesis.services.rows import OrmRows
from synthesis.services.upkeep import upkeep_pass, upkeep_slow_pass
from synthesis.speaking.conveyor import ConveyorDown, Publisher, broker_make
from synthesis.speaking.wire import Outcome, SpeechResult
from tests.factories import chapters_of, project_make, segments_of
from tests.synthesis.flow.benches import facts

pytestmark = pytest.mark.django_db
ROWS = OrmRows()


@pytest.fixture(autouse=True)
def stub():
    broker = broker_make("")
    dispatching.broker_set(broker)
    yield broker
    dispatching.broker_set(None)


@pytest.fixture
def quiet(monkeypatch):
    """Nothing is handed out but by the test."""
    monkeypatch.setattr("synthesis.services.conversions.dispatch_soon", lambda _pool: None)
    monkeypatch.setattr(dispatching, "pool_dispatch", lambda _pool, **_more: 0)


def order_of_one_job():
    segment = next(s for s in segments_of(project_make()) if s.spoken)
    conversion_start(None, Scope.SEGMENT, segment)
    with ROWS.dispatcher("cpu"):
        (order,) = ROWS.lease([SegmentJob.objects.get(segment=segment).pk], seconds=60)
    return order


def letter(**kwargs) -> bytes:
    return dramatiq.Message(
        queue_name="synthesis", actor_name="speak_synthesis", args=(), kwargs=kwargs, options={}
    ).encode()


def test_a_confirm_that_never_comes_is_given_up(monkeypatch):
    stuck = threading.Event()

    class Deaf:
        def enqueue(self, message):
            stuck.wait(5)

    publisher = Publisher(lambda: Deaf(), seconds=0.1)
    began = time.monotonic()
    with pytest.raises(ConveyorDown):
        publisher.send("synthesis", "speak_synthesis", order={})
    assert time.monotonic() - began < 2

    class Well:
        sent = 0

        def enqueue(self, message):
            Well.sent += 1

    publisher._broker_get = lambda: Well()  # its next thread is a fresh one
    publisher.send("synthesis", "speak_synthesis", order={})
    assert Well.sent == 1
    stuck.set()


def test_an_order_delivered_too_often_fails_its_job_with_a_reason(quiet):
    order = order_of_one_job()
    _letter_record("synthesis.XQ", letter(order=order.to_wire()), "delivery_limit")
    job = SegmentJob.objects.get()
    assert (job.state, job.failure_code, job.attempts) == (WorkState.FAILED, "worker_lost", 0)
    kept = DeadLetter.objects.get()
    assert (kept.queue, kept.reason, kept.job) == ("synthesis.XQ", "delivery_limit", order.job)


def test_a_refused_order_is_left_to_its_lease(quiet):
    order = order_of_one_job()
    _letter_record("synthesis.XQ", letter(order=order.to_wire()), "rejected")
    assert SegmentJob.objects.get().state == WorkState.LEASED


def test_a_dead_result_is_settled_after_all(quiet, monkeypatch):
    order = order_of_one_job()
    result = SpeechResult.of(order, Outcome.DONE, take=facts(order).to_wire())
    _letter_record("results.XQ", letter(result=result.to_wire()), "rejected")
    assert SegmentJob.objects.get().state == WorkState.DONE


def test_what_cannot_be_read_is_kept_all_the_same(quiet):
    for body in (b"\xff not json", b"[1]", letter(result={"v": 99}), letter(order={})):
        _letter_record("results.XQ", body, "delivery_limit")
    assert DeadLetter.objects.count() == 4


def test_letters_of_the_process_itself_are_read_and_let_go(quiet, stub):
    message = dramatiq.Message.decode(letter(order={}))
    stub.dead_letters_by_queue["synthesis"].append(message)
    assert dead_letters_read() == 1
    assert dead_letters_read() == 0
    assert DeadLetter.objects.get().queue == "synthesis"


def test_a_pass_of_upkeep_does_all_of_it(quiet):
    assert set(upkeep_pass()) == {"dead_letters", "segments", "production"}
    assert set(upkeep_slow_pass()) == {"garbage", "events", "letters"}


def test_every_change_of_state_leaves_an_event(quiet):
    conversion = conversion_start(None, Scope.PROJECT, project_make())
    jobs = conversion.jobs.count()
    assert JobEvent.objects.filter(source="", to="waiting", actor="user").count() == jobs
    conversion_cancel(conversion)
    assert JobEvent.objects.filter(source="waiting", to="cancelled", actor="user").count() == jobs
    assert JobEvent.objects.count() == 2 * jobs


def test_old_history_goes(quiet):
    conversion_start(None, Scope.PROJECT, project_make())
    assert events_drop(30) == 0
    JobEvent.objects.update(at=F("at") - timedelta(days=31))
    assert events_drop(30) > 0
    assert not JobEvent.objects.exists()


def test_this_chapter_first(quiet):
    project = project_make()
    first, second = chapters_of(project)
    conversion = conversion_start(None, Scope.PROJECT, project)
    assert conversion_first(second) == second.segments.exclude(spoken="").count()
    heads = ROWS.heads("cpu", "bulk", conversion.pk, 99)
    chapters = list(
        SegmentJob.objects.filter(pk__in=heads).values_list("pk", "segment__document").order_by("pk")
    )
    of = dict(chapters)
    split = [of[pk] for pk in heads]
    assert split == sorted(split, key=lambda pk: pk != second.pk)
    assert split[0] == second.pk
    assert split[-1] == first.pk


def test_this_conversion_first(quiet):
    project = project_make()
    first, second = chapters_of(project)
    older = conversion_start(None, Scope.DOCUMENT, first)
    newer = conversion_start(None, Scope.DOCUMENT, second)
    assert conversion_first(newer) == newer.jobs.count()
    urgent = {line.conversion: line.urgent for line in ROWS.lines("bulk")}
    assert urgent[newer.pk] > urgent[older.pk]
