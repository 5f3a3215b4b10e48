"""The whole way as a person goes it: upload, make, watch, hear, edit, remake, export, download."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.houses import House, epub_make

pytestmark = [pytest.mark.browser, pytest.mark.services, pytest.mark.slow]

CHAPTERS = [
    (
        "The Ferry",
        [
            "The ferry left at noon. Nobody had counted the lamps.",
            "“Have you seen the keeper?” she asked. “Not since Tuesday,” said the boy.",
        ],
    ),
    ("The Lamp Room", ["Seven lamps stood on the shelf. One of them was warm."]),
]
READY = ".seg[data-state=ready]:not([data-skip])"
SECONDS = 45_000  # ms; two cores may be busy


def _ready(page: Page, count: int) -> None:
    page.wait_for_function(f"document.querySelectorAll('{READY}').length >= {count}", timeout=SECONDS)


def test_from_a_book_to_an_audiobook(page: Page, house: House, tmp_path: Path, ffprobe: str):
    book = epub_make(tmp_path / "ferry.epub", f"The Salt Ledger {house.port}", CHAPTERS)

    # upload: the book appears by itself
    page.set_input_files("#manuscript", str(book))
    link = page.locator("#project-rows a", has_text=f"The Salt Ledger {house.port}")
    expect(link).to_be_visible(timeout=SECONDS)
    page.evaluate("window.marked = true")
    link.click()

    # the first button makes one chapter; the rest shows its length first
    expect(page.locator("#make-rest")).to_contain_text(re.compile(r"about|min|h|s"))
    page.locator("#make-first").click()
    page.wait_for_selector("#manuscript")
    page.evaluate("window.marked = true")
    total = page.locator(".seg:not([data-skip])").count()
    assert total == 5  # a heading and four sentences
    _ready(page, total)
    assert page.evaluate("window.marked") is True  # rows changed without a reload
    expect(page.locator("#meter")).to_have_attribute("data-ready", str(total))
    expect(page.locator("#conversion")).to_contain_text("5 of 5")

    # hear it: the sound moves, and the current sentence with it
    page.locator(".seg").nth(1).click()
    page.keyboard.press("Space")
    page.wait_for_function(
        "[...document.querySelectorAll('audio')].some(a => a.currentTime > 0.3 && !a.paused)", timeout=SECONDS
    )
    page.wait_for_function(
        "document.querySelector('.seg[aria-current=true]') !== document.querySelectorAll('.seg')[1]",
        timeout=SECONDS,
    )
    page.keyboard.press("Space")

    # edit a sentence: it turns stale, its sound stays
    sentence = page.locator(".seg", has_text="Nobody had counted the lamps.")
    before = sentence.get_attribute("data-audio")
    sentence.click()
    page.keyboard.press("e")
    page.locator("#edit-text").fill("Everybody had counted the lamps.")
    page.keyboard.press("Control+Enter")
    edited = page.locator(".seg", has_text="Everybody had counted the lamps.")
    expect(edited).to_have_attribute("data-flags", re.compile("stale"), timeout=SECONDS)
    assert edited.get_attribute("data-audio") == before
    if shots := os.environ.get("SHOTS"):
        page.screenshot(path=f"{shots}/chapter-stale.png")

    # make that one again: another take, not stale any more
    edited.click()
    page.keyboard.press("r")
    expect(edited).not_to_have_attribute("data-flags", re.compile("stale"), timeout=SECONDS)
    expect(edited).to_have_attribute("data-state", "ready", timeout=SECONDS)
    assert edited.get_attribute("data-audio") != before

    # export what is there, and fetch it
    page.get_by_role("link", name="Deliver").first.click()
    page.locator("#make-export").click()
    download = page.locator("#export-rows a", has_text="Download")
    expect(download).to_be_visible(timeout=SECONDS)
    with page.expect_download() as caught:
        download.click()
    target = tmp_path / "book.m4b"
    caught.value.save_as(target)
    _check_m4b(target, ffprobe, f"The Salt Ledger {house.port}")


def _check_m4b(path: Path, ffprobe: str, title: str) -> None:
    told = json.loads(
        subprocess.run(
            [
                ffprobe,
                "-v",
                "error",
                "-of",
                "json",
                "-show_format",
                "-show_chapters",
                "-show_streams",
                str(path),
            ],
            check=True,
            capture_output=True,
            timeout=30,
        ).stdout
    )
    tags = {name.lower(): value for name, value in told["format"]["tags"].items()}
    assert tags["title"] == title
    assert tags["artist"] == "Mara Quill"
    assert tags["composer"]  # the narrator, as players read it
    audio = next(s for s in told["streams"] if s["codec_type"] == "audio")
    assert (audio["codec_name"], audio["sample_rate"], audio["channels"]) == ("aac", "44100", 1)
    chapters = told["chapters"]
    assert len(chapters) == 1  # one chapter was made; the other has no sound yet
    assert chapters[0]["tags"]["title"].endswith("The Ferry")
    assert float(chapters[0]["start_time"]) == 0
    duration = float(told["format"]["duration"])
    assert abs(float(chapters[-1]["end_time"]) - duration) < 0.05
    assert 8 < duration < 60


def test_a_bad_file_says_what_to_do(page: Page, tmp_path: Path):
    bad = tmp_path / "broken.epub"
    bad.write_bytes(b"this is no archive")
    page.set_input_files("#manuscript", str(bad))
    row = page.locator(".import[data-state=failed]", has_text="broken.epub")
    expect(row).to_be_visible(timeout=SECONDS)
    expect(row).to_contain_text("archive")
    row.get_by_role("button", name="Dismiss").click()
    expect(row).to_have_count(0)


def test_on_a_phone(page: Page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#project-rows a").first.click()
    page.wait_for_selector("#book")
    page.locator("#book th a").first.click()
    page.wait_for_selector("#manuscript")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    if shots := os.environ.get("SHOTS"):
        page.screenshot(path=f"{shots}/chapter-phone.png")
