import struct

import numpy as np
import pytest

from synthesis.audio.peaks import peaks_decode, peaks_encode


def test_header_is_audiowaveforms_version_2():
    data = peaks_encode(np.zeros(24000, np.float32), 24000)
    assert struct.unpack_from("<iIiiIi", data) == (2, 1, 24000, 240, 100, 1)
    assert len(data) == 24 + 200


def test_points_hold_minimum_and_maximum():
    samples = np.zeros(480, np.float32)
    samples[10], samples[20], samples[300] = 1.0, -1.0, 0.5
    peaks = peaks_decode(peaks_encode(samples, 24000))
    assert peaks.pairs.tolist() == [[-128, 127], [0, 64]]


@pytest.mark.parametrize("count", [0, 1, 239, 240, 241, 1000])
def test_every_sample_is_in_a_point(count):
    samples = np.full(count, 0.25, np.float32)
    peaks = peaks_decode(peaks_encode(samples, 24000))
    assert len(peaks.pairs) == -(-count // 240)
    assert (peaks.pairs == 32).all()  # the last, short point too


def test_a_rate_that_is_no_multiple_of_100():
    peaks = peaks_decode(peaks_encode(np.zeros(22050, np.float32), 22050))
    assert peaks.samples_per_point == 220
    assert len(peaks.pairs) == 101


@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 24, struct.pack("<iIiiIi", 2, 1, 24000, 240, 3, 1) + b"\x00" * 4]
)
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        peaks_decode(data)
