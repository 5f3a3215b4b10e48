"""The actors, bound to whichever broker this process uses."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

import dramatiq
from django.db import InterfaceError, OperationalError, close_old_connections
from dramatiq.middleware import Middleware

from projects.services.manuscripts import import_run
from synthesis.services.dispatching import result_settle
from synthesis.services.exports import export_run
from synthesis.services.production import work_run

log = logging.getLogger(__name__)
T = TypeVar("T")

DATABASE_AWAY_S = 120  # how long a result waits inside its actor for the database to come back
PRODUCTION_LIMIT_MS = 12 * 3600 * 1000


class DatabaseConnections(Middleware):
    """A worker thread must not keep a dead connection from one message to the next."""

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:
        close_old_connections()

    def after_process_message(self, broker: dramatiq.Broker, message: Any, **kwargs: Any) -> None:
        close_old_connections()


def patiently(call: Callable[[], T]) -> T:
    """Call again with jitter while the database is away or asks for the whole transaction again; 120 s at most."""
    until = time.monotonic() + DATABASE_AWAY_S
    wait_s = 0.1
    while True:
        try:
            return call()
        except (OperationalError, InterfaceError):
            if time.monotonic() > until:
                raise
            log.warning("the database does not answer; trying again", exc_info=wait_s > 1)
            close_old_connections()
            time.sleep(wait_s * (0.5 + random.random()))
            wait_s = min(wait_s * 2, 5)


def save_result(*, result: dict[str, Any]) -> None:
    """Door to flow.results.settle. Safe to deliver twice."""
    patiently(lambda: result_settle(result))


def run_import(*, public_id: str, dispatch_no: int) -> None:
    """Door to manuscripts.import_run. Safe to deliver twice."""
    work_run("imports", public_id, dispatch_no, lambda row, number, _ours: import_run(row, number))


def run_export(*, public_id: str, dispatch_no: int) -> None:
    """Door to exports.export_run. Safe to deliver twice."""
    work_run("exports", public_id, dispatch_no, export_run)


def doors_open(broker: dramatiq.Broker) -> None:
    """Declare the actors on a broker. Calling it again for the same broker does nothing."""
    if "save_result" in broker.actors:
        return
    broker.add_middleware(DatabaseConnections())
    dramatiq.actor(queue_name="results", max_retries=0, time_limit=300_000, broker=broker)(save_result)
    for queue, function in (("imports", run_import), ("exports", run_export)):
        dramatiq.actor(queue_name=queue, max_retries=0, time_limit=PRODUCTION_LIMIT_MS, broker=broker)(
            function
        )
