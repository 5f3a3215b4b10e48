"""The inference client: asks one worker of a pool for a sentence. Pure; thread-safe.

Load goes to the worker with the least estimated work: what this process has outstanding there plus the queue seconds
of its last answer. A worker that refuses (503) or does not answer is passed over for the next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from .wire import SpeechOrder

# codes of the worker's error answers after which trying again cannot help
PERMANENT = frozenset(
    {
        "invalid_request",
        "model_not_found",
        "voice_not_found",
        "language_not_supported",
        "markup_not_supported",
        "revision_mismatch",
        "text_not_speakable",
        "too_long",
    }
)
GUESS_S = 2.0  # assumed cost of one outstanding request, s, until answers tell the queue


class WorkerBusy(Exception):
    """Raised when every worker of the pool refuses for now."""

    def __init__(self, message: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class WorkerUnreachable(Exception):
    """Raised when no worker of the pool answers."""


class SpeechRefused(Exception):
    """Raised when a worker answered that it cannot speak this."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def permanent(self) -> bool:
        """Trying again cannot help."""
        return self.code in PERMANENT


@dataclass(frozen=True, slots=True)
class Spoken:
    """A worker's answer: the audio file and what it says of itself. Times in ms."""

    audio: bytes
    model: str
    revision: str
    seed: int
    queue_ms: int
    inference_ms: int
    batch_size: int


@dataclass(slots=True)
class _Worker:
    address: str
    outstanding: int = 0
    queue_s: float = 0.0
    seen: float = field(default=0.0)  # monotonic time of the last queue figure

    def load(self, now: float) -> float:
        """Estimated seconds of work there; the worker's own figure fades as it works."""
        return self.outstanding * GUESS_S + max(0.0, self.queue_s - (now - self.seen))


class InferenceClient:
    """Asks the workers of the pools. One instance serves all threads of a process."""

    def __init__(self, pools: Mapping[str, Sequence[str]], *, timeout_s: float = 240.0) -> None:
        self._lock = threading.Lock()
        self._pools = {pool: [_Worker(address) for address in addresses] for pool, addresses in pools.items()}
        self._http = httpx.Client(
            timeout=httpx.Timeout(timeout_s, connect=3.0),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=30.0),
        )

    def close(self) -> None:
        """Close kept connections."""
        self._http.close()

    def speak(self, order: SpeechOrder, *, deadline_ms: int = 0) -> Spoken:
        """Speak an order. Raises WorkerBusy, WorkerUnreachable or SpeechRefused."""
        body = {
            "model": f"{order.model}@{order.revision}",
            "input": order.spoken,
            "voice": order.voice,
            "response_format": "wav",
            "language": order.language,
            "seed": order.seed,
            "speed": order.speed,
            **({"instructions": order.direction} if order.direction else {}),
            **order.parameters,
        }
        headers = {
            "X-Priority": "interactive" if order.lane == "preview" else "bulk",
            "X-Job": order.project,
            **({"X-Deadline-Ms": str(deadline_ms)} if deadline_ms > 0 else {}),
        }
        answer = self._post(order.pool, "/v1/audio/speech", body, headers)
        said = answer.headers
        revision = said.get("X-Model-Revision", order.revision)
        if revision != order.revision:
            raise SpeechRefused(
                "revision_mismatch", f"{order.model}@{order.revision} was asked, {revision} answered"
            )
        return Spoken(
            audio=answer.content,
            model=said.get("X-Model", order.model),
            revision=revision,
            seed=int(said.get("X-Seed") or order.seed),
            queue_ms=round(float(said.get("X-Queue-Ms") or 0)),
            inference_ms=round(float(said.get("X-Inference-Ms") or 0)),
            batch_size=int(said.get("X-Batch-Size") or 1),
        )

    def offers(self, pool: str) -> list[dict[str, Any]]:
        """The voices of a pool's first answering worker, each with its model's facts under "model_facts".

        Raises WorkerUnreachable.
        """
        models = {m["id"]: m for m in self._get(pool, "/v1/models").get("data", [])}
        voices = self._get(pool, "/v1/voices").get("data", [])
        return [{**voice, "model_facts": models.get(voice.get("model"), {})} for voice in voices]

    def reachable(self, pool: str) -> bool:
        """Whether any worker of the pool is ready to speak."""
        try:
            self._get(pool, "/ready")
        except WorkerUnreachable:
            return False
        return True

    # -- the road to one worker ------------------------------------------------------------------------------------
    def _by_load(self, pool: str) -> list[_Worker]:
        now = time.monotonic()
        with self._lock:
            return sorted(self._pools.get(pool, ()), key=lambda w: w.load(now))

    def _get(self, pool: str, path: str) -> dict[str, Any]:
        error = f"pool {pool} has no workers"
        for worker in self._by_load(pool):
            try:
                answer = self._http.get(worker.address + path, timeout=5.0)
                if answer.status_code == 200:
                    return answer.json()
                error = f"{worker.address} answered {answer.status_code}"
            except (httpx.TransportError, ValueError) as exc:
                error = f"{worker.address}: {exc or type(exc).__name__}"
        raise WorkerUnreachable(error)

    def _post(self, pool: str, path: str, body: dict[str, Any], headers: dict[str, str]) -> httpx.Response:
        busy: WorkerBusy | None = None
        error = f"pool {pool} has no workers"
        for worker in self._by_load(pool):
            with self._lock:
                worker.outstanding += 1
            try:
                answer = self._http.post(worker.address + path, json=body, headers=headers)
            except httpx.TransportError as exc:
                error = f"{worker.address}: {exc or type(exc).__name__}"
                continue
            finally:
                with self._lock:
                    worker.outstanding -= 1
            if "X-Queue-Seconds" in answer.headers:
                with self._lock:
                    worker.queue_s, worker.seen = float(answer.headers["X-Queue-Seconds"]), time.monotonic()
            if answer.status_code == 200:
                return answer
            code, message = _error(answer)
            if code in ("not_ready", "draining") or answer.status_code in (502, 504):
                error = f"{worker.address}: {message}"  # or the proxy before it says that it is away
            elif answer.status_code in (429, 503) or code in ("busy", "deadline_exceeded"):
                busy = WorkerBusy(message, max(round(_retry_after_s(answer) * 1000), 200))
            else:
                raise SpeechRefused(code, message)
        if busy:
            raise busy
        raise WorkerUnreachable(error)


def _retry_after_s(answer: httpx.Response) -> float:
    """Seconds of a Retry-After; a date (as proxies may send) or none is taken for one second."""
    try:
        return float(answer.headers.get("Retry-After", 1))
    except ValueError:
        return 1.0


def _error(answer: httpx.Response) -> tuple[str, str]:
    """The machine word and the sentence of an error answer, whatever server gave it."""
    try:
        error = answer.json()["error"]
        return str(error.get("code") or "internal"), str(error.get("message") or answer.status_code)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ("invalid_request" if 400 <= answer.status_code < 500 else "internal"), answer.text[:300]
