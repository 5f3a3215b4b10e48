"""A pool of inference workers, as the dispatcher sees it."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Pool(models.Model):
    """One row per pool. Locking it makes its dispatcher the only one; it remembers since when nobody answers."""

    name = models.CharField(_("name"), max_length=40, unique=True)
    unreachable_since = models.DateTimeField(_("unreachable since"), null=True, blank=True)
    # when the newest order that was answered had been handed out, to within a second
    answered_at = models.DateTimeField(_("answered up to"), null=True, blank=True)
    last_error = models.CharField(_("last error"), max_length=300, blank=True)

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")

    def __str__(self) -> str:
        return self.name
