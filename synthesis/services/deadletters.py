"""Messages that the broker gave up on, read into the database. Its own queues of them are bounded and forget."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pika
import pika.exceptions
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from dramatiq.brokers.stub import StubBroker

from synthesis.flow import upkeep
from synthesis.models import DeadLetter
from synthesis.services.dispatching import broker_get, result_settle, rows
from synthesis.services.rows import limits
from synthesis.speaking.conveyor import QUEUES, broker_url
from synthesis.speaking.measures import DEAD_LETTERS
from synthesis.speaking.wire import WireError

log = logging.getLogger(__name__)

PER_PASS = 200  # letters of one queue
KEPT_DAYS = 30
DELIVERED_OUT = "delivery_limit"  # the broker's word for: delivered as often as it may, never acknowledged


def dead_letters_read() -> int:
    """Read what died since the last time; the number of letters. Safe to run twice at once, and after a crash.

    A dead *result* is settled now: it may hold a finished take. A dead *order* that was delivered as often as the
    broker would is poison: its job fails with a reason. Everything else its lease will settle. Letters are taken off
    the broker only after they are in the database.
    """
    broker = broker_get()
    if isinstance(broker, StubBroker):
        letters = [
            (queue, message.encode(), "rejected")
            for queue, dead in broker.dead_letters_by_queue.items()
            for message in _drained(dead)
        ]
        for queue, body, reason in letters:
            _letter_record(queue, body, reason)
        return len(letters)
    found = 0
    with _channel() as channel:
        if channel is None:
            return 0
        for queue in QUEUES:
            for tag, body, reason in _letters(channel, f"{queue}.XQ"):
                _letter_record(queue, body, reason)
                channel.basic_ack(tag)
                found += 1
    return found


def dead_letters_drop() -> int:
    """Drop letters older than KEPT_DAYS; the number dropped."""
    return DeadLetter.objects.filter(at__lt=Now() - timedelta(days=KEPT_DAYS)).delete()[0]


def _drained(dead: list[Any]) -> Iterator[Any]:
    while dead:
        yield dead.pop(0)


@contextmanager
def _channel() -> Iterator[Any]:
    """A channel of our own for one pass; None if the broker is away."""
    try:
        connection = pika.BlockingConnection(pika.URLParameters(broker_url(settings.BROKER_URL)))
    except (pika.exceptions.AMQPError, OSError) as exc:
        log.warning("dead letters have to wait: %r", exc)
        yield None
        return
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


def _letters(channel: Any, queue: str) -> Iterator[tuple[int, bytes, str]]:
    for _ in range(PER_PASS):
        method, properties, body = channel.basic_get(queue)
        if method is None:
            return
        deaths = (properties.headers or {}).get("x-death") or [{}]
        reason = (properties.headers or {}).get("x-first-death-reason") or deaths[0].get("reason", "")
        yield method.delivery_tag, body, str(reason)


def _letter_record(queue: str, body: bytes, reason: str) -> None:
    """Keep one letter and do what can be done for its job."""
    try:
        message = json.loads(body)
        kwargs = message.get("kwargs") or {}
    except (ValueError, AttributeError):
        message, kwargs = {}, {}
    order = kwargs.get("order") or kwargs.get("result") or {}
    job = str(order.get("job") or kwargs.get("public_id") or "")
    with transaction.atomic():
        DeadLetter.objects.create(
            queue=queue,
            message_id=str(message.get("message_id", ""))[:60],
            reason=reason[:40],
            job=job[:40],
            body=body.decode(errors="replace")[:20_000],
        )
    DEAD_LETTERS.labels(queue, reason).inc()
    log.error("dead letter on %s (%s) for %s", queue, reason or "no reason", job or "nobody")
    try:
        if "result" in kwargs:
            result_settle(kwargs["result"])
        elif "order" in kwargs and reason == DELIVERED_OUT:
            upkeep.order_dead(job, int(order["dispatch_no"]), rows=rows, limits=limits())
    except (WireError, KeyError, ValueError):
        log.exception("a dead letter that cannot be read")
