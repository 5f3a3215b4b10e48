import io
import resource
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from synthesis.audio.codec import audio_read
from synthesis.audio.render import ClipUnusable, chapter_render
from synthesis.audio.timeline import RATE_HZ, BookPlan, ChapterPlan, Line, samples_ms, timeline
from synthesis.exporters import mp4
from synthesis.exporters.base import ExportRefused
from synthesis.exporters.m4b import M4bExporter, chapter_list, chapter_title
from synthesis.exporters.masters import WavExporter
from synthesis.exporters.mp3 import Mp3Exporter


def export(plan, takes, out, exporter=None, **kwargs):
    seen = []
    facts = (exporter or M4bExporter()).export(
        plan, open_clip=takes.open, out=out, progress=seen.append, **kwargs
    )
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    return facts


def moov_of(path):
    with path.open("rb") as file:
        top = {a.kind: a for a in mp4.top_atoms(file)}
        file.seek(top[b"moov"].start)
        return file.read(top[b"moov"].end - top[b"moov"].start)


def test_a_book_read_back_by_ffprobe(book, takes, tmp_path, probe):
    out = tmp_path / "book.m4b"
    facts = export(book, takes, out)
    found = probe(out)
    sound = found["streams"][0]
    assert (sound["codec_name"], sound["profile"], sound["sample_rate"], sound["channels"]) == (
        "aac",
        "LC",
        "44100",
        1,
    )
    assert [s["codec_type"] for s in found["streams"]][1:] == ["data", "video"]
    assert found["streams"][2]["disposition"]["attached_pic"] == 1
    tags = {k.lower(): v for k, v in found["format"]["tags"].items()}
    wanted = {
        "major_brand": "M4B ",
        "title": "The Ferryman's Wife",
        "album": "The Ferryman's Wife",
        "artist": "Ann Author, Ben Both",
        "album_artist": "Ann Author, Ben Both",
        "composer": "Nora Narrator",
        "description": "A ferry, a wife.\nTwo lines.",
        "comment": "A ferry, a wife.\nTwo lines.",
        "publisher": "Small Press",
        "date": "2024",
        "genre": "Audiobook",
        "copyright": "© 2024 Ann Author",
        "series": "River Tales",
        "series-part": "2",
        "subtitle": "A Story",
        "isbn": "9780000000002",
        "language": "en-GB",
        "media_type": "2",
        "gapless_playback": "1",
        "grouping": "River Tales #2",
    }
    assert {k: tags.get(k) for k in wanted} == wanted
    assert [c["tags"]["title"] for c in found["chapters"]] == ["Chapter 1", "Chapter 2", "Chapter 3"]
    assert float(found["chapters"][0]["start_time"]) == 0.0
    for before, after in pairwise(found["chapters"]):
        assert before["end_time"] == after["start_time"]
    line = timeline(book)
    assert float(found["format"]["duration"]) * 1000 == pytest.approx(line.duration_ms, abs=1)
    assert float(found["chapters"][-1]["end_time"]) * 1000 == pytest.approx(line.duration_ms, abs=1)
    assert facts.duration_ms == line.duration_ms
    assert facts.bytes == out.stat().st_size
    assert facts.chapters == 3
    assert facts.notes == ()
    assert facts.loudness_lufs == pytest.approx(-18.0, abs=0.5)
    assert facts.true_peak_dbtp < -1.0
    assert float(sound["bit_rate"]) > 40_000


def test_both_chapter_tables_agree_and_the_index_stands_in_front(book, takes, tmp_path):
    out = tmp_path / "book.m4b"
    export(book, takes, out)
    with out.open("rb") as file:
        assert [a.kind for a in mp4.top_atoms(file)] == [b"ftyp", b"moov", b"mdat"]
        quicktime = mp4.quicktime_chapters(file)
    line = timeline(book)
    nero = mp4.nero_chapters(moov_of(out), line.duration_ms)
    wanted = [(c.title, samples_ms(c.start), samples_ms(c.end)) for c in line.chapters]
    assert [(c.title, c.start_ms, c.end_ms) for c in nero] == wanted
    assert [(c.title, c.start_ms, c.end_ms) for c in quicktime] == wanted


@pytest.mark.parametrize(
    ("lines", "pause_ms", "minutes"), [(4, 3_000, 2), pytest.param(12, 12_000, 27, marks=pytest.mark.slow)]
)
def test_every_onset_lies_within_a_millisecond(takes, tmp_path, lines, pause_ms, minutes):
    """Chirps at odd rates and pauses in 12 chapters encoded apart: decoded, they are where the timeline says."""
    clips = {}
    for rate_hz in (22050, 24000):
        t = np.arange(round(0.2 * rate_hz)) / rate_hz
        chirp = 0.5 * np.sin(2 * np.pi * (400 * t + 6000 * t * t))
        silence = np.zeros(rate_hz // 10)
        clip = takes.add(str(rate_hz), np.concatenate((silence, chirp, silence)).astype(np.float32), rate_hz)
        clips[rate_hz] = replace(clip, speech_start=rate_hz // 10, speech_end=rate_hz // 10 + len(chirp))
    chapters = tuple(
        ChapterPlan(
            f"C{n}",
            tuple(Line(clips[(22050, 24000)[i % 2]], pause_ms + 37 * i + n) for i in range(lines)),
            tail_ms=4000 + n,
        )
        for n in range(12)
    )
    plan = BookPlan("Long", chapters)
    out = tmp_path / "long.m4b"
    export(plan, takes, out, M4bExporter(measure_result=False), gain_db=0.0)
    line = timeline(plan)
    assert line.duration_ms > minutes * 60_000
    with out.open("rb") as file:
        decoded, rate_hz = audio_read(file)
    assert rate_hz == RATE_HZ
    assert abs(len(decoded) - line.samples) <= RATE_HZ // 1000
    t = np.arange(round(0.2 * RATE_HZ)) / RATE_HZ
    wanted = np.sin(2 * np.pi * (400 * t + 6000 * t * t))
    lags = []
    for placed in line.lines():
        around = decoded[placed.start - 441 : placed.start + len(wanted) + 441]
        lags.append(int(np.argmax(np.correlate(around, wanted, "valid"))) - 441)
    assert len(lags) == 12 * lines
    assert max(map(abs, lags)) <= 1  # samples


def test_joined_chapters_sound_as_if_encoded_in_one(book, takes, tmp_path):
    """The seam between chapters is silence: nothing of a dropped packet is heard."""
    out = tmp_path / "book.m4b"
    facts = export(book, takes, out)
    with out.open("rb") as file:
        decoded, _ = audio_read(file)
    line = timeline(book)
    for chapter in line.chapters:
        wanted = np.concatenate(
            list(
                chapter_render(
                    chapter, open_clip=takes.open, gain_db=facts.gain_db, mastering=M4bExporter().mastering
                )
            )
        )
        got = decoded[chapter.start : chapter.end]
        assert len(got) >= len(wanted) - RATE_HZ // 1000
        assert np.max(np.abs(got[: RATE_HZ // 4])) < 1e-3
        assert np.max(np.abs(got[-RATE_HZ:])) < 1e-3
        error = np.sqrt(np.mean((got - wanted[: len(got)]) ** 2)) / np.sqrt(np.mean(wanted**2))
        assert error < 0.1


@pytest.mark.parametrize("count", [255, 300])
def test_many_chapters(takes, tmp_path, probe, count):
    clip = takes.add(
        "click", np.concatenate((np.zeros(2400), np.full(240, 0.5), np.zeros(2400))).astype(np.float32)
    )
    clip = replace(clip, speech_start=2400, speech_end=2640)
    chapters = tuple(
        ChapterPlan(f"Nr {n}", (Line(clip, 0),), head_ms=0, tail_ms=100 + (n % 7) * 12) for n in range(count)
    )
    out = tmp_path / "many.m4b"
    facts = export(BookPlan("Many", chapters), takes, out, M4bExporter(measure_result=False))
    line = timeline(BookPlan("Many", chapters))
    found = probe(out)["chapters"]
    assert len(found) == count == facts.chapters
    assert [c["tags"]["title"] for c in found] == [f"Nr {n}" for n in range(count)]
    for got, want in zip(found, line.chapters, strict=True):
        assert float(got["start_time"]) * 1000 == pytest.approx(want.start / 44.1, abs=0.51)
        assert float(got["end_time"]) * 1000 == pytest.approx(want.end / 44.1, abs=0.51)
    nero = mp4.nero_chapters(moov_of(out), line.duration_ms)
    assert len(nero) == (count if count <= 255 else 0)
    assert any("QuickTime" in note for note in facts.notes) == (count > 255)


AWKWARD = [
    "It's Over",
    "A=B; C#D",
    "Back\\slash",
    "Half/Full: a?",
    "Line one\nline two",
    "Émile 😀",
    "x" * 300,
    "CON",
    "  spaced  ",
    "-rf",
    "../up",
    "It's Over",
]


def test_awkward_titles(takes, tmp_path, probe, speechy):
    clip = takes.add("a", speechy(0.3))
    chapters = tuple(ChapterPlan(title, (Line(clip, 0),), head_ms=100, tail_ms=100) for title in AWKWARD)
    plan = BookPlan('The Ferryman\'s "Wife": A=B; #1 \\ 50%', chapters)
    out = tmp_path / "awkward.m4b"
    export(plan, takes, out, M4bExporter(measure_result=False))
    found = probe(out)
    titles = [c["tags"]["title"] for c in found["chapters"]]
    assert titles[6].startswith("x" * 200)
    wanted = [" ".join(title.split()) for title in AWKWARD]
    assert titles[:6] + titles[7:] == wanted[:6] + wanted[7:]
    assert found["format"]["tags"]["title"] == plan.title


@pytest.mark.parametrize("title", ["", "é" * 200, "日本" * 100, "😀" * 64])
def test_titles_fit_their_byte(title):
    fitted = chapter_title(title, 4)
    assert 0 < len(fitted.encode()) <= 255
    assert fitted.encode().decode() == fitted
    assert chapter_title("", 4) == "Chapter 5"


def test_a_missing_take_leaves_nothing_behind(book, takes, tmp_path):
    out = tmp_path / "book.m4b"
    out.write_bytes(b"the last good export")
    del takes.files["1-1"]
    with pytest.raises(ClipUnusable, match="1-1"):
        export(book, takes, out)
    assert out.read_bytes() == b"the last good export"
    assert [p.name for p in tmp_path.iterdir()] == ["book.m4b"]


def test_progress_may_cancel(book, takes, tmp_path):
    class Cancelled(Exception):
        pass

    def stop(share):
        raise Cancelled

    with pytest.raises(Cancelled):
        M4bExporter().export(book, open_clip=takes.open, out=tmp_path / "b.m4b", progress=stop)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_export_is_said(takes, tmp_path):
    with pytest.raises(ExportRefused) as caught:
        export(BookPlan("B", (ChapterPlan("Empty", ()),)), takes, tmp_path / "b.m4b")
    assert caught.value.code == "nothing_to_export"


def test_chapters_left_out_are_named(book, takes, tmp_path):
    plan = replace(book, chapters=(*book.chapters, ChapterPlan("Unfinished", ())))
    facts = export(plan, takes, tmp_path / "b.m4b", M4bExporter(measure_result=False))
    assert facts.chapters == 3
    assert any("Unfinished" in note for note in facts.notes)


def test_takes_are_opened_one_by_one_and_once(book, takes, tmp_path):
    export(book, takes, tmp_path / "b.m4b")
    assert takes.opened == ["0-0", "0-1", "0-2", "1-0", "1-1", "2-0"]


def test_chapter_list_is_contiguous_in_whole_ms(book):
    marks = chapter_list(timeline(book))
    assert marks[0]["start"] == 0
    assert all(a["end"] == b["start"] for a, b in pairwise(marks))


def test_chunk_offsets_past_four_gib_become_64_bit():
    def stco(*offsets):
        body = b"".join(o.to_bytes(4, "big") for o in offsets)
        return mp4.atom(b"stco", bytes(4), len(offsets).to_bytes(4, "big"), body)

    tree = mp4.atom(b"stbl", stco(100, 0xFFFFFF00))
    for kind in (b"minf", b"mdia", b"trak"):
        tree = mp4.atom(kind, tree)
    moov = mp4.atom(b"moov", tree, mp4.atom(b"udta", mp4.atom(b"chpl", b"kept"), mp4.atom(b"meta", b"old")))
    done = mp4.moov_finish(moov, meta=mp4.ilst([]), shift=1000)
    node = mp4.find(done, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"co64")
    data = done[node.payload : node.end]
    assert [int.from_bytes(data[at : at + 8], "big") for at in (8, 16)] == [1100, 0xFFFFFF00 + 1000]
    small = mp4.moov_finish(moov, meta=mp4.ilst([]), shift=10)
    assert mp4.find(small, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stco") is not None
    udta = mp4.find(done, b"moov", b"udta")
    kinds = [a.kind for a in mp4.atoms(done, udta.payload, udta.end)]
    assert kinds == [b"meta", b"chpl"]


@pytest.mark.parametrize(
    "data", [b"\x00\x00\x00\x04moov", b"\x00\x00\x10\x00moov", b"\x00\x00", b"\x00\x00\x00\x01mdat"]
)
def test_broken_atoms_are_refused(data):
    with pytest.raises(mp4.Mp4Broken):
        mp4.top_atoms(io.BytesIO(data))


@pytest.mark.parametrize("exporter", [M4bExporter(), Mp3Exporter(), WavExporter()], ids=lambda e: e.name)
@pytest.mark.parametrize("limit", [30_000, 60_000])
def test_a_full_disk_is_an_error_and_leaves_nothing(book, takes, tmp_path, exporter, limit):
    """A limit on the size of files stands in for the disk: writes fail in the middle."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(OSError, match=r"."):
            exporter.export(book, open_clip=takes.open, out=tmp_path / "out", progress=lambda share: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_storage_that_goes_away_is_an_error_and_leaves_nothing(book, takes, tmp_path):
    def open_clip(key):
        if key == "1-0":
            raise ConnectionError("storage is away")
        return takes.open(key)

    with pytest.raises(ConnectionError):
        M4bExporter().export(book, open_clip=open_clip, out=tmp_path / "b.m4b", progress=lambda share: None)
    assert list(tmp_path.iterdir()) == []
