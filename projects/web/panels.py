"""Where rooms above hang what they show on a book's pages: this room never imports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from projects.models import Project

Context = Callable[[Project, bool], dict[str, Any]]
Html = Callable[[Project, bool, str], str]

_contexts: list[Context] = []
_htmls: list[Html] = []


def panel_register(*, context: Context, html: Html) -> None:
    """Add names to the context of a book's pages, and HTML to what is pushed when something of the book changed.

    Both get (project, may_edit); `html` also what changed: "conversion", "finished", "exports", "documents", "project".
    """
    if context not in _contexts:
        _contexts.append(context)
        _htmls.append(html)


def panel_context(project: Project, may_edit: bool) -> dict[str, Any]:
    """What the rooms above add to a page."""
    found: dict[str, Any] = {}
    for context in _contexts:
        found |= context(project, may_edit)
    return found


def panel_html(project: Project, may_edit: bool, what: str) -> str:
    """What the rooms above push."""
    return "".join(html(project, may_edit, what) for html in _htmls)
