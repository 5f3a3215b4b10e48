"""Binds the flow to this process: the conveyor it publishes on, and the thread that dispatches when work is added."""

from __future__ import annotations

import logging
import random
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dramatiq
from django.conf import settings
from django.db import OperationalError, close_old_connections, transaction

from projects.models import Voice
from projects.work import OPEN_STATES
from synthesis.flow import dispatch, results, upkeep
from synthesis.models import Pool, SegmentJob
from synthesis.services.rows import OrmRows, limits
from synthesis.speaking.config import SpeakingConfig
from synthesis.speaking.conveyor import ConveyorDown, Publisher, broker_make
from synthesis.speaking.measures import DISPATCHED, LEASES_EXPIRED, RESULTS, STAGE, UNCONFIRMED
from synthesis.speaking.store import ObjectStore, store_from
from synthesis.speaking.wire import SpeechOrder, SpeechResult

log = logging.getLogger(__name__)

ALONE_TRIES, ALONE_WAIT_S = 10, 0.025  # how long to wait for another dispatcher of the same pool
TOP_UP_SHARE = 4  # results top the window up by a quarter at a time: one dispatch costs as much as many
TAKE_KEY = re.compile(r"p/[^/]+/takes/[^/]+/[0-9a-f]{64}\.(?:flac|dat)")

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


def carried_here() -> bool:
    """Whether a message sent by this process reaches a worker.

    Without BROKER_URL the conveyor lies inside one process, the studio. A command that runs beside it only writes rows;
    the studio's upkeep hands them out.
    """
    return bool(settings.BROKER_URL) or _broker is not None or getattr(settings, "DISPATCH_INLINE", False)


def aims_wake(kind: str) -> None:
    """Called after commit when recipes were rewritten: waiting jobs follow, and their pools are dispatched."""
    if kind != "aims" or not carried_here():
        return

    def follow() -> None:
        for pool in rows.aim_waiting():
            pool_dispatch(pool)

    if getattr(settings, "DISPATCH_INLINE", False):
        follow()
        return

    def run() -> None:
        close_old_connections()
        try:
            follow()
        except Exception:
            log.exception("waiting jobs could not follow at once; they do when they are handed out")
        finally:
            close_old_connections()

    _runner.submit(run)


publisher = Publisher(lambda: broker_get())


class BrokerConveyor:
    """Publishes orders by queue class."""

    def publish(self, order: SpeechOrder) -> None:
        queue = "preview" if order.lane == "preview" else "synthesis"
        try:
            publisher.send(queue, f"speak_{queue}", order=order.to_wire())
        except ConveyorDown:
            UNCONFIRMED.inc()
            raise


def speaking_config() -> SpeakingConfig:
    """The synthesis worker's configuration from the studio's settings."""
    return SpeakingConfig(
        pools={pool: tuple(addresses) for pool, addresses in settings.INFERENCE_POOLS.items()},
        broker_url=settings.BROKER_URL,
        objects_dir=str(settings.OBJECTS_DIR),
        s3_bucket=settings.S3_BUCKET,
        s3_endpoint_url=settings.S3_ENDPOINT_URL,
        s3_access_key=settings.S3_ACCESS_KEY,
        s3_secret_key=settings.S3_SECRET_KEY,
        s3_region=settings.S3_REGION,
        inference_timeout_s=settings.INFERENCE_TIMEOUT_S,
    )


class StoredObjects:
    """The flow's view of storage. Takes lie below `p/<project>/takes/`; nothing else is looked at."""

    def __init__(self, store: ObjectStore | None = None) -> None:
        self._store = store

    @property
    def store(self) -> ObjectStore:
        """The store that the settings name, made when it is first needed."""
        if self._store is None:
            self._store = store_from(speaking_config())
        return self._store

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        size = self.store.size(key)
        return size is not None and size_bytes in (None, size)

    def old(self, *, seconds: float) -> Iterator[Sequence[str]]:
        for page in self.store.pages("p/"):
            yield [key for key, age_s in page if age_s >= seconds and TAKE_KEY.fullmatch(key)]

    def delete(self, key: str) -> None:
        self.store.delete(key)


objects = StoredObjects()


def pool_dispatch(pool: str, *, least: int = 1) -> int:
    """Top up one pool's window now, if at least so many places are free; the number of orders handed over.

    Somebody else who is at it may have looked before our work was added: wait for him a moment.
    """
    for _ in range(ALONE_TRIES):
        handed = dispatch.dispatch(pool, rows=rows, conveyor=BrokerConveyor(), limits=limits(), least=least)
        if handed is not None:
            DISPATCHED.labels(pool).inc(handed)
            return handed
        time.sleep(ALONE_WAIT_S)
    return 0


def pools_waiting() -> list[str]:
    """Pools that have open jobs. Asked pool by pool: the cost must not grow with what waits."""
    names = {
        *settings.INFERENCE_POOLS,
        *Pool.objects.values_list("name", flat=True),
        *Voice.objects.order_by("pool").values_list("pool", flat=True).distinct(),
    }
    return [
        name for name in sorted(names) if SegmentJob.objects.filter(pool=name, state__in=OPEN_STATES).exists()
    ]


def result_settle(message: dict[str, Any]) -> str:
    """Settle one result and top up the window it left. Safe to deliver twice."""
    result = SpeechResult.from_wire(message)
    bounds = limits()
    with STAGE.labels("settle").time():
        settled = results.settle(result, rows=rows, objects=objects, limits=bounds, random=random)
    RESULTS.labels(result.outcome, settled.value).inc()
    log.info("result of job %s/%d: %s, %s", result.job, result.dispatch_no, result.outcome, settled.value)
    pool = SegmentJob.objects.filter(public_id=result.job).values_list("pool", flat=True).first()
    if pool:
        pool_dispatch(pool, least=max(1, bounds.window // TOP_UP_SHARE))
    return settled.value


def leases_settle() -> int:
    """Upkeep of segment jobs: expired leases back into the queue, every waiting pool topped up."""
    released = upkeep.leases_expire(rows=rows, limits=limits())
    LEASES_EXPIRED.inc(released)
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
        if not carried_here():
            return
        if getattr(settings, "DISPATCH_INLINE", False):
            pool_dispatch(pool)
            return
        with _lock:
            if pool in _pending:
                return
            _pending.add(pool)
        _runner.submit(_in_background, pool)

    transaction.on_commit(wake)
