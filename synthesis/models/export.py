"""Deliverables."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.work import Work


class Export(Work):
    """One deliverable of a book: r1, r2, …, never overwritten."""

    class Preset(models.TextChoices):
        M4B = "m4b", _("M4B audiobook")

    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="exports", verbose_name=_("project")
    )
    revision = models.PositiveIntegerField(_("revision"))
    preset = models.CharField(_("preset"), max_length=20, choices=Preset, default=Preset.M4B)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    documents = models.JSONField(_("chapters"), default=list, blank=True)  # public ids; [] = the whole book
    progress = models.FloatField(_("progress"), default=0.0)  # 0 … 1
    file_name = models.CharField(_("file name"), max_length=255, blank=True)
    file_key = models.CharField(_("file"), max_length=400, blank=True)
    size_bytes = models.PositiveBigIntegerField(_("bytes"), default=0)
    duration_ms = models.PositiveBigIntegerField(_("length, ms"), default=0)
    report = models.JSONField(_("report"), default=dict, blank=True)  # facts, and what was missing

    class Meta:
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        constraints = [models.UniqueConstraint(fields=["project", "revision"], name="export_revision_once")]
        indexes = [models.Index(fields=["state", "not_before"], name="export_due")]

    def __str__(self) -> str:
        return f"r{self.revision} · {self.preset}"
