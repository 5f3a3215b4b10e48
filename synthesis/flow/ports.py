"""The ports: what the decisions need from the world. The ORM binds them in synthesis.services.rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from synthesis.speaking.wire import SpeechOrder, TakeFacts


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the flow. Seconds where not named otherwise."""

    window: int = 16  # live leases per pool
    preview_reserve: int = 4  # of the window, kept free for previews
    preview_lease_s: float = 60.0
    bulk_lease_s: float = 600.0
    max_attempts: int = 3
    backoff_s: float = 2.0  # doubled per attempt
    backoff_most_s: float = 120.0
    unreachable_wait_s: float = 5.0
    publish_wait_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that may be handed out now."""

    job: int
    project: int


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a decision sees it, its row locked."""

    id: int
    is_open: bool
    is_leased: bool
    dispatch_no: int
    attempts: int
    fingerprint: str
    recipe: str
    segment: int
    segment_recipe: str  # what the segment wants now; "" = nothing any more
    pool: str
    conversion: int


class Rows(Protocol):
    """The queue of record. Every change is guarded: it says what it saw."""

    def atomic(self) -> AbstractContextManager[object]:
        """A transaction."""
        ...

    def dispatcher(self, pool: str) -> AbstractContextManager[bool]:
        """A transaction in which nobody else dispatches this pool; yields False at once if somebody does."""
        ...

    def in_flight(self, pool: str) -> Mapping[int, int]:
        """Live leases per project."""
        ...

    def waiting(self, pool: str, lane: str, limit: int) -> Sequence[Waiting]:
        """Due jobs of running conversions, at most `limit` per project, each project's in its own order."""
        ...

    def lease(self, jobs: Sequence[int], *, seconds: float) -> Sequence[SpeechOrder]:
        """Lease those that still wait, re-aimed at what their segments want now; the orders of those that were."""
        ...

    def job_lock(self, public_id: str) -> JobView | None:
        """Read a job and lock its row until the transaction ends."""
        ...

    def take_record(self, job: JobView, facts: TakeFacts) -> int:
        """Record a take once: an existing one of the same segment and fingerprint wins."""
        ...

    def take_choose(self, job: JobView, take: int) -> None:
        """Make it the segment's current take, or a candidate where the line is locked or approved."""
        ...

    def job_close(self, job: JobView) -> None:
        """Done; the segment comes to rest."""
        ...

    def job_wait(self, job: JobView, *, seconds: float, attempts: int | None = None) -> None:
        """Back into the queue, not before so many seconds."""
        ...

    def job_cancel(self, job: JobView) -> None:
        """Nothing wants it any more."""
        ...

    def job_fail(self, job: JobView, *, code: str, detail: str, attempts: int) -> None:
        """Failed for good: the reason stands on the job and on the segment."""
        ...

    def job_unlease(self, public_id: str, dispatch_no: int, *, seconds: float) -> bool:
        """Give a lease back that was never published."""
        ...

    def expired(self, limit: int) -> Sequence[tuple[str, int]]:
        """(public id, dispatch_no) of jobs whose lease ran out."""
        ...

    def pool_seen(self, pool: str, error: str) -> None:
        """Note that a pool answered ("") or could not be reached."""
        ...


class Conveyor(Protocol):
    """Carries orders to the workers."""

    def publish(self, order: SpeechOrder) -> None:
        """Hand over one order; returns only once it is confirmed. Raises ConveyorDown."""
        ...


class Random(Protocol):
    """Chance, handed in so that runs repeat."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...
