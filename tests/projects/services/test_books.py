"""A parsed manuscript becomes rows: whole, fitting, with the right pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from projects.importers.base import ParsedBlock, ParsedChapter
from projects.models import Project, Segment
from projects.services import books
from projects.services.books import TextLost, project_create
from tests.factories import book_make, segments_of, user_make, voice_make

pytestmark = pytest.mark.django_db


def test_what_a_file_claims_is_cut_to_what_fits():
    long = "x" * 3000
    book = replace(
        book_make(), title=long, subtitle=long, year=long, isbn=long, series_position=long, publisher=long
    )
    project = project_create(book, owner=user_make(), voice=voice_make(), language="")
    project.refresh_from_db()
    assert len(project.title) == 500
    assert project.full_clean(exclude=["voice", "authors", "rules", "cover_key"]) is None


def test_lost_words_leave_nothing_behind(monkeypatch):
    real = books.segment_block
    monkeypatch.setattr(books, "segment_block", lambda *a, **k: real(*a, **k)[:-1])
    with pytest.raises(TextLost):
        project_create(book_make(), owner=user_make(), voice=None)
    assert not Project.objects.exists()


def test_a_note_that_is_not_read_does_not_stretch_the_pause():
    blocks = (
        ParsedBlock("paragraph", "One line."),
        ParsedBlock("note", "A note nobody reads.", skip_reason="note"),
        ParsedBlock("paragraph", "Another line."),
        ParsedBlock("scene_break", "* * *", skip_reason="ornament"),
        ParsedBlock("paragraph", "The last."),
    )
    book = replace(book_make(), chapters=(ParsedChapter(title="One", kind="chapter", blocks=blocks),))
    project = project_create(book, owner=user_make(), voice=voice_make())
    by_text = {s.text: s.boundary for s in segments_of(project)}
    assert by_text["One line."] == "paragraph"
    assert by_text["Another line."] == "scene_break"


def test_every_block_joins_to_its_source():
    project = project_create(book_make(), owner=user_make(), voice=voice_make())
    for document in project.documents.all():
        for block in document.blocks.all():
            parts = Segment.objects.filter(block=block).order_by("order_key")
            assert "".join(s.text + s.separator for s in parts) == block.source_text
