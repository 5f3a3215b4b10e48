"""Rows with one book of six sentences, in memory and in the database, with the same handles on both."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from django.db.models import F
from django.utils import timezone

from projects.models import Segment, Take
from projects.services.segments import segment_edit_text
from synthesis.flow.ports import JobState, Limits, Move
from synthesis.flow.simulated import SimulatedRows
from synthesis.models import Breaker, Conversion, Garbage, JobEvent, Pool, SegmentJob
from synthesis.services.conversions import (
    Only,
    Scope,
    _jobs_create,
    conversion_cancel,
    conversion_pause,
    conversion_resume,
    conversion_start,
)
from synthesis.services.rows import OrmRows
from synthesis.speaking.wire import SpeechOrder, TakeFacts
from tests.factories import project_make, segments_of, voice_make

LIMITS = Limits(window=4, preview_reserve=1)
POOL = "cpu"


class Bench(Protocol):
    """Rows with one book of six sentences, and what a test needs to look at and to move time."""

    rows: Any
    segments: list[int]

    def start(self, segments: list[int] | None = None, *, lane: str = "bulk") -> int: ...
    def rival(self, segment: int) -> None: ...
    def other_voice(self) -> int: ...
    def voice_of(self, job: int) -> int: ...
    def edit(self, segment: int) -> None: ...
    def keep(self, segment: int) -> None: ...
    def cancel(self, conversion: int) -> int: ...
    def pause(self, conversion: int) -> bool: ...
    def resume(self, conversion: int) -> bool: ...
    def later(self, seconds: float) -> None: ...
    def job(self, pk: int) -> dict[str, Any]: ...
    def segment(self, pk: int) -> tuple[str, str, bool]: ...
    def conversion(self, pk: int) -> str: ...
    def takes(self) -> int: ...
    def candidates(self) -> int: ...
    def history(self, pk: int) -> list[tuple[str, str, int, int, str]]: ...


class MemoryBench:
    def __init__(self, *, exclusive: bool) -> None:
        self.rows = SimulatedRows(LIMITS, exclusive=exclusive)
        self.segments = [self.rows.segment_add(f"words {n}") for n in range(6)]
        self._edits = 0

    def start(self, segments=None, *, lane="bulk"):
        wanted = self.segments if segments is None else segments
        return self.rows.conversion_start(wanted, lane=lane, pool=POOL)

    def rival(self, segment):
        self.start([segment], lane="preview")

    def other_voice(self):
        return 2

    def voice_of(self, job):
        return self.rows.tables["job"][job]["voice"]

    def edit(self, segment):
        self._edits += 1
        self.rows.segment_edit(segment, f"other words {self._edits}")

    def keep(self, segment):
        self.rows.tables["segment"][segment]["kept"] = True

    def cancel(self, conversion):
        return self.rows.conversion_cancel(conversion)

    def pause(self, conversion):
        return self.rows.conversion_switch(conversion, "paused")

    def resume(self, conversion):
        return self.rows.conversion_switch(conversion, "running")

    def later(self, seconds):
        self.rows.now += seconds

    def job(self, pk):
        return self.rows.tables["job"][pk]

    def segment(self, pk):
        row = self.rows.tables["segment"][pk]
        return row["state"], row["code"], row["chosen"] is not None

    def conversion(self, pk):
        return self.rows.tables["conversion"][pk]["state"]

    def takes(self):
        return len(self.rows.tables["take"])

    def candidates(self):
        return sum(take["candidate"] for take in self.rows.tables["take"].values())

    def history(self, pk):
        return [
            (e.source, e.to, e.dispatch_no, e.attempts, e.reason) for e in self.rows.events if e.job == pk
        ]


class DatabaseBench:
    """Time moves by shifting every stored time into the past."""

    _TIMES = (
        (SegmentJob, ("not_before", "lease_until", "leased_at")),
        (Pool, ("answered_at", "unreachable_since")),
        (Breaker, ("opened_at", "probe_at")),
        (Garbage, ("marked_at", "swept_at")),
        (Conversion, ("created_at", "handed_at")),
    )

    def __init__(self) -> None:
        self.rows = OrmRows()
        words = ("One lamp.", "Two lamps.", "Three lamps.", "Four lamps.", "Five lamps.", "Six lamps.")
        self.project = project_make(chapters=[("One", (" ".join(words),))], headings=False)
        self.segments = [segment.pk for segment in segments_of(self.project)]
        assert len(self.segments) == 6
        self._edits = 0

    def start(self, segments=None, *, lane="bulk"):
        if segments is None:
            made = conversion_start(None, Scope.PROJECT, self.project)
            return made.pk
        assert lane == "preview"
        made = [
            conversion_start(None, Scope.SEGMENT, Segment.objects.get(pk=pk), only=Only.ALL)
            for pk in segments
        ]
        return made[-1].pk if made[-1] else 0

    def rival(self, segment):
        """Another open job of a sentence, as two tabs at the same moment make it."""
        conversion = Conversion.objects.create(project=self.project, scope="segment", lane="preview")
        _jobs_create(conversion, [Segment.objects.get(pk=segment)], new_variant=False)

    def other_voice(self):
        return voice_make("Bea").pk

    def voice_of(self, job):
        return SegmentJob.objects.get(pk=job).voice_id

    def edit(self, segment):
        self._edits += 1
        row = Segment.objects.get(pk=segment)
        segment_edit_text(row, text=f"Other words {self._edits}.", text_rev=row.text_rev, user=None)

    def keep(self, segment):
        Segment.objects.filter(pk=segment).update(lock_at=timezone.now())

    def cancel(self, conversion):
        return conversion_cancel(Conversion.objects.get(pk=conversion))

    def pause(self, conversion):
        return conversion_pause(Conversion.objects.get(pk=conversion))

    def resume(self, conversion):
        return conversion_resume(Conversion.objects.get(pk=conversion))

    def later(self, seconds):
        for model, names in self._TIMES:
            for name in names:
                model.objects.exclude(**{name: None}).update(**{name: F(name) - timedelta(seconds=seconds)})

    def job(self, pk):
        return SegmentJob.objects.values().get(pk=pk)

    def segment(self, pk):
        row = Segment.objects.get(pk=pk)
        return row.state, row.failure_code, row.chosen_take_id is not None

    def conversion(self, pk):
        return Conversion.objects.get(pk=pk).state

    def takes(self):
        return Take.objects.count()

    def candidates(self):
        return Take.objects.filter(is_candidate=True).count()

    def history(self, pk):
        events = JobEvent.objects.filter(kind="synthesis.segmentjob", job=pk).order_by("seq")
        return list(events.values_list("source", "to", "dispatch_no", "attempts", "reason"))


def heads(bench: Bench, conversion: int, limit: int = 9, lane: str = "bulk", **more: Any) -> list[int]:
    return list(bench.rows.heads(POOL, lane, conversion, limit, **more))


def lease(bench: Bench, conversion: int, count: int = 1, seconds: float = 60.0) -> list[SpeechOrder]:
    with bench.rows.dispatcher(POOL) as alone:
        assert alone
        return list(bench.rows.lease(heads(bench, conversion, count), seconds=seconds))


def view(bench: Bench, order: SpeechOrder):
    with bench.rows.atomic():
        return bench.rows.job_lock(order.job)


def move(bench: Bench, order: SpeechOrder, to: JobState, **more: Any) -> bool:
    seen = more.pop("seen", JobState.LEASED)
    dispatch_no = more.pop("dispatch_no", order.dispatch_no)
    return bench.rows.job_move(Move(order.job, seen, dispatch_no, to, "results", **more))


def facts(order: SpeechOrder, sha: str = "a") -> TakeFacts:
    key = f"p/x/takes/{order.fingerprint}/{sha * 64}"
    return TakeFacts(
        audio_key=f"{key}.flac", peaks_key=f"{key}.dat", sha256=sha * 64, size_bytes=9, samples=24000,
        rate_hz=24000, speech_start=100, speech_end=20000, rms_db=-20.0, peak_db=-3.0, noise_floor_db=-70.0,
        loudness_lufs=-19.0, model=order.model, revision=order.revision, seed=order.seed,
    )  # fmt: skip


def record(bench: Bench, order: SpeechOrder, sha: str = "a") -> int:
    with bench.rows.atomic():
        job = bench.rows.job_lock(order.job)
        take = bench.rows.take_record(job, facts(order, sha))
        bench.rows.take_choose(job, take)
        bench.rows.job_move(Move(order.job, job.state, job.dispatch_no, JobState.DONE, "results"))
    return take
