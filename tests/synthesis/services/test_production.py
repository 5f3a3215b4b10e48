"""Imports and exports as background rows: what counts as lost, what an outage costs, who hands out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from botocore.exceptions import EndpointConnectionError
from django.db import OperationalError
from django.utils import timezone

from projects.work import WorkState
from synthesis.services import dispatching
from synthesis.services.production import DELIVERIES, production_dispatch, production_settle, work_run
from tests.factories import import_make, user_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def row():
    return import_make(user_make())


def expire(row):
    type(row).objects.filter(pk=row.pk, state=WorkState.LEASED).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )


def leased(row):
    production_dispatch("imports")
    row.refresh_from_db()
    assert row.state == WorkState.LEASED
    return row.dispatch_no


def test_what_only_waited_behind_other_work_is_not_lost(row):
    leased(row)
    for _ in range(5):
        expire(row)
        production_settle()  # waits again, and is handed out again
    row.refresh_from_db()
    assert (row.state, row.attempts) == (WorkState.LEASED, 0)


def test_what_takes_its_worker_along_ends_with_a_reason(row):
    class Killed(BaseException):
        """The process is gone: nothing is reported."""

    def die(*_args):
        raise Killed

    for attempt in range(1, DELIVERIES + 1):
        number = row.dispatch_no if row.state == WorkState.LEASED else leased(row)
        with pytest.raises(Killed):
            work_run("imports", str(row.public_id), number, die)
        row.refresh_from_db()
        assert row.attempts == attempt
        expire(row)
        production_settle()
        row.refresh_from_db()
    assert (row.state, row.failure_code) == (WorkState.FAILED, "worker_lost")


@pytest.mark.parametrize(
    "away", [OperationalError("gone"), EndpointConnectionError(endpoint_url="http://s3")]
)
def test_an_outage_costs_no_attempt(row, away):
    def refuse(*_args):
        raise away

    work_run("imports", str(row.public_id), leased(row), refuse)
    row.refresh_from_db()
    assert (row.state, row.attempts) == (WorkState.WAITING, 0)
    assert row.not_before > timezone.now()


def test_any_other_failure_is_recorded_with_its_words(row):
    def fail(*_args):
        raise ValueError("what happened")

    work_run("imports", str(row.public_id), leased(row), fail)
    row.refresh_from_db()
    assert (row.state, row.failure_code) == (WorkState.FAILED, "internal")
    assert "what happened" in row.failure_detail


def test_old_news_starts_nothing(row):
    number = leased(row)
    expire(row)
    production_settle()
    ran = []
    assert work_run("imports", str(row.public_id), number, lambda *_: ran.append(1)) is False
    assert not ran


def test_a_command_beside_the_studio_only_writes_rows(settings):
    settings.DISPATCH_INLINE = False
    before = dispatching._broker
    dispatching.broker_set(None)
    try:
        assert not dispatching.carried_here()
        settings.BROKER_URL = "amqp://somewhere"
        assert dispatching.carried_here()
    finally:
        dispatching.broker_set(before)
