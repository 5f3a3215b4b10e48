import os
import re
import shutil
import subprocess
import zipfile
from itertools import pairwise

import pytest
from lxml import etree

from synthesis.audio.timeline import RATE_HZ, BookPlan, ChapterPlan, Clip, Line, timeline
from synthesis.exporters.captions import SrtExporter, VttExporter, clock, cues, srt, vtt
from synthesis.exporters.epub_overlay import EpubOverlayExporter, overlay_lines
from synthesis.exporters.split import chapters_split, volumes_split
from synthesis.exporters.transcript import TranscriptExporter

SENTENCES = ["It cost $100 at 9:30 PM.", "“Stop!” he cried.", "A < B & C > D.", "Last\none."]
CUE = re.compile(r"^(\d\d+):(\d\d):(\d\d)([,.])(\d{3}) --> (\d\d+):(\d\d):(\d\d)[,.](\d{3})$", re.MULTILINE)


def spoken(text, seconds, pause_ms=350, **kwargs):
    return Line(
        Clip("k", 24000, 0, round(seconds * 24000), round(seconds * 24000)), pause_ms, text=text, **kwargs
    )


def times(text):
    found = []
    for h, m, s, _, ms, h2, m2, s2, ms2 in CUE.findall(text):
        found.append(
            (
                ((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms),
                ((int(h2) * 60 + int(m2)) * 60 + int(s2)) * 1000 + int(ms2),
            )
        )
    return found


def no_takes(key):
    raise AssertionError("captions need no sound")


def written(exporter, plan, out):
    facts = exporter.export(plan, open_clip=no_takes, out=out, progress=lambda share: None)
    assert facts.bytes == out.stat().st_size
    return out.read_text(encoding="utf-8")


@pytest.fixture
def plan():
    seconds = (1.0, 0.8, 1.2, 0.5)
    lines = tuple(spoken(text, s) for text, s in zip(SENTENCES, seconds, strict=True))
    return BookPlan("B", (ChapterPlan("C", lines),), language="en")


def test_srt(plan, tmp_path):
    text = written(SrtExporter(), plan, tmp_path / "a.srt")
    blocks = text.strip().split("\n\n")
    assert [b.split("\n")[0] for b in blocks] == ["1", "2", "3", "4"]
    assert [b.split("\n")[2] for b in blocks] == [*SENTENCES[:3], "Last one."]
    assert all("," in b.split("\n")[1] and "." not in b.split("\n")[1] for b in blocks)
    found = times(text)
    assert found[0] == (500, 1500)
    for (_, end), (start, _) in pairwise(found):
        assert start - end == pytest.approx(350, abs=1)
    assert found[-1][1] <= timeline(plan).duration_ms


def test_vtt(plan, tmp_path):
    text = written(VttExporter(), plan, tmp_path / "a.vtt")
    assert text.startswith("WEBVTT\n")
    assert "A &lt; B &amp; C &gt; D." in text
    assert "00:00:00.500 --> 00:00:01.500" in text
    assert len(times(text)) == 4


def test_captions_of_ten_hours_agree_with_the_sound_at_the_end():
    chapters = tuple(
        ChapterPlan(str(n), tuple(spoken(f"{n}.{i}", 9.5, 0) for i in range(100)), head_ms=1000, tail_ms=1000)
        for n in range(40)
    )
    plan = BookPlan("Long", chapters)
    line = timeline(plan)
    made = list(cues(line.lines()))
    assert len(made) == 4000
    last = line.chapters[-1].lines[-1]
    assert abs(made[-1].start_ms - last.start * 1000 / RATE_HZ) <= 0.5
    assert abs(made[-1].end_ms - last.end * 1000 / RATE_HZ) <= 0.5
    text = "".join(srt(made))
    assert "\n10:3" in text
    assert times(text) == [(c.start_ms, c.end_ms) for c in made]
    between = line.chapters[0].end * 1000 / RATE_HZ
    assert not any(c.start_ms < between < c.end_ms for c in made)
    assert made[100].start_ms - made[99].end_ms >= 2000


def test_clock_goes_past_99_hours():
    assert clock(3_600_000 * 123 + 1, ",") == "123:00:00,001"


def test_lines_without_text_or_time_have_no_cue():
    lines = (spoken("", 1.0), spoken("Silent.", 0.0), spoken("Heard.", 1.0))
    made = list(cues(timeline(BookPlan("B", (ChapterPlan("C", lines),))).lines()))
    assert [c.text for c in made] == ["Heard."]
    assert "".join(vtt([])) == "WEBVTT\n\n"


def test_transcript_keeps_paragraphs_and_separators(tmp_path):
    lines = (
        spoken("Seven", 1, block="b1", kind="heading"),
        spoken("One.", 1, block="b2"),
        spoken("Two.", 1, block="b2", separator=""),
        spoken("三。", 1, block="b3", separator=""),
        spoken("四。", 1, block="b3", separator=""),
    )
    plan = BookPlan("Book", (ChapterPlan("Seven", lines),), authors=("Ann",))
    text = written(TranscriptExporter(), plan, tmp_path / "a.txt")
    assert text == "Book\nAnn\n\n\nSeven\n\nOne. Two.\n\n三。四。\n"
    assert "[00:00:01.850] One." in written(TranscriptExporter(times=True), plan, tmp_path / "b.txt")


SMIL = {
    "s": "http://www.w3.org/ns/SMIL",
    "h": "http://www.w3.org/1999/xhtml",
    "o": "http://www.idpf.org/2007/opf",
}


def checked(path):
    """Run epubcheck (a Java archive, or a script that starts it)."""
    checker, java = shutil.which("epubcheck"), shutil.which("java")
    if not checker or not java:
        pytest.skip("epubcheck is not installed.")
    with open(checker, "rb") as file:
        archive = file.read(2) == b"PK"
    command = [java, "-jar", os.path.realpath(checker)] if archive else [checker]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def clock_ms(value):
    if value.endswith("s"):
        return round(float(value[:-1]) * 1000)
    hours, minutes, seconds = value.split(":")
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


def test_epub_overlays(book, takes, tmp_path):
    out = tmp_path / "book.epub"
    facts = EpubOverlayExporter().export(book, open_clip=takes.open, out=out, progress=lambda share: None)
    assert [p.name for p in tmp_path.iterdir()] == ["book.epub"]
    assert facts.bytes == out.stat().st_size
    line = timeline(book)
    with zipfile.ZipFile(out) as archive:
        first = archive.infolist()[0]
        assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)
        package = etree.fromstring(archive.read("EPUB/package.opf"))
        items = {i.get("href"): i for i in package.iterfind(".//o:item", SMIL)}
        assert {"EPUB/" + href for href in items} | {
            "mimetype",
            "META-INF/container.xml",
            "EPUB/package.opf",
        } == set(archive.namelist())
        durations = {
            m.get("refines", ""): clock_ms(m.text)
            for m in package.iterfind(".//o:meta", SMIL)
            if m.get("property") == "media:duration"
        }
        assert durations.pop("") == sum(durations.values())
        for chapter in line.chapters:
            name = f"c{chapter.index + 1:04d}"
            text = etree.fromstring(archive.read(f"EPUB/{name}.xhtml"))
            ids = [e.get("id") for e in text.iter() if e.get("id")]
            assert len(ids) == len(set(ids))
            spans = {e.get("id"): "".join(e.itertext()) for e in text.iterfind(".//h:span", SMIL)}
            assert list(spans.values()) == [placed.line.text for placed in chapter.lines]
            smil = etree.fromstring(archive.read(f"EPUB/{name}.smil"))
            pars = smil.findall(".//s:par", SMIL)
            assert len(pars) == len(chapter.lines)
            last = total = 0
            for par, placed in zip(pars, chapter.lines, strict=True):
                target, fragment = par.find("s:text", SMIL).get("src").split("#")
                assert target == f"{name}.xhtml"
                assert fragment in spans
                audio = par.find("s:audio", SMIL)
                assert audio.get("src") in items
                begin, end = clock_ms(audio.get("clipBegin")), clock_ms(audio.get("clipEnd"))
                assert last <= begin < end
                assert abs(begin - (placed.start - chapter.start) * 1000 / RATE_HZ) <= 0.51
                assert abs(end - (placed.end - chapter.start) * 1000 / RATE_HZ) <= 0.51
                last, total = end, total + end - begin
            assert durations[f"#{name}-overlay"] == total
            assert items[f"{name}.xhtml"].get("media-overlay") == f"{name}-overlay"
            assert items[f"{name}.smil"].get("media-type") == "application/smil+xml"
            assert items[f"audio/{name}.mp3"].get("media-type") == "audio/mpeg"


@pytest.fixture
def awkward_epub(takes, tmp_path, speechy):
    """An EPUB of texts that XML treats specially."""
    clip = takes.add("a", speechy(0.3))
    texts = ["<b>&amp;</b>", 'Quote "x"', "\x00\x0bcontrol", "😀 日本語", "]]>", "-->"]
    kinds = ["heading", "quote", "verse", "note", "list_item", "epigraph"]
    lines = tuple(
        Line(clip, 0, text=t, kind=k, block=str(n)) for n, (t, k) in enumerate(zip(texts, kinds, strict=True))
    )
    plan = BookPlan("<T> & 'Q'", (ChapterPlan("C <1> &", lines),), authors=("A & B",), description="x\x01<y>")
    out = tmp_path / "b.epub"
    EpubOverlayExporter().export(plan, open_clip=takes.open, out=out, progress=lambda share: None)
    return out


def test_epub_is_well_formed_whatever_the_text(awkward_epub):
    with zipfile.ZipFile(awkward_epub) as archive:
        for name in archive.namelist():
            if name.endswith((".xhtml", ".opf", ".smil", ".xml")):
                etree.fromstring(archive.read(name))


@pytest.mark.slow
def test_epubcheck_finds_nothing(awkward_epub):
    checked(awkward_epub)


def test_overlay_skips_what_is_not_heard():
    lines = (spoken("", 1.0), spoken("Silent.", 0.0), spoken("Heard.", 1.0))
    (chapter,) = timeline(BookPlan("B", (ChapterPlan("C", lines),))).chapters
    assert [identifier for identifier, *_ in overlay_lines(chapter)] == ["s3"]


def test_long_chapters_are_parted_at_paragraphs():
    lines = tuple(spoken(str(n), 50, 1000, block=f"b{n // 4}") for n in range(40))
    plan = BookPlan("B", (ChapterPlan("Long", lines), ChapterPlan("Short", lines[:2])))
    done, notes = chapters_split(plan, 10 * 60_000)
    assert [c.title for c in done.chapters] == [*(f"Long ({n}/5)" for n in range(1, 6)), "Short"]
    assert len(notes) == 1
    assert sum((c.lines for c in done.chapters[:-1]), ()) == lines
    for chapter in done.chapters[:-1]:
        assert timeline(BookPlan("", (chapter,))).duration_ms <= 10 * 60_000
        assert int(chapter.lines[0].text) % 4 == 0
    assert chapters_split(plan, 0) == (plan, [])


def test_one_endless_paragraph_is_parted_at_a_sentence():
    lines = tuple(spoken(str(n), 50, 1000, block="b") for n in range(40))
    done, _ = chapters_split(BookPlan("B", (ChapterPlan("Long", lines),)), 10 * 60_000)
    assert len(done.chapters) > 3
    assert sum((c.lines for c in done.chapters), ()) == lines


def test_volumes_hold_whole_chapters():
    chapters = tuple(ChapterPlan(str(n), (spoken("x", 600),)) for n in range(5))
    volumes = volumes_split(BookPlan("B", chapters), 25 * 60_000)
    assert [len(v.chapters) for v in volumes] == [2, 2, 1]
    assert volumes[1].title == "B, Volume 2"
    assert volumes_split(BookPlan("B", chapters), 10**9) == [BookPlan("B", chapters)]
