"""People and the tokens their programs use."""

from __future__ import annotations

import zoneinfo

from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7


def time_zone_valid(value: str) -> None:
    """Raise ValidationError unless the name is in the time zone database."""
    if value not in zoneinfo.available_timezones():
        raise ValidationError(
            _("%(name)s is not a time zone. Use a name such as Europe/Berlin."), params={"name": value}
        )


class User(AbstractUser):
    """A person who works in the studio."""

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC", validators=[time_zone_valid])

    @property
    def initials(self) -> str:
        """Two letters for the avatar."""
        names = [part for part in (self.first_name, self.last_name) if part] or [self.username]
        return "".join(name[0] for name in names)[:2].upper() if len(names) > 1 else names[0][:2].upper()

    @property
    def shown_name(self) -> str:
        """Full name, or the user name where none was given."""
        return self.get_full_name() or self.username


class ApiToken(models.Model):
    """A secret by which a program acts for a person. Only the secret's SHA-256 is kept."""

    class Scope(models.TextChoices):
        READ = "read", _("read")
        WRITE = "write", _("read and write")

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens", verbose_name=_("user"))
    name = models.CharField(_("name"), max_length=100)
    digest = models.CharField(_("digest"), max_length=64, unique=True, editable=False)
    prefix = models.CharField(_("prefix"), max_length=12, editable=False)
    scope = models.CharField(_("scope"), max_length=10, choices=Scope, default=Scope.READ)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
