"""Writes on people and tokens."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.utils import timezone

from .models import ApiToken, User

PREFIX = "vp_"


def token_digest(secret: str) -> str:
    """SHA-256 of a token. A random 256-bit secret needs no slow hash."""
    return hashlib.sha256(secret.encode()).hexdigest()


def api_token_create(user: User, name: str, scope: str = ApiToken.Scope.READ) -> tuple[ApiToken, str]:
    """Make a token; the secret is returned once and never stored."""
    secret = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user=user, name=name, scope=scope, digest=token_digest(secret), prefix=secret[:9]
    )
    return token, secret


def api_token_used(token: ApiToken) -> None:
    """Note the use, at most once a minute (a write per request would be dear)."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)


def first_user_create(username: str = "admin") -> tuple[User, str] | None:
    """The first person of an empty studio, an administrator, with a random password; None if people exist."""
    if User.objects.exists():
        return None
    password = secrets.token_urlsafe(12)
    return User.objects.create_superuser(username, password=password), password
