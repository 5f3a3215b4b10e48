"""Production: the real services. Refuses to start with a default or missing secret (see voiceproject.checks)."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from .base import *  # noqa: F403  (a delta of base: STYLE)
from .base import ALLOWED_HOSTS, S3_BUCKET, S3_SECRET_KEY, SECRET_KEY

_DEFAULTS = ("change-me", "changeme", "secret", "insecure", "default")


def _secret(name: str, value: str, least: int) -> None:
    if len(value) < least or any(word in value.lower() for word in _DEFAULTS):
        raise ImproperlyConfigured(
            f"{name} is missing, too short (under {least} characters) or a default. "
            f"Set it to a random value, for example: python -c 'import secrets; print(secrets.token_urlsafe(50))'"
        )


_secret("SECRET_KEY", SECRET_KEY, 40)
if S3_BUCKET and S3_SECRET_KEY:
    _secret("S3_SECRET_KEY", S3_SECRET_KEY, 8)
if not ALLOWED_HOSTS:
    raise ImproperlyConfigured(
        "ALLOWED_HOSTS is empty. Set it to the studio's host name, for example studio.example.org."
    )
