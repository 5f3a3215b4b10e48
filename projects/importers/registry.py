"""The importers there are, and the one door to them: a file in, a book or a refusal out."""

import io
import logging
import zipfile
from typing import BinaryIO

from .base import Importer, ImportRefused, ParsedBook

LIMIT_BYTES = 200_000_000
"""Largest upload."""

HEAD_BYTES = 4096

_log = logging.getLogger(__name__)

_FOREIGN = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document; save it as DOCX"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
    (b"Rar!", "a RAR archive; send a zip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; send a zip archive"),
    (b"\x1f\x8b", "a gzip archive; send a zip archive"),
    (b"BZh", "a bzip2 archive; send a zip archive"),
    (b"ID3", "a sound file"),
    (b"OggS", "a sound file"),
    (b"fLaC", "a sound file"),
    (b"RIFF", "a sound or video file"),
    (b"SQLite format 3", "a database"),
    (b"ITOLITLS", "a Microsoft Reader book"),
    (b"AT&TFORM", "a DjVu document"),
    (b"ITSF", "a compiled help file"),
    (b"%!PS", "a PostScript document; send a PDF"),
)


def importers() -> tuple[Importer, ...]:
    """All importers. A new one is a new file and a line here."""
    from .bundle import BundleImporter
    from .docx import DocxImporter
    from .epub import EpubImporter
    from .fb2 import Fb2Importer
    from .html import HtmlImporter
    from .markdown import MarkdownImporter
    from .odt import OdtImporter
    from .pdf import PdfImporter
    from .rtf import RtfImporter
    from .txt import TxtImporter

    return (
        EpubImporter(),
        DocxImporter(),
        OdtImporter(),
        PdfImporter(),
        RtfImporter(),
        Fb2Importer(),
        HtmlImporter(),
        MarkdownImporter(),
        BundleImporter(),
        TxtImporter(),
    )


def book_parse(file: BinaryIO, name: str, *, limit_bytes: int = LIMIT_BYTES) -> ParsedBook:
    """Read a manuscript. `name` is the file's name; only its ending and stem are used.

    Raises ImportRefused and nothing else: a fault of an importer is reported as `malformed_document`.
    Safe to call in a worker that may die: it writes nothing and asks no network.
    """
    file.seek(0, io.SEEK_END)
    size = file.tell()
    file.seek(0)
    if size == 0:
        raise ImportRefused("empty_file", "The file is empty.")
    if size > limit_bytes:
        raise ImportRefused("too_large", f"The file is larger than {limit_bytes // 1_000_000} MB.")
    head = _head(file)
    importer = _importer_for(head, name, file)
    file.seek(0)
    try:
        return importer.parse(file, name)
    except ImportRefused:
        raise
    except MemoryError as exc:
        raise ImportRefused("too_large", "Reading the file takes more memory than is allowed.") from exc
    except Exception as exc:  # an importer's fault must not end the worker
        _log.exception("importer %s failed", importer.name)
        raise ImportRefused(
            "malformed_document", "The file is damaged or unusual in a way that keeps it from being read."
        ) from exc


def _head(file: BinaryIO) -> bytes:
    """The first bytes; of a zip archive also the names of its entries, which say more."""
    head = file.read(HEAD_BYTES)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        try:
            names = zipfile.ZipFile(file).namelist()
            head += b"\0" + "\0".join(names[:500]).encode("utf-8", "replace")[:65536]
        except Exception:
            pass
    return head


def _importer_for(head: bytes, name: str, file: BinaryIO) -> Importer:
    if head.startswith(_FOREIGN[0][0]) and _is_encrypted_office(file):
        raise ImportRefused("password_protected", "The document is protected with a password.")
    if head[60:68] in (b"BOOKMOBI", b"TEXtREAd"):
        raise ImportRefused("unsupported_format", "This is a Kindle book. Send an EPUB of it.")
    scored = sorted(
        ((i.score(head, name), n, i) for n, i in enumerate(importers())), key=lambda s: (-s[0], s[1])
    )
    score, _, best = scored[0]
    if score < 1.0:
        for mark, what in _FOREIGN:
            if head.startswith(mark) and not (
                len(mark) <= 3 and head[:200].isascii() and b"\0" not in head[:200]
            ):
                raise ImportRefused(
                    "unsupported_format",
                    f"The file is {what}. Manuscripts come as EPUB, DOCX, PDF, text and the like.",
                )
    if score <= 0:
        raise ImportRefused("unsupported_format", "The file is of a kind that cannot be imported.")
    return best


def _is_encrypted_office(file: BinaryIO) -> bool:
    file.seek(0)
    return "EncryptedPackage".encode("utf-16-le") in file.read(4_000_000)
