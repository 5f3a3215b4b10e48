"""The inference client before servers that are not ours: proxies, and others that speak OpenAI's speech API."""

from __future__ import annotations

import httpx
import pytest

from synthesis.speaking.client import InferenceClient, SpeechRefused, WorkerBusy, WorkerUnreachable
from synthesis.speaking.wire import SpeechOrder

ORDER = SpeechOrder(
    job="j",
    dispatch_no=1,
    project="p",
    segment="s",
    fingerprint="f",
    pool="gpu",
    lane="bulk",
    model="m",
    revision="1",
    voice="v",
    language="en",
    spoken="Words.",
)


def asked(answer: httpx.Response):
    client = InferenceClient({"gpu": ["http://worker"]})
    client._http = httpx.Client(transport=httpx.MockTransport(lambda request: answer))
    return client.speak(ORDER)


@pytest.mark.parametrize("status", [502, 504])
def test_a_proxy_whose_worker_is_away_is_an_outage_and_costs_nothing(status):
    with pytest.raises(WorkerUnreachable):
        asked(httpx.Response(status, text="<html>Bad Gateway</html>"))


@pytest.mark.parametrize(
    ("status", "after", "ms"),
    [(429, "3", 3_000), (503, "Wed, 21 Oct 2026 07:28:00 GMT", 1_000), (429, None, 1_000)],
)
def test_too_much_is_busy_and_costs_nothing(status, after, ms):
    headers = {"Retry-After": after} if after else {}
    with pytest.raises(WorkerBusy) as caught:
        asked(httpx.Response(status, headers=headers, json={"error": {"code": "rate_limit_exceeded"}}))
    assert caught.value.retry_after_ms == ms


def test_what_it_cannot_speak_is_refused():
    with pytest.raises(SpeechRefused):
        asked(httpx.Response(500, json={"error": {"code": "internal", "message": "no"}}))
