"""Binds the flow to this process: the conveyor it publishes on, and the thread that dispatches when work is added."""

from __future__ import annotations

import logging
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dramatiq
from django.conf import settings
from django.db import OperationalError, close_old_connections, transaction

from projects.work import OPEN_STATES
from synthesis.flow import dispatch, results, upkeep
from synthesis.models import SegmentJob
from synthesis.services.rows import OrmRows, limits
from synthesis.speaking.conveyor import broker_make, message_send
from synthesis.speaking.wire import SpeechOrder, SpeechResult

log = logging.getLogger(__name__)

rows = OrmRows()
_lock = threading.Lock()
_broker: dramatiq.Broker | None = None
_pending: set[str] = set()
_runner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dispatch")


def broker_get() -> dramatiq.Broker:
    """This process's broker, made from BROKER_URL on the first call."""
    global _broker
    with _lock:
        if _broker is None:
            _broker = broker_make(settings.BROKER_URL)
        return _broker


def broker_set(broker: dramatiq.Broker | None) -> None:
    """Use another broker; for the roles that make their own, and for tests."""
    global _broker
    with _lock:
        _broker = broker


class BrokerConveyor:
    """Publishes orders by queue class."""

    def publish(self, order: SpeechOrder) -> None:
        queue = "preview" if order.lane == "preview" else "synthesis"
        message_send(broker_get(), queue, f"speak_{queue}", order=order.to_wire())


def pool_dispatch(pool: str) -> int:
    """Top up one pool's window now; the number of orders handed over."""
    return dispatch.dispatch(pool, rows=rows, conveyor=BrokerConveyor(), limits=limits())


def pools_waiting() -> list[str]:
    """Pools that have open jobs."""
    return list(
        SegmentJob.objects.filter(state__in=OPEN_STATES)
        .order_by("pool")
        .values_list("pool", flat=True)
        .distinct()
    )


def result_settle(message: dict[str, Any]) -> str:
    """Settle one result and top up the window it left. Safe to deliver twice."""
    result = SpeechResult.from_wire(message)
    settled = results.settle(result, rows=rows, limits=limits(), random=random)
    pool = SegmentJob.objects.filter(public_id=result.job).values_list("pool", flat=True).first()
    if pool:
        pool_dispatch(pool)
    return settled.value


def leases_settle() -> int:
    """Upkeep of segment jobs: expired leases back into the queue, every waiting pool topped up."""
    released = upkeep.leases_expire(rows=rows)
    for pool in pools_waiting():
        pool_dispatch(pool)
    return released


def _in_background(pool: str) -> None:
    with _lock:
        _pending.discard(pool)
    close_old_connections()
    try:
        pool_dispatch(pool)
    except OperationalError:
        log.warning("dispatch of pool %s has to wait for upkeep", pool, exc_info=True)
    except Exception:
        log.exception("dispatch of pool %s failed; upkeep tries again", pool)
    finally:
        close_old_connections()


def dispatch_soon(pool: str) -> None:
    """Dispatch after the current transaction commits, off this thread: a dead broker must not hold a click."""

    def wake() -> None:
        if getattr(settings, "DISPATCH_INLINE", False):
            pool_dispatch(pool)
            return
        with _lock:
            if pool in _pending:
                return
            _pending.add(pool)
        _runner.submit(_in_background, pool)

    transaction.on_commit(wake)
