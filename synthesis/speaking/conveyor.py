"""The conveyor: Dramatiq over RabbitMQ's quorum queues, or inside one process. Pure of Django.

Queues: `preview` and `synthesis` carry orders, `results` what happened, `imports` and `exports` production work. One
queue per class: Dramatiq's message priority orders only what a process already holds.
"""

from __future__ import annotations

import queue as queues
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.brokers.stub import StubBroker
from dramatiq.errors import BrokerConnectionError
from dramatiq.middleware import Middleware, Retries, ShutdownNotifications, TimeLimit

QUEUES = ("preview", "synthesis", "results", "imports", "exports")
DELIVERY_LIMIT = (
    3  # deliveries of one message before it is taken for poison; RabbitMQ < 4.0 sets none by itself
)
CONFIRM_S = 5.0  # a broker that has not confirmed by then is taken for gone
DEAD_LETTERS = 10_000  # per queue; the database keeps the truth, these only help to look


class ConveyorDown(Exception):
    """Raised when the broker cannot be reached or does not confirm in time. The row still waits; nothing is lost."""


class QuorumBroker(RabbitmqBroker):
    """RabbitMQ with replicated queues and publisher confirms: a send that returned is on disk."""

    def _build_queue_arguments(self, queue_name: str) -> dict[str, Any]:
        return {
            **super()._build_queue_arguments(queue_name),
            "x-queue-type": "quorum",
            "x-delivery-limit": DELIVERY_LIMIT,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",  # at-least-once dead-lettering asks for it
        }

    def _declare_xq_queue(self, queue_name: str) -> Any:
        return self.channel.queue_declare(
            queue=f"{queue_name}.XQ",
            durable=True,
            arguments={
                "x-queue-type": "quorum",
                "x-message-ttl": 7 * 86_400_000,  # ms
                "x-max-length": DEAD_LETTERS,
            },
        )


def broker_url(url: str) -> str:
    """The URL with short time-outs: a dead broker must not hold a click. Seconds; what the URL says wins."""
    parts = urlsplit(url)
    asked = {
        "heartbeat": "60",
        "blocked_connection_timeout": "5",
        "socket_timeout": "5",
        "connection_attempts": "1",
    }
    asked.update(parse_qsl(parts.query))
    return urlunsplit(parts._replace(query=urlencode(asked)))


def middleware() -> list[Middleware]:
    """Time limits, clean shutdown, and no retries: leases and rows do that."""
    return [TimeLimit(), ShutdownNotifications(), Retries(max_retries=0)]


def broker_make(url: str) -> dramatiq.Broker:
    """The broker a URL names ("" = inside this process), set as Dramatiq's global one."""
    broker: dramatiq.Broker
    if url:
        broker = QuorumBroker(url=broker_url(url), confirm_delivery=True, middleware=middleware())
    else:
        broker = StubBroker(middleware=middleware(), fail_fast_default=False)
        broker.emit_after("process_boot")  # in one process nobody else does, and time limits would never fire
    for queue in QUEUES:
        broker.declare_queue(queue)
    dramatiq.set_broker(broker)
    return broker


def message_send(broker: dramatiq.Broker, queue: str, actor: str, **kwargs: Any) -> None:
    """Put a message on a queue by the actor's name, so that the sender need not import it. Raises ConveyorDown."""
    message: dramatiq.Message[Any] = dramatiq.Message(
        queue_name=queue, actor_name=actor, args=(), kwargs=kwargs, options={}
    )
    try:
        broker.enqueue(message)
    except (BrokerConnectionError, OSError) as exc:
        raise ConveyorDown(f"the broker does not answer: {exc}") from exc
    except Exception as exc:
        # pika has several roots of exceptions; whichever it was, the message is not confirmed
        if type(exc).__module__.startswith("pika"):
            raise ConveyorDown(f"the broker refused: {exc!r}") from exc
        raise


class Publisher:
    """Sends from a thread of its own, so that no caller waits longer than CONFIRM_S for a confirm that was lost.

    pika waits for a confirm until the connection's heartbeat fails. A thread that is stuck so long is left behind with
    its connection and replaced.
    """

    def __init__(self, broker_get: Callable[[], dramatiq.Broker], *, seconds: float = CONFIRM_S) -> None:
        self._broker_get, self._seconds = broker_get, seconds
        self._lock = threading.Lock()
        self._orders: queues.SimpleQueue[Any] | None = None

    def send(self, queue_name: str, actor: str, **kwargs: Any) -> None:
        """Put a message on a queue; returns once it is confirmed. Raises ConveyorDown."""
        broker = self._broker_get()
        if isinstance(broker, StubBroker):
            message_send(broker, queue_name, actor, **kwargs)
            return
        sent: Future[None] = Future()
        with self._lock:
            if self._orders is None:
                self._orders = queues.SimpleQueue()
                threading.Thread(
                    target=self._run, args=(self._orders,), name="publisher", daemon=True
                ).start()
            mine = self._orders
        mine.put((sent, broker, queue_name, actor, kwargs))
        try:
            sent.result(timeout=self._seconds)
        except TimeoutError:
            with self._lock:
                if self._orders is mine:
                    self._orders = None
            mine.put(None)  # should it come to itself, it ends
            raise ConveyorDown(f"the broker did not confirm within {self._seconds:g} s") from None

    @staticmethod
    def _run(orders: queues.SimpleQueue[Any]) -> None:
        while (order := orders.get()) is not None:
            sent, broker, queue_name, actor, kwargs = order
            if not sent.set_running_or_notify_cancel():
                continue
            try:
                message_send(broker, queue_name, actor, **kwargs)
            except BaseException as exc:
                sent.set_exception(exc)
            else:
                sent.set_result(None)
