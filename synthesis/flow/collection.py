"""Objects that no take points at go in two steps: marked in a row, and deleted after a grace period if that is still so.

A result that names a marked or swept object clears the mark if the object is there, and is made again if it is not
(`results`). The mark's lock decides between the two: whoever comes second sees what the first did.
"""

from __future__ import annotations

from .ports import Limits, Objects, Rows


def garbage_find(*, rows: Rows, objects: Objects, limits: Limits) -> int:
    """Mark objects that have lain unreferenced for a grace period; the number that are new. Deletes nothing."""
    return sum(
        rows.garbage_mark(rows.unreferenced(page)) for page in objects.old(seconds=limits.grace_s) if page
    )


def garbage_sweep(*, rows: Rows, objects: Objects, limits: Limits) -> int:
    """Delete what has been marked for a grace period and still is unreferenced; the number deleted. Safe to run twice
    at once. Raises StorageRefused; what was not reached stays marked."""
    swept = 0
    for key in rows.garbage_due(seconds=limits.grace_s, limit=limits.page):
        with rows.atomic():
            if not rows.garbage_hold(key, seconds=limits.grace_s):
                continue
            if not rows.unreferenced([key]):
                rows.garbage_clear([key])
                continue
            objects.delete(key)
            rows.garbage_swept(key)
            swept += 1
    rows.garbage_forget(seconds=limits.grace_s)
    return swept
