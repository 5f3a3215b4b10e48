"""Zip archives from strangers: read within limits, never written to disk."""

import io
import lzma
import posixpath
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from typing import BinaryIO
from urllib.parse import unquote

from .base import ImportRefused

MAX_ENTRIES = 20_000
MAX_ENTRY_BYTES = 120_000_000
"""Largest single entry, unpacked. No text of a book comes near it."""
MAX_TOTAL_BYTES = 1_500_000_000
"""All entries together, unpacked: a picture book may be large, a bomb is larger."""
MAX_RATIO = 200
"""Unpacked to packed size of an entry above RATIO_FROM bytes. XML packs 5 to 20 times, blanks 1000 times."""
RATIO_FROM = 5_000_000


class Archive:
    """A zip archive whose entries are read one at a time.

    Opening raises ImportRefused: `not_an_archive` if it is none or is cut off, `unsafe_archive` if an entry
    is too large, packed too well, a link, or named so that it would leave the folder.
    """

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
            infos = self._zip.infolist()
        except (
            zipfile.BadZipFile,
            zipfile.LargeZipFile,
            EOFError,
            OSError,
            ValueError,
            NotImplementedError,
            UnicodeDecodeError,
            MemoryError,
            IndexError,
            struct.error,
        ) as exc:
            raise ImportRefused(
                "not_an_archive", "The file is not a zip archive, or it is damaged or incomplete."
            ) from exc
        if len(infos) > MAX_ENTRIES:
            raise ImportRefused("unsafe_archive", f"The archive holds more than {MAX_ENTRIES} files.")
        total = 0
        self._infos: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename
            parts = name.replace("\\", "/").split("/")
            if ".." in parts or name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:", name) or "\0" in name:
                raise ImportRefused(
                    "unsafe_archive", "The archive holds files that would be written outside its folder."
                )
            if stat.S_ISLNK(info.external_attr >> 16):
                raise ImportRefused("unsafe_archive", "The archive holds symbolic links.")
            total += info.file_size
            packed = max(1, info.compress_size)
            if info.file_size > MAX_ENTRY_BYTES or total > MAX_TOTAL_BYTES:
                raise ImportRefused("unsafe_archive", "The archive unpacks to more than is allowed.")
            if info.file_size > RATIO_FROM and info.file_size / packed > MAX_RATIO:
                raise ImportRefused(
                    "unsafe_archive", "The archive is packed so tightly that it looks like a zip bomb."
                )
            if not name.endswith("/"):
                self._infos.setdefault(name, info)
        self._folded = {_fold(name): name for name in self._infos}

    @property
    def names(self) -> list[str]:
        """Names of all files, in the order of the archive."""
        return list(self._infos)

    def encrypted(self, name: str) -> bool:
        """Does reading this entry take a password?"""
        return bool(self._infos[name].flag_bits & 0x1)

    def find(self, *candidates: str) -> str | None:
        """The entry with one of these names: as it is, else regardless of case and of Unicode form."""
        for name in candidates:
            if name in self._infos:
                return name
        for name in candidates:
            if _fold(name) in self._folded:
                return self._folded[_fold(name)]
        return None

    def resolve(self, base: str, href: str) -> str | None:
        """The entry that `href`, written in the entry `base`, points at; None if there is none."""
        path = href.split("#")[0].split("?")[0]
        if not path:
            return base
        folder = posixpath.dirname(base)
        names = []
        for form in (unquote(path), path):
            joined = (
                posixpath.normpath(posixpath.join(folder, form))
                if not form.startswith("/")
                else form.lstrip("/")
            )
            names.append(joined)
            names.append(unicodedata.normalize("NFC", joined))
        return self.find(*names)

    def read(self, name: str, limit: int = MAX_ENTRY_BYTES) -> bytes:
        """An entry's bytes. Raises ImportRefused: `password_protected`, `malformed_document`, `unsafe_archive`."""
        info = self._infos[name]
        if self.encrypted(name):
            raise ImportRefused("password_protected", "The archive is protected with a password.")
        if info.file_size > limit:
            raise ImportRefused("unsafe_archive", f"{name} is larger than is allowed.")
        try:
            with self._zip.open(info) as stream:
                data = stream.read(limit + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
            ValueError,
            struct.error,
            MemoryError,
            IndexError,
            lzma.LZMAError,
        ) as exc:
            raise ImportRefused(
                "malformed_document", f"{name} cannot be read: the archive is damaged."
            ) from exc
        if len(data) > limit:
            raise ImportRefused("unsafe_archive", f"{name} is larger than is allowed.")
        return data


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def archive_open(data: bytes) -> Archive:
    """An archive from bytes in memory."""
    return Archive(io.BytesIO(data))
