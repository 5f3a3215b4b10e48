"""Audio in and out of bytes, through PyAV's own FFmpeg: no system package is needed.

Samples are always float32 mono in [-1, 1], shape (samples,).
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import av
import av.error
import numpy as np

_BITEXACT = 1 << 23  # AV_CODEC_FLAG_BITEXACT: no version strings, so equal sound gives equal bytes


class AudioUnreadable(ValueError):
    """Raised when bytes hold no sound that can be decoded."""


class AudioReader:
    """One sound file, decoded block by block. Use as a context manager.

    `rate_hz` and `channels` are the file's own; `blocks()` may be called once.
    """

    def __init__(self, file: BinaryIO) -> None:
        """Open `file` (readable, seekable). Raises AudioUnreadable."""
        try:
            self._container = av.open(file, mode="r")
        except (av.error.FFmpegError, ValueError, OSError) as exc:
            raise AudioUnreadable(f"Not a sound file: {exc}") from exc
        if not self._container.streams.audio:
            self._container.close()
            raise AudioUnreadable("The file holds no sound.")
        self._stream = self._container.streams.audio[0]
        self.rate_hz: int = int(self._stream.rate or 0)
        self.channels: int = int(self._stream.codec_context.channels or 0)
        if self.rate_hz <= 0:
            self._container.close()
            raise AudioUnreadable("The file names no sample rate.")

    def __enter__(self) -> AudioReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the decoder; safe to call twice."""
        self._container.close()

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield float32 mono blocks of whatever length the file's packets have. Raises AudioUnreadable."""
        try:
            for frame in self._container.decode(self._stream):
                yield frame_mono(frame)
        except av.error.FFmpegError as exc:
            raise AudioUnreadable(f"The sound is damaged: {exc}") from exc


def frame_mono(frame: av.AudioFrame) -> np.ndarray:
    """Return a decoded frame as float32 mono (samples,); several channels are averaged."""
    raw = frame.to_ndarray()
    if not frame.format.is_planar:
        raw = raw.reshape(-1, frame.layout.nb_channels).T
    if raw.dtype == np.uint8:
        samples = (raw.astype(np.float32) - 128.0) / 128.0
    elif raw.dtype.kind == "i":
        samples = raw.astype(np.float32) / float(1 << (8 * raw.dtype.itemsize - 1))
    else:
        samples = raw.astype(np.float32, copy=False)
    return samples[0] if samples.shape[0] == 1 else samples.mean(axis=0, dtype=np.float32)


def audio_decode(file: BinaryIO) -> Iterator[np.ndarray]:
    """Yield a file's sound as float32 mono blocks at the file's own rate. Raises AudioUnreadable."""
    with AudioReader(file) as reader:
        yield from reader.blocks()


def audio_read(file: BinaryIO) -> tuple[np.ndarray, int]:
    """Return all samples of a file and its rate in Hz. Raises AudioUnreadable, also when nothing is in it."""
    with AudioReader(file) as reader:
        blocks = list(reader.blocks())
        if not blocks:
            raise AudioUnreadable("The file holds no samples.")
        return np.concatenate(blocks), reader.rate_hz


def wav_read(data: bytes) -> tuple[np.ndarray, int]:
    """Return (samples, rate in Hz) of WAV bytes, or of anything else PyAV can decode. Raises AudioUnreadable."""
    return audio_read(io.BytesIO(data))


def pcm16(samples: np.ndarray) -> np.ndarray:
    """Return float samples as int16, rounded and clipped. Not dithered: equal input must give equal bytes."""
    scaled = np.nan_to_num(np.asarray(samples, dtype=np.float32)) * np.float32(32768.0)
    return np.clip(np.rint(scaled), -32768, 32767).astype(np.int16)


def flac_encode(samples: np.ndarray, rate_hz: int) -> bytes:
    """Return mono 16 bit FLAC bytes. Equal samples give equal bytes, so they can be addressed by their hash."""
    if samples.ndim != 1:
        raise ValueError("flac_encode takes mono samples of shape (samples,).")
    out = io.BytesIO()
    with av.open(out, mode="w", format="flac", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("flac", rate=rate_hz, layout="mono", format="s16")
        stream.codec_context.flags |= _BITEXACT
        whole = pcm16(samples)
        for start in range(0, len(whole), rate_hz * 10):
            part = np.ascontiguousarray(whole[None, start : start + rate_hz * 10])
            frame = av.AudioFrame.from_ndarray(part, format="s16", layout="mono")
            frame.sample_rate = rate_hz
            frame.pts = start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return out.getvalue()
