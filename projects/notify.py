"""After commit: tell open pages which rows changed. Fire and forget: a push that is lost is caught up on reconnect."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction

log = logging.getLogger(__name__)

SEND_S = 0.5  # a click must not wait for a channel layer that swallows what is sent


def document_group(public_id: UUID | str) -> str:
    """The channel group of a chapter's open pages."""
    return f"doc.{public_id}"


def project_group(public_id: UUID | str) -> str:
    """The channel group of a book's open pages."""
    return f"project.{public_id}"


def user_group(public_id: UUID | str) -> str:
    """The channel group of a person's library pages."""
    return f"user.{public_id}"


def _send(group: str, message: dict[str, Any]) -> None:
    layer = get_channel_layer()
    if layer is None:
        return
    try:
        async_to_sync(_within)(layer, group, message)
    except Exception:
        # Redis away: the rows are committed, pages catch up when they reconnect
        log.warning("could not tell %s", group, exc_info=True)


async def _within(layer: Any, group: str, message: dict[str, Any]) -> None:
    await asyncio.wait_for(layer.group_send(group, message), SEND_S)


def segments_changed(document: UUID | str, ids: Iterable[int]) -> None:
    """Rows of a chapter changed."""
    changed = list(ids)
    if changed:
        message = {"type": "segments.changed", "ids": changed}
        transaction.on_commit(lambda: _send(document_group(document), message))


def project_changed(project: UUID | str, what: str) -> None:
    """Something of a book changed: "conversion", "exports", "documents"."""
    transaction.on_commit(lambda: _send(project_group(project), {"type": "project.changed", "what": what}))


def library_changed(user: UUID | str) -> None:
    """An import of a person moved on."""
    transaction.on_commit(lambda: _send(user_group(user), {"type": "library.changed"}))
