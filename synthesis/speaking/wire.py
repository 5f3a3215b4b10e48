"""The two messages of a sentence's way: the order and the result.

Readers accept their own message version and the one before, and ignore unknown fields; a field is added one release
before it is needed. All times in milliseconds unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

VERSION = 1
ACCEPTED = (VERSION, VERSION - 1)


class WireError(ValueError):
    """Raised when a message cannot be read: unknown version or missing field."""


class Outcome(StrEnum):
    """What became of an order."""

    DONE = "done"
    BUSY = "busy"  # all workers of the pool refuse for now; costs no attempt
    UNREACHABLE = "unreachable"  # no worker of the pool answers, or storage is away; costs no attempt
    EXPIRED = "expired"  # read after `not_after`; reported, never dropped
    FAILED = "failed"


class _Message:
    """Reading and writing of a frozen message."""

    __slots__ = ()

    def to_wire(self) -> dict[str, Any]:
        """A dictionary of JSON values."""
        return {"v": VERSION, **asdict(self)}  # type: ignore[call-overload]

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Read a message. Raises WireError for a foreign version or a missing field."""
        if data.get("v") not in ACCEPTED:
            raise WireError(f"message version {data.get('v')!r} is not one of {ACCEPTED}")
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        try:
            return cls(**{name: value for name, value in data.items() if name in known})
        except TypeError as exc:
            raise WireError(str(exc)) from exc


@dataclass(frozen=True, slots=True)
class SpeechOrder(_Message):
    """One wanted take, self-contained: everything a worker needs to speak a sentence."""

    job: str  # public id of the job
    dispatch_no: int  # the fence: a failure counts only for the current dispatch
    project: str
    segment: str
    fingerprint: str
    pool: str
    lane: str  # preview | bulk
    model: str
    revision: str
    voice: str
    language: str
    spoken: str
    seed: int = 0
    speed: float = 1.0
    direction: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    not_after: float = 0.0  # Unix seconds; a hint: clocks differ. 0 = none

    def __post_init__(self) -> None:
        if not self.spoken:
            raise WireError("an order without words")


@dataclass(frozen=True, slots=True)
class TakeFacts(_Message):
    """A stored take, as measured. Positions in samples, end exclusive; levels in dB relative to full scale."""

    audio_key: str
    peaks_key: str
    sha256: str
    size_bytes: int
    samples: int
    rate_hz: int
    speech_start: int
    speech_end: int
    rms_db: float
    peak_db: float
    noise_floor_db: float
    loudness_lufs: float | None
    model: str
    revision: str
    seed: int
    queue_ms: int = 0
    inference_ms: int = 0
    batch_size: int = 1


@dataclass(frozen=True, slots=True)
class SpeechResult(_Message):
    """What happened to an order."""

    job: str
    dispatch_no: int
    fingerprint: str
    outcome: str
    code: str = ""  # machine word of the failure
    detail: str = ""  # what the worker said
    permanent: bool = False  # trying again cannot help
    retry_after_ms: int = 0
    take: dict[str, Any] | None = None

    @classmethod
    def of(cls, order: SpeechOrder, outcome: Outcome, **more: Any) -> SpeechResult:
        """The result of an order."""
        return cls(
            job=order.job,
            dispatch_no=order.dispatch_no,
            fingerprint=order.fingerprint,
            outcome=outcome.value,
            **more,
        )

    @property
    def facts(self) -> TakeFacts | None:
        """The take, if one was made."""
        return TakeFacts.from_wire(self.take) if self.take else None
