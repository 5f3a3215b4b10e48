"""The upkeep role: leases, retries, waiting work. One timer process; two at once do no harm."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from synthesis.services.gauges import gauges_register
from synthesis.services.upkeep import upkeep_loop, upkeep_pass
from synthesis.speaking.measures import measures_serve


class Command(BaseCommand):
    help = "Settle expired leases and hand out waiting work, again and again until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["once"]:
            self.stdout.write(str(upkeep_pass()))
            return
        gauges_register()
        measures_serve()
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        upkeep_loop(stop.wait)
