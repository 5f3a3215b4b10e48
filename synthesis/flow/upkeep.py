"""What time alone must settle: leases that ran out. Safe to run twice at once."""

from __future__ import annotations

from .ports import JobState, Limits, Lost, Move, Rows


def leases_expire(*, rows: Rows, limits: Limits) -> int:
    """Put jobs whose lease ran out back into the queue; the number that were.

    The worker may still be at it: its success counts when it comes. What `expired` said may be old by now, so each is
    changed only if it still is in the dispatch that was seen.
    """
    return sum(order_lost(lost, rows=rows, limits=limits) for lost in rows.expired(limit=limits.page))


def order_lost(lost: Lost, *, rows: Rows, limits: Limits) -> bool:
    """Settle one lost order; False if it moved on.

    An order that is lost again and again while its pool answers those handed out after it kills its worker: it fails with
    a reason, others go on. While nothing later is answered it is an outage, which costs nothing.
    """
    losses = lost.losses + lost.blamed
    if losses >= limits.losses_most:
        return _worker_lost(lost.public_id, lost.dispatch_no, losses, rows)
    return rows.job_move(
        Move(
            lost.public_id,
            JobState.LEASED,
            lost.dispatch_no,
            JobState.WAITING,
            "upkeep",
            losses=losses,
            code="expired",
        )
    )


def order_dead(public_id: str, dispatch_no: int, *, rows: Rows, limits: Limits) -> bool:
    """Settle an order that the broker delivered as often as it may and nobody lived to report; False if it moved on.

    This is proof, even if nothing else is asked of the pool: the order was read, and its reader died, each time.
    """
    return _worker_lost(public_id, dispatch_no, limits.losses_most, rows)


def _worker_lost(public_id: str, dispatch_no: int, losses: int, rows: Rows) -> bool:
    return rows.job_move(
        Move(
            public_id,
            JobState.LEASED,
            dispatch_no,
            JobState.FAILED,
            "upkeep",
            losses=losses,
            code="worker_lost",
            detail=f"lost with its worker {losses} times",
        )
    )
