"""Rows for tests, made through the services where there is one. Plain functions with realistic defaults."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

from accounts.models import User
from accounts.roles import Role
from projects.importers.base import ParsedBlock, ParsedBook, ParsedChapter
from projects.models import Document, ManuscriptImport, Membership, Project, Segment, Take, Voice
from projects.recipe import fingerprint
from projects.services.books import project_create
from projects.services.segments import take_choose
from synthesis.models import Conversion, Export
from synthesis.services.conversions import Only, Scope, conversion_start

_numbers = itertools.count(1)

CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "The Ferry",
        (
            "The ferry left at noon. Nobody had counted the lamps. Nobody ever did.",
            "“Have you seen the keeper?” she asked. “Not since Tuesday,” said the boy.",
        ),
    ),
    (
        "The Lamp Room",
        (
            "Seven lamps stood on the shelf. One of them was warm.",
            "She wrote the number down, and then she wrote it down again.",
        ),
    ),
)


def user_make(username: str = "", **fields: Any) -> User:
    """A person; superuser=True makes an administrator. The password is "password"."""
    name = username or f"person{next(_numbers)}"
    if fields.pop("superuser", False):
        return User.objects.create_superuser(name, f"{name}@example.org", "password", **fields)
    return User.objects.create_user(name, f"{name}@example.org", "password", **fields)


def voice_make(name: str = "Ada", **fields: Any) -> Voice:
    """A voice of the studio that speaks English; a second call makes another one."""
    defaults: dict[str, Any] = {
        "engine": "fake",
        "model": "fake",
        "model_revision": "1",
        "engine_voice": f"voice{next(_numbers)}",
        "languages": ["en"],
        "pool": "cpu",
    }
    return Voice.objects.create(name=name, **{**defaults, **fields})


def book_make(
    title: str = "The Salt Ledger",
    chapters: Sequence[tuple[str, Sequence[str]]] = CHAPTERS,
    *,
    headings: bool = True,
    **fields: Any,
) -> ParsedBook:
    """A parsed manuscript: (title, paragraphs) for each chapter, each under a heading unless told otherwise."""
    parsed = tuple(
        ParsedChapter(
            title=name,
            kind="chapter",
            blocks=(
                *((ParsedBlock("heading", name),) if headings else ()),
                *(
                    ParsedBlock("paragraph", text, source=f"paragraph {n}")
                    for n, text in enumerate(paragraphs, 1)
                ),
            ),
        )
        for name, paragraphs in chapters
    )
    return ParsedBook(
        **{
            "title": title,
            "authors": ("Mara Quill",),
            "language": "en",
            "publisher": "Harbour Press",
            "chapters": parsed,
            **fields,
        }
    )


def project_make(
    owner: User | None = None,
    *,
    voice: Voice | None = None,
    book: ParsedBook | None = None,
    **book_fields: Any,
) -> Project:
    """A project of two short chapters, owned and with a voice (a new person and voice unless given)."""
    return project_create(
        book or book_make(**book_fields), owner=owner or user_make(), voice=voice or voice_make()
    )


def member_add(project: Project, role: str = Role.VIEWER, user: User | None = None) -> User:
    """Give a person (a new one unless given) a role in a project; the person."""
    person = user or user_make()
    Membership.objects.create(project=project, user=person, role=role)
    return person


def chapters_of(project: Project) -> list[Document]:
    """A project's chapters in order."""
    return list(project.documents.order_by("order_key"))


def segments_of(target: Project | Document) -> list[Segment]:
    """The sentences of a book or chapter in reading order."""
    rows = Segment.objects.in_order().select_related("document__project__voice", "block", "voice")
    if isinstance(target, Project):
        return list(rows.filter(document__project=target))
    return list(rows.filter(document=target))


def take_make(segment: Segment, *, choose: bool = True, variant: int = 0, **fields: Any) -> Take:
    """A take of a sentence as it stands: one second, half of it speech. Its audio is not put into storage."""
    number = segment.takes.count() + 1
    seed = f"{segment.public_id}/{variant}/{number}"
    sha256 = hashlib.sha256(seed.encode()).hexdigest()
    prefix = f"p/{segment.document.project.public_id}/takes/{fingerprint(segment.recipe, variant)}/{sha256}"
    defaults: dict[str, Any] = {
        "number": number,
        "recipe": segment.recipe,
        "variant": variant,
        "fingerprint": fingerprint(segment.recipe, variant),
        "spoken": segment.spoken,
        "spoken_digest": segment.spoken_digest,
        "audio_key": f"{prefix}.flac",
        "peaks_key": f"{prefix}.dat",
        "sha256": sha256,
        "size_bytes": 24_000,
        "samples": 24_000,
        "rate_hz": 24_000,
        "speech_start": 6_000,
        "speech_end": 18_000,
        "rms_db": -21.0,
        "peak_db": -6.0,
        "noise_floor_db": -70.0,
        "loudness_lufs": -20.0,
        "voice": segment.voice or segment.document.project.voice,
        "model_revision": "fake@1",
    }
    take = Take.objects.create(segment=segment, **{**defaults, **fields})
    if choose:
        take_choose(segment, take)
        segment.refresh_from_db()
    return take


def takes_make(target: Project | Document) -> list[Take]:
    """A chosen take for every sentence that is read aloud."""
    return [take_make(segment) for segment in segments_of(target) if segment.spoken]


def conversion_make(
    target: Project | Document | Segment, user: User | None = None, *, only: Only = Only.MISSING_STALE
) -> Conversion:
    """A conversion with its jobs, as a click would start it."""
    scope = {Project: Scope.PROJECT, Document: Scope.DOCUMENT, Segment: Scope.SEGMENT}[type(target)]
    conversion = conversion_start(user, scope, target, only=only)
    assert conversion is not None, "nothing to convert"
    return conversion


def export_make(project: Project, user: User | None = None, **fields: Any) -> Export:
    """An export row, waiting unless told otherwise; no file is made."""
    revision = project.exports.count() + 1
    return Export.objects.create(
        project=project, requested_by=user, **{"revision": revision, "preset": Export.Preset.M4B, **fields}
    )


def import_make(user: User, **fields: Any) -> ManuscriptImport:
    """An import row, waiting unless told otherwise; no file is put into storage."""
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "name": f"manuscript{number}.txt",
        "file_key": f"imports/{number}/manuscript.txt",
        "size_bytes": 1_000,
        "sha256": hashlib.sha256(str(number).encode()).hexdigest(),
    }
    return ManuscriptImport.objects.create(user=user, **{**defaults, **fields})
