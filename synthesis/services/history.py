"""The history of background work: one event per change of state, in the transaction that made it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db import connection
from django.db.models.functions import Now

from projects.work import Moved
from synthesis.models import JobEvent

DROPPED_PER_PASS = 5_000  # rows


def events_append(moves: Sequence[Moved]) -> None:
    """Store changes of state; one statement for all."""
    JobEvent.objects.bulk_create(
        [
            JobEvent(
                kind=move.kind,
                job=move.work,
                source=move.source,
                to=move.to,
                dispatch_no=move.dispatch_no,
                attempts=move.attempts,
                actor=move.actor,
                reason=move.reason[:40],
            )
            for move in moves
        ],
        batch_size=500,
    )


def events_drop(days: float) -> int:
    """Drop events older than so many days, a page per call; the number dropped."""
    old = JobEvent.objects.filter(at__lt=Now() - timedelta(days=days)).order_by("at")
    page = list(old.values_list("pk", flat=True)[:DROPPED_PER_PASS])
    if not page:
        return 0
    limit = connection.features.max_query_params or len(page)
    dropped = 0
    for begin in range(0, len(page), limit):
        dropped += JobEvent.objects.filter(pk__in=page[begin : begin + limit]).delete()[0]
    return dropped
