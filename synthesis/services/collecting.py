"""Storage and rows held against each other: objects nobody points at go, takes that point at nothing are told."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models.functions import Now

from projects.models import Take
from projects.work import in_seconds
from synthesis.flow import collection
from synthesis.models import Garbage
from synthesis.services.dispatching import TAKE_KEY, objects, rows
from synthesis.services.rows import limits
from synthesis.speaking.store import StorageRefused

log = logging.getLogger(__name__)

CHUNK = 500  # rows read at a time


def garbage_collect() -> int:
    """One pass of the collector: mark, and delete what has been marked for the grace period. The number deleted."""
    bounds = limits()
    try:
        marked = collection.garbage_find(rows=rows, objects=objects, limits=bounds)
        swept = 0
        while page := collection.garbage_sweep(rows=rows, objects=objects, limits=bounds):
            swept += page
    except StorageRefused as exc:
        log.warning("the collector has to wait: %s", exc)
        return 0
    if marked or swept:
        log.info("collector: %d objects marked, %d deleted", marked, swept)
    return swept


@dataclass(slots=True)
class Verified:
    """What a look at storage found. Keys."""

    takes: int = 0
    objects: int = 0
    missing: list[str] = field(default_factory=list)  # a take points at it, it is not there
    wrong: list[str] = field(default_factory=list)  # it is there, but not these bytes
    unreferenced: list[str] = field(default_factory=list)  # it is there, no take points at it
    overdue: list[str] = field(default_factory=list)  # … and has been marked for longer than the grace

    @property
    def is_sound(self) -> bool:
        """Every take plays, and nothing lies about longer than it may."""
        return not (self.missing or self.wrong or self.overdue)


def storage_verify(*, read: bool = False) -> Verified:
    """Hold takes against objects and objects against takes; changes nothing. `read`: the bytes' SHA-256 as well.

    Raises StorageRefused.
    """
    found = Verified()
    for take in _takes():
        found.takes += 1
        size = objects.store.size(take.audio_key)
        if size is None:
            found.missing.append(take.audio_key)
        elif size != take.size_bytes or (
            read and hashlib.sha256(objects.store.read(take.audio_key)).hexdigest() != take.sha256
        ):
            found.wrong.append(take.audio_key)
        if take.peaks_key and objects.store.size(take.peaks_key) is None:
            found.missing.append(take.peaks_key)
    grace_s = limits().grace_s
    for page in objects.store.pages("p/"):
        keys = [key for key, _age_s in page if TAKE_KEY.fullmatch(key)]
        found.objects += len(keys)
        loose = list(rows.unreferenced(keys))
        found.unreferenced += loose
        for begin in range(0, len(loose), CHUNK):
            late = Garbage.objects.filter(
                key__in=loose[begin : begin + CHUNK], swept_at=None, marked_at__lt=in_seconds(-2 * grace_s)
            )
            found.overdue += list(late.values_list("key", flat=True))
    return found


def _takes() -> Iterator[Take]:
    fields = ("pk", "audio_key", "peaks_key", "sha256", "size_bytes")
    yield from Take.objects.filter(created_at__lte=Now()).only(*fields).order_by("pk").iterator(CHUNK)
