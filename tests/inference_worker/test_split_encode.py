"""Long text in pieces and their sound in one; formats of any rate."""

import io

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference_worker.encode import FORMATS, Encoder, encode
from inference_worker.split import pieces_join, sentences, text_split
from inference_worker.wire import _MARKUP


def test_short_text_is_left_alone():
    assert text_split("Hello there.", lambda t: len(t) < 50) == ["Hello there."]


def test_split_prefers_sentences_then_clauses_then_words():
    text = "One two three. Four, five six. Seven eight nine ten."
    assert text_split(text, lambda t: len(t) <= 32) == [
        "One two three. Four, five six. ",
        "Seven eight nine ten.",
    ]
    assert text_split("aaa bbb, ccc ddd", lambda t: len(t) <= 10) == ["aaa bbb, ", "ccc ddd"]
    assert text_split("aaa bbb ccc ddd", lambda t: len(t) <= 8) == ["aaa bbb ", "ccc ddd"]


def test_unbreakable_word_is_said():
    with pytest.raises(ValueError, match="longer"):
        text_split("a" * 100, lambda t: len(t) <= 10)


@given(st.text(alphabet='ab ,.;—"”!?。、', max_size=400))
def test_pieces_join_to_the_text_and_fit(text):
    try:
        pieces = text_split(text, lambda t: len(t) <= 40)
    except ValueError:
        return
    assert "".join(pieces) == text
    assert all(len(p) <= 40 for p in pieces)
    if len(pieces) > 1:
        assert all(any(c.isalnum() for c in p) for p in pieces)


@given(st.text(alphabet="ab ,.!?。”", max_size=300))
def test_sentences_join_to_the_text_and_hold_words(text):
    pieces = sentences(text)
    assert "".join(pieces).strip() == text.strip()
    if len(pieces) > 1:
        assert all(any(c.isalnum() for c in p) for p in pieces)


def test_join_has_no_click_and_no_lost_sound():
    rate = 24_000
    t = np.arange(rate) / rate
    tone = (0.5 * np.sin(2 * np.pi * 440 * t + 1.0)).astype(np.float32)  # starts and ends off zero
    joined = pieces_join([tone, tone], rate)
    inner = joined[rate // 2 : -(rate // 2)]
    assert (
        np.abs(np.diff(inner)).max() < 2 * np.pi * 440 / rate * 0.5 * 1.5
    )  # no step steeper than the tone's own
    loud = np.flatnonzero(np.abs(joined) > 1e-3)
    gaps = np.diff(loud)
    assert (gaps > rate // 20).sum() == 1
    assert 120 <= gaps.max() / rate * 1000 <= 135
    roomy = np.concatenate([np.zeros(rate, np.float32), tone, np.zeros(rate, np.float32)])
    inside = np.diff(np.flatnonzero(np.abs(pieces_join([roomy, roomy], rate)) > 1e-3)).max() / rate * 1000
    assert 155 <= inside <= 175  # 20 ms of each piece's own silence are kept
    assert pieces_join([tone], rate) is tone


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000, 44_100])
def test_formats_at_any_rate(name, rate):
    pcm = (10_000 * np.sin(np.arange(rate) / 20)).astype("<i2").tobytes()
    whole = encode(pcm, rate, name)
    encoder = Encoder(name, rate)
    streamed = b"".join(
        [encoder.push(pcm[: len(pcm) // 2]), encoder.push(pcm[len(pcm) // 2 :]), encoder.finish()]
    )
    for data in (whole, streamed):
        if name == "pcm":
            assert data == pcm
            continue
        with av.open(io.BytesIO(data)) as file:
            seconds = sum(f.samples / f.sample_rate for f in file.decode(audio=0))
        assert seconds == pytest.approx(1.0, abs=0.1)


def test_no_sound_is_still_a_file():
    assert encode(b"", 24_000, "wav")[:4] == b"RIFF"
    assert encode(b"", 24_000, "flac")[:4] == b"fLaC"


@pytest.mark.parametrize(
    "text", ["<speak>", "</p>", "<break/>", "<break time='1s'/>", '<a href="x">', "<!-- x -->", "<?xml?>"]
)
def test_markup_is_seen(text):
    assert _MARKUP.search(f"Before {text} after")


@pytest.mark.parametrize("text", ["a < b > c", "x<3 and y>2", "<3", "I <3 you", "« <- »", "a <- b", "5 <= 6"])
def test_signs_are_not_markup(text):
    assert not _MARKUP.search(text)
