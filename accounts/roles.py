"""What each role in a project may do. Pure: no Django."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A person's part in one project."""

    OWNER = "owner"
    PRODUCER = "producer"
    EDITOR = "editor"
    PROOFER = "proofer"
    VIEWER = "viewer"


class Action(StrEnum):
    """What a door asks permission for."""

    VIEW = "view"  # see the book, hear its takes
    REVIEW = "review"  # comments, marks, pickups
    EDIT = "edit"  # text, pauses, choice of takes
    CONVERT = "convert"  # spend compute
    CAST = "cast"  # voices, reading rules, what is included
    EXPORT = "export"  # make and fetch deliverables
    MANAGE = "manage"  # metadata, members, import
    DELETE = "delete"  # the project itself


_VIEWER = frozenset({Action.VIEW})
_PROOFER = _VIEWER | {Action.REVIEW}
_EDITOR = _PROOFER | {Action.EDIT, Action.CONVERT}
_PRODUCER = _EDITOR | {Action.CAST, Action.EXPORT, Action.MANAGE}
_OWNER = _PRODUCER | {Action.DELETE}

ALLOWED: dict[Role, frozenset[Action]] = {
    Role.VIEWER: _VIEWER,
    Role.PROOFER: _PROOFER,
    Role.EDITOR: _EDITOR,
    Role.PRODUCER: _PRODUCER,
    Role.OWNER: _OWNER,
}


def may(role: str | None, action: Action) -> bool:
    """Whether a person with this role may act so; no role, or an unknown one, may nothing."""
    try:
        return action in ALLOWED[Role(role)] if role else False
    except ValueError:
        return False
