"""`manage.py studio`: all roles in one command on the embedded default."""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from argparse import BooleanOptionalAction
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import close_old_connections

from accounts.models import User
from accounts.services import first_user_create
from projects.models import ManuscriptImport
from projects.services.manuscripts import import_create
from synthesis.embedded import AlreadyRunning, EmbeddedRoles
from synthesis.services.voices import voices_sync

SAMPLES = settings.ROOT / "samples"


class Command(BaseCommand):
    help = "Run the whole studio on this machine: pages, workers, upkeep and a voice. Ctrl-C ends it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host", default="127.0.0.1", help="address to listen on (default: this machine only)"
        )
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument(
            "--first-start", action="store_true", help="migrate; first user and sample book if empty"
        )
        parser.add_argument(
            "--inference", action=BooleanOptionalAction, default=True, help="start a voice as a child"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.BROKER_URL:
            raise CommandError(
                "BROKER_URL is set: run the roles as separate processes (see deploy/compose.yaml), or unset it."
            )
        # WhiteNoise's small files are read whole before they are sent; what is large streams (synthesis.web.ranges)
        warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
        roles = EmbeddedRoles(inference=options["inference"])
        if options["first_start"]:
            Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
            call_command("migrate", interactive=False, verbosity=0)
        try:
            roles.start()
        except AlreadyRunning as exc:
            raise CommandError(
                f"Another studio works on {exc} already. Stop it first, or set STUDIO_DATA_DIR."
            ) from exc
        # uvicorn raises the signal it got once more when it has shut down: both must lead through `finally`
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            owner = self._first_user() if options["first_start"] else None
            threading.Thread(
                target=self._greet, args=(roles, owner, options), name="greeting", daemon=True
            ).start()
            uvicorn.run(
                "voiceproject.asgi:application",
                host=options["host"],
                port=options["port"],
                log_level="warning",
                lifespan="off",
                timeout_graceful_shutdown=3,
                ws_ping_interval=20,
            )
        except KeyboardInterrupt:
            pass
        finally:
            self._say("Stopping. What was running resumes on the next start.")
            roles.stop()

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()

    def _first_user(self) -> User | None:
        made = first_user_create()
        if made is None:
            return None
        user, password = made
        self._say(
            f"\n  First user: {user.username}\n  Password:   {password}\n"
            "  (shown once; change it in the admin, or with: manage.py changepassword admin)\n"
        )
        return user

    def _greet(self, roles: EmbeddedRoles, owner: User | None, options: dict[str, Any]) -> None:
        self._say(f"Studio: http://{options['host']}:{options['port']}/   (Ctrl-C to stop)")
        try:
            if roles.child and not roles.child.ready_wait():
                self._say(f"The voice is not ready yet; {settings.DATA_DIR}/inference.log says why.")
                return
            new = voices_sync()
            self._say(f"Voice ready ({new} new)." if new else "Voice ready.")
            if owner is not None and not ManuscriptImport.objects.exists():
                for path in sorted(SAMPLES.glob("*.epub"))[:1]:
                    with path.open("rb") as file:
                        import_create(owner, file, path.name)
        except Exception as exc:  # the pages go on without a greeting
            print(f"{type(exc).__name__}: {exc}", file=sys.stderr)
        finally:
            close_old_connections()
