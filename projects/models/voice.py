"""Who speaks."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7


class Voice(models.Model):
    """A voice of the studio (project empty) or of one project. What it sounds like never changes silently: another
    model revision or other parameters are a new row or a new `revision`, taken over by a deliberate act."""

    class Kind(models.TextChoices):
        PRESET = "preset", _("preset")
        DESIGNED = "designed", _("designed")
        CLONED = "cloned", _("cloned")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    project = models.ForeignKey(
        "projects.Project",
        models.CASCADE,
        null=True,
        blank=True,
        related_name="own_voices",
        verbose_name=_("project"),
    )
    name = models.CharField(_("name"), max_length=200)
    engine = models.CharField(_("engine"), max_length=40)
    model = models.CharField(_("model"), max_length=100)
    model_revision = models.CharField(_("model revision"), max_length=100)
    engine_voice = models.CharField(_("the engine's name for it"), max_length=100)
    revision = models.PositiveIntegerField(_("revision"), default=1)
    parameters = models.JSONField(_("parameters"), default=dict, blank=True)
    speed = models.FloatField(_("speed"), default=1.0)
    languages = models.JSONField(_("languages"), default=list)  # BCP 47; ["*"] = any
    pool = models.CharField(_("pool"), max_length=40, default="cpu")
    kind = models.CharField(_("kind"), max_length=10, choices=Kind, default=Kind.PRESET)
    gender = models.CharField(_("described as"), max_length=40, blank=True)
    licence = models.CharField(_("licence"), max_length=200, blank=True)
    sample_key = models.CharField(_("sample"), max_length=300, blank=True)
    retired_at = models.DateTimeField(_("retired"), null=True, blank=True)  # kept for books that use it
    created_at = models.DateTimeField(_("created"), auto_now_add=True)

    class Meta:
        verbose_name = _("voice")
        verbose_name_plural = _("voices")
        constraints = [
            models.UniqueConstraint(
                fields=["model", "model_revision", "engine_voice", "revision"],
                condition=models.Q(project=None),
                name="site_voice_once",
            )
        ]

    def __str__(self) -> str:
        return self.name

    def speaks(self, language: str) -> bool:
        """Whether the voice speaks a BCP 47 language; regional variants stand in for each other: en-NZ by en-US."""
        primary = language.lower().split("-")[0]
        return any(known == "*" or known.lower().split("-")[0] == primary for known in self.languages)
