"""Pages of sentences in reading order, by key: no counting, no skipping, stable while sentences are added or split."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from rest_framework.exceptions import NotFound
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from projects.models import Segment

ORDER = ("block__order_key", "order_key")
KEY = re.compile(r"[0-9a-z]{1,60}")


class ReadingOrderPagination(BasePagination):
    """Keyset pages of one chapter's sentences: a cursor names the sentence's place, not its number."""

    page_size = 100
    max_page_size = 500
    invalid_cursor_message = _("This cursor is not one of ours. Begin again without one.")

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        size = self._size(request)
        cursor = request.query_params.get("cursor")
        backwards, place = self._decode(cursor) if cursor else (False, None)
        sign = "-" if backwards else ""
        rows = queryset.order_by(*(sign + name for name in ORDER))
        if place is not None:
            op = "lt" if backwards else "gt"
            rows = rows.filter(
                Q(**{f"block__order_key__{op}": place[0]})
                | Q(block__order_key=place[0], **{f"order_key__{op}": place[1]})
            )
        found = list(rows[: size + 1])
        more, page = len(found) > size, found[:size]
        if backwards:
            page.reverse()
        before = more if backwards else place is not None
        after = place is not None if backwards else more
        self.url = request.build_absolute_uri()
        self.previous = self._link(True, page[0]) if before and page else None
        self.next = self._link(False, page[-1]) if after and page else None
        return page

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self.next, "previous": self.previous, "results": data})

    def _size(self, request: Request) -> int:
        try:
            wanted = int(request.query_params.get("page_size", ""))
        except ValueError:
            return self.page_size
        return min(wanted, self.max_page_size) if wanted > 0 else self.page_size

    def _link(self, backwards: bool, segment: Segment) -> str:
        place = json.dumps(
            [int(backwards), segment.block.order_key, segment.order_key], separators=(",", ":")
        )
        return replace_query_param(self.url, "cursor", base64.urlsafe_b64encode(place.encode()).decode())

    def _decode(self, cursor: str) -> tuple[bool, tuple[str, str]]:
        try:
            backwards, block, segment = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
            if backwards not in (0, 1) or not (KEY.fullmatch(block) and KEY.fullmatch(segment)):
                raise ValueError(cursor)
        except (ValueError, TypeError, binascii.Error, RecursionError) as exc:
            raise NotFound(self.invalid_cursor_message) from exc
        return bool(backwards), (block, segment)

    # what the schema says of it
    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            {
                "name": "cursor",
                "required": False,
                "in": "query",
                "description": "Where to go on, as `next` or `previous` said.",
                "schema": {"type": "string"},
            },
            {
                "name": "page_size",
                "required": False,
                "in": "query",
                "description": f"Sentences per page, at most {self.max_page_size}.",
                "schema": {"type": "integer"},
            },
        ]
