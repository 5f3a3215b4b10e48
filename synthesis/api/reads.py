"""Reads shaped as the REST doors show them; the query count does not grow with the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db.models import Count

from projects.failures import failure_words
from projects.work import WorkState
from synthesis.models import Conversion, SegmentJob


@dataclass(slots=True)
class FailureCount:
    """Jobs that failed for one reason."""

    code: str
    count: int

    @property
    def message(self) -> str:
        """What happened."""
        return failure_words(self.code)[0]

    @property
    def remedy(self) -> str:
        """What helps."""
        return failure_words(self.code)[1]


@dataclass(slots=True)
class JobCounts:
    """A conversion's jobs by state."""

    total: int = 0
    waiting: int = 0
    leased: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0
    failures: list[FailureCount] = field(default_factory=list)


def job_counts(conversions: Iterable[Conversion]) -> dict[int, JobCounts]:
    """Counts by the conversion's key, in one query."""
    found = {conversion.pk: JobCounts() for conversion in conversions}
    rows = (
        SegmentJob.objects.filter(conversion__in=list(found))
        .values_list("conversion_id", "state", "failure_code")
        .annotate(n=Count("pk"))
        .order_by("-n", "failure_code")
    )
    for conversion, state, code, count in rows:
        counts = found[conversion]
        counts.total += count
        setattr(counts, state, getattr(counts, state) + count)
        if state == WorkState.FAILED:
            counts.failures.append(FailureCount(code, count))
    return found
