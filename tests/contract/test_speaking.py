"""The studio's client, codec and store against a real inference worker."""

from __future__ import annotations

import hashlib
import io
import time
from dataclasses import replace

import pytest

from synthesis.audio.codec import audio_read
from synthesis.audio.peaks import peaks_decode
from synthesis.speaking.client import InferenceClient, SpeechRefused, WorkerUnreachable
from synthesis.speaking.filling import order_fill
from synthesis.speaking.store import FolderStore
from synthesis.speaking.wire import Outcome, SpeechOrder

pytestmark = pytest.mark.slow


@pytest.fixture
def client(fake_worker):
    client = InferenceClient({"cpu": [fake_worker]}, timeout_s=10)
    yield client
    client.close()


@pytest.fixture
def order(client):
    offer = client.offers("cpu")[0]
    return SpeechOrder(
        job="j", dispatch_no=1, project="book", segment="s", fingerprint="f" * 64, pool="cpu", lane="bulk",
        model=offer["model"], revision=offer["revision"], voice=offer["id"], language="en",
        spoken="Seven lamps stood on the shelf.",
    )  # fmt: skip


def test_a_sentence_becomes_a_measured_take(client, order, tmp_path):
    result = order_fill(order, client=client, store=FolderStore(tmp_path))
    assert result.outcome == Outcome.DONE, result
    facts = result.facts
    data = (tmp_path / facts.audio_key).read_bytes()
    assert hashlib.sha256(data).hexdigest() == facts.sha256
    assert facts.audio_key == f"p/book/takes/{order.fingerprint}/{facts.sha256}.flac"
    samples, rate = audio_read(io.BytesIO(data))
    assert (len(samples), rate) == (facts.samples, facts.rate_hz)
    assert 0 <= facts.speech_start < facts.speech_end <= facts.samples
    peaks = peaks_decode((tmp_path / facts.peaks_key).read_bytes())
    assert abs(len(peaks.pairs) - facts.samples / facts.rate_hz * 100) <= 2


def test_the_same_order_gives_the_same_bytes(client, order, tmp_path):
    one = order_fill(order, client=client, store=FolderStore(tmp_path))
    two = order_fill(order, client=client, store=FolderStore(tmp_path))
    assert one.facts.sha256 == two.facts.sha256


def test_what_cannot_be_spoken_is_permanent(client, order, tmp_path):
    result = order_fill(replace(order, voice="nobody"), client=client, store=FolderStore(tmp_path))
    assert (result.outcome, result.code, result.permanent) == (Outcome.FAILED, "voice_not_found", True)


def test_another_revision_is_refused_not_replaced(client, order):
    with pytest.raises(SpeechRefused):
        client.speak(replace(order, revision="another"))


def test_nobody_there_is_unreachable_not_failed(order, tmp_path):
    lonely = InferenceClient({"cpu": ["http://127.0.0.1:9"]}, timeout_s=2)
    result = order_fill(order, client=lonely, store=FolderStore(tmp_path))
    assert (result.outcome, result.code) == (Outcome.UNREACHABLE, "worker_unreachable")
    with pytest.raises(WorkerUnreachable):
        lonely.offers("cpu")


def test_a_dead_worker_is_passed_over(fake_worker, order):
    client = InferenceClient({"cpu": ["http://127.0.0.1:9", fake_worker]}, timeout_s=5)
    assert client.speak(order).audio[:4] == b"RIFF"
    client.close()


def test_an_order_read_too_late_is_reported(client, order, tmp_path):
    result = order_fill(replace(order, not_after=time.time() - 1), client=client, store=FolderStore(tmp_path))
    assert result.outcome == Outcome.EXPIRED


def test_a_store_that_refuses_costs_nothing(client, order, tmp_path):
    (tmp_path / "p").write_text("a file where a folder should be")
    result = order_fill(order, client=client, store=FolderStore(tmp_path))
    assert (result.outcome, result.code) == (Outcome.UNREACHABLE, "storage_refused")
