"""Deliverables."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.work import Work


class Export(Work):
    """One deliverable of a book: r1, r2, …, never overwritten.

    `report` is small and read with every list: {"missing": [{"chapter", "sentences"}], "facts": {…}, "gain": {…},
    "loudness": {"lufs", "spread_lu"}, "check": {"rules", "label", "dated", "fail", "warn", "pass"}, "changes":
    {"since", "new", "changed", "gone", "same"}, "notes": […], "read_at", "chapters": {document: digest}, "tags"}.
    `details` grows with the book: {"files": […], "check": [rows of the delivery check], "renders": [keys]}.
    """

    class Preset(models.TextChoices):
        M4B = "m4b", _("M4B audiobook")
        ACX = "acx", _("ACX-style MP3 set")
        INAUDIO = "inaudio", _("INaudio (Findaway) MP3 set")
        GOOGLE_PLAY = "google_play", _("Google Play MP3 set")
        SPOTIFY = "spotify", _("Spotify for Authors MP3 set")
        AGGREGATOR = "aggregator", _("Apple and Kobo through an aggregator")
        MP3 = "mp3", _("MP3, one file a chapter")
        EPUB = "epub", _("EPUB 3 with read-aloud")
        EPUB_ORIGINAL = "epub_original", _("The original EPUB with read-aloud")
        SRT = "srt", _("Captions (SRT)")
        VTT = "vtt", _("Captions (WebVTT)")
        FLAC = "flac", _("FLAC masters")
        WAV = "wav", _("WAV masters")
        OPUS = "opus", _("Opus, one file a chapter")
        TRANSCRIPT = "transcript", _("Transcript (text)")
        LPF = "lpf", _("W3C Audiobook")
        DAW = "daw", _("Reaper and Audacity hand-over")

    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="exports", verbose_name=_("project")
    )
    revision = models.PositiveIntegerField(_("revision"))
    preset = models.CharField(_("preset"), max_length=20, choices=Preset, default=Preset.M4B)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    documents = models.JSONField(_("chapters"), default=list, blank=True)  # public ids; [] = the whole book
    # only the files changed since this revision of the same preset; None = all files
    since = models.PositiveIntegerField(_("changed since revision"), null=True, blank=True)
    # the retail sample: {"document": public id, "minutes": 1 … 5}; {} = the first minutes of chapter one
    sample = models.JSONField(_("retail sample"), default=dict, blank=True)
    progress = models.FloatField(_("progress"), default=0.0)  # 0 … 1
    started_at = models.DateTimeField(_("started"), null=True, blank=True)  # by the dispatch that runs
    file_name = models.CharField(_("file name"), max_length=255, blank=True)
    file_key = models.CharField(_("file"), max_length=400, blank=True)
    size_bytes = models.PositiveBigIntegerField(_("bytes"), default=0)
    duration_ms = models.PositiveBigIntegerField(_("length, ms"), default=0)
    report = models.JSONField(_("report"), default=dict, blank=True)
    details = models.JSONField(_("details"), default=dict, blank=True)

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        constraints = [models.UniqueConstraint(fields=["project", "revision"], name="export_revision_once")]
        indexes = [models.Index(fields=["state", "not_before"], name="export_due")]

    def __str__(self) -> str:
        return f"r{self.revision} · {self.preset}"
