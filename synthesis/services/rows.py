"""The flow's rows port over the ORM: PostgreSQL and SQLite behave alike behind it.

Lock order everywhere: job, then segment. PostgreSQL locks rows (SKIP LOCKED for the dispatcher); SQLite's transactions
are IMMEDIATE and so exclude each other whole.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, F, Max, Q
from django.db.models.functions import Now

from projects import notify
from projects.models import Segment, Take
from projects.recipe import fingerprint
from projects.services.recipes import language_of
from projects.services.segments import segment_move, segment_settle, segments_touch
from projects.states import RenderState, sources
from projects.work import OPEN_STATES, WorkState, due, expired, in_seconds
from synthesis.flow.ports import JobView, Limits, Waiting
from synthesis.models import Conversion, Pool, SegmentJob
from synthesis.speaking.wire import SpeechOrder, TakeFacts


def limits() -> Limits:
    """The flow's limits as set."""
    window = settings.DISPATCH_WINDOW
    return Limits(
        window=window,
        preview_reserve=max(1, window // 4),
        preview_lease_s=settings.PREVIEW_LEASE_S,
        bulk_lease_s=settings.BULK_LEASE_S,
        max_attempts=settings.MAX_ATTEMPTS,
    )


def _lockable(queryset: Any, **options: Any) -> Any:
    """SELECT … FOR UPDATE where the database knows it."""
    return queryset.select_for_update(**options) if connection.features.has_select_for_update else queryset


class OrmRows:
    """The queue of record in the database."""

    def atomic(self) -> AbstractContextManager[object]:
        return transaction.atomic()

    @contextmanager
    def dispatcher(self, pool: str) -> Iterator[bool]:
        Pool.objects.get_or_create(name=pool)
        with transaction.atomic():
            options = {"skip_locked": True} if connection.features.has_select_for_update_skip_locked else {}
            yield _lockable(Pool.objects.filter(name=pool), **options).first() is not None

    def in_flight(self, pool: str) -> Mapping[int, int]:
        leased = SegmentJob.objects.filter(pool=pool, state=WorkState.LEASED)
        return dict(leased.values_list("conversion__project").annotate(n=Count("pk")).order_by())

    def waiting(self, pool: str, lane: str, limit: int) -> Sequence[Waiting]:
        found: list[Waiting] = []
        running = Conversion.objects.filter(state=Conversion.State.RUNNING, lane=lane).order_by("pk")
        per_project: dict[int, int] = defaultdict(int)
        for conversion, project in running.values_list("pk", "project_id"):
            room = limit - per_project[project]
            if room <= 0:
                continue
            jobs = SegmentJob.objects.filter(due(), pool=pool, lane=lane, conversion=conversion).order_by(
                "position"
            )
            ids = list(jobs.values_list("pk", flat=True)[:room])
            per_project[project] += len(ids)
            found += [Waiting(job=job, project=project) for job in ids]
        return found

    def lease(self, jobs: Sequence[int], *, seconds: float) -> Sequence[SpeechOrder]:
        if not jobs:
            return []
        rows = list(
            _lockable(SegmentJob.objects.filter(pk__in=jobs, state=WorkState.WAITING), of=("self",))
            .select_related("segment__document__project__voice", "segment__block", "segment__voice", "voice")
            .order_by("pk")
        )
        place = {job: n for n, job in enumerate(jobs)}
        rows = [row for row in sorted(rows, key=lambda r: place[r.pk]) if self._aim(row)]
        taken = [row.pk for row in rows]
        SegmentJob.objects.filter(pk__in=taken, state=WorkState.WAITING).update(
            state=WorkState.LEASED,
            dispatch_no=F("dispatch_no") + 1,
            lease_until=in_seconds(seconds),
            leased_at=Now(),
            not_before=None,
        )
        self._segments_moved([row.segment for row in rows], RenderState.RENDERING)
        return [self._order(row, seconds) for row in rows]

    def _aim(self, job: SegmentJob) -> bool:
        """Point a waiting job at what its segment wants now; False (and cancelled) if that is nothing, or is wanted by
        another open job already."""
        segment = job.segment
        if segment.recipe == job.recipe:
            return True
        if segment.recipe and segment.spoken:
            voice = segment.voice or segment.document.project.voice
            changes = {
                "recipe": segment.recipe,
                "fingerprint": fingerprint(segment.recipe, job.variant),
                "text_rev": segment.text_rev,
                "voice": voice,
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
        self._close(job.pk, WorkState.CANCELLED, segment.pk)
        return False

    def _order(self, job: SegmentJob, seconds: float) -> SpeechOrder:
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
            not_after=time.time() + seconds,
        )

    def job_lock(self, public_id: str) -> JobView | None:
        job = (
            _lockable(SegmentJob.objects.filter(public_id=public_id), of=("self",))
            .select_related("segment")
            .first()
        )
        if job is None:
            return None
        return JobView(
            id=job.pk,
            is_open=job.is_open,
            is_leased=job.state == WorkState.LEASED,
            dispatch_no=job.dispatch_no,
            attempts=job.attempts,
            fingerprint=job.fingerprint,
            recipe=job.recipe,
            segment=job.segment_id,
            segment_recipe=job.segment.recipe,
            pool=job.pool,
            conversion=job.conversion_id,
        )

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

    def job_close(self, job: JobView) -> None:
        self._close(job.id, WorkState.DONE, job.segment)
        self._conversion_finish(job.conversion)

    def job_cancel(self, job: JobView) -> None:
        self._close(job.id, WorkState.CANCELLED, job.segment)
        self._conversion_finish(job.conversion)

    def job_fail(self, job: JobView, *, code: str, detail: str, attempts: int) -> None:
        SegmentJob.objects.filter(pk=job.id).update(
            state=WorkState.FAILED,
            attempts=attempts,
            failure_code=code,
            failure_detail=detail,
            lease_until=None,
            finished_at=Now(),
        )
        segment_move(job.segment, RenderState.FAILED, failure=(code, detail))
        self._tell(job.segment)
        self._conversion_finish(job.conversion)

    def job_wait(self, job: JobView, *, seconds: float, attempts: int | None = None) -> None:
        changes: dict[str, Any] = {"attempts": attempts} if attempts is not None else {}
        SegmentJob.objects.filter(pk=job.id, state__in=OPEN_STATES).update(
            state=WorkState.WAITING, lease_until=None, not_before=in_seconds(seconds), **changes
        )
        segment_move(job.segment, RenderState.QUEUED)
        self._tell(job.segment)

    def job_unlease(self, public_id: str, dispatch_no: int, *, seconds: float) -> bool:
        with transaction.atomic():
            guard = {"public_id": public_id, "state": WorkState.LEASED, "dispatch_no": dispatch_no}
            if not SegmentJob.objects.filter(**guard).update(
                state=WorkState.WAITING, lease_until=None, not_before=in_seconds(seconds)
            ):
                return False
            segment = SegmentJob.objects.values_list("segment_id", flat=True).get(public_id=public_id)
            segment_move(segment, RenderState.QUEUED)
            self._tell(segment)
        return True

    def expired(self, limit: int) -> Sequence[tuple[str, int]]:
        rows = (
            SegmentJob.objects.filter(expired())
            .order_by("lease_until")
            .values_list("public_id", "dispatch_no")
        )
        return [(str(public_id), dispatch_no) for public_id, dispatch_no in rows[:limit]]

    def pool_seen(self, pool: str, error: str) -> None:
        if error:
            Pool.objects.filter(name=pool, unreachable_since=None).update(unreachable_since=Now())
            Pool.objects.filter(name=pool).exclude(last_error=error[:300]).update(last_error=error[:300])
        else:
            Pool.objects.filter(name=pool).exclude(unreachable_since=None).update(unreachable_since=None)

    # -- shared ends -----------------------------------------------------------------------------------------------
    def _close(self, job: int, state: WorkState, segment: int) -> None:
        SegmentJob.objects.filter(pk=job, state__in=OPEN_STATES).update(
            state=state, lease_until=None, not_before=None, finished_at=Now()
        )
        others = SegmentJob.objects.filter(segment=segment, state__in=OPEN_STATES).exclude(pk=job).exists()
        segment_settle(segment, wanted=others)
        self._tell(segment)

    def _conversion_finish(self, conversion: int) -> None:
        """Close a conversion whose last open job is closed."""
        open_jobs = SegmentJob.objects.filter(conversion=conversion, state__in=OPEN_STATES)
        finished = (
            Conversion.objects.filter(
                pk=conversion, state__in=[Conversion.State.RUNNING, Conversion.State.PAUSED]
            )
            .filter(~Q(pk__in=open_jobs.values("conversion")))
            .update(state=Conversion.State.DONE, finished_at=Now())
        )
        project = Conversion.objects.values_list("project__public_id", flat=True).get(pk=conversion)
        notify.project_changed(project, "finished" if finished else "conversion")

    def _tell(self, segment: int) -> None:
        document = Segment.objects.values_list("document__public_id", flat=True).get(pk=segment)
        notify.segments_changed(document, [segment])

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
