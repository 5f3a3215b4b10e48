"""Live status: what changed is rendered once per process and pushed, coalesced, to every open page."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import get_user
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404
from django.template.loader import render_to_string
from django.utils import translation

from accounts.roles import Action, may
from projects import selectors
from projects.access import access_document, access_project, role_in
from projects.models import Document, Project
from projects.notify import document_group, project_group, user_group
from projects.web.fragments import stamp_html
from projects.web.panels import panel_html
from projects.web.views import library_context, meter_html, rows_html

log = logging.getLogger(__name__)

FRAME_S = 0.05  # changes within so many seconds are pushed together: at most 20 pushes a second and page
ROWS = 200  # sentences in one message
ON_CHAPTER = {"conversion", "finished"}  # of what may change in a book, what a chapter page shows
ACCESS_S = 5.0  # how long a permission once seen is believed


class PushConsumer(AsyncWebsocketConsumer):
    """What the page consumers share: who may look, and coalescing. Nothing is read from the client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups_in: list[str] = []
        self.seen_at = 0.0
        self.flush_task: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        await self.accept()  # first: a refused handshake makes htmx try again for ever
        if not self.scope["user"].is_authenticated:
            await self.close(code=4401)
            return
        try:
            self.groups_in = await database_sync_to_async(self.enter)()
        except Http404:
            await self.close(code=4404)
            return
        self.seen_at = time.monotonic()
        for group in self.groups_in:
            await self.channel_layer.group_add(group, self.channel_name)

    async def disconnect(self, code: int) -> None:
        if self.flush_task:
            self.flush_task.cancel()
        for group in self.groups_in:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Pages only listen; edits go over HTTP."""

    def enter(self) -> list[str]:
        """Check access and return the groups to join. Raises Http404."""
        raise NotImplementedError

    def render(self) -> list[str]:
        """The messages to send for what has gathered. Runs off the event loop; may raise Http404."""
        raise NotImplementedError

    def soon(self) -> None:
        """Push what has gathered, after this frame."""
        if self.flush_task is None or self.flush_task.done():
            self.flush_task = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        await asyncio.sleep(FRAME_S)
        try:
            for message in await database_sync_to_async(self._render_checked)():
                await self.send(text_data=message)
        except (Http404, ObjectDoesNotExist):
            await self.close(code=4404)
            return
        except OSError:
            return  # the page is gone
        except Exception:
            # what had gathered is lost with it (the database away, say): the page connects again and catches up
            log.warning("a push failed; its page is asked to come back", exc_info=True)
            await self.close(code=1013)  # try again later (RFC 6455's registry)
            return
        if self.gathered():
            self.flush_task = asyncio.create_task(self._flush())

    def gathered(self) -> bool:
        """Whether more has come in while the last was rendered."""
        return False

    def _render_checked(self) -> list[str]:
        if time.monotonic() - self.seen_at > ACCESS_S:
            session = self.scope.get("session")
            if session is not None:
                user = get_user(_Request(session))  # type: ignore[arg-type]
                if not user.is_authenticated:
                    raise Http404
            self.enter()
            self.seen_at = time.monotonic()
        with translation.override(self._language()):
            return self.render()

    def _language(self) -> str:
        for name, value in self.scope.get("headers", []):
            if name == b"cookie" and b"django_language=" in value:
                code = value.split(b"django_language=")[1].split(b";")[0].decode("ascii", "ignore")
                if translation.check_for_language(code):
                    return code
        return translation.get_language() or "en"


class _Request:
    """What django.contrib.auth.get_user wants of a request."""

    def __init__(self, session: Any) -> None:
        self.session = session.__class__(
            session.session_key
        )  # read anew; the wrapped class, not the lazy one
        self.META: dict[str, str] = {}


class DocumentConsumer(PushConsumer):
    """Pushes a chapter's changed sentences, its figures, and the book's conversion."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.changed: set[int] = set()
        self.whats: set[str] = set()

    def enter(self) -> list[str]:
        public_id: UUID = self.scope["url_route"]["kwargs"]["public_id"]
        document = access_document(self.scope["user"], public_id)
        return [document_group(document.public_id), project_group(document.project.public_id)]

    async def segments_changed(self, event: dict[str, Any]) -> None:
        self.changed.update(event["ids"])
        self.soon()

    async def project_changed(self, event: dict[str, Any]) -> None:
        self.whats.add(event["what"])
        self.soon()

    def gathered(self) -> bool:
        return bool(self.changed or self.whats)

    def render(self) -> list[str]:
        public_id: UUID = self.scope["url_route"]["kwargs"]["public_id"]
        stamp = selectors.stamp_now()
        document = Document.objects.select_related("project__voice").get(public_id=public_id)
        ids, self.changed = self.changed, set()
        whats, self.whats = self.whats, set()
        wanted = sorted(ids)
        found = []
        for begin in range(0, len(wanted), ROWS):
            found.append(
                rows_html(
                    document, selectors.segments_of(document).filter(pk__in=wanted[begin : begin + ROWS])
                )
            )
        tail = meter_html(document) if ids else ""
        if whats & ON_CHAPTER:
            role = role_in(self.scope["user"], document.project)
            tail += "".join(panel_html(document.project, role, what) for what in sorted(whats & ON_CHAPTER))
        return [*found, tail + stamp_html(stamp)]


class ProjectConsumer(PushConsumer):
    """Pushes a book's chapter list, its conversion and its exports."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.whats: set[str] = set()

    def enter(self) -> list[str]:
        project = access_project(self.scope["user"], self.scope["url_route"]["kwargs"]["public_id"])
        return [project_group(project.public_id)]

    async def project_changed(self, event: dict[str, Any]) -> None:
        self.whats.add(event["what"])
        self.soon()

    def gathered(self) -> bool:
        return bool(self.whats)

    def render(self) -> list[str]:
        whats, self.whats = self.whats, set()
        project = Project.objects.get(public_id=self.scope["url_route"]["kwargs"]["public_id"])
        role = role_in(self.scope["user"], project)
        # one kind of element per message: a parser that saw a <details> first would drop the table rows after it
        messages = [panel_html(project, role, what) for what in sorted(whats)]
        if whats - {"exports", "check"}:
            may_edit = may(role, Action.CAST)
            messages.append(
                "".join(
                    render_to_string(
                        "projects/_document_row.html",
                        {"document": row, "project": project, "may_edit": may_edit},
                    )
                    for row in selectors.documents_of(project)
                )
            )
        return [message for message in messages if message]


class LibraryConsumer(PushConsumer):
    """Pushes a person's imports, and the books that come of them."""

    def enter(self) -> list[str]:
        return [user_group(self.scope["user"].public_id)]

    async def library_changed(self, event: dict[str, Any]) -> None:
        self.soon()

    def render(self) -> list[str]:
        context = library_context(self.scope["user"])
        imports = [
            render_to_string("projects/_import_row.html", {"import": row}) for row in context["imports"]
        ]
        books = [
            render_to_string("projects/_project_row.html", {"project": row}) for row in context["projects"]
        ]
        return [
            message for message in ("".join(books), "".join(imports)) if message
        ]  # <li> and <tr> never mixed
