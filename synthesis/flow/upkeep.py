"""What time alone must settle: leases that ran out. Safe to run twice at once."""

from __future__ import annotations

from .ports import Rows

PAGE = 200  # rows looked at per pass


def leases_expire(*, rows: Rows) -> int:
    """Put jobs whose lease ran out back into the queue; the number that were.

    The worker may still be at it: its success counts when it comes. What `expired` said may be old by now, so each is
    changed only if it still is in the dispatch that was seen.
    """
    return sum(
        rows.job_unlease(public_id, dispatch_no, seconds=0.0)
        for public_id, dispatch_no in rows.expired(limit=PAGE)
    )
