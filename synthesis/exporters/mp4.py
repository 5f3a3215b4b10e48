"""MP4 atoms: reading them, and finishing what FFmpeg's muxer leaves undone in an audiobook.

The muxer writes sound, chapters and the sample tables. It cannot write the M4B brand nor most of the tags
that audiobook players read, and its own faststart is a second pass over the file anyway. So that pass is ours:
new `ftyp`, new `moov` in front with our tag list, chunk offsets moved by as much as everything moves.
Layouts: ISO/IEC 14496-12; tags: Apple's iTunes metadata as FFmpeg's mov.c reads it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_COPY = 1 << 20  # bytes a copy step
_CONTAINERS = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"udta", b"edts", b"tref", b"dinf"}

TYPE_TEXT, TYPE_JPEG, TYPE_PNG, TYPE_INT = 1, 13, 14, 21


class Mp4Broken(ValueError):
    """Raised when a file's atoms do not add up."""


@dataclass(frozen=True, slots=True)
class Atom:
    """An atom: its kind, and where its payload lies in what it was read from."""

    kind: bytes
    start: int  # of the header
    payload: int  # start of the payload
    end: int


@dataclass(frozen=True, slots=True)
class Tag:
    """One entry of the tag list: a four-byte name, or "mean:name" style freeform by `name` alone."""

    name: bytes
    value: bytes
    type: int = TYPE_TEXT
    freeform: bool = False


def atom(kind: bytes, *parts: bytes) -> bytes:
    """Return an atom's bytes."""
    payload = b"".join(parts)
    if len(payload) + 8 > 0xFFFFFFFF:
        raise Mp4Broken(f"{kind!r} is too large.")
    return struct.pack(">I4s", len(payload) + 8, kind) + payload


def atoms(data: bytes, start: int = 0, end: int | None = None) -> Iterator[Atom]:
    """Yield the atoms of a stretch of bytes. Raises Mp4Broken when sizes do not add up."""
    end = len(data) if end is None else end
    at = start
    while at < end:
        if end - at < 8:
            raise Mp4Broken("An atom is cut off.")
        size, kind = struct.unpack_from(">I4s", data, at)
        header = 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, at + 8)
            header = 16
        elif size == 0:
            size = end - at
        if size < header or at + size > end:
            raise Mp4Broken(f"{kind!r} claims {size} bytes.")
        yield Atom(kind, at, at + header, at + size)
        at += size


def top_atoms(file: BinaryIO) -> list[Atom]:
    """Return the top level of a file without reading its payloads."""
    file.seek(0, 2)
    end = file.tell()
    at, found = 0, []
    while at < end:
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            raise Mp4Broken("The file is cut off.")
        size, kind = struct.unpack_from(">I4s", head)
        header = 8
        if size == 1 and len(head) == 16:
            (size,) = struct.unpack_from(">Q", head, 8)
            header = 16
        elif size == 0:
            size = end - at
        if size < header or at + size > end:
            raise Mp4Broken(f"{kind!r} claims {size} bytes.")
        found.append(Atom(kind, at, at + header, at + size))
        at += size
    return found


def find(data: bytes, *path: bytes) -> Atom | None:
    """Return the first atom at a path of kinds, e.g. b"moov", b"udta", or None."""
    start, end = 0, len(data)
    found: Atom | None = None
    for kind in path:
        found = next((a for a in atoms(data, start, end) if a.kind == kind), None)
        if found is None:
            return None
        start, end = found.payload, found.end
    return found


def text_tag(name: bytes | str, value: str) -> Tag:
    """Return a tag of text; a four-byte name is Apple's own, any other is written freeform."""
    raw = name if isinstance(name, bytes) else name.encode()
    return Tag(raw, value.encode(), TYPE_TEXT, freeform=isinstance(name, str))


def ilst(tags: Sequence[Tag]) -> bytes:
    """Return a `meta` atom with the tags."""
    entries = []
    for tag in tags:
        data = atom(b"data", struct.pack(">II", tag.type, 0), tag.value)
        if tag.freeform:
            mean = atom(b"mean", bytes(4), b"com.apple.iTunes")
            entries.append(atom(b"----", mean, atom(b"name", bytes(4), tag.name), data))
        else:
            entries.append(atom(tag.name, data))
    handler = atom(b"hdlr", bytes(8), b"mdir", b"appl", bytes(9))
    return atom(b"meta", bytes(4), handler, atom(b"ilst", *entries))


def moov_finish(moov: bytes, *, meta: bytes, shift: int) -> bytes:
    """Return `moov` (a whole atom) with its tag list replaced and every chunk offset moved by `shift` bytes.

    Offsets that no longer fit 32 bits make their table a 64 bit one. The caller must know the size of the result
    to know the shift: see `finish`.
    """
    (top,) = atoms(moov)
    if top.kind != b"moov":
        raise Mp4Broken("Not a moov atom.")
    return _rebuilt(moov, top, meta, shift)


def _rebuilt(data: bytes, node: Atom, meta: bytes, shift: int) -> bytes:
    """Return an atom with the changes moov_finish describes."""
    if node.kind in (b"stco", b"co64"):
        return _moved(data, node, shift)
    if node.kind not in _CONTAINERS:
        return data[node.start : node.end]
    parts = []
    for child in atoms(data, node.payload, node.end):
        if node.kind == b"udta" and child.kind == b"meta":
            continue
        if node.kind == b"moov" and child.kind == b"udta":
            continue  # comes last, below
        parts.append(_rebuilt(data, child, meta, shift))
    if node.kind == b"moov":
        old = next((a for a in atoms(data, node.payload, node.end) if a.kind == b"udta"), None)
        kept = []
        if old is not None:
            kept = [data[a.start : a.end] for a in atoms(data, old.payload, old.end) if a.kind != b"meta"]
        parts.append(atom(b"udta", meta, *kept))
    return atom(node.kind, *parts)


def _moved(data: bytes, node: Atom, shift: int) -> bytes:
    """Return a chunk offset table with every offset moved; 64 bit if it must be, and never back to 32."""
    flags, count = struct.unpack_from(">II", data, node.payload)
    wide = node.kind == b"co64"
    code = "Q" if wide else "I"
    offsets = [offset + shift for offset in struct.unpack_from(f">{count}{code}", data, node.payload + 8)]
    if not wide and offsets and max(offsets) > 0xFFFFFFFF:
        wide, code = True, "Q"
    return atom(b"co64" if wide else b"stco", struct.pack(f">II{count}{code}", flags, count, *offsets))


def finish(
    source: Path, target: Path, *, brand: bytes, compatible: Sequence[bytes], tags: Sequence[Tag]
) -> None:
    """Copy an MP4 made by a muxer into `target`: `brand`, index in front (faststart), `tags`. Streams the sound.

    Works wherever `moov` stands in `source`; `free` atoms are dropped. Raises Mp4Broken.
    """
    with source.open("rb") as file:
        top = top_atoms(file)
        kinds = [a.kind for a in top]
        if kinds.count(b"moov") != 1 or kinds.count(b"mdat") != 1:
            raise Mp4Broken(f"Expected one moov and one mdat, found {kinds}.")
        old_moov, mdat = top[kinds.index(b"moov")], top[kinds.index(b"mdat")]
        file.seek(old_moov.start)
        moov = file.read(old_moov.end - old_moov.start)
        ftyp = atom(b"ftyp", brand, struct.pack(">I", 0), *compatible)
        meta = ilst(tags)
        # The size of the new moov depends on whether offsets need 64 bits, which depends on its size: at most two turns.
        shift = 0
        for _ in range(3):
            new_moov = moov_finish(moov, meta=meta, shift=shift)
            wanted = len(ftyp) + len(new_moov) - mdat.start
            if wanted == shift:
                break
            shift = wanted
        else:
            raise Mp4Broken("The chunk offsets do not settle.")
        with target.open("wb") as out:
            out.write(ftyp)
            out.write(new_moov)
            file.seek(mdat.start)
            left = mdat.end - mdat.start
            while left:
                part = file.read(min(_COPY, left))
                if not part:
                    raise Mp4Broken("The sound is cut off.")
                out.write(part)
                left -= len(part)


@dataclass(frozen=True, slots=True)
class ChapterMark:
    """A chapter as a table in the file has it: start and end in ms."""

    title: str
    start_ms: float
    end_ms: float


def nero_chapters(moov: bytes, duration_ms: float) -> list[ChapterMark]:
    """Return the chapters of the Nero list (`udta/chpl`, starts in 100 ns); empty if there is none."""
    node = find(moov, b"moov", b"udta", b"chpl")
    if node is None:
        return []
    data = moov[node.payload : node.end]
    at = 8 if data[0] == 1 else 4  # version 1 has four reserved bytes more
    count, at = data[at], at + 1
    starts, titles = [], []
    for _ in range(count):
        start, length = struct.unpack_from(">QB", data, at)
        starts.append(start / 10_000)
        titles.append(data[at + 9 : at + 9 + length].decode())
        at += 9 + length
    ends = [*starts[1:], duration_ms]
    return [ChapterMark(t, s, e) for t, s, e in zip(titles, starts, ends, strict=False)]


def quicktime_chapters(file: BinaryIO) -> list[ChapterMark]:
    """Return the chapters of the text track that an audio track refers to (`tref/chap`); empty if there is none."""
    top = next(a for a in top_atoms(file) if a.kind == b"moov")
    file.seek(top.start)
    moov = file.read(top.end - top.start)
    (root,) = atoms(moov)
    tracks: dict[int, Atom] = {}
    wanted: set[int] = set()
    for trak in (a for a in atoms(moov, root.payload, root.end) if a.kind == b"trak"):
        body = moov[trak.start : trak.end]
        tkhd = find(body, b"trak", b"tkhd")
        if tkhd is None:
            raise Mp4Broken("A track has no header.")
        version = body[tkhd.payload]
        (track_id,) = struct.unpack_from(">I", body, tkhd.payload + (20 if version else 12))
        tracks[track_id] = trak
        chap = find(body, b"trak", b"tref", b"chap")
        if chap is not None:
            wanted |= set(struct.unpack_from(f">{(chap.end - chap.payload) // 4}I", body, chap.payload))
    for track_id in wanted:
        body = moov[tracks[track_id].start : tracks[track_id].end]
        return _text_track(file, body)
    return []


def _text_track(file: BinaryIO, trak: bytes) -> list[ChapterMark]:
    """Read a text track's samples: each is a chapter's title, its duration the chapter's."""
    mdhd = _need(trak, b"mdia", b"mdhd")
    (scale,) = struct.unpack_from(">I", trak, mdhd.payload + (20 if trak[mdhd.payload] else 12))
    table = (b"mdia", b"minf", b"stbl")
    stts = _need(trak, *table, b"stts")
    (runs,) = struct.unpack_from(">I", trak, stts.payload + 4)
    durations: list[int] = []
    for run in range(runs):
        count, delta = struct.unpack_from(">II", trak, stts.payload + 8 + 8 * run)
        durations += [delta] * count
    stsz = _need(trak, *table, b"stsz")
    uniform, count = struct.unpack_from(">II", trak, stsz.payload + 4)
    sizes = [uniform] * count if uniform else list(struct.unpack_from(f">{count}I", trak, stsz.payload + 12))
    offsets = _chunk_offsets(trak, table)
    stsc = _need(trak, *table, b"stsc")
    (entries,) = struct.unpack_from(">I", trak, stsc.payload + 4)
    spans = [struct.unpack_from(">III", trak, stsc.payload + 8 + 12 * e) for e in range(entries)]
    marks, sample, at = [], 0, 0.0
    for chunk, offset in enumerate(offsets, start=1):
        per_chunk = next(n for first, n, _ in reversed(spans) if first <= chunk)
        for _ in range(per_chunk):
            file.seek(offset)
            raw = file.read(sizes[sample])
            (length,) = struct.unpack_from(">H", raw)
            end = at + durations[sample] * 1000 / scale
            marks.append(ChapterMark(raw[2 : 2 + length].decode(), at, end))
            offset, at, sample = offset + sizes[sample], end, sample + 1
    return marks


def _chunk_offsets(trak: bytes, table: tuple[bytes, ...]) -> list[int]:
    node = find(trak, b"trak", *table, b"stco")
    code = "I"
    if node is None:
        node, code = _need(trak, *table, b"co64"), "Q"
    (count,) = struct.unpack_from(">I", trak, node.payload + 4)
    return list(struct.unpack_from(f">{count}{code}", trak, node.payload + 8))


def _need(trak: bytes, *path: bytes) -> Atom:
    node = find(trak, b"trak", *path)
    if node is None:
        raise Mp4Broken(f"A track lacks {path[-1]!r}.")
    return node
