import numpy as np
import pytest

from synthesis.audio.loudness import combined_lufs, loudness_lufs
from synthesis.audio.measure import SILENCE_DB, measure
from synthesis.audio.meter import Meter

RATE = 24_000


def silence(seconds, rate_hz=RATE):
    return np.zeros(round(seconds * rate_hz), dtype=np.float32)


def noise(seconds, level_db, *, seed=0, rate_hz=RATE):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(round(seconds * rate_hz)) * 10 ** (level_db / 20)).astype(np.float32)


def metered(samples, rate_hz):
    meter = Meter(rate_hz)
    for at in range(0, len(samples), rate_hz):
        meter.push(samples[at : at + rate_hz])
    return meter.levels()


def tone(seconds, level_db, hz=220.0):
    t = np.arange(round(seconds * RATE)) / RATE
    return (np.sin(2 * np.pi * hz * t) * 10 ** (level_db / 20)).astype(np.float32)


@pytest.mark.parametrize("floor_db", [None, -80.0, -65.0, -55.0])
def test_speech_is_found_within_30_ms(floor_db):
    sound = np.concatenate((silence(0.4), tone(1.0, -15), silence(0.6)))
    if floor_db is not None:
        sound += noise(2.0, floor_db)
    found = measure(sound, RATE)
    assert 0 <= 0.4 * RATE - found.speech_start <= 0.030 * RATE
    assert 0 <= found.speech_end - 1.4 * RATE <= 0.045 * RATE


def test_a_soft_onset_belongs_to_the_speech():
    """An "h" or "f": 120 ms of noise 35 dB under the vowel that follows."""
    breath = noise(0.120, -50.0)
    sound = np.concatenate((silence(0.5), breath, tone(0.8, -15), silence(0.5))) + noise(1.92, -85.0, seed=3)
    found = measure(sound, RATE)
    assert found.speech_start <= 0.5 * RATE + 0.006 * RATE
    assert found.speech_start >= 0.47 * RATE


def test_a_slow_fade_in_is_not_cut():
    ramp = tone(0.2, -15) * np.linspace(0, 1, round(0.2 * RATE), dtype=np.float32) ** 2
    found = measure(np.concatenate((silence(0.3), ramp, tone(0.5, -15), silence(0.3))), RATE)
    assert found.speech_start < (0.3 + 0.03) * RATE


def test_a_final_plosive_after_a_closure_is_kept():
    """ "stop": 90 ms of closure, then a burst."""
    sound = np.concatenate((silence(0.2), tone(0.5, -15), silence(0.09), noise(0.04, -30), silence(0.4)))
    assert measure(sound, RATE).speech_end >= (0.2 + 0.5 + 0.09 + 0.04) * RATE


def test_a_click_is_no_speech():
    sound = np.concatenate((silence(0.5), tone(0.8, -15), silence(0.5)))
    sound[round(0.1 * RATE)] = 0.5
    assert measure(sound, RATE).speech_start > 0.4 * RATE


@pytest.mark.parametrize("sound", [np.zeros(0, np.float32), silence(1.0), noise(1.0, -90.0)])
def test_a_silent_take_has_no_speech(sound):
    found = measure(sound, RATE)
    assert (found.speech_start, found.speech_end) == (0, 0)
    assert found.loudness_lufs is None
    assert found.rms_db == SILENCE_DB


def test_levels_are_what_they_are_known_to_be():
    sound = np.concatenate((silence(0.5), tone(2.0, -20.0), silence(0.5))) + noise(3.0, -70.0)
    found = measure(sound, RATE)
    assert found.peak_db == pytest.approx(-20.0, abs=0.1)
    assert found.rms_db == pytest.approx(-23.01, abs=0.2)
    assert found.noise_floor_db == pytest.approx(-70.0, abs=1.5)
    assert found.samples == 3 * RATE


def test_nothing_but_speech_is_speech(speechy):
    found = measure(speechy(2.0, RATE), RATE)
    assert found.speech_start < 0.12 * RATE
    assert found.speech_end > 1.9 * RATE


def test_measures_can_be_stored_as_json():
    found = measure(silence(0.1), RATE)
    assert all(np.isfinite(x) for x in (found.rms_db, found.peak_db, found.noise_floor_db))


def test_a_full_scale_sine_has_the_loudness_the_standard_gives():
    """BS.1770-4: 0 dBFS, 997 Hz, one channel = -3.01 LUFS."""
    t = np.arange(48000 * 3) / 48000
    assert loudness_lufs(np.sin(2 * np.pi * 997 * t), 48000) == pytest.approx(-3.01, abs=0.02)


@pytest.mark.parametrize("rate_hz", [22050, 24000, 44100, 48000])
def test_loudness_agrees_with_ffmpegs_ebur128(speechy, rate_hz):
    sound = np.concatenate(
        [speechy(4, rate_hz, amplitude=a, seed=i) for i, a in enumerate((0.3, 0.01, 0.15))]
    )
    assert loudness_lufs(sound, rate_hz) == pytest.approx(metered(sound, rate_hz).lufs, abs=0.1)


def test_a_clip_too_short_for_ebur128_has_a_loudness(speechy):
    assert metered(speechy(0.3, RATE), RATE).lufs is None
    longer, short = loudness_lufs(speechy(3.0, RATE), RATE), loudness_lufs(speechy(0.25, RATE), RATE)
    assert short == pytest.approx(longer, abs=3.0)


def test_the_books_loudness_is_foreseen_from_its_takes(speechy):
    """What the takes and pauses say, a meter must read when they are laid out."""
    rng = np.random.default_rng(5)
    at, parts, sound = 0.0, [], []
    for number in range(25):
        take = speechy(rng.uniform(0.8, 4.0), RATE, amplitude=rng.uniform(0.1, 0.3), seed=number)
        pause = silence(rng.choice([0.06, 0.35, 0.65, 1.5]))
        parts.append((at, at + len(take) / RATE, loudness_lufs(take, RATE)))
        sound += [take, pause]
        at += (len(take) + len(pause)) / RATE
    assert combined_lufs(parts) == pytest.approx(metered(np.concatenate(sound), RATE).lufs, abs=0.3)


def test_no_takes_have_no_loudness():
    assert combined_lufs([]) is None
    assert combined_lufs([(0.0, 1.0, -120.0)]) is None


def test_meter_reads_what_was_put_in():
    sound = np.concatenate((noise(0.75, -70.0), tone(4.0, -20.0), noise(3.0, -70.0, seed=2)))
    found = metered(sound, RATE)
    assert found.samples == len(sound)
    assert found.head_s == pytest.approx(0.75, abs=0.06)
    assert found.tail_s == pytest.approx(3.0, abs=0.06)
    assert found.noise_floor_db == pytest.approx(-70.0, abs=0.5)
    assert found.peak_db == pytest.approx(-20.0, abs=0.1)
    assert found.rms_db == pytest.approx(-23.01 + 10 * np.log10(4.0 / 7.75), abs=0.1)
    assert found.digital_silence_s < 0.001
    gap = metered(np.concatenate((tone(1.0, -20.0), silence(0.7), tone(1.0, -20.0))), RATE)
    assert gap.digital_silence_s == pytest.approx(0.7, abs=0.001)


def test_true_peak_between_samples_is_seen():
    """A sine at a quarter of the rate, 45 degrees off: samples at -3.01 dB, the curve between them at 0 dB."""
    sound = np.sin(np.pi / 2 * np.arange(RATE) + np.pi / 4).astype(np.float32)
    found = metered(sound, RATE)
    assert found.peak_db == pytest.approx(-3.01, abs=0.01)
    assert found.true_peak_db == pytest.approx(0.0, abs=0.2)
