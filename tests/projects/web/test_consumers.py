"""Live status: who may listen, and what is pushed."""

from __future__ import annotations

import asyncio
import time

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from channels.routing import URLRouter
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError

from projects import notify
from projects.models import Membership
from projects.services.segments import segment_edit_text
from projects.web.urls import websocket_urlpatterns
from tests.factories import chapters_of, project_make, segments_of, user_make

pytestmark = pytest.mark.django_db(transaction=True)


class Socket(ApplicationCommunicator):
    """A page's end of the line. (channels.testing wants daphne, which nothing else here does.)"""

    async def text(self, seconds=5):
        message = await self.receive_output(timeout=seconds)
        assert message["type"] == "websocket.send", message
        return message["text"]

    async def close(self):
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=2)


async def opened(path, user):
    scope = {"type": "websocket", "path": path, "headers": [], "user": user}
    socket = Socket(URLRouter(websocket_urlpatterns), scope)
    await socket.send_input({"type": "websocket.connect"})
    # accepted first, whoever it is: a refused handshake would make the page try for ever
    assert (await socket.receive_output(timeout=5))["type"] == "websocket.accept"
    return socket


@sync_to_async
def book():
    project = project_make()
    return project, project.members.get(), chapters_of(project)[0], segments_of(project)[1]


async def test_a_change_is_pushed_as_html():
    _project, owner, chapter, segment = await book()
    talk = await opened(f"/ws/documents/{chapter.public_id}/", owner)
    await sync_to_async(segment_edit_text)(segment, text="Pushed words.", text_rev=1, user=None)
    html = await talk.text()
    assert f'id="segment-{segment.public_id}"' in html
    assert "Pushed words." in html
    tail = await talk.text()
    assert 'id="meter"' in tail
    assert 'id="stamp"' in tail
    await talk.close()


async def test_a_burst_is_pushed_together():
    _project, owner, chapter, _segment = await book()
    talk = await opened(f"/ws/documents/{chapter.public_id}/", owner)
    ids = await sync_to_async(lambda: [s.pk for s in segments_of(chapter)])()

    @sync_to_async
    def burst():
        for _ in range(100):
            notify.segments_changed(chapter.public_id, ids)

    await burst()
    messages = []
    while True:
        try:
            messages.append(await talk.text(1))
        except TimeoutError:
            break
    assert 1 <= len(messages) <= 20  # the time-out above has ended the consumer already


@pytest.mark.parametrize("who", ["nobody", "stranger"])
async def test_who_may_not_look_is_told_and_closed(who):
    _project, _owner, chapter, _segment = await book()
    user = AnonymousUser() if who == "nobody" else await sync_to_async(user_make)()
    talk = await opened(f"/ws/documents/{chapter.public_id}/", user)
    closed = await talk.receive_output(timeout=5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401 if who == "nobody" else 4404)


async def test_who_lost_the_role_is_closed_at_the_next_push(monkeypatch):
    project, owner, chapter, segment = await book()
    talk = await opened(f"/ws/documents/{chapter.public_id}/", owner)
    await sync_to_async(Membership.objects.filter(project=project).delete)()
    monkeypatch.setattr("projects.web.consumers.ACCESS_S", -1.0)
    await sync_to_async(notify.segments_changed)(chapter.public_id, [segment.pk])
    closed = await talk.receive_output(timeout=5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


async def test_a_push_that_fails_asks_the_page_to_come_back(monkeypatch):
    _project, owner, chapter, segment = await book()
    talk = await opened(f"/ws/documents/{chapter.public_id}/", owner)

    def away(*args):
        raise OperationalError("the database is away")

    monkeypatch.setattr("projects.web.consumers.rows_html", away)
    await sync_to_async(notify.segments_changed)(chapter.public_id, [segment.pk])
    closed = await talk.receive_output(timeout=5)
    assert (closed["type"], closed["code"]) == ("websocket.close", 1013)


def test_a_channel_layer_that_swallows_does_not_hold_a_click(monkeypatch):
    class Swallows:
        async def group_send(self, group, message):
            await asyncio.sleep(60)

    monkeypatch.setattr(notify, "get_channel_layer", Swallows)
    begun = time.monotonic()
    notify.library_changed("somebody")
    assert time.monotonic() - begun < 5
