"""Sound into the formats a caller can ask for; whole, or piece by piece as it is made."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import Any

import av
import numpy as np


@dataclass(frozen=True, slots=True)
class Format:
    """`mime` of the answer; `container` and `codec` as FFmpeg names them ("" = written by hand)."""

    mime: str
    container: str = ""
    codec: str = ""
    bit_rate: int = 0
    sample_format: str = "s16"


FORMATS: dict[str, Format] = {
    "wav": Format("audio/wav"),
    "pcm": Format("audio/pcm"),
    "flac": Format("audio/flac", "flac", "flac"),
    "mp3": Format("audio/mpeg", "mp3", "libmp3lame", 128_000, "s16p"),
    "opus": Format("audio/ogg", "ogg", "libopus", 64_000),
    "aac": Format("audio/aac", "adts", "aac", 96_000, "fltp"),
}
_OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
_MP3_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


def wav_header(rate_hz: int, data_bytes: int | None) -> bytes:
    """44 bytes for 16 bit mono; length unknown (a stream) is written as the largest there is."""
    size = 0xFFFFFFFF - 36 if data_bytes is None else data_bytes
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        size + 36,
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        rate_hz,
        rate_hz * 2,
        2,
        16,
        b"data",
        size,
    )


class _Sink(io.RawIOBase):
    """Takes what a muxer writes; cannot seek, as a network cannot."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        out = b"".join(self.parts)
        self.parts.clear()
        return out


class Encoder:
    """16 bit mono PCM in, encoded bytes out. `stream` leaves lengths in headers open."""

    def __init__(self, name: str, rate_hz: int, *, stream: bool = True) -> None:
        self.format = FORMATS[name]
        self.name = name
        self.rate_hz = rate_hz
        self._stream = stream
        self._started = False
        self._container: Any = None
        if self.format.container:
            self._sink: Any = _Sink() if stream else io.BytesIO()
            self._container = av.open(self._sink, "w", format=self.format.container)
            rate = rate_hz
            if name == "opus" and rate not in _OPUS_RATES:
                rate = 48_000
            if name == "mp3" and rate not in _MP3_RATES:
                rate = 44_100
            self._codec = self._container.add_stream(self.format.codec, rate=rate, layout="mono")
            if self.format.bit_rate:
                self._codec.bit_rate = self.format.bit_rate
            self._resampler = av.AudioResampler(self.format.sample_format, "mono", rate)

    def push(self, pcm: bytes) -> bytes:
        """Encode some samples; what is ready so far."""
        if self._container is None:
            head = b"" if self._started or self.name == "pcm" else wav_header(self.rate_hz, None)
            self._started = True
            return head + pcm
        frame = av.AudioFrame.from_ndarray(
            np.frombuffer(pcm, "<i2").reshape(1, -1), format="s16", layout="mono"
        )
        frame.sample_rate = self.rate_hz
        frame.pts = None
        for part in self._resampler.resample(frame):
            part.pts = None
            self._container.mux(self._codec.encode(part))
        return self._sink.take() if self._stream else b""

    def finish(self) -> bytes:
        """What was held back. Call once."""
        if self._container is None:
            return b""
        for part in self._resampler.resample(None):
            part.pts = None
            self._container.mux(self._codec.encode(part))
        self._container.mux(self._codec.encode(None))
        self._container.close()
        return self._sink.take() if self._stream else self._sink.getvalue()


def encode(pcm: bytes, rate_hz: int, name: str) -> bytes:
    """A whole recording. `pcm` is 16 bit mono, little endian; `name` a key of FORMATS."""
    if name == "pcm":
        return pcm
    if name == "wav":
        return wav_header(rate_hz, len(pcm)) + pcm
    encoder = Encoder(name, rate_hz, stream=False)
    if pcm:
        encoder.push(pcm)
    return encoder.finish()
