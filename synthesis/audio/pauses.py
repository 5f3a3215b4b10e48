"""Silence around chapters; the pauses between lines are the book's (projects.pauses)."""

from __future__ import annotations

from projects.pauses import DEFAULT_PAUSES_MS, MAX_PAUSE_MS, pause_ms

__all__ = ["DEFAULT_PAUSES_MS", "HEAD_TAIL_MS", "MAX_PAUSE_MS", "pause_ms"]

# Silence before and after a chapter, ms, by kind of delivery.
HEAD_TAIL_MS: dict[str, tuple[int, int]] = {"acx": (750, 3000), "m4b": (500, 1500)}
