"""Opening and closing credits: written from the book's data as chapters that people then edit like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.db import transaction
from django.utils.translation import gettext as _

from projects import notify
from projects.importers.base import ParsedBlock, ParsedChapter
from projects.models import Document, Project
from projects.services.books import chapter_add
from synthesis.audio.timeline import BookPlan
from synthesis.exporters.credits import closing_credits, opening_credits

_KINDS: dict[str, Callable[[BookPlan], tuple[str, ...]]] = {
    Document.Kind.OPENING_CREDITS: opening_credits,
    Document.Kind.CLOSING_CREDITS: closing_credits,
}


class CreditsImpossible(Exception):
    """Raised when the book's data say too little for credits; the message says what to enter."""


@transaction.atomic
def credits_write(project: Project) -> list[Document]:
    """Write the credits that the book lacks, each a chapter of its own; the new chapters, none if both are there.

    What is there is never rewritten: it may have been edited, and its takes chosen. Safe to call twice.
    Raises CreditsImpossible.
    """
    Project.objects.select_for_update().get(pk=project.pk)
    if not project.title.strip() or not [name for name in project.authors if name.strip()]:
        raise CreditsImpossible(_("Credits name the title and the author. Enter both first."))
    there = set(project.documents.values_list("kind", flat=True))
    titles = {
        Document.Kind.OPENING_CREDITS: _("Opening credits"),
        Document.Kind.CLOSING_CREDITS: _("Closing credits"),
    }
    made = []
    for kind, sentences in _KINDS.items():
        if kind in there:
            continue
        text = " ".join(_sentences(project, sentences))
        chapter = ParsedChapter(
            title=titles[Document.Kind(kind)],
            kind=kind,
            blocks=(ParsedBlock("paragraph", text, source="credits"),),
            language=project.language,
        )
        made.append(chapter_add(project, chapter, at_start=kind == Document.Kind.OPENING_CREDITS))
    if made:
        notify.project_changed(project.public_id, "documents")
    return made


def _sentences(project: Project, sentences: Callable[[BookPlan], tuple[str, ...]]) -> Iterable[str]:
    """The words of the credits. The patterns are English; a book in another language gets its names alone, to which a
    person adds the words around them: better than a foreign sentence nobody asked for."""
    if project.language.split("-")[0].lower() == "en":
        return sentences(
            BookPlan(
                project.title,
                (),
                subtitle=project.subtitle,
                authors=tuple(project.authors),
                narrator=project.narrator,
                translator=project.translator,
                publisher=project.publisher,
                year=project.year,
                series=project.series,
                series_position=project.series_position,
                copyright=project.rights,
            )
        )
    names = [project.title, ", ".join(project.authors), project.translator, project.narrator]
    return [f"{' '.join(name.split())}." for name in names if name.strip()]
