"""The sample book: built from its source, valid, and what the first start promises."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from lxml import etree

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
EPUB = SAMPLES / "the-weather-reader.epub"


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("samples_build", SAMPLES / "build.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_epub_is_built_from_the_source(builder):
    assert builder.build(SAMPLES / builder.SLUG) == EPUB.read_bytes(), "run: python3 samples/build.py"


def test_chapters_words_and_dialogue(builder):
    title, chapters = builder.read((SAMPLES / builder.SLUG / "book.md").read_text(encoding="utf-8"))
    assert title == "The Weather Reader"
    assert [name for name, _ in chapters] == ["1. The Last Bulletin", "2. A Bell on the Left", "3. Fair"]
    text = re.sub(r"<[^>]+>", " ", " ".join(block for _, blocks in chapters for block in blocks))
    assert 500 <= len(text.split()) <= 750
    assert text.count("“") == text.count("”") >= 20


def test_every_page_is_well_formed_and_the_cover_small():
    with zipfile.ZipFile(EPUB) as archive:
        names = archive.namelist()
        assert names[0] == "mimetype"
        for name in names:
            if name.endswith((".xhtml", ".opf", ".xml")):
                etree.fromstring(archive.read(name))
        assert len(archive.read("OEBPS/cover.jpg")) < 60_000


@pytest.mark.services
def test_epubcheck_finds_nothing(epubcheck):
    checked = subprocess.run([*epubcheck, str(EPUB)], capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 errors / 0 warnings" in checked.stdout + checked.stderr
