"""Conversions, jobs, exports and pools for operators: to look at, at any size, and to pause, cancel and try again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.browsing import ReadMostlyAdmin, row_link, rows_link
from projects.work import WorkState
from synthesis.models import Breaker, Conversion, DeadLetter, Export, JobEvent, Pool, SegmentJob
from synthesis.services.conversions import (
    ConversionRefused,
    Only,
    Scope,
    conversion_cancel,
    conversion_pause,
    conversion_resume,
    conversion_retry,
    conversion_start,
)


def _each(request: HttpRequest, rows: QuerySet[Any], act: Callable[[Any], object]) -> None:
    """Do something to each chosen row and say to how many it applied; what was refused says why."""
    done = 0
    for row in rows:
        try:
            done += bool(act(row))
        except ConversionRefused as exc:
            messages.error(request, f"{row}: {exc}")
    left = len(rows) - done
    messages.info(request, ngettext("Done for %(n)s row.", "Done for %(n)s rows.", done) % {"n": done})
    if left:
        messages.warning(
            request,
            ngettext("It did not apply to %(n)s row.", "It did not apply to %(n)s rows.", left) % {"n": left},
        )


@admin.register(Conversion)
class ConversionAdmin(ReadMostlyAdmin):
    list_display = (
        "public_id",
        "project",
        "document",
        "scope",
        "only",
        "lane",
        "state",
        "requested_by",
        "created_at",
        "rows",
    )
    list_filter = ("state", "lane")
    list_select_related = ("project", "document", "requested_by")
    search_ids = ("public_id", "project__public_id", "document__public_id")
    search_help_text = gettext_lazy("The public id of a conversion, book or chapter, whole.")
    actions = ("pause", "resume", "cancel", "retry_failed")

    @admin.display(description=gettext_lazy("rows"))
    def rows(self, conversion: Conversion) -> SafeString:
        """What belongs to it."""
        return rows_link("synthesis.SegmentJob", _("jobs"), conversion=conversion.pk)

    @admin.action(description=gettext_lazy("Pause"), permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Conversion]) -> None:
        """Hand out no more of them."""
        _each(request, queryset, conversion_pause)

    @admin.action(description=gettext_lazy("Resume"), permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Conversion]) -> None:
        """Go on."""
        _each(request, queryset, conversion_resume)

    @admin.action(description=gettext_lazy("Cancel"), permissions=["change"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Conversion]) -> None:
        """Want none of them any more."""
        _each(request, queryset, conversion_cancel)

    @admin.action(description=gettext_lazy("Try again what failed"), permissions=["change"])
    def retry_failed(self, request: HttpRequest, queryset: QuerySet[Conversion]) -> None:
        """New conversions of what failed in these."""
        _each(request, queryset, lambda row: conversion_retry(request.user, row))  # type: ignore[arg-type]


@admin.register(SegmentJob)
class SegmentJobAdmin(ReadMostlyAdmin):
    list_display = (
        "public_id",
        "sentence",
        "state",
        "failure_code",
        "pool",
        "lane",
        "attempts",
        "dispatch_no",
        "lease_until",
        "created_at",
        "finished_at",
    )
    list_filter = ("state", "lane")
    # as far as the names of the rows shown reach
    list_select_related = (
        "segment__document__project__voice",
        "segment__voice",
        "conversion__project",
        "voice",
    )
    search_ids = ("public_id", "segment__public_id", "conversion__public_id")
    search_help_text = gettext_lazy("The public id of a job, sentence or conversion, whole.")
    actions = ("retry_failed",)

    @admin.display(description=gettext_lazy("segment"))
    def sentence(self, job: SegmentJob) -> SafeString | str:
        """The sentence it is for."""
        return row_link(job.segment)

    @admin.action(description=gettext_lazy("Try again what failed"), permissions=["change"])
    def retry_failed(self, request: HttpRequest, queryset: QuerySet[SegmentJob]) -> None:
        """A new conversion for each failed sentence that nobody has tried again since."""

        def again(job: SegmentJob) -> object:
            if job.state != WorkState.FAILED:
                return None
            return conversion_start(request.user, Scope.SEGMENT, job.segment, only=Only.FAILED)  # type: ignore[arg-type]

        _each(request, queryset, again)


@admin.register(Export)
class ExportAdmin(ReadMostlyAdmin):
    list_display = (
        "public_id",
        "project",
        "revision",
        "preset",
        "state",
        "failure_code",
        "progress",
        "size_bytes",
        "created_at",
    )
    list_filter = ("state", "preset")
    list_select_related = ("project", "requested_by")
    search_ids = ("public_id", "project__public_id")
    search_help_text = gettext_lazy("The public id of an export or book, whole.")


@admin.register(Pool)
class PoolAdmin(ReadMostlyAdmin):
    list_display = ("name", "unreachable_since", "answered_at", "last_error")
    search_ids = ()
    search_text = ("name",)
    search_help_text = gettext_lazy("Part of the name.")


@admin.register(Breaker)
class BreakerAdmin(ReadMostlyAdmin):
    list_display = ("subject", "voice", "pool", "opened_at", "code", "detail", "streak", "probe_at")
    list_select_related = ("voice",)
    search_ids = ()
    search_text = ("subject",)
    search_help_text = gettext_lazy("Part of the subject.")


@admin.register(JobEvent)
class JobEventAdmin(ReadMostlyAdmin):
    list_display = ("seq", "at", "kind", "job", "source", "to", "dispatch_no", "attempts", "actor", "reason")
    list_filter = ("to",)
    search_ids = ()
    search_text = ("kind",)
    search_help_text = gettext_lazy("Part of a kind of work.")


@admin.register(DeadLetter)
class DeadLetterAdmin(ReadMostlyAdmin):
    list_display = ("at", "queue", "reason", "job", "message_id")
    search_ids = ()
    search_text = ("job",)
    search_help_text = gettext_lazy("Part of a job's public id.")
