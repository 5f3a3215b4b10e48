"""What all REST doors share: paging, the one shape of errors, and what the schema says of them."""

from __future__ import annotations

import logging
import re
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.signals import got_request_exception
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions, status
from rest_framework.pagination import CursorPagination as BaseCursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, set_rollback

from accounts.refusals import Refused

log = logging.getLogger(__name__)

POSITION = re.compile(r"[0-9a-z-]{1,60}")  # public ids, order keys, numbers


class CursorPagination(BaseCursorPagination):
    """Pages by cursor, newest first: no counting, no skipping, stable while rows are added.

    A view whose rows have another order names it in `ordering`: one unique field.
    """

    ordering = "-public_id"  # UUIDv7: by time, and no internal key shows in a cursor
    page_size_query_param = "page_size"
    max_page_size = 200

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        return (getattr(view, "ordering", None) or self.ordering,)

    def decode_cursor(self, request: Request) -> Any:
        cursor = super().decode_cursor(request)
        if cursor is None or cursor.position is None:
            return cursor
        is_id = self.ordering_field.endswith("public_id")
        pattern = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}") if is_id else POSITION
        if not pattern.fullmatch(str(cursor.position)):
            raise exceptions.NotFound(self.invalid_cursor_message)
        return cursor

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        self.ordering_field = self.get_ordering(request, queryset, view)[0]
        return super().paginate_queryset(queryset, request, view)


# --- errors ------------------------------------------------------------------------------------------------------------

CODES: dict[int, str] = {
    status.HTTP_400_BAD_REQUEST: "invalid",
    status.HTTP_401_UNAUTHORIZED: "not_authenticated",
    status.HTTP_403_FORBIDDEN: "forbidden",
    status.HTTP_404_NOT_FOUND: "not_found",
    status.HTTP_405_METHOD_NOT_ALLOWED: "method_not_allowed",
    status.HTTP_406_NOT_ACCEPTABLE: "not_acceptable",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "unsupported_media_type",
    status.HTTP_429_TOO_MANY_REQUESTS: "throttled",
}


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Every error as `{"error": {"code", "message", "fields"?, "details"?}}`.

    `fields` names what is wrong with each field of the request. What nobody foresaw is logged and answered with 500
    in the same shape; in debug mode it is left to Django's page.
    """
    if isinstance(exc, Http404):
        exc = exceptions.NotFound(str(exc.args[0]) if exc.args else None)
    elif isinstance(exc, DjangoPermissionDenied):
        exc = exceptions.PermissionDenied(str(exc) or None)
    if not isinstance(exc, exceptions.APIException):
        if settings.DEBUG:
            return None
        request = context.get("request")
        log.error("unforeseen error in a REST door", exc_info=exc)
        set_rollback()
        got_request_exception.send(
            sender=type(context.get("view")), request=getattr(request, "_request", None)
        )
        return Response(
            {
                "error": {
                    "code": "internal",
                    "message": _("Something went wrong here. It is logged; try again later."),
                }
            },
            status=status.HTTP_500_INTERNAL_SERVER_ERROR,
        )

    set_rollback()
    headers: dict[str, str] = {}
    if challenge := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(wait) + 1)
    error: dict[str, Any] = {"code": CODES.get(exc.status_code, str(exc.default_code))}
    if isinstance(exc, Refused):
        error |= {"code": exc.code, "message": str(exc.detail)}
        if exc.details is not None:
            error["details"] = dict(exc.details)
    elif isinstance(exc, exceptions.ValidationError):
        error |= {
            "message": _("The request is not valid. Correct the fields named."),
            "fields": _fields(exc.detail),
        }
    else:
        error["message"] = str(exc.detail)
    return Response({"error": error}, status=exc.status_code, headers=headers)


def _fields(detail: Any, path: str = "") -> dict[str, list[str]]:
    """Nested validation errors flattened: {"rules.pauses.sentence": ["…"]}. What belongs to no field is under ""."""
    if isinstance(detail, dict):
        found: dict[str, list[str]] = {}
        for name, inner in detail.items():
            part = "" if name == "non_field_errors" else str(name)
            for key, words in _fields(inner, ".".join(filter(None, (path, part)))).items():
                found.setdefault(key, []).extend(words)
        return found
    if isinstance(detail, list) and any(isinstance(item, (dict, list)) for item in detail):
        return _fields({str(n): item for n, item in enumerate(detail) if item}, path)
    return {path: [str(item) for item in (detail if isinstance(detail, list) else [detail])]}


class NoSuchAddress(APIView):
    """Any other address below /api/v1/: a 404 in the shape of the others."""

    schema = None  # not in the schema
    permission_classes = ()

    def _refuse(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        raise exceptions.NotFound(_("There is nothing at this address. See /api/v1/docs/."))

    get = post = put = patch = delete = _refuse


# --- schema ------------------------------------------------------------------------------------------------------------

ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "Every error has this shape. `code` is for programs, `message` for people.",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "examples": ["not_found"]},
                "message": {"type": "string"},
                "fields": {
                    "type": "object",
                    "description": "What is wrong with each field of the request.",
                    "additionalProperties": {"type": "array", "items": {"type": "string"}},
                },
                "details": {
                    "type": "object",
                    "description": "What a program needs to go on.",
                    "additionalProperties": True,
                },
            },
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}
ANSWERS: dict[str, str] = {
    "400": "The request is not valid; `fields` says why.",
    "401": "Nobody is signed in: send `Authorization: Bearer vp_…` or a session cookie.",
    "403": "You may see it, but your role does not allow this.",
    "404": "There is no such thing, or you may not see it.",
    "405": "The address does not know this method.",
    "406": "Only JSON is offered.",
    "415": "The body is of a kind that is not read here.",
}


def schema_errors(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Postprocessing hook of the schema: the errors that any operation may answer with."""
    result.setdefault("components", {}).setdefault("schemas", {})["Error"] = ERROR_SCHEMA
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for path in result.get("paths", {}).values():
        for operation in path.values():
            if not isinstance(operation, dict) or "responses" not in operation:
                continue
            for code, description in ANSWERS.items():
                operation["responses"].setdefault(code, {"description": description, "content": content})
            for code, answer in operation["responses"].items():
                if int(code) >= 400:
                    answer.setdefault("content", content)
    return result
