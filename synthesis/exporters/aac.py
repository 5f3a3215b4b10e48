"""AAC-LC packets of a chapter, so made that chapters encoded apart can be joined without a seam.

FFmpeg's encoder delays by one frame: of k frames of sound it makes k + 1 packets, the first of which covers the frame
*before* the sound. A packet spans two frames (MDCT overlap), so in a joined stream the last packet of one chapter
stands where the next chapter's first would: that one is dropped. Both are silence (a chapter's tail and head), and
every chapter lasts whole frames (timeline.GRID), so positions stay exact: nothing drifts by a frame a chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import av
import numpy as np

from synthesis.audio.timeline import GRID, RATE_HZ

FRAME = GRID  # samples a packet
PRIMING = FRAME  # samples before the sound in the first packet
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
