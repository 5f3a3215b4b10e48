"""A small studio in virtual time: the real decisions over rows, objects and a conveyor in memory, under faults.

One seed makes one schedule. Every call of a port is a point at which somebody else may run: the caller is put aside and
goes on a moment later, or much later (a process that was stopped), or never (one that was killed). Settings, work and
faults come from the seed too. What must always hold is checked at every commit, what must hold in the end when the
faults are over and time has passed.

`Choices` makes every decision of a schedule; a schedule can be replayed with some of its choices put to zero (= nothing
unusual happens), which is how a failing one is shrunk to a short list.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import greenlet

from synthesis.flow import breaker, collection, dispatch, results, upkeep
from synthesis.flow.ports import MOVES, OPEN, JobState, Limits
from synthesis.flow.simulated import (
    Deadlock,
    Event,
    SimulatedObjects,
    SimulatedRows,
    Transaction,
)
from synthesis.speaking.conveyor import ConveyorDown
from synthesis.speaking.store import StorageRefused
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult, TakeFacts

POOLS = ("cpu", "gpu")
UPKEEP_S = 5.0
COLLECT_MOST_S = 40.0
FAULTS_END_S = 150.0
END_S = 1_500.0  # by then everything has long come to rest
DELIVERIES = 3  # of one message, then it is a dead letter
PERIODIC = 4  # events that are always in the schedule: upkeep and collector, two of each
SIZE = 9  # bytes of a simulated object
CHARGED = frozenset(
    {"internal", "text_not_speakable", "voice_not_found"}
)  # failures that may cost an attempt


class Violation(AssertionError):
    """Raised when an invariant does not hold."""


class Killed(BaseException):
    """Raised inside a process at a port call: kill -9."""


@dataclass(slots=True)
class Choices:
    """The decisions of one schedule, by name and turn: {"kill": {3: 1}} kills at the fourth occasion."""

    random: random.Random
    forced: Mapping[tuple[str, int], Any] | None = None  # None = from the seed
    made: dict[tuple[str, int], Any] = field(default_factory=dict)  # those that were not ordinary
    turns: dict[str, int] = field(default_factory=dict)

    def happens(self, name: str, chance: float) -> bool:
        """Whether something unusual happens now."""
        turn = self.turns.get(name, 0)
        self.turns[name] = turn + 1
        drawn = self.random.random() < chance
        if self.forced is not None:
            drawn = (name, turn) in self.forced
        if drawn:
            self.made[name, turn] = 1
        return drawn


class Conveyor:
    """What the dispatcher publishes on."""

    def __init__(self, world: World) -> None:
        self.world = world

    def publish(self, order: SpeechOrder) -> None:
        world = self.world
        world.rows.point()
        if world.now < world.broker_away_until:
            raise ConveyorDown("away")
        job = world.rows.tables["job"][world.rows._jobs_by_id[order.job]]
        world._need(
            job["dispatch_no"] >= order.dispatch_no, f"{order.job}: published before its lease was committed"
        )
        if world.choices.happens("order refused", 0.03):
            raise ConveyorDown("refused")
        world.order_send(order)
        if world.choices.happens("order twice", 0.05):
            world.order_send(order)
        if world.choices.happens("confirm lost", 0.05):
            raise ConveyorDown("no confirm in time")


FLOW = SimpleNamespace(
    dispatch=dispatch.dispatch,
    settle=results.settle,
    leases_expire=upkeep.leases_expire,
    order_dead=upkeep.order_dead,
    garbage_find=collection.garbage_find,
    garbage_sweep=collection.garbage_sweep,
    rows=SimulatedRows,
)


class World:
    """One schedule."""

    def __init__(
        self, seed: int, *, flow: Any = FLOW, forced: Mapping[tuple[str, int], Any] | None = None
    ) -> None:
        self.seed, self.flow = seed, flow
        self.random = random.Random(seed)
        self.choices = Choices(random.Random(seed ^ 0x5EED), forced)
        setting = self.random
        window = setting.choice((1, 2, 3, 4, 8, 50))
        bulk_s = setting.choice((8.0, 20.0))
        self.limits = Limits(
            window=window,
            preview_reserve=setting.choice((0, 1)) if window > 1 else 0,
            preview_lease_s=8.0,
            bulk_lease_s=bulk_s,
            confirm_lease_s=6.0,
            backoff_s=0.5,
            backoff_most_s=4.0,
            unreachable_wait_s=2.0,
            publish_wait_s=1.0,
            ageing_s=20.0,
            probe_s=5.0,
            probe_most_s=20.0,
            grace_s=setting.choice((25.0, 60.0)),
            page=setting.choice((1, 2, 200)),
        )
        self.rows: SimulatedRows = flow.rows(self.limits, exclusive=setting.random() < 0.25)
        self.rows.point, self.rows.wait, self.rows.who = self._point, self._wait, greenlet.getcurrent
        self.rows.committed = self._committed
        self.objects = SimulatedObjects(self.rows)
        self.objects.deleted = self._object_deleted
        self.conveyor = Conveyor(self)
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.serial = 0
        self.hub = greenlet.getcurrent()
        self.waiting: dict[Any, list[Any]] = defaultdict(list)
        self.current: str = ""
        self.log: list[str] = []

        # the outside
        self.broker_away_until = 0.0
        self.pool_away_until = dict.fromkeys(POOLS, 0.0)
        self.voice_broken_until: dict[int, float] = {}
        self.workers_away_until = dict.fromkeys(POOLS, 0.0)  # nobody reads orders
        self.poison: set[str] = set()  # words that kill whoever speaks them
        self.unspeakable: set[str] = set()
        self.slow = setting.choice((1.0, 1.0, 1.0, 6.0))  # 6 = many take longer than their lease
        self.same_bytes = setting.random() < 0.7
        # some schedules are hard on results, so that objects lie about, are made again and are collected meanwhile
        self.forgetful = 4 if setting.random() < 0.25 else 1
        self.collect_s = setting.choice((5.0, COLLECT_MOST_S))
        self.bunched = setting.random() < 0.5  # results come in bunches, as from batches
        self.work: Counter[str] = Counter()  # deliveries per order, as the broker counts them
        self.harmed: set[str] = set()  # jobs that chance has taken a worker, an order or a result from

        # what the checks remember
        self.state: dict[int, str] = {}
        self.dispatched: dict[int, int] = {}
        self.attempts: dict[int, int] = {}
        self.done: set[int] = set()
        self.recipes: dict[int, list[tuple[float, str]]] = {}
        self.streak: Counter[tuple[int, str]] = Counter()
        self.settling: dict[Any, SpeechResult] = {}
        self.switched: dict[int, float] = {}  # when a conversion was changed last

    # -- time and turns ------------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        return self.rows.now

    def at(self, seconds: float, call: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        self.serial += 1
        heapq.heappush(self.heap, (self.rows.now + seconds, self.serial, call))

    def run(self, name: str, call: Callable[[], Any], *, again: Callable[[], None] | None = None) -> None:
        """Run a process's step now; `again` is called if it died or has to do it all again."""

        def body() -> None:
            try:
                call()
            except Killed:
                self.note(f"{name} killed")
                if again:
                    self.at(self.random.uniform(0.5, 3.0), again)
            except (Deadlock, StorageRefused):
                if again:
                    self.at(self.random.uniform(0.1, 0.5), again)

        runner = greenlet.greenlet(body, parent=self.hub)
        runner.switch()

    def _point(self) -> None:
        """A scheduling point: others run; the caller may be stopped for long, or killed."""
        me = greenlet.getcurrent()
        if me is self.hub:
            return
        if self.now < FAULTS_END_S and self.choices.happens("struck", 0.008):
            if self.random.random() < 0.5:
                raise Killed
            if me in self.settling:  # stopped with a result in its hands
                self.harmed.add(self.settling[me].job)
            self._sleep(me, self.random.uniform(5.0, 30.0))
            return
        if self.random.random() < 0.4:
            self._sleep(me, self.random.random() * 0.02)

    def _sleep(self, me: Any, seconds: float) -> None:
        self.at(seconds, me.switch)
        self.hub.switch()

    def _wait(self, owner: Transaction) -> None:
        """Put the caller aside until a transaction has ended."""
        me = greenlet.getcurrent()
        if me is self.hub:
            raise Deadlock("the hub cannot wait")

        def look() -> None:
            if self.rows.is_running(owner):
                self.at(0.01 + self.random.random() * 0.3, look)
            else:
                me.switch()

        self.at(0.01, look)
        self.hub.switch()

    def note(self, text: str) -> None:
        """A line of the schedule, for people."""
        self.log.append(f"{self.now:8.3f}  {text}")

    # -- the workers ---------------------------------------------------------------------------------------------------
    def order_send(self, order: SpeechOrder) -> None:
        """Onto the belt: sometimes late."""
        delay = self.random.random() * 0.1
        if self.choices.happens("order late", 0.04):
            delay = self.random.uniform(5.0, 45.0)
            self.harmed.add(order.job)
        self.at(delay, lambda: self._order_read(order))

    def _order_read(self, order: SpeechOrder) -> None:
        key = f"{order.job}/{order.dispatch_no}"
        if self.now < self.broker_away_until:
            self.at(self.broker_away_until - self.now + 0.1, lambda: self._order_read(order))
            return
        if self.now < self.workers_away_until[order.pool]:
            self.at(self.workers_away_until[order.pool] - self.now + 0.1, lambda: self._order_read(order))
            return
        if order.spoken in self.poison:
            self._worker_dies(key, order, 1.0)
            return
        if self.now < FAULTS_END_S and self.choices.happens("worker killed", 0.03):
            self.harmed.add(order.job)
            self._worker_dies(key, order, self.random.uniform(0.5, 3.0))
            return
        self.at(self.random.uniform(0.2, 3.0) * self.slow, lambda: self._order_fill(order))

    def _worker_dies(self, key: str, order: SpeechOrder, seconds: float) -> None:
        """The broker delivers it again, at last to the dead letters, which upkeep reads."""
        self.work[key] += 1
        if self.work[key] < DELIVERIES:
            self.at(seconds, lambda: self._order_read(order))
            return

        def bury() -> None:
            self.flow.order_dead(order.job, order.dispatch_no, rows=self.rows, limits=self.limits)

        self.at(seconds, lambda: self.run("dead letters", bury, again=lambda: self.run("dead letters", bury)))

    def _order_fill(self, order: SpeechOrder) -> None:
        report = self._outcome(order)
        self._result_send(report)
        if self.choices.happens("result twice", 0.06):
            self._result_send(report)

    def _outcome(self, order: SpeechOrder) -> SpeechResult:
        faults = self.now < FAULTS_END_S
        if order.not_after < self.now and faults and self.choices.happens("read too late", 0.5):
            return SpeechResult.of(order, Outcome.EXPIRED, code="expired")
        if self.now < self.pool_away_until[order.pool]:
            return SpeechResult.of(order, Outcome.UNREACHABLE, code="worker_unreachable", detail="refused")
        if faults and self.choices.happens("busy", 0.06):
            return SpeechResult.of(order, Outcome.BUSY, code="worker_busy", retry_after_ms=500)
        if self.now < self.voice_broken_until.get(int(order.voice), 0.0):
            return SpeechResult.of(order, Outcome.FAILED, code="voice_not_found", permanent=True)
        if order.spoken in self.unspeakable:
            return SpeechResult.of(order, Outcome.FAILED, code="text_not_speakable", permanent=True)
        if faults and self.choices.happens("worker fails", 0.04):
            return SpeechResult.of(order, Outcome.FAILED, code="internal", detail="boom")
        salt = "" if self.same_bytes else f"{self.random.random()}"
        sha = hashlib.sha256(f"{order.fingerprint}{salt}".encode()).hexdigest()
        key = f"p/book/takes/{order.fingerprint}/{sha}"
        try:
            self.objects.put(key + ".dat", SIZE)
            if faults and self.choices.happens("worker killed between its objects", 0.01):
                return SpeechResult.of(order, Outcome.UNREACHABLE, code="storage_refused")
            self.objects.put(key + ".flac", SIZE)
        except StorageRefused:
            return SpeechResult.of(order, Outcome.UNREACHABLE, code="storage_refused")
        facts = TakeFacts(
            audio_key=key + ".flac", peaks_key=key + ".dat", sha256=sha, size_bytes=SIZE, samples=1, rate_hz=1,
            speech_start=0, speech_end=1, rms_db=0, peak_db=0, noise_floor_db=0, loudness_lufs=None, model="m",
            revision="1", seed=0,
        )  # fmt: skip
        return SpeechResult.of(order, Outcome.DONE, take=facts.to_wire())

    def _result_send(self, result: SpeechResult) -> None:
        if self.now < FAULTS_END_S and self.choices.happens("result lost", 0.03 * self.forgetful):
            self.harmed.add(result.job)
            return
        delay = self.random.random() * 0.05
        if self.choices.happens("result late", 0.05 * self.forgetful):
            delay = self.random.uniform(2.0, self.random.choice((10.0, 120.0)))
            self.harmed.add(result.job)
        if self.bunched:
            delay += 0.5 - (self.now + delay) % 0.5
        self.at(delay, lambda: self._result_read(result))

    def _result_read(self, result: SpeechResult) -> None:
        if self.now < self.broker_away_until:
            self.at(self.broker_away_until - self.now + 0.1, lambda: self._result_read(result))
            return

        def settle() -> None:
            me = greenlet.getcurrent()
            self.settling[me] = result
            try:
                self.flow.settle(
                    result, rows=self.rows, objects=self.objects, limits=self.limits, random=self.random
                )
            finally:
                self.settling.pop(me, None)
            self._dispatch(self._pool_of(result.job))

        self.run(f"results {result.job}/{result.dispatch_no} {result.outcome}", settle,
                 again=lambda: self._result_read(result))  # fmt: skip

    def _pool_of(self, job: str) -> str:
        return self.rows.tables["job"][self.rows._jobs_by_id[job]]["pool"]

    # -- the studio's processes --------------------------------------------------------------------------------------
    def _dispatch(self, pool: str) -> None:
        self.flow.dispatch(pool, rows=self.rows, conveyor=self.conveyor, limits=self.limits)

    def _upkeep(self) -> None:
        def upkeep_pass() -> None:
            self.flow.leases_expire(rows=self.rows, limits=self.limits)
            for pool in self._pools_waiting():
                self._dispatch(pool)

        if self._pools_waiting():
            self.run("upkeep", upkeep_pass)
        self.at(UPKEEP_S, self._upkeep)

    def _pools_waiting(self) -> list[str]:
        return sorted({job["pool"] for job in self.rows.tables["job"].values() if job["state"] in OPEN})

    def _collect(self) -> None:
        def collect_pass() -> None:
            self.flow.garbage_find(rows=self.rows, objects=self.objects, limits=self.limits)
            self.flow.garbage_sweep(rows=self.rows, objects=self.objects, limits=self.limits)

        self.run("collector", collect_pass)
        self.at(self.collect_s, self._collect)

    # -- the users -----------------------------------------------------------------------------------------------------
    def _people(self) -> None:
        """Put the work and its troubles into the schedule."""
        draw = self.random
        self.segments: list[int] = []
        for n in range(draw.choice((2, 4, 6, 9))):
            recipe = f"words {n}"
            self.segments.append(self.rows.segment_add(recipe, kept=draw.random() < 0.1))
            self.recipes[self.segments[-1]] = [(0.0, recipe)]
            if self.choices.happens("poison", 0.06):
                self.poison.add(recipe)
            elif self.choices.happens("unspeakable", 0.06):
                self.unspeakable.add(recipe)
        self.conversions: list[int] = []
        for _ in range(draw.choice((1, 2, 3))):
            count = draw.randint(1, len(self.segments))
            chosen = draw.sample(self.segments, count)
            user, lane, pool = (
                draw.choice((1, 2)),
                draw.choice(("bulk", "bulk", "preview")),
                draw.choice(POOLS),
            )
            self.at(draw.random() * 20, lambda c=chosen, u=user, la=lane, p=pool: self._start(c, u, la, p))  # type: ignore[misc]
        for _ in range(2):
            if self.choices.happens("asked again", 0.4):
                again = draw.sample(self.segments, draw.randint(1, len(self.segments)))
                self.at(draw.uniform(20, 140), lambda c=again: self._start(c, 1, "preview", "cpu"))  # type: ignore[misc]
        for _ in range(3):
            if self.choices.happens("edit", 0.5):
                segment, recipe = draw.choice(self.segments), f"new words {draw.randint(0, 3)}"
                self.at(draw.random() * 60, lambda s=segment, r=recipe: self._edit(s, r))  # type: ignore[misc]
        if self.choices.happens("words taken away", 0.15):
            segment = draw.choice(self.segments)
            self.at(draw.random() * 60, lambda: self._edit(segment, ""))
        if self.choices.happens("cancel", 0.3):
            self.at(5 + draw.random() * 60, self._cancel)
        if self.choices.happens("pause", 0.3):
            self.at(draw.random() * 30, lambda: self._switch("paused"))
            self.at(60 + draw.random() * 30, lambda: self._switch("running"))
        for pool in POOLS:
            if self.choices.happens("workers away", 0.2):
                self._outage(self.workers_away_until, pool, draw.random() * 40, draw.uniform(10, 90))
            if self.choices.happens("pool away", 0.25):
                self._outage(self.pool_away_until, pool, draw.random() * 60, draw.uniform(5, 60))
        if self.choices.happens("voice broken", 0.2):
            voice = draw.choice((1, 2))
            self._outage(self.voice_broken_until, voice, draw.random() * 40, draw.uniform(10, 80))
        if self.choices.happens("broker away", 0.25):
            self.at(
                draw.random() * 60, lambda: setattr(self, "broker_away_until", self.now + draw.uniform(2, 30))
            )
        if self.choices.happens("storage away", 0.2):
            begin = draw.random() * 100
            self.at(begin, lambda: setattr(self.objects, "away", True))
            self.at(begin + draw.uniform(2, 40), lambda: setattr(self.objects, "away", False))

    def _outage(self, until: dict[Any, float], what: Any, begin: float, seconds: float) -> None:
        self.at(begin, lambda: until.__setitem__(what, self.now + seconds))

    def _start(self, segments: list[int], user: int, lane: str, pool: str) -> None:
        def start() -> None:
            self.conversions.append(
                self.rows.conversion_start(
                    segments, user=user, project=user, lane=lane, pool=pool, voices=(1, 2)
                )
            )
            self._dispatch(pool)

        self.run("start", start, again=lambda: self._start(segments, user, lane, pool))

    def _edit(self, segment: int, recipe: str) -> None:
        self.run(
            "edit", lambda: self.rows.segment_edit(segment, recipe), again=lambda: self._edit(segment, recipe)
        )

    def _cancel(self) -> None:
        if self.conversions:
            conversion = self.random.choice(self.conversions)
            self.run("cancel", lambda: self.rows.conversion_cancel(conversion), again=self._cancel)

    def _switch(self, state: str) -> None:
        for conversion in list(self.conversions):
            self.run(state, lambda c=conversion: self.rows.conversion_switch(c, state),  # type: ignore[misc]
                     again=lambda: self._switch(state))  # fmt: skip

    # -- one schedule ------------------------------------------------------------------------------------------------
    def play(self) -> None:
        """Run it to its end. Raises Violation."""
        self._people()
        # two of each: whatever runs twice at once must do no harm
        for delay in (0.0, 2.4):
            self.at(delay, self._upkeep)
            self.at(10 + delay, self._collect)
        while self.heap and self.heap[0][0] < END_S:
            at, _serial, call = heapq.heappop(self.heap)
            self.rows.now = at
            call()
            if len(self.heap) <= PERIODIC and self._at_rest():
                break  # nobody has anything left to say
        self._end()

    def _at_rest(self) -> bool:
        """Nothing is open and nothing unreferenced lies about: no more to see."""
        return not any(job["state"] in OPEN for job in self.rows.tables["job"].values()) and (
            len(self.objects.kept) == 2 * len(self.rows.tables["take"])
        )

    # -- what must always hold -----------------------------------------------------------------------------------------
    def _committed(self, transaction: Transaction) -> None:
        tables = self.rows.tables
        for event in transaction.events:
            self._event_check(event, transaction)
        for (table, _pk), row in transaction.writes.items():
            if row is None:
                continue
            if table == "job":
                self._job_check(row)
            elif table == "segment":
                if row["recipe"] != self.recipes[row["id"]][-1][1]:
                    self.recipes[row["id"]].append((self.now, row["recipe"]))
                take = row["chosen"]
                if take is not None:
                    self._chosen_check(row, tables["take"][take], transaction)
            elif table == "take":
                self._take_check(row)
            elif table == "conversion":
                self.switched[row["id"]] = self.now
        if any(event.to == JobState.LEASED for event in transaction.events):
            self._window_check()
        me = greenlet.getcurrent()
        result = self.settling.get(me)
        if result is not None and result.outcome == Outcome.DONE and not transaction.writes:
            self._ignored_check(result)
        if (
            me is not self.hub
            and self.now < FAULTS_END_S
            and transaction.writes
            and self.choices.happens("commit in doubt", 0.004)
        ):
            raise Killed

    def _need(self, holds: bool, what: str) -> None:
        if not holds:
            raise Violation(f"seed {self.seed}, {self.now:.3f} s: {what}")

    def _event_check(self, event: Event, transaction: Transaction) -> None:
        job = event.job
        before = self.state.get(job, "")
        self._need(
            event.source == before, f"job {job}: an event from {event.source!r}, but it was {before!r}"
        )
        self._need(
            event.to in MOVES.get(event.source, ()),
            f"job {job}: {event.source!r} → {event.to!r} is not allowed",
        )
        self._need(event.dispatch_no >= self.dispatched.get(job, 0), f"job {job}: its dispatches went back")
        charged = event.attempts - self.attempts.get(job, 0)
        self._need(
            charged == 0 or (charged == 1 and event.reason in CHARGED),
            f"job {job}: {event.reason!r} cost {charged} attempts (P6)",
        )
        self._need(event.attempts <= self.limits.max_attempts, f"job {job}: more attempts than there are")
        self.state[job], self.dispatched[job] = event.to, event.dispatch_no
        self.attempts[job] = event.attempts
        result = self.settling.get(greenlet.getcurrent())
        if result is not None and event.actor == "results" and result.outcome != Outcome.DONE:
            self._need(
                event.dispatch_no == result.dispatch_no,
                f"job {job}: news of dispatch {result.dispatch_no} changed dispatch {event.dispatch_no} (P4)",
            )
        row = self.rows.tables["job"][job]
        if event.reason == "voice_not_found" and event.to == JobState.FAILED:
            self.streak[row["voice"], event.reason] += 1
            self._need(
                self.streak[row["voice"], event.reason] < self.limits.breaker_failures,
                f"voice {row['voice']}: failed on and on, nothing held it",
            )
        elif (
            event.actor == "results"
            and result is not None
            and (result.outcome == Outcome.DONE or event.reason == "internal")
        ):
            self.streak[row["voice"], "voice_not_found"] = 0
        if event.reason == "worker_lost":
            self._need(
                row["recipe"] in self.poison or row["public_id"] in self.harmed,
                f"job {job}: an outage was taken for poison (P6)",
            )
        if event.to == JobState.LEASED:
            conversion = self.rows.tables["conversion"][row["conversion"]]
            self._need(
                conversion["state"] == "running" or self.switched[row["conversion"]] >= transaction.began,
                f"job {job}: handed out though its conversion is {conversion['state']}",
            )
            self._need(
                row["not_before"] is None and row["lease_until"] is not None,
                f"job {job}: leased without a lease",
            )

    def _ignored_check(self, result: SpeechResult) -> None:
        """A success that changed nothing: only if nothing wanted it, or its object is not there."""
        job = self.rows.tables["job"].get(self.rows._jobs_by_id.get(result.job, 0))
        facts = result.facts
        if job is None or facts is None or self.objects.away:
            return
        if not {facts.audio_key, facts.peaks_key} <= self.objects.kept.keys():
            return
        if (
            "job",
            job["id"],
        ) in self.rows._owners:  # only where the settling transaction has seen this very row
            self._need(
                job["state"] not in OPEN or job["fingerprint"] != result.fingerprint,
                f"job {job['id']}: a success it wanted was thrown away (P4)",
            )

    def _job_check(self, row: dict[str, Any]) -> None:
        if row["state"] in OPEN:
            same = [
                job["id"]
                for job in self.rows.tables["job"].values()
                if job["state"] in OPEN
                and (job["segment"], job["fingerprint"]) == (row["segment"], row["fingerprint"])
            ]
            self._need(same == [row["id"]], f"jobs {same} want the same take")

    def _chosen_check(self, segment: dict[str, Any], take: dict[str, Any], transaction: Transaction) -> None:
        result = self.settling.get(greenlet.getcurrent())
        if (
            result is None
            or result.outcome != Outcome.DONE
            or ("segment", segment["id"]) not in transaction.writes
        ):
            return
        if not any(
            t == "take" and row is not None and row["id"] == take["id"]
            for (t, _), row in transaction.writes.items()
        ):
            return  # chosen before
        wanted = [
            recipe
            for n, (_at, recipe) in enumerate(self.recipes[segment["id"]])
            if n + 1 == len(self.recipes[segment["id"]])
            or self.recipes[segment["id"]][n + 1][0] >= transaction.began
        ]
        self._need(take["recipe"] in wanted, f"segment {segment['id']}: old words became the current take")

    def _take_check(self, take: dict[str, Any]) -> None:
        same = [
            other["id"]
            for other in self.rows.tables["take"].values()
            if (other["segment"], other["fingerprint"]) == (take["segment"], take["fingerprint"])
        ]
        self._need(same == [take["id"]], f"segment {take['segment']}: two takes of one fingerprint (P3)")
        for key in (take["audio_key"], take["peaks_key"]):
            self._need(take["fingerprint"] in key, f"take {take['id']}: the sound of other words")
            self._need(key in self.objects.kept, f"take {take['id']}: its object is not there (P5)")

    def _object_deleted(self, key: str) -> None:
        for take in self.rows.tables["take"].values():
            self._need(key not in (take["audio_key"], take["peaks_key"]), f"take {take['id']}: swept (P5)")
        self._need(key not in self.objects.kept, "a deleted object is still there")

    def _window_check(self) -> None:
        live = Counter(
            job["pool"]
            for job in self.rows.tables["job"].values()
            if job["state"] == JobState.LEASED and job["lease_until"] >= self.now
        )
        for pool, count in live.items():
            self._need(
                count <= self.limits.window, f"pool {pool}: {count} leases, window {self.limits.window} (P8)"
            )

    # -- what must hold in the end ---------------------------------------------------------------------------------
    def _end(self) -> None:
        tables = self.rows.tables
        for job in tables["job"].values():
            self._need(job["state"] not in OPEN, f"job {job['id']} is still {job['state']} (P2)")
            self._need(
                job["state"] != JobState.FAILED or bool(job["code"]),
                f"job {job['id']} failed without a reason",
            )
            self._need(
                not (job["recipe"] in self.poison and job["state"] == JobState.DONE),
                "the unspeakable was spoken",
            )
        for segment in tables["segment"].values():
            self._need(
                segment["state"] not in ("queued", "rendering"),
                f"segment {segment['id']} is {segment['state']} (P2)",
            )
            self._need(
                segment["state"] != "ready" or segment["chosen"] is not None,
                f"segment {segment['id']} is ready, silent",
            )
        for conversion in tables["conversion"].values():
            self._need(
                conversion["state"] in ("done", "cancelled"),
                f"conversion {conversion['id']} is {conversion['state']}",
            )
        for breaker_row in tables["breaker"].values():
            busy = any(
                job["voice"] == breaker_row["voice"] and job["state"] in OPEN
                for job in tables["job"].values()
            )
            self._need(
                breaker_row["opened_at"] is None or not busy, f"{breaker_row['subject']} stays held (P10)"
            )
        if self.now >= END_S - COLLECT_MOST_S:
            held = {key for take in tables["take"].values() for key in (take["audio_key"], take["peaks_key"])}
            left = [key for key in self.objects.kept if key not in held]
            self._need(not left, f"{len(left)} objects nobody points at are still there (P5)")


def play(seed: int, *, flow: Any = FLOW, forced: Mapping[tuple[str, int], Any] | None = None) -> World:
    """Play one schedule to its end; the world as it then is. Raises Violation."""
    world = World(seed, flow=flow, forced=forced)
    world.play()
    return world


__all__ = ["FLOW", "Violation", "World", "breaker", "play"]
