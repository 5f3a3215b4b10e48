"""The ports in memory, with the manners of a database: for simulation and for tests without one.

Tables keep transactions apart as PostgreSQL does at READ COMMITTED: a reader sees what is committed and its own writes,
a writer locks the row, whoever wants a locked row waits for the other's end and then looks again. `exclusive` makes
transactions exclude each other whole, as SQLite's IMMEDIATE ones do. Time is `now`, moved by whoever drives.

Drivers hook in at `point` (called before each port call) and `wait` (called when a lock is held by somebody else). The
suite `tests/synthesis/flow/test_conformance.py` holds these rows and the ORM's to the same behaviour.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from synthesis.speaking.store import StorageRefused
from synthesis.speaking.wire import SpeechOrder, TakeFacts

from .ports import OPEN, BreakerView, Flying, Hold, JobState, JobView, Limits, Line, Lost, Move

Row = dict[str, Any]
TAIL = 64  # open jobs below which the end of a conversion is looked at under its lock


class Deadlock(Exception):
    """Raised when waiting for a lock would never end: the whole transaction again."""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of state of a job."""

    job: int
    source: str
    to: str
    dispatch_no: int
    attempts: int
    actor: str
    reason: str
    at: float


@dataclass(slots=True, eq=False)
class Transaction:
    """What one transaction wrote and locked."""

    began: float
    writes: dict[tuple[str, Hashable], Row | None] = field(default_factory=dict)
    locks: list[Hashable] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    waits_for: Transaction | None = None


class SimulatedRows:
    """The queue of record in memory, and the hands of its users."""

    def __init__(self, limits: Limits, *, exclusive: bool = False) -> None:
        self.limits = limits
        self.exclusive = exclusive
        self.now = 0.0
        self.tables: dict[str, dict[Hashable, Row]] = {
            name: {} for name in ("job", "segment", "take", "conversion", "pool", "breaker", "garbage")
        }
        self.events: list[Event] = []
        self.point: Callable[[], None] = lambda: None
        self.wait: Callable[[Transaction], None] = _nobody_to_wait_for
        self.who: Callable[[], Hashable] = lambda: 0
        self.committed: Callable[[Transaction], None] = lambda _transaction: None
        self._owners: dict[Hashable, Transaction] = {}
        self._running: dict[Hashable, Transaction] = {}
        self._jobs_by_id: dict[str, int] = {}
        self._next = 0

    # -- transactions ------------------------------------------------------------------------------------------------
    @contextmanager
    def atomic(self) -> Iterator[Transaction]:
        who = self.who()
        mine = self._running.get(who)
        if mine is not None:
            yield mine
            return
        mine = self._running[who] = Transaction(self.now)
        try:
            if self.exclusive:
                self._lock(mine, "database")
            yield mine
            if mine.writes:
                self.point()  # COMMIT is a call too: others run before it, and it may never be made
            for (table, pk), row in mine.writes.items():
                if row is None:
                    self.tables[table].pop(pk, None)
                else:
                    self.tables[table][pk] = row
            self.events += mine.events
            del self._running[who]
            self.committed(mine)
        finally:
            self._running.pop(who, None)
            for key in mine.locks:
                if self._owners.get(key) is mine:
                    del self._owners[key]

    def _lock(self, mine: Transaction, key: Hashable, *, skip: bool = False) -> bool:
        """Take a lock; with `skip` say False instead of waiting. Raises Deadlock."""
        while (owner := self._owners.get(key)) is not None and owner is not mine:
            if skip:
                return False
            mine.waits_for, seen = owner, owner
            while seen.waits_for is not None:
                seen = seen.waits_for
                if seen is mine:
                    mine.waits_for = None
                    raise Deadlock(str(key))
            try:
                self.wait(owner)
            finally:
                mine.waits_for = None
        if owner is None:
            self._owners[key] = mine
            mine.locks.append(key)
        return True

    def is_running(self, transaction: Transaction) -> bool:
        """Whether a transaction still holds its locks."""
        return any(self._owners.get(key) is transaction for key in transaction.locks)

    # -- tables ------------------------------------------------------------------------------------------------------
    def _get(self, table: str, pk: Hashable) -> Row | None:
        mine = self._running.get(self.who())
        if mine is not None and (table, pk) in mine.writes:
            return mine.writes[table, pk]
        return self.tables[table].get(pk)

    def _all(self, table: str) -> list[Row]:
        mine = self._running.get(self.who())
        if mine is None or not mine.writes:
            return list(self.tables[table].values())
        merged = dict(self.tables[table])
        for (name, pk), row in mine.writes.items():
            if name == table:
                if row is None:
                    merged.pop(pk, None)
                else:
                    merged[pk] = row
        return list(merged.values())

    def _lock_row(self, table: str, pk: Hashable, *, skip: bool = False) -> Row | None:
        """Lock a row and read it as it then is."""
        mine = self._running[self.who()]
        if not self._lock(mine, (table, pk), skip=skip):
            return None
        return self._get(table, pk)

    def _write(self, table: str, pk: Hashable, row: Row | None) -> None:
        self._running[self.who()].writes[table, pk] = row

    def _change(self, table: str, pk: Hashable, **changes: Any) -> None:
        row = self._lock_row(table, pk)
        if row is not None:
            self._write(table, pk, {**row, **changes})

    def _event(
        self, job: Row, to: JobState, dispatch_no: int, actor: str, reason: str, attempts: int
    ) -> None:
        self._running[self.who()].events.append(
            Event(job["id"], job["state"], to, dispatch_no, attempts, actor, reason, self.now)
        )

    # -- dispatch ----------------------------------------------------------------------------------------------------
    @contextmanager
    def dispatcher(self, pool: str) -> Iterator[bool]:
        self.point()
        with self.atomic() as mine:
            if not self.tables["pool"].get(pool):
                self.tables["pool"][pool] = {"name": pool, "answered_at": None, "unreachable_since": None}
            yield self._lock(mine, ("pool", pool), skip=True)

    def holds(self, pool: str) -> Sequence[Hold]:
        self.point()
        return [
            Hold(row["subject"], row["voice"], row["probe_at"] <= self.now)
            for row in sorted(self._all("breaker"), key=lambda r: r["subject"])
            if row["pool"] == pool and row["opened_at"] is not None
        ]

    def in_flight(self, pool: str) -> Sequence[Flying]:
        self.point()
        counts: dict[tuple[int, int, str], int] = defaultdict(int)
        for job in self._all("job"):
            if job["pool"] == pool and job["state"] == JobState.LEASED:
                conversion = self.tables["conversion"][job["conversion"]]
                counts[conversion["user"], conversion["project"], job["lane"]] += 1
        return [Flying(*key, count) for key, count in counts.items()]

    def lines(self, lane: str) -> Sequence[Line]:
        self.point()
        return [
            Line(
                row["id"],
                row["user"],
                row["project"],
                row["weight"],
                row["urgent"],
                self.now - (row["created_at"] if row["handed_at"] is None else row["handed_at"]),
            )
            for row in self._all("conversion")
            if row["state"] == "running" and row["lane"] == lane
        ]

    def heads(
        self, pool: str, lane: str, conversion: int, limit: int, *, without: Iterable[int] = (), only: int = 0
    ) -> Sequence[int]:
        self.point()
        held = set(without)
        found = [
            job
            for job in self._all("job")
            if job["state"] == JobState.WAITING
            and (job["not_before"] is None or job["not_before"] <= self.now)
            and (job["pool"], job["lane"], job["conversion"]) == (pool, lane, conversion)
            and (job["voice"] == only if only else job["voice"] not in held)
        ]
        found.sort(key=lambda job: (-job["urgent"], job["position"]))
        return [job["id"] for job in found[:limit]]

    def lease(self, jobs: Sequence[int], *, seconds: float) -> Sequence[SpeechOrder]:
        self.point()
        orders = []
        with self.atomic():
            for pk in jobs:
                job = self._lock_row("job", pk, skip=True)
                if job is None or job["state"] != JobState.WAITING or not self._aim(job):
                    continue
                job = self._get("job", pk) or {}
                dispatch_no = job["dispatch_no"] + 1
                self._event(job, JobState.LEASED, dispatch_no, "dispatch", "", job["attempts"])
                self._write(
                    "job",
                    pk,
                    {
                        **job,
                        "state": JobState.LEASED,
                        "dispatch_no": dispatch_no,
                        "lease_until": self.now + seconds,
                        "leased_at": self.now,
                        "published": False,
                        "not_before": None,
                    },
                )
                self._change("conversion", job["conversion"], handed_at=self.now)
                self._segment_move(job["segment"], "rendering", ("queued",))
                orders.append(self._order(job, dispatch_no))
        return orders

    def _aim(self, job: Row) -> bool:
        segment = self._get("segment", job["segment"]) or {}
        if segment["recipe"] == job["recipe"]:
            return True
        if segment["recipe"] and self._open_free(job["segment"], segment["recipe"], besides=job["id"]):
            changes = {"recipe": segment["recipe"], "fingerprint": segment["recipe"]}
            self._write("job", job["id"], {**job, **changes})
            return True
        self.job_move(
            Move(
                job["public_id"],
                JobState.WAITING,
                job["dispatch_no"],
                JobState.CANCELLED,
                "dispatch",
                code="superseded",
            )
        )
        return False

    def _open_free(self, segment: int, fingerprint: str, *, besides: int = 0) -> bool:
        """Whether no other open job wants this take: the unique constraint, which waits for who is about to know."""
        self._lock(self._running[self.who()], ("open", segment, fingerprint))
        return not any(
            row["segment"] == segment
            and row["fingerprint"] == fingerprint
            and row["state"] in OPEN
            and row["id"] != besides
            for row in self._all("job")
        )

    def _order(self, job: Row, dispatch_no: int) -> SpeechOrder:
        seconds = self.limits.preview_lease_s if job["lane"] == "preview" else self.limits.bulk_lease_s
        return SpeechOrder(
            job=job["public_id"],
            dispatch_no=dispatch_no,
            project="book",
            segment=str(job["segment"]),
            fingerprint=job["fingerprint"],
            pool=job["pool"],
            lane=job["lane"],
            model="m",
            revision="1",
            voice=str(job["voice"]),
            language="en",
            spoken=job["recipe"],
            not_after=self.now + seconds,
        )

    def lease_extend(self, job: str, dispatch_no: int, *, seconds: float) -> bool:
        self.point()
        with self.atomic():
            row = self._lock_row("job", self._jobs_by_id.get(job, 0))
            if row is None or row["state"] != JobState.LEASED or row["dispatch_no"] != dispatch_no:
                return False
            self._write("job", row["id"], {**row, "lease_until": self.now + seconds, "published": True})
        return True

    def breaker_probed(self, subject: str, *, most_s: float) -> bool:
        self.point()
        with self.atomic():
            row = self._lock_row("breaker", subject)
            if row is None or row["opened_at"] is None or row["probe_at"] > self.now:
                return False
            wait_s = row["probe_wait_s"]
            changes = {"probe_at": self.now + wait_s, "probe_wait_s": min(wait_s * 2, most_s)}
            self._write("breaker", subject, {**row, **changes})
        return True

    # -- results -----------------------------------------------------------------------------------------------------
    def job_lock(self, public_id: str) -> JobView | None:
        self.point()
        job = self._lock_row("job", self._jobs_by_id.get(public_id, 0))
        if job is None:
            return None
        segment = self._get("segment", job["segment"]) or {}
        return JobView(
            id=job["id"],
            public_id=public_id,
            state=job["state"],
            dispatch_no=job["dispatch_no"],
            attempts=job["attempts"],
            fingerprint=job["fingerprint"],
            recipe=job["recipe"],
            segment=job["segment"],
            segment_recipe=segment["recipe"],
            pool=job["pool"],
            voice=job["voice"],
            conversion=job["conversion"],
            in_lease=job["state"] == JobState.LEASED and job["lease_until"] >= self.now,
            leased_at=job["leased_at"],
        )

    def job_move(self, move: Move) -> bool:
        self.point()
        with self.atomic():
            job = self._lock_row("job", self._jobs_by_id.get(move.job, 0))
            if job is None or job["state"] != move.seen or job["dispatch_no"] != move.dispatch_no:
                return False
            attempts = job["attempts"] if move.attempts is None else move.attempts
            self._event(job, move.to, move.dispatch_no, move.actor, move.code, attempts)
            waits = move.to is JobState.WAITING
            self._write(
                "job",
                job["id"],
                {
                    **job,
                    "state": move.to,
                    "lease_until": None,
                    "losses": move.losses,
                    "attempts": attempts,
                    "not_before": self.now + move.wait_s if waits and move.wait_s > 0 else None,
                    "code": move.code if move.to is JobState.FAILED else "",
                },
            )
            if waits:
                self._segment_move(
                    job["segment"], "queued", ("empty", "ready", "failed", "rendering"), code=""
                )
                return True
            if move.to is JobState.FAILED:
                self._segment_move(job["segment"], "failed", ("queued", "rendering"), code=move.code)
            else:
                self._segment_settle(job["segment"])
            self._conversion_finish(job["conversion"])
        return True

    def job_alive(self, job: JobView) -> None:
        self.point()
        with self.atomic():
            self._change("job", job.id, losses=0)

    def _segment_move(self, segment: int, to: str, sources: Iterable[str], code: str = "") -> None:
        row = self._lock_row("segment", segment) or {}
        if row["state"] in sources:
            self._write("segment", segment, {**row, "state": to, "code": code})

    def _segment_settle(self, segment: int) -> None:
        row = self._lock_row("segment", segment) or {}  # first the lock, then the look at other jobs
        if any(job["segment"] == segment and job["state"] in OPEN for job in self._all("job")):
            self._segment_move(segment, "queued", ("empty", "ready", "failed", "rendering"))
        else:
            to = "empty" if row["chosen"] is None else "ready"
            self._write("segment", segment, {**row, "state": to, "code": ""})

    def _conversion_finish(self, conversion: int) -> None:
        """Close a conversion whose last open job is closed. Near the end under its lock: of two who close the last two
        jobs at once, one must see both closed."""
        if self._open_of(conversion) < TAIL:
            row = self._lock_row("conversion", conversion) or {}
            if row["state"] in ("running", "paused") and not self._open_of(conversion):
                self._write("conversion", conversion, {**row, "state": "done"})

    def _open_of(self, conversion: int) -> int:
        return sum(job["conversion"] == conversion and job["state"] in OPEN for job in self._all("job"))

    def take_record(self, job: JobView, facts: TakeFacts) -> int:
        self.point()
        self._lock_row("segment", job.segment)
        for take in self._all("take"):
            if (take["segment"], take["fingerprint"]) == (job.segment, job.fingerprint):
                return take["id"]
        self._next += 1
        self._write(
            "take",
            self._next,
            {
                "id": self._next,
                "segment": job.segment,
                "recipe": job.recipe,
                "fingerprint": job.fingerprint,
                "audio_key": facts.audio_key,
                "peaks_key": facts.peaks_key,
                "candidate": False,
                "job": job.id,
            },
        )
        return self._next

    def take_choose(self, job: JobView, take: int) -> None:
        self.point()
        segment = self._lock_row("segment", job.segment) or {}
        if segment["kept"] and segment["chosen"] is not None:
            if segment["chosen"] != take:
                self._change("take", take, candidate=True)
            return
        self._write("segment", job.segment, {**segment, "chosen": take})

    def pool_seen(self, pool: str, error: str, *, handed_at: Any = None) -> None:
        self.point()
        with self.atomic():
            row = self._lock_row("pool", pool)
            if row is None:
                return
            if error:
                since = self.now if row["unreachable_since"] is None else row["unreachable_since"]
                self._write("pool", pool, {**row, "unreachable_since": since})
            else:
                known = [at for at in (row["answered_at"], handed_at) if at is not None]
                answered_at = max(known, default=None)
                self._write("pool", pool, {**row, "answered_at": answered_at, "unreachable_since": None})

    def breaker_lock(self, pool: str, voice: int | None) -> BreakerView:
        self.point()
        subject = f"voice:{voice}" if voice else f"pool:{pool}"
        row = self._lock_row("breaker", subject)
        if row is None:
            row = {"subject": subject, "pool": pool, "voice": voice, **_CLOSED}
            self._write("breaker", subject, row)
        return BreakerView(subject, row["streak"], row["code"], row["last"], row["opened_at"] is not None)

    def breaker_set(
        self, subject: str, *, streak: int, code: str, detail: str, last: int, open_for_s: float | None
    ) -> None:
        self.point()
        with self.atomic():
            row = self._lock_row("breaker", subject) or {}
            opening: Row = {"opened_at": None, "probe_at": None, "probe_wait_s": 0.0}
            if open_for_s is not None:
                since = self.now if row["opened_at"] is None else row["opened_at"]
                opening = {
                    "opened_at": since,
                    "probe_at": self.now + open_for_s,
                    "probe_wait_s": open_for_s,
                }
            self._write("breaker", subject, {**row, "streak": streak, "code": code, "last": last, **opening})

    def breakers_reset(self, pool: str, voice: int) -> bool:
        self.point()
        was_open = False
        with self.atomic():
            for subject in (f"pool:{pool}", f"voice:{voice}"):
                seen = self._get("breaker", subject)
                if seen is None or not seen["streak"]:
                    continue
                row = self._lock_row("breaker", subject) or {}
                was_open = was_open or row["opened_at"] is not None
                self._write("breaker", subject, {**row, **_CLOSED})
        return was_open

    # -- upkeep ------------------------------------------------------------------------------------------------------
    def expired(self, limit: int) -> Sequence[Lost]:
        self.point()
        found = [
            job
            for job in self._all("job")
            if job["state"] == JobState.LEASED and job["lease_until"] < self.now
        ]
        found.sort(key=lambda job: job["lease_until"])
        return [
            Lost(
                job["public_id"], job["dispatch_no"], job["losses"], job["published"] and self._answered(job)
            )
            for job in found[:limit]
        ]

    def _answered(self, job: Row) -> bool:
        answered_at = self.tables["pool"][job["pool"]]["answered_at"]
        return answered_at is not None and answered_at >= job["leased_at"]

    # -- collection --------------------------------------------------------------------------------------------------
    def unreferenced(self, keys: Sequence[str]) -> Sequence[str]:
        self.point()
        held = {key for take in self._all("take") for key in (take["audio_key"], take["peaks_key"])}
        return [key for key in keys if key not in held]

    def garbage_mark(self, keys: Sequence[str]) -> int:
        self.point()
        new = 0
        with self.atomic():
            for key in keys:
                row = self._lock_row("garbage", key)
                new += row is None
                if row is None or row["swept_at"] is not None:
                    self._write("garbage", key, {"key": key, "marked_at": self.now, "swept_at": None})
        return new

    def garbage_due(self, *, seconds: float, limit: int) -> Sequence[str]:
        self.point()
        rows = [row for row in self._all("garbage") if self._is_due(row, seconds)]
        rows.sort(key=lambda row: row["marked_at"])
        return [row["key"] for row in rows[:limit]]

    def _is_due(self, row: Row, seconds: float) -> bool:
        return row["swept_at"] is None and row["marked_at"] <= self.now - seconds

    def garbage_hold(self, key: str, *, seconds: float) -> bool:
        self.point()
        row = self._lock_row("garbage", key)
        return row is not None and self._is_due(row, seconds)

    def garbage_lock(self, keys: Sequence[str]) -> bool:
        self.point()
        # only rows that are there can be locked; after a wait they may be gone
        there = [key for key in sorted(keys) if self._get("garbage", key) is not None]
        return bool([key for key in there if self._lock_row("garbage", key) is not None])

    def garbage_clear(self, keys: Sequence[str]) -> None:
        self.point()
        with self.atomic():
            for key in keys:
                if self._get("garbage", key) is not None and self._lock_row("garbage", key) is not None:
                    self._write("garbage", key, None)

    def garbage_swept(self, key: str) -> None:
        self.point()
        with self.atomic():
            self._change("garbage", key, swept_at=self.now)

    def garbage_forget(self, *, seconds: float) -> int:
        self.point()
        with self.atomic():
            old = [
                row["key"]
                for row in self._all("garbage")
                if row["swept_at"] is not None and row["swept_at"] < self.now - seconds
            ]
            for key in old:
                self._lock_row("garbage", key)
                self._write("garbage", key, None)
        return len(old)

    # -- the users' hands --------------------------------------------------------------------------------------------
    def segment_add(self, recipe: str, *, kept: bool = False) -> int:
        """A sentence that wants a take of this recipe."""
        self._next += 1
        self.tables["segment"][self._next] = {
            "id": self._next,
            "recipe": recipe,
            "state": "empty",
            "chosen": None,
            "kept": kept,
            "code": "",
        }
        return self._next

    def conversion_start(
        self,
        segments: Sequence[int],
        *,
        user: int = 1,
        project: int = 1,
        lane: str = "bulk",
        pool: str = "cpu",
        voices: Sequence[int] = (1,),
        weight: int = 1,
        variant: str = "",
    ) -> int:
        """Queue one job per sentence. A take that exists is chosen without synthesis; a sentence that an open job wants
        already is left to it."""
        self.point()
        with self.atomic():
            self._next += 1
            conversion = self._next
            self._write(
                "conversion",
                conversion,
                {
                    "id": conversion,
                    "user": user,
                    "project": project,
                    "lane": lane,
                    "state": "running",
                    "weight": weight,
                    "urgent": 0,
                    "created_at": self.now,
                    "handed_at": None,
                },
            )
            for position, segment in enumerate(segments):
                recipe = (self._get("segment", segment) or {})["recipe"]
                made = [
                    take["id"]
                    for take in self._all("take")
                    if (take["segment"], take["fingerprint"]) == (segment, recipe + variant)
                ]
                if made:
                    row = self._lock_row("segment", segment) or {}
                    self._write("segment", segment, {**row, "chosen": made[0]})
                    self._segment_move(segment, "ready", ("empty", "failed"))
                    continue
                if not recipe or not self._open_free(segment, recipe + variant):
                    continue
                self._next += 1
                job = {
                    "id": self._next,
                    "public_id": f"job{self._next}",
                    "state": JobState.WAITING,
                    "conversion": conversion,
                    "segment": segment,
                    "voice": voices[position % len(voices)],
                    "pool": pool,
                    "lane": lane,
                    "position": position,
                    "urgent": 0,
                    "recipe": recipe,
                    "fingerprint": recipe + variant,
                    "dispatch_no": 0,
                    "attempts": 0,
                    "losses": 0,
                    "not_before": None,
                    "lease_until": None,
                    "leased_at": None,
                    "published": False,
                    "code": "",
                }
                self._event({**job, "state": ""}, JobState.WAITING, 0, "user", "", 0)
                self._write("job", self._next, job)
                self._jobs_by_id[job["public_id"]] = self._next
                self._segment_move(segment, "queued", ("empty", "ready", "failed"))
            self._conversion_finish(conversion)
        return conversion

    def segment_edit(self, segment: int, recipe: str) -> None:
        """Change what a sentence wants; "" = nothing any more."""
        self.point()
        with self.atomic():
            self._change("segment", segment, recipe=recipe)

    def conversion_switch(self, conversion: int, state: str) -> bool:
        """Pause ("paused") or resume ("running")."""
        self.point()
        source = {"paused": "running", "running": "paused"}[state]
        with self.atomic():
            row = self._lock_row("conversion", conversion) or {}
            if row["state"] != source:
                return False
            self._write("conversion", conversion, {**row, "state": state})
        return True

    def conversion_cancel(self, conversion: int) -> int:
        """Want none of it any more; the number of jobs cancelled."""
        self.point()
        with self.atomic():
            jobs = [job["id"] for job in self._all("job") if job["conversion"] == conversion]
            cancelled = []
            for pk in sorted(jobs):
                job = self._lock_row("job", pk) or {}
                if job["state"] in OPEN:
                    self._event(job, JobState.CANCELLED, job["dispatch_no"], "user", "", job["attempts"])
                    changes = {"state": JobState.CANCELLED, "lease_until": None, "not_before": None}
                    self._write("job", pk, {**job, **changes})
                    cancelled.append(job["segment"])
            for segment in sorted(set(cancelled)):
                self._segment_settle(segment)
            row = self._lock_row("conversion", conversion) or {}
            if row["state"] in ("running", "paused"):
                self._write("conversion", conversion, {**row, "state": "cancelled"})
        return len(cancelled)


_CLOSED: Row = {
    "streak": 0,
    "code": "",
    "last": 0,
    "opened_at": None,
    "probe_at": None,
    "probe_wait_s": 0.0,
}


def _nobody_to_wait_for(_owner: Transaction) -> None:
    raise Deadlock("a lock is held and nobody else runs")


class SimulatedObjects:
    """Storage in memory; `away` makes it refuse."""

    def __init__(self, rows: SimulatedRows) -> None:
        self.rows = rows
        self.away = False
        self.kept: dict[str, tuple[int, float]] = {}  # key -> (bytes, when put)
        self.deleted: Callable[[str], None] = lambda _key: None

    def put(self, key: str, size_bytes: int) -> None:
        """What a worker does. Raises StorageRefused."""
        self._reach()
        self.kept[key] = (size_bytes, self.rows.now)

    def holds(self, key: str, size_bytes: int | None = None) -> bool:
        self.rows.point()
        self._reach()
        return key in self.kept and size_bytes in (None, self.kept[key][0])

    def old(self, *, seconds: float) -> Iterator[Sequence[str]]:
        self.rows.point()
        self._reach()
        yield [key for key, (_size, at) in self.kept.items() if at <= self.rows.now - seconds]

    def delete(self, key: str) -> None:
        self.rows.point()
        self._reach()
        self.kept.pop(key, None)
        self.deleted(key)

    def _reach(self) -> None:
        if self.away:
            raise StorageRefused("storage is away")
