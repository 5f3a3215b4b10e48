import io

import numpy as np
import pytest

from synthesis.audio.codec import flac_encode
from synthesis.audio.limiter import limited, true_peak
from synthesis.audio.meter import Meter
from synthesis.audio.render import ClipUnusable, Mastering, book_gain_db, chapter_render
from synthesis.audio.resample import resample
from synthesis.audio.roomtone import room_tone
from synthesis.audio.timeline import GRID, RATE_HZ, BookPlan, ChapterPlan, Clip, Line, timeline

PLAIN = Mastering(target_lufs=None, ceiling_dbtp=None)


def opened(sounds):
    """open_clip over a dict of key → (samples, rate)."""
    return lambda key: io.BytesIO(flac_encode(*sounds[key]))


def rendered(chapter, sounds, *, gain_db=0.0, mastering=PLAIN):
    (placed,) = timeline(BookPlan("B", (chapter,))).chapters
    blocks = list(chapter_render(placed, open_clip=opened(sounds), gain_db=gain_db, mastering=mastering))
    assert all(len(block) <= RATE_HZ for block in blocks)
    sound = np.concatenate(blocks)
    assert len(sound) == placed.samples
    return placed, sound


@pytest.mark.parametrize("rate_hz", [16000, 22050, 24000, 44100, 48000])
def test_speech_lies_on_its_sample(rate_hz):
    """A chirp in a take, found again by correlation exactly where the timeline says."""
    t = np.arange(round(0.4 * rate_hz)) / rate_hz
    chirp = (0.5 * np.sin(2 * np.pi * (300 * t + 3000 * t * t))).astype(np.float32)
    lead = np.zeros(rate_hz // 7, np.float32)
    take = np.concatenate((lead, chirp, lead))
    clip = Clip("a", rate_hz, len(lead), len(lead) + len(chirp), len(take))
    placed, sound = rendered(
        ChapterPlan("C", tuple(Line(clip, 777) for _ in range(3))), {"a": (take, rate_hz)}
    )
    t = np.arange(round(0.4 * RATE_HZ)) / RATE_HZ
    wanted = 0.5 * np.sin(2 * np.pi * (300 * t + 3000 * t * t))
    for line in placed.lines:
        around = sound[line.start - 50 : line.start + len(wanted) + 50]
        assert np.argmax(np.correlate(around, wanted, "valid")) == 50
        inner = slice(line.start + 200, line.start + len(wanted) - 200)
        assert np.max(np.abs(sound[inner] - wanted[200:-200])) < 0.01
    between = sound[placed.lines[0].end + 7000 : placed.lines[1].start - 3000]
    assert not between.any()


def test_no_edge_clicks():
    """Takes that begin and end at full level, without any silence of their own."""
    take = (0.8 * np.sin(2 * np.pi * 100 * np.arange(24000) / 24000 + np.pi / 2)).astype(np.float32)
    lines = tuple(Line(Clip("a", 24000, 0, 24000, 24000), ms) for ms in (0, 1, 60, 350))
    _, sound = rendered(ChapterPlan("C", lines), {"a": (take, 24000)})
    steepest = 0.8 * 2 * np.pi * 100 / RATE_HZ
    fade_adds = 0.8 * np.pi / 2 / (0.003 * RATE_HZ)
    assert np.max(np.abs(np.diff(sound))) < steepest + fade_adds + 1e-3


def test_a_takes_own_breath_is_let_into_the_pause_and_speech_is_not_faded():
    breath, speech = np.full(4800, 0.01, np.float32), np.full(12000, 0.3, np.float32)
    take = np.concatenate((breath, speech, breath))
    clip = Clip("a", 24000, 4800, 16800, len(take))
    placed, sound = rendered(ChapterPlan("C", (Line(clip, 350), Line(clip, 0))), {"a": (take, 24000)})
    first = placed.lines[0]
    assert sound[first.start + 60 : first.end - 60] == pytest.approx(0.3, abs=1e-3)
    assert sound[first.start - 400] > 0.005
    assert sound[first.start - 3000] == 0.0
    assert sound[first.end + 1000] > 0.005


def test_a_short_pause_is_never_overrun_by_its_neighbours_breath():
    take = np.full(24000, 0.1, np.float32)
    clip = Clip("a", 24000, 8000, 16000, 24000)
    placed, sound = rendered(ChapterPlan("C", (Line(clip, 60), Line(clip, 0))), {"a": (take, 24000)})
    middle = sound[placed.lines[0].end : placed.lines[1].start]
    assert middle.min() < 0.01  # both have faded somewhere in between
    assert middle.max() <= 0.1 + 1e-3


def test_gains_add_up():
    take = np.full(24000, 0.1, np.float32)
    clip = Clip("a", 24000, 0, 24000, 24000, gain_db=-6.0)
    placed, sound = rendered(ChapterPlan("C", (Line(clip, 0),)), {"a": (take, 24000)}, gain_db=12.0)
    middle = (placed.lines[0].start + placed.lines[0].end) // 2
    assert sound[middle] == pytest.approx(0.1 * 10 ** (6 / 20), rel=1e-3)


def test_the_books_gain_is_one_and_reaches_the_target(speechy):
    take = speechy(4.0, 24000, amplitude=0.05)
    clip = Clip("a", 24000, 0, len(take), len(take))
    plan = BookPlan("B", (ChapterPlan("C", (Line(clip, 300), Line(clip, 300))),))
    line = timeline(plan)
    gain = book_gain_db(line, opened({"a": (take, 24000)}), Mastering())
    _, sound = rendered(plan.chapters[0], {"a": (take, 24000)}, gain_db=gain, mastering=Mastering())
    assert book_gain_db(line, opened({"a": (take, 24000)}), Mastering(target_lufs=None)) == 0.0
    meter = Meter(RATE_HZ)
    meter.push(sound)
    assert meter.levels().lufs == pytest.approx(-18.0, abs=0.3)


def test_bad_takes_are_named():
    take = np.full(2400, 0.1, np.float32)
    sounds = {"short": (take, 24000), "rate": (take, 22050)}

    def run(clip, open_clip=None):
        (placed,) = timeline(BookPlan("B", (ChapterPlan("C", (Line(clip, 0),)),))).chapters
        list(chapter_render(placed, open_clip=open_clip or opened(sounds), gain_db=0, mastering=PLAIN))

    with pytest.raises(ClipUnusable, match="ends at sample 2400"):
        run(Clip("short", 24000, 0, 9999, 9999, segment="s1"))
    with pytest.raises(ClipUnusable, match="22050 Hz"):
        run(Clip("rate", 24000, 0, 2400, 2400))
    with pytest.raises(ClipUnusable) as caught:
        run(Clip("gone", 24000, 0, 2400, 2400, segment="s7"))
    assert (caught.value.key, caught.value.segment) == ("gone", "s7")
    with pytest.raises(ClipUnusable):
        run(Clip("text", 24000, 0, 2400, 2400), lambda key: io.BytesIO(b"not audio"))


def test_a_take_without_speech_takes_no_time():
    take = np.full(2400, 0.1, np.float32)
    silent, spoken = Clip("gone", 24000, 0, 0, 100), Clip("a", 24000, 0, 2400, 2400)
    placed, sound = rendered(ChapterPlan("C", (Line(silent, 100), Line(spoken, 0))), {"a": (take, 24000)})
    assert placed.samples % GRID == 0
    assert sound.any()


def test_room_tone_lies_under_the_whole_file_and_nothing_is_digital_silence():
    take = np.full(2400, 0.2, np.float32)
    clip = Clip("a", 24000, 0, 2400, 2400)
    mastering = Mastering(target_lufs=None, ceiling_dbtp=None, room_tone_db=-70.0)
    placed, sound = rendered(
        ChapterPlan("C", (Line(clip, 0),), head_ms=750, tail_ms=3000),
        {"a": (take, 24000)},
        mastering=mastering,
    )
    for part in (sound[: placed.lines[0].start - 10], sound[placed.lines[0].end + 10 :]):
        assert 20 * np.log10(np.sqrt(np.mean(part**2))) == pytest.approx(-70.0, abs=1.0)
        assert np.count_nonzero(part == 0.0) < 5


def test_room_tone_is_the_same_wherever_it_is_cut():
    whole = room_tone(0, 3 * RATE_HZ, RATE_HZ, -60.0)
    assert np.array_equal(whole[RATE_HZ:], room_tone(RATE_HZ, 2 * RATE_HZ, RATE_HZ, -60.0))
    twice = room_tone(19 * RATE_HZ, 2 * RATE_HZ, RATE_HZ, -60.0)
    assert np.max(np.abs(np.diff(twice))) < 10 * np.sqrt(np.mean(np.diff(twice) ** 2))  # no seam


def test_highpass_takes_rumble_and_leaves_the_voice():
    t = np.arange(48000) / 24000
    take = (0.3 * np.sin(2 * np.pi * 20 * t) + 0.3 * np.sin(2 * np.pi * 400 * t)).astype(np.float32)
    clip = Clip("a", 24000, 0, 48000, 48000)
    mastering = Mastering(target_lufs=None, ceiling_dbtp=None, highpass_hz=80.0)
    placed, sound = rendered(ChapterPlan("C", (Line(clip, 0),)), {"a": (take, 24000)}, mastering=mastering)
    part = sound[placed.lines[0].start + RATE_HZ // 2 :][:RATE_HZ]
    spectrum = np.abs(np.fft.rfft(part)) / RATE_HZ * 2
    assert spectrum[400] == pytest.approx(0.3, abs=0.01)
    assert spectrum[20] < 0.03


@pytest.mark.parametrize("block", [997, 4096, 44100])
def test_limiter_holds_true_peaks(speechy, block):
    loud = speechy(3.0, RATE_HZ, amplitude=0.9)
    loud[70_000:70_003] += 1.3
    out = np.concatenate(
        list(limited((loud[i : i + block] for i in range(0, len(loud), block)), -1.5, RATE_HZ))
    )
    assert len(out) == len(loud)
    assert 20 * np.log10(true_peak(loud)) > 2
    assert 20 * np.log10(true_peak(out)) <= -1.5 + 0.02
    assert np.mean(out * loud) > 0.3 * np.mean(loud * loud)


def test_limiter_leaves_soft_sound_alone(speechy):
    soft = speechy(2.0, RATE_HZ, amplitude=0.1)
    assert np.array_equal(
        np.concatenate(list(limited([soft[:7], soft[7:50000], soft[50000:]], -1.5, RATE_HZ))), soft
    )
    assert list(limited([], -1.5, RATE_HZ)) == []


@pytest.mark.parametrize(
    ("from_hz", "to_hz"), [(24000, 44100), (48000, 44100), (22050, 44100), (23999, 44100)]
)
def test_resampling_is_exact_on_the_sample(from_hz, to_hz):
    t = np.arange(from_hz // 2) / from_hz
    tone = np.sin(2 * np.pi * 1000 * t).astype(np.float32)
    out = resample(tone, from_hz, to_hz, origin=600, first=300, count=9000)
    wanted = np.sin(2 * np.pi * 1000 * (600 / from_hz + (300 + np.arange(9000)) / to_hz))
    assert 20 * np.log10(np.max(np.abs(out - wanted))) < -80


def test_resampling_folds_nothing_back():
    t = np.arange(48000) / 48000
    above = np.sin(2 * np.pi * 23500 * t).astype(np.float32)  # over the Nyquist frequency of 44.1 kHz
    out = resample(above, 48000, 44100)[2000:-2000]
    assert 20 * np.log10(np.sqrt(np.mean(out**2))) < -60
