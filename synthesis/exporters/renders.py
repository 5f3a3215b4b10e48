"""Chapters that were rendered before: encoded sound and its measures, found again by what they are made of.

After one changed sentence an export encodes one chapter; the others come from here. A render's key covers everything
that can be heard in it (takes, positions, gains, mastering, encoding) and nothing else: neither titles nor the
chapter's place in the book.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, Protocol

from synthesis.audio.meter import Levels
from synthesis.audio.render import Mastering
from synthesis.audio.timeline import PlacedChapter

RENDER_REV = "1"  # to be raised when the same plan would sound different
_KEEP_GAIN_DB = 0.1
_COPY = 1 << 20  # bytes a step


class RenderStore(Protocol):
    """Where renders are kept. Both calls may be made twice; losing an entry costs time only."""

    def get(self, key: str) -> BinaryIO | None:
        """Return an open file of what was put under the key, or None."""
        ...

    def put(self, key: str, file: BinaryIO) -> None:
        """Keep a file's contents, from its current position, under the key."""
        ...


class FolderStore:
    """Renders in a folder, each put whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> BinaryIO | None:
        """Return the open file, or None."""
        try:
            return (self._folder / key).open("rb")
        except FileNotFoundError:
            return None

    def put(self, key: str, file: BinaryIO) -> None:
        """Keep the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f".{key}.{os.getpid()}.part"
        try:
            with part.open("wb") as out:
                shutil.copyfileobj(file, out, _COPY)
            part.replace(self._folder / key)
        finally:
            part.unlink(missing_ok=True)


def render_key(
    chapter: PlacedChapter, *, gain_db: float, mastering: Mastering, encoding: Mapping[str, object]
) -> str:
    """Return the sha256, in hex, of all that decides how a chapter's encoded file sounds."""
    lines = [
        [
            placed.start - chapter.start,
            placed.end - chapter.start,
            placed.line.clip.key,
            placed.line.clip.rate_hz,
            placed.line.clip.speech_start,
            placed.line.clip.speech_end,
            placed.line.clip.gain_db,
        ]
        for placed in chapter.lines
    ]
    what = [
        RENDER_REV,
        chapter.samples,
        lines,
        round(gain_db, 4),
        asdict(mastering),
        sorted(encoding.items()),
    ]
    return hashlib.sha256(json.dumps(what, separators=(",", ":")).encode()).hexdigest()


def gain_kept(measured_db: float, previous_db: float | None) -> float:
    """Return the gain of the last export while the book's own has hardly moved (0.1 dB), else the new one.

    One changed sentence moves the loudness of a whole book by some thousandths: nobody hears it, but every
    chapter would have to be rendered anew.
    """
    if previous_db is not None and abs(measured_db - previous_db) <= _KEEP_GAIN_DB:
        return previous_db
    return round(measured_db, 2)


def rendered(
    path: Path, key: str, store: RenderStore | None, make: Callable[[Path], Levels | None]
) -> Levels | None:
    """Bring a chapter's encoded sound to `path`, from the store or by `make(path)`; return its measures.

    A stored entry is one line of JSON with the measures, then the sound. One that cannot be read is made again.
    """
    if store is not None:
        found = store.get(key)
        if found is not None:
            with found:
                try:
                    head = json.loads(found.readline(1 << 20))
                    levels = Levels.from_json(head["levels"]) if head["levels"] else None
                    with path.open("wb") as out:
                        shutil.copyfileobj(found, out, _COPY)
                    if path.stat().st_size == head["bytes"]:
                        return levels
                except (ValueError, KeyError, TypeError):
                    pass
    levels = make(path)
    if store is not None:
        head = {"bytes": path.stat().st_size, "levels": levels.to_json() if levels else None}
        entry = path.with_name(path.name + ".entry")
        try:
            with entry.open("w+b") as out, path.open("rb") as sound:
                out.write(json.dumps(head).encode() + b"\n")
                shutil.copyfileobj(sound, out, _COPY)
                out.seek(0)
                store.put(key, out)
        finally:
            entry.unlink(missing_ok=True)
    return levels
