"""`manage.py inspect`: the JSON of a book, or exit status 2 and the class of the refusal."""

import json

import pytest
from django.core.management import call_command
from made_books import epub_make


def run(capsysbinary, *args: str) -> dict:
    call_command("inspect", *args)
    return json.loads(capsysbinary.readouterr().out)


def test_a_book_is_shown(tmp_path, capsysbinary):
    path = tmp_path / "mill.epub"
    path.write_bytes(
        epub_make(
            {"a.xhtml": "<h1>7. Ash</h1><p>Dr. Vale left.<a href='#n' epub:type='noteref'>1</a> Why?</p>"},
            [("7. Ash", "a.xhtml")],
        ).getvalue()
    )
    book = run(capsysbinary, str(path))
    assert {"title", "authors", "language", "publisher", "description", "warnings", "chapters"} <= set(book)
    (chapter,) = book["chapters"]
    assert (chapter["title"], chapter["kind"], chapter["included"]) == ("7. Ash", "chapter", True)
    heading, block = chapter["blocks"]
    assert (heading["kind"], heading["segments"][0]["spoken"]) == ("heading", "Chapter Seven. Ash.")
    assert [(s["text"], s["spoken"]) for s in block["segments"]] == [
        ("Dr. Vale left.", "Doctor Vale left."),
        ("Why?", "Why?"),
    ]


def test_language_overrides(tmp_path, capsysbinary):
    path = tmp_path / "a.txt"
    path.write_text("Dr. Klein kam am 3. Mai. Er blieb.", "utf-8")
    book = run(capsysbinary, "--language", "de", str(path))
    assert book["language"] == "de"
    assert [s["text"] for s in book["chapters"][0]["blocks"][0]["segments"]] == [
        "Dr. Klein kam am 3. Mai.",
        "Er blieb.",
    ]


def test_a_refusal_exits_with_two(tmp_path, capsysbinary):
    path = tmp_path / "a.epub"
    path.write_bytes(b"")
    with pytest.raises(SystemExit) as ended:
        call_command("inspect", str(path))
    assert ended.value.code == 2
    error = json.loads(capsysbinary.readouterr().out)["error"]
    assert error["class"] == "empty_file"
    assert error["message"]
