import io
import zipfile

import pytest
from lxml import etree

from synthesis.audio.timeline import RATE_HZ, BookPlan, ChapterPlan, Line, timeline
from synthesis.exporters.base import ExportRefused
from synthesis.exporters.epub_original import EpubOriginalExporter

H = "{http://www.w3.org/1999/xhtml}"
NS = {
    "s": "http://www.w3.org/ns/SMIL",
    "h": "http://www.w3.org/1999/xhtml",
    "o": "http://www.idpf.org/2007/opf",
}
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><title>T</title></head><body>%s</body></html>"""
BODY = """<h1>The&nbsp;Ferry</h1>
<p class="first">He said <em id="e">no. Then he</em> left<a href="#n1"><sup>1</sup></a>. \u201cStop!\u201d she cried.</p>
<p>A very long sentence that turns the <span epub:type="pagebreak" id="p7">7</span>page somewhere in its middle.</p>
<p><ruby>山<rt>やま</rt></ruby>へ。<ruby>川<rt>かわ</rt></ruby>へ行く。</p>
<div>Bare text.<p>In a block.</p></div><aside id="n1"><p>A note.</p></aside>"""
OPF = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="%s" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">x</dc:identifier><dc:title>T</dc:title>
<dc:language>en</dc:language><meta property="dcterms:modified">2020-01-01T00:00:00Z</meta></metadata>
<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="c1" href="text/c%%201.xhtml" media-type="application/xhtml+xml"/>
<item id="pic" href="pic.bin" media-type="image/png"/></manifest>
<spine><itemref idref="c1"/></spine></package>"""
CONTAINER = """<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
LINES = [
    "The Ferry",
    "He said no.",
    "Then he left.",
    "“Stop!” she cried.",
    "A line that the studio added to the book and that no original has.",
    "A very long sentence that turns the page somewhere in its middle.",
    "山へ。",
    "川へ行く。",
    "Bare text.",
    "In a block.",
]


def original(version="3.0", body=BODY):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/content.opf", OPF % version)
        archive.writestr(
            "OEBPS/nav.xhtml",
            PAGE % '<nav epub:type="toc"><ol><li><a href="text/c%201.xhtml">T</a></li></ol></nav>',
        )
        archive.writestr("OEBPS/text/c 1.xhtml", PAGE % body)
        archive.writestr("OEBPS/pic.bin", b"picture")
    return out.getvalue()


@pytest.fixture
def plan(takes, speechy):
    lines = tuple(
        Line(takes.add(str(n), speechy(0.4, seed=n)), 100, text=text) for n, text in enumerate(LINES)
    )
    return BookPlan("T", (ChapterPlan("One", lines[:4]), ChapterPlan("Two", lines[4:])), narrator="Nora")


def export(plan, takes, out, data):
    exporter = EpubOriginalExporter(original=lambda: io.BytesIO(data))
    return exporter.export(plan, open_clip=takes.open, out=out, progress=lambda share: None)


def test_text_and_markup_stay_and_every_line_found_is_lit(plan, takes, tmp_path):
    data, out = original(), tmp_path / "b.epub"
    facts = export(plan, takes, out, data)
    assert [p.name for p in tmp_path.iterdir()] == ["b.epub"]
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(out) as after:
        assert after.infolist()[0].filename == "mimetype"
        assert set(before.namelist()) < set(after.namelist())
        assert after.read("OEBPS/pic.bin") == b"picture"
        assert after.read("OEBPS/nav.xhtml") == before.read("OEBPS/nav.xhtml")
        old = etree.fromstring(before.read("OEBPS/text/c 1.xhtml").replace(b"&nbsp;", b"&#160;"))
        page = after.read("OEBPS/text/c 1.xhtml")
        new = etree.fromstring(page)
        smil = etree.fromstring(after.read("OEBPS/text/c 1.xhtml.smil"))
        package = etree.fromstring(after.read("OEBPS/content.opf"))
        names = after.namelist()
    assert b"<!DOCTYPE html>" in page
    assert "".join(new.find(H + "body").itertext()) == "".join(old.find(H + "body").itertext())
    for tag in ("sup", "ruby", "rt", "a", "aside", "p", "h1"):
        assert len(new.findall(f".//{H}{tag}")) == len(old.findall(f".//{H}{tag}"))
    ids = [e.get("id") for e in new.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {"e", "p7", "n1"} <= set(ids)
    heard = {}
    last: dict[str, float] = {}
    for par in smil.iterfind(".//s:par", NS):
        target, fragment = par.find("s:text", NS).get("src").split("#")
        assert target == "c%201.xhtml"
        audio = par.find("s:audio", NS)
        begin, end = (float(audio.get(key)[:-1]) for key in ("clipBegin", "clipEnd"))
        assert last.get(audio.get("src"), 0.0) <= begin < end
        last[audio.get("src")] = end
        assert "OEBPS/" + audio.get("src")[3:] in names
        element = next(e for e in new.iter() if e.get("id") == fragment)
        heard["".join(element.itertext())] = (begin, end)
    assert list(heard) == [
        "The\u00a0Ferry",
        "He said no.",
        "Then he left",
        "“Stop!” she cried.",
        "A very long sentence that turns the 7page somewhere in its middle.",
        "山やまへ。",
        "川かわへ行く。",
        "Bare text.",
        "In a block.",
    ]
    first = timeline(plan).chapters[0]
    assert heard["He said no."][0] == pytest.approx((first.lines[1].start - first.start) / RATE_HZ, abs=0.001)
    assert any("A line that the studio added" in note for note in facts.notes)
    metas = {(m.get("property"), m.get("refines")): m.text for m in package.iterfind(".//o:meta", NS)}
    assert ("media:active-class", None) in metas
    assert metas["media:narrator", None] == "Nora"
    item = next(i for i in package.iterfind(".//o:item", NS) if i.get("id") == "c1")
    assert ("media:duration", "#" + item.get("media-overlay")) in metas
    assert sum(key == "dcterms:modified" for key, _ in metas) == 1


def test_emphasis_across_sentences_is_parted_not_lost(plan, takes, tmp_path):
    export(plan, takes, tmp_path / "b.epub", original())
    with zipfile.ZipFile(tmp_path / "b.epub") as archive:
        page = etree.fromstring(archive.read("OEBPS/text/c 1.xhtml"))
    assert ["".join(e.itertext()) for e in page.iter(H + "em")] == ["no.", " ", "Then he"]
    assert "".join(t for e in page.iter(H + "em") for t in e.itertext()) == "no. Then he"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (original("2.0"), "original_not_epub3"),
        (original(body="<p>Something else.</p>"), "text_not_found"),
    ],
)
def test_what_cannot_be_done_is_refused(plan, takes, tmp_path, data, code):
    with pytest.raises(ExportRefused) as caught:
        export(plan, takes, tmp_path / "b.epub", data)
    assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []
