"""Everything that runs in the background is a row first and a message second: the row.

`dispatch_no` (+1 per dispatch) is the fence: news that names another dispatch is old. `attempts` is the retry budget;
an outage costs none. Leases live in database time: `lease_until` is written and compared with the database's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7


class WorkState(models.TextChoices):
    WAITING = "waiting", _("waiting")  # wants a worker
    LEASED = "leased", _("running")  # handed out; the lease says until when it is believed
    DONE = "done", _("done")
    FAILED = "failed", _("failed")  # for good; the reason stands beside
    CANCELLED = "cancelled", _("cancelled")


OPEN_STATES = (WorkState.WAITING, WorkState.LEASED)


class Work(models.Model):
    """A row of background work."""

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    state = models.CharField(_("state"), max_length=10, choices=WorkState, default=WorkState.WAITING)
    dispatch_no = models.PositiveIntegerField(_("dispatches"), default=0)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    not_before = models.DateTimeField(_("not before"), null=True, blank=True)
    lease_until = models.DateTimeField(_("lease until"), null=True, blank=True)
    failure_code = models.CharField(_("failure"), max_length=40, blank=True)
    failure_detail = models.TextField(_("detail"), blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        """Still wants or has a worker."""
        return self.state in OPEN_STATES


def due() -> Q:
    """Rows that wait and may be handed out now."""
    return Q(state=WorkState.WAITING) & (Q(not_before=None) | Q(not_before__lte=Now()))


def expired() -> Q:
    """Rows whose lease ran out: their worker is believed lost."""
    return Q(state=WorkState.LEASED, lease_until__lt=Now())


def in_seconds(seconds: float) -> Any:
    """An expression: so many seconds from the database's now."""
    return Now() + timedelta(seconds=seconds)


# Every change of state leaves an event in the transaction that makes it: the history a checker reads.
@dataclass(frozen=True, slots=True)
class Moved:
    """One change of state of one row of background work. Sources and targets are WorkState values; "" = not there yet."""

    kind: str  # the model, as "synthesis.segmentjob"
    work: int
    source: str
    to: str
    dispatch_no: int
    attempts: int  # after the change
    actor: str  # who did it: user, dispatch, worker, results, upkeep, boot
    reason: str = ""  # machine word, where there is one


_recorders: list[Callable[[Sequence[Moved]], None]] = []


def on_work_moved(recorder: Callable[[Sequence[Moved]], None]) -> None:
    """Register a function that stores changes of state; called inside the transaction that made them."""
    if recorder not in _recorders:
        _recorders.append(recorder)


def work_moved(moves: Sequence[Moved]) -> None:
    """Append events. Call it in the transaction of the change."""
    if moves:
        for recorder in _recorders:
            recorder(moves)


def kind_of(model: type[models.Model]) -> str:
    """The name of a kind of work in its events."""
    return model._meta.label_lower


def work_created(row: Work, actor: str = "user") -> None:
    """Append the event of a new row. Call it in the transaction that made it."""
    work_moved([Moved(kind_of(type(row)), row.pk, "", row.state, row.dispatch_no, row.attempts, actor)])


@transaction.atomic
def work_lease(model: type[models.Model], pk: int, *, dispatch_no: int, seconds: float) -> bool:
    """Hand out one row; False if it moved on. `dispatch_no` is the one the caller saw."""
    leased = model.objects.filter(pk=pk, state=WorkState.WAITING, dispatch_no=dispatch_no).update(  # type: ignore[attr-defined]
        state=WorkState.LEASED, dispatch_no=F("dispatch_no") + 1, lease_until=in_seconds(seconds)
    )
    if leased:
        attempts = model.objects.values_list("attempts", flat=True).get(pk=pk)  # type: ignore[attr-defined]
        work_moved(
            [
                Moved(
                    kind_of(model),
                    pk,
                    WorkState.WAITING,
                    WorkState.LEASED,
                    dispatch_no + 1,
                    attempts,
                    "dispatch",
                )
            ]
        )
    return bool(leased)


@transaction.atomic
def work_move(
    model: type[models.Model], pk: int, *, dispatch_no: int, actor: str = "worker", **changes: Any
) -> bool:
    """Change a leased row if this dispatch still holds it; False if it moved on (old news)."""
    guard = {"pk": pk, "state": WorkState.LEASED, "dispatch_no": dispatch_no}
    moved = model.objects.filter(**guard).update(**changes)  # type: ignore[attr-defined]
    if moved and "state" in changes:
        attempts = model.objects.values_list("attempts", flat=True).get(pk=pk)  # type: ignore[attr-defined]
        reason = changes.get("failure_code", "")
        work_moved(
            [
                Moved(
                    kind_of(model),
                    pk,
                    WorkState.LEASED,
                    changes["state"],
                    dispatch_no,
                    attempts,
                    actor,
                    reason,
                )
            ]
        )
    return bool(moved)


@transaction.atomic
def work_retry(row: Work) -> bool:
    """Let failed work wait for a worker again, with a fresh budget; False if it is not failed (any more)."""
    again = (
        type(row)
        .objects.filter(pk=row.pk, state=WorkState.FAILED)  # type: ignore[attr-defined]
        .update(
            state=WorkState.WAITING,
            attempts=0,
            not_before=None,
            failure_code="",
            failure_detail="",
            finished_at=None,
        )
    )
    if again:
        dispatch_no = type(row).objects.values_list("dispatch_no", flat=True).get(pk=row.pk)  # type: ignore[attr-defined]
        work_moved(
            [Moved(kind_of(type(row)), row.pk, WorkState.FAILED, WorkState.WAITING, dispatch_no, 0, "user")]
        )
    return bool(again)


# Rooms above register how their kinds of work are handed out; rooms below only announce that there is some.
_wakers: list[Callable[[str], None]] = []


def on_work_added(waker: Callable[[str], None]) -> None:
    """Register a function called after commit with the kind of work ("imports", …) that was added."""
    if waker not in _wakers:
        _wakers.append(waker)


def work_added(kind: str) -> None:
    """Announce, after the current transaction commits, that rows of this kind wait. A failed waker loses nothing:
    upkeep hands out what waits."""
    transaction.on_commit(lambda: [waker(kind) for waker in _wakers], robust=True)
