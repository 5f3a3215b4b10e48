"""A parsed book as plain data: what `inspect` prints and what a preview shows before anything is saved."""

from typing import Any, BinaryIO

from projects.text.segment import segment_block
from projects.text.spans import Span

from .base import ParsedBlock, ParsedBook, ParsedChapter
from .registry import LIMIT_BYTES, book_parse

_KINDS = {"subheading": "heading", "part_title": "heading"}


def book_report(book: ParsedBook, *, language: str = "") -> dict[str, Any]:
    """The book as JSON-ready data. `language` overrides what the book says.

    `text` of blocks and segments is what a listener meets: marks of notes and the like, which are skipped
    within a sentence, are taken out of it and listed under `skipped`. Kinds of headings are all "heading",
    told apart by `role`.
    """
    said = language or book.language
    return {
        "title": book.title,
        "authors": list(book.authors),
        "language": said,
        "publisher": book.publisher,
        "description": book.description,
        "subtitle": book.subtitle,
        "translator": book.translator,
        "series": book.series,
        "series_position": book.series_position,
        "year": book.year,
        "isbn": book.isbn,
        "rights": book.rights,
        "cover": book.cover_type,
        "warnings": list(book.warnings),
        "coverage": round(book.coverage, 5),
        "left_out": [
            {"reason": x.reason, "count": x.count, "sample": x.sample, "source": x.source}
            for x in book.left_out
        ],
        "lexicon": [
            {"grapheme": g, "says": s, "alphabet": a, "language": tag} for g, s, a, tag in book.lexicon
        ],
        "chapters": [_chapter(c, said, override=bool(language)) for c in book.chapters],
    }


def file_report(
    file: BinaryIO, name: str, *, language: str = "", limit_bytes: int = LIMIT_BYTES
) -> dict[str, Any]:
    """Parse a file and report on it. Raises ImportRefused."""
    return book_report(book_parse(file, name, limit_bytes=limit_bytes), language=language)


def _chapter(chapter: ParsedChapter, language: str, *, override: bool) -> dict[str, Any]:
    own = chapter.language if chapter.language and not override else language
    blocks = [_block(b, own) for b in chapter.blocks]
    return {
        "title": chapter.title,
        "kind": chapter.kind,
        "included": chapter.included,
        "reason": chapter.reason,
        "depth": chapter.depth,
        "language": own,
        "words": sum(len(b["text"].split()) for b in blocks if any(s["spoken"] for s in b["segments"])),
        "blocks": blocks,
    }


def _block(block: ParsedBlock, language: str) -> dict[str, Any]:
    own = block.language or language
    drafts = segment_block(
        block.kind,
        block.text,
        language=own,
        spans=block.spans,
        spoken=block.spoken,
        skip_reason=block.skip_reason,
    )
    segments = []
    for draft in drafts:
        segment: dict[str, Any] = {
            "text": _shown(draft.text, draft.spans),
            "spoken": draft.spoken,
            "boundary": draft.boundary,
        }
        if segment["text"] != draft.text:
            segment["printed"] = draft.text
            segment["skipped"] = [
                {"text": draft.text[s.start : s.end], "reason": s.value}
                for s in draft.spans
                if s.role == "skip"
            ]
        if not segment["text"].strip():
            segment["text"], segment["spoken"] = draft.text, ""
        if draft.language:
            segment["language"] = draft.language
        segments.append(segment)
    shown: dict[str, Any] = {
        "kind": _KINDS.get(block.kind, block.kind),
        "role": block.kind,
        "text": _shown(block.text, block.spans) or block.text,
        "spoken": any(s["spoken"] for s in segments),
        "skip_reason": block.skip_reason,
        "source": block.source,
        "page": block.page,
        "segments": segments,
    }
    if block.language:
        shown["language"] = block.language
    return shown


def _shown(text: str, spans: tuple[Span, ...]) -> str:
    """A text without the stretches that are skipped within it, unless nothing would be left."""
    skips = [s for s in spans if s.role == "skip"]
    if not skips:
        return text
    for span in sorted(skips, key=lambda s: -s.start):
        text = text[: span.start] + text[span.end :]
    return text.strip()
