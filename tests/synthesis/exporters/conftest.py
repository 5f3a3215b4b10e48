"""A small studio for exporter tests: takes in memory, books made of them, ffprobe to look at the result."""

import io
import json
import os
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

from synthesis.audio.codec import flac_encode
from synthesis.audio.measure import measure
from synthesis.audio.timeline import BookPlan, ChapterPlan, Clip, Line

FFPROBE = shutil.which("ffprobe")


class Takes:
    """Takes by key, as an export sees them."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.opened: list[str] = []

    def add(self, key, samples, rate_hz=24000, **kwargs):
        """Store a take and return its measured clip."""
        found = measure(samples, rate_hz)
        self.files[key] = flac_encode(samples, rate_hz)
        bounds = (found.speech_start, found.speech_end, found.samples)
        return Clip(key, rate_hz, *bounds, segment=key, loudness_lufs=found.loudness_lufs, **kwargs)

    def open(self, key):
        self.opened.append(key)
        try:
            return io.BytesIO(self.files[key])
        except KeyError:
            raise FileNotFoundError(key) from None


def _speechy(seconds, rate_hz=24000, *, amplitude=0.2, seed=1):
    """A buzzing voice with syllables, silence around it as a model leaves it."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / rate_hz
    voice = sum(np.sin(k * pitch + rng.uniform(0, 6)) / k for k in range(1, 12))
    envelope = (0.5 + 0.5 * np.sin(2 * np.pi * 4 * t - 1.5)) ** 1.5
    silence = np.zeros(rate_hz // 5)
    return np.concatenate((silence, amplitude / 2 * voice * envelope, silence)).astype(np.float32)


def _png(width=8, height=8):
    """A small real PNG."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + b"\x40\x80\xc0" * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


@pytest.fixture
def takes():
    return Takes()


@pytest.fixture(scope="session")
def speechy():
    return _speechy


@pytest.fixture(scope="session")
def png():
    return _png


@pytest.fixture
def book(takes):
    """A book of three short chapters with every field filled."""
    texts = [
        ["The Ferry", "It cost $100 at 9:30 PM.", "“Stop!” he cried."],
        ["A < B & C > D.", "Last one."],
        ["Fin."],
    ]
    chapters = []
    for number, sentences in enumerate(texts):
        lines = []
        for index, text in enumerate(sentences):
            key = f"{number}-{index}"
            clip = takes.add(key, _speechy(0.6 + 0.25 * index, seed=10 * number + index))
            kind = "heading" if key == "0-0" else "paragraph"
            lines.append(Line(clip, 350, text=text, spoken=text, block=f"b{number}{kind}", kind=kind))
        chapters.append(ChapterPlan(f"Chapter {number + 1}", tuple(lines), key=f"doc{number}"))
    return BookPlan(
        "The Ferryman's Wife",
        tuple(chapters),
        subtitle="A Story",
        authors=("Ann Author", "Ben Both"),
        narrator="Nora Narrator",
        language="en-GB",
        publisher="Small Press",
        description="A ferry, a wife.\nTwo lines.",
        year="2024",
        series="River Tales",
        series_position="2",
        isbn="9780000000002",
        copyright="© 2024 Ann Author",
        cover=_png(),
        cover_type="image/png",
        identifier="urn:uuid:0191a2b3-0000-7000-8000-000000000001",
    )


@pytest.fixture
def probe():
    """Return a function that reads a file with ffprobe. Where there is none the test is skipped, but never in CI."""
    if FFPROBE is None:
        if os.environ.get("CI"):
            pytest.fail("ffprobe is missing; CI must have it.")
        pytest.skip("ffprobe is not installed: the read-back by another program is not checked.")

    def run(path):
        command = [
            FFPROBE,
            "-v",
            "error",
            "-show_format",
            "-show_streams",
            "-show_chapters",
            "-of",
            "json",
            str(path),
        ]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)

    return run
