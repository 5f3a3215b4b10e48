"""Objects nobody points at go in two steps; what storage and rows disagree on is told."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F

from projects.models import Take
from synthesis.models import Garbage
from synthesis.services import collecting, dispatching
from synthesis.services.collecting import garbage_collect, storage_verify
from synthesis.speaking.store import FolderStore
from tests.factories import project_make, segments_of, take_make

pytestmark = pytest.mark.django_db


@pytest.fixture
def store(tmp_path, monkeypatch, settings):
    """A folder of its own; a grace of a second, and everything in it is old."""
    settings.GARBAGE_GRACE_S = 1
    folder = FolderStore(tmp_path)
    monkeypatch.setattr(dispatching.objects, "_store", folder)
    pages = folder.pages
    monkeypatch.setattr(
        folder, "pages", lambda prefix: ([(k, a + 60) for k, a in page] for page in pages(prefix))
    )
    return folder


def spoken(store: FolderStore) -> Take:
    """A take whose objects are there."""
    segment = next(s for s in segments_of(project_make()) if s.spoken)
    audio = segment.text.encode()
    sha256 = hashlib.sha256(audio).hexdigest()
    key = f"p/book/takes/{segment.recipe}/{sha256}"
    take = take_make(
        segment, audio_key=f"{key}.flac", peaks_key=f"{key}.dat", sha256=sha256, size_bytes=len(audio)
    )
    store.put(take.audio_key, audio, "audio/flac")
    store.put(take.peaks_key, b"peaks", "application/octet-stream")
    return take


def loser(store: FolderStore, take: Take) -> list[str]:
    """What the second of two answers leaves behind."""
    key = take.audio_key.rsplit("/", 1)[0] + "/" + "f" * 64
    store.put(f"{key}.flac", b"lost", "audio/flac")
    store.put(f"{key}.dat", b"lost", "application/octet-stream")
    return [f"{key}.dat", f"{key}.flac"]


def later() -> None:
    Garbage.objects.update(marked_at=F("marked_at") - timedelta(seconds=5))


def test_marked_first_deleted_later_and_only_what_nobody_wants(store):
    take = spoken(store)
    keys = loser(store, take)
    store.put("p/book/exports/r1/book.m4b", b"not a take", "audio/mp4")
    assert garbage_collect() == 0
    assert sorted(Garbage.objects.values_list("key", flat=True)) == keys
    assert all(store.size(key) for key in keys)
    later()
    assert garbage_collect() == 2
    assert [store.size(key) for key in keys] == [None, None]
    assert store.size(take.audio_key)
    assert store.size("p/book/exports/r1/book.m4b")
    assert garbage_collect() == 0


def test_what_is_wanted_again_in_time_stays(store):
    take = spoken(store)
    Take.objects.filter(pk=take.pk).update(audio_key="elsewhere", peaks_key="elsewhere")
    garbage_collect()
    later()
    Take.objects.filter(pk=take.pk).update(audio_key=take.audio_key, peaks_key=take.peaks_key)
    assert garbage_collect() == 0
    assert store.size(take.audio_key)
    assert not Garbage.objects.exists()


def test_both_ways_are_verified(store):
    take = spoken(store)
    assert storage_verify(read=True).is_sound
    keys = loser(store, take)
    found = storage_verify()
    assert sorted(found.unreferenced) == keys
    assert found.is_sound  # it has not lain there too long
    garbage_collect()
    Garbage.objects.update(marked_at=F("marked_at") - timedelta(seconds=60))
    assert sorted(storage_verify().overdue) == keys
    (store.root / take.audio_key).write_bytes(b"x" * take.size_bytes)
    assert storage_verify().wrong == []
    assert storage_verify(read=True).wrong == [take.audio_key]
    store.delete(take.audio_key)
    store.delete(take.peaks_key)
    assert storage_verify().missing == [take.audio_key, take.peaks_key]


def test_the_command_changes_nothing_unless_told_to(store):
    take = spoken(store)
    loser(store, take)
    out = StringIO()
    call_command("verify_storage", stdout=out)
    assert "2 unreferenced" in " ".join(out.getvalue().split())
    assert not Garbage.objects.exists()
    call_command("verify_storage", "--collect", stdout=out)
    assert Garbage.objects.count() == 2
    store.delete(take.audio_key)
    with pytest.raises(CommandError):
        call_command("verify_storage", stdout=out)


def test_a_store_that_is_away_is_no_error(store, monkeypatch):
    def away(prefix):
        raise collecting.StorageRefused("away")

    monkeypatch.setattr(store, "pages", away)
    assert garbage_collect() == 0
