"""Page-shaped reads, with a query count that does not grow with the book."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Case, Count, F, FloatField, Q, QuerySet, Sum, When
from django.db.models.functions import Cast, Coalesce
from django.utils import timezone

from projects.models import Document, ManuscriptImport, Project, Segment
from projects.pauses import pause_ms
from projects.states import RenderState
from projects.work import OPEN_STATES, WorkState

IMPORT_SHOWN = timedelta(minutes=30)  # how long a finished import is still announced
CATCH_UP_OVERLAP_S = 10  # a transaction may commit a little after the time it noted


@dataclass(slots=True)
class Counts:
    """Sentences that are read aloud, by state. Lengths in ms; `version` grows with every change."""

    total: int = 0
    empty: int = 0
    queued: int = 0
    rendering: int = 0
    ready: int = 0
    failed: int = 0
    stale: int = 0
    approved: int = 0
    missing: int = 0  # without a take, whatever the state
    version: int = 0
    words: int = 0
    estimated_ms: int = 0
    estimated_missing_ms: int = 0
    spoken_ms: int = 0
    pauses_ms: int = 0

    def add(self, other: Counts) -> None:
        """Add another's figures to these."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def percent_ready(self) -> float:
        """Share of sentences that are ready, 0-100."""
        return 100 * self.ready / self.total if self.total else 0.0

    @property
    def duration_s(self) -> float | None:
        """Length with pauses, once every sentence has a take; None before."""
        return (self.spoken_ms + self.pauses_ms) / 1000 if self.total and not self.missing else None

    @property
    def hours_estimate(self) -> float:
        """Predicted length in hours: what is made as measured, the rest at the speed measured so far (at first: of
        common narration)."""
        done_estimate = self.estimated_ms - self.estimated_missing_ms
        pace = self.spoken_ms / done_estimate if done_estimate and self.spoken_ms else 1.0
        return (self.spoken_ms + self.estimated_missing_ms * pace + self.pauses_ms) / 3_600_000


def _spoken_ms() -> Any:
    """SQL: length of the chosen take's speech, ms."""
    samples = Cast(F("chosen_take__speech_end") - F("chosen_take__speech_start"), FloatField())
    return samples * 1000 / F("chosen_take__rate_hz")


def _counts(segments: QuerySet[Segment], by: str) -> dict[Any, Counts]:
    """Counts per value of `by`, two queries whatever the size."""
    rows = (
        segments.with_stale()  # type: ignore[attr-defined]
        .exclude(spoken="")
        .values(by)
        .annotate(
            n_total=Count("pk"),
            n_empty=Count("pk", filter=Q(state=RenderState.EMPTY)),
            n_queued=Count("pk", filter=Q(state=RenderState.QUEUED)),
            n_rendering=Count("pk", filter=Q(state=RenderState.RENDERING)),
            n_ready=Count("pk", filter=Q(state=RenderState.READY)),
            n_failed=Count("pk", filter=Q(state=RenderState.FAILED)),
            n_stale=Count(Case(When(is_stale=True, then=1))),
            n_approved=Count("pk", filter=~Q(qc_at=None)),
            n_missing=Count("pk", filter=Q(chosen_take=None)),
            n_version=Coalesce(Sum("version"), 0),
            n_words=Coalesce(Sum("words"), 0),
            n_estimated_ms=Coalesce(Sum("estimated_ms"), 0),
            n_estimated_missing_ms=Coalesce(Sum("estimated_ms", filter=Q(chosen_take=None)), 0),
            n_spoken_ms=Coalesce(Sum(_spoken_ms()), 0.0),
        )
        .order_by()
    )
    found: dict[Any, Counts] = defaultdict(Counts)
    for row in rows:
        found[row[by]] = Counts(
            **{name: round(row[f"n_{name}"]) for name in Counts.__slots__ if name != "pauses_ms"}
        )
    pauses = (
        segments.exclude(spoken="")
        .values(by, "boundary", "pause_after_ms")
        .annotate(n=Count("pk"))
        .order_by()
    )
    for row in pauses:
        found[row[by]].pauses_ms += row["n"] * pause_ms(row["boundary"], None, row["pause_after_ms"])
    return found


@dataclass(slots=True)
class DocumentRow:
    """A chapter in a list."""

    document: Document
    number: int | None
    counts: Counts

    def __getattr__(self, name: str) -> Any:
        """Fields of the chapter itself."""
        return getattr(self.document, name)

    @property
    def words(self) -> int:
        return self.counts.words

    @property
    def duration_s(self) -> float | None:
        return self.counts.duration_s

    @property
    def percent_ready(self) -> float:
        return self.counts.percent_ready

    @property
    def hours_estimate(self) -> float:
        return self.counts.hours_estimate

    @property
    def version(self) -> int:
        """Grows with the chapter's own changes and those of its sentences."""
        return self.document.version + self.counts.version


def documents_of(project: Project) -> list[DocumentRow]:
    """A book's parts in order; chapters are numbered among those that are read."""
    documents = list(project.documents.order_by("order_key"))
    counts = _counts(Segment.objects.filter(document__project=project), "document")
    rows, number = [], 0
    for document in documents:
        document.project = project
        counted = document.kind == Document.Kind.CHAPTER and document.included
        number += counted
        rows.append(DocumentRow(document, number if counted else None, counts[document.pk]))
    return rows


def document_row(document: Document) -> DocumentRow:
    """One chapter with its figures."""
    number = None
    if document.kind == Document.Kind.CHAPTER and document.included:
        number = Document.objects.filter(
            project=document.project_id,
            kind=Document.Kind.CHAPTER,
            included=True,
            order_key__lte=document.order_key,
        ).count()
    counts = _counts(Segment.objects.filter(document=document), "document")
    return DocumentRow(document, number, counts[document.pk])


def first_chapter(rows: Iterable[DocumentRow]) -> DocumentRow | None:
    """The chapter that the first button makes: the first real chapter that is read, else the first part that is."""
    read = [row for row in rows if row.document.included and row.counts.total]
    chapters = [row for row in read if row.document.kind == Document.Kind.CHAPTER]
    return next(iter(chapters or read), None)


def book_counts(rows: Iterable[DocumentRow]) -> Counts:
    """Figures of the audiobook: its included parts together."""
    total = Counts()
    for row in rows:
        if row.document.included:
            total.add(row.counts)
    return total


@dataclass(slots=True)
class ProjectRow:
    """A book in the library."""

    project: Project
    counts: Counts = field(default_factory=Counts)
    chapter_count: int = 0
    updated_at: datetime | None = None

    def __getattr__(self, name: str) -> Any:
        """Fields of the book itself."""
        return getattr(self.project, name)

    @property
    def percent_ready(self) -> float:
        return self.counts.percent_ready

    @property
    def hours_estimate(self) -> float:
        return self.counts.hours_estimate

    @property
    def version(self) -> int:
        return self.counts.version


def library(projects: QuerySet[Project]) -> list[ProjectRow]:
    """Books with their figures, newest first; the query count does not grow with them."""
    found = list(projects.order_by("-pk")[:200])
    segments = Segment.objects.filter(document__project__in=found, document__included=True)
    counts = _counts(segments, "document__project")
    chapters = dict(
        Document.objects.filter(project__in=found, included=True)
        .values_list("project")
        .annotate(n=Count("pk"))
        .order_by()
    )
    return [ProjectRow(p, counts[p.pk], chapters.get(p.pk, 0), p.created_at) for p in found]


def imports_shown(user: Any) -> list[ManuscriptImport]:
    """One's imports that run, failed, or were done a moment ago and not dismissed, newest first."""
    mine = ManuscriptImport.objects.filter(user_id=user.pk, dismissed_at=None).select_related("project")
    fresh = Q(state=WorkState.DONE, finished_at__gte=timezone.now() - IMPORT_SHOWN)
    return list(mine.filter(Q(state__in=[*OPEN_STATES, WorkState.FAILED]) | fresh).order_by("-pk")[:20])


def segments_of(document: Document) -> QuerySet[Segment]:
    """A chapter's sentences in order, ready to be shown."""
    return (
        Segment.objects.with_stale()
        .filter(document=document)
        .select_related("block", "chosen_take")
        .annotate(take_count=Count("takes", filter=Q(takes__deleted_at=None)))
        .order_by("block__order_key", "order_key")
    )


def stamp_now() -> str:
    """A stamp for catching up: who has seen this has seen everything before."""
    if connection.vendor != "postgresql":
        return timezone.now().isoformat()  # the database's clock is this machine's
    with connection.cursor() as cursor:  # `changed_at` is database time; this process's clock may be wrong
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0].isoformat()


def stamp_read(stamp: str) -> datetime | None:
    """The time behind a stamp, minus the overlap; None if it cannot be read (then everything is new)."""
    try:
        seen = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if timezone.is_naive(seen):
        return None
    return seen - timedelta(seconds=CATCH_UP_OVERLAP_S)
