"""The flow's rows port over the ORM: PostgreSQL and SQLite behave alike behind it.

Lock order everywhere: job, then mark of an object, breaker (the pool's, then the voice's), segment, conversion. The
dispatcher of a pool skips jobs that somebody else holds. PostgreSQL locks rows; SQLite's transactions are IMMEDIATE
and so exclude each other whole.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import (
    BooleanField,
    Count,
    DateTimeField,
    Exists,
    ExpressionWrapper,
    F,
    Max,
    OuterRef,
    Q,
    Value,
)
from django.db.models.functions import Coalesce, Greatest, Now

from projects import notify
from projects.models import Segment, Take
from projects.recipe import fingerprint
from projects.services.recipes import language_of
from projects.services.segments import segment_move, segment_settle, segments_touch
from projects.states import RenderState, sources
from projects.work import OPEN_STATES, Moved, WorkState, due, expired, in_seconds, kind_of, work_moved
from synthesis.flow.ports import BreakerView, Flying, Hold, JobState, JobView, Limits, Line, Lost, Move
from synthesis.models import Breaker, Conversion, Garbage, Pool, SegmentJob
from synthesis.speaking.wire import SpeechOrder, TakeFacts

KIND = kind_of(SegmentJob)
ANSWER_STEP_S = 1  # how exactly it is known which hand-outs a pool has answered
CHUNK = 500  # keys per statement
TAIL = 64  # open jobs below which the end of a conversion is looked at under its lock; more than results run at once


def limits() -> Limits:
    """The flow's limits as set."""
    window = settings.DISPATCH_WINDOW
    return Limits(
        window=window,
        preview_reserve=max(1, window // 4),
        preview_lease_s=settings.PREVIEW_LEASE_S,
        bulk_lease_s=settings.BULK_LEASE_S,
        confirm_lease_s=min(15.0, settings.PREVIEW_LEASE_S, settings.BULK_LEASE_S),
        max_attempts=settings.MAX_ATTEMPTS,
        probe_s=settings.BREAKER_PROBE_S,
        grace_s=settings.GARBAGE_GRACE_S,
    )


def _lockable(queryset: Any, **options: Any) -> Any:
    """SELECT … FOR UPDATE where the database knows it."""
    return queryset.select_for_update(**options) if connection.features.has_select_for_update else queryset


def _skipping() -> dict[str, bool]:
    """Pass over rows that somebody else holds, where the database can."""
    return {"skip_locked": True} if connection.features.has_select_for_update_skip_locked else {}


class OrmRows:
    """The queue of record in the database."""

    def atomic(self) -> AbstractContextManager[object]:
        return transaction.atomic()

    # -- dispatch --------------------------------------------------------------------------------------------------
    @contextmanager
    def dispatcher(self, pool: str) -> Iterator[bool]:
        if not Pool.objects.filter(name=pool).exists():
            Pool.objects.get_or_create(name=pool)
        with transaction.atomic():
            yield _lockable(Pool.objects.filter(name=pool), **_skipping()).first() is not None

    def holds(self, pool: str) -> Sequence[Hold]:
        is_due = ExpressionWrapper(Q(probe_at__lte=Now()), output_field=BooleanField())
        found = Breaker.objects.filter(pool=pool).exclude(opened_at=None).annotate(due=is_due)
        return [Hold(*row) for row in found.order_by("subject").values_list("subject", "voice_id", "due")]

    def in_flight(self, pool: str) -> Sequence[Flying]:
        leased = SegmentJob.objects.filter(pool=pool, state=WorkState.LEASED)
        counts = leased.values_list("conversion__requested_by", "conversion__project", "lane")
        return [
            Flying(user or 0, project, lane, n)
            for user, project, lane, n in counts.annotate(n=Count("pk")).order_by()
        ]

    def lines(self, lane: str) -> Sequence[Line]:
        running = Conversion.objects.filter(state=Conversion.State.RUNNING, lane=lane)
        facts = running.annotate(idle=Now() - Coalesce("handed_at", "created_at")).values_list(
            "pk", "requested_by", "project", "weight", "urgent", "idle"
        )
        return [
            Line(pk, user or 0, project, max(weight, 1), urgent, idle.total_seconds())
            for pk, user, project, weight, urgent, idle in facts.order_by("pk")
        ]

    def heads(
        self, pool: str, lane: str, conversion: int, limit: int, *, without: Iterable[int] = (), only: int = 0
    ) -> Sequence[int]:
        jobs = SegmentJob.objects.filter(due(), pool=pool, lane=lane, conversion=conversion)
        if only:
            jobs = jobs.filter(voice=only)
        elif held := list(without):
            jobs = jobs.exclude(voice__in=held)
        return list(jobs.order_by("-urgent", "position").values_list("pk", flat=True)[:limit])

    def lease(self, jobs: Sequence[int], *, seconds: float) -> Sequence[SpeechOrder]:
        if not jobs:
            return []
        rows = list(
            _lockable(
                SegmentJob.objects.filter(pk__in=jobs, state=WorkState.WAITING), of=("self",), **_skipping()
            )
            .select_related("segment__document__project__voice", "segment__block", "segment__voice", "voice")
            .order_by("pk")
        )
        place = {job: n for n, job in enumerate(jobs)}
        pools = {row.pk: row.pool for row in rows}
        rows = [row for row in sorted(rows, key=lambda r: place[r.pk]) if self._aim(row)]
        rows = [row for row in rows if row.pool == pools[row.pk]]  # one that went to another pool waits there
        if not rows:
            return []
        SegmentJob.objects.filter(pk__in=[row.pk for row in rows], state=WorkState.WAITING).update(
            state=WorkState.LEASED,
            dispatch_no=F("dispatch_no") + 1,
            lease_until=in_seconds(seconds),
            leased_at=Now(),
            published=False,
            not_before=None,
        )
        Conversion.objects.filter(pk__in={row.conversion_id for row in rows}).update(handed_at=Now())
        work_moved([self._moved(row, WorkState.LEASED, row.dispatch_no + 1, "dispatch") for row in rows])
        self._segments_moved([row.segment for row in rows], RenderState.RENDERING)
        return [self._order(row) for row in rows]

    def lease_extend(self, job: str, dispatch_no: int, *, seconds: float) -> bool:
        return bool(
            SegmentJob.objects.filter(public_id=job, state=WorkState.LEASED, dispatch_no=dispatch_no).update(
                lease_until=in_seconds(seconds), published=True
            )
        )

    def breaker_probed(self, subject: str, *, most_s: float) -> bool:
        with transaction.atomic():
            due_now = _lockable(
                Breaker.objects.filter(subject=subject, probe_at__lte=Now()).exclude(opened_at=None)
            ).first()
            if due_now is None:
                return False
            wait_s = due_now.probe_wait_s
            Breaker.objects.filter(pk=due_now.pk).update(
                probe_at=in_seconds(wait_s), probe_wait_s=min(wait_s * 2, most_s)
            )
        return True

    def aim_waiting(self, limit: int = 500) -> set[str]:
        """Point waiting jobs at what their segments want now, after a deliberate act (another voice, say), without
        waiting for their turn; the pools they wait for then. Rows that somebody else holds are left to their lease."""
        with transaction.atomic():
            options = {"skip_locked": True} if connection.features.has_select_for_update_skip_locked else {}
            jobs = SegmentJob.objects.filter(state=WorkState.WAITING).exclude(recipe=F("segment__recipe"))
            rows = list(
                _lockable(jobs, of=("self",), **options)
                .select_related(
                    "segment__document__project__voice", "segment__block", "segment__voice", "voice"
                )
                .order_by("pk")[:limit]
            )
            return {row.pool for row in rows if self._aim(row)}

    def _aim(self, job: SegmentJob) -> bool:
        """Point a waiting job at what its segment wants now; False (and cancelled) if that is nothing, or is wanted by
        another open job already."""
        segment = job.segment
        if segment.recipe == job.recipe and segment.spoken:
            return True
        if segment.recipe and segment.spoken:
            voice = segment.voice or segment.document.project.voice
            changes = {
                "recipe": segment.recipe,
                "fingerprint": fingerprint(segment.recipe, job.variant),
                "text_rev": segment.text_rev,
                "voice": voice,
                "pool": voice.pool if voice else job.pool,
            }
            try:
                with transaction.atomic():
                    SegmentJob.objects.filter(pk=job.pk).update(**changes)
            except IntegrityError:
                pass  # another open job wants the same take
            else:
                for name, value in changes.items():
                    setattr(job, name, value)
                return True
        # under its lock: nobody else can have moved it
        self.job_move(
            Move(
                str(job.public_id), JobState.WAITING, job.dispatch_no, JobState.CANCELLED, "dispatch",
                code="superseded",
            )
        )  # fmt: skip
        return False

    def _order(self, job: SegmentJob) -> SpeechOrder:
        segment, voice = job.segment, job.voice
        return SpeechOrder(
            job=str(job.public_id),
            dispatch_no=job.dispatch_no + 1,  # as the UPDATE made it
            project=str(segment.document.project.public_id),
            segment=str(segment.public_id),
            fingerprint=job.fingerprint,
            pool=job.pool,
            lane=job.lane,
            model=voice.model,
            revision=voice.model_revision,
            voice=voice.engine_voice,
            language=language_of(segment),
            spoken=segment.spoken,
            seed=job.variant,
            speed=voice.speed,
            direction=segment.direction,
            parameters=dict(voice.parameters),
            not_after=time.time()
            + (settings.PREVIEW_LEASE_S if job.lane == "preview" else settings.BULK_LEASE_S),
        )

    # -- results ---------------------------------------------------------------------------------------------------
    def job_lock(self, public_id: str) -> JobView | None:
        in_lease = ExpressionWrapper(Q(lease_until__gte=Now()), output_field=BooleanField())
        job = (
            _lockable(SegmentJob.objects.filter(public_id=public_id), of=("self",))
            .select_related("segment")
            .annotate(in_lease=in_lease)
            .first()
        )
        if job is None:
            return None
        return JobView(
            id=job.pk,
            public_id=str(job.public_id),
            state=JobState(job.state),
            dispatch_no=job.dispatch_no,
            attempts=job.attempts,
            fingerprint=job.fingerprint,
            recipe=job.recipe,
            segment=job.segment_id,
            segment_recipe=job.segment.recipe,
            pool=job.pool,
            voice=job.voice_id,
            conversion=job.conversion_id,
            in_lease=job.state == WorkState.LEASED and bool(job.in_lease),
            leased_at=job.leased_at,
        )

    def job_move(self, move: Move) -> bool:
        guard = {"public_id": move.job, "state": move.seen.value, "dispatch_no": move.dispatch_no}
        changes: dict[str, Any] = {"state": move.to.value, "lease_until": None, "losses": move.losses}
        if move.attempts is not None:
            changes["attempts"] = move.attempts
        if move.to is JobState.WAITING:
            changes["not_before"] = in_seconds(move.wait_s) if move.wait_s > 0 else None
        else:
            changes |= {"not_before": None, "finished_at": Now()}
        if move.to is JobState.FAILED:
            changes |= {"failure_code": move.code, "failure_detail": move.detail}
        with transaction.atomic(savepoint=False):
            if not SegmentJob.objects.filter(**guard).update(**changes):
                return False
            job = SegmentJob.objects.values_list(
                "pk",
                "segment_id",
                "conversion_id",
                "attempts",
                "segment__document__public_id",
                "conversion__project__public_id",
                named=True,
            ).get(public_id=move.job)
            work_moved(
                [
                    Moved(
                        KIND,
                        job.pk,
                        move.seen,
                        move.to,
                        move.dispatch_no,
                        job.attempts,
                        move.actor,
                        move.code,
                    )
                ]
            )
            match move.to:
                case JobState.WAITING:
                    segment_move(job.segment_id, RenderState.QUEUED)
                case JobState.FAILED:
                    segment_move(job.segment_id, RenderState.FAILED, failure=(move.code, move.detail))
                case JobState.DONE | JobState.CANCELLED:
                    # first its lock, then the look at other jobs: of two that close at once one must see both closed
                    _lockable(Segment.objects.filter(pk=job.segment_id).only("pk")).get()
                    others = SegmentJob.objects.filter(segment=job.segment_id, state__in=OPEN_STATES)
                    segment_settle(job.segment_id, wanted=others.exists())
            notify.segments_changed(job.segment__document__public_id, [job.segment_id])
            if move.to is not JobState.WAITING:
                self._conversion_finish(job.conversion_id, job.conversion__project__public_id)
        return True

    def job_alive(self, job: JobView) -> None:
        SegmentJob.objects.filter(pk=job.id, losses__gt=0).update(losses=0)

    def take_record(self, job: JobView, facts: TakeFacts) -> int:
        segment = _lockable(Segment.objects.filter(pk=job.segment)).get()
        existing = Take.objects.filter(
            segment=segment, fingerprint=job.fingerprint, origin=Take.Origin.SYNTHESIS
        ).first()
        if existing is not None:
            return existing.pk
        row = SegmentJob.objects.select_related("conversion").get(pk=job.id)
        last = Take.objects.filter(segment=segment).aggregate(n=Max("number"))["n"] or 0
        take = Take.objects.create(
            segment=segment,
            number=last + 1,
            recipe=job.recipe,
            variant=row.variant,
            fingerprint=job.fingerprint,
            spoken=segment.spoken if segment.recipe == job.recipe else "",
            spoken_digest=segment.spoken_digest if segment.recipe == job.recipe else "",
            audio_key=facts.audio_key,
            peaks_key=facts.peaks_key,
            sha256=facts.sha256,
            size_bytes=facts.size_bytes,
            samples=facts.samples,
            rate_hz=facts.rate_hz,
            speech_start=facts.speech_start,
            speech_end=facts.speech_end,
            rms_db=facts.rms_db,
            peak_db=facts.peak_db,
            noise_floor_db=facts.noise_floor_db,
            loudness_lufs=facts.loudness_lufs,
            voice_id=row.voice_id,
            model_revision=f"{facts.model}@{facts.revision}"[:200],
            inference_ms=facts.inference_ms,
            created_by_id=row.conversion.requested_by_id,
        )
        return take.pk

    def take_choose(self, job: JobView, take: int) -> None:
        segment = Segment.objects.get(pk=job.segment)
        if segment.is_kept and segment.chosen_take_id is not None:
            if segment.chosen_take_id != take:
                Take.objects.filter(pk=take).update(is_candidate=True)
            return
        segments_touch(Segment.objects.filter(pk=segment.pk), chosen_take=take)

    def pool_seen(self, pool: str, error: str, *, handed_at: Any = None) -> None:
        row = Pool.objects.filter(name=pool)
        if error:
            row.filter(unreachable_since=None).update(unreachable_since=Now())
            row.exclude(last_error=error[:300]).update(last_error=error[:300])
            return
        changes: dict[str, Any] = {"unreachable_since": None}
        news = Q(unreachable_since__isnull=False)
        if handed_at is not None:  # not each time: this row is the dispatcher's lock
            step = timedelta(seconds=ANSWER_STEP_S)
            news |= Q(answered_at=None) | Q(answered_at__lt=handed_at - step)
            newest = Value(handed_at, output_field=DateTimeField())
            changes["answered_at"] = Greatest(Coalesce("answered_at", newest), newest)
        row.filter(news).update(**changes)

    def breaker_lock(self, pool: str, voice: int | None) -> BreakerView:
        subject = f"voice:{voice}" if voice else f"pool:{pool}"
        found = _lockable(Breaker.objects.filter(subject=subject)).first()
        if found is None:
            Breaker.objects.get_or_create(subject=subject, defaults={"pool": pool, "voice_id": voice})
            found = _lockable(Breaker.objects.filter(subject=subject)).get()
        return BreakerView(
            subject=subject,
            streak=found.streak,
            code=found.code,
            last=found.last,
            is_open=found.opened_at is not None,
        )

    def breaker_set(
        self, subject: str, *, streak: int, code: str, detail: str, last: int, open_for_s: float | None
    ) -> None:
        opening: dict[str, Any] = {"opened_at": None, "probe_at": None, "probe_wait_s": 0.0}
        if open_for_s is not None:
            opening = {
                "opened_at": Coalesce("opened_at", Now()),
                "probe_at": in_seconds(open_for_s),
                "probe_wait_s": open_for_s,
            }
        row = Breaker.objects.filter(subject=subject)
        row.update(streak=streak, code=code[:40], detail=detail[:500], last=last, **opening)
        if open_for_s is not None:
            self._pool_tell(row.values_list("pool", flat=True).get())

    def breakers_reset(self, pool: str, voice: int) -> bool:
        failing = Breaker.objects.filter(subject__in=[f"pool:{pool}", f"voice:{voice}"], streak__gt=0)
        rows = list(_lockable(failing).order_by("subject"))
        if not rows:
            return False
        Breaker.objects.filter(pk__in=[row.pk for row in rows]).update(
            streak=0, code="", detail="", last=0, opened_at=None, probe_at=None, probe_wait_s=0.0
        )
        was_open = any(row.opened_at is not None for row in rows)
        if was_open:
            self._pool_tell(pool)
        return was_open

    # -- upkeep ----------------------------------------------------------------------------------------------------
    def expired(self, limit: int) -> Sequence[Lost]:
        answered = Pool.objects.filter(name=OuterRef("pool"), answered_at__gte=OuterRef("leased_at"))
        rows = SegmentJob.objects.filter(expired()).annotate(answered=Exists(answered))
        facts = rows.order_by("lease_until").values_list(
            "public_id", "dispatch_no", "losses", "published", "answered"
        )
        return [
            Lost(str(public_id), dispatch_no, losses, bool(published and answered))
            for public_id, dispatch_no, losses, published, answered in facts[:limit]
        ]

    # -- collection ------------------------------------------------------------------------------------------------
    def unreferenced(self, keys: Sequence[str]) -> Sequence[str]:
        # peaks lie beside their audio, and only audio keys are indexed
        audio = {key.removesuffix(".dat") + ".flac" if key.endswith(".dat") else key for key in keys}
        wanted = sorted(audio)
        held: set[str] = set()
        for begin in range(0, len(wanted), CHUNK):
            for pair in Take.objects.filter(audio_key__in=wanted[begin : begin + CHUNK]).values_list(
                "audio_key", "peaks_key"
            ):
                held.update(pair)
        return [key for key in keys if key not in held]

    def garbage_mark(self, keys: Sequence[str]) -> int:
        new = 0
        for begin in range(0, len(keys), CHUNK):
            chunk = keys[begin : begin + CHUNK]
            before = set(Garbage.objects.filter(key__in=chunk).values_list("key", flat=True))
            rows = [Garbage(key=key) for key in chunk if key not in before]
            Garbage.objects.bulk_create(rows, ignore_conflicts=True)
            # swept before, and there again: from now on it is garbage anew
            Garbage.objects.filter(key__in=before & set(chunk)).exclude(swept_at=None).update(
                marked_at=Now(), swept_at=None
            )
            new += len(rows)
        return new

    def garbage_due(self, *, seconds: float, limit: int) -> Sequence[str]:
        old = Garbage.objects.filter(swept_at=None, marked_at__lte=in_seconds(-seconds))
        return list(old.order_by("marked_at").values_list("key", flat=True)[:limit])

    def garbage_hold(self, key: str, *, seconds: float) -> bool:
        old = Garbage.objects.filter(key=key, swept_at=None, marked_at__lte=in_seconds(-seconds))
        return _lockable(old).first() is not None

    def garbage_lock(self, keys: Sequence[str]) -> bool:
        return bool(list(_lockable(Garbage.objects.filter(key__in=keys)).order_by("key")))

    def garbage_clear(self, keys: Sequence[str]) -> None:
        Garbage.objects.filter(key__in=keys).delete()

    def garbage_swept(self, key: str) -> None:
        Garbage.objects.filter(key=key).update(swept_at=Now())

    def garbage_forget(self, *, seconds: float) -> int:
        return Garbage.objects.filter(swept_at__lt=Now() - timedelta(seconds=seconds)).delete()[0]

    # -- shared ends -----------------------------------------------------------------------------------------------
    @staticmethod
    def _moved(job: SegmentJob, to: WorkState, dispatch_no: int, actor: str, reason: str = "") -> Moved:
        return Moved(KIND, job.pk, job.state, to, dispatch_no, job.attempts, actor, reason)

    def _conversion_finish(self, conversion: int, project: Any) -> None:
        """Close a conversion whose last open job is closed. Near the end under its lock: of two who close the last two
        jobs at once, one must see both closed."""
        open_jobs = SegmentJob.objects.filter(conversion=OuterRef("pk"), state__in=OPEN_STATES)
        tail = SegmentJob.objects.filter(conversion=conversion, state__in=OPEN_STATES).order_by()
        if len(tail.values_list("pk")[:TAIL]) < TAIL:
            _lockable(Conversion.objects.filter(pk=conversion).only("pk")).get()
        finished = (
            Conversion.objects.filter(
                pk=conversion, state__in=[Conversion.State.RUNNING, Conversion.State.PAUSED]
            )
            .filter(~Exists(open_jobs))
            .update(state=Conversion.State.DONE, finished_at=Now())
        )
        notify.project_changed(project, "finished" if finished else "conversion")

    def _pool_tell(self, pool: str) -> None:
        """Tell the pages of books that have work in a pool."""
        waiting = SegmentJob.objects.filter(conversion=OuterRef("pk"), pool=pool, state__in=OPEN_STATES)
        running = Conversion.objects.filter(state=Conversion.State.RUNNING).filter(Exists(waiting))
        for project in running.values_list("project__public_id", flat=True).distinct():
            notify.project_changed(project, "conversion")

    def _segments_moved(self, segments: Sequence[Segment], to: RenderState) -> None:
        if not segments:
            return
        segments_touch(
            Segment.objects.filter(pk__in=[s.pk for s in segments], state__in=sources(to)),
            state=to,
            failure_code="",
            failure_detail="",
        )
        by_document: dict[Any, list[int]] = defaultdict(list)
        for segment in segments:
            by_document[segment.document.public_id].append(segment.pk)
        for document, ids in by_document.items():
            notify.segments_changed(document, ids)
