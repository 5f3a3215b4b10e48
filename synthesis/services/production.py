"""Background work with database access: imports and exports. Row first, message second, lease renewed while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ConnectionError as StoreUnreachable
from botocore.exceptions import HTTPClientError
from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, close_old_connections, transaction
from django.db.models.functions import Now

from projects import notify
from projects.models import ManuscriptImport
from projects.work import Work, WorkState, due, expired, in_seconds, work_lease, work_move
from synthesis.models import Export
from synthesis.services.dispatching import carried_here, publisher
from synthesis.speaking.conveyor import ConveyorDown

log = logging.getLogger(__name__)

# kind = queue -> (model, actor)
KINDS: dict[str, tuple[type[Work], str]] = {
    "imports": (ManuscriptImport, "run_import"),
    "exports": (Export, "run_export"),
}
DELIVERIES = 3  # a piece of work that was lost so often with its worker is taken for poison
PAGE = 100
# Storage or the database cannot be reached; nothing is wrong with the work itself.
AWAY = (OperationalError, InterfaceError, HTTPClientError, StoreUnreachable)
AWAY_WAIT_S = 20.0


def production_dispatch(kind: str) -> int:
    """Hand out what waits of one kind; the number handed over. Safe to run twice at once: the lease is a guarded write,
    committed before the message is sent."""
    model, actor = KINDS[kind]
    sent = 0
    rows = model.objects.filter(due()).order_by("pk").values_list("pk", "public_id", "dispatch_no")[:PAGE]  # type: ignore[attr-defined]
    for pk, public_id, seen in list(rows):
        if not work_lease(model, pk, dispatch_no=seen, seconds=settings.PRODUCTION_LEASE_S):
            continue
        try:
            publisher.send(kind, actor, public_id=str(public_id), dispatch_no=seen + 1)
            sent += 1
        except ConveyorDown:
            work_move(
                model,
                pk,
                dispatch_no=seen + 1,
                actor="dispatch",
                state=WorkState.WAITING,
                lease_until=None,
                not_before=in_seconds(2),
            )
            break
    return sent


def production_wake(kind: str) -> None:
    """Called after commit when rows were added; anything that goes wrong here is upkeep's to mend."""
    if kind not in KINDS or not carried_here():
        return
    if getattr(settings, "DISPATCH_INLINE", False):
        production_dispatch(kind)
        return

    def run() -> None:
        close_old_connections()
        try:
            production_dispatch(kind)
        except DatabaseError:
            log.warning("dispatch of %s has to wait for upkeep", kind, exc_info=True)
        finally:
            close_old_connections()

    threading.Thread(target=run, name=f"dispatch-{kind}", daemon=True).start()


def production_settle() -> int:
    """Upkeep: work whose lease ran out waits again, or fails once it was lost too often; what waits is handed out."""
    changed = 0
    for kind, (model, _actor) in KINDS.items():
        for row in list(model.objects.filter(expired()).order_by("lease_until")[:PAGE]):  # type: ignore[attr-defined]
            if row.attempts >= DELIVERIES:
                changed += work_move(
                    model,
                    row.pk,
                    dispatch_no=row.dispatch_no,
                    actor="upkeep",
                    state=WorkState.FAILED,
                    failure_code="worker_lost",
                    failure_detail=f"lost with its worker {row.attempts} times",
                    lease_until=None,
                    finished_at=Now(),
                )
                row_changed(row)
            else:
                changed += work_move(
                    model,
                    row.pk,
                    dispatch_no=row.dispatch_no,
                    actor="upkeep",
                    state=WorkState.WAITING,
                    lease_until=None,
                )
        production_dispatch(kind)
    return changed


def row_changed(row: Work) -> None:
    """Tell the pages that show it."""
    if isinstance(row, ManuscriptImport):
        notify.library_changed(row.user.public_id)
    elif isinstance(row, Export):
        notify.project_changed(row.project.public_id, "exports")


@contextmanager
def lease_kept(row: Work, dispatch_no: int) -> Iterator[Callable[[], bool]]:
    """Renew a row's lease from a thread while the work runs; the yielded function says whether it is still ours."""
    stop, lost = threading.Event(), threading.Event()
    model = type(row)

    def renew() -> None:
        while not stop.wait(settings.PRODUCTION_LEASE_S / 4):
            try:
                if not work_move(
                    model,
                    row.pk,
                    dispatch_no=dispatch_no,
                    lease_until=in_seconds(settings.PRODUCTION_LEASE_S),
                ):
                    lost.set()
                    return
            except DatabaseError:
                log.warning("could not renew the lease of %s", row.public_id, exc_info=True)
            finally:
                close_old_connections()

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield lambda: not lost.is_set()
    finally:
        stop.set()
        thread.join(timeout=5)


def work_run(
    kind: str, public_id: str, dispatch_no: int, run: Callable[[Any, int, Callable[[], bool]], Any]
) -> bool:
    """Run one row's work if this dispatch still holds it; False for old news. What the work raises is recorded.

    An attempt is counted when a worker begins: what only waited behind other work is not lost with anybody. Storage or
    a database that is away costs none; the row waits.
    """
    model, _actor = KINDS[kind]
    row = model.objects.filter(  # type: ignore[attr-defined]
        public_id=public_id, state=WorkState.LEASED, dispatch_no=dispatch_no
    ).first()
    if row is None or not work_move(
        model,
        row.pk,
        dispatch_no=dispatch_no,
        attempts=row.attempts + 1,
        lease_until=in_seconds(settings.PRODUCTION_LEASE_S),
    ):
        return False
    row_changed(row)
    with lease_kept(row, dispatch_no) as ours:
        try:
            run(row, dispatch_no, ours)
        except AWAY as exc:
            log.warning("%s %s has to wait: %s", kind, public_id, exc)
            work_move(
                model,
                row.pk,
                dispatch_no=dispatch_no,
                state=WorkState.WAITING,
                attempts=row.attempts,
                lease_until=None,
                not_before=in_seconds(AWAY_WAIT_S),
            )
        except Exception as exc:
            log.exception("%s %s failed", kind, public_id)
            with transaction.atomic():
                work_move(
                    model,
                    row.pk,
                    dispatch_no=dispatch_no,
                    state=WorkState.FAILED,
                    failure_code=getattr(exc, "code", "internal"),
                    failure_detail=f"{type(exc).__name__}: {exc}"[:2000],
                    lease_until=None,
                    finished_at=Now(),
                )
                row_changed(row)
    return True
