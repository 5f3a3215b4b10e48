"""Doors of the editor: library, book, chapter, sentence."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from accounts.roles import Action, may
from projects import selectors
from projects.access import (
    access_document,
    access_import,
    access_project,
    access_segment,
    access_voice_offered,
    permitted,
    projects_of,
    role_in,
    voices_for,
)
from projects.failures import failure_words
from projects.models import Document, ManuscriptImport, Project, Segment
from projects.services.manuscripts import UploadRefused, import_create, import_dismiss, import_retry
from projects.services.projects import VoiceCannotSpeak, document_include, project_set_voice, project_update
from projects.services.segments import EmptyText, StaleRevision, segment_edit_text
from projects.web.forms import ACCEPT, ProjectForm, SegmentTextForm, UploadForm
from projects.web.fragments import block_rows, pause_rules, segment_html, segment_row, stamp_html
from projects.web.panels import panel_context, panel_html
from projects.web.words import language_name


# -- library ---------------------------------------------------------------------------------------------------------
class ImportRow:
    """An import as its template sees it."""

    def __init__(self, row: ManuscriptImport) -> None:
        self.public_id, self.name, self.state = row.public_id, row.name, row.state
        self.failure, self.remedy = (
            failure_words(row.failure_code, row.failure_detail) if row.failure_code else ("", "")
        )
        self.may_retry = row.state == "failed"
        self.project_public_id = row.project.public_id if row.project else None
        self.version = row.dispatch_no * 10 + {"waiting": 0, "leased": 1}.get(row.state, 2)


def library_context(user: Any, form: UploadForm | None = None) -> dict[str, Any]:
    """What the library page shows."""
    projects = selectors.library(projects_of(user))
    for row in projects:
        _decorate(row.project)
    return {
        "projects": projects,
        "imports": [ImportRow(row) for row in selectors.imports_shown(user)],
        "form": form,
        "accept": ACCEPT,
        "limit_mb": settings.UPLOAD_LIMIT_BYTES // 1_000_000,
        "may_create": True,
    }


def _decorate(project: Project) -> Project:
    """Names the templates use beside the fields."""
    project.language_label = language_name(project.language)  # type: ignore[attr-defined]
    project.cover_url = (  # type: ignore[attr-defined]
        reverse("projects:cover", args=[project.public_id]) if project.cover_key else ""
    )
    return project


@login_required
@require_GET
def library(request: HttpRequest) -> HttpResponse:
    """Every book one may see, and what is being imported."""
    return render(request, "projects/library.html", library_context(request.user))


@login_required
@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Take a manuscript in; its import shows on the library page at once."""
    form = UploadForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        try:
            import_create(request.user, file, file.name)  # type: ignore[arg-type]
        except UploadRefused as exc:
            form.add_error("file", str(exc))
        else:
            return redirect("projects:library")
    return render(request, "projects/library.html", library_context(request.user, form), status=422)


@login_required
def import_detail(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """One import: the book once it is there, its row otherwise; a POST tries a failed one again."""
    row = access_import(request.user, public_id)  # type: ignore[arg-type]
    if request.method == "POST":
        import_retry(row)
        row.refresh_from_db()
        return render(request, "projects/_import_row.html", {"import": ImportRow(row)})
    if row.project is not None:
        return redirect("projects:project", row.project.public_id)
    return render(request, "projects/_import_row.html", {"import": ImportRow(row)})


@login_required
@require_POST
def import_dismissed(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Take an import off the page."""
    import_dismiss(access_import(request.user, public_id))  # type: ignore[arg-type]
    return HttpResponse()


# -- book ------------------------------------------------------------------------------------------------------------
def project_context(user: Any, project: Project) -> dict[str, Any]:
    """What every page of a book shows."""
    role = role_in(user, project)
    return {
        "project": _decorate(project),
        "voice": project.voice,
        "may_edit": may(role, Action.EDIT),
        "may_cast": may(role, Action.CAST),
        "may_manage": may(role, Action.MANAGE),
        **panel_context(project, role),
    }


@login_required
@require_GET
def project(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The book: chapters, voice, metadata, and the two buttons."""
    return _project_page(request, access_project(request.user, public_id))


def _project_page(request: HttpRequest, book: Project, form: ProjectForm | None = None) -> HttpResponse:
    documents = selectors.documents_of(book)
    total = selectors.book_counts(documents)
    book.words, book.hours_estimate = total.words, total.hours_estimate  # type: ignore[attr-defined]
    latest = book.imports.order_by("-pk").first()
    book.warnings = latest.warnings if latest else []  # type: ignore[attr-defined]
    context = {
        **project_context(request.user, book),
        "documents": documents,
        "first_document": selectors.first_chapter(documents),
        "rest": {
            "sentences": total.missing + total.stale,
            "hours": total.estimated_missing_ms / 3_600_000 if total.missing else None,
        },
        "counts": total,
        "project_form": form or ProjectForm(instance=book),
    }
    return render(request, "projects/overview.html", context, status=422 if form else 200)


@login_required
@require_POST
def project_edit(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Change metadata."""
    book = access_project(request.user, public_id, Action.MANAGE)
    form = ProjectForm(request.POST, instance=Project.objects.get(pk=book.pk))
    if not form.is_valid():
        return _project_page(request, book, form)
    project_update(book, **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("projects:project", book.public_id)


@login_required
@require_GET
def cover(request: HttpRequest, public_id: UUID) -> FileResponse:
    """The cover's picture."""
    book = access_project(request.user, public_id)
    if not book.cover_key:
        raise Http404
    response = FileResponse(
        default_storage.open(book.cover_key, "rb"),
        content_type="image/png" if book.cover_key.endswith(".png") else "image/jpeg",
    )
    response["X-Content-Type-Options"] = "nosniff"
    patch_cache_control(response, private=True, max_age=86_400)
    return response


@login_required
@require_GET
def voices(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Who may read this book, each with a sample."""
    book = access_project(request.user, public_id)
    found = list(voices_for(request.user, book))
    for voice in found:
        voice.speaks_project = voice.speaks(book.language)  # type: ignore[attr-defined]
        voice.language_label = ", ".join(language_name(tag) for tag in voice.languages)  # type: ignore[attr-defined]
    own = book.language.lower()
    found.sort(key=lambda v: (not v.speaks_project, (v.languages or [""])[0].lower() != own))  # type: ignore[attr-defined]
    context = project_context(request.user, book)
    documents = selectors.documents_of(book)
    return render(
        request,
        "projects/voices.html",
        {
            **context,
            "may_edit": context["may_cast"],
            "voices": found,
            "first_document": selectors.first_chapter(documents),
        },
    )


@login_required
@require_POST
def project_voice(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Let another voice narrate."""
    book = access_project(request.user, public_id, Action.CAST)
    voice = access_voice_offered(request.user, request.POST.get("voice", ""), book)
    try:
        changed = project_set_voice(book, voice)
    except VoiceCannotSpeak as exc:
        messages.error(request, str(exc))
    else:
        messages.success(
            request,
            _("%(voice)s reads this book now. %(count)s sentences want to be made with this voice.")
            % {"voice": voice.name, "count": changed},
        )
    return redirect("projects:voices", book.public_id)


# -- chapter ---------------------------------------------------------------------------------------------------------
@login_required
@require_GET
def document(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The chapter as a book page."""
    found = access_document(request.user, public_id)
    stamp = selectors.stamp_now()  # before the rows are read: what changes meanwhile is caught up
    rules = pause_rules(found)
    blocks = block_rows(found.blocks.order_by("order_key"), selectors.segments_of(found), rules)
    documents = selectors.documents_of(found.project)
    row = next(r for r in documents if r.document.pk == found.pk)
    context = {
        **project_context(request.user, found.project),
        "document": row,
        "documents": documents,
        "blocks": blocks,
        "stamp": stamp,
    }
    return render(request, "projects/chapter.html", context)


def rows_html(document: Document, segments: Any) -> str:
    """Sentences of a chapter as pushed: elements by id."""
    rules = pause_rules(document)
    language = document.language or document.project.language
    order = {pk: n for n, pk in enumerate(_order(document), start=1)}
    return "".join(segment_html(segment_row(s, order.get(s.pk, 0), rules), language) for s in segments)


def _order(document: Document) -> list[int]:
    return list(
        Segment.objects.filter(document=document)
        .order_by("block__order_key", "order_key")
        .values_list("pk", flat=True)
    )


def meter_html(document: Document) -> str:
    """The chapter's figures."""
    return render_to_string("projects/_meter.html", {"document": selectors.document_row(document)})


@login_required
@require_GET
def document_rows(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """What changed since a stamp, for a page whose line was broken."""
    found = access_document(request.user, public_id)
    stamp = selectors.stamp_now()
    segments = selectors.segments_of(found)
    since = selectors.stamp_read(request.GET.get("since", ""))
    if since is not None:
        segments = segments.filter(changed_at__gte=since)
    parts = [
        rows_html(found, segments),
        meter_html(found),
        panel_html(found.project, role_in(request.user, found.project), "conversion"),
    ]
    return HttpResponse("".join(parts) + stamp_html(stamp))


@login_required
@require_POST
def document_included(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Take a part into the audiobook, or leave it out."""
    found = access_document(request.user, public_id, Action.CAST)
    document_include(found, request.POST.get("included") == "1")
    found.refresh_from_db()
    if not request.headers.get("HX-Request"):
        return redirect("projects:project", found.project.public_id)
    return render(
        request,
        "projects/_document_row.html",
        {"document": selectors.document_row(found), "project": found.project, "may_edit": True},
    )


# -- sentence --------------------------------------------------------------------------------------------------------
def _numbered(segment: Segment) -> tuple[Any, Segment]:
    """A sentence's row with its number, and the sentence with its annotations."""
    full = selectors.segments_of(segment.document).get(pk=segment.pk)
    full.document = segment.document
    number = _order(segment.document).index(segment.pk) + 1
    return segment_row(full, number, pause_rules(segment.document)), full


def inspector_context(user: Any, segment: Segment) -> dict[str, Any]:
    """What the inspector shows of a sentence."""
    row, full = _numbered(segment)
    takes = []
    for take in full.takes.filter(deleted_at=None).select_related("voice").order_by("-number")[:50]:
        takes.append(
            {
                "number": take.number,
                "public_id": take.public_id,
                "chosen": take.pk == full.chosen_take_id,
                "candidate": take.is_candidate,
                "created_at": take.created_at,
                "voice_name": take.voice.name if take.voice else "",
                "seed": take.variant if take.origin == "synthesis" else None,
                "duration_s": take.samples / take.rate_hz,
                "level_db": take.loudness_lufs if take.loudness_lufs is not None else take.rms_db,
                "audio_url": reverse("synthesis:take-audio", args=[take.public_id]),
            }
        )
    return {"row": row, "takes": takes, "may_edit": permitted(user, segment.document.project, Action.EDIT)}


@login_required
@require_GET
def segment(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The chapter page, at this sentence."""
    found = access_segment(request.user, public_id)
    return redirect(
        f"{reverse('projects:document', args=[found.document.public_id])}#segment-{found.public_id}"
    )


@login_required
@require_GET
def segment_inspector(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The current sentence's details."""
    found = access_segment(request.user, public_id)
    return render(request, "projects/_inspector.html", inspector_context(request.user, found))


@login_required
@require_GET
def segment_edit(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The form of an inline edit."""
    found = access_segment(request.user, public_id, Action.EDIT)
    row, _full = _numbered(found)
    form = SegmentTextForm(
        initial={
            "text": found.text,
            "spoken": found.spoken if found.spoken_set else "",
            "text_rev": found.text_rev,
        }
    )
    return render(request, "projects/_segment_edit.html", {"row": row, "form": form})


@login_required
@require_POST
def segment_text(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Save an inline edit; answer with the inspector and the sentence's element, or 409 with both texts."""
    found = access_segment(request.user, public_id, Action.EDIT)
    form = SegmentTextForm(request.POST)
    if not form.is_valid():
        row, _full = _numbered(found)
        return render(request, "projects/_segment_edit.html", {"row": row, "form": form}, status=422)
    spoken = form.cleaned_data["spoken"] if "spoken" in request.POST else None
    try:
        saved = segment_edit_text(
            found,
            text=form.cleaned_data["text"],
            text_rev=form.cleaned_data["text_rev"],
            user=request.user,  # type: ignore[arg-type]
            spoken=spoken,
        )
    except EmptyText:
        form.add_error("text", _("A sentence cannot be empty."))
        row, _full = _numbered(found)
        return render(request, "projects/_segment_edit.html", {"row": row, "form": form}, status=422)
    except StaleRevision:
        found.refresh_from_db()
        row, _full = _numbered(found)
        last = found.edits.select_related("by").order_by("-text_rev").first()
        return render(
            request,
            "projects/_conflict.html",
            {
                "row": row,
                "form": form,
                "mine": form.cleaned_data["text"],
                "changed_by": last.by.shown_name if last and last.by else "",
            },
            status=409,
        )
    context = inspector_context(request.user, saved)
    html = render_to_string("projects/_inspector.html", context, request=request)
    language = saved.document.language or saved.document.project.language
    return HttpResponse(html + segment_html(context["row"], language) + meter_html(saved.document))
