"""What decides how a segment should sound, as one number. Pure: no Django.

Recipe = SHA-256 over everything that can be heard; fingerprint = recipe + variant (seed). A segment is stale exactly
when its recipe differs from its chosen take's. `RECIPE_FORM` is part of the digest and never changes for a form that
was ever stored: a new form of the input would make every existing book stale.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RECIPE_FORM = 1


@dataclass(frozen=True, slots=True)
class Voicing:
    """A voice as a recipe sees it: engine, pinned `model@revision`, voice and its own revision and parameters."""

    engine: str
    model: str
    revision: str
    voice: str
    voice_revision: int = 1
    parameters: Mapping[str, Any] = field(default_factory=dict)
    speed: float = 1.0


def _digest(value: Any) -> str:
    """SHA-256 (hex) of a value's canonical JSON: sorted keys, no white space, UTF-8, numbers as Python writes them."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def recipe(voicing: Voicing, *, spoken: str, language: str, direction: str = "") -> str:
    """The recipe of a segment: 64 hex digits. The printed text, marks and place in the book play no part."""
    return _digest(
        {
            "form": RECIPE_FORM,
            "engine": voicing.engine,
            "model": f"{voicing.model}@{voicing.revision}",
            "voice": voicing.voice,
            "voice_revision": voicing.voice_revision,
            "parameters": dict(voicing.parameters),
            "speed": float(voicing.speed),
            "language": language.lower(),
            "direction": direction,
            "spoken": spoken,
        }
    )


def fingerprint(recipe_digest: str, variant: int) -> str:
    """Recipe + variant (the seed): names one wanted take. 64 hex digits."""
    return _digest([recipe_digest, int(variant)])


def spoken_digest(spoken: str) -> str:
    """What a recorded take is compared by: a person's recording is stale only when the spoken text changed."""
    return _digest(spoken)
