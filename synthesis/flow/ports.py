"""The ports: what the decisions need from the world, and the words they speak in.

`synthesis.services.rows` binds them to the database, `synthesis.flow.simulated` keeps the same promises in memory; one
conformance suite holds both to them. Leases, waits and graces are counted by the rows' own clock and by no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from synthesis.speaking.wire import SpeechOrder, TakeFacts


class JobState(StrEnum):
    """States of a job; the values are those of the stored rows."""

    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = frozenset({JobState.WAITING, JobState.LEASED})

# source -> where a job may go from there; a closed job stays closed (trying again makes a new one)
MOVES: Mapping[str, frozenset[JobState]] = {
    "": frozenset({JobState.WAITING}),
    JobState.WAITING: frozenset({JobState.LEASED, JobState.WAITING, JobState.DONE, JobState.CANCELLED}),
    JobState.LEASED: frozenset(JobState) - {JobState.LEASED},
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the flow. Seconds where not named otherwise."""

    window: int = 16  # live leases per pool
    preview_reserve: int = 4  # of the window, kept free for previews
    preview_lease_s: float = 60.0
    bulk_lease_s: float = 600.0
    confirm_lease_s: float = 15.0  # until the broker has confirmed an order
    max_attempts: int = 3
    losses_most: int = 3  # dispatches in a row lost with their worker, while the pool otherwise answers
    backoff_s: float = 2.0  # doubled per attempt
    backoff_most_s: float = 120.0
    unreachable_wait_s: float = 5.0
    publish_wait_s: float = 2.0
    ageing_s: float = 30.0  # bulk work that saw nothing for so long gets a place before previews
    breaker_failures: int = 3  # identical failures in a row that open a breaker
    probe_s: float = 30.0  # until the first probe of an open breaker; doubled per failed probe
    probe_most_s: float = 600.0
    grace_s: float = 86_400.0  # from unreferenced to swept; longer than the longest lease and its retries
    page: int = 200  # rows looked at per pass


@dataclass(frozen=True, slots=True)
class Flying:
    """Live leases of one conversion in a pool."""

    user: int
    project: int
    lane: str
    count: int


@dataclass(frozen=True, slots=True)
class Line:
    """A running conversion with its place in the order of things. Ages in seconds."""

    conversion: int
    user: int  # 0 = nobody
    project: int
    weight: int
    urgent: int
    idle_s: float  # since something of it was handed out last, or since it began


@dataclass(frozen=True, slots=True)
class Hold:
    """An open breaker of a pool: of one voice, or of the whole pool (voice None)."""

    subject: str
    voice: int | None
    probe_due: bool


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as a decision sees it, its row locked."""

    id: int
    public_id: str
    state: JobState
    dispatch_no: int
    attempts: int
    fingerprint: str
    recipe: str
    segment: int
    segment_recipe: str  # what the segment wants now; "" = nothing any more
    pool: str
    voice: int
    conversion: int
    in_lease: bool  # leased, and the lease has not run out
    leased_at: Any  # when it was handed out last, in the rows' own time

    @property
    def is_open(self) -> bool:
        """Still wants or has a worker."""
        return self.state in OPEN


@dataclass(frozen=True, slots=True)
class Lost:
    """A job whose lease ran out, as it was read: it may have moved on since."""

    public_id: str
    dispatch_no: int
    losses: int
    blamed: bool  # its order had been confirmed, and one handed out no earlier has been answered


@dataclass(frozen=True, slots=True)
class Move:
    """One guarded change of one job: what must still be true of it, and what it becomes."""

    job: str  # public id
    seen: JobState  # the state it must still be in …
    dispatch_no: int  # … in this dispatch
    to: JobState
    actor: str
    wait_s: float = 0.0  # for a job that waits again: not before so many seconds from now
    attempts: int | None = None  # None = as it was
    losses: int = 0
    code: str = ""  # why
    detail: str = ""


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker's row, locked."""

    subject: str
    streak: int
    code: str
    last: int
    is_open: bool


class Rows(Protocol):
    """The queue of record. Every change is guarded, says what it saw and returns what it changed."""

    def atomic(self) -> AbstractContextManager[object]:
        """A transaction."""
        ...

    # -- dispatch --------------------------------------------------------------------------------------------------
    def dispatcher(self, pool: str) -> AbstractContextManager[bool]:
        """A transaction in which nobody else dispatches this pool; yields False at once if somebody does."""
        ...

    def holds(self, pool: str) -> Sequence[Hold]:
        """The pool's open breakers."""
        ...

    def in_flight(self, pool: str) -> Sequence[Flying]:
        """Leases of the pool, counted."""
        ...

    def lines(self, lane: str) -> Sequence[Line]:
        """Running conversions of a lane; some may have nothing to hand out in a given pool."""
        ...

    def heads(
        self, pool: str, lane: str, conversion: int, limit: int, *, without: Iterable[int] = (), only: int = 0
    ) -> Sequence[int]:
        """The first due jobs of a conversion, urgent before others, in reading order; `without` these voices, `only`
        this one."""
        ...

    def lease(self, jobs: Sequence[int], *, seconds: float) -> Sequence[SpeechOrder]:
        """Lease those that still wait, re-aimed at what their segments want now; the orders of those that were.

        Leased orders count as unpublished until `lease_extend`.
        """
        ...

    def lease_extend(self, job: str, dispatch_no: int, *, seconds: float) -> bool:
        """Note that an order was confirmed, and let its lease run so long from now, if this dispatch still holds it."""
        ...

    def breaker_probed(self, subject: str, *, most_s: float) -> bool:
        """Put an open breaker's next probe off, twice as long each time up to `most_s`; True if this one is due."""
        ...

    # -- results ---------------------------------------------------------------------------------------------------
    def job_lock(self, public_id: str) -> JobView | None:
        """Read a job and lock its row until the transaction ends."""
        ...

    def job_move(self, move: Move) -> bool:
        """Change a job if its guard holds, append the event, and bring its segment and conversion along."""
        ...

    def job_alive(self, job: JobView) -> None:
        """Forget that dispatches of a job were lost: a worker has lived to report one."""
        ...

    def take_record(self, job: JobView, facts: TakeFacts) -> int:
        """Record a take once: an existing one of the same segment and fingerprint wins."""
        ...

    def take_choose(self, job: JobView, take: int) -> None:
        """Make it the segment's current take, or a candidate where the line is locked or approved."""
        ...

    def pool_seen(self, pool: str, error: str, *, handed_at: Any = None) -> None:
        """Note that a pool could not be reached, or answered (""): an order handed out at `handed_at`, where that is known.

        A statement of its own, after the transaction.
        """
        ...

    def breaker_lock(self, pool: str, voice: int | None) -> BreakerView:
        """Read the breaker of a voice, or of the pool (None), and lock it; made if there is none."""
        ...

    def breaker_set(
        self, subject: str, *, streak: int, code: str, detail: str, last: int, open_for_s: float | None
    ) -> None:
        """Write a breaker; `open_for_s` seconds until its next probe, None = closed."""
        ...

    def breakers_reset(self, pool: str, voice: int) -> bool:
        """A success: end the streaks of a pool and voice and close their breakers. True if one was open."""
        ...

    # -- upkeep ----------------------------------------------------------------------------------------------------
    def expired(self, limit: int) -> Sequence[Lost]:
        """Jobs whose lease ran out, oldest first."""
        ...

    # -- collection ------------------------------------------------------------------------------------------------
    def unreferenced(self, keys: Sequence[str]) -> Sequence[str]:
        """Those of the keys that no take points at."""
        ...

    def garbage_mark(self, keys: Sequence[str]) -> int:
        """Mark keys as garbage from now on; those marked already keep their time. The number that are new."""
        ...

    def garbage_due(self, *, seconds: float, limit: int) -> Sequence[str]:
        """Keys marked for at least so long and not swept."""
        ...

    def garbage_hold(self, key: str, *, seconds: float) -> bool:
        """Lock a mark until the transaction ends; False if it is gone, swept, or not so old (any more)."""
        ...

    def garbage_lock(self, keys: Sequence[str]) -> bool:
        """Lock what marks these keys have, swept ones too, until the transaction ends; whether there were any."""
        ...

    def garbage_clear(self, keys: Sequence[str]) -> None:
        """Take marks away."""
        ...

    def garbage_swept(self, key: str) -> None:
        """Note that a marked object was deleted."""
        ...

    def garbage_forget(self, *, seconds: float) -> int:
        """Forget objects swept so long ago."""
        ...


class Objects(Protocol):
    """Where audio lies, as the collector and a doubtful success see it. All raise StorageRefused."""

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        """Whether an object is there, with this length if one is given."""
        ...

    def old(self, *, seconds: float) -> Iterator[Sequence[str]]:
        """Keys of take objects at least so old, in pages."""
        ...

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
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
