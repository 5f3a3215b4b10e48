"""What a user starts, and how it is paused, resumed, cancelled and retried."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from django.db import connection, transaction
from django.db.models import Max, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import User
from projects import notify
from projects.models import Document, Project, Segment, Take, Voice
from projects.models.segment import SegmentQuerySet
from projects.recipe import fingerprint
from projects.services.recipes import language_of, voice_of
from projects.services.segments import segments_touch, take_choose
from projects.states import RenderState, at_rest, sources
from projects.work import OPEN_STATES, Moved, WorkState, kind_of, work_moved
from synthesis.models import Conversion, SegmentJob
from synthesis.services.dispatching import dispatch_soon

CHUNK = 500  # rows per statement


class Scope(StrEnum):
    SEGMENT = "segment"
    DOCUMENT = "document"
    PROJECT = "project"
    REST = "rest"  # the project without what is ready: the second button


class Only(StrEnum):
    MISSING = "missing"
    STALE = "stale"
    MISSING_STALE = "missing_stale"
    FAILED = "failed"
    ALL = "all"


class ConversionRefused(Exception):
    """Raised before anything is queued; the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class Plan:
    """What a conversion would do, before anything is spent. Times in ms."""

    segments: list[Segment] = field(default_factory=list)
    kept: int = 0  # locked or approved, left out
    in_work: int = 0  # queued or rendering already, left out
    audio_ms: int = 0  # estimated


def wanted(scope: Scope, target: Project | Document | Segment, only: Only) -> Plan:
    """The segments a request means, in reading order, and what it leaves out."""
    segments = Segment.objects.with_stale().read_aloud()
    if isinstance(target, Segment):
        # a single line is made whatever its chapter's place in the audiobook
        segments = Segment.objects.with_stale().exclude(spoken="").filter(pk=target.pk)
    elif isinstance(target, Document):
        segments = Segment.objects.with_stale().exclude(spoken="").filter(document=target)
    else:
        segments = segments.filter(document__project=target)
    conditions = {
        Only.MISSING: Q(chosen_take=None),
        Only.STALE: Q(is_stale=True),
        Only.MISSING_STALE: Q(chosen_take=None) | Q(is_stale=True),
        Only.FAILED: Q(state=RenderState.FAILED),
        Only.ALL: Q(),
    }
    return _planned(segments.filter(conditions[only]), kept_too=scope is Scope.SEGMENT)


def _planned(segments: SegmentQuerySet, *, kept_too: bool = False) -> Plan:
    """Sort segments into what is made and what is left out; locked and approved ones are made only if asked for."""
    said = segments.exclude(spoken="")  # whatever asks: without words there is nothing to make
    rows = said.select_related("document__project__voice", "block", "voice").in_order()
    plan = Plan()
    for segment in rows.iterator(chunk_size=CHUNK):
        if segment.state in (RenderState.QUEUED, RenderState.RENDERING):
            plan.in_work += 1
        elif segment.is_kept and not kept_too:
            plan.kept += 1
        else:
            plan.segments.append(segment)
            plan.audio_ms += segment.estimated_ms
    return plan


def plan_check(plan: Plan) -> None:
    """Raise ConversionRefused if something of it has no voice, or a language its voice does not speak."""
    _voices_check(plan.segments)


def _voices_check(segments: Iterable[Segment]) -> None:
    """Refuse what has no voice or a language its voice does not speak, naming what can."""
    refused: Counter[tuple[str, str]] = Counter()
    voices: dict[int, Voice] = {}
    for segment in segments:
        voice = voice_of(segment)
        if voice is None:
            languages = {language_of(segment)}
            raise ConversionRefused("no_voice", _("Choose a voice first.") + " " + _alternatives(languages))
        voices[voice.pk] = voice
        if not voice.speaks(language_of(segment)):
            refused[(voice.name, language_of(segment))] += 1
    if refused:
        lines = [
            _("%(voice)s does not speak %(language)s (%(count)s sentences).")
            % {"voice": name, "language": language, "count": count}
            for (name, language), count in refused.items()
        ]
        lines.append(_alternatives({language for _name, language in refused}))
        raise ConversionRefused("language_not_supported", " ".join(lines))


def _alternatives(languages: set[str]) -> str:
    parts = []
    for language in sorted(languages):
        names = [
            v.name
            for v in Voice.objects.filter(project=None, retired_at=None).order_by("name")
            if v.speaks(language)
        ]
        if names:
            parts.append(
                _("These voices speak %(language)s: %(names)s.")
                % {"language": language, "names": ", ".join(names[:8])}
            )
        else:
            parts.append(
                _("No installed voice speaks %(language)s: add a model that does to an inference worker.")
                % {"language": language}
            )
    return " ".join(parts)


@transaction.atomic
def conversion_start(
    user: User | None,
    scope: Scope,
    target: Project | Document | Segment,
    *,
    only: Only = Only.MISSING_STALE,
    new_variant: bool = False,
    idempotency_key: str = "",
) -> Conversion | None:
    """Queue one job per sentence in the same transaction, and dispatch after it commits; None if nothing is wanted.

    `new_variant` asks for another take of what has one (another seed). A take that exists already is chosen without
    synthesis. The same idempotency key returns the conversion it made before. Raises ConversionRefused.
    """
    document = target if isinstance(target, Document) else None
    if isinstance(target, Segment):
        document = target.document
    project = target if isinstance(target, Project) else document.project  # type: ignore[union-attr]
    if idempotency_key:
        before = Conversion.objects.filter(
            project=project, requested_by=user, idempotency_key=idempotency_key
        ).first()
        if before is not None:
            return before
    conversion = Conversion(
        project=project,
        document=document,
        requested_by=user,
        scope=scope.value,
        only=only.value,
        lane=Conversion.Lane.PREVIEW if scope is Scope.SEGMENT else Conversion.Lane.BULK,
        idempotency_key=idempotency_key,
    )
    return _begin(conversion, wanted(scope, target, only), new_variant=new_variant)


def _begin(conversion: Conversion, plan: Plan, *, new_variant: bool = False) -> Conversion | None:
    """Store a conversion with its jobs; None if its plan wants nothing. Raises ConversionRefused."""
    if not plan.segments:
        return None
    plan_check(plan)
    conversion.save()
    pools = _jobs_create(conversion, plan.segments, new_variant=new_variant)
    if not conversion.jobs.exists():  # takes existed, or another conversion wants the same
        Conversion.objects.filter(pk=conversion.pk).update(state=Conversion.State.DONE, finished_at=Now())
        conversion.refresh_from_db()
    for pool in pools:
        dispatch_soon(pool)
    notify.project_changed(conversion.project.public_id, "conversion")
    return conversion


def _jobs_create(conversion: Conversion, segments: list[Segment], *, new_variant: bool) -> set[str]:
    pools: set[str] = set()
    for begin in range(0, len(segments), CHUNK):
        chunk = segments[begin : begin + CHUNK]
        variants = {s.pk: secrets.randbelow(2**31) if new_variant else 0 for s in chunk}
        prints = {s.pk: fingerprint(s.recipe, variants[s.pk]) for s in chunk}
        made = {
            (take.segment_id, take.fingerprint): take
            for take in Take.objects.filter(
                segment__in=chunk,
                fingerprint__in=prints.values(),
                origin=Take.Origin.SYNTHESIS,
                deleted_at=None,
            )
        }
        jobs = []
        for offset, segment in enumerate(chunk):
            take = made.get((segment.pk, prints[segment.pk]))
            if take is not None:
                _take_again(segment, take)
                continue
            voice = voice_of(segment)
            if (
                voice is None or not segment.recipe
            ):  # the checks saw to it; an order without words stops a pool
                continue
            pools.add(voice.pool)
            jobs.append(
                SegmentJob(
                    conversion=conversion,
                    segment=segment,
                    voice=voice,
                    pool=voice.pool,
                    lane=conversion.lane,
                    position=begin + offset,
                    recipe=segment.recipe,
                    variant=variants[segment.pk],
                    fingerprint=prints[segment.pk],
                    text_rev=segment.text_rev,
                )
            )
        # added twice (double click, two tabs): the open job that exists is the one
        SegmentJob.objects.bulk_create(jobs, ignore_conflicts=True)
        new = SegmentJob.objects.filter(public_id__in=[job.public_id for job in jobs])
        work_moved(
            [
                Moved(kind_of(SegmentJob), pk, "", WorkState.WAITING, 0, 0, "user")
                for pk in new.order_by("pk").values_list("pk", flat=True)
            ]
        )
        queued = [job.segment_id for job in jobs]
        segments_touch(
            Segment.objects.filter(pk__in=queued, state__in=sources(RenderState.QUEUED)).exclude(
                state=RenderState.RENDERING
            ),
            state=RenderState.QUEUED,
            failure_code="",
            failure_detail="",
        )
        _tell(chunk)
    return pools


def _take_again(segment: Segment, take: Take) -> None:
    """Let a take that exists sound; on a locked or approved line that sounds already it waits for a choice."""
    if not segment.is_kept or segment.chosen_take_id in (None, take.pk):
        take_choose(segment, take)
    else:
        Take.objects.filter(pk=take.pk).update(is_candidate=True)


def _tell(segments: Iterable[Segment]) -> None:
    by_document: dict[object, list[int]] = {}
    for segment in segments:
        by_document.setdefault(segment.document.public_id, []).append(segment.pk)
    for document, ids in by_document.items():
        notify.segments_changed(document, ids)  # type: ignore[arg-type]


@transaction.atomic
def conversion_pause(conversion: Conversion) -> bool:
    """Hand out no more of it; what is in flight ends. False if it was not running."""
    moved = Conversion.objects.filter(pk=conversion.pk, state=Conversion.State.RUNNING).update(
        state=Conversion.State.PAUSED
    )
    notify.project_changed(conversion.project.public_id, "conversion")
    return bool(moved)


@transaction.atomic
def conversion_resume(conversion: Conversion) -> bool:
    """Go on. False if it was not paused."""
    moved = Conversion.objects.filter(pk=conversion.pk, state=Conversion.State.PAUSED).update(
        state=Conversion.State.RUNNING
    )
    for pool in conversion.jobs.filter(state=WorkState.WAITING).values_list("pool", flat=True).distinct():
        dispatch_soon(pool)
    notify.project_changed(conversion.project.public_id, "conversion")
    return bool(moved)


@transaction.atomic
def conversion_cancel(conversion: Conversion) -> int:
    """Want none of it any more; the number of jobs cancelled. No result that comes later makes a current take."""
    moved = Conversion.objects.filter(
        pk=conversion.pk, state__in=[Conversion.State.RUNNING, Conversion.State.PAUSED]
    ).update(state=Conversion.State.CANCELLED, finished_at=Now())
    if not moved:
        return 0
    open_jobs = list(
        conversion.jobs.filter(state__in=OPEN_STATES).order_by("pk").values_list("pk", flat=True)
    )
    cancelled, waiting = 0, []
    for begin in range(0, len(open_jobs), CHUNK):
        mine = conversion.jobs.filter(pk__in=open_jobs[begin : begin + CHUNK], state__in=OPEN_STATES)
        if connection.features.has_select_for_update:
            mine = mine.select_for_update()
        chunk = list(mine.order_by("pk").values_list("pk", "segment_id", "state", "dispatch_no", "attempts"))
        cancelled += SegmentJob.objects.filter(pk__in=[row[0] for row in chunk]).update(
            state=WorkState.CANCELLED, lease_until=None, not_before=None, finished_at=Now()
        )
        work_moved(
            [
                Moved(kind_of(SegmentJob), pk, state, WorkState.CANCELLED, dispatch_no, attempts, "user")
                for pk, _segment, state, dispatch_no, attempts in chunk
            ]
        )
        waiting += [row[1] for row in chunk]
    waiting.sort()
    for begin in range(0, len(waiting), CHUNK):  # only now: no job is locked by whoever holds a sentence
        ids = waiting[begin : begin + CHUNK]
        if connection.features.has_select_for_update:  # first their locks, then the look at other jobs
            list(Segment.objects.filter(pk__in=ids).select_for_update().order_by("pk").values_list("pk"))
        wanted_else = set(
            SegmentJob.objects.filter(segment__in=ids, state__in=OPEN_STATES).values_list(
                "segment_id", flat=True
            )
        )
        rest = Segment.objects.filter(
            pk__in=set(ids) - wanted_else, state__in=[RenderState.QUEUED, RenderState.RENDERING]
        )
        touched = list(rest.select_related("document"))
        for has_take in (True, False):
            segments_touch(rest.filter(chosen_take__isnull=not has_take), state=at_rest(has_take))
        _tell(touched)
    notify.project_changed(conversion.project.public_id, "conversion")
    return cancelled


@transaction.atomic
def conversion_retry(user: User | None, conversion: Conversion) -> Conversion | None:
    """Try again exactly what failed of it; the new conversion, or None if nothing of it is failed any more."""
    failed = conversion.jobs.filter(state=WorkState.FAILED).values("segment")
    again = Conversion(
        project=conversion.project,
        document=conversion.document,
        requested_by=user,
        scope=conversion.scope,
        only=Only.FAILED.value,
        lane=conversion.lane,
    )
    return _begin(again, _planned(Segment.objects.filter(pk__in=failed, state=RenderState.FAILED)))


@transaction.atomic
def conversion_first(target: Conversion | Document) -> int:
    """Hand out a conversion, or what waits of a chapter, before everything else of its book; the number of jobs it
    concerns. What is in flight ends first; other people's books keep their share."""
    project = target.project
    open_here = Conversion.objects.filter(
        project=project, state__in=[Conversion.State.RUNNING, Conversion.State.PAUSED]
    )
    urgent = (open_here.aggregate(n=Max("urgent"))["n"] or 0) + 1
    if isinstance(target, Conversion):
        open_here.filter(pk=target.pk).update(urgent=urgent)
        moved = target.jobs.filter(state=WorkState.WAITING).count()
    else:
        waiting = SegmentJob.objects.filter(
            conversion__in=open_here, segment__in=target.segments.all(), state=WorkState.WAITING
        )
        owners = list(waiting.order_by().values_list("conversion", flat=True).distinct())
        open_here.filter(pk__in=owners).update(urgent=urgent)
        moved = SegmentJob.objects.filter(
            conversion__in=owners, segment__in=target.segments.all(), state=WorkState.WAITING
        ).update(urgent=urgent)
    notify.project_changed(project.public_id, "conversion")
    return moved
