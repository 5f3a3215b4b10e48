"""Long text into pieces an engine can take, and the pieces' sound into one; nothing is ever cut silently."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

_BREAKS = (
    re.compile(r"(?<=[.!?…。！？])[\"”’)\]]*\s+|(?<=[。！？])"),  # sentence
    re.compile(r"(?<=[;:；：])[\"”’)]*\s+|\s*—\s*|(?<=[；：])"),  # clause, strong
    re.compile(r"(?<=[,，、])[\"”’)]*\s+|(?<=[，、])"),  # clause, weak
    re.compile(r"\s+"),  # word
)
"""Where text may be parted, best places first."""

JOIN_GAP_MS = 120  # split at a clause: the pause a reader makes there
FADE_MS = 5  # long enough to hide a step, too short to hear


def text_split(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Pieces of `text`, each of which `fits`, parted at the best boundary near the middle; joined they are the text.

    Joining the pieces with nothing between them gives `text` back (boundary white space stays at the end of a
    piece). Raises ValueError when a single unbreakable word does not fit.
    """
    if fits(text):
        return [text]
    middle = len(text) / 2
    for pattern in _BREAKS:
        places = [m.end() for m in pattern.finditer(text) if 0 < m.end() < len(text)]
        places = [p for p in places if _speakable(text[:p]) and _speakable(text[p:])]
        if places:
            best = min(places, key=lambda p: abs(p - middle))
            return text_split(text[:best], fits) + text_split(text[best:], fits)
    raise ValueError("a word is longer than the model can take")


def _speakable(text: str) -> bool:
    return any(c.isalnum() for c in text)


def pieces_join(pieces: Sequence[np.ndarray], rate_hz: int, gap_ms: int = JOIN_GAP_MS) -> np.ndarray:
    """Pieces of sound one after another: their outer silence trimmed at the seams, short fades, `gap_ms` between.

    Each piece is float32 (samples,). One piece comes back untouched.
    """
    if len(pieces) == 1:
        return pieces[0]
    fade = max(1, rate_hz * FADE_MS // 1000)
    gap = np.zeros(rate_hz * gap_ms // 1000, np.float32)
    out: list[np.ndarray] = []
    for index, piece in enumerate(pieces):
        first, last = index == 0, index == len(pieces) - 1
        part = _trimmed(piece, rate_hz, head=not first, tail=not last).copy()
        n = min(fade, len(part) // 2)
        if n and not first:
            part[:n] *= np.linspace(0.0, 1.0, n, dtype=np.float32)
        if n and not last:
            part[-n:] *= np.linspace(1.0, 0.0, n, dtype=np.float32)
        out.append(part)
        if not last:
            out.append(gap)
    return np.concatenate(out)


def _trimmed(samples: np.ndarray, rate_hz: int, *, head: bool, tail: bool) -> np.ndarray:
    """Without the quiet (under -50 dB of the peak) at the ends asked for, 20 ms of it kept."""
    peak = float(np.abs(samples).max(initial=0.0))
    if peak == 0.0:
        return samples
    loud = np.flatnonzero(np.abs(samples) > peak * 10 ** (-50 / 20))
    keep = rate_hz * 20 // 1000
    start = max(0, int(loud[0]) - keep) if head else 0
    end = min(len(samples), int(loud[-1]) + 1 + keep) if tail else len(samples)
    return samples[start:end]


def sentences(text: str, least_chars: int = 24) -> list[str]:
    """Sentences of a text for streaming, joined until each has `least_chars`; every piece holds a word."""
    ends = [m.end() for m in _BREAKS[0].finditer(text)] + [len(text)]
    out: list[str] = []
    start = 0
    for end in ends:
        if end - start >= least_chars and _speakable(text[start:end]):
            out.append(text[start:end])
            start = end
    rest = text[start:]
    if rest.strip():
        if out and not (_speakable(rest) and len(rest) >= least_chars):
            out[-1] += rest
        else:
            out.append(rest)
    return out
