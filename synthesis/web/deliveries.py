"""Doors of the Deliver page: what was made, its check, and the next revision."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.roles import Action
from projects import selectors as book_selectors
from projects.access import access_project, permitted
from projects.models import Document, Project
from projects.web.views import project_context
from synthesis.access import access_export
from synthesis.models import Export
from synthesis.revisions import ExportRow, export_checked, export_missing, export_rows, exports_of
from synthesis.services.conversions import ConversionRefused, Only, Scope, conversion_start
from synthesis.services.credits import CreditsImpossible, credits_write
from synthesis.services.deliverables import deliverable, deliverables
from synthesis.services.deliverychecks import check_csv
from synthesis.services.exports import ExportImpossible, export_cancel, export_create, export_retry
from synthesis.web.checkwords import CheckShown, check_shown
from synthesis.web.ranges import object_response

SAMPLE_MINUTES = range(1, 6)  # what shops take as a retail sample


@login_required
@require_GET
def exports(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Deliver: what was made, how it stands to the rules, and the next revision."""
    return _exports_page(request, access_project(request.user, public_id))


def _exports_page(request: HttpRequest, project: Project, refusal: str = "") -> HttpResponse:
    documents = book_selectors.documents_of(project)
    total = book_selectors.book_counts(documents)
    rows = exports_of(project)
    offered = deliverables(project)
    chosen = request.POST.get("preset", offered[0].name)
    kinds = {row.document.kind for row in documents if row.document.included}
    context = {
        **project_context(request.user, project),
        "may_edit": permitted(request.user, project, Action.EXPORT),
        "exports": rows,
        "exports_running": any(row.is_open for row in rows),
        "ready_s": total.spoken_ms / 1000 if total.spoken_ms else None,
        "missing": total.missing,
        "missing_chapters": export_missing(project),
        "stale": total.stale,
        "next_revision": (rows[0].revision if rows else 0) + 1,
        "presets": [made for made in offered if not made.further],
        "presets_further": [made for made in offered if made.further],
        "preset_chosen": chosen,
        "further_open": any(made.further and made.name == chosen for made in offered),
        "export_refusal": refusal,
        "check": _check(request, project),
        "checked": [row for row in rows if row.check],
        "credits_there": {Document.Kind.OPENING_CREDITS, Document.Kind.CLOSING_CREDITS} <= kinds,
        "sample_chapters": [row.document for row in documents if row.document.included and row.counts.ready],
        "sample_minutes": SAMPLE_MINUTES,
        "synthetic": project.narration != Project.Narration.HUMAN,
    }
    return render(request, "synthesis/deliver.html", context, status=422 if refusal else 200)


def _check(request: HttpRequest, project: Project) -> CheckShown | None:
    """The check of the revision asked for, else the newest one."""
    wanted = request.GET.get("check", "")
    if wanted.isdecimal() and len(wanted) < 9:
        export = project.exports.filter(revision=int(wanted)).first()
        if export is not None and (shown := check_shown(export)):
            return shown
    newest = export_checked(project)
    return check_shown(newest) if newest else None


@login_required
@require_POST
def export_created(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Make the next revision."""
    project = access_project(request.user, public_id, Action.EXPORT)
    preset = request.POST.get("preset", Export.Preset.M4B.value)
    if preset not in Export.Preset.values:
        raise Http404
    since = request.POST.get("since", "")
    htmx = bool(request.headers.get("HX-Request"))
    try:
        export_create(
            project,
            request.user,  # type: ignore[arg-type]
            preset=preset,
            since=int(since) if since.isdecimal() and len(since) < 9 else None,
            sample=_sample(request.POST, project),
        )
    except ExportImpossible as exc:
        if htmx:
            return HttpResponse(
                render_to_string("synthesis/_refused.html", {"message": str(exc)}), status=422
            )
        return _exports_page(request, project, str(exc))
    if htmx:
        return HttpResponse(status=204)  # the row comes over the page's websocket
    return redirect("synthesis:exports", project.public_id)


def _sample(data: Any, project: Project) -> dict[str, Any]:
    """Export.sample from the form; what no page sends is left out."""
    found: dict[str, Any] = {}
    chapters = {str(public_id) for public_id in project.documents.values_list("public_id", flat=True)}
    if data.get("sample_document", "") in chapters:
        found["document"] = data["sample_document"]
    if data.get("sample_minutes", "") in {str(minutes) for minutes in SAMPLE_MINUTES}:
        found["minutes"] = int(data["sample_minutes"])
    return found


def _row(request: HttpRequest, export: Export) -> HttpResponse:
    """An export's row after something was done to it; the page, for a form without script."""
    if not request.headers.get("HX-Request"):
        return redirect("synthesis:exports", export.project.public_id)
    fresh = Export.objects.select_related("project", "requested_by").get(pk=export.pk)
    row: ExportRow = export_rows(fresh.project, [fresh])[0]
    return render(
        request,
        "synthesis/_export_row.html",
        {"export": row, "project": fresh.project, "may_edit": True},
    )


@login_required
@require_POST
def export_retried(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Make a failed export again; what was finished of it is kept."""
    export = access_export(request.user, public_id, Action.EXPORT)
    export_retry(export)
    return _row(request, export)


@login_required
@require_POST
def export_cancelled(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Want an export no more."""
    export = access_export(request.user, public_id, Action.EXPORT)
    export_cancel(export)
    return _row(request, export)


@login_required
@require_GET
def export_download(request: HttpRequest, public_id: UUID) -> HttpResponseBase:
    """The file, resumable."""
    export = access_export(request.user, public_id, Action.EXPORT)
    if not export.file_key:
        raise Http404
    return object_response(
        request,
        export.file_key,
        content_type=deliverable(export.preset).mime,
        download_as=export.file_name,
    )


@login_required
@require_GET
def export_check_csv(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """An export's delivery check as a table for spreadsheets."""
    export = access_export(request.user, public_id)
    if not export.report.get("check"):
        raise Http404
    response = HttpResponse(
        "\ufeff" + check_csv(export.details.get("check", [])), content_type="text/csv; charset=utf-8"
    )
    name = export.file_name.rpartition(".")[0] or f"r{export.revision}"
    response["Content-Disposition"] = f'attachment; filename="{name}_check.csv"'
    return response


@login_required
@require_POST
def credits_written(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Write the credits that are missing as chapters, and make them where that is allowed."""
    project = access_project(request.user, public_id, Action.CAST)
    where = reverse("projects:project", args=[project.public_id])
    try:
        made = credits_write(project)
    except CreditsImpossible as exc:
        messages.error(request, str(exc))
        made = []
    for document in made:
        try:
            conversion_start(request.user, Scope.DOCUMENT, document, only=Only.MISSING_STALE)  # type: ignore[arg-type]
        except ConversionRefused as exc:
            messages.error(request, str(exc))
            break
    if made:
        messages.info(request, _("The credits are chapters of the book now; read them before you deliver."))
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"HX-Redirect": where})
    return redirect(where)
