"""Make a token by which a program acts for a person."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from accounts.models import ApiToken, User
from accounts.services import api_token_create


class Command(BaseCommand):
    """Prints the secret once, alone on standard output; the studio keeps only its digest."""

    help = "Make an API token for a person and print its secret once. Without --write it may only read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument(
            "--name", default="command line", help="what the token is for (default: %(default)s)"
        )
        parser.add_argument("--write", action="store_true", help="the token may also change things")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = User.objects.get(username=options["username"])
        except User.DoesNotExist as exc:
            raise CommandError(
                _("There is no person named %(name)s.") % {"name": options["username"]}
            ) from exc
        if not user.is_active:
            raise CommandError(
                _("%(name)s is not active, so a token would not work.") % {"name": user.username}
            )
        scope = ApiToken.Scope.WRITE if options["write"] else ApiToken.Scope.READ
        token, secret = api_token_create(user, options["name"][:100], scope)
        self.stdout.write(secret)
        self.stderr.write(
            _("Token %(prefix)s… of %(name)s (%(scope)s). It is shown only now: keep it safe.")
            % {"prefix": token.prefix, "name": user.username, "scope": token.get_scope_display()}
        )
