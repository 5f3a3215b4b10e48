"""The studio's voices: what the inference workers offer, taken over by name and pinned revision; their samples."""

from __future__ import annotations

import hashlib
import logging
import secrets
from contextlib import closing

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext as _

from projects.models import Voice
from synthesis.speaking.client import InferenceClient, WorkerUnreachable
from synthesis.speaking.wire import SpeechOrder

log = logging.getLogger(__name__)

# What a voice says of itself, by primary language. Short, with a question, a number and a pause in it.
SAMPLES = {
    "en": "The tide was late that evening. Had anyone counted the lamps? There were seven, and then there were six.",
    "de": "Die Flut kam spät an diesem Abend. Hatte jemand die Lampen gezählt? Es waren sieben, und dann waren es sechs.",
    "fr": "La marée était en retard ce soir-là. Quelqu’un avait-il compté les lampes ? Il y en avait sept, puis six.",
    "es": "La marea llegó tarde esa noche. ¿Alguien había contado las lámparas? Eran siete, y luego fueron seis.",
    "ko": "그날 저녁에는 밀물이 늦었다. 등불을 세어 본 사람이 있었을까? 일곱 개였다가, 여섯 개가 되었다.",
    "ja": "その晩、潮はおそかった。だれか灯りを数えただろうか。七つあって、それから六つになった。",
}
SAMPLE_DEADLINE_MS = 30_000


def client_make(timeout_s: float | None = None) -> InferenceClient:
    """A client for the configured pools. Close it."""
    return InferenceClient(settings.INFERENCE_POOLS, timeout_s=timeout_s or settings.INFERENCE_TIMEOUT_S)


def voices_sync(client: InferenceClient | None = None) -> int:
    """Take over voices that the workers offer and the studio does not know yet; the number that are new.

    A known voice is never changed: another model revision makes a new row, and books keep the one they pinned.
    Unreachable pools are passed over.
    """
    if client is None:
        with closing(client_make()) as own:
            return voices_sync(own)
    new = 0
    for pool in settings.INFERENCE_POOLS:
        try:
            offers = client.offers(pool)
        except WorkerUnreachable as exc:
            log.debug("voices of pool %s not read: %s", pool, exc)
            continue
        with transaction.atomic():
            for offer in offers:
                facts = offer["model_facts"]
                _voice, created = Voice.objects.get_or_create(
                    project=None,
                    model=offer["model"],
                    model_revision=offer["revision"],
                    engine_voice=offer["id"],
                    revision=1,
                    defaults={
                        "name": offer.get("name") or offer["id"],
                        "engine": facts.get("engine", ""),
                        "languages": offer.get("languages") or facts.get("languages") or [],
                        "pool": pool,
                        "kind": offer.get("kind") or Voice.Kind.PRESET,
                        "gender": offer.get("gender") or "",
                        "licence": facts.get("licence") or "",
                    },
                )
                new += created
    return new


class SampleUnavailable(Exception):
    """Raised when a voice's sample cannot be made now; the message says why."""


def voice_sample(voice: Voice) -> str:
    """The storage key of a voice's sample, spoken on the first call and kept.

    Raises SampleUnavailable for a language without a sample text; WorkerBusy, WorkerUnreachable and SpeechRefused come
    from the client.
    """
    if voice.sample_key:
        return voice.sample_key
    language = next((tag for tag in voice.languages if tag.split("-")[0].lower() in SAMPLES), "")
    if not language and "*" in voice.languages:
        language = "en"
    if not language:
        raise SampleUnavailable(_("There is no sample text in this voice's language yet."))
    order = SpeechOrder(
        job=secrets.token_hex(8),
        dispatch_no=1,
        project="voices",
        segment="",
        fingerprint="",
        pool=voice.pool,
        lane="preview",
        model=voice.model,
        revision=voice.model_revision,
        voice=voice.engine_voice,
        language=language,
        spoken=SAMPLES[language.split("-")[0].lower()],
        speed=voice.speed,
        parameters=dict(voice.parameters),
    )
    client = client_make(SAMPLE_DEADLINE_MS / 1000)  # somebody waits, and so does one of our threads
    try:
        spoken = client.speak(order, deadline_ms=SAMPLE_DEADLINE_MS)
    finally:
        client.close()
    key = f"voices/{voice.public_id}/{hashlib.sha256(spoken.audio).hexdigest()}.wav"
    if not default_storage.exists(key):
        default_storage.save(key, ContentFile(spoken.audio))
    Voice.objects.filter(pk=voice.pk, sample_key="").update(sample_key=key)
    return key
