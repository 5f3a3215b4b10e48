"""A manuscript on its way into the studio."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.work import Work


class ManuscriptImport(Work):
    """An uploaded file: the row comes first, parsing happens only in an import worker. The project appears whole or not
    at all."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="imports", verbose_name=_("by")
    )
    project = models.ForeignKey(
        "projects.Project",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="imports",
        verbose_name=_("project"),
    )
    name = models.CharField(_("file name"), max_length=255)
    file_key = models.CharField(_("file"), max_length=400)
    size_bytes = models.PositiveBigIntegerField(_("bytes"))
    sha256 = models.CharField(_("SHA-256"), max_length=64)
    language = models.CharField(
        _("language"), max_length=35, blank=True
    )  # said by the person; "" = as the file says
    voice = models.ForeignKey(
        "projects.Voice", models.SET_NULL, null=True, blank=True, verbose_name=_("voice")
    )
    warnings = models.JSONField(_("warnings"), default=list, blank=True)
    dismissed_at = models.DateTimeField(_("dismissed"), null=True, blank=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        indexes = [models.Index(fields=["state", "not_before"], name="import_due")]

    def __str__(self) -> str:
        return self.name
