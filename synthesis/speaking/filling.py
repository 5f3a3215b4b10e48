"""Fills one order: speak, measure, encode, store, report. Pure; safe to run twice for the same order."""

from __future__ import annotations

import hashlib
import logging
import time

from synthesis.audio.codec import flac_encode, wav_read
from synthesis.audio.measure import measure
from synthesis.audio.peaks import peaks_encode

from .client import InferenceClient, SpeechRefused, Spoken, WorkerBusy, WorkerUnreachable
from .measures import STAGE
from .store import ObjectStore, StorageRefused
from .wire import Outcome, SpeechOrder, SpeechResult, TakeFacts

log = logging.getLogger(__name__)


def take_key(project: str, fingerprint: str, sha256: str) -> str:
    """Where a take lies: content-addressed within its project, so that deleting a project deletes its prefix."""
    return f"p/{project}/takes/{fingerprint}/{sha256}.flac"


def order_fill(order: SpeechOrder, *, client: InferenceClient, store: ObjectStore) -> SpeechResult:
    """Fill an order. Never raises for what the world may do; whatever happened is a result."""
    deadline_ms = round((order.not_after - time.time()) * 1000) if order.not_after else 0
    if order.not_after and deadline_ms <= 0:
        return SpeechResult.of(
            order, Outcome.EXPIRED, code="expired", detail="read after its lease had ended"
        )
    try:
        with STAGE.labels("inference").time():
            spoken = client.speak(order, deadline_ms=deadline_ms)
        with STAGE.labels("store").time():
            facts = _store(order, spoken, store)
    except WorkerBusy as exc:
        return SpeechResult.of(
            order, Outcome.BUSY, code="worker_busy", detail=str(exc), retry_after_ms=exc.retry_after_ms
        )
    except WorkerUnreachable as exc:
        return SpeechResult.of(order, Outcome.UNREACHABLE, code="worker_unreachable", detail=str(exc))
    except StorageRefused as exc:
        return SpeechResult.of(order, Outcome.UNREACHABLE, code="storage_refused", detail=str(exc))
    except SpeechRefused as exc:
        return SpeechResult.of(order, Outcome.FAILED, code=exc.code, detail=str(exc), permanent=exc.permanent)
    except Exception as exc:
        log.exception("order %s failed", order.job)
        return SpeechResult.of(
            order, Outcome.FAILED, code="internal", detail=f"{type(exc).__name__}: {exc}"[:500]
        )
    return SpeechResult.of(order, Outcome.DONE, take=facts.to_wire())


def _store(order: SpeechOrder, spoken: Spoken, store: ObjectStore) -> TakeFacts:
    """Measure, encode and store a spoken sentence; peaks first, so that a take never lacks them."""
    samples, rate_hz = wav_read(spoken.audio)
    if not len(samples):
        raise SpeechRefused("empty_audio", "the worker answered with no sound")
    measured = measure(samples, rate_hz)
    if measured.speech_end <= measured.speech_start:
        raise SpeechRefused("silent_audio", "the worker answered with silence")
    flac = flac_encode(samples, rate_hz)
    sha256 = hashlib.sha256(flac).hexdigest()
    audio_key = take_key(order.project, order.fingerprint, sha256)
    peaks_key = audio_key.removesuffix(".flac") + ".dat"
    store.put(peaks_key, peaks_encode(samples, rate_hz), "application/octet-stream")
    store.put(audio_key, flac, "audio/flac")
    return TakeFacts(
        audio_key=audio_key,
        peaks_key=peaks_key,
        sha256=sha256,
        size_bytes=len(flac),
        samples=measured.samples,
        rate_hz=rate_hz,
        speech_start=measured.speech_start,
        speech_end=measured.speech_end,
        rms_db=measured.rms_db,
        peak_db=measured.peak_db,
        noise_floor_db=measured.noise_floor_db,
        loudness_lufs=measured.loudness_lufs,
        model=spoken.model,
        revision=spoken.revision,
        seed=spoken.seed,
        queue_ms=spoken.queue_ms,
        inference_ms=spoken.inference_ms,
        batch_size=spoken.batch_size,
    )
