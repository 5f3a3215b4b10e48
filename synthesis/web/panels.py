"""What this room hangs on a book's pages: the conversion that runs, the exports, their delivery check."""

from __future__ import annotations

from typing import Any

from django.template.loader import render_to_string

from accounts.roles import Action, may
from projects.models import Project
from projects.web.panels import panel_register
from synthesis.revisions import export_checked, exports_of
from synthesis.selectors import conversion_shown
from synthesis.web.checkwords import check_shown

PUSHED = 5  # newest revisions that a push brings


def context(project: Project, role: str | None) -> dict[str, Any]:
    """Names for the page."""
    return {"conversion": conversion_shown(project)}


def html(project: Project, role: str | None, what: str) -> str:
    """What is pushed when something of the book changed."""
    if what in ("conversion", "finished"):
        return conversion_html(project, may(role, Action.CONVERT))
    if what == "exports":
        return "".join(
            render_to_string(
                "synthesis/_export_row.html",
                {"export": row, "project": project, "may_edit": may(role, Action.EXPORT)},
            )
            for row in exports_of(project, PUSHED)
        )
    if what == "check":
        export = export_checked(project)
        context = {
            "check": check_shown(export) if export else None,
            "project": project,
            "may_edit": may(role, Action.EXPORT),
        }
        return render_to_string("synthesis/_check.html", context)
    return ""


def conversion_html(project: Project, may_edit: bool) -> str:
    """The conversion panel, or its empty place."""
    row = conversion_shown(project)
    if row is None:
        return '<div id="conversion"></div>'
    return render_to_string(
        "synthesis/_conversion.html", {"conversion": row, "project": project, "may_edit": may_edit}
    )


def hang() -> None:
    """Register with the room below; called once at start."""
    panel_register(context=context, html=html)
