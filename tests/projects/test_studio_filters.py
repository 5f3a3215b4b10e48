"""Figures as the pages say them."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from projects.templatetags import studio


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0:00"),
        (9.6, "0:10"),
        (59.6, "1:00"),
        (310, "5:10"),
        (3600, "1:00:00"),
        (18_367, "5:06:07"),
        (None, ""),
        ("", ""),
    ],
)
def test_clock(seconds: object, said: str) -> None:
    assert studio.clock(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "about 1 s"), (3.4, "about 3 s"), (42, "about 40 s"), (89, "about 90 s"), (90, "about 2 min"),
        (4000, "about 67 min"), (5400, "about 1.5 h"), (15_000, "about 4.2 h"), (None, ""), (float("nan"), ""),
    ],
)  # fmt: skip
def test_about_promises_no_more_than_is_known(seconds: object, said: str) -> None:
    assert studio.about(seconds) == said


def test_other_units() -> None:
    assert studio.ms_clock(81_000) == "1:21"
    assert studio.hours_clock(0.5) == "30:00"
    assert studio.about_hours(4.2) == "about 4.2 h"
    assert studio.seconds(2.8449) == "2.84 s"


@pytest.mark.parametrize(
    ("part", "whole", "share"), [(1, 3, "33.33"), (0, 3, "0"), (3, 0, "0"), (None, None, "0"), ("", 5, "0")]
)
def test_share_is_css(part: object, whole: object, share: str) -> None:
    assert studio.share(part, whole) == share


def test_plain_ready_counts_nothing_twice() -> None:
    assert studio.plain_ready(SimpleNamespace(ready=34, approved=8, stale=2)) == 24
    assert studio.plain_ready({"ready": 1, "approved": 1, "stale": 1}) == 0
    assert studio.plain_ready(None) == 0


def test_ago_says_just_now_and_one_unit() -> None:
    now = timezone.now()
    assert studio.ago(now) == "just now"
    assert studio.ago(now - timedelta(hours=2, minutes=40)).replace("\u00a0", " ") == "2 hours ago"
    assert studio.ago(None) == ""


def test_language_names_and_tone() -> None:
    assert studio.language_names(["en-GB", "ko"]) == "British English, Korean"
    assert studio.language_names(None) == ""
    assert 0 <= studio.tone("0197b3c2-0000-7000-8000-000000000001") < studio.TONES
