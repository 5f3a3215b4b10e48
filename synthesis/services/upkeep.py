"""One pass of what time alone must settle. Safe to run twice at once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.conf import settings
from django.db import close_old_connections

from projects.models import Voice
from synthesis.services.collecting import garbage_collect
from synthesis.services.deadletters import dead_letters_drop, dead_letters_read
from synthesis.services.dispatching import leases_settle
from synthesis.services.history import events_drop
from synthesis.services.production import production_settle
from synthesis.services.voices import voices_sync

log = logging.getLogger(__name__)

VOICES_PERIOD_S = 300  # how often the workers are asked for voices nobody knows yet
VOICES_FIRST_S = 5  # … until there are any


def upkeep_pass() -> dict[str, int]:
    """Dead letters, expired leases, waiting work; what each step changed."""
    steps: dict[str, Callable[[], int]] = {
        "dead_letters": dead_letters_read,
        "segments": leases_settle,
        "production": production_settle,
    }
    return _steps_run(steps)


def upkeep_slow_pass() -> dict[str, int]:
    """What need not be done often: garbage in storage, old history."""
    return _steps_run(
        {
            "garbage": garbage_collect,
            "events": lambda: events_drop(settings.JOB_EVENT_DAYS),
            "letters": dead_letters_drop,
        }
    )


def _steps_run(steps: dict[str, Callable[[], int]]) -> dict[str, int]:
    """Run one step after the other. A failing one is logged and does not stop the others."""
    done: dict[str, int] = {}
    for name, step in steps.items():
        try:
            done[name] = step()
        except Exception:
            log.exception("upkeep of %s failed; the next pass tries again", name)
    return done


def upkeep_loop(stop: Callable[[float], bool]) -> None:
    """Pass after pass until `stop(seconds)`, which waits so long, says to end."""
    voices_at = 0.0
    slow_at = time.monotonic() + min(60, settings.COLLECT_PERIOD_S)  # not while everything starts
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
        if now >= slow_at:
            upkeep_slow_pass()
            slow_at = time.monotonic() + settings.COLLECT_PERIOD_S
        close_old_connections()
        if stop(settings.UPKEEP_PERIOD_S):
            return
