"""Doors of synthesis: they parse, ask for access, call one service, answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from accounts.refusals import Conflict, Refused
from accounts.roles import Action
from projects.access import access_document, access_project, access_segment, access_take, projects_of
from projects.api.views import answer, asked, checked, person
from projects.models import Document, Project, Segment
from synthesis.access import access_conversion, access_export
from synthesis.models import Conversion, Export
from synthesis.revisions import export_rows, exports_listed
from synthesis.selectors import conversion_row
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
from synthesis.services.credits import CreditsImpossible, credits_write
from synthesis.services.deliverables import deliverable, deliverables
from synthesis.services.deliverychecks import check_csv
from synthesis.services.exports import ExportImpossible, export_cancel, export_create, export_retry
from synthesis.web.ranges import object_response

from . import serializers as s
from .reads import job_counts

KEY_LIMIT = 255  # characters of an Idempotency-Key


# --- conversions -------------------------------------------------------------------------------------------------------
def _conversion_answer(conversion: Conversion, request: Request, **options: Any) -> Response:
    fresh = Conversion.objects.select_related("project", "document").get(pk=conversion.pk)
    row = conversion_row(fresh)
    fresh.counts = job_counts([fresh])[fresh.pk]  # type: ignore[attr-defined]
    fresh.eta_s, fresh.waiting_why = row.eta_s, row.waiting_why  # type: ignore[attr-defined]
    return answer(s.ConversionDetailSerializer, fresh, request, **options)


def _target(user: Any, data: dict[str, Any]) -> tuple[Scope, Project | Document | Segment]:
    if "segment" in data:
        return Scope.SEGMENT, access_segment(user, data["segment"], Action.CONVERT)
    if "document" in data:
        return Scope.DOCUMENT, access_document(user, data["document"], Action.CONVERT)
    return Scope.PROJECT, access_project(user, data["project"], Action.CONVERT)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:40]


def _idempotency(request: Request, data: dict[str, Any]) -> tuple[str, str]:
    """(start of the stored key, stored key) for the request: it names the client's key and what was asked with it.

    Both are empty if the client sent none.
    """
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > KEY_LIMIT:
        raise ValidationError({"Idempotency-Key": [_("At most %(n)s characters.") % {"n": KEY_LIMIT}]})
    if not key:
        return "", ""
    start = f"{_digest(key)}:"
    return start, start + _digest(data)


class ConversionList(generics.ListAPIView):
    """What was started in your books, newest first."""

    serializer_class = s.ConversionSerializer

    @extend_schema(parameters=[s.ConversionQuerySerializer])
    def get(self, request: Request) -> Response:
        """What was started in your books, newest first."""
        data = asked(s.ConversionQuerySerializer, request)
        rows = Conversion.objects.select_related("project", "document")
        if "project" in data:
            rows = rows.filter(project=access_project(request.user, data["project"]))
        else:
            rows = rows.filter(project__in=projects_of(request.user))
        if "state" in data:
            rows = rows.filter(state=data["state"])
        page = self.paginate_queryset(rows) or []
        counts = job_counts(page)
        for conversion in page:
            conversion.counts = counts[conversion.pk]  # type: ignore[attr-defined]
        return self.get_paginated_response(
            s.ConversionSerializer(page, many=True, context={"request": request}).data
        )

    @extend_schema(
        request=s.ConversionStartSerializer,
        parameters=[
            OpenApiParameter(
                "Idempotency-Key",
                str,
                OpenApiParameter.HEADER,
                description="Any string of your own: the same request sent again starts nothing twice.",
            )
        ],
        responses={
            201: s.ConversionDetailSerializer,
            200: OpenApiResponse(s.ConversionDetailSerializer, description="Started before with this key."),
            422: OpenApiResponse(
                description="Refused before anything was queued: `no_voice`, `language_not_supported`, "
                "`nothing_to_do`, `idempotency_key_reused`."
            ),
        },
    )
    def post(self, request: Request) -> Response:
        """Make a sentence, a chapter or a book: all of it, or only what is missing, stale or failed."""
        data = checked(s.ConversionStartSerializer, request)
        scope, target = _target(request.user, data)
        start, key = _idempotency(request, data)
        if key:
            mine = Conversion.objects.filter(requested_by=person(request), idempotency_key__startswith=start)
            before = mine.order_by("pk").first()
            if before is not None and before.idempotency_key != key:
                raise Refused(
                    "idempotency_key_reused",
                    _("This Idempotency-Key was sent with another request. Use a new one for each request."),
                )
            if before is not None:
                return _conversion_answer(before, request)

        def begin() -> Conversion | None:
            return conversion_start(
                person(request),
                scope,
                target,
                only=Only(data["only"]),
                new_variant=data["new_variant"],
                idempotency_key=key,
            )

        try:
            try:
                conversion = begin()
            except IntegrityError:  # the same request at the same moment: that one's conversion is there now
                conversion = begin()
        except ConversionRefused as exc:
            raise Refused(exc.code, str(exc)) from exc
        if conversion is None:
            raise Refused(
                "nothing_to_do",
                _("There is nothing to make: it is all made, or being made. only=all makes it again."),
            )
        return _conversion_started(conversion, request)


def _conversion_started(conversion: Conversion, request: Request) -> Response:
    where = reverse("api:conversion", args=[conversion.public_id], request=request)
    return _conversion_answer(
        conversion, request, status=status.HTTP_201_CREATED, headers={"Location": where}
    )


class ConversionDetail(APIView):
    """One conversion."""

    @extend_schema(responses=s.ConversionDetailSerializer)
    def get(self, request: Request, conversion: UUID) -> Response:
        """How far it is, what failed and why, and how long it will take."""
        return _conversion_answer(access_conversion(request.user, conversion), request)


def _act(
    request: Request, public_id: UUID, act: Callable[[Conversion], object], refusal: tuple[str, str]
) -> Response:
    conversion = access_conversion(request.user, public_id, Action.CONVERT)
    if not act(conversion):
        raise Conflict(*refusal)
    return _conversion_answer(conversion, request)


def _cancel(conversion: Conversion) -> bool:
    conversion_cancel(conversion)
    conversion.refresh_from_db(fields=["state"])
    return conversion.state == Conversion.State.CANCELLED


_ACTED = {
    200: s.ConversionDetailSerializer,
    409: OpenApiResponse(description="It is not in a state that allows this."),
}


class ConversionPause(APIView):
    """Hold a conversion."""

    @extend_schema(request=None, responses=_ACTED)
    def post(self, request: Request, conversion: UUID) -> Response:
        """Hand out no more of it; what the workers hold is finished."""
        return _act(request, conversion, conversion_pause, ("not_running", _("It is not running.")))


class ConversionResume(APIView):
    """Go on with a conversion."""

    @extend_schema(request=None, responses=_ACTED)
    def post(self, request: Request, conversion: UUID) -> Response:
        """Go on where it was paused."""
        return _act(request, conversion, conversion_resume, ("not_paused", _("It is not paused.")))


class ConversionCancel(APIView):
    """Give a conversion up."""

    @extend_schema(request=None, responses=_ACTED)
    def post(self, request: Request, conversion: UUID) -> Response:
        """Want none of it any more; what was made stays. Safe to call twice."""
        return _act(request, conversion, _cancel, ("finished", _("It is finished already.")))


class ConversionRetry(APIView):
    """Try again."""

    @extend_schema(
        request=None,
        responses={
            201: s.ConversionDetailSerializer,
            422: OpenApiResponse(description="Nothing of it failed."),
        },
    )
    def post(self, request: Request, conversion: UUID) -> Response:
        """Try again what failed, as a new conversion."""
        found = access_conversion(request.user, conversion, Action.CONVERT)
        try:
            again = conversion_retry(person(request), found)
        except ConversionRefused as exc:
            raise Refused(exc.code, str(exc)) from exc
        if again is None:
            raise Refused("nothing_to_do", _("Nothing of it failed, so there is nothing to try again."))
        return _conversion_started(again, request)


# --- sound and files ---------------------------------------------------------------------------------------------------
class AnyAccepted(BaseContentNegotiation):
    """These doors answer with a file, whatever the client says it accepts; errors are JSON as everywhere."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return parsers[0]

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


_EXPORT_TYPES = dict.fromkeys(made.mime.partition(";")[0] for made in deliverables())
_LINK = OpenApiResponse(
    description="A signed link to the file, where the studio keeps its objects in a bucket."
)
_RANGED = {
    302: _LINK,
    206: OpenApiResponse(description="The bytes that `Range` named."),
    416: OpenApiResponse(description="`Range` names bytes beyond the end."),
}


class TakeAudio(APIView):
    """A take's sound."""

    content_negotiation_class = AnyAccepted

    @extend_schema(responses={(200, "audio/flac"): OpenApiTypes.BINARY, **_RANGED})
    def get(self, request: Request, take: UUID) -> HttpResponseBase:
        """A take's sound as FLAC; ranges work."""
        found = access_take(request.user, take)
        if found.deleted_at is not None:
            raise NotFound(_("This take was deleted."))
        return object_response(request._request, found.audio_key, content_type="audio/flac")


class ExportDownload(APIView):
    """An export's file."""

    content_negotiation_class = AnyAccepted

    @extend_schema(
        responses={
            **{(200, mime): OpenApiTypes.BINARY for mime in _EXPORT_TYPES},
            **_RANGED,
            409: OpenApiResponse(description="It is not made yet."),
        }
    )
    def get(self, request: Request, export: UUID) -> HttpResponseBase:
        """An export's file; ranges work."""
        found = access_export(request.user, export, Action.EXPORT)
        if not found.file_key:
            raise Conflict("not_ready", _("This export is not made yet. Its state says how far it is."))
        return object_response(
            request._request,
            found.file_key,
            content_type=deliverable(found.preset).mime,
            download_as=found.file_name,
        )


class ExportCheckCsv(APIView):
    """An export's delivery check for spreadsheets."""

    content_negotiation_class = AnyAccepted

    @extend_schema(
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            409: OpenApiResponse(description="It has no check: not made yet, or a format without rules."),
        }
    )
    def get(self, request: Request, export: UUID) -> HttpResponse:
        """An export's delivery check as CSV: file, check, status, value, wanted, source, read."""
        found = _checked_export(request, export)
        return HttpResponse(check_csv(found.details.get("check", [])), content_type="text/csv; charset=utf-8")


# --- exports -----------------------------------------------------------------------------------------------------------
def _export_answer(export: Export, request: Request, **options: Any) -> Response:
    fresh = Export.objects.select_related("project", "requested_by").get(pk=export.pk)
    row = export_rows(fresh.project, [fresh])[0]
    return answer(s.ExportDetailSerializer, row, request, **options)


def _checked_export(request: Request, export: UUID) -> Export:
    found = access_export(request.user, export)
    if not found.report.get("check"):
        raise Conflict("no_check", _("There is no delivery check: not made yet, or a format without rules."))
    return found


class PresetList(APIView):
    """What can be made of a book."""

    @extend_schema(responses=s.PresetSerializer(many=True))
    def get(self, request: Request, project: UUID) -> Response:
        """What can be made of a book, the usual first."""
        found = access_project(request.user, project)
        return Response(s.PresetSerializer(deliverables(found), many=True).data)


class ExportList(generics.ListAPIView):
    """A book's deliverables, newest first."""

    serializer_class = s.ExportSerializer

    @extend_schema(responses=s.ExportSerializer(many=True))
    def get(self, request: Request, project: UUID) -> Response:
        """A book's deliverables, newest first."""
        found = access_project(request.user, project)
        page = self.paginate_queryset(exports_listed(found)) or []
        rows = export_rows(found, page)
        return self.get_paginated_response(
            s.ExportSerializer(rows, many=True, context={"request": request}).data
        )

    @extend_schema(
        request=s.ExportStartSerializer,
        responses={
            202: s.ExportDetailSerializer,
            422: OpenApiResponse(
                description="It cannot be made: `nothing_to_export`, `no_original`, `not_a_set`, `no_revision`."
            ),
        },
    )
    def post(self, request: Request, project: UUID) -> Response:
        """Ask for the next revision. An unfinished book is exported too: `missing` says what it lacks."""
        found = access_project(request.user, project, Action.EXPORT)
        data = checked(s.ExportStartSerializer, request)
        sample = dict(data.get("sample", {}))
        _known(found, data["documents"], "documents")
        if "document" in sample:
            _known(found, [sample["document"]], "sample")
            sample["document"] = str(sample["document"])
        try:
            export = export_create(
                found,
                person(request),
                preset=data["preset"],
                documents=[str(document) for document in data["documents"]],
                since=data.get("since"),
                sample=sample,
            )
        except ExportImpossible as exc:
            raise Refused(exc.code, str(exc)) from exc
        where = reverse("api:export", args=[export.public_id], request=request)
        return _export_answer(export, request, status=status.HTTP_202_ACCEPTED, headers={"Location": where})


def _known(project: Project, documents: list[UUID], field: str) -> None:
    """Raises ValidationError naming what is no chapter of the book."""
    wanted = set(documents)
    known = set(project.documents.filter(public_id__in=wanted).values_list("public_id", flat=True))
    if unknown := wanted - known:
        words = _("Not chapters of this book: %(ids)s.") % {"ids": ", ".join(sorted(map(str, unknown))[:5])}
        raise ValidationError({field: [words]})


class ExportDetail(APIView):
    """One deliverable."""

    @extend_schema(responses=s.ExportDetailSerializer)
    def get(self, request: Request, export: UUID) -> Response:
        """How far it is, and what it is."""
        return _export_answer(access_export(request.user, export), request)


class ExportCheck(APIView):
    """A delivery check."""

    @extend_schema(
        responses={
            200: s.CheckSerializer,
            409: OpenApiResponse(description="It has no check: not made yet, or a format without rules."),
        }
    )
    def get(self, request: Request, export: UUID) -> Response:
        """Every rule held against every encoded file, with number, limit and source."""
        found = _checked_export(request, export)
        return answer(
            s.CheckSerializer, {**found.report["check"], "rows": found.details.get("check", [])}, request
        )


class ExportRetry(APIView):
    """Try again."""

    @extend_schema(
        request=None,
        responses={200: s.ExportDetailSerializer, 409: OpenApiResponse(description="It is not failed.")},
    )
    def post(self, request: Request, export: UUID) -> Response:
        """Make a failed export again under its revision; what was finished of it is kept."""
        found = access_export(request.user, export, Action.EXPORT)
        if not export_retry(found):
            raise Conflict("not_failed", _("It is not failed."))
        return _export_answer(found, request)


class ExportCancel(APIView):
    """Give an export up."""

    @extend_schema(
        request=None,
        responses={
            200: s.ExportDetailSerializer,
            409: OpenApiResponse(description="It is finished already."),
        },
    )
    def post(self, request: Request, export: UUID) -> Response:
        """Want it no more; no file appears."""
        found = access_export(request.user, export, Action.EXPORT)
        if not export_cancel(found):
            raise Conflict("finished", _("It is finished already."))
        return _export_answer(found, request)


class ProjectCredits(APIView):
    """Opening and closing credits."""

    @extend_schema(
        request=None,
        responses={
            201: s.CreditsSerializer,
            422: OpenApiResponse(description="The book's data name no title or no author."),
        },
    )
    def post(self, request: Request, project: UUID) -> Response:
        """Write the credits that the book lacks as chapters; those that are there stay as they are."""
        found = access_project(request.user, project, Action.CAST)
        try:
            made = credits_write(found)
        except CreditsImpossible as exc:
            raise Refused("credits_impossible", str(exc)) from exc
        documents = {"documents": [document.public_id for document in made]}
        return answer(s.CreditsSerializer, documents, request, status=status.HTTP_201_CREATED)
