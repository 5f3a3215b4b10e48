"""What a result changes. Failures are fenced by `dispatch_no`; a success counts from any dispatch while it is wanted."""

from __future__ import annotations

from enum import StrEnum

from synthesis.speaking.store import StorageRefused
from synthesis.speaking.wire import Outcome, SpeechResult, TakeFacts

from .breaker import failure_hold
from .ports import JobState, JobView, Limits, Move, Objects, Random, Rows


class Settled(StrEnum):
    """What became of a result."""

    UNKNOWN = "unknown"  # its job is gone
    OLD = "old"  # news of a dispatch or a wish that is over
    RECORDED = "recorded"
    WAITING = "waiting"  # back in the queue
    FAILED = "failed"


def backoff_s(attempts: int, limits: Limits, random: Random) -> float:
    """Exponential back-off with full jitter above one half, seconds."""
    most = min(limits.backoff_s * 2 ** max(attempts - 1, 0), limits.backoff_most_s)
    return most * (0.5 + random.random() / 2)


def settle(result: SpeechResult, *, rows: Rows, objects: Objects, limits: Limits, random: Random) -> Settled:
    """Settle one result in one transaction. Safe to deliver twice and late."""
    with rows.atomic():
        job = rows.job_lock(result.job)
        if job is None:
            return Settled.UNKNOWN
        if result.outcome == Outcome.DONE and (facts := result.facts) is not None:
            settled = _success(job, result, facts, rows, objects)
        else:
            settled = _failure(job, result, rows, limits, random)
    if result.outcome == Outcome.UNREACHABLE:
        if result.code == "worker_unreachable" and settled is Settled.WAITING:
            rows.pool_seen(job.pool, result.detail or result.code)
    elif result.outcome != Outcome.EXPIRED:
        current = job.dispatch_no == result.dispatch_no
        rows.pool_seen(job.pool, "", handed_at=job.leased_at if current else None)
    return settled


def _success(job: JobView, result: SpeechResult, facts: TakeFacts, rows: Rows, objects: Objects) -> Settled:
    """Record a take, unless nothing wants it any more."""
    if not job.is_open or job.fingerprint != result.fingerprint:
        return Settled.OLD  # the object is garbage after its grace period
    current = job.state is JobState.LEASED and job.dispatch_no == result.dispatch_no
    keys = (facts.audio_key, facts.peaks_key)
    # A fresh result's object was put moments ago. One that comes late, or was marked by the collector, may be swept.
    marked = rows.garbage_lock(keys)
    if marked or not (current and job.in_lease):
        try:
            there = objects.holds(facts.audio_key, facts.size_bytes) and objects.holds(facts.peaks_key)
        except StorageRefused:
            there = False
        if not there:
            return _again(job, rows, "object_missing") if current else Settled.OLD
        rows.garbage_clear(keys)
    rows.breakers_reset(job.pool, job.voice)
    take = rows.take_record(job, facts)
    if job.segment_recipe == job.recipe:
        rows.take_choose(job, take)
        rows.job_move(Move(job.public_id, job.state, job.dispatch_no, JobState.DONE, "results"))
        return Settled.RECORDED
    # The text or voice moved on: an old take, never the current one; the job wants what is printed now.
    if job.segment_recipe:
        return _again(job, rows, "text_changed")
    rows.job_move(Move(job.public_id, job.state, job.dispatch_no, JobState.CANCELLED, "results"))
    return Settled.OLD


def _again(
    job: JobView, rows: Rows, code: str, *, wait_s: float = 0.0, attempts: int | None = None
) -> Settled:
    """Back into the queue."""
    rows.job_move(
        Move(
            job.public_id,
            job.state,
            job.dispatch_no,
            JobState.WAITING,
            "results",
            wait_s=wait_s,
            attempts=attempts,
            code=code,
        )
    )
    return Settled.WAITING


def _failure(job: JobView, result: SpeechResult, rows: Rows, limits: Limits, random: Random) -> Settled:
    """Let a job wait or fail, if this news is of its current dispatch."""
    if job.state is not JobState.LEASED or job.dispatch_no != result.dispatch_no:
        if job.is_open:
            rows.job_alive(job)  # whoever reports, even late, did not die of it
        return Settled.OLD
    code = result.code or "internal"
    jitter = 0.7 + 0.6 * random.random()
    match result.outcome:
        case Outcome.BUSY:
            return _again(job, rows, code, wait_s=result.retry_after_ms / 1000 * jitter)
        case Outcome.UNREACHABLE:
            return _again(job, rows, code, wait_s=limits.unreachable_wait_s * jitter)
        case Outcome.EXPIRED:
            return _again(job, rows, code)
    attempts = job.attempts + 1
    if failure_hold(job, code, result.detail, rows=rows, limits=limits):
        return _again(job, rows, "held", wait_s=backoff_s(1, limits, random))
    if not result.permanent and attempts < limits.max_attempts:
        return _again(job, rows, code, wait_s=backoff_s(attempts, limits, random), attempts=attempts)
    rows.job_move(
        Move(
            job.public_id,
            job.state,
            job.dispatch_no,
            JobState.FAILED,
            "results",
            attempts=attempts,
            code=code,
            detail=result.detail,
        )
    )
    return Settled.FAILED
