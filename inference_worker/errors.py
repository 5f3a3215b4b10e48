"""What a caller can be told went wrong: a stable code, a sentence, an HTTP status."""

from __future__ import annotations

STATUS: dict[str, int] = {
    "invalid_request": 400,
    "language_not_supported": 400,
    "markup_not_supported": 400,
    "unauthorized": 401,
    "model_not_found": 404,
    "voice_not_found": 404,
    "revision_mismatch": 409,
    "text_not_speakable": 422,
    "internal": 500,
    "busy": 503,
    "not_ready": 503,
    "draining": 503,
    "deadline_exceeded": 504,
    "too_long": 507,
}
"""HTTP status per code. 503 and 504 may be tried again; the others will fail again."""


class SpeechError(Exception):
    """Raised when a request cannot be answered with audio.

    `code` is a key of STATUS, `message` a sentence for a person (never a path or a traceback), `param` the
    request field at fault ("" = none), `retry_after_s` whole seconds until another try makes sense.
    """

    def __init__(self, code: str, message: str, param: str = "", retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.code = code if code in STATUS else "internal"
        self.message = message
        self.param = param
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """HTTP status that goes with the code."""
        return STATUS[self.code]

    def body(self) -> dict[str, dict[str, str | None]]:
        """The error as OpenAI's clients expect it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {
            "error": {"message": self.message, "type": kind, "code": self.code, "param": self.param or None}
        }


class OutOfMemory(Exception):
    """Raised by an engine when the device had no room for a batch; a smaller batch may pass."""


class DeviceFault(Exception):
    """Raised by an engine when its device context is beyond use: the replica must end and be replaced."""


class StoreRefused(Exception):
    """Raised when a model store entry is missing, unsafe or not what its manifest says."""
