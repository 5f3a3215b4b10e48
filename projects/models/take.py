"""Takes: what was spoken or recorded for a segment."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7


class Take(models.Model):
    """One lossless recording of a segment. Its audio never changes; trim is by the measured speech start and end."""

    class Origin(models.TextChoices):
        SYNTHESIS = "synthesis", _("synthesis")
        RECORDING = "recording", _("recording")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    segment = models.ForeignKey(
        "projects.Segment", models.CASCADE, related_name="takes", verbose_name=_("segment")
    )
    number = models.PositiveIntegerField(_("number"))  # 1, 2, … within the segment
    origin = models.CharField(_("origin"), max_length=10, choices=Origin, default=Origin.SYNTHESIS)

    recipe = models.CharField(_("recipe"), max_length=64, blank=True)
    variant = models.BigIntegerField(_("seed"), default=0)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    spoken = models.TextField(_("spoken text"), blank=True)
    spoken_digest = models.CharField(_("digest of the spoken text"), max_length=64, blank=True)

    audio_key = models.CharField(_("audio"), max_length=300)
    peaks_key = models.CharField(_("peaks"), max_length=300, blank=True)
    sha256 = models.CharField(_("SHA-256 of the audio"), max_length=64)
    size_bytes = models.PositiveIntegerField(_("bytes"))
    samples = models.PositiveIntegerField(_("samples"))
    rate_hz = models.PositiveIntegerField(_("rate, Hz"))
    speech_start = models.PositiveIntegerField(_("speech start, samples"))
    speech_end = models.PositiveIntegerField(_("speech end, samples"))
    rms_db = models.FloatField(_("RMS, dB"))
    peak_db = models.FloatField(_("peak, dB"))
    noise_floor_db = models.FloatField(_("noise floor, dB"))
    loudness_lufs = models.FloatField(_("loudness, LUFS"), null=True, blank=True)

    voice = models.ForeignKey(
        "projects.Voice", models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("voice")
    )
    model_revision = models.CharField(
        _("model revision"), max_length=200, blank=True
    )  # model@revision that spoke
    inference_ms = models.PositiveIntegerField(_("inference, ms"), default=0)
    is_candidate = models.BooleanField(_("waits for a choice"), default=False)
    note = models.CharField(_("note"), max_length=300, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)

    class Meta:
        verbose_name = _("take")
        verbose_name_plural = _("takes")
        constraints = [
            models.UniqueConstraint(
                fields=["segment", "fingerprint"],
                condition=Q(origin="synthesis"),
                name="take_fingerprint_once",
            ),
            models.UniqueConstraint(fields=["segment", "number"], name="take_number_once"),
        ]
        indexes = [models.Index(fields=["audio_key"], name="take_audio")]

    def __str__(self) -> str:
        return f"#{self.number}"

    @property
    def duration_ms(self) -> int:
        """Length of the whole take, its own silence included."""
        return round(self.samples * 1000 / self.rate_hz)

    @property
    def speech_ms(self) -> int:
        """Length from the start to the end of speech."""
        return round((self.speech_end - self.speech_start) * 1000 / self.rate_hz)
