"""The small protocol between a replica and the model it owns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from inference_worker.errors import SpeechError


@dataclass(frozen=True, slots=True)
class Utterance:
    """One text to be spoken in one go.

    `speed` is a factor (1 = the voice's own), `max_seconds` the most audio that may come of it (0 = no cap),
    `before` and `after` are the lines around it, for engines that can use them.
    """

    text: str
    voice: str = ""
    language: str = ""
    speed: float = 1.0
    seed: int = 0
    instructions: str = ""
    before: str = ""
    after: str = ""
    max_seconds: float = 0.0


@dataclass(slots=True)
class Speech:
    """What came of an utterance: float32 mono (samples,) in [-1, 1] at the engine's rate.

    `truncated`: the cap on length was hit. `seed_exact`: the same seed gives the same samples at any batch size.
    """

    samples: np.ndarray
    truncated: bool = False
    seed_exact: bool = True


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A voice that can be asked for. `kind` is preset, designed or cloned; `gender` "" where unknown."""

    id: str
    name: str
    languages: tuple[str, ...]
    gender: str = ""
    kind: str = "preset"


@dataclass(frozen=True, slots=True)
class About:
    """What an engine says of itself once loaded.

    `languages` are BCP 47 tags ("*" = any). `batch_by` names the utterance fields that must be equal within a
    batch. `features` says which optional fields it can use: speed, instructions, context, markup, seed.
    `max_batch` bounds the warm-up's search. `speed_range` is inclusive. `deterministic`: equal input, equal samples.
    """

    engine: str
    revision: str
    sample_rate: int
    languages: tuple[str, ...]
    voices: tuple[VoiceInfo, ...]
    licence: str = ""
    pool_hint: str = "cpu"
    max_batch: int = 1
    max_chars: int = 4096
    batch_by: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    speed_range: tuple[float, float] = (0.25, 4.0)
    deterministic: bool = True
    warmup_text: str = (
        "The ship lay quiet in the harbour, and nobody on deck could say when the wind would turn."
    )
    notes: dict[str, str] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> About:
        """The inverse of to_wire; fields it does not know are ignored."""
        known = {k: v for k, v in data.items() if k in cls.__dataclass_fields__}
        for name in ("languages", "batch_by", "features", "speed_range"):
            if name in known:
                known[name] = tuple(known[name])
        known["voices"] = tuple(
            VoiceInfo(v["id"], v["name"], tuple(v["languages"]), v.get("gender", ""), v.get("kind", "preset"))
            for v in known.get("voices", ())
        )
        return cls(**known)


class Engine(Protocol):
    """A kind of model. One object lives in one child process and owns one device."""

    name: str

    def __init__(self, options: Mapping[str, str], folder: Path | None) -> None:
        """Keep the options; touch nothing. `folder` is the model store entry, None for weights found elsewhere."""

    def load(self, device: str, threads: int) -> About:
        """Bring the model onto `device` ("cpu", "cuda:0") with at most `threads` CPU threads.

        Raises any exception with a sentence for the operator when the weights are missing or not the pinned ones.
        """

    def speak(self, batch: Sequence[Utterance], stop: Callable[[], bool]) -> list[Speech | SpeechError]:
        """One result per utterance, in order. An utterance that cannot be spoken is a SpeechError in its place.

        `stop()` turns true when nobody waits for the batch any more; engines that make audio step by step ask it.
        Raises OutOfMemory (a smaller batch may pass) or DeviceFault (the replica must be replaced).
        """

    def free(self) -> None:
        """Give cached device memory back after OutOfMemory. Safe to call twice."""

    def memory_bytes(self) -> int:
        """Device memory in use, 0 where unknown."""
