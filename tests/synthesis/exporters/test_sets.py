import io
import json
import shutil
import struct
import subprocess
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from synthesis.audio.codec import audio_read
from synthesis.audio.render import ClipUnusable, Mastering, chapter_render
from synthesis.audio.timeline import BookPlan, ChapterPlan, Clip, Line, timeline
from synthesis.exporters.base import ExportRefused, folder_zip, name_safe
from synthesis.exporters.credits import closing_credits, names_spoken, opening_credits, sample_chapter
from synthesis.exporters.daw import DawExporter, take_name
from synthesis.exporters.deliverycheck import (
    RULE_SETS,
    DeliveredFile,
    Row,
    check,
    image_size,
    rows_csv,
    worst,
)
from synthesis.exporters.lpf import LpfExporter
from synthesis.exporters.masters import FlacExporter, WavExporter
from synthesis.exporters.mp3 import Mp3Exporter
from synthesis.exporters.names import NAMINGS
from synthesis.exporters.opus import OpusExporter
from synthesis.exporters.presets import PRESETS, preset_exporter, preset_plan
from synthesis.exporters.probe import format_read, mp3_frames
from synthesis.exporters.registry import exporter_get, exporters


def export(exporter, plan, takes, out, **kwargs):
    seen = []
    facts = exporter.export(plan, open_clip=takes.open, out=out, progress=seen.append, **kwargs)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    return facts


def delivered(facts, folder):
    return [DeliveredFile(file, format_read(folder / file.name)) for file in facts.files]


def test_mp3_set_read_back(book, takes, tmp_path, probe):
    facts = export(Mp3Exporter(), book, takes, tmp_path / "set")
    names = [f.name for f in facts.files]
    assert names == ["001_Chapter_01.mp3", "002_Chapter_02.mp3", "003_Chapter_03.mp3"]
    assert sorted(p.name for p in (tmp_path / "set").iterdir()) == names
    for number, name in enumerate(names, start=1):
        found = probe(tmp_path / "set" / name)
        tags = {k.lower(): v for k, v in found["format"]["tags"].items()}
        assert tags["title"] == f"Chapter {number}"
        assert (tags["track"], tags["disc"]) == (f"{number}/3", "1/1")
        assert tags["album"] == "The Ferryman's Wife"
        assert tags["artist"] == tags["album_artist"] == "Ann Author, Ben Both"
        assert tags["composer"] == "Nora Narrator"
        assert tags["date"] == "2024"
        assert tags["series"] == "River Tales"
        assert [s["codec_name"] for s in found["streams"]] == ["mp3", "png"]
        assert len(found["chapters"]) == 1
        rates, modes = mp3_frames(tmp_path / "set" / name)
        assert (rates, modes) == ({192}, {"mono"})


def test_mp3_holds_exactly_the_chapters_samples(book, takes, tmp_path):
    facts = export(Mp3Exporter(), book, takes, tmp_path / "set")
    for file, chapter in zip(facts.files, timeline(book).chapters, strict=True):
        with (tmp_path / "set" / file.name).open("rb") as handle:
            samples, rate = audio_read(handle)
        assert (len(samples), rate) == (chapter.samples, 44100)
        assert file.levels.samples == chapter.samples


def test_subheadings_are_chapters_inside_the_file(takes, tmp_path, probe, speechy):
    clip = takes.add("a", speechy(0.5))
    lines = (
        Line(clip, 100, text="Seven", kind="heading"),
        Line(clip, 100, text="The Émigré", kind="subheading"),
        Line(clip, 0, text="Text."),
    )
    plan = BookPlan("B", (ChapterPlan("Seven", lines),))
    export(Mp3Exporter(), plan, takes, tmp_path / "set")
    found = probe(tmp_path / "set" / "001_Chapter_01_Seven.mp3")["chapters"]
    assert [c["tags"]["title"] for c in found] == ["Seven", "The Émigré"]
    assert found[0]["end_time"] == found[1]["start_time"]


@pytest.mark.parametrize(
    ("exporter", "extension", "rate_hz"), [(FlacExporter(), ".flac", 44100), (WavExporter(), ".wav", 44100)]
)
def test_masters_hold_the_rendered_samples_to_24_bit(book, takes, tmp_path, exporter, extension, rate_hz):
    export(exporter, book, takes, tmp_path / "set", gain_db=0.0)
    for chapter in timeline(book).chapters:
        wanted = np.concatenate(
            list(chapter_render(chapter, open_clip=takes.open, gain_db=0.0, mastering=exporter.mastering))
        )
        with (tmp_path / "set" / f"00{chapter.index + 1}_Chapter_0{chapter.index + 1}{extension}").open(
            "rb"
        ) as file:
            got, rate = audio_read(file)
        assert rate == rate_hz
        assert len(got) == len(wanted)
        assert np.max(np.abs(got - wanted)) <= 0.51 / (1 << 23) + 1e-7


def test_wav_is_24_bit_pcm_with_room_for_rf64(book, takes, tmp_path):
    export(WavExporter(), book, takes, tmp_path / "set")
    data = (tmp_path / "set" / "001_Chapter_01.wav").read_bytes()
    assert (data[:4], data[8:16]) == (b"RIFF", b"WAVEJUNK")  # the JUNK becomes `ds64` past 4 GiB
    at = data.index(b"fmt ") + 8
    _, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", data, at)
    assert (channels, rate, bits) == (1, 44100, 24)


def test_opus_is_as_long_as_the_chapter(book, takes, tmp_path):
    facts = export(OpusExporter(), book, takes, tmp_path / "set")
    for file in facts.files:
        assert file.levels.rate_hz == 48000
        assert file.levels.duration_s * 1000 == pytest.approx(file.duration_ms, abs=1)
        assert file.bytes < 50_000


def test_a_set_appears_whole_or_not_at_all(book, takes, tmp_path):
    out = tmp_path / "set"
    export(Mp3Exporter(), book, takes, out)
    before = sorted(p.name for p in out.iterdir())
    del takes.files["2-0"]
    with pytest.raises(ClipUnusable):
        export(Mp3Exporter(), book, takes, out)
    assert sorted(p.name for p in out.iterdir()) == before
    assert [p.name for p in tmp_path.iterdir()] == ["set"]


def test_awkward_titles_give_harmless_names(takes, tmp_path, speechy):
    titles = [
        "It's Over",
        "A=B; C#D",
        "Back\\slash",
        "Half/Full: a?",
        "Line one\nline two",
        "Émile 😀",
        "x" * 300,
    ]
    titles += ["CON", "  spaced  ", "-rf", "../up", "It's Over"]
    clip = takes.add("a", speechy(0.3))
    chapters = tuple(ChapterPlan(t, (Line(clip, 0),), head_ms=50, tail_ms=50, kind="part") for t in titles)
    facts = export(Mp3Exporter(), BookPlan("B", chapters), takes, tmp_path / "set")
    names = [f.name for f in facts.files]
    assert len(set(names)) == 12
    for name in names:
        assert len(name.encode()) <= 255
        assert name.isascii()
        assert not set(name) & set('/\\:*?"<>|')
        assert name[0].isdigit()
        assert (tmp_path / "set" / name).resolve().parent == tmp_path / "set"
    assert names[0] == "001_Its_Over.mp3"
    assert names[5] == "006_Emile.mp3"


@pytest.mark.parametrize(
    ("text", "name"),
    [("CON", "CON_"), ("../..", "untitled"), ("日本", "untitled"), ("-rf", "rf"), ("a  b", "a_b")],
)
def test_name_safe(text, name):
    assert name_safe(text) == name
    assert name_safe("日本", ascii_only=False) == "日本"


def test_names_by_custom(book):
    line = timeline(book)
    assert NAMINGS["google"](book, line, ".mp3")[0] == "9780000000002_1of3.mp3"
    assert NAMINGS["library"](book, line, ".mp3")[2] == "9780000000002_003_Chapter_3.mp3"
    kinds = ("opening_credits", "chapter", "chapter", "closing_credits", "retail_sample")
    titles = ("Opening Credits", "Chapter 1: The Letter", "Chapter Two", "Closing", "Sample")
    lines = book.chapters[0].lines
    plan = replace(
        book, chapters=tuple(ChapterPlan(t, lines, kind=k) for t, k in zip(titles, kinds, strict=True))
    )
    assert NAMINGS["numbered"](plan, timeline(plan), ".mp3") == [
        "001_Opening_Credits.mp3",
        "002_Chapter_01_The_Letter.mp3",
        "003_Chapter_02.mp3",
        "004_Closing_Credits.mp3",
        "Retail_Sample.mp3",
    ]


@pytest.fixture
def shop_book(takes, speechy, png):
    """A set as a shop wants it: credits, three chapters of different level, a sample."""

    def lines(prefix, seconds, amplitude, text):
        out = []
        for number in range(2):
            sound = speechy(seconds, amplitude=amplitude, seed=hash_of(prefix) + number)
            out.append(Line(takes.add(f"{prefix}{number}", sound), 350, text=text))
        return tuple(out)

    def hash_of(text):
        return sum(map(ord, text))

    names = "The Boat, by Ann Author. Narrated by Nora Narrator."
    return BookPlan(
        "The Boat",
        (
            ChapterPlan("Opening Credits", lines("o", 2.0, 0.2, names), kind="opening_credits"),
            ChapterPlan("One", lines("a", 4.0, 0.2, "Text.")),
            ChapterPlan("Two", lines("b", 4.0, 0.16, "Text.")),
            ChapterPlan("Closing Credits", lines("c", 2.5, 0.2, names), kind="closing_credits"),
            ChapterPlan("Sample", lines("s", 3.0, 0.2, "Text."), kind="retail_sample"),
        ),
        authors=("Ann Author",),
        narrator="Nora Narrator",
        cover=png(2400, 2400),
        cover_type="image/png",
    )


def ffmpeg_levels(path):
    """Measure a file with the ffmpeg program, whose code is not ours: RMS, peak, in dB."""
    ffmpeg = shutil.which("ffmpeg")
    if not ffmpeg:
        pytest.skip("ffmpeg is not installed: no independent measurement.")
    command = [
        ffmpeg,
        "-hide_banner",
        "-nostats",
        "-i",
        str(path),
        "-map",
        "0:a",
        "-af",
        "astats",
        "-f",
        "null",
        "-",
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr
    found = {}
    for line in text.splitlines():
        for key in ("RMS level dB", "Peak level dB"):
            if key in line:
                found[key] = float(line.rsplit(":", 1)[1])
    return found["RMS level dB"], found["Peak level dB"]


def test_the_shop_preset_passes_our_check_and_another_meter(shop_book, takes, tmp_path):
    preset = PRESETS["acx"]
    plan = preset_plan(shop_book, preset)
    facts = export(preset_exporter(preset), plan, takes, tmp_path / "set")
    rows = check(delivered(facts, tmp_path / "set"), plan, RULE_SETS[preset.rules])
    assert [r for r in rows if r.status == "fail"] == []
    for file in facts.files:
        rms, peak = ffmpeg_levels(tmp_path / "set" / file.name)
        assert -23.0 <= rms <= -18.0
        assert peak <= -3.0
        assert rms == pytest.approx(file.levels.rms_db, abs=0.1)
        assert peak == pytest.approx(file.levels.peak_db, abs=0.1)
    assert {r.code for r in rows} >= {"rms", "peak", "noise_floor", "head", "tail", "cover", "retail_sample"}
    assert all(r.source and r.dated for r in rows)


def test_minus_16_lufs_is_caught(shop_book, takes, tmp_path):
    """The level that a rival calls ACX."""
    exporter = Mp3Exporter(mastering=Mastering(target_lufs=-14.5, ceiling_dbtp=-3.5))
    plan = preset_plan(shop_book, PRESETS["acx"])
    facts = export(exporter, plan, takes, tmp_path / "set")
    rows = check(delivered(facts, tmp_path / "set"), plan, RULE_SETS["acx"])
    assert worst(rows) == "fail"
    assert any(r.code == "rms" and r.status == "fail" and r.fix == "book_gain" for r in rows)


def test_the_books_offset_is_corrected_before_any_one_file(shop_book, takes, tmp_path):
    exporter = Mp3Exporter(
        mastering=Mastering(target_lufs=-14.5, ceiling_dbtp=-3.5), rms_window=(-23.0, -18.0)
    )
    facts = export(exporter, preset_plan(shop_book, PRESETS["acx"]), takes, tmp_path / "set")
    assert all(-23.0 <= f.levels.rms_db <= -18.0 for f in facts.files)
    assert any("corrected" in note for note in facts.notes)


def test_what_cannot_fit_is_reported(takes, tmp_path, speechy):
    loud, soft = takes.add("l", speechy(4.0, amplitude=0.3)), takes.add("s", speechy(4.0, amplitude=0.02))
    plan = BookPlan("B", (ChapterPlan("L", (Line(loud, 0),)), ChapterPlan("S", (Line(soft, 0),))))
    facts = export(Mp3Exporter(rms_window=(-23.0, -18.0)), plan, takes, tmp_path / "set")
    assert any("differ too much" in note for note in facts.notes)


def test_check_names_what_is_missing(book, takes, tmp_path):
    facts = export(Mp3Exporter(), replace(book, ai_narrated=True), takes, tmp_path / "set")
    rows = check(delivered(facts, tmp_path / "set"), replace(book, ai_narrated=True), RULE_SETS["acx"])
    by_code = {r.code: r for r in rows if not r.file}
    for code in ("opening_credits", "closing_credits", "retail_sample", "cover"):
        assert by_code[code].status == "fail"
    assert by_code["ai_narration"].status == "warn"
    assert "verify" in by_code["ai_narration"].wanted
    csv = rows_csv(rows)
    assert csv.count("\r\n") == len(rows) + 1


def test_csv_runs_no_formula():
    text = rows_csv([Row("=cmd()", "c", 'La"bel', "pass", "1", "2", "s", "d")])
    assert '"\'=cmd()"' in text
    assert '"La""bel"' in text


def test_image_sizes(png):
    assert image_size(png(7, 9)) == (7, 9)
    jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08\x00\x20\x00\x10" + bytes(12)
    assert image_size(jpeg) == (16, 32)
    assert image_size(b"GIF89a") is None
    assert image_size(b"\xff\xd8") is None


def test_lpf_follows_the_w3c_rules(book, takes, tmp_path):
    out = tmp_path / "book.lpf"
    facts = export(LpfExporter(), book, takes, out)
    assert [p.name for p in tmp_path.iterdir()] == ["book.lpf"]
    with zipfile.ZipFile(out) as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read("publication.json"))
        assert "index.html" in names
        assert manifest["@context"][:2] == ["https://schema.org", "https://www.w3.org/ns/pub-context"]
        assert manifest["conformsTo"] == "https://www.w3.org/TR/audiobooks/"
        wanted = "abridged accessMode accessModeSufficient accessibilityFeature accessibilityHazard accessibilitySummary"
        wanted += " author dateModified datePublished id inLanguage name readBy readingProgression resources url duration"
        assert [key for key in wanted.split() if key not in manifest] == []
        order = manifest["readingOrder"]
        urls = [item["url"] for item in order]
        assert len(set(urls)) == len(urls) == 3
        assert set(urls) <= set(names)
        assert all(item["encodingFormat"] == "audio/mpeg" for item in order)
        total = sum(round(float(item["duration"][2:-1]) * 1000) for item in order)
        assert total == round(float(manifest["duration"][2:-1]) * 1000)
        assert total == pytest.approx(facts.duration_ms, abs=len(order))
        covers = [r for r in manifest["resources"] if r["rel"] == "cover"]
        assert len(covers) == 1
        assert archive.read(covers[0]["url"]) == book.cover
        assert archive.read("index.html").count(b"doc-toc") == 1
        samples, _ = audio_read(io.BytesIO(archive.read(urls[0])))
    assert len(samples) == timeline(book).chapters[0].samples


def test_registry_has_every_format_once():
    names = "m4b mp3 epub srt vtt flac wav opus transcript lpf daw"
    assert list(exporters()) == names.split()
    assert exporter_get("m4b").extension == ".m4b"
    with pytest.raises(ExportRefused) as caught:
        exporter_get("8-track")
    assert caught.value.code == "unknown_format"


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda p: p.name)
def test_presets_name_things_that_exist(preset):
    assert preset_exporter(preset).name == preset.format
    assert preset.rules in RULE_SETS
    assert preset.naming in NAMINGS


def test_folder_zip_holds_the_set(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.mp3").write_bytes(b"x" * 1000)
    assert folder_zip(tmp_path / "set", tmp_path / "set.zip") == (tmp_path / "set.zip").stat().st_size
    with zipfile.ZipFile(tmp_path / "set.zip") as archive:
        assert archive.namelist() == ["a.mp3"]
        assert archive.getinfo("a.mp3").compress_type == zipfile.ZIP_STORED


def test_credits_say_what_the_metadata_says(book):
    opening, closing = " ".join(opening_credits(book)), " ".join(closing_credits(book))
    for text in (opening, closing):
        assert book.title in text
        assert "Ann Author and Ben Both" in text
        assert "Nora Narrator" in text
    assert "River Tales, book 2." in opening
    assert closing.startswith("You have been listening to")
    assert closing.endswith("The End.")
    bare = BookPlan("T", ())
    assert opening_credits(bare) == ("T.",)
    assert closing_credits(bare) == ("You have been listening to T.", "The End.")
    assert names_spoken(("A", "B", "C")) == "A, B and C"


def test_sample_ends_with_a_paragraph_and_starts_with_narration():
    def line(seconds, block, kind="paragraph"):
        return Line(
            Clip("k", 24000, 0, 24000 * seconds, 24000 * seconds), 0, text=block, block=block, kind=kind
        )

    lines = (line(2, "h", "heading"), *(line(20, f"b{n // 4}") for n in range(40)))
    plan = BookPlan("B", (ChapterPlan("Credits", lines, kind="opening_credits"), ChapterPlan("One", lines)))
    sample = sample_chapter(plan)
    assert sample.kind == "retail_sample"
    assert [x.block for x in sample.lines] == [f"b{n // 4}" for n in range(12)]
    assert timeline(BookPlan("B", (sample,))).duration_ms <= 300_000
    assert sample_chapter(BookPlan("B", ())) is None


def test_hand_over_lies_on_the_timeline(book, takes, tmp_path):
    facts = export(DawExporter(), book, takes, tmp_path / "daw", gain_db=6.0)
    out = tmp_path / "daw"
    project = (out / "book.rpp").read_text(encoding="utf-8")
    placed = list(timeline(book).lines())
    positions = [float(x.split()[1]) for x in project.splitlines() if x.strip().startswith("POSITION")]
    assert positions == pytest.approx([p.start / 44100 for p in placed], abs=1e-8)
    offsets = [float(x.split()[1]) for x in project.splitlines() if x.strip().startswith("SOFFS")]
    assert offsets == pytest.approx([p.line.clip.speech_start / 24000 for p in placed], abs=1e-8)
    assert project.count("<") == project.count("\n>") + project.count(" >\n") + 1  # one "<" is in a sentence
    assert '"“Stop!” he cried."' in project
    for p in placed:
        assert (out / "takes" / take_name(p.line.clip)).read_bytes() == takes.files[p.line.clip.key]
    labels = (out / "labels.txt").read_text(encoding="utf-8").splitlines()
    assert len(labels) == 3 + 6
    assert labels[1].split("\t") == ["0.500000", f"{placed[0].end / 44100:.6f}", "The Ferry"]
    assert {f.name for f in facts.files} >= {"book.rpp", "labels.txt"}
