"""ID3v2.3 tags with chapters: the version that every player, old car radios included, reads.

Layouts: id3.org "ID3v2.3.0" and "ID3v2 Chapter Frame Addendum".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter inside a file; times in ms."""

    title: str
    start_ms: int
    end_ms: int


def frame(kind: str, payload: bytes) -> bytes:
    """Return one frame."""
    return struct.pack(">4sIH", kind.encode(), len(payload), 0) + payload


def _utf16(text: str) -> bytes:
    return b"\xff\xfe" + text.encode("utf-16-le")


def text(kind: str, value: str) -> bytes:
    """Return a text frame, or nothing for an empty value. Plain ASCII is written as such."""
    if not value:
        return b""
    if value.isascii():
        return frame(kind, b"\x00" + value.encode())
    return frame(kind, b"\x01" + _utf16(value))


def user_text(name: str, value: str) -> bytes:
    """Return a TXXX frame, or nothing for an empty value."""
    return frame("TXXX", b"\x01" + _utf16(name) + b"\x00\x00" + _utf16(value)) if value else b""


def comment(value: str, language: str = "eng") -> bytes:
    """Return a COMM frame; `language` is ISO 639-2."""
    return (
        frame("COMM", b"\x01" + language.encode()[:3] + _utf16("") + b"\x00\x00" + _utf16(value))
        if value
        else b""
    )


def picture(data: bytes, mime: str) -> bytes:
    """Return the front cover."""
    return frame("APIC", b"\x00" + mime.encode() + b"\x00\x03\x00" + data)


def chapters(marks: Sequence[Chapter]) -> bytes:
    """Return a CTOC frame and a CHAP frame for each mark."""
    if not marks:
        return b""
    ids = [f"chp{number}".encode() for number in range(len(marks))]
    top_level_ordered = 0x03
    toc = (
        b"toc\x00"
        + bytes([top_level_ordered, min(len(marks), 255)])
        + b"".join(i + b"\x00" for i in ids[:255])
    )
    parts = [frame("CTOC", toc)]
    for name, mark in zip(ids, marks, strict=True):
        no_offset = 0xFFFFFFFF
        times = struct.pack(">IIII", mark.start_ms, mark.end_ms, no_offset, no_offset)
        parts.append(frame("CHAP", name + b"\x00" + times + text("TIT2", mark.title)))
    return b"".join(parts)


def tag(*frames: bytes) -> bytes:
    """Return a whole tag."""
    body = b"".join(frames)
    size = len(body)
    if size >= 1 << 28:
        raise ValueError("An ID3 tag holds less than 256 MiB; the cover is too large.")
    synchsafe = bytes((size >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return b"ID3\x03\x00\x00" + synchsafe + body
