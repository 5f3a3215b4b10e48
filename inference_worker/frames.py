"""Messages between the server and a replica: a JSON head and a binary tail, each with its length before it."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

HEAD = struct.Struct("<II")  # bytes of JSON, bytes of tail
MAX_BYTES = 1 << 30


def pack(head: dict[str, Any], tail: bytes = b"") -> bytes:
    """One message as bytes."""
    data = json.dumps(head, separators=(",", ":")).encode()
    return HEAD.pack(len(data), len(tail)) + data + tail


def read(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """The next message, None at the end of the stream (also when it ends inside a message)."""
    start = stream.read(HEAD.size)
    if len(start) < HEAD.size:
        return None
    n, m = HEAD.unpack(start)
    data = stream.read(n)
    tail = stream.read(m) if m else b""
    if len(data) < n or len(tail) < m:
        return None
    return json.loads(data), tail
