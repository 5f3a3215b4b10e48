"""What every exporter promises, and what they share: facts about the result, atomic files, safe names."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import unicodedata
import uuid
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from synthesis.audio.meter import Levels
from synthesis.audio.render import OpenClip
from synthesis.audio.timeline import BookPlan, Timeline, chapters_left_out, timeline

Progress = Callable[[float], None]  # called with 0.0 … 1.0; may raise to cancel, then no file is left


class ExportRefused(Exception):
    """Raised when a book cannot be exported as it is. `code` is for machines, `message` for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One delivered file; `name` is relative to the result's folder. Times in ms, sizes in bytes."""

    name: str
    bytes: int
    duration_ms: int = 0
    title: str = ""
    chapter_key: str = ""
    kind: str = "chapter"
    levels: Levels | None = None  # measured on the encoded file
    sha256: str = ""  # of the whole file, in hex


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """What came out of an export. Loudness and peaks are of the decoded result; None where it was not measured."""

    duration_ms: int
    bytes: int
    chapters: int
    gain_db: float = 0.0  # the one gain the whole book got
    loudness_lufs: float | None = None
    true_peak_dbtp: float | None = None
    rms_db: float | None = None
    files: tuple[FileFacts, ...] = ()
    notes: tuple[str, ...] = field(default=())  # what a person should know, plain English


class Exporter(Protocol):
    """A format. One file of this package each; adding one touches only the registry.

    `name` identifies it in settings and URLs, `label` is shown, `extension` begins with a dot ("" for a folder of
    files), `mime` is what it is served as. `is_set` tells that `out` becomes a folder.
    """

    @property
    def name(self) -> str:
        """See above."""
        ...

    @property
    def label(self) -> str:
        """See above."""
        ...

    @property
    def extension(self) -> str:
        """See above."""
        ...

    @property
    def mime(self) -> str:
        """See above."""
        ...

    @property
    def is_set(self) -> bool:
        """See above."""
        ...

    def export(self, plan: BookPlan, *, open_clip: OpenClip, out: Path, progress: Progress) -> ExportFacts:
        """Write the book to `out`, which appears whole or not at all; an older `out` is replaced.

        Reads takes one at a time through `open_clip(key)`. Safe to call twice. Raises ExportRefused,
        ClipUnusable, OSError (disk full), and whatever `progress` raises.
        """
        ...


def plan_check(plan: BookPlan) -> tuple[Timeline, list[str]]:
    """Return the plan's timeline and notes on what it lacks. Raises ExportRefused when there is nothing to hear."""
    line = timeline(plan)
    if not line.chapters:
        raise ExportRefused("nothing_to_export", "No chapter has any audio yet.")
    notes = [f"Left out, because nothing of it is recorded: {title}" for title in chapters_left_out(plan)]
    silent = sum(placed.end <= placed.start for placed in line.lines())
    if silent:
        notes.append(f"{silent} takes hold no speech; they take no time in the book.")
    return line, notes


@contextlib.contextmanager
def atomic_file(out: Path) -> Iterator[Path]:
    """Give a temporary path beside `out`; rename it on success, remove it on failure. Nobody sees half a file."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name[:200]}.{uuid.uuid4().hex[:12]}.part")
    try:
        yield part
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(out: Path) -> Iterator[Path]:
    """Give a temporary folder beside `out`; rename it on success, remove it on failure."""
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".{out.name[:200]}.{uuid.uuid4().hex[:12]}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        yield part
        if out.is_dir():
            shutil.rmtree(out)
        part.replace(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def folder_zip(folder: Path, out: Path) -> int:
    """Pack a folder's files into one ZIP (stored: sound does not shrink; ZIP64 where needed). Return its bytes."""
    with atomic_file(out) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return out.stat().st_size


def file_sha256(path: Path) -> str:
    """Return a file's sha256 in hex, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_changes(before: Sequence[FileFacts], after: Sequence[FileFacts]) -> dict[str, list[str]]:
    """Return the names of a delivery's files that are new, changed, gone or same since an earlier one.

    Equal sound and equal tags give equal bytes, so only what a listener or a shop could notice counts as changed.
    """
    old = {file.name: file.sha256 for file in before}
    new = {file.name: file.sha256 for file in after}
    return {
        "new": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and (not new[name] or old[name] != new[name])],
        "gone": [name for name in old if name not in new],
        "same": [name for name in new if new[name] and old.get(name) == new[name]],
    }


ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of every entry we write: equal books give equal archives


def zip_add(archive: zipfile.ZipFile, name: str, source: Path | bytes | str) -> None:
    """Add an entry: text and bytes deflated, a file stored (it is sound or a picture) and streamed."""
    info = zipfile.ZipInfo(name, ZIP_EPOCH)
    if isinstance(source, Path):
        with source.open("rb") as file, archive.open(info, "w", force_zip64=True) as entry:
            shutil.copyfileobj(file, entry, 1 << 20)
        return
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, source)


def title_clean(title: str) -> str:
    """Return a title on one line: every run of white space and control characters is one blank."""
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in title).split())


_WINDOWS = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"com{n}" for n in range(1, 10)),
    *(f"lpt{n}" for n in range(1, 10)),
}


def name_safe(text: str, *, ascii_only: bool = True, limit: int = 80) -> str:
    """Return `text` as part of a file name: letters, digits, hyphen; anything else is one underscore.

    Never empty, never a device name of Windows, never leading "-" or "."; at most `limit` bytes.
    """
    plain = unicodedata.normalize("NFKD" if ascii_only else "NFC", text)
    plain = re.sub(r"['\u2019\u2018]", "", plain)
    if ascii_only:
        plain = plain.encode("ascii", "ignore").decode()
    kept = re.sub(r"[^\w-]+", "_", plain).strip("_-.")
    kept = kept.encode()[:limit].decode(errors="ignore").strip("_-.")
    if kept.lower() in _WINDOWS:
        kept += "_"
    return kept or "untitled"


# ISO 639-2 codes of languages: tags of MP3 and MP4 want three letters.
_LANGUAGE_3 = {
    "ar": "ara", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "fi": "fin",
    "fr": "fra", "he": "heb", "hi": "hin", "hu": "hun", "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld",
    "no": "nor", "nb": "nob", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sv": "swe", "tr": "tur",
    "uk": "ukr", "vi": "vie", "zh": "zho",
}  # fmt: skip


def language_3(language: str) -> str:
    """Return a BCP 47 tag's language in three letters; "und" where it is not known."""
    return _LANGUAGE_3.get(language.split("-")[0].lower(), "und")


def year_of(plan: BookPlan) -> str:
    """Return the year as tags want it: its first four digits, or nothing."""
    found = re.search(r"\d{4}", plan.year)
    return found.group() if found else ""


def people(names: tuple[str, ...]) -> str:
    """Return names as players read them: comma and blank between."""
    return ", ".join(title_clean(name) for name in names if name.strip())
