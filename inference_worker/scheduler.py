"""The bounded queue before the devices: two lanes, batches by cost, deadlines. Pure; the clock is handed in.

Cost is predicted audio in seconds; the device's time for it is learnt from the batches that were run. One
scheduler serves one model version, whatever the number of its replicas.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import StrEnum


class Lane(StrEnum):
    """Who waits: a person before a screen, or a book."""

    INTERACTIVE = "interactive"
    BULK = "bulk"


@dataclass(slots=True)
class Limits:
    """What bounds the queue and the batches. Times in seconds, costs in seconds of audio.

    `max_items` is the knee measured at warm-up, not the most that fits. `memory_cost` is the largest padded cost
    (items × longest) the device is trusted with; it shrinks after an out of memory. `bulk_batch_s` caps the device
    time of a bulk batch, so that a preview never waits longer than that for a running one.
    """

    max_items: int = 1
    interactive_items: int = 4
    memory_cost: float = float("inf")
    waste: float = 1.15
    bulk_batch_s: float = 2.0
    max_queue_s: float = 300.0
    ageing_s: float = 25.0
    linger_s: float = 0.015


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as the scheduler sees it.

    `job` is the fairness key of the bulk lane, only entries of one `group` share a batch, equal `key`s are spoken
    once while they wait (None = never shared), `deadline` is in clock seconds.
    """

    id: str
    cost: float
    lane: Lane = Lane.BULK
    job: str = ""
    group: Hashable = ()
    key: Hashable | None = None
    deadline: float | None = None


@dataclass(slots=True)
class Entry:
    """A piece of work and everyone who waits for it. `tickets`: request id → deadline."""

    number: int
    cost: float
    lane: Lane
    job: str
    group: Hashable
    key: Hashable | None
    arrived: float
    tickets: dict[str, float | None] = field(default_factory=dict)
    crashes: int = 0
    failures: int = 0
    alone: bool = False

    def __lt__(self, other: Entry) -> bool:
        return (self.cost, self.number) < (other.cost, other.number)


@dataclass(slots=True)
class Batch:
    """Entries that go to a device together."""

    number: int
    entries: list[Entry]
    lane: Lane
    formed: float

    @property
    def padded(self) -> float:
        """Items × longest: what the device computes, in seconds of audio."""
        return len(self.entries) * max(e.cost for e in self.entries)

    @property
    def real(self) -> float:
        """What was asked for, in seconds of audio."""
        return sum(e.cost for e in self.entries)

    @property
    def fill(self) -> float:
        """Share of the padded work that is wanted, 0–1."""
        return self.real / self.padded if self.padded else 1.0


@dataclass(frozen=True, slots=True)
class Refused:
    """The queue is full; `retry_after_s` is when half of it will be done."""

    retry_after_s: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to run now. `until`: clock time to ask again, None = when something arrives."""

    until: float | None


class CostModel:
    """Predicts the audio length of a text and the device time of a batch; learns from every answer.

    Running means per voice, so that a slow speaker's lines are not taken for short ones.
    """

    def __init__(self, seconds_per_char: float = 0.065, device_s_per_audio_s: float = 0.1) -> None:
        self._start = seconds_per_char
        self._per_char: dict[str, float] = {}
        self.device_s_per_audio_s = device_s_per_audio_s
        self.overhead_s = 0.3  # silence at both ends and the pause of a stop

    def audio_s(self, voice: str, text: str, speed: float = 1.0) -> float:
        """Predicted length in seconds."""
        per_char = self._per_char.get(voice, self._start)
        return (self.overhead_s + per_char * max(1, len(text))) / max(speed, 0.05)

    def device_s(self, padded_audio_s: float) -> float:
        """Predicted device time of a batch, in seconds."""
        return padded_audio_s * self.device_s_per_audio_s

    def learn_audio(self, voice: str, text: str, seconds: float, speed: float = 1.0) -> None:
        """One answer: this text became so much audio."""
        seen = max(0.005, (seconds * speed - self.overhead_s) / max(1, len(text)))
        old = self._per_char.get(voice, self._start)
        self._per_char[voice] = old + 0.1 * (min(seen, 4 * old) - old)

    def learn_device(self, padded_audio_s: float, seconds: float) -> None:
        """One batch: this padded cost took so much device time."""
        if padded_audio_s > 0:
            self.device_s_per_audio_s += 0.2 * (seconds / padded_audio_s - self.device_s_per_audio_s)


class _LaneQueue:
    """Waiting entries of one lane: by job in order of arrival, and by cost within a group."""

    def __init__(self) -> None:
        self.jobs: OrderedDict[str, OrderedDict[int, Entry]] = OrderedDict()
        self.by_cost: dict[Hashable, list[Entry]] = {}
        self.order: OrderedDict[int, Entry] = OrderedDict()
        self.cost = 0.0

    def __len__(self) -> int:
        return len(self.order)

    def add(self, entry: Entry, *, front: bool = False) -> None:
        self.jobs.setdefault(entry.job, OrderedDict())[entry.number] = entry
        self.order[entry.number] = entry
        if front:
            self.order.move_to_end(entry.number, last=False)
            self.jobs[entry.job].move_to_end(entry.number, last=False)
            self.jobs.move_to_end(entry.job, last=False)
        if not entry.alone:
            bisect.insort(self.by_cost.setdefault(entry.group, []), entry)
        self.cost += entry.cost

    def remove(self, entry: Entry) -> None:
        del self.order[entry.number]
        mine = self.jobs[entry.job]
        del mine[entry.number]
        if not mine:
            del self.jobs[entry.job]
        if not entry.alone:
            row = self.by_cost[entry.group]
            row.pop(bisect.bisect_left(row, entry))
            if not row:
                del self.by_cost[entry.group]
        self.cost = max(0.0, self.cost - entry.cost) if self.order else 0.0

    def oldest(self) -> Entry | None:
        return next(iter(self.order.values()), None)

    def next_of_jobs(self) -> Entry:
        """The oldest entry of the job whose turn it is."""
        return next(iter(next(iter(self.jobs.values())).values()))

    def turn_done(self, job: str) -> None:
        if job in self.jobs:
            self.jobs.move_to_end(job)


class Scheduler:
    """Queue and batch former. Not thread safe; every method is O(log n) but for list moves."""

    def __init__(self, limits: Limits, clock: Callable[[], float], costs: CostModel | None = None) -> None:
        self.limits = limits
        self.costs = costs or CostModel()
        self.replicas = 1
        self._clock = clock
        self._lanes = {lane: _LaneQueue() for lane in Lane}
        self._entries: dict[str, Entry] = {}  # request id → queued entry
        self._keys: dict[Hashable, Entry] = {}  # single flight
        self._forced: list[list[Entry]] = []  # halves of batches that were too large, before all else
        self._deadlines: list[tuple[float, str]] = []
        self._numbers = itertools.count(1)
        self._batches = itertools.count(1)
        self._bulk_served = clock()
        self._expired: list[str] = []

    # --- seen from outside -------------------------------------------------------------------------------

    def waiting(self, lane: Lane | None = None) -> int:
        """Entries in the queue."""
        lanes = [lane] if lane else list(Lane)
        forced = sum(len(f) for f in self._forced) if lane is None else 0
        return sum(len(self._lanes[x]) for x in lanes) + forced

    def queued_s(self, lane: Lane | None = None) -> float:
        """Estimated device time of what waits, divided among the replicas, in seconds."""
        lanes = [lane] if lane else list(Lane)
        return self.costs.device_s(sum(self._lanes[x].cost for x in lanes)) / max(1, self.replicas)

    # --- in -----------------------------------------------------------------------------------------------

    def offer(self, ask: Ask) -> Refused | None:
        """Queue a request, or say that there is no room. A request larger than the queue is taken when it is empty."""
        now = self._clock()
        if ask.key is not None and (entry := self._keys.get(ask.key)) is not None:
            self._join(entry, ask)
            return None
        ahead = self.queued_s(ask.lane)  # a preview is not refused because of a book
        mine = self.costs.device_s(ask.cost) / max(1, self.replicas)
        limit = self.limits.max_queue_s
        if self._lanes[ask.lane].order and ahead + mine > limit:
            return Refused(max(1.0, ahead - limit / 2))
        entry = Entry(next(self._numbers), ask.cost, ask.lane, ask.job, ask.group, ask.key, now)
        self._lanes[ask.lane].add(entry)
        if ask.key is not None:
            self._keys[ask.key] = entry
        self._ticket(entry, ask)
        return None

    def _join(self, entry: Entry, ask: Ask) -> None:
        self._ticket(entry, ask)
        if (
            ask.lane is Lane.INTERACTIVE
            and entry.lane is Lane.BULK
            and entry.number in self._lanes[Lane.BULK].order
        ):
            self._lanes[Lane.BULK].remove(entry)  # somebody now waits before a screen
            entry.lane = Lane.INTERACTIVE
            self._lanes[Lane.INTERACTIVE].add(entry)

    def _ticket(self, entry: Entry, ask: Ask) -> None:
        entry.tickets[ask.id] = ask.deadline
        self._entries[ask.id] = entry
        if ask.deadline is not None:
            heapq.heappush(self._deadlines, (ask.deadline, ask.id))

    def cancel(self, request: str) -> bool:
        """Forget a request that still waits. False when it is unknown, running or answered. Safe to call twice."""
        entry = self._entries.pop(request, None)
        if entry is None:
            return False
        del entry.tickets[request]
        if not entry.tickets:
            self._drop(entry)
        return True

    def expire(self) -> list[str]:
        """Forget what waits beyond its deadline; the ids, each given once."""
        now = self._clock()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, request = heapq.heappop(self._deadlines)
            if self.cancel(request):
                self._expired.append(request)
        gone, self._expired = self._expired, []
        return gone

    def _drop(self, entry: Entry) -> None:
        if entry.number in self._lanes[entry.lane].order:
            self._lanes[entry.lane].remove(entry)
        for forced in self._forced:
            if entry in forced:
                forced.remove(entry)
        self._forced = [f for f in self._forced if f]
        if entry.key is not None and self._keys.get(entry.key) is entry:
            del self._keys[entry.key]

    # --- out ----------------------------------------------------------------------------------------------

    def next(self) -> Batch | Wait:
        """The batch to run now on a free replica, or when to ask again. Call `expire` first to answer the late."""
        now = self._clock()
        if self._forced:
            return self._batch(self._forced.pop(0), now)
        lane = self._lane(now)
        if lane is None:
            return Wait(None)
        queue = self._lanes[lane]
        anchor = queue.next_of_jobs() if lane is Lane.BULK else queue.oldest()
        assert anchor is not None
        entries = [anchor] if anchor.alone else self._around(queue, anchor, lane)
        if lane is Lane.BULK and len(entries) < self.limits.max_items and len(queue) == len(entries):
            ready = max(e.arrived for e in entries) + self.limits.linger_s
            if ready > now and not anchor.alone and anchor.arrived + 2 * self.limits.linger_s > now:
                return Wait(ready)
        for entry in entries:
            queue.remove(entry)
        if lane is Lane.BULK:
            queue.turn_done(anchor.job)
        return self._batch(entries, now)

    def _batch(self, entries: list[Entry], now: float) -> Batch:
        lane = Lane.INTERACTIVE if any(e.lane is Lane.INTERACTIVE for e in entries) else Lane.BULK
        if any(e.lane is Lane.BULK for e in entries):
            self._bulk_served = now
        for entry in entries:
            for request in entry.tickets:
                self._entries.pop(request, None)
            if entry.key is not None and self._keys.get(entry.key) is entry:
                del self._keys[entry.key]
        return Batch(next(self._batches), entries, lane, now)

    def _lane(self, now: float) -> Lane | None:
        """Previews first, but a book that has waited `ageing_s` gets one batch every `ageing_s`."""
        fast, bulk = self._lanes[Lane.INTERACTIVE], self._lanes[Lane.BULK]
        if not fast and not bulk:
            return None
        if not fast:
            return Lane.BULK
        oldest = bulk.oldest()
        age = self.limits.ageing_s
        if oldest is not None and now - max(oldest.arrived, self._bulk_served) >= age:
            return Lane.BULK
        return Lane.INTERACTIVE

    def _around(self, queue: _LaneQueue, anchor: Entry, lane: Lane) -> list[Entry]:
        """The anchor and its nearest neighbours by cost, within item, budget and waste bounds."""
        limits = self.limits
        items, budget = limits.max_items, limits.memory_cost
        if lane is Lane.INTERACTIVE:
            items = min(items, limits.interactive_items)
        elif self.costs.device_s_per_audio_s > 0:
            budget = min(budget, limits.bulk_batch_s / self.costs.device_s_per_audio_s)
        row = queue.by_cost[anchor.group]
        at = bisect.bisect_left(row, anchor)
        low, high = at - 1, at + 1
        chosen, total, longest = [anchor], anchor.cost, anchor.cost
        while len(chosen) < items:
            below = row[low] if low >= 0 else None
            above = row[high] if high < len(row) else None
            options = [e for e in (below, above) if e is not None]
            options.sort(key=lambda e: abs(e.cost - anchor.cost))
            for entry in options:
                n, top = len(chosen) + 1, max(longest, entry.cost)
                if n * top <= budget and n * top <= limits.waste * (total + entry.cost):
                    break
            else:
                break
            chosen.append(entry)
            total, longest = total + entry.cost, top
            if entry is below:
                low -= 1
            else:
                high += 1
        return chosen

    # --- back ---------------------------------------------------------------------------------------------

    def _alive(self, batch: Batch, gone: Callable[[str], bool]) -> list[Entry]:
        """Entries for which somebody still waits; the tickets of those that are `gone` are forgotten."""
        alive = []
        for entry in batch.entries:
            for request in [r for r in entry.tickets if gone(r)]:
                del entry.tickets[request]
            if entry.tickets:
                alive.append(entry)
        return alive

    def _back(self, entry: Entry) -> None:
        for request, deadline in entry.tickets.items():
            self._entries[request] = entry
            if deadline is not None:
                heapq.heappush(self._deadlines, (deadline, request))

    def oom(self, batch: Batch, gone: Callable[[str], bool] = lambda _: False) -> list[Entry]:
        """A batch did not fit: its halves come next and the budget shrinks to 0.8 of it.

        Returns the entries that failed alone and can only be refused.
        """
        if len(batch.entries) == 1:
            return list(batch.entries)
        self.limits.memory_cost = min(self.limits.memory_cost, 0.8 * batch.padded)
        alive = sorted(self._alive(batch, gone))
        middle = (len(alive) + 1) // 2
        for half in (alive[middle:], alive[:middle]):
            if half:
                for entry in half:
                    self._back(entry)
                self._forced.insert(0, half)
        return []

    def crashed(self, batch: Batch, gone: Callable[[str], bool] = lambda _: False) -> list[Entry]:
        """The replica died under a batch: it goes back to the front. What was in two crashes runs alone.

        Returns the entries that were in two crashes, ran alone and crashed again: poison, to be refused.
        """
        alive = self._alive(batch, gone)
        poison = []
        for entry in sorted(alive, key=lambda e: e.number, reverse=True):
            entry.crashes += 1
            if entry.crashes > 2 and len(batch.entries) == 1:
                poison.append(entry)
                continue
            entry.alone = entry.crashes >= 2
            self._back(entry)
            self._lanes[entry.lane].add(entry, front=True)
        return poison

    def failed(self, batch: Batch, gone: Callable[[str], bool] = lambda _: False) -> list[Entry]:
        """The engine raised: each entry runs again alone. Returns those that were alone already."""
        if len(batch.entries) == 1:
            return list(batch.entries)
        for entry in sorted(self._alive(batch, gone), key=lambda e: e.number, reverse=True):
            entry.alone = True
            self._back(entry)
            self._lanes[entry.lane].add(entry, front=True)
        return []

    def drain(self, lane: Lane | None = None) -> list[str]:
        """Empty the queue (or one lane of it); the ids of all who waited there."""
        gone = [r for r, e in self._entries.items() if lane is None or e.lane is lane]
        return [r for r in gone if self.cancel(r)]
