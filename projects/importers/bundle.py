"""A zip archive of chapter files: text, Markdown, HTML, Word and the like, in natural order."""

import io
import posixpath
import re
from dataclasses import replace
from typing import BinaryIO

from .archive import Archive
from .base import Importer, ImportRefused, ParsedBook, ParsedChapter

MAX_FILES = 2_000
_IGNORED = re.compile(r"(?:^|/)(?:__MACOSX|\.git|\.DS_Store|Thumbs\.db|desktop\.ini|\._|~\$)", re.I)
_TEXTS = (
    ".txt",
    ".text",
    ".md",
    ".markdown",
    ".html",
    ".htm",
    ".xhtml",
    ".docx",
    ".odt",
    ".rtf",
    ".fb2",
    ".pdf",
)


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Order of names as people mean it: chapter2 before chapter10, regardless of case."""
    return [
        (0, int(part), "") if part.isdecimal() else (1, 0, part.casefold())
        for part in re.split(r"(\d+)", name)
        if part
    ]


class BundleImporter:
    """Zip archives that are no book format themselves: each file in them is a chapter, or several."""

    name = "bundle"
    extensions = (".zip",)

    def score(self, head: bytes, name: str) -> float:
        if not head.startswith(b"PK"):
            return 0.0
        names = (
            head[4096:].decode("utf-8", "replace").split("\0")
            if len(head) > 4096
            else head.decode("latin-1").split("\0")
        )
        if any(n.lower().endswith(_TEXTS) for n in names):
            return 0.85 if name.lower().endswith(".zip") else 0.3
        return 0.5 if name.lower().endswith(".zip") else 0.05

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        archive = Archive(file)
        names = sorted(
            (n for n in archive.names if n.lower().endswith(_TEXTS) and not _IGNORED.search(n)),
            key=natural_key,
        )
        readers = _inner()
        single = [n for n in archive.names if n.lower().endswith(".epub") and not _IGNORED.search(n)]
        if not names and len(single) == 1:
            from .epub import EpubImporter

            return EpubImporter().parse(io.BytesIO(archive.read(single[0])), single[0])
        if not names:
            raise ImportRefused("unsupported_format", "The archive holds no file that could be a chapter.")
        if len(names) > MAX_FILES:
            raise ImportRefused("too_large", f"The archive holds more than {MAX_FILES} files.")
        chapters: list[ParsedChapter] = []
        warnings: list[str] = []
        books: list[ParsedBook] = []
        refused: list[str] = []
        for path in names:
            data = archive.read(path)
            reader = max(readers, key=lambda r: r.score(data[:4096], path))
            if not data or reader.score(data[:4096], path) <= 0:
                warnings.append(f"{path} is empty or unreadable and was left out.")
                continue
            try:
                book = reader.parse(io.BytesIO(data), path)
            except ImportRefused as exc:
                if exc.code in ("unsafe_archive", "password_protected", "drm_protected"):
                    raise
                refused.append(f"{path} was left out: {exc.message}")
                continue
            books.append(book)
            warnings += [f"{path}: {w}" for w in book.warnings]
            stem = _stem(path)
            for chapter in book.chapters:
                blocks = tuple(
                    replace(b, source=f"{path}: {b.source}" if b.source else path) for b in chapter.blocks
                )
                title = chapter.title
                if len([c for c in book.chapters if c.kind == chapter.kind]) == 1 and title in (
                    book.title,
                    "",
                    posixpath.splitext(posixpath.basename(path))[0],
                ):
                    heading = next((b.text for b in blocks if b.kind == "heading"), "")
                    title = " ".join(heading.split()) or stem
                chapters.append(replace(chapter, title=title, blocks=blocks))
        if not chapters:
            raise ImportRefused(
                "no_readable_text",
                refused[0] if refused else "There is no text in the archive that could be read aloud.",
            )
        first = books[0]
        total = sum(sum(len(b.text) for c in b.chapters for b in c.blocks) for b in books) or 1
        coverage = (
            sum(book.coverage * sum(len(b.text) for c in book.chapters for b in c.blocks) for book in books)
            / total
        )
        return ParsedBook(
            title=posixpath.splitext(posixpath.basename(name))[0].replace("_", " "),
            authors=next((b.authors for b in books if b.authors), ()),
            language=next((b.language for b in books if b.language), ""),
            chapters=tuple(chapters),
            publisher=first.publisher,
            warnings=(*refused, *warnings),
            coverage=coverage,
            left_out=tuple(x for b in books for x in b.left_out),
        )


def _stem(path: str) -> str:
    """A chapter's title from its file name: "03 - The_Letter.txt" → "The Letter", "chapter-03.txt" → "Chapter 03"."""
    stem = re.sub(r"[_]+", " ", posixpath.splitext(posixpath.basename(path))[0]).strip()
    bare = re.sub(r"^\d+\s*[-–. ]+\s*", "", stem)
    stem = bare if re.search(r"[^\W\d]", bare) else stem
    return stem[:1].upper() + stem[1:]


def _inner() -> list[Importer]:
    from .registry import importers

    return [i for i in importers() if i.name not in ("bundle", "epub")]
