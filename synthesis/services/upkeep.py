"""One pass of what time alone must settle. Safe to run twice at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.db import close_old_connections

from projects.models import Voice
from synthesis.services.dispatching import leases_settle
from synthesis.services.production import production_settle
from synthesis.services.voices import voices_sync

log = logging.getLogger(__name__)

VOICES_PERIOD_S = 300  # how often the workers are asked for voices nobody knows yet
VOICES_FIRST_S = 5  # … until there are any


def upkeep_pass() -> dict[str, int]:
    """Expired leases, waiting work; what each step changed. A failing step is logged and does not stop the others."""
    done: dict[str, int] = {}
    steps: dict[str, Callable[[], int]] = {"segments": leases_settle, "production": production_settle}
    for name, step in steps.items():
        try:
            done[name] = step()
        except Exception:
            log.exception("upkeep of %s failed; the next pass tries again", name)
    return done


def upkeep_loop(stop: Callable[[float], bool]) -> None:
    """Pass after pass until `stop(seconds)`, which waits so long, says to end."""
    voices_at = 0.0
    while True:
        close_old_connections()
        upkeep_pass()
        now = time.monotonic()
        if now >= voices_at:
            try:
                new = voices_sync()
            except Exception:
                log.exception("voices could not be read")
                new = 0
            known = new or Voice.objects.filter(project=None).exists()
            voices_at = now + (VOICES_PERIOD_S if known else VOICES_FIRST_S)
        close_old_connections()
        if stop(settings.UPKEEP_PERIOD_S):
            return
