"""Small figures for the pages: durations, shares. Nothing here reads the database."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext, ngettext

from projects.web.words import language_name

register = template.Library()

TONES = 6  # cloth colours of a book without a cover, see .cover.plain in studio.css


def _number(value: Any) -> float | None:
    """A finite number, or None for nothing at all."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number == number and abs(number) != float("inf") else None


@register.filter
def clock(seconds: Any) -> str:
    """Seconds as m:ss, or h:mm:ss from an hour on; empty for nothing."""
    number = _number(seconds)
    if number is None:
        return ""
    whole = max(0, round(number))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{secs:02}" if hours else f"{minutes}:{secs:02}"


@register.filter
def ms_clock(milliseconds: Any) -> str:
    """Milliseconds as `clock` writes them."""
    number = _number(milliseconds)
    return "" if number is None else clock(number / 1000)


@register.filter
def hours_clock(hours: Any) -> str:
    """Hours (a fraction) as `clock` writes them."""
    number = _number(hours)
    return "" if number is None else clock(number * 3600)


@register.filter
def seconds(value: Any) -> str:
    """The length of a take: "2.84 s"."""
    number = _number(value)
    return "" if number is None else gettext("%(n)s s") % {"n": f"{number:.2f}"}


@register.filter
def about(seconds: Any) -> str:
    """A length nobody promises to the second: "about 40 s", "about 12 min", "about 3.5 h"."""
    number = _number(seconds)
    if number is None:
        return ""
    if number < 90:
        # fine steps would pretend to know more than we do
        step = 1 if number < 10 else 5
        return gettext("about %(n)d s") % {"n": max(1, step * round(number / step))}
    if number < 90 * 60:
        return gettext("about %(n)d min") % {"n": round(number / 60)}
    n = number / 3600
    return ngettext("about %(n)s h", "about %(n)s h", round(n)) % {"n": f"{n:.1f}"}


@register.filter
def about_hours(hours: Any) -> str:
    """Hours (a fraction) as `about` says them."""
    number = _number(hours)
    return "" if number is None else about(number * 3600)


@register.filter
def ago(moment: Any) -> str:
    """How long ago in one unit; "just now" within the first minute."""
    if not moment:
        return ""
    if (timezone.now() - moment).total_seconds() < 60:
        return gettext("just now")
    return gettext("%(time)s ago") % {"time": timesince(moment, depth=1)}


@register.filter
def language_names(tags: Any) -> str:
    """Language tags as names, in order, separated by commas."""
    return ", ".join(language_name(str(tag)) for tag in tags or ())


@register.filter
def share(part: Any, whole: Any) -> str:
    """`part` of `whole` in percent for a style attribute: always with a point, 0 when there is no whole."""
    a, b = _number(part), _number(whole)
    return f"{100 * a / b:.2f}" if a and b else "0"


@register.filter
def plain_ready(counts: Any) -> int:
    """Ready sentences that need no word of their own in the bar: neither approved nor stale."""

    def get(name: str) -> int:
        value = counts.get(name) if isinstance(counts, dict) else getattr(counts, name, 0)
        return int(value or 0)

    return max(0, get("ready") - get("approved") - get("stale"))


@register.filter
def tone(public_id: Any) -> int:
    """Which cloth a book without a cover is bound in; the same for the same book. 0 … TONES - 1."""
    return sum(str(public_id).encode()) % TONES
