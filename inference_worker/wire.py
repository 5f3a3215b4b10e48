"""What comes in over HTTP and what goes out: parsed once, here, strictly."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from inference_worker.encode import FORMATS
from inference_worker.errors import SpeechError
from inference_worker.scheduler import Lane

MAX_BODY_BYTES = 1 << 20
MAX_INPUT_CHARS = 100_000
MAX_DEADLINE_MS = 3_600_000
STREAM_FORMATS = ("", "audio", "sse")
_MARKUP = re.compile(
    r"</?([A-Za-z][\w.:-]*)(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*/?>|<\?(\w+)|<!(--|\w+)"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*")


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A request for speech, checked. `deadline_ms` is what remains (None = none); `markup` the first tag found."""

    model: str
    input: str
    voice: str = ""
    response_format: str = "mp3"
    speed: float = 1.0
    language: str = ""
    seed: int | None = None
    instructions: str = ""
    context_before: str = ""
    context_after: str = ""
    stream_format: str = ""
    lane: Lane = Lane.INTERACTIVE
    job: str = ""
    deadline_ms: int | None = None
    markup: str = ""

    def with_input(self, text: str) -> SpeechRequest:
        """The same request for another text."""
        return replace(self, input=text)


def _bad(message: str, param: str) -> SpeechError:
    return SpeechError("invalid_request", message, param)


def _string(data: Mapping[str, Any], name: str, limit: int, default: str = "") -> str:
    value = data.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise _bad(f"“{name}” must be a string.", name)
    if len(value) > limit:
        raise _bad(f"“{name}” is longer than {limit} characters.", name)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _bad(f"“{name}” is not valid Unicode text.", name) from None
    return value


def body_json(body: bytes) -> dict[str, Any]:
    """A JSON object. Raises SpeechError invalid_request."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise _bad("The body is not JSON.", "") from None
    if not isinstance(data, dict):
        raise _bad("The body must be a JSON object.", "")
    return data


def speech_request(
    data: Mapping[str, Any], headers: Mapping[str, str], default_format: str = "mp3"
) -> SpeechRequest:
    """Check a speech request's fields and headers. Raises SpeechError invalid_request naming the field."""
    voice = data.get("voice")
    if isinstance(voice, dict):  # OpenAI's custom voices: {"id": …}
        voice = voice.get("id")
    text = _string(data, "input", MAX_INPUT_CHARS)
    if not text.strip():
        raise _bad("“input” is missing or empty.", "input")
    if _CONTROL.search(text):
        raise _bad("“input” holds control characters.", "input")
    response_format = _string(data, "response_format", 10, default_format)
    if response_format not in FORMATS:
        raise _bad(f"“response_format” must be one of {', '.join(FORMATS)}.", "response_format")
    speed = data.get("speed", 1.0)
    if speed is None:
        speed = 1.0
    if (
        isinstance(speed, bool)
        or not isinstance(speed, int | float)
        or not 0.25 <= speed <= 4.0
        or not math.isfinite(speed)
    ):
        raise _bad("“speed” must be a number between 0.25 and 4.", "speed")
    seed = data.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31):
        raise _bad("“seed” must be a whole number from 0 to 2147483647.", "seed")
    language = _string(data, "language", 35)
    if language and not _LANGUAGE.fullmatch(language):
        raise _bad("“language” must be a BCP 47 tag such as en-US.", "language")
    stream_format = _string(data, "stream_format", 10)
    if stream_format not in STREAM_FORMATS:
        raise _bad("“stream_format” must be “audio” or “sse”.", "stream_format")
    markup = _MARKUP.search(text)
    return SpeechRequest(
        model=_string(data, "model", 200),
        input=text,
        voice=_string({"voice": voice}, "voice", 200),
        response_format=response_format,
        speed=float(speed),
        language=language,
        seed=seed,
        instructions=_string(data, "instructions", 4096),
        context_before=_string(data, "context_before", 4096),
        context_after=_string(data, "context_after", 4096),
        stream_format=stream_format,
        lane=_lane(headers.get("x-priority", "")),
        job=headers.get("x-job", "")[:200],
        deadline_ms=_deadline(headers.get("x-deadline-ms", "")),
        markup=f"<{next(g for g in markup.groups() if g)}>" if markup else "",
    )


def _lane(value: str) -> Lane:
    if not value:
        return Lane.BULK
    try:
        return Lane(value.strip().lower())
    except ValueError:
        raise _bad("“X-Priority” must be “interactive” or “bulk”.", "X-Priority") from None


def _deadline(value: str) -> int | None:
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > 12:
        raise _bad("“X-Deadline-Ms” must be a whole number of milliseconds that remain.", "X-Deadline-Ms")
    return min(int(value), MAX_DEADLINE_MS)
