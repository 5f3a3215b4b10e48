"""A parsed manuscript becomes a project: whole or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import models, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.roles import Role
from projects.importers.base import ParsedBlock, ParsedBook, ParsedChapter
from projects.models import Block, Document, Membership, Project, Segment, Voice
from projects.ordering import key_between, keys_spread
from projects.recipe import recipe, spoken_digest
from projects.services.recipes import voicing
from projects.text.estimate import estimated_ms, words_count
from projects.text.normalise import FRONTEND_REV
from projects.text.segment import SegmentDraft, boundary_between, segment_block

BATCH = 500  # rows per INSERT
BookDraft = list[list[list[SegmentDraft]]]  # chapters, blocks, sentences


class TextLost(Exception):
    """Raised when the segments of a block do not join to its source text exactly. Nothing is imported then."""


@dataclass(slots=True)
class _Defaults:
    language: str
    voice: Voice | None


def cover_key(project: Project, data: bytes, content_type: str) -> str:
    """Where a cover lies: content-addressed within its project."""
    extension = {"image/png": "png", "image/jpeg": "jpg"}.get(content_type, "img")
    return f"p/{project.public_id}/covers/{hashlib.sha256(data).hexdigest()}.{extension}"


def language_chosen(book: ParsedBook, language: str = "") -> str:
    """The language a book is imported in: what the person said, else what the file says, else English."""
    return (language or book.language or "en")[:35]


def book_draft(book: ParsedBook, language: str) -> BookDraft:
    """Every chapter's every block in sentences, before any row is written. Raises TextLost.

    Takes seconds for a long novel; so it runs outside the transaction that other writers wait for.
    """
    return [
        [block_draft(block, block.language or chapter.language or language) for block in chapter.blocks]
        for chapter in book.chapters
    ]


def block_draft(block: ParsedBlock, language: str) -> list[SegmentDraft]:
    """One block in sentences. Raises TextLost if they do not join to its text exactly."""
    drafts = segment_block(
        block.kind,
        block.text,
        language=language,
        spans=block.spans,
        spoken=block.spoken,
        skip_reason=block.skip_reason,
    )
    if "".join(draft.text + draft.separator for draft in drafts) != block.text:
        raise TextLost(block.source or block.text[:80])
    return drafts


def _fitting(model: type[models.Model], **values: Any) -> dict[str, Any]:
    """Text cut to what its column holds: a file may claim a title of any length."""
    limits = {name: getattr(model._meta.get_field(name), "max_length", None) for name in values}
    return {name: v[: limits[name]] if isinstance(v, str) else v for name, v in values.items()}


@transaction.atomic
def project_create(
    book: ParsedBook,
    *,
    owner: User,
    voice: Voice | None,
    language: str = "",
    drafts: BookDraft | None = None,
) -> Project:
    """Create a project with all its chapters from a parsed manuscript. Raises TextLost.

    `language` overrides what the file says; `drafts` is what `book_draft` made of the book in that language. The cover
    is put into storage before the rows are committed; should the transaction fail, an unreferenced object is all that
    is left.
    """
    language = language_chosen(book, language)
    if drafts is None:
        drafts = book_draft(book, language)
    project = Project.objects.create(
        authors=list(book.authors),
        voice=voice,
        **_fitting(
            Project,
            title=book.title or _("Untitled"),
            subtitle=book.subtitle,
            translator=book.translator,
            language=language,
            series=book.series,
            series_position=book.series_position,
            publisher=book.publisher,
            year=book.year,
            rights=book.rights,
            isbn=book.isbn,
            description=book.description,
            narrator=voice.name if voice else "",
        ),
    )
    Membership.objects.create(project=project, user=owner, role=Role.OWNER)
    if book.cover:
        key = cover_key(project, book.cover, book.cover_type)
        if not default_storage.exists(key):
            default_storage.save(key, ContentFile(book.cover))
        project.cover_key = key
        project.save(update_fields=["cover_key"])
    defaults = _Defaults(project.language, voice)
    for key, chapter, drafted in zip(keys_spread(len(book.chapters)), book.chapters, drafts, strict=True):
        _chapter_create(project, chapter, drafted, key, defaults)
    return project


@transaction.atomic
def chapter_add(project: Project, chapter: ParsedChapter, *, at_start: bool) -> Document:
    """Put one more chapter in front of all others, or behind them. Raises TextLost."""
    # one order key at a time; read under the lock, for its voice may have changed since
    project = Project.objects.select_for_update().get(pk=project.pk)
    keys = project.documents.order_by("order_key").values_list("order_key", flat=True)
    key = key_between(None, keys.first()) if at_start else key_between(keys.last(), None)
    drafted = [block_draft(b, b.language or chapter.language or project.language) for b in chapter.blocks]
    return _chapter_create(project, chapter, drafted, key, _Defaults(project.language, project.voice))


def _chapter_create(
    project: Project,
    chapter: ParsedChapter,
    drafted: list[list[SegmentDraft]],
    order_key: str,
    defaults: _Defaults,
) -> Document:
    document = Document.objects.create(
        project=project,
        order_key=order_key,
        kind=chapter.kind,
        depth=chapter.depth,
        included=chapter.included,
        **_fitting(Document, title=chapter.title, language=chapter.language, exclusion_reason=chapter.reason),
    )
    keys = keys_spread(len(chapter.blocks))
    blocks = Block.objects.bulk_create(
        [
            Block(
                document=document,
                order_key=key,
                kind=block.kind,
                source_text=block.text,
                **_fitting(
                    Block,
                    source_ref=block.source,
                    page=block.page,
                    language=block.language,
                    skip_reason=block.skip_reason,
                ),
            )
            for key, block in zip(keys, chapter.blocks, strict=True)
        ],
        batch_size=BATCH,
    )
    segments: list[Segment] = []
    for place, (row, block) in enumerate(zip(blocks, chapter.blocks, strict=True)):
        # what is heard next decides the pause: a note that is not read must not stretch it, a scene break must
        heard = (b for b in chapter.blocks[place + 1 :] if b.kind == "scene_break" or not b.skip_reason)
        following = next(heard, None)
        segments += _segments(document, row, block, following, drafted[place], defaults)
    Segment.objects.bulk_create(segments, batch_size=BATCH)
    return document


def _segments(
    document: Document,
    row: Block,
    block: ParsedBlock,
    following: ParsedBlock | None,
    drafts: list[SegmentDraft],
    defaults: _Defaults,
) -> list[Segment]:
    language = block.language or document.language or defaults.language
    rows = []
    for key, draft in zip(keys_spread(len(drafts)), drafts, strict=True):
        wanted = ""
        if defaults.voice is not None and draft.spoken:
            wanted = recipe(
                voicing(defaults.voice),
                spoken=draft.spoken,
                language=draft.language or language,
                direction="",
            )
        rows.append(
            Segment(
                document=document,
                block=row,
                order_key=key,
                text=draft.text,
                separator=draft.separator,
                source_start=draft.start,
                source_end=draft.end,
                spans=[[s.start, s.end, s.role, s.value] for s in draft.spans],
                boundary=draft.boundary,
                spoken=draft.spoken,
                spoken_digest=spoken_digest(draft.spoken),
                frontend_rev=FRONTEND_REV,
                language=draft.language,
                recipe=wanted,
                estimated_ms=estimated_ms(draft.spoken),
                words=words_count(draft.spoken),
            )
        )
    if rows:
        dialogue = following is not None and _opens_quotation(block.text) and _opens_quotation(following.text)
        rows[-1].boundary = boundary_between(
            block.kind, following.kind if following else None, dialogue=dialogue
        )
    return rows


def _opens_quotation(text: str) -> bool:
    """A paragraph that begins with speech: two such in a row are a turn of dialogue."""
    return text.lstrip()[:1] in '“"«„‘「『—–' if text.strip() else False
