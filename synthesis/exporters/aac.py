"""AAC-LC packets of a chapter, so made that chapters encoded apart can be joined without a seam.

FFmpeg's encoder delays by one frame: of k frames of sound it makes k + 1 packets, the first of which covers the frame
*before* the sound. A packet spans two frames (MDCT overlap), so in a joined stream the last packet of one chapter
stands where the next chapter's first would: that one is dropped. Both are silence (a chapter's tail and head), and
every chapter lasts whole frames (timeline.GRID), so positions stay exact: nothing drifts by a frame a chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import BinaryIO

import av
import numpy as np

from synthesis.audio.codec import frame_mono
from synthesis.audio.timeline import GRID, RATE_HZ

FRAME = GRID  # samples a packet
PRIMING = FRAME  # samples before the sound in the first packet
_ADTS_HEADER = 7  # bytes
_TIME_BASE = Fraction(1, RATE_HZ)


def aac_encoder(bit_rate: int) -> av.AudioCodecContext:
    """Return an opened AAC-LC encoder: mono, 44.1 kHz, `bit_rate` bits a second."""
    encoder = av.CodecContext.create("aac", "w")
    encoder.sample_rate = RATE_HZ
    encoder.layout = "mono"
    encoder.format = "fltp"
    encoder.bit_rate = bit_rate
    encoder.time_base = _TIME_BASE
    encoder.open()
    return encoder


def aac_packets(blocks: Iterable[np.ndarray], bit_rate: int) -> Iterator[bytes]:
    """Yield the packets of a chapter: one more than it has frames. The samples must be whole frames in all."""
    encoder = aac_encoder(bit_rate)
    samples = made = 0
    for block in blocks:
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block[None]), format="fltp", layout="mono")
        frame.sample_rate = RATE_HZ
        frame.time_base = _TIME_BASE
        frame.pts = samples
        samples += len(block)
        for packet in encoder.encode(frame):
            made += 1
            yield bytes(packet)
    for packet in encoder.encode(None):
        made += 1
        yield bytes(packet)
    if samples % FRAME or made != samples // FRAME + 1:
        raise RuntimeError(
            f"{samples} samples gave {made} AAC packets; chapters could not be joined exactly."
        )


def adts_write(file: BinaryIO, packets: Iterable[bytes]) -> None:
    """Write packets as an ADTS stream (ISO/IEC 13818-7): every packet with its length in front, playable as it is."""
    for packet in packets:
        size = len(packet) + _ADTS_HEADER
        # MPEG-4, no checksum; AAC-LC, 44.1 kHz (index 4), one channel; buffer fullness "variable".
        head = bytes(
            (0xFF, 0xF1, 1 << 6 | 4 << 2, 1 << 6 | size >> 11, size >> 3 & 0xFF, (size & 7) << 5 | 0x1F, 0xFC)
        )
        file.write(head + packet)


def adts_read(file: BinaryIO) -> Iterator[bytes]:
    """Yield the packets of an ADTS stream of ours. Raises ValueError when it is damaged."""
    while head := file.read(_ADTS_HEADER):
        if len(head) < _ADTS_HEADER or head[0] != 0xFF or head[1] != 0xF1:
            raise ValueError("The stored AAC stream is damaged.")
        size = ((head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5) - _ADTS_HEADER
        packet = file.read(size)
        if len(packet) != size:
            raise ValueError("The stored AAC stream is cut off.")
        yield packet


def aac_decoded(packets: Iterable[bytes], extradata: bytes | None) -> Iterator[np.ndarray]:
    """Yield the sound of a chapter's packets, without the frame before it: what a listener gets."""
    decoder = av.CodecContext.create("aac", "r")
    decoder.extradata = extradata
    skip = PRIMING
    for packet in packets:
        for frame in decoder.decode(av.Packet(packet)):
            block = frame_mono(frame)
            if skip:
                block, skip = block[skip:], max(skip - len(block), 0)
            if len(block):
                yield block
