"""Where rooms above hang what they show on a book's pages: this room never imports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projects.models import Project

Role = str | None  # the viewer's in the book
Context = Callable[[Project, Role], dict[str, Any]]
Html = Callable[[Project, Role, str], str]

_contexts: list[Context] = []
_htmls: list[Html] = []


def panel_register(*, context: Context, html: Html) -> None:
    """Add names to the context of a book's pages, and HTML to what is pushed when something of the book changed.

    Both get (project, role); `html` also what changed: "conversion", "finished", "exports", "documents", "project".
    """
    if context not in _contexts:
        _contexts.append(context)
        _htmls.append(html)


def panel_context(project: Project, role: Role) -> dict[str, Any]:
    """What the rooms above add to a page."""
    found: dict[str, Any] = {}
    for context in _contexts:
        found |= context(project, role)
    return found


def panel_html(project: Project, role: Role, what: str) -> str:
    """What the rooms above push."""
    return "".join(html(project, role, what) for html in _htmls)
