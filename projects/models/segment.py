"""Sentences: what is printed, what is said, where it stands."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from projects.states import RenderState


class SegmentQuerySet(models.QuerySet["Segment"]):
    def with_stale(self) -> SegmentQuerySet:
        """Annotate `is_stale`: the recipe differs from the chosen take's. A take that a person recorded is stale only
        when the spoken text changed."""
        return self.annotate(
            is_stale=Case(
                When(chosen_take=None, then=Value(False)),
                When(chosen_take__origin="recording", then=~Q(spoken_digest=F("chosen_take__spoken_digest"))),
                default=~Q(recipe=F("chosen_take__recipe")),
                output_field=models.BooleanField(),
            )
        )

    def read_aloud(self) -> SegmentQuerySet:
        """Only what is spoken: included chapters, and words that are read."""
        return self.filter(document__included=True).exclude(spoken="")

    def in_order(self) -> SegmentQuerySet:
        """Reading order."""
        return self.order_by("document__order_key", "block__order_key", "order_key")


class Segment(models.Model):
    """Usually a sentence; it may be part of one. `version` orders pushes, `text_rev` voids jobs and edits."""

    class State(models.TextChoices):
        EMPTY = RenderState.EMPTY.value, _("no sound yet")
        QUEUED = RenderState.QUEUED.value, _("queued")
        RENDERING = RenderState.RENDERING.value, _("rendering")
        READY = RenderState.READY.value, _("ready")
        FAILED = RenderState.FAILED.value, _("failed")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    document = models.ForeignKey(
        "projects.Document", models.CASCADE, related_name="segments", verbose_name=_("document")
    )
    block = models.ForeignKey(
        "projects.Block", models.CASCADE, related_name="segments", verbose_name=_("block")
    )
    order_key = models.CharField(_("order key"), max_length=60)

    # as printed
    text = models.TextField(_("text"))
    separator = models.CharField(
        _("separator"), max_length=200, blank=True
    )  # what stands before the next segment
    source_start = models.PositiveIntegerField(_("source start"))  # code points in the block's source text
    source_end = models.PositiveIntegerField(_("source end"))
    spans = models.JSONField(_("spans"), default=list, blank=True)  # [start, end, role, value] within `text`
    boundary = models.CharField(_("boundary to the next"), max_length=20, default="sentence")
    pause_after_ms = models.PositiveIntegerField(
        _("pause after, ms"), null=True, blank=True
    )  # None = by the rules
    text_rev = models.PositiveIntegerField(_("text revision"), default=1)

    # as spoken
    spoken = models.TextField(_("spoken text"), blank=True)  # "" = not read aloud
    spoken_digest = models.CharField(_("digest of the spoken text"), max_length=64, blank=True)
    spoken_set = models.BooleanField(_("spoken text set by hand"), default=False)
    frontend_rev = models.CharField(_("normaliser"), max_length=40, blank=True)
    language = models.CharField(_("language"), max_length=35, blank=True)  # "" = the block's
    voice = models.ForeignKey(
        "projects.Voice", models.PROTECT, null=True, blank=True, related_name="+", verbose_name=_("voice")
    )  # None = the project's
    direction = models.CharField(_("direction"), max_length=500, blank=True)
    recipe = models.CharField(_("recipe"), max_length=64, blank=True)  # "" while no voice is set
    estimated_ms = models.PositiveIntegerField(_("estimated length, ms"), default=0)
    words = models.PositiveIntegerField(_("words"), default=0)

    # what became of it
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.EMPTY)
    failure_code = models.CharField(_("failure"), max_length=40, blank=True)
    failure_detail = models.TextField(_("detail"), blank=True)
    chosen_take = models.ForeignKey(
        "projects.Take",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("chosen take"),
    )

    # review marks, each with who and when
    edit_at = models.DateTimeField(_("edit pass"), null=True, blank=True)
    edit_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    qc_at = models.DateTimeField(_("QC pass"), null=True, blank=True)
    qc_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    pickup_at = models.DateTimeField(_("pickup wanted"), null=True, blank=True)
    pickup_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    lock_at = models.DateTimeField(_("locked"), null=True, blank=True)
    lock_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    version = models.PositiveIntegerField(_("version"), default=1)
    changed_at = models.DateTimeField(_("changed"), auto_now_add=True)

    objects = SegmentQuerySet.as_manager()

    class Meta:
        verbose_name = _("segment")
        verbose_name_plural = _("segments")
        ordering = ["block", "order_key"]
        constraints = [models.UniqueConstraint(fields=["block", "order_key"], name="segment_order_once")]
        indexes = [
            models.Index(fields=["document", "changed_at"], name="segment_changed"),
            models.Index(fields=["document", "state"], name="segment_state"),
        ]

    def __str__(self) -> str:
        return self.text[:60]

    @property
    def is_kept(self) -> bool:
        """Locked or approved: a new take arrives as a candidate and does not replace the chosen one."""
        return self.lock_at is not None or self.qc_at is not None


class SegmentEdit(models.Model):
    """One change of a segment's printed or spoken text. Replayed over the source, the edits prove that no word was lost."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="edits", verbose_name=_("segment"))
    text_rev = models.PositiveIntegerField(_("text revision"))  # the one this edit made
    text_before = models.TextField(_("text before"))
    text_after = models.TextField(_("text after"))
    spoken_before = models.TextField(_("spoken before"), blank=True)
    spoken_after = models.TextField(_("spoken after"), blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, verbose_name=_("by"))
    at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta:
        verbose_name = _("edit")
        verbose_name_plural = _("edits")
        constraints = [models.UniqueConstraint(fields=["segment", "text_rev"], name="edit_revision_once")]

    def __str__(self) -> str:
        return self.text_after[:60]
