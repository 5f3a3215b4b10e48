"""Doors of books: they parse, ask `projects.access`, call one service, answer."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.db.models import Case, F, QuerySet, Value, When
from django.db.models.fields import BooleanField
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import generics, status
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from accounts.models import User
from accounts.refusals import Conflict, Refused
from accounts.roles import Action
from projects import selectors
from projects.access import (
    access_document,
    access_import,
    access_project,
    access_segment,
    access_take,
    access_voice,
    projects_of,
    role_in,
    voices_for,
)
from projects.models import Document, ManuscriptImport, Project, Segment, Take, Voice
from projects.services.manuscripts import UploadRefused, import_create
from projects.services.projects import VoiceCannotSpeak, document_update, project_set_voice, project_update
from projects.services.segments import (
    EmptyText,
    StaleRevision,
    TakeNotOfSegment,
    segment_edit_text,
    take_choose,
)

from . import serializers as s
from .paging import ReadingOrderPagination


def person(request: Request) -> User:
    """Who asks: every door wants somebody signed in."""
    return cast(User, request.user)


def checked(serializer: type[Serializer], request: Request) -> dict[str, Any]:
    """The request's body, checked. Raises ValidationError."""
    found = serializer(data=request.data)
    found.is_valid(raise_exception=True)
    return found.validated_data


def asked(serializer: type[Serializer], request: Request) -> dict[str, Any]:
    """The request's query, checked; what is not named is not in it. Raises ValidationError."""
    found = serializer(data=request.query_params.dict())
    found.is_valid(raise_exception=True)
    return found.validated_data


def answer(serializer: type[Serializer], value: Any, request: Request, **options: Any) -> Response:
    """A response that shows one object."""
    return Response(serializer(value, context={"request": request}).data, **options)


# --- projects ----------------------------------------------------------------------------------------------------------
class ProjectList(generics.ListAPIView):
    """Your books, newest first; upload a manuscript to make another."""

    serializer_class = s.ProjectSerializer
    parser_classes = (MultiPartParser,)

    def get_queryset(self) -> QuerySet[Project]:
        return projects_of(self.request.user).select_related("voice").annotate(role=F("memberships__role"))

    @extend_schema(
        request={"multipart/form-data": s.UploadSerializer},
        responses={
            202: s.ImportSerializer,
            413: OpenApiResponse(description="Larger than the studio's limit."),
            422: OpenApiResponse(description="The file cannot be taken."),
        },
    )
    def post(self, request: Request) -> Response:
        """Upload a manuscript. It is imported in the background: follow the import until it names its project."""
        data = checked(s.UploadSerializer, request)
        file, voice = data["file"], None
        if "voice" in data:
            voice = _voice(request, data["voice"], None)
        try:
            row = import_create(
                person(request), file, file.name, language=data.get("language", ""), voice=voice
            )
        except UploadRefused as exc:
            too_large = exc.code == "too_large"
            code = (
                status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
                if too_large
                else status.HTTP_422_UNPROCESSABLE_ENTITY
            )
            raise Refused(exc.code, str(exc), status_code=code) from exc
        where = reverse("api:import", args=[row.public_id], request=request)
        return answer(
            s.ImportSerializer, row, request, status=status.HTTP_202_ACCEPTED, headers={"Location": where}
        )


def _project_answer(project: Project, request: Request) -> Response:
    project.role = role_in(request.user, project)  # type: ignore[attr-defined]
    project.counts = selectors.book_counts(selectors.documents_of(project))  # type: ignore[attr-defined]
    return answer(s.ProjectDetailSerializer, project, request)


def _voice(request: Request, public_id: UUID, project: Project | None) -> Voice:
    voice = voices_for(request.user, project).filter(public_id=public_id).first()
    if voice is None:
        raise ValidationError(
            {"voice": [_("There is no such voice. GET /api/v1/voices/ lists those you can use.")]}
        )
    return voice


class ProjectDetail(APIView):
    """One book."""

    @extend_schema(responses=s.ProjectDetailSerializer)
    def get(self, request: Request, project: UUID) -> Response:
        """A book with the figures of its audiobook."""
        return _project_answer(access_project(request.user, project), request)

    @extend_schema(request=s.ProjectChangeSerializer, responses=s.ProjectDetailSerializer)
    def patch(self, request: Request, project: UUID) -> Response:
        """Change metadata and pause rules. Another language makes what is spoken in it stale."""
        found = access_project(request.user, project, Action.MANAGE)
        return _project_answer(project_update(found, **checked(s.ProjectChangeSerializer, request)), request)


class ProjectVoice(APIView):
    """Who narrates."""

    @extend_schema(
        request=s.ProjectVoiceSerializer,
        responses={
            200: s.ProjectVoiceSetSerializer,
            422: OpenApiResponse(description="It does not speak the language."),
        },
    )
    def put(self, request: Request, project: UUID) -> Response:
        """Let a voice narrate the book. What was made with another one stays, and is stale."""
        found = access_project(request.user, project, Action.CAST)
        voice = _voice(request, checked(s.ProjectVoiceSerializer, request)["voice"], found)
        try:
            changed = project_set_voice(found, voice)
        except VoiceCannotSpeak as exc:
            raise Refused("language_not_supported", str(exc)) from exc
        return answer(s.ProjectVoiceSetSerializer, {"voice": voice, "changed": changed}, request)


# --- imports -----------------------------------------------------------------------------------------------------------
class ImportList(generics.ListAPIView):
    """Your uploads, newest first."""

    serializer_class = s.ImportSerializer

    def get_queryset(self) -> QuerySet[ManuscriptImport]:
        return ManuscriptImport.objects.filter(user=person(self.request)).select_related("project")


class ImportDetail(APIView):
    """One upload."""

    @extend_schema(responses=s.ImportSerializer)
    def get(self, request: Request, public_id: UUID) -> Response:
        """How far an upload is: `done` names its project, `failed` says why."""
        return answer(s.ImportSerializer, access_import(person(request), public_id), request)


# --- documents ---------------------------------------------------------------------------------------------------------
class DocumentList(generics.ListAPIView):
    """A book's chapters in reading order, with their figures."""

    serializer_class = s.DocumentSerializer
    ordering = "order_key"

    def list(self, request: Request, project: UUID) -> Response:
        found = access_project(request.user, project)
        page = self.paginate_queryset(found.documents.all())
        rows = {row.document.pk: row for row in selectors.documents_of(found)}
        shown = [rows[document.pk] for document in page or [] if document.pk in rows]
        return self.get_paginated_response(
            s.DocumentSerializer(shown, many=True, context={"request": request}).data
        )


class DocumentDetail(APIView):
    """One chapter."""

    @extend_schema(responses=s.DocumentSerializer)
    def get(self, request: Request, document: UUID) -> Response:
        """A chapter with its figures."""
        return answer(
            s.DocumentSerializer, selectors.document_row(access_document(request.user, document)), request
        )

    @extend_schema(request=s.DocumentChangeSerializer, responses=s.DocumentSerializer)
    def patch(self, request: Request, document: UUID) -> Response:
        """Rename a chapter, or take it into the audiobook or out of it."""
        found = access_document(request.user, document, Action.CAST)
        saved = document_update(found, **checked(s.DocumentChangeSerializer, request))
        return answer(s.DocumentSerializer, selectors.document_row(saved), request)


# --- segments ----------------------------------------------------------------------------------------------------------
def _segments(document: Document | None = None) -> QuerySet[Segment]:
    rows = Segment.objects.with_stale().select_related("document", "block", "chosen_take", "voice")
    return rows.filter(document=document) if document is not None else rows


def _segment_answer(segment: Segment, request: Request) -> Response:
    return answer(s.SegmentSerializer, _segments().get(pk=segment.pk), request)


class SegmentList(generics.ListAPIView):
    """A chapter's sentences in reading order."""

    serializer_class = s.SegmentSerializer
    pagination_class = ReadingOrderPagination

    @extend_schema(parameters=[s.SegmentQuerySerializer])
    def get(self, request: Request, document: UUID) -> Response:
        """A chapter's sentences in reading order; `state` and `stale` narrow them down."""
        self.document = access_document(request.user, document)
        self.asked = asked(s.SegmentQuerySerializer, request)
        return self.list(request)

    def get_queryset(self) -> QuerySet[Segment]:
        rows = _segments(self.document)
        if "state" in self.asked:
            rows = rows.filter(state=self.asked["state"])
        if "stale" in self.asked:
            rows = rows.filter(is_stale=self.asked["stale"])  # type: ignore[misc]  # with_stale annotates it
        return rows


class SegmentDetail(APIView):
    """One sentence."""

    @extend_schema(responses=s.SegmentSerializer)
    def get(self, request: Request, segment: UUID) -> Response:
        """A sentence."""
        return _segment_answer(access_segment(request.user, segment), request)

    @extend_schema(
        request=s.SegmentChangeSerializer,
        responses={
            200: s.SegmentSerializer,
            409: OpenApiResponse(
                description="Somebody changed it meanwhile: `details.current` and `details.yours` hold both texts."
            ),
        },
    )
    def patch(self, request: Request, segment: UUID) -> Response:
        """Change a sentence's words. It turns stale; its audio stays."""
        found = access_segment(request.user, segment, Action.EDIT)
        data = checked(s.SegmentChangeSerializer, request)
        try:
            segment_edit_text(
                found,
                text=data.get("text", found.text),
                text_rev=data["text_rev"],
                user=person(request),
                spoken=data.get("spoken"),
            )
        except EmptyText as exc:
            raise ValidationError({"text": [_("A sentence cannot be empty.")]}) from exc
        except StaleRevision as exc:
            found.refresh_from_db(fields=["text", "spoken", "text_rev"])
            current = {"text": found.text, "spoken": found.spoken, "text_rev": found.text_rev}
            raise Conflict(
                "stale_revision",
                _(
                    "Somebody changed this sentence meanwhile. Compare both texts and send yours with the new text_rev."
                ),
                details={"current": current, "yours": data},
            ) from exc
        return _segment_answer(found, request)


# --- takes -------------------------------------------------------------------------------------------------------------
def _takes() -> QuerySet[Take]:
    chosen = Case(
        When(segment__chosen_take_id=F("pk"), then=Value(True)),
        default=Value(False),
        output_field=BooleanField(),
    )
    return Take.objects.filter(deleted_at=None).select_related("segment", "voice").annotate(chosen=chosen)


class TakeList(generics.ListAPIView):
    """A sentence's takes, newest first."""

    serializer_class = s.TakeSerializer

    @extend_schema(responses=s.TakeSerializer(many=True))
    def get(self, request: Request, segment: UUID) -> Response:
        """A sentence's takes, newest first."""
        self.segment = access_segment(request.user, segment)
        return self.list(request)

    def get_queryset(self) -> QuerySet[Take]:
        return _takes().filter(segment=self.segment)


class TakeDetail(APIView):
    """One take."""

    @extend_schema(responses=s.TakeSerializer)
    def get(self, request: Request, take: UUID) -> Response:
        """A take and what was measured of it."""
        return answer(s.TakeSerializer, _take_shown(access_take(request.user, take)), request)


def _take_shown(take: Take) -> Take:
    shown = _takes().filter(pk=take.pk).first()
    if shown is None:
        raise NotFound(_("This take was deleted."))
    return shown


class TakeChoose(APIView):
    """Which take sounds."""

    @extend_schema(request=None, responses=s.SegmentSerializer)
    def post(self, request: Request, take: UUID) -> Response:
        """Make a take the one that sounds; that never makes a sentence stale of itself. Answers with the sentence."""
        found = access_take(request.user, take, Action.EDIT)
        try:
            take_choose(found.segment, found)
        except TakeNotOfSegment as exc:
            raise NotFound(_("This take was deleted.")) from exc
        return _segment_answer(found.segment, request)


# --- voices ------------------------------------------------------------------------------------------------------------
class VoiceList(generics.ListAPIView):
    """The studio's voices, and those of a project."""

    serializer_class = s.VoiceSerializer

    @extend_schema(parameters=[s.VoiceQuerySerializer])
    def get(self, request: Request) -> Response:
        """Voices to choose from."""
        data = asked(s.VoiceQuerySerializer, request)
        self.project = access_project(request.user, data["project"]) if "project" in data else None
        self.language = data.get("language", "")
        return self.list(request)

    def get_queryset(self) -> QuerySet[Voice]:
        rows = voices_for(self.request.user, self.project).select_related("project")
        if self.language:
            # what a voice speaks is decided in one place, in Python; a studio has some hundreds of voices
            rows = rows.filter(pk__in=[voice.pk for voice in rows if voice.speaks(self.language)])
        return rows


class VoiceDetail(APIView):
    """One voice."""

    @extend_schema(responses=s.VoiceSerializer)
    def get(self, request: Request, voice: UUID) -> Response:
        """A voice."""
        return answer(s.VoiceSerializer, access_voice(request.user, voice), request)
