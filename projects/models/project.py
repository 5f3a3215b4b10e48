"""A book in production and who works on it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from accounts.roles import Role


class Project(models.Model):
    """One book. Reading and pause rules are data: {"pauses": {boundary: ms}} overrides the defaults."""

    class Narration(models.TextChoices):
        SYNTHETIC = "synthetic", _("synthetic voice")
        HUMAN = "human", _("human voice")
        MIXED = "mixed", _("human and synthetic voices")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    title = models.CharField(_("title"), max_length=500)
    subtitle = models.CharField(_("subtitle"), max_length=500, blank=True)
    authors = models.JSONField(_("authors"), default=list, blank=True)  # list of names, in order
    translator = models.CharField(_("translator"), max_length=300, blank=True)
    narrator = models.CharField(_("narrator credit"), max_length=300, blank=True)
    language = models.CharField(_("language"), max_length=35, default="en")  # BCP 47
    series = models.CharField(_("series"), max_length=300, blank=True)
    series_position = models.CharField(_("position in the series"), max_length=20, blank=True)
    publisher = models.CharField(_("publisher"), max_length=300, blank=True)
    year = models.CharField(_("year"), max_length=10, blank=True)
    rights = models.CharField(_("rights"), max_length=1000, blank=True)
    isbn = models.CharField(_("ISBN"), max_length=20, blank=True)
    description = models.TextField(_("description"), blank=True)
    cover_key = models.CharField(_("cover"), max_length=300, blank=True)
    narration = models.CharField(
        _("narration"), max_length=10, choices=Narration, default=Narration.SYNTHETIC
    )
    rules = models.JSONField(_("reading and pause rules"), default=dict, blank=True)
    voice = models.ForeignKey(
        "projects.Voice",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("narrator's voice"),
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    members = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="projects.Membership", related_name="projects"
    )

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")

    def __str__(self) -> str:
        return self.title

    @property
    def authors_text(self) -> str:
        """Authors as one line."""
        return ", ".join(self.authors)


class Membership(models.Model):
    """A person's role in a project."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="memberships", verbose_name=_("project")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", verbose_name=_("person")
    )
    role = models.CharField(
        _("role"),
        max_length=10,
        choices=[
            (Role.OWNER.value, _("owner")),
            (Role.PRODUCER.value, _("producer")),
            (Role.EDITOR.value, _("editor")),
            (Role.PROOFER.value, _("proofer")),
            (Role.VIEWER.value, _("viewer")),
        ],
    )
    created_at = models.DateTimeField(_("since"), auto_now_add=True)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="membership_once")]

    def __str__(self) -> str:
        return f"{self.user} · {self.role}"
