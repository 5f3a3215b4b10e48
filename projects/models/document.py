"""Chapters and their paragraphs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7


class Document(models.Model):
    """A chapter, or another part of the book that becomes a chapter of the audiobook."""

    class Kind(models.TextChoices):
        FRONT_MATTER = "front_matter", _("front matter")
        OPENING_CREDITS = "opening_credits", _("opening credits")
        PART = "part", _("part")
        CHAPTER = "chapter", _("chapter")
        NOTES = "notes", _("notes")
        BACK_MATTER = "back_matter", _("back matter")
        CLOSING_CREDITS = "closing_credits", _("closing credits")
        RETAIL_SAMPLE = "retail_sample", _("retail sample")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="documents", verbose_name=_("project")
    )
    order_key = models.CharField(_("order key"), max_length=60)
    title = models.CharField(_("title"), max_length=500, blank=True)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind, default=Kind.CHAPTER)
    depth = models.PositiveSmallIntegerField(_("depth in the contents"), default=0)
    language = models.CharField(_("language"), max_length=35, blank=True)  # "" = the project's
    included = models.BooleanField(_("included"), default=True)
    exclusion_reason = models.CharField(_("why it is left out"), max_length=300, blank=True)
    version = models.PositiveIntegerField(_("version"), default=1)

    class Meta:
        verbose_name = _("document")
        verbose_name_plural = _("documents")
        ordering = ["project", "order_key"]
        constraints = [models.UniqueConstraint(fields=["project", "order_key"], name="document_order_once")]

    def __str__(self) -> str:
        return self.title or str(self.public_id)


class Block(models.Model):
    """A paragraph or its like. `source_text` never changes; the segments hold what became of it."""

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="blocks", verbose_name=_("document"))
    order_key = models.CharField(_("order key"), max_length=60)
    kind = models.CharField(_("kind"), max_length=20, default="paragraph")
    source_text = models.TextField(_("source text"), blank=True)
    source_ref = models.CharField(_("source reference"), max_length=500, blank=True)
    page = models.CharField(_("page"), max_length=20, blank=True)
    language = models.CharField(_("language"), max_length=35, blank=True)  # "" = the document's
    skip_reason = models.CharField(_("why it is not read"), max_length=300, blank=True)  # "" = read aloud
    pause_after_ms = models.PositiveIntegerField(
        _("pause after, ms"), null=True, blank=True
    )  # None = by the rules
    version = models.PositiveIntegerField(_("version"), default=1)

    class Meta:
        verbose_name = _("block")
        verbose_name_plural = _("blocks")
        ordering = ["document", "order_key"]
        constraints = [models.UniqueConstraint(fields=["document", "order_key"], name="block_order_once")]

    def __str__(self) -> str:
        return self.source_text[:60]
