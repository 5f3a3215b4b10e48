"""Recipes as stored: what each segment wants to sound like. The one place that rewrites them."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from projects import notify
from projects.models import Project, Segment, Voice
from projects.recipe import Voicing, recipe
from projects.work import work_added

CHUNK = 500  # rows per UPDATE


def voicing(voice: Voice) -> Voicing:
    """A voice as a recipe sees it."""
    return Voicing(
        engine=voice.engine,
        model=voice.model,
        revision=voice.model_revision,
        voice=voice.engine_voice,
        voice_revision=voice.revision,
        parameters=voice.parameters,
        speed=voice.speed,
    )


def language_of(segment: Segment) -> str:
    """The language a segment is spoken in: its own, its block's, its chapter's, the book's."""
    return (
        segment.language
        or segment.block.language
        or segment.document.language
        or segment.document.project.language
        or "en"
    )


def voice_of(segment: Segment) -> Voice | None:
    """The voice a segment is spoken by: its own or the book's."""
    return segment.voice or segment.document.project.voice


def recipe_of(segment: Segment) -> str:
    """The recipe of a segment as it stands; "" while it has no voice or no words."""
    voice = voice_of(segment)
    if voice is None or not segment.spoken:
        return ""
    return recipe(
        voicing(voice), spoken=segment.spoken, language=language_of(segment), direction=segment.direction
    )


@transaction.atomic
def recipes_rewrite(segments: QuerySet[Segment]) -> int:
    """Store anew the recipes of these segments, after a deliberate act; the number that changed.

    Chunked, so that a whole book neither fills memory nor holds one long statement's worth of parameters. Each chunk
    is locked, in the order of keys, and then read: an edit that comes between would else be given the recipe of its
    former words.
    """
    changed = 0
    keys = list(segments.order_by("pk").values_list("pk", flat=True))
    for begin in range(0, len(keys), CHUNK):
        rows = Segment.objects.filter(pk__in=keys[begin : begin + CHUNK]).order_by("pk")
        list(rows.select_for_update().values_list("pk"))
        chunk = rows.select_related("document__project__voice", "block", "voice")
        moved: dict[object, list[int]] = {}
        updates = []
        for segment in chunk:
            wanted = recipe_of(segment)
            if wanted != segment.recipe:
                segment.recipe = wanted
                updates.append(segment)
                moved.setdefault(segment.document.public_id, []).append(segment.pk)
        if updates:
            Segment.objects.bulk_update(updates, ["recipe"])
            Segment.objects.filter(pk__in=[s.pk for s in updates]).update(
                version=F("version") + 1, changed_at=Now()
            )
        for document, ids in moved.items():
            notify.segments_changed(document, ids)  # type: ignore[arg-type]
        changed += len(updates)
    if changed:
        work_added("aims")  # what waits to be made follows
    return changed


def project_recipes_rewrite(project: Project) -> int:
    """All of a book's segments."""
    return recipes_rewrite(Segment.objects.filter(document__project=project))
