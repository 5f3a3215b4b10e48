"""`manage.py verify_storage`: takes against objects and objects against takes; collects only when told to."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from synthesis.services.collecting import garbage_collect, storage_verify
from synthesis.speaking.store import StorageRefused

SHOWN = 20  # keys per list


class Command(BaseCommand):
    help = (
        "Look whether every take's object is there with its length, and which objects no take points at. "
        "Changes nothing unless --collect is given."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--read", action="store_true", help="read every object and compare its SHA-256")
        parser.add_argument(
            "--collect",
            action="store_true",
            help="mark garbage, and delete what was marked a grace period ago",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = storage_verify(read=options["read"])
        except StorageRefused as exc:
            raise CommandError(str(exc)) from exc
        self.stdout.write(f"{found.takes} takes, {found.objects} objects of takes")
        for what, keys in (
            ("missing", found.missing),
            ("with other bytes", found.wrong),
            ("unreferenced", found.unreferenced),
            ("unreferenced for too long", found.overdue),
        ):
            self.stdout.write(f"{len(keys):6} {what}")
            for key in keys[:SHOWN]:
                self.stdout.write(f"       {key}")
            if len(keys) > SHOWN:
                self.stdout.write(f"       … and {len(keys) - SHOWN} more")
        if options["collect"]:
            self.stdout.write(f"{garbage_collect()} objects deleted")
        if not found.is_sound:
            raise CommandError("Storage and database do not agree.")
