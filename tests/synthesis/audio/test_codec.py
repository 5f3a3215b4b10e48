import io
import struct
import wave

import av
import numpy as np
import pytest

from synthesis.audio.codec import AudioUnreadable, audio_decode, audio_read, flac_encode, wav_read


def wav_bytes(samples, rate_hz, channels=1):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    return out.getvalue()


@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 24000, 44100, 48000])
def test_flac_keeps_every_sample_to_16_bit(speechy, rate_hz):
    samples = speechy(0.7, rate_hz)
    decoded, rate = wav_read(flac_encode(samples, rate_hz))
    assert rate == rate_hz
    assert decoded.dtype == np.float32
    assert len(decoded) == len(samples)
    assert np.max(np.abs(decoded - samples)) <= 0.5 / 32768 + 1e-9


def test_equal_samples_give_equal_bytes(speechy):
    samples = speechy(1.0, 24000)
    assert flac_encode(samples, 24000) == flac_encode(samples.copy(), 24000)
    assert b"Lavf" not in flac_encode(samples, 24000)  # a new FFmpeg must not change a take's address


def test_loud_and_odd_samples_are_clipped_not_wrapped():
    decoded, _ = wav_read(flac_encode(np.array([2.0, -2.0, np.nan, 0.0], dtype=np.float32), 8000))
    assert decoded[0] > 0.99
    assert decoded[1] == -1.0
    assert decoded[2] == 0.0


def test_wav_with_a_streamed_header_is_read_to_its_end():
    """A server that streams does not know the length and writes 0xFFFFFFFF."""
    data = bytearray(wav_bytes(np.full(1000, 0.5), 24000))
    struct.pack_into("<I", data, 4, 0xFFFFFFFF)
    struct.pack_into("<I", data, 40, 0xFFFFFFFF)
    samples, rate = wav_read(bytes(data))
    assert (len(samples), rate) == (1000, 24000)
    assert samples == pytest.approx(0.5, abs=1e-4)


def test_float_wav_and_stereo():
    stereo = np.stack((np.full(500, 0.4), np.full(500, 0.2)), axis=1)
    samples, _ = wav_read(wav_bytes(stereo, 22050, channels=2))
    assert samples == pytest.approx(0.3, abs=1e-4)
    out = io.BytesIO()
    with av.open(out, "w", format="wav") as container:
        stream = container.add_stream("pcm_f32le", rate=24000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.full((1, 64), 0.25, np.float32), format="flt", layout="mono")
        frame.sample_rate = 24000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert wav_read(out.getvalue())[0] == pytest.approx(0.25)


@pytest.mark.parametrize("data", [b"", b"no sound", b"RIFF\x00\x00\x00\x00WAVE", b"fLaC" + b"\x00" * 60])
def test_what_is_no_sound_is_refused_by_name(data):
    with pytest.raises(AudioUnreadable):
        wav_read(data)


def test_blocks_are_the_whole_in_pieces(speechy):
    data = flac_encode(speechy(3.0, 24000), 24000)
    blocks = list(audio_decode(io.BytesIO(data)))
    assert len(blocks) > 1
    assert np.array_equal(np.concatenate(blocks), audio_read(io.BytesIO(data))[0])


def test_nothing_but_mono_is_encoded():
    with pytest.raises(ValueError, match="mono"):
        flac_encode(np.zeros((10, 2), np.float32), 24000)
