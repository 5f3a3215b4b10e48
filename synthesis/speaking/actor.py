"""Doors of the synthesis worker: the actors of the queues `preview` and `synthesis`."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import dramatiq

from .client import InferenceClient
from .config import SpeakingConfig
from .conveyor import ConveyorDown, message_send
from .filling import order_fill
from .measures import ORDERS
from .store import store_from
from .wire import SpeechOrder, WireError

log = logging.getLogger(__name__)

REPORT_TRIES = 6  # tries to hand a result to the broker before the lease has to settle it; about 30 s in all


class SynthesisDoor:
    """The actors bound to one broker and configuration. One per process."""

    def __init__(self, broker: dramatiq.Broker, config: SpeakingConfig) -> None:
        self.broker = broker
        self.config = config
        self.client = InferenceClient(config.pools, timeout_s=config.inference_timeout_s)
        self.store = store_from(config)
        self.actors = [
            dramatiq.actor(
                actor_name=f"speak_{queue}",
                queue_name=queue,
                max_retries=0,
                time_limit=600_000,
                broker=broker,
            )(self.speak)
            for queue in ("preview", "synthesis")
        ]

    def speak(self, *, order: dict[str, Any]) -> None:
        """Fill an order and report. Safe to deliver twice; touches no database. Times in ms."""
        try:
            parsed = SpeechOrder.from_wire(order)
        except WireError:
            log.exception("an order that cannot be read; its lease will settle it")
            raise
        result = order_fill(parsed, client=self.client, store=self.store)
        ORDERS.labels(parsed.pool, parsed.lane, result.outcome).inc()
        log.info(
            "order of segment %s, job %s/%d: %s %s",
            parsed.segment,
            parsed.job,
            parsed.dispatch_no,
            result.outcome,
            result.code,
        )
        for attempt in range(REPORT_TRIES):
            try:
                message_send(self.broker, "results", "save_result", result=result.to_wire())
            except ConveyorDown:
                if attempt == REPORT_TRIES - 1:
                    raise
                time.sleep(min(0.5 * 2**attempt, 8))
            else:
                return


_door: SynthesisDoor | None = None
_lock = threading.Lock()


def door_open(broker: dramatiq.Broker, config: SpeakingConfig) -> SynthesisDoor:
    """The process's door, made on the first call."""
    global _door
    with _lock:
        if _door is None or _door.broker is not broker:
            _door = SynthesisDoor(broker, config)
        return _door
