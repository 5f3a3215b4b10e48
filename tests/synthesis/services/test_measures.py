"""Seen from outside: the gauges of queues, pools and breakers, and the load test's report."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO

import httpx
import pytest
from django.core.management import call_command
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest

from projects.work import WorkState
from synthesis.embedded import port_free
from synthesis.management.commands import loadtest
from synthesis.models import Breaker, Conversion, Pool, SegmentJob
from synthesis.services import dispatching
from synthesis.services.conversions import Scope, conversion_start
from synthesis.services.dispatching import result_settle
from synthesis.services.gauges import gauges_register
from synthesis.speaking.conveyor import broker_make
from synthesis.speaking.measures import measures_serve
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult
from tests.factories import project_make
from tests.synthesis.flow.benches import facts

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def stub():
    dispatching.broker_set(broker_make(""))
    yield
    dispatching.broker_set(None)


def figures() -> str:
    registry = CollectorRegistry()
    gauges_register(registry)
    return generate_latest(registry).decode()


def test_the_state_of_queues_pools_and_breakers_can_be_read():
    conversion = conversion_start(None, Scope.PROJECT, project_make())
    dispatching.pool_dispatch("cpu")
    leased = conversion.jobs.filter(state=WorkState.LEASED).count()
    waiting = conversion.jobs.filter(state=WorkState.WAITING).count()
    SegmentJob.objects.update(created_at=timezone.now() - timedelta(seconds=90))
    Pool.objects.update(unreachable_since=timezone.now())
    Breaker.objects.create(subject="voice:1", pool="cpu", code="internal", opened_at=timezone.now())
    said = figures()
    assert leased
    assert f'studio_jobs{{lane="bulk",pool="cpu",state="leased"}} {float(leased)}' in said
    if waiting:
        assert f'studio_jobs{{lane="bulk",pool="cpu",state="waiting"}} {float(waiting)}' in said
        assert 'studio_oldest_waiting_seconds{lane="bulk",pool="cpu"} 9' in said
    assert 'studio_pool_away{pool="cpu"} 1.0' in said
    assert 'studio_breaker_open{code="internal",subject="voice:1"} 1.0' in said
    assert "studio_leases_overdue 0.0" in said


def test_a_role_serves_what_it_did_only_where_it_is_told_to():
    assert not measures_serve({})
    port = port_free()
    assert measures_serve({"METRICS_PORT": str(port)})
    assert not measures_serve({"METRICS_PORT": str(port)})  # taken: said, not raised
    assert "studio_orders_total" in httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text


def test_a_load_test_tells_where_the_time_went(monkeypatch):
    """The roles are played by the test: every order is answered at once."""

    class NoRoles:
        child = None

        def start(self):
            pass

        def stop(self):
            pass

    def publish(_self, order: SpeechOrder) -> None:
        answers.append(SpeechResult.of(order, Outcome.DONE, take=facts(order).to_wire()).to_wire())

    answers: list[dict] = []
    project_make()  # its voice is the one that speaks
    monkeypatch.setattr(loadtest, "EmbeddedRoles", NoRoles)
    monkeypatch.setattr(loadtest, "voices_sync", lambda: 0)
    monkeypatch.setattr(dispatching.BrokerConveyor, "publish", publish)

    def sleep(_seconds: float) -> None:
        while answers:
            result_settle(answers.pop(0))

    monkeypatch.setattr(loadtest.time, "sleep", sleep)
    monkeypatch.setattr("synthesis.services.dispatching.ALONE_WAIT_S", 0)
    conversions = Conversion.objects.count()
    out = StringIO()
    # the test's own transaction holds back what is done after a commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthesis.services.conversions.dispatch_soon", dispatching.pool_dispatch)
        call_command("loadtest", "--segments", "12", "--json", stdout=out)
    report = json.loads(out.getvalue())
    assert (report["segments"], report["done"], report["failed"]) == (12, 12, 0)
    assert set(report["stages"]) == {"waits for its turn", "in flight", "of it inference"}
    assert Conversion.objects.count() == conversions  # it leaves nothing behind
