"""`manage.py voices`: take over what the inference workers offer, and list what the studio knows."""

from __future__ import annotations

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from projects.models import Voice
from synthesis.services.voices import voices_sync


class Command(BaseCommand):
    help = "Read the voices of all inference pools (a known voice never changes), and list them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", type=float, default=0, help="seconds to wait for a first voice")

    def handle(self, *args: Any, **options: Any) -> None:
        until = time.monotonic() + options["wait"]
        voices_sync()
        while not Voice.objects.filter(project=None, retired_at=None).exists() and time.monotonic() < until:
            time.sleep(0.5)
            voices_sync()
        known = Voice.objects.filter(project=None, retired_at=None).order_by("model", "engine_voice")
        for voice in known:
            self.stdout.write(
                f"{voice.engine_voice:16} {voice.name:20} {','.join(voice.languages):16} "
                f"{voice.model}@{voice.model_revision} pool={voice.pool}"
            )
        if not known:
            raise CommandError("No voice is known. Check INFERENCE_POOLS and the inference workers' /ready.")
