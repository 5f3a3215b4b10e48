"""What a user started, and one job per sentence of it."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from uuid_utils.compat import uuid7

from projects.work import OPEN_STATES, Work


class Conversion(models.Model):
    """A request to make takes. Its counts are those of its jobs; nothing is stored twice."""

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        PAUSED = "paused", _("paused")
        DONE = "done", _("done")
        CANCELLED = "cancelled", _("cancelled")

    class Lane(models.TextChoices):
        PREVIEW = "preview", _("preview")  # somebody waits to hear it
        BULK = "bulk", _("bulk")

    public_id = models.UUIDField(_("public id"), default=uuid7, unique=True, editable=False)
    project = models.ForeignKey(
        "projects.Project", models.CASCADE, related_name="conversions", verbose_name=_("project")
    )
    document = models.ForeignKey(
        "projects.Document",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("chapter"),
    )
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("by")
    )
    scope = models.CharField(_("scope"), max_length=20)  # segment | document | project | rest
    only = models.CharField(_("only"), max_length=20, default="missing_stale")
    lane = models.CharField(_("lane"), max_length=10, choices=Lane, default=Lane.BULK)
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.RUNNING)
    weight = models.PositiveSmallIntegerField(_("weight"), default=1)  # its share beside others'
    urgent = models.PositiveIntegerField(
        _("urgent"), default=0
    )  # higher goes before older ones of its project
    handed_at = models.DateTimeField(_("last handed out"), null=True, blank=True)
    idempotency_key = models.CharField(_("idempotency key"), max_length=200, blank=True)
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished"), null=True, blank=True)

    class Meta:
        verbose_name = _("conversion")
        verbose_name_plural = _("conversions")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "requested_by", "idempotency_key"],
                condition=~Q(idempotency_key=""),
                name="conversion_idempotent",
            )
        ]
        indexes = [models.Index(fields=["state", "lane"], name="conversion_running")]

    def __str__(self) -> str:
        return f"{self.project} · {self.scope}"


class SegmentJob(Work):
    """One wanted take. The database is the queue of record; the broker only carries a window of it."""

    conversion = models.ForeignKey(
        Conversion, models.CASCADE, related_name="jobs", verbose_name=_("conversion")
    )
    segment = models.ForeignKey(
        "projects.Segment", models.CASCADE, related_name="jobs", verbose_name=_("segment")
    )
    voice = models.ForeignKey("projects.Voice", models.PROTECT, related_name="+", verbose_name=_("voice"))
    pool = models.CharField(_("pool"), max_length=40)
    lane = models.CharField(_("lane"), max_length=10, choices=Conversion.Lane, default=Conversion.Lane.BULK)
    position = models.PositiveIntegerField(_("position"))  # reading order within the conversion
    recipe = models.CharField(_("recipe"), max_length=64)
    variant = models.BigIntegerField(_("seed"), default=0)
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    text_rev = models.PositiveIntegerField(_("text revision"))
    urgent = models.PositiveIntegerField(_("urgent"), default=0)  # higher goes first within its conversion
    leased_at = models.DateTimeField(_("handed out"), null=True, blank=True)
    published = models.BooleanField(_("confirmed by the broker"), default=False)  # this dispatch
    losses = models.PositiveSmallIntegerField(_("lost with their worker"), default=0)  # dispatches in a row

    class Meta:
        verbose_name = _("segment job")
        verbose_name_plural = _("segment jobs")
        constraints = [
            # a double click, two tabs, a retried request: one open job per wanted take
            models.UniqueConstraint(
                fields=["segment", "fingerprint"],
                condition=Q(state__in=[s.value for s in OPEN_STATES]),
                name="job_open_once",
            )
        ]
        indexes = [
            models.Index(
                fields=["pool", "state", "lane", "conversion", "-urgent", "position"], name="job_queue_order"
            ),
            models.Index(fields=["conversion", "state"], name="job_counts"),
            models.Index(fields=["state", "lease_until"], name="job_leases"),
        ]

    def __str__(self) -> str:
        return f"{self.segment_id} · {self.state}"
