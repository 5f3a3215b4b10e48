"""One chapter into one encoded stream, through FFmpeg's muxers, into any seekable file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import BinaryIO, cast

import av
import av.error
import numpy as np

from synthesis.audio.timeline import RATE_HZ


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a stream is encoded. `sample_format` is FFmpeg's: s16, s16p, s32, fltp, flt."""

    muxer: str
    codec: str
    sample_format: str
    bit_rate: int = 0  # bits a second; 0 = the codec is lossless
    rate_hz: int = RATE_HZ
    codec_options: Mapping[str, str] = field(default_factory=dict)
    muxer_options: Mapping[str, str] = field(default_factory=dict)


def encode(
    file: BinaryIO, encoding: Encoding, blocks: Iterable[np.ndarray], tags: Mapping[str, str] | None = None
) -> int:
    """Write the blocks (float32 mono at the delivery rate) to `file` and return how many samples they had.

    `tags` are written as the muxer writes them: Vorbis comments in FLAC and Opus, an INFO list in WAV.
    Raises what `blocks` raises and OSError.
    """
    try:
        return _encoded(file, encoding, blocks, tags or {})
    except av.error.PyAVCallbackError as exc:  # the file's own write() failed while FFmpeg was closing
        raise OSError(f"The file could not be written: {exc.__cause__ or exc.__context__ or exc}") from exc


def _encoded(
    file: BinaryIO, encoding: Encoding, blocks: Iterable[np.ndarray], tags: Mapping[str, str]
) -> int:
    samples = 0
    options = {"fflags": "+bitexact", **encoding.muxer_options}
    with av.open(file, "w", format=encoding.muxer, options=options) as container:
        stream = cast(
            av.AudioStream,
            container.add_stream(
                encoding.codec, rate=encoding.rate_hz, options=dict(encoding.codec_options), layout="mono"
            ),
        )
        stream.codec_context.format = encoding.sample_format
        if encoding.bit_rate:
            stream.bit_rate = encoding.bit_rate
        container.metadata.update({name: value for name, value in tags.items() if value})
        convert = None
        if encoding.rate_hz != RATE_HZ:
            convert = av.AudioResampler(format=encoding.sample_format, layout="mono", rate=encoding.rate_hz)
        for block in blocks:
            frame = _frame(block, "flt" if convert else encoding.sample_format)
            frame.sample_rate = RATE_HZ
            frame.pts = samples
            frame.time_base = Fraction(1, RATE_HZ)
            samples += len(block)
            for ready in convert.resample(frame) if convert else [frame]:
                container.mux(stream.encode(ready))
        if convert:
            for ready in convert.resample(None):
                container.mux(stream.encode(ready))
        container.mux(stream.encode(None))
    return samples


def _frame(block: np.ndarray, sample_format: str) -> av.AudioFrame:
    """Return a block as an audio frame of a sample format; integers are rounded and clipped."""
    if sample_format in ("s16", "s16p"):
        data = np.clip(np.rint(block * np.float32(32768.0)), -32768, 32767).astype(np.int16)
    elif sample_format in ("s32", "s32p"):
        scaled = np.clip(np.rint(block.astype(np.float64) * 8388608.0), -8388608, 8388607)
        data = scaled.astype(np.int32) << 8  # 24 bits in the upper part, as FFmpeg's encoders want them
    else:
        data = np.ascontiguousarray(block, dtype=np.float32)
    return av.AudioFrame.from_ndarray(data[None], format=sample_format, layout="mono")
