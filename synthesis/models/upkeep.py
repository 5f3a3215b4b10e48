"""What the pipeline remembers beside the work itself: its history, what is held back, what is swept, what died."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from projects.work import WorkState


class JobEvent(models.Model):
    """One change of state of one row of background work, written in the transaction that made it.

    `seq` orders the events of a row: they are written under its lock. Old events are dropped by upkeep; an event
    outlives its row.
    """

    seq = models.BigAutoField(primary_key=True)
    kind = models.CharField(_("kind"), max_length=40)  # the model, as "synthesis.segmentjob"
    job = models.BigIntegerField(_("row"))
    source = models.CharField(_("from"), max_length=10, blank=True)  # "" = it did not exist
    to = models.CharField(_("to"), max_length=10, choices=WorkState)
    dispatch_no = models.PositiveIntegerField(_("dispatch"))
    attempts = models.PositiveSmallIntegerField(_("attempts"))  # after the change
    actor = models.CharField(_("by"), max_length=20)
    reason = models.CharField(_("reason"), max_length=40, blank=True)
    at = models.DateTimeField(_("at"), db_default=Now())

    class Meta:
        verbose_name = _("job event")
        verbose_name_plural = _("job events")
        indexes = [
            models.Index(fields=["kind", "job", "seq"], name="job_event_of"),
            models.Index(fields=["at"], name="job_event_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.job}: {self.source or '·'} → {self.to}"


class Breaker(models.Model):
    """What one voice or one pool failed at in a row. While it is open its work is held: nothing is attempted but a
    probe now and then, nothing is charged, and the first success closes it."""

    subject = models.CharField(_("subject"), max_length=60, unique=True)  # "voice:12" or "pool:gpu"
    pool = models.CharField(_("pool"), max_length=40)
    voice = models.ForeignKey(
        "projects.Voice", models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("voice")
    )  # None = the whole pool
    streak = models.PositiveIntegerField(_("failures in a row"), default=0)
    code = models.CharField(_("failure"), max_length=40, blank=True)
    detail = models.CharField(_("detail"), max_length=500, blank=True)
    last = models.BigIntegerField(_("failed last"), default=0)  # the job (of a voice), the voice (of a pool)
    opened_at = models.DateTimeField(_("held since"), null=True, blank=True)  # None = closed
    probe_at = models.DateTimeField(_("next probe"), null=True, blank=True)
    probe_wait_s = models.FloatField(_("between probes, s"), default=0.0)

    class Meta:
        verbose_name = _("circuit breaker")
        verbose_name_plural = _("circuit breakers")
        indexes = [models.Index(fields=["pool", "opened_at"], name="breaker_open")]

    def __str__(self) -> str:
        return self.subject


class Garbage(models.Model):
    """An object in storage that no take points at: marked, and swept after a grace period if that is still so.

    The row stays for another grace after the sweep: a result that names a swept object is checked against the store.
    """

    key = models.CharField(_("key"), max_length=400, unique=True)
    marked_at = models.DateTimeField(_("marked"), db_default=Now())
    swept_at = models.DateTimeField(_("swept"), null=True, blank=True)

    class Meta:
        verbose_name = _("garbage")
        verbose_name_plural = _("garbage")
        indexes = [models.Index(fields=["swept_at", "marked_at"], name="garbage_due")]

    def __str__(self) -> str:
        return self.key


class DeadLetter(models.Model):
    """A message that the broker gave up on, as upkeep found it."""

    queue = models.CharField(_("queue"), max_length=40)
    message_id = models.CharField(_("message"), max_length=60, blank=True)
    reason = models.CharField(
        _("reason"), max_length=40, blank=True
    )  # the broker's: rejected, delivery_limit …
    job = models.CharField(_("job"), max_length=40, blank=True)  # public id, where the message names one
    body = models.TextField(_("message"), blank=True)
    at = models.DateTimeField(_("found"), db_default=Now())

    class Meta:
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        indexes = [models.Index(fields=["at"], name="dead_letter_age")]

    def __str__(self) -> str:
        return f"{self.queue} · {self.reason}"
