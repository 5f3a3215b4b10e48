"""Which models and versions there are, which is the default, and the replicas that speak for each."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference_worker.errors import SpeechError, StoreRefused
from inference_worker.metrics import Metrics, Sample
from inference_worker.replica import Replica, ReplicaDied, ReplicaSpec, ReplicaUnfit
from inference_worker.scheduler import Ask, Batch, CostModel, Entry, Lane, Limits, Refused, Scheduler
from inference_worker.store import Store, StoreEntry
from inference_worker.wire import SpeechRequest

log = logging.getLogger("inference_worker.registry")

RUNAWAY_FACTOR = 3.0  # audio longer than this many times the expected length is babble
RUNAWAY_LEAST_S = 5.0
LOAD_TRIES = 3
BACKOFF_S = (0.0, 1.0, 5.0, 15.0, 30.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """Sound and what is known of its making. `pcm`: 16 bit mono at `rate_hz`; times in ms, `queue_s` in seconds."""

    pcm: bytes
    rate_hz: int
    model: str
    revision: str
    voice: str
    seed: int
    seed_exact: bool
    truncated: bool
    queue_ms: int
    inference_ms: int
    batch_size: int
    queue_s: float
    device: str
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class _Waiter:
    """A request that has not been answered yet."""

    future: asyncio.Future[Answer]
    request: SpeechRequest
    voice: str
    seed: int
    asked: float
    batch: int = 0  # number of the running batch, 0 while it waits


@dataclass(slots=True)
class PoolSettings:
    """How replicas are run. `devices` are used in turn; times in seconds."""

    devices: tuple[str, ...] = ("cpu",)
    threads: int = 1
    start_timeout_s: float = 900.0
    watchdog_s: float = 30.0
    warmup_budget_s: float = 20.0
    limits: Limits = field(default_factory=Limits)
    max_batch: int = 0  # 0 = the knee


class Version:
    """One revision of one model: its queue, its replicas, its state."""

    def __init__(
        self,
        name: str,
        spec: ReplicaSpec,
        revision: str,
        source: str,
        settings: PoolSettings,
        metrics: Metrics,
    ):
        self.name = name
        self.spec = spec
        self.revision = revision
        self.source = source  # store entry, "" = started from the command line
        self.settings = settings
        self.metrics = metrics
        self.about: dict[str, Any] = {}
        self.measured: dict[str, Any] = {}
        self.failure = ""
        self.draining = False
        self.closed = False
        self.workers = 0  # wanted
        self.replicas: dict[int, Replica] = {}  # slot → ready replica
        self.started_at = time.time()
        limits = settings.limits
        self.scheduler = Scheduler(
            Limits(**{f: getattr(limits, f) for f in Limits.__dataclass_fields__}),
            time.monotonic,
            CostModel(),
        )
        self._slots: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._waiters: dict[str, _Waiter] = {}
        self._running: dict[int, tuple[Replica, set[str]]] = {}
        self._ids = itertools.count(1)

    # --- state --------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Loaded, warmed up and not on its way out."""
        return bool(self.replicas) and not self.draining

    @property
    def loaded(self) -> bool:
        """It was ready at least once, so that what it can do is known."""
        return bool(self.about)

    @property
    def rate_hz(self) -> int:
        """Sample rate of its sound."""
        return int(self.about["sample_rate"])

    def queue_s(self) -> float:
        """Estimated seconds of work waiting and running, per replica."""
        return self.scheduler.queued_s()

    def waiting(self) -> int:
        """Entries in the queue."""
        return self.scheduler.waiting()

    def running(self) -> int:
        """Batches on devices."""
        return len(self._running)

    # --- replicas -----------------------------------------------------------------------------------------

    def scale(self, workers: int) -> None:
        """Want so many replicas. Those too many retire after their batch; returns at once."""
        self.workers = workers
        self.failure = ""
        for slot in range(workers):
            task = self._slots.get(slot)
            if task is None or task.done():
                self._slots[slot] = asyncio.create_task(self._slot(slot), name=f"{self.name}-{slot}")
        self._wake.set()

    async def until_ready(self, workers: int = 1, timeout_s: float | None = None) -> None:
        """Wait for `workers` ready replicas. Raises SpeechError not_ready when they cannot be had."""
        try:
            async with asyncio.timeout(timeout_s):
                while len(self.replicas) < workers:
                    if self.failure or self.closed:
                        raise SpeechError("not_ready", f"Model {self.name} could not be loaded.")
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise SpeechError("not_ready", f"Model {self.name} is still loading.") from None

    async def _slot(self, slot: int) -> None:
        """Keep one replica alive while its slot is wanted."""
        failures = 0
        while slot < self.workers and not self.closed:
            device = self.settings.devices[slot % len(self.settings.devices)]
            replica = Replica(self._spec_for(device))
            try:
                await replica.start(self.settings.start_timeout_s)
                self._came_up(slot, replica)
                failures = 0
                await self._serve(slot, replica)
                await replica.stop()
            except (ReplicaDied, ReplicaUnfit) as exc:
                up = self.replicas.get(slot) is replica
                reason = "unfit" if isinstance(exc, ReplicaUnfit) else str(exc).partition(" ")[0].rstrip(":")
                log.error("replica of %s on %s: %s", self.name, device, exc)
                self.metrics.restarts.labels(self.name, reason).inc()
                failures = 1 if up else failures + 1
                if failures >= LOAD_TRIES:
                    self._give_up(str(exc))
            finally:
                self.replicas.pop(slot, None)
                self.scheduler.replicas = max(1, len(self.replicas))
                self._changed.set()
                await replica.kill()
            if slot < self.workers and not self.closed:
                await asyncio.sleep(BACKOFF_S[min(failures, len(BACKOFF_S)) - 1] if failures else 0)

    def _spec_for(self, device: str) -> ReplicaSpec:
        s = self.spec
        return ReplicaSpec(
            s.engine, device, self.settings.threads, s.folder, s.options, self.settings.warmup_budget_s
        )

    def _came_up(self, slot: int, replica: Replica) -> None:
        first = not self.about
        if not first and replica.about["revision"] != self.about["revision"]:
            raise ReplicaUnfit("it reports another revision than before")
        self.about, self.measured = replica.about, replica.measured
        # A store entry's manifest names the revision: its files were checked. Else the engine knows its weights.
        self.revision = self.revision or replica.about["revision"]
        self.failure = ""
        if first:
            m, limits = self.measured, self.scheduler.limits
            costs = CostModel(m["seconds_per_char"], m["device_s_per_audio_s"])
            self.scheduler.costs = costs
            limits.max_items = self.settings.max_batch or m["knee"]
            log.info("%s@%s ready: %s", self.name, self.revision, m)
        self.replicas[slot] = replica
        self.scheduler.replicas = len(self.replicas)
        self._changed.set()

    def _give_up(self, reason: str) -> None:
        """No replica will come up: fail what waits, keep trying slowly."""
        self.failure = reason
        self._changed.set()
        if not self.replicas:
            for request in self.scheduler.drain():
                self._fail(
                    request,
                    SpeechError("not_ready", f"Model {self.name} could not be loaded.", retry_after_s=30),
                )

    async def _serve(self, slot: int, replica: Replica) -> None:
        """Feed a replica until its slot is no longer wanted. Raises ReplicaDied."""
        assert replica.process is not None
        exit_task = asyncio.create_task(replica.process.wait())
        exit_task.add_done_callback(lambda _: self._wake.set())
        try:
            while True:
                batch = await self._take(slot, exit_task)
                if batch is None:
                    return
                await self._run(replica, batch)
        finally:
            exit_task.cancel()

    async def _take(self, slot: int, exit_task: asyncio.Task[int]) -> Batch | None:
        """The next batch for a free replica; None when it should retire."""
        while True:
            self._answer_expired()
            if exit_task.done():
                raise ReplicaDied(f"ended (exit {exit_task.result()})")
            if slot >= self.workers or self.closed:
                return None
            decision = self.scheduler.next()
            if isinstance(decision, Batch):
                return decision
            self._wake.clear()
            until = None if decision.until is None else max(0.001, decision.until - time.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until):
                    await self._wake.wait()

    def _gone(self, request: str) -> bool:
        return request not in self._waiters

    async def _run(self, replica: Replica, batch: Batch) -> None:
        """One batch on one replica, and its answers. Raises ReplicaDied after giving the batch back."""
        items, entries = [], []
        started = time.monotonic()
        tickets: set[str] = set()
        for entry in batch.entries:
            waiter = next((self._waiters[t] for t in entry.tickets if t in self._waiters), None)
            if waiter is None:
                continue
            entries.append(entry)
            items.append(self._item(waiter, entry))
            for ticket in entry.tickets:
                if ticket in self._waiters:
                    tickets.add(ticket)
                    self._waiters[ticket].batch = batch.number
                    lane = self._waiters[ticket].request.lane.value
                    self.metrics.queue_wait.labels(lane).observe(started - self._waiters[ticket].asked)
        if not entries:
            return
        batch.entries = entries
        self._running[batch.number] = (replica, tickets)
        estimate = self.scheduler.costs.device_s(batch.padded)
        timeout = max(self.settings.watchdog_s, 5 * estimate)
        try:
            outcome = await replica.speak(batch.number, items, timeout)
        except ReplicaDied:
            for entry in self.scheduler.crashed(batch, self._gone):
                self._fail_entry(
                    entry, SpeechError("text_not_speakable", "This text breaks the model.", "input")
                )
            raise
        finally:
            self._running.pop(batch.number, None)
            self._wake.set()
        seconds = outcome.seconds
        self.metrics.busy_seconds.labels(self.name, replica.spec.device).inc(seconds)
        if outcome.kind == "oom":
            self.metrics.oom_splits.labels(self.name).inc()
            for entry in self.scheduler.oom(batch, self._gone):
                self._fail_entry(
                    entry, SpeechError("too_long", "The device has no room for this text.", "input")
                )
        elif outcome.kind == "failed":
            log.error(
                "%s: engine failed on a batch of %d: %s", self.name, len(batch.entries), outcome.message
            )
            for entry in self.scheduler.failed(batch, self._gone):
                self._fail_entry(entry, SpeechError("internal", "The model failed on this text."))
        else:
            self._deliver(replica, batch, outcome.results, outcome.sound, seconds, started)

    def _item(self, waiter: _Waiter, entry: Entry) -> dict[str, Any]:
        r = waiter.request
        return {
            "text": r.input,
            "voice": waiter.voice,
            "language": r.language,
            "speed": r.speed,
            "seed": waiter.seed,
            "instructions": r.instructions,
            "before": r.context_before,
            "after": r.context_after,
            "max_seconds": max(RUNAWAY_LEAST_S, RUNAWAY_FACTOR * entry.cost),
        }

    def _deliver(
        self,
        replica: Replica,
        batch: Batch,
        results: list[dict[str, Any]],
        sound: bytes,
        seconds: float,
        started: float,
    ) -> None:
        rate, offset, audio_total, longest = self.rate_hz, 0, 0.0, 0.0
        size = len(batch.entries)
        for entry, result in zip(batch.entries, results, strict=True):
            if "code" in result:
                self._fail_entry(entry, SpeechError(result["code"], result["message"], result["param"]))
                continue
            pcm = sound[offset : offset + result["bytes"]]
            offset += result["bytes"]
            audio = len(pcm) / 2 / rate
            audio_total += audio
            longest = max(longest, audio)
            learnt = False
            for ticket in list(entry.tickets):
                waiter = self._waiters.get(ticket)
                if waiter is None or waiter.future.done():
                    continue
                if not learnt and not result["truncated"]:
                    self.scheduler.costs.learn_audio(
                        waiter.voice, waiter.request.input, audio, waiter.request.speed
                    )
                    learnt = True
                waiter.future.set_result(
                    Answer(
                        pcm=pcm,
                        rate_hz=rate,
                        model=self.name,
                        revision=self.revision,
                        voice=waiter.voice,
                        seed=waiter.seed,
                        seed_exact=result["seed_exact"],
                        truncated=result["truncated"],
                        queue_ms=round((started - waiter.asked) * 1000),
                        inference_ms=round(seconds * 1000),
                        batch_size=size,
                        queue_s=self.queue_s(),
                        device=replica.spec.device,
                        ignored=self._ignored(waiter.request),
                    )
                )
        if audio_total:
            self.metrics.audio_seconds.labels(self.name).inc(audio_total)
            self.metrics.real_time.labels(self.name).set(seconds / audio_total)
            self.scheduler.costs.learn_device(longest * size, seconds)
        self.metrics.batch_seconds.labels(self.name, batch.lane.value).observe(seconds)
        self.metrics.batch_items.labels(self.name).observe(size)
        self.metrics.batch_fill.labels(self.name).observe(audio_total / (longest * size) if longest else 1.0)

    def _ignored(self, request: SpeechRequest) -> tuple[str, ...]:
        """Fields that were given but that this engine cannot use."""
        features = self.about["features"]
        out = []
        if request.instructions and "instructions" not in features:
            out.append("instructions")
        if (request.context_before or request.context_after) and "context" not in features:
            out.append("context")
        if request.seed is not None and "seed" not in features:
            out.append("seed")
        return tuple(out)

    def _fail_entry(self, entry: Entry, error: SpeechError) -> None:
        for ticket in list(entry.tickets):
            self._fail(ticket, error)

    def _fail(self, ticket: str, error: SpeechError) -> None:
        waiter = self._waiters.get(ticket)
        if waiter is not None and not waiter.future.done():
            waiter.future.set_exception(error)

    def _answer_expired(self) -> None:
        for ticket in self.scheduler.expire():
            self._fail(
                ticket, SpeechError("deadline_exceeded", "The deadline passed while the request waited.")
            )

    # --- requests -----------------------------------------------------------------------------------------

    def check(self, request: SpeechRequest) -> str:
        """Refuse what can be refused before queueing; the id of the voice to use. Raises SpeechError."""
        if self.draining or self.closed:
            raise SpeechError(
                "draining", f"Model {self.name}@{self.revision} is being unloaded.", retry_after_s=1
            )
        if not self.loaded or (not self.replicas and self.failure):
            raise SpeechError("not_ready", f"Model {self.name} is not ready.", retry_after_s=5)
        about = self.about
        voices = {v["id"]: v for v in about["voices"]}
        if not request.voice and voices:
            voice = next(iter(voices))
        elif request.voice in voices:
            voice = request.voice
        else:
            raise SpeechError(
                "voice_not_found", f"Model {self.name} has no voice “{request.voice[:80]}”.", "voice"
            )
        languages = voices[voice]["languages"] or about["languages"]
        if request.language and not language_fits(request.language, languages):
            raise SpeechError(
                "language_not_supported",
                f"Voice {voice} of {self.name} cannot speak “{request.language}”; it speaks {', '.join(languages)}.",
                "language",
            )
        low, high = about["speed_range"]
        if request.speed != 1.0 and ("speed" not in about["features"] or not low <= request.speed <= high):
            can = f"between {low:g} and {high:g}" if "speed" in about["features"] else "1 only"
            raise SpeechError("invalid_request", f"Model {self.name} takes a speed {can}.", "speed")
        if request.markup and "markup" not in about["features"]:
            raise SpeechError(
                "markup_not_supported",
                f"Model {self.name} does not know the markup {request.markup}.",
                "input",
            )
        if len(request.input) > about["max_chars"]:
            raise SpeechError(
                "too_long", f"The text is longer than {about['max_chars']} characters.", "input"
            )
        if not any(c.isalnum() for c in request.input):
            raise SpeechError("text_not_speakable", "There is no word in this text.", "input")
        return voice

    async def speak(self, request: SpeechRequest) -> Answer:
        """Queue a request and wait for its sound. Raises SpeechError; cancelling the call abandons the request."""
        voice = self.check(request)
        now = time.monotonic()
        seed = request.seed
        if seed is None:
            seed = 0 if self.about["deterministic"] else random.getrandbits(31)
        by = self.about["batch_by"]
        group = tuple(getattr(request, f, None) if f != "voice" else voice for f in by)
        key = (voice, request.input, request.language, request.speed, seed, request.instructions,
               request.context_before, request.context_after)  # fmt: skip
        cost = self.scheduler.costs.audio_s(voice, request.input, request.speed)
        deadline = None if request.deadline_ms is None else now + request.deadline_ms / 1000
        ticket = str(next(self._ids))
        ask = Ask(ticket, cost, request.lane, request.job, group, key, deadline)
        waiting = self.scheduler.waiting()
        refused = self.scheduler.offer(ask)
        if isinstance(refused, Refused):
            raise SpeechError(
                "busy", "The queue is full.", retry_after_s=max(1, round(refused.retry_after_s))
            )
        if waiting and self.scheduler.waiting() == waiting:
            self.metrics.shared.labels(self.name).inc()
        waiter = _Waiter(asyncio.get_running_loop().create_future(), request, voice, seed, now)
        self._waiters[ticket] = waiter
        timer = None
        if request.deadline_ms is not None:
            timer = asyncio.get_running_loop().call_later(
                request.deadline_ms / 1000 + 0.001, self._answer_expired
            )
        self._wake.set()
        try:
            return await waiter.future
        finally:
            if timer is not None:
                timer.cancel()
            del self._waiters[ticket]
            if not waiter.future.done() or waiter.future.cancelled():
                self._abandon(ticket, waiter)

    def _abandon(self, ticket: str, waiter: _Waiter) -> None:
        """The caller left: forget the request, and stop its batch when it was the last who waited for it."""
        self.scheduler.cancel(ticket)
        running = self._running.get(waiter.batch)
        if running is not None:
            replica, tickets = running
            tickets.discard(ticket)
            if not tickets:
                asyncio.get_running_loop().create_task(replica.cancel(waiter.batch))

    # --- end ----------------------------------------------------------------------------------------------

    async def drain(self, timeout_s: float, *, bulk: bool = True) -> None:
        """Take nothing new, finish what runs and the previews; the book lane too unless `bulk` is False."""
        self.draining = True
        if not bulk:
            for ticket in self.scheduler.drain(Lane.BULK):
                self._fail(ticket, SpeechError("draining", "The server is going down.", retry_after_s=0))
        deadline = time.monotonic() + timeout_s
        while (
            (self._running or self.scheduler.waiting()) and time.monotonic() < deadline and not self.failure
        ):
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        """End the replicas now; whoever still waits is told. Safe to call twice."""
        self.draining = self.closed = True
        self.workers = 0
        for ticket in self.scheduler.drain():
            self._fail(ticket, SpeechError("draining", "The model is being unloaded.", retry_after_s=0))
        self._wake.set()
        slots = list(self._slots.values())
        if slots:
            await asyncio.wait(slots, timeout=0.5)
        for task in slots:
            task.cancel()
        await asyncio.gather(*slots, return_exceptions=True)
        for ticket in list(self._waiters):
            self._fail(ticket, SpeechError("draining", "The model is being unloaded.", retry_after_s=0))
        self._changed.set()


def language_fits(wanted: str, offered: Iterable[str]) -> bool:
    """Whether a BCP 47 tag is covered: equal primary language, "*" covers all. "en" and "en-AU" fit "en-US"."""
    primary = wanted.replace("_", "-").partition("-")[0].lower()
    return any(o == "*" or o.replace("_", "-").partition("-")[0].lower() == primary for o in offered)


@dataclass(slots=True)
class Model:
    """A name and its versions by revision. `default` serves callers that name no revision."""

    name: str
    versions: dict[str, Version] = field(default_factory=dict)
    default: str = ""

    def default_version(self) -> Version | None:
        """The version for callers that name none."""
        return self.versions.get(self.default)


class RegistryRefused(Exception):
    """Raised by management calls: `status` is an HTTP status, `kind` TorchServe's exception name."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class Registry:
    """All models of a server. Every change that should survive a restart is written to `state_file`."""

    def __init__(
        self,
        settings: PoolSettings,
        metrics: Metrics,
        store: Store | None = None,
        state_file: Path | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.store = store
        self.state_file = state_file
        self.models: dict[str, Model] = {}
        self.aliases: dict[str, str] = {}
        metrics.watch(self._samples)

    def _version(self, name: str, spec: ReplicaSpec, revision: str, source: str) -> Version:
        return Version(name, spec, revision, source, self.settings, self.metrics)

    # --- finding ------------------------------------------------------------------------------------------

    def find(self, model: str) -> Version:
        """The version behind "name" or "name@revision". Raises SpeechError model_not_found or revision_mismatch."""
        name, _, revision = model.partition("@")
        name = self.aliases.get(name, name)
        if not name and len(self.models) == 1:
            name = next(iter(self.models))
        entry = self.models.get(name)
        if entry is None:
            raise SpeechError("model_not_found", f"There is no model “{name[:80]}”.", "model")
        if not revision:
            version = entry.default_version()
            if version is None:
                raise SpeechError("not_ready", f"Model {name} is not ready.", retry_after_s=5)
            return version
        version = entry.versions.get(revision) or next(
            (v for v in entry.versions.values() if v.revision == revision), None
        )
        if version is None:
            if any(not v.loaded for v in entry.versions.values()):
                raise SpeechError("not_ready", f"Model {name} is still loading.", retry_after_s=5)
            known = ", ".join(v.revision for v in entry.versions.values())
            raise SpeechError(
                "revision_mismatch",
                f"Model {name} has no revision {revision[:80]}; there is {known}.",
                "model",
            )
        return version

    def all(self) -> list[Version]:
        """Every version of every model."""
        return [v for m in self.models.values() for v in m.versions.values()]

    @property
    def ready(self) -> bool:
        """Every default version that was asked for can speak."""
        defaults = [m.default_version() for m in self.models.values()]
        wanted = [v for v in defaults if v is not None and v.workers]
        return bool(wanted) and all(v.ready for v in wanted)

    # --- changing -----------------------------------------------------------------------------------------

    def start(self, name: str, spec: ReplicaSpec, workers: int) -> Version:
        """Begin a model from the command line (no store entry). Returns at once; it loads in the background."""
        model = self.models.setdefault(name, Model(name))
        version = self._version(name, spec, "", "")
        key = "builtin" if "builtin" not in model.versions else f"builtin-{len(model.versions)}"
        model.versions[key] = version
        model.default = model.default or key
        version.scale(workers)
        return version

    def verify(self, entry_name: str) -> StoreEntry:
        """A store entry whose files are what its manifest says; reads them all. Raises RegistryRefused 400."""
        if self.store is None:
            raise RegistryRefused(400, "BadRequestException", "This server has no model store.")
        try:
            return self.store.verify(entry_name)
        except StoreRefused as exc:
            raise RegistryRefused(400, "BadRequestException", str(exc)) from None

    def register(
        self, name: str, entry_name: str, workers: int, revision: str = "", *, verified: bool = False
    ) -> Version:
        """Bring a store entry up as a version of model `name`; the first one becomes the default.

        `verified`: the files were checked just now. Raises RegistryRefused: 400 not in the store, 409 registered.
        """
        if self.store is None:
            raise RegistryRefused(400, "BadRequestException", "This server has no model store.")
        try:
            entry = self.store.entry(entry_name) if verified else self.store.verify(entry_name)
        except StoreRefused as exc:
            raise RegistryRefused(400, "BadRequestException", str(exc)) from None
        name = name or entry.model_name
        if revision and revision != entry.revision:
            raise RegistryRefused(400, "BadRequestException", "The entry has another revision.")
        model = self.models.setdefault(name, Model(name))
        if entry.revision in model.versions:
            raise RegistryRefused(
                409,
                "ConflictStatusException",
                f"Model version {entry.revision} is already registered for model {name}",
            )
        options = {**entry.options}
        spec = ReplicaSpec(entry.engine, folder=str(entry.folder), options=options)
        version = self._version(name, spec, entry.revision, entry_name)
        model.versions[entry.revision] = version
        model.default = model.default or entry.revision
        version.scale(workers)
        self.save()
        return version

    def pick(self, name: str, revision: str = "") -> tuple[Model, str, Version]:
        """A model and one of its versions (default when "" is given). Raises RegistryRefused 404."""
        model = self.models.get(name)
        if model is None:
            raise RegistryRefused(404, "ModelNotFoundException", f"Model not found: {name[:80]}")
        for key, version in model.versions.items():
            if (revision and revision in (key, version.revision)) or (not revision and key == model.default):
                return model, key, version
        raise RegistryRefused(
            404,
            "ModelVersionNotFoundException",
            f"Model version: {revision[:80]} does not exist for model: {name}",
        )

    def set_default(self, name: str, revision: str) -> None:
        """Send callers that name no revision to this one. Raises RegistryRefused 409 while it is not ready."""
        model, key, version = self.pick(name, revision)
        if not version.ready:
            raise RegistryRefused(409, "ConflictStatusException", f"Model version {revision} is not ready")
        model.default = key
        self.save()

    async def unregister(
        self, name: str, revision: str = "", timeout_s: float = 120.0, *, force: bool = False
    ) -> None:
        """Drain a version and end its replicas; without a revision the whole model.

        Raises RegistryRefused: 404 unknown, 403 for the default version while there are others.
        """
        model, key, version = self.pick(name, revision)
        if revision and key == model.default and len(model.versions) > 1 and not force:
            raise RegistryRefused(
                403, "InvalidModelVersionException", f"Cannot remove default version for model {name}"
            )
        leaving = {key: version} if revision else dict(model.versions)
        for v in leaving.values():
            v.draining = True
        if not revision or len(model.versions) == 1:
            del self.models[name]
        for v in leaving.values():
            await v.drain(timeout_s)
            await v.close()
        for k in leaving:
            model.versions.pop(k, None)
        self.save()

    def scale(self, name: str, revision: str, workers: int) -> Version:
        """Want so many replicas of a version. Raises RegistryRefused 404."""
        _, _, version = self.pick(name, revision)
        version.scale(workers)
        self.save()
        return version

    async def close(self) -> None:
        """End everything."""
        await asyncio.gather(*(v.close() for v in self.all()))

    # --- state --------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write what management calls made of the server, in one move; nothing without a state file."""
        if self.state_file is None:
            return
        models = [
            {
                "name": m.name,
                "default": m.default,
                "versions": [
                    {"entry": v.source, "revision": k, "workers": v.workers}
                    for k, v in m.versions.items()
                    if v.source
                ],
            }
            for m in self.models.values()
            if any(v.source for v in m.versions.values())
        ]
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.state_file.with_suffix(".part")
        with open(partial, "w", encoding="utf-8") as out:
            json.dump({"version": 1, "models": models}, out, indent=1)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(self.state_file)

    def restore(self) -> None:
        """Register again what the state file names; an entry that is gone is logged and left out."""
        if self.state_file is None or not self.state_file.is_file():
            return
        data = json.loads(self.state_file.read_text(encoding="utf-8"))
        for saved in data["models"]:
            for v in saved["versions"]:
                try:
                    self.register(saved["name"], v["entry"], v["workers"], v["revision"])
                except RegistryRefused as exc:
                    log.error("cannot bring back %s@%s: %s", saved["name"], v["revision"], exc.message)
            model = self.models.get(saved["name"])
            if model and saved["default"] in model.versions:
                model.default = saved["default"]
        self.save()

    # --- seen from outside --------------------------------------------------------------------------------

    def _samples(self) -> Iterable[Sample]:
        for v in self.all():
            labels = {"model": v.name, "revision": v.revision}
            yield "tts_model_ready", "1 when loaded and warmed up", labels, float(v.ready)
            yield "tts_replicas", "Replicas that are up", labels, float(len(v.replicas))
            yield "tts_inflight_batches", "Batches on devices", labels, float(v.running())
            for lane in Lane:
                where = {**labels, "lane": lane.value}
                yield "tts_queue_jobs", "Entries waiting", where, float(v.scheduler.waiting(lane))
                yield (
                    "tts_queue_seconds",
                    "Estimated device seconds waiting",
                    where,
                    v.scheduler.queued_s(lane),
                )
            budget = v.scheduler.limits.memory_cost
            yield "tts_batch_budget_audio_seconds", "Learnt padded size of a batch", labels, budget
            yield (
                "tts_batch_knee_items",
                "Items per batch, measured",
                labels,
                float(v.scheduler.limits.max_items),
            )
            memory = sum(r.memory_bytes for r in v.replicas.values())
            yield "tts_gpu_memory_bytes", "Device memory the replicas report", labels, float(memory)
