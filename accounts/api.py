"""How programs say who they are: `Authorization: Bearer vp_…`."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.request import Request

from .models import ApiToken, User
from .services import PREFIX, api_token_used, token_digest


class TokenAuthentication(BaseAuthentication):
    """A bearer token; one with the read scope may only read."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        kind, _sep, secret = get_authorization_header(request).decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not secret.startswith(PREFIX):
            return None
        token = (
            ApiToken.objects.select_related("user")
            .filter(digest=token_digest(secret), revoked_at=None)
            .first()
        )
        if token is None or not token.user.is_active:
            raise AuthenticationFailed(_("This token is unknown or revoked. Make a new one."))
        if request.method not in ("GET", "HEAD", "OPTIONS") and token.scope != ApiToken.Scope.WRITE:
            raise PermissionDenied(_("This token may only read. Make one with the write scope."))
        api_token_used(token)
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class TokenScheme(OpenApiAuthenticationExtension):
    """Tells the schema page about the token."""

    target_class = "accounts.api.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}
