"""Books whose takes really sound: for tests that make and measure deliverables."""

from __future__ import annotations

import functools

import numpy as np
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from accounts.models import User
from projects.models import Project, Segment, Take
from projects.work import WorkState
from synthesis.audio.codec import flac_encode
from synthesis.audio.measure import measure
from synthesis.models import Export
from synthesis.services.production import work_run
from tests import factories as make

RATE = 24_000


@functools.cache
def voice_like(seconds: float = 0.8, level: float = 0.1, seed: int = 1) -> np.ndarray:
    """A buzzing voice with syllables and a quiet room before and after it."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    pitch = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / RATE
    voice = sum(np.sin(k * pitch + rng.uniform(0, 6)) / k for k in range(1, 12))
    envelope = (0.5 + 0.5 * np.sin(2 * np.pi * 4 * t - 1.5)) ** 1.5
    room = np.zeros(RATE // 5)
    return np.concatenate((room, level * voice * envelope, room)).astype(np.float32)


def take_spoken(
    segment: Segment, seconds: float = 0.8, *, level: float = 0.1, seed: int = 1, **fields
) -> Take:
    """A chosen take whose sound lies in storage."""
    samples = voice_like(seconds, level, seed)
    found = measure(samples, RATE)
    take = make.take_make(
        segment,
        variant=seed,
        samples=found.samples,
        rate_hz=RATE,
        speech_start=found.speech_start,
        speech_end=found.speech_end,
        loudness_lufs=found.loudness_lufs,
        **fields,
    )
    default_storage.save(take.audio_key, ContentFile(flac_encode(samples, RATE)))
    return take


def book_spoken(owner: User | None = None, **fields) -> Project:
    """A short book of two chapters, all of it spoken."""
    project = make.project_make(owner, book=make.book_make(**{"chapters": CHAPTERS, **fields}))
    for number, segment in enumerate(make.segments_of(project)):
        take_spoken(segment, 0.6 + 0.1 * (number % 3), seed=number + 1)
    return project


CHAPTERS = (
    ("The Ferry", ("The ferry left at noon. Nobody had counted the lamps.",)),
    ("The Lamp Room", ("Seven lamps stood on the shelf. One of them was warm.",)),
)


def run(export: Export) -> Export:
    """Make an export as a production worker would; the row as it is then."""
    from synthesis.services.exports import export_run

    Export.objects.filter(pk=export.pk).update(state=WorkState.LEASED, dispatch_no=export.dispatch_no + 1)
    work_run("exports", str(export.public_id), export.dispatch_no + 1, export_run)
    return Export.objects.get(pk=export.pk)
