"""How a REST door says no in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import status
from rest_framework.exceptions import APIException


class Refused(APIException):
    """Raised by a door when what was asked cannot be done: a machine word, and a message that says what can.

    `details` is anything a program needs to go on, such as both versions of a sentence after a conflict.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status_code: int = status.HTTP_422_UNPROCESSABLE_ENTITY,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail=message, code=code)
        self.code = code
        self.status_code = status_code
        self.details = details


class Conflict(Refused):
    """Raised when the thing is not (any more) in a state in which this can be done."""

    def __init__(self, code: str, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message, status_code=status.HTTP_409_CONFLICT, details=details)
