"""What every importer takes and gives: the parsed book, the refusal, the protocol."""

from dataclasses import dataclass
from typing import BinaryIO, Protocol

from projects.text.spans import Span

__all__ = ["ImportRefused", "Importer", "LeftOut", "ParsedBlock", "ParsedBook", "ParsedChapter", "Span"]

REFUSALS = frozenset(
    {
        "not_an_archive",
        "not_an_epub",
        "empty_file",
        "malformed_document",
        "unsafe_archive",
        "drm_protected",
        "password_protected",
        "no_readable_text",
        "unsupported_format",
        "too_large",
    }
)
"""Codes of ImportRefused: what `manage.py inspect` prints as the class of an error."""


class ImportRefused(Exception):
    """The file cannot become a book. `code` is one of REFUSALS, `message` is for the person who sent it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """A paragraph, heading, line of a list …; `text` is what will be the block's immutable source text.

    White space in `text` is normalised: single blanks, no outer ones. Kinds whose line breaks matter
    (verse, headings of several lines) keep them as line feeds.
    """

    kind: str
    text: str
    source: str = ""  # where it stood: "OEBPS/ch1.xhtml#p3", "line 12"
    page: str = ""  # label of the printed page on which it begins, "" = unknown
    language: str = ""  # "" = the chapter's
    spoken: str | None = None  # spoken form of a heading, a line for each line of the text
    skip_reason: str = ""  # why it is not read aloud, "" = it is
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedChapter:
    """A chapter in reading order. `reason` says why it is not included; `depth` is its level in the contents."""

    title: str
    kind: str
    blocks: tuple[ParsedBlock, ...]
    included: bool = True
    reason: str = ""
    language: str = ""
    depth: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Characters of the source that are in no block, and why. `count` is without white space."""

    reason: str
    count: int
    sample: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ParsedBook:
    """A whole manuscript. `coverage` is the share of source characters that are in a block or in `left_out`."""

    title: str
    authors: tuple[str, ...]
    language: str
    chapters: tuple[ParsedChapter, ...]
    subtitle: str = ""
    translator: str = ""
    publisher: str = ""
    description: str = ""
    series: str = ""
    series_position: str = ""
    year: str = ""
    isbn: str = ""
    rights: str = ""
    cover: bytes | None = None
    cover_type: str = ""  # image/jpeg or image/png
    warnings: tuple[str, ...] = ()
    coverage: float = 1.0
    left_out: tuple[LeftOut, ...] = ()
    lexicon: tuple[tuple[str, str, str, str], ...] = ()  # (grapheme, alias or phonemes, alphabet, language)


class Importer(Protocol):
    """Reads one kind of manuscript. An importer is one file; registering it touches no other."""

    @property
    def name(self) -> str:
        """Short name for messages and settings, such as `epub`."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """Lower-case endings of file names, with the dot."""
        ...

    def score(self, head: bytes, name: str) -> float:
        """How surely this is a file of this kind, 0 to 1, from its first 4 KiB and its name. Reads nothing else."""
        ...

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        """Read the whole file into a book. Writes nothing, opens nothing else, and asks no network.

        `file` is seekable and stands at its start. Raises ImportRefused, and nothing else on purpose.
        Every character of the source is in a block or in `left_out`.
        """
        ...
