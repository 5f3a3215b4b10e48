"""Page-shaped reads on conversions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Count, Max, Min, Q, Sum
from django.utils import timezone
from django.utils.formats import time_format
from django.utils.translation import gettext as _

from projects.failures import failure_words
from projects.models import Project, Take, Voice
from projects.work import OPEN_STATES, WorkState
from synthesis.models import Breaker, Conversion, Pool, SegmentJob

SHOWN_AFTER_END = timedelta(hours=1)  # a finished conversion says so long what happened
LEAST_DONE = 3  # sentences made before a time left is named
SPEED_TAKES = 200  # takes that the compute estimate looks back on


@dataclass(slots=True)
class Failure:
    """Jobs that failed for one reason."""

    code: str
    reason: str
    remedy: str
    count: int


@dataclass(slots=True)
class ConversionRow:
    """A conversion as people see it. Seconds; `version` orders pushes."""

    conversion: Conversion
    total: int = 0
    waiting: int = 0
    now: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    eta_s: float | None = None  # None = not measured yet
    failures: list[Failure] = field(default_factory=list)
    waiting_why: str = ""
    scope_label: str = ""
    version: int = field(default_factory=lambda: time.time_ns() // 1_000_000)

    def __getattr__(self, name: str) -> Any:
        """Fields of the conversion itself."""
        return getattr(self.conversion, name)


def conversion_row(conversion: Conversion) -> ConversionRow:
    """A conversion with its counts, reasons and honest time left."""
    jobs = SegmentJob.objects.filter(conversion=conversion)
    sums = jobs.aggregate(
        total=Count("pk"),
        waiting=Count("pk", filter=Q(state=WorkState.WAITING)),
        now=Count("pk", filter=Q(state=WorkState.LEASED)),
        done=Count("pk", filter=Q(state=WorkState.DONE)),
        failed=Count("pk", filter=Q(state=WorkState.FAILED)),
        cancelled=Count("pk", filter=Q(state=WorkState.CANCELLED)),
        done_ms=Sum("segment__estimated_ms", filter=Q(state=WorkState.DONE)),
        left_ms=Sum("segment__estimated_ms", filter=Q(state__in=OPEN_STATES)),
        begun=Min("leased_at"),
        last=Max("finished_at", filter=Q(state=WorkState.DONE)),
    )
    row = ConversionRow(
        conversion, **{k: sums[k] for k in ("total", "waiting", "now", "done", "failed", "cancelled")}
    )
    if row.done >= LEAST_DONE and sums["begun"] and sums["last"] and sums["done_ms"]:
        elapsed = (sums["last"] - sums["begun"]).total_seconds()
        if elapsed > 0:
            row.eta_s = (sums["left_ms"] or 0) / (sums["done_ms"] / elapsed)
    for code, count in (
        jobs.filter(state=WorkState.FAILED).values_list("failure_code").annotate(n=Count("pk")).order_by("-n")
    ):
        detail = (
            jobs.filter(state=WorkState.FAILED, failure_code=code)
            .values_list("failure_detail", flat=True)
            .first()
        )
        reason, remedy = failure_words(code, detail or "")
        row.failures.append(Failure(code, reason, remedy, count))
    if row.waiting or row.now:
        still = jobs.filter(state__in=OPEN_STATES).order_by()
        row.waiting_why = waiting_why(
            set(still.values_list("pool", flat=True).distinct()),
            set(still.values_list("voice", flat=True).distinct()),
        )
    scope = {
        "segment": _("one sentence"),
        "document": conversion.document.title if conversion.document else _("one chapter"),
        "project": _("the whole book"),
        "rest": _("the rest of the book"),
    }
    row.scope_label = scope.get(conversion.scope, "")
    return row


def waiting_why(pools: set[str], voices: set[int] | None = None) -> str:
    """Why nothing moves, since when: a pool whose workers do not answer, or what is held after failing again and again.

    `voices` are those that something waits for; None = any of these pools. "" while all is well.
    """
    away = (
        Pool.objects.filter(name__in=pools)
        .exclude(unreachable_since=None)
        .order_by("unreachable_since")
        .first()
    )
    if away is None or away.unreachable_since is None:
        return _held_why(pools, voices)
    return _("Waiting for %(pool)s since %(time)s. Nothing has failed; it goes on by itself.") % {
        "pool": away.name.upper(),
        "time": time_format(timezone.localtime(away.unreachable_since), "H:i"),
    }


def _held_why(pools: set[str], voices: set[int] | None) -> str:
    held = Breaker.objects.filter(pool__in=pools).exclude(opened_at=None).select_related("voice")
    if voices is not None:
        held = held.filter(Q(voice=None) | Q(voice__in=voices))
    first = held.order_by("opened_at").first()
    if first is None or first.opened_at is None:
        return ""
    reason, remedy = failure_words(first.code, first.detail)
    return _(
        "%(what)s failed again and again: %(reason)s Held since %(time)s; one sentence is tried now and then, and it goes "
        "on by itself. %(remedy)s"
    ) % {
        "what": first.voice.name if first.voice else first.pool.upper(),
        "reason": reason,
        "time": time_format(timezone.localtime(first.opened_at), "H:i"),
        "remedy": remedy,
    }


def conversion_shown(project: Project) -> ConversionRow | None:
    """The conversion a book's pages show: what runs or is paused, else what ended a moment ago."""
    mine = Conversion.objects.filter(project=project).select_related("document")
    found = (
        mine.filter(state=Conversion.State.RUNNING).order_by("-pk").first()
        or mine.filter(state=Conversion.State.PAUSED).order_by("-pk").first()
        or mine.filter(finished_at__gte=timezone.now() - SHOWN_AFTER_END).order_by("-finished_at").first()
    )
    return conversion_row(found) if found else None


def compute_s(voice: Voice | None, audio_ms: int) -> float | None:
    """Predicted compute for so much audio by a voice, from its last takes; None before any was made."""
    if voice is None:
        return None
    recent = Take.objects.filter(voice=voice, origin=Take.Origin.SYNTHESIS, inference_ms__gt=0).order_by(
        "-pk"
    )
    took = made = 0.0
    for inference_ms, samples, rate_hz in recent.values_list("inference_ms", "samples", "rate_hz")[
        :SPEED_TAKES
    ]:
        took += inference_ms
        made += samples * 1000 / rate_hz
    return audio_ms * took / made / 1000 if made else None
