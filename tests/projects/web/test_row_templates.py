"""What the page's templates promise to the script and to the book: exact text, nothing beside the spans, safe words."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.template.loader import render_to_string
from lxml import html

NIL = UUID(int=1)


def row(n: int = 1, **changes: object) -> SimpleNamespace:
    values: dict[str, object] = {
        "uuid": UUID(int=n), "version": 3, "number": n, "text": f"Sentence {n}.", "spoken": f"Sentence {n}.",
        "separator": " ", "state": "ready", "state_label": "ready", "marks": "", "flags": "", "failure": "", "remedy": "",
        "take_count": 1, "duration_s": 1.5, "audio_url": "/takes/1/audio", "peaks_url": "", "speech_start_s": 0.1,
        "speech_end_s": 1.4, "pause_ms": 350, "pause_set": False, "skip_reason": "", "language": "", "text_rev": 1,
    }  # fmt: skip
    return SimpleNamespace(**(values | changes))


def block(rows: list[SimpleNamespace], **changes: object) -> SimpleNamespace:
    values: dict[str, object] = {
        "uuid": NIL, "version": 1, "kind": "paragraph", "number": 1, "rows": rows, "skip_reason": "", "spoken": "",
        "pause_ms": 650, "pause_set": False, "page": "",
    }  # fmt: skip
    return SimpleNamespace(**(values | changes))


def printed(markup: str, tag: str = "p") -> str:
    """The words of the text element as a reader would copy them: marks and hidden words taken out."""
    element = html.fromstring(markup).find(f".//{tag}")
    for extra in element.xpath(".//*[contains(@class, 'm ') or contains(@class, 'vh')]"):
        extra.getparent().text_content()  # a mark must lie inside its sentence
        tail, parent, before = extra.tail or "", extra.getparent(), extra.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + tail
        else:
            parent.text = (parent.text or "") + tail
        parent.remove(extra)
    return element.text_content()


@pytest.mark.parametrize(
    ("separators", "texts"),
    [
        ((" ", " ", ""), ("One.", "Two.", "Three.")),
        (("", "", ""), ("吾輩は猫である。", "名前はまだ無い。", "どこで生れたか。")),
        (("\n", "\n\n", ""), ("The tide comes in,", "the tide goes out,", "and neither asks.")),
        (("  ", "\u00a0", ""), ("Tom & Jerry", "<b>bold</b>", "“quoted”")),
    ],
)
def test_printed_text_joins_exactly(separators: tuple[str, ...], texts: tuple[str, ...]) -> None:
    rows = [
        row(n, text=text, separator=separator, flags="stale" if n == 2 else "")
        for n, (text, separator) in enumerate(zip(texts, separators, strict=True), start=1)
    ]
    markup = render_to_string("projects/_block.html", {"block": block(rows)})
    expected = "".join(text + separator for text, separator in zip(texts, separators, strict=True))
    assert printed(markup).strip("\n") == expected


def test_a_row_is_one_element_and_nothing_else() -> None:
    markup = render_to_string("projects/_segment.html", {"row": row()})
    assert markup.startswith("<span")
    assert markup.endswith("</span>")
    [element] = html.fragments_fromstring(markup)
    assert element.get("id") == f"segment-{UUID(int=1)}"


def test_words_are_escaped_in_text_and_titles() -> None:
    bad = "\"><script>alert('x')</script>"
    markup = render_to_string("projects/_segment.html", {"row": row(text=bad, state="failed", failure=bad)})
    assert "<script>" not in markup
    assert html.fragment_fromstring(markup).find("span").text == bad


def test_state_is_attributes_and_every_mark_has_words() -> None:
    markup = render_to_string(
        "projects/_segment.html",
        {"row": row(state="failed", failure="Too long.", marks="edit qc pickup lock", flags="stale suspect")},
    )
    element = html.fragment_fromstring(markup)
    assert (element.get("data-state"), element.get("data-marks")) == ("failed", "edit qc pickup lock")
    marks = element.xpath("./span[contains(@class, 'm ')]")
    assert [m.get("class").split()[1] for m in marks] == [
        "failed",
        "suspect",
        "pickup",
        "stale",
        "lock",
        "qc",
    ]
    assert all(m.get("title") and m.xpath("./span[@class='vh']") for m in marks)
    assert "Too long." in marks[0].get("title")


def test_what_is_not_read_says_so_and_has_no_state_mark() -> None:
    markup = render_to_string(
        "projects/_segment.html", {"row": row(skip_reason="Caption", state="empty", audio_url="")}
    )
    element = html.fragment_fromstring(markup)
    assert element.get("data-skip") is not None
    assert "Caption" in element.get("title")
    assert "no sound yet" not in markup


@pytest.mark.parametrize(
    ("kind", "tag"),
    [
        ("heading", "h2"), ("part_title", "h2"), ("subheading", "h3"), ("quote", "blockquote"), ("letter", "blockquote"),
        ("verse", "p"), ("scene_break", "p"), ("table", "p"), ("paragraph", "p"), ("caption", "p"), ("toc", "p"),
    ],
)  # fmt: skip
def test_every_kind_of_block_has_its_element(kind: str, tag: str) -> None:
    markup = render_to_string("projects/_block.html", {"block": block([row()], kind=kind)})
    assert html.fromstring(markup).find(f".//{tag}").xpath(".//span[@class='seg']")


def test_no_page_has_an_inline_script() -> None:
    from django.conf import settings

    folders: Any = settings.TEMPLATES[0]["DIRS"]
    for folder in folders:
        for path in folder.rglob("*.html"):
            if "admin" in path.parts:
                continue
            text = path.read_text()
            assert not re.search(r"<script(?![^>]*\bsrc=)", text), path
            assert not re.search(r"\son\w+=\"", text), path
            assert "javascript:" not in text, path
