"""Dry import: what a manuscript would become, as JSON. Touches no database."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from projects.importers.base import ImportRefused
from projects.importers.report import file_report


class Command(BaseCommand):
    """Door to importers.report: prints the book, or the refusal with exit status 2."""

    help = "Show as JSON what importing FILE would give. A refused file exits 2 and prints its error."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument(
            "--language", default="", metavar="L", help="BCP 47 tag that overrides the book's"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path = Path(options["file"])
        try:
            with path.open("rb") as file:
                report = file_report(file, path.name, language=options["language"])
        except OSError as exc:
            self._refuse("malformed_document", f"The file cannot be opened: {exc.strerror}.")
        except ImportRefused as exc:
            self._refuse(exc.code, exc.message)
        else:
            self._print(report)

    def _refuse(self, code: str, message: str) -> None:
        self._print({"error": {"class": code, "message": message}})
        sys.exit(2)

    @staticmethod
    def _print(data: dict[str, Any]) -> None:
        sys.stdout.buffer.write(
            json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"
        )
        sys.stdout.flush()
