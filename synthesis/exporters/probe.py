"""What format a finished file really has, read from the file itself."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

import av

_MP3_RATES_KBPS = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # MPEG-1 layer III
_MP3_HZ = (44100, 48000, 32000)
_MODES = ("stereo", "joint stereo", "dual mono", "mono")


@dataclass(frozen=True, slots=True)
class Format:
    """A file's format. `constant_bit_rate` is None where it means nothing (lossless) or is not known."""

    codec: str
    rate_hz: int
    channels: int
    bit_rate: int  # bits a second, average
    bytes: int
    duration_s: float
    constant_bit_rate: bool | None = None
    channel_mode: str = ""  # mp3: stereo, joint stereo, dual mono, mono


def format_read(path: Path) -> Format:
    """Return a sound file's format. Raises av.error.FFmpegError for what is none."""
    size = path.stat().st_size
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        duration = float(stream.duration * stream.time_base) if stream.duration and stream.time_base else 0.0
        if not duration and container.duration:
            duration = container.duration / av.time_base
        codec = stream.codec_context.name
        bit_rate = stream.codec_context.bit_rate or (round(size * 8 / duration) if duration else 0)
        rate_hz, channels = stream.rate or 0, stream.codec_context.channels
    constant: bool | None = None
    mode = ""
    if codec.startswith("mp3"):
        codec = "mp3"
        rates, modes = mp3_frames(path)
        constant = len(rates) == 1
        mode = " and ".join(sorted(modes))
        if constant:
            bit_rate = next(iter(rates)) * 1000
    return Format(codec, rate_hz, channels, bit_rate, size, duration, constant, mode)


def mp3_frames(path: Path) -> tuple[set[int], set[str]]:
    """Return the bit rates (kbit/s) and channel modes that an MPEG-1 layer III file's frames have.

    The first frame holds the encoder's notes ("Info"), no sound; it counts all the same. Every header is read:
    an average says nothing about a constant rate.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _frames(data)


def _frames(data: mmap.mmap) -> tuple[set[int], set[str]]:
    at = 0
    if data[:3] == b"ID3":
        at = 10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9])
    rates: set[int] = set()
    modes: set[str] = set()
    while at + 4 <= len(data) and data[at : at + 3] != b"TAG":
        one, two, three = data[at + 1], data[at + 2], data[at + 3]
        rate, hz = two >> 4, two >> 2 & 3
        if data[at] != 0xFF or one & 0xFE != 0xFA or not 0 < rate < 15 or hz == 3:
            break  # not a frame any more: an APE tag, or padding
        rates.add(_MP3_RATES_KBPS[rate])
        modes.add(_MODES[three >> 6])
        at += 144_000 * _MP3_RATES_KBPS[rate] // _MP3_HZ[hz] + (two >> 1 & 1)
    return rates, modes
