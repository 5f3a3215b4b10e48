import hashlib
import io
from dataclasses import replace

import numpy as np
import pytest

from synthesis.audio.meter import Levels, blocks_measured, levels_joined, levels_read
from synthesis.audio.render import Mastering
from synthesis.audio.timeline import RATE_HZ, timeline
from synthesis.exporters.aac import aac_packets, adts_read, adts_write
from synthesis.exporters.base import file_changes
from synthesis.exporters.m4b import M4bExporter
from synthesis.exporters.mp3 import Mp3Exporter
from synthesis.exporters.renders import FolderStore, gain_kept, render_key


def run(exporter, plan, takes, out, gain_db=6.0):
    takes.opened.clear()
    return exporter.export(plan, open_clip=takes.open, out=out, progress=lambda share: None, gain_db=gain_db)


def changed(book, takes, speechy):
    """The book with the last sentence of chapter 2 spoken anew."""
    clip = takes.add("new", speechy(0.9, seed=99))
    second = book.chapters[1]
    lines = (*second.lines[:-1], replace(second.lines[-1], clip=clip))
    return replace(book, chapters=(book.chapters[0], replace(second, lines=lines), book.chapters[2]))


@pytest.mark.parametrize("make", [M4bExporter, Mp3Exporter])
def test_after_one_changed_sentence_one_chapter_is_rendered(book, takes, tmp_path, speechy, make):
    exporter = make(store=FolderStore(tmp_path / "store"))
    run(exporter, book, takes, tmp_path / "a")
    assert len(takes.opened) == 6
    run(exporter, book, takes, tmp_path / "b")
    assert takes.opened == []
    after = changed(book, takes, speechy)
    facts = run(exporter, after, takes, tmp_path / "c")
    assert takes.opened == ["1-0", "new"]
    fresh = run(make(), after, takes, tmp_path / "d")
    assert len(takes.opened) == 6
    assert facts == replace(
        fresh, files=tuple(replace(f, name=g.name) for f, g in zip(fresh.files, facts.files, strict=True))
    )
    one, two = tmp_path / "c", tmp_path / "d"
    if one.is_file():
        assert one.read_bytes() == two.read_bytes()
    else:
        assert [p.read_bytes() for p in sorted(one.iterdir())] == [
            p.read_bytes() for p in sorted(two.iterdir())
        ]


def test_a_delta_holds_only_the_files_that_changed(book, takes, tmp_path, speechy):
    first = run(Mp3Exporter(), book, takes, tmp_path / "a").files
    second = run(Mp3Exporter(), changed(book, takes, speechy), takes, tmp_path / "b").files
    names = [file.name for file in first]
    assert file_changes(first, second) == {
        "new": [],
        "changed": names[1:2],
        "gone": [],
        "same": [names[0], names[2]],
    }
    assert file_changes(first[:1], second[1:])["gone"] == names[:1]
    assert file_changes((), second)["new"] == names
    digest = hashlib.sha256((tmp_path / "b" / names[1]).read_bytes()).hexdigest()
    assert second[1].sha256 == digest


def test_titles_do_not_make_a_render_stale_and_what_is_heard_does(book):
    (first, second, _) = timeline(book).chapters

    def key(chapter=second, **changes):
        given = {"gain_db": 1.0, "mastering": Mastering(), "encoding": {"codec": "aac"}} | changes
        return render_key(chapter, **given)

    moved = timeline(replace(book, chapters=book.chapters[1:])).chapters[0]
    assert moved.start != second.start
    assert key(moved) == key()
    assert key(replace(second, title="Other")) == key()
    assert key(first) != key()
    assert key(gain_db=1.1) != key()
    assert key(mastering=Mastering(room_tone_db=-70.0)) != key()
    assert key(encoding={"codec": "mp3"}) != key()
    longer = replace(book.chapters[1], tail_ms=2500)
    assert key(timeline(replace(book, chapters=(longer,))).chapters[0]) != key()


def test_a_damaged_entry_is_made_again(book, takes, tmp_path):
    store = FolderStore(tmp_path / "store")
    exporter = M4bExporter(store=store)
    run(exporter, book, takes, tmp_path / "a.m4b")
    good = (tmp_path / "a.m4b").read_bytes()
    for entry in (tmp_path / "store").iterdir():
        entry.write_bytes(entry.read_bytes()[:-50])
    run(exporter, book, takes, tmp_path / "a.m4b")
    assert len(takes.opened) == 6
    assert (tmp_path / "a.m4b").read_bytes() == good


def test_gain_stays_while_the_book_hardly_moves():
    assert gain_kept(6.04, 6.0) == 6.0
    assert gain_kept(6.2, 6.0) == 6.2
    assert gain_kept(6.123456, None) == 6.12


def test_adts_holds_packets_of_every_size():
    packets = [bytes([n % 256]) * n for n in (1, 7, 255, 256, 2047, 2048, 8000)]
    file = io.BytesIO()
    adts_write(file, packets)
    file.seek(0)
    assert list(adts_read(file)) == packets
    with pytest.raises(ValueError, match="cut off"):
        list(adts_read(io.BytesIO(file.getvalue()[:-1])))
    with pytest.raises(ValueError, match="damaged"):
        list(adts_read(io.BytesIO(b"not adts at all")))


def test_our_adts_is_read_by_ffmpeg(speechy):
    sound = speechy(2.0, RATE_HZ)[: 80 * 1024]
    file = io.BytesIO()
    adts_write(file, aac_packets([sound], 96_000))
    file.seek(0)
    levels = levels_read(file)
    assert levels.rate_hz == RATE_HZ
    assert levels.samples == 81 * 1024


def test_packets_that_cannot_be_joined_are_refused():
    with pytest.raises(RuntimeError, match="joined"):
        list(aac_packets([np.zeros(1000, np.float32)], 96_000))


def test_measures_of_parts_are_the_measures_of_the_whole(speechy):
    parts = [speechy(3.0, RATE_HZ, amplitude=a, seed=n) for n, a in enumerate((0.2, 0.05, 0.3))]
    whole = blocks_measured([np.concatenate(parts)], RATE_HZ)
    joined = levels_joined([blocks_measured([part], RATE_HZ) for part in parts])
    assert joined.samples == whole.samples
    assert joined.lufs == pytest.approx(whole.lufs, abs=0.15)
    assert joined.rms_db == pytest.approx(whole.rms_db, abs=0.01)
    assert joined.true_peak_db == pytest.approx(whole.true_peak_db, abs=0.01)
    assert Levels.from_json(joined.to_json()) == joined
    assert levels_joined([]) is None
