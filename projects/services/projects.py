"""Writes on the book itself: metadata, voice, what is included."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from projects import notify
from projects.models import Document, Project, Voice
from projects.services.recipes import project_recipes_rewrite

EDITABLE = [
    "title",
    "subtitle",
    "authors",
    "translator",
    "narrator",
    "language",
    "series",
    "series_position",
    "publisher",
    "year",
    "rights",
    "isbn",
    "description",
    "narration",
    "rules",
]


class VoiceCannotSpeak(Exception):
    """Raised when a voice does not speak the book's language; the message names what can."""


@transaction.atomic
def project_update(project: Project, **changes: Any) -> Project:
    """Change metadata. A change of language rewrites the recipes, since it can be heard.

    Raises ValueError for a field that is not editable.
    """
    if unknown := set(changes) - set(EDITABLE):
        raise ValueError(f"not editable: {sorted(unknown)}")
    language_before = Project.objects.select_for_update(no_key=True).get(pk=project.pk).language
    for name, value in changes.items():
        setattr(project, name, value)
    project.save(update_fields=list(changes))
    if project.language != language_before:
        project_recipes_rewrite(project)
    notify.project_changed(project.public_id, "project")
    return project


@transaction.atomic
def project_set_voice(project: Project, voice: Voice) -> int:
    """Let another voice narrate; the number of sentences whose recipe changed. Their takes stay, stale.

    Raises VoiceCannotSpeak.
    """
    if not voice.speaks(project.language):
        others = [
            v.name for v in Voice.objects.filter(project=None, retired_at=None) if v.speaks(project.language)
        ]
        raise VoiceCannotSpeak(
            _("%(voice)s does not speak %(language)s.") % {"voice": voice.name, "language": project.language}
            + " "
            + (
                _("These voices do: %(voices)s.") % {"voices": ", ".join(others[:8])}
                if others
                else _("No installed voice does yet.")
            )
        )
    if not project.narrator or (project.voice and project.narrator == project.voice.name):
        project.narrator = voice.name
    project.voice = voice
    project.save(update_fields=["voice", "narrator"])
    changed = project_recipes_rewrite(project)
    notify.project_changed(project.public_id, "project")
    return changed


@transaction.atomic
def document_include(document: Document, included: bool) -> None:
    """Take a chapter into the audiobook or leave it out; the reason it was left out stays known."""
    Document.objects.filter(pk=document.pk).update(included=included, version=F("version") + 1)
    notify.project_changed(document.project.public_id, "documents")


@transaction.atomic
def document_update(
    document: Document, *, title: str | None = None, included: bool | None = None
) -> Document:
    """Rename a chapter, take it into the audiobook or leave it out; what is None stays."""
    if title is not None and title != document.title:
        Document.objects.filter(pk=document.pk).update(title=title, version=F("version") + 1)
        notify.project_changed(document.project.public_id, "documents")
    if included is not None and included != document.included:
        document_include(document, included)
    document.refresh_from_db(fields=["title", "included", "version"])
    return document
