"""Doors: conversions, sound."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from accounts.roles import Action
from projects.access import (
    access_document,
    access_project,
    access_segment,
    access_take,
    access_voice,
    permitted,
)
from projects.models import Document, Project, Segment
from synthesis.access import access_conversion
from synthesis.audio.peaks import peaks_decode
from synthesis.selectors import compute_s
from synthesis.services.conversions import (
    ConversionRefused,
    Only,
    Plan,
    Scope,
    conversion_cancel,
    conversion_pause,
    conversion_resume,
    conversion_retry,
    conversion_start,
    plan_check,
    wanted,
)
from synthesis.services.voices import SampleUnavailable, voice_sample
from synthesis.speaking.client import SpeechRefused, WorkerBusy, WorkerUnreachable
from synthesis.web.panels import conversion_html
from synthesis.web.ranges import object_response

LINES = 50  # sentences listed in the scope dialog


# -- conversions -----------------------------------------------------------------------------------------------------
def _target(user: Any, scope: Scope, public_id: str) -> Project | Document | Segment:
    if scope is Scope.SEGMENT:
        return access_segment(user, public_id, Action.CONVERT)
    if scope is Scope.DOCUMENT:
        return access_document(user, public_id, Action.CONVERT)
    return access_project(user, public_id, Action.CONVERT)


def _project_of(target: Project | Document | Segment) -> Project:
    if isinstance(target, Project):
        return target
    return target.project if isinstance(target, Document) else target.document.project


def _asked(data: Any) -> tuple[Scope, Only, str]:
    """The request's words. Raises Http404 for what no page sends."""
    try:
        return Scope(data.get("scope", "")), Only(data.get("only", "missing_stale")), data.get("id", "")
    except ValueError as exc:
        raise Http404 from exc


def _left_out(plan: Plan) -> list[str]:
    items = []
    if plan.kept:
        items.append(
            ngettext(
                "%(n)s locked or approved sentence is left out.",
                "%(n)s locked or approved sentences are left out.",
                plan.kept,
            )
            % {"n": plan.kept}
        )
    if plan.in_work:
        items.append(
            ngettext(
                "%(n)s sentence is being made already.",
                "%(n)s sentences are being made already.",
                plan.in_work,
            )
            % {"n": plan.in_work}
        )
    return items


@login_required
@require_GET
def conversion_scope(request: HttpRequest) -> HttpResponse:
    """What it would cost, before it costs."""
    scope, only, public_id = _asked(request.GET)
    target = _target(request.user, scope, public_id)
    plan = wanted(scope, target, only)
    project = _project_of(target)
    refusal = ""
    try:
        plan_check(plan)
    except ConversionRefused as exc:
        refusal = str(exc)
    context = {
        "scope": {
            "scope": scope.value,
            "id": public_id,
            "only": only.value,
            "sentences": len(plan.segments),
            "audio_s": plan.audio_ms / 1000,
            "compute_s": compute_s(project.voice, plan.audio_ms),
            "voice_name": project.voice.name if project.voice else "",
            "left_out": _left_out(plan),
            "lines": [
                {"number": n, "text": s.text, "reason": ""}
                for n, s in enumerate(plan.segments[:LINES], start=1)
            ],
            "refusal": refusal,
        }
    }
    template = "synthesis/_scope.html" if request.headers.get("HX-Request") else "synthesis/scope.html"
    return render(request, template, context)


def _started(
    request: HttpRequest, target: Project | Document | Segment, scope: Scope, only: Only, **more: Any
) -> HttpResponse:
    """Start a conversion and answer with the panel, or as a page for a form without script."""
    project = _project_of(target)
    htmx = bool(request.headers.get("HX-Request"))
    try:
        conversion = conversion_start(request.user, scope, target, only=only, **more)  # type: ignore[arg-type]
    except ConversionRefused as exc:
        if htmx:
            return HttpResponse(
                render_to_string("synthesis/_refused.html", {"message": str(exc)}), status=422
            )
        messages.error(request, str(exc))
        return _back(target)
    if not htmx:
        if conversion is None:
            messages.info(request, _("Nothing to do: every sentence has its sound."))
        return _back(target)
    return HttpResponse(conversion_html(project, True))


def _back(target: Project | Document | Segment) -> HttpResponse:
    if isinstance(target, Project):
        return redirect("projects:project", target.public_id)
    document = target if isinstance(target, Document) else target.document
    return redirect("projects:document", document.public_id)


@login_required
@require_POST
def conversion_create(request: HttpRequest) -> HttpResponse:
    """Make what the scope dialog showed."""
    scope, only, public_id = _asked(request.POST)
    return _started(request, _target(request.user, scope, public_id), scope, only)


@login_required
@require_POST
def document_make(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The first button: make one chapter."""
    document = access_document(request.user, public_id, Action.CONVERT)
    return _started(request, document, Scope.DOCUMENT, Only.MISSING_STALE)


@login_required
@require_POST
def segment_make(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Make one sentence: anew if it is stale or empty, another take of it if it has a current one."""
    segment = access_segment(request.user, public_id, Action.CONVERT)
    take = segment.chosen_take
    another = take is not None and take.recipe == segment.recipe
    return _started(request, segment, Scope.SEGMENT, Only.ALL, new_variant=another)


@login_required
@require_GET
def conversion_panel(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The panel of a book's conversion."""
    project = access_project(request.user, public_id)
    return HttpResponse(conversion_html(project, permitted(request.user, project, Action.CONVERT)))


def _acted(request: HttpRequest, public_id: UUID, act: Any) -> HttpResponse:
    conversion = access_conversion(request.user, public_id, Action.CONVERT)
    act(conversion)
    return HttpResponse(conversion_html(conversion.project, True))


@login_required
@require_POST
def conversion_paused(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Hand out no more of it."""
    return _acted(request, public_id, conversion_pause)


@login_required
@require_POST
def conversion_resumed(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Go on."""
    return _acted(request, public_id, conversion_resume)


@login_required
@require_POST
def conversion_cancelled(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Want none of it any more."""
    return _acted(request, public_id, conversion_cancel)


@login_required
@require_POST
def conversion_retried(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Try again what failed."""
    return _acted(request, public_id, lambda c: conversion_retry(request.user, c))  # type: ignore[arg-type]


# -- sound -----------------------------------------------------------------------------------------------------------
@login_required
@require_GET
def take_audio(request: HttpRequest, public_id: UUID) -> HttpResponseBase:
    """A take's sound: 302 to a signed link, or byte ranges."""
    take = access_take(request.user, public_id)
    return object_response(request, take.audio_key, content_type="audio/flac")


@login_required
@require_GET
def take_peaks(request: HttpRequest, public_id: UUID) -> HttpResponseBase:
    """A take's waveform: audiowaveform's JSON form, 8 bit, 100 points a second."""
    take = access_take(request.user, public_id)
    try:
        with default_storage.open(take.peaks_key, "rb") as file:
            peaks = peaks_decode(file.read())
    except FileNotFoundError as exc:
        raise Http404 from exc
    response = JsonResponse(
        {
            "version": 2,
            "channels": 1,
            "length": len(peaks.pairs),
            "bits": 8,
            "sample_rate": peaks.rate_hz,
            "samples_per_pixel": peaks.samples_per_point,
            "data": peaks.pairs.ravel().tolist(),
        }
    )
    patch_cache_control(response, private=True, max_age=86_400, immutable=True)
    return response


@login_required
@require_GET
def voice_sampled(request: HttpRequest, public_id: UUID) -> HttpResponseBase:
    """A voice's sample, spoken on the first call."""
    voice = access_voice(request.user, public_id)
    try:
        key = voice_sample(voice)
    except (WorkerBusy, WorkerUnreachable) as exc:
        return HttpResponse(
            _("The voice cannot be heard now: %(why)s") % {"why": exc},
            status=503,
            headers={"Retry-After": "5"},
        )
    except (SampleUnavailable, SpeechRefused) as exc:
        return HttpResponse(str(exc), status=422)
    return object_response(request, key, content_type="audio/wav")
