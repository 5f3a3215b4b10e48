"""What a result changes. Failures are fenced by `dispatch_no`; a success counts from any dispatch while it is wanted."""

from __future__ import annotations

from enum import StrEnum

from synthesis.speaking.wire import Outcome, SpeechResult

from .ports import Limits, Random, Rows


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


def settle(result: SpeechResult, *, rows: Rows, limits: Limits, random: Random) -> Settled:
    """Settle one result in one transaction. Safe to deliver twice and late."""
    with rows.atomic():
        job = rows.job_lock(result.job)
        if job is None:
            return Settled.UNKNOWN

        facts = result.facts
        if result.outcome == Outcome.DONE and facts is not None:
            if not job.is_open or job.fingerprint != result.fingerprint:
                return Settled.OLD  # the object is garbage after its grace period
            rows.pool_seen(job.pool, "")
            take = rows.take_record(job, facts)
            if job.segment_recipe == job.recipe:
                rows.take_choose(job, take)
                rows.job_close(job)
                return Settled.RECORDED
            # The text or voice moved on: an old take, never the current one; the job wants what is printed now.
            if job.segment_recipe:
                rows.job_wait(job, seconds=0.0)
                return Settled.WAITING
            rows.job_cancel(job)
            return Settled.OLD

        if not job.is_leased or job.dispatch_no != result.dispatch_no:
            return Settled.OLD
        match result.outcome:
            case Outcome.BUSY:
                rows.job_wait(job, seconds=result.retry_after_ms / 1000 * (0.7 + 0.6 * random.random()))
            case Outcome.UNREACHABLE:
                if result.code == "worker_unreachable":
                    rows.pool_seen(job.pool, result.detail or result.code)
                rows.job_wait(job, seconds=limits.unreachable_wait_s * (0.7 + 0.6 * random.random()))
            case Outcome.EXPIRED:
                rows.job_wait(job, seconds=0.0)
            case _:
                attempts = job.attempts + 1
                if result.permanent or attempts >= limits.max_attempts:
                    rows.job_fail(
                        job, code=result.code or "internal", detail=result.detail, attempts=attempts
                    )
                    return Settled.FAILED
                rows.job_wait(job, seconds=backoff_s(attempts, limits, random), attempts=attempts)
        return Settled.WAITING
