"""When a voice or a pool fails the same way again and again: hold its work, probe, go on. Nothing is charged meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from .ports import BreakerView, JobView, Limits, Rows

# Failures that lie in the words themselves: they say nothing of the voice or its workers.
OF_TEXT = frozenset(
    {"text_not_speakable", "markup_not_supported", "language_not_supported", "too_long", "invalid_request"}
)
# Failures that lie in the voice: the pool's other voices may well work.
OF_VOICE = frozenset({"voice_not_found", "model_not_found", "revision_mismatch"})


def failure_hold(job: JobView, code: str, detail: str, *, rows: Rows, limits: Limits) -> bool:
    """Count a failure; True if its voice or pool is held, so that the job waits uncharged instead of failing.

    A streak is broken by a success and by another failure. Of a voice each *other* job counts, of a pool each *other*
    voice: one odd sentence or one broken voice must not stop the rest. Call it in the transaction that settles the job.
    """
    if code in OF_TEXT:
        return False
    held = False
    for row, mark in _subjects(job, code, rows):
        if row.is_open:
            held = True
            continue
        another = row.code != code or row.last != mark or not row.streak
        streak = 1 if row.code != code else row.streak + another
        opens = streak >= limits.breaker_failures
        rows.breaker_set(
            row.subject,
            streak=streak,
            code=code,
            detail=detail,
            last=mark,
            open_for_s=limits.probe_s if opens else None,
        )
        held = held or opens
    return held


def _subjects(job: JobView, code: str, rows: Rows) -> Iterator[tuple[BreakerView, int]]:
    """The breakers a failure concerns, each with what makes the next failure another one. Locked in this order."""
    if code not in OF_VOICE:
        yield rows.breaker_lock(job.pool, None), job.voice
    yield rows.breaker_lock(job.pool, job.voice), job.id
