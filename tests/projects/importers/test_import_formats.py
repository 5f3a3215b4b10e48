"""Text, Markdown, Word, PDF and the rest: the same promises in other clothes."""

import io

import pytest
from made_books import W, docx_make, paragraph, pdf_make, zip_make

from projects.importers.base import ImportRefused, ParsedBook
from projects.importers.registry import book_parse
from projects.importers.report import book_report


def told(book: ParsedBook) -> list[tuple[str, list[str]]]:
    report = book_report(book)
    return [
        (
            c["title"],
            [
                " | ".join(s["text"] for s in b["segments"] if s["spoken"])
                for b in c["blocks"]
                if b["spoken"] and b["role"] not in ("heading", "part_title")
            ],
        )
        for c in report["chapters"]
        if c["included"]
    ]


def text(value: str | bytes, name: str = "made.txt") -> ParsedBook:
    return book_parse(io.BytesIO(value.encode() if isinstance(value, str) else value), name)


# ---------------------------------------------------------------- plain text

WRAPPED = """CHAPTER I.

The mill stood by the river for so long that nobody in the village
could say who had built it. It turned when it liked. It stood still
when it liked.

"Let it be," said the miller. "It will
turn."

       *       *       *       *       *

In spring a stranger came to the door and asked for a bed and bread.

CHAPTER II.

She carried a small bag and a lantern.
"""


def test_wrapped_lines_are_joined_and_chapters_found():
    assert told(text(WRAPPED)) == [
        (
            "CHAPTER I.",
            [
                "The mill stood by the river for so long that nobody in the village could say who had built it. | It turned when it liked."
                " | It stood still when it liked.",
                '"Let it be," said the miller. | "It will turn."',
                "In spring a stranger came to the door and asked for a bed and bread.",
            ],
        ),
        ("CHAPTER II.", ["She carried a small bag and a lantern."]),
    ]


def test_gutenberg_frame_is_taken_out_and_read_for_its_facts():
    framed = (
        "The Project Gutenberg eBook of The Mill\n\nThis ebook is for the use of anyone anywhere.\n\nTitle: The Mill\n\nAuthor: Eva Lind\n\n"
        "Language: English\n\n*** START OF THE PROJECT GUTENBERG EBOOK THE MILL ***\n\n\nTHE MILL\n\nby Eva Lind\n\n\n"
        + WRAPPED
        + "\n\n*** END OF THE PROJECT GUTENBERG EBOOK THE MILL ***\n\nUpdated editions will replace the previous one.\n"
    )
    book = text(framed)
    assert (book.title, book.authors, book.language) == ("The Mill", ("Eva Lind",), "en")
    assert [t for t, _ in told(book)] == ["CHAPTER I.", "CHAPTER II."]
    assert "Updated editions" in str(book)  # kept, but not read
    assert any("Gutenberg" in w for w in book.warnings)


def test_bare_numerals_that_count_up_are_chapters():
    book = text(
        "I\n\nI was born in a mill. I do not recall it.\n\nII\n\nMy aunt did.\n\nIII\n\nThat was all.\n"
    )
    assert told(book) == [
        ("I", ["I was born in a mill. | I do not recall it."]),
        ("II", ["My aunt did."]),
        ("III", ["That was all."]),
    ]


def test_lines_without_blank_lines_are_paragraphs():
    assert told(
        text(
            "Chapter 1\nIt rained all day and all night, and the road was gone by morning.\nNobody came.\nChapter 2\nThe sun rose.\n"
        )
    ) == [
        ("Chapter 1", ["It rained all day and all night, and the road was gone by morning.", "Nobody came."]),
        ("Chapter 2", ["The sun rose."]),
    ]


def test_scene_breaks_are_pauses():
    book = text("One day.\n\n* * *\n\nTwo days.\n\n#\n\nThree days.\n\n---\n\nFour days.\n")
    assert [b.kind for b in book.chapters[0].blocks] == ["paragraph", "scene_break"] * 3 + ["paragraph"]
    assert told(book)[0][1] == ["One day.", "Two days.", "Three days.", "Four days."]


def test_verse_keeps_its_lines():
    poem = (
        WRAPPED
        + "\n    The wheel goes round,\n    The stones go by,\n    And none can say\n    The reason why.\n\nShe slept at last, and the wheel turned all night long for nobody at all.\n"
    )
    verse = [b for c in text(poem).chapters for b in c.blocks if b.kind == "verse"]
    assert [b.text for b in verse] == [
        "The wheel goes round,\nThe stones go by,\nAnd none can say\nThe reason why."
    ]


def test_a_listing_of_chapters_makes_no_chapters():
    book = text(
        "CONTENTS\n\nChapter 1 Ash\n\nChapter 2 Birch\n\nChapter 1 Ash\n\nThe ash was tall.\n\nChapter 2 Birch\n\nThe birch was white.\n"
    )
    assert told(book) == [
        ("Chapter 1 Ash", ["The ash was tall."]),
        ("Chapter 2 Birch", ["The birch was white."]),
    ]


@pytest.mark.parametrize(
    ("sentence", "encoding", "language"),
    [
        ("“Café?” said Zoë — naïve as ever… It cost €9.", "cp1252", "en"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", "cp932", "ja"),
        ("吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。", "euc_jp", "ja"),
        ("비가 왔다. 우산이 없었다. 그는 집으로 돌아가지 못했다.", "cp949", "ko"),
        ("他走了。我留下了，因为天要下雨，我们没有伞。", "gb18030", "zh"),
        ("Шёл дождь. Мы остались дома и долго молчали у окна.", "cp1251", "ru"),
        ("The road was shut. Nobody came to open it again.", "utf-16", "en"),
        ("Zoë slept. The naïve cat did not.", "utf-8-sig", "en"),
    ],
)
def test_encodings(sentence, encoding, language):
    book = text((sentence + "\r\n").encode(encoding))
    assert book.chapters[0].blocks[0].text == sentence
    assert "\ufffd" not in str(book)
    if language != "en":
        assert book.language == language


def test_binary_is_no_text():
    with pytest.raises(ImportRefused) as caught:
        text(bytes(range(256)) * 8)
    assert caught.value.code == "unsupported_format"


@pytest.mark.parametrize("nothing", ["...", "—", "* * *\n", "“ ”", "\n\n \n"])
def test_nothing_to_read(nothing):
    with pytest.raises(ImportRefused) as caught:
        text(nothing)
    assert caught.value.code == "no_readable_text"


# ---------------------------------------------------------------- Markdown


def test_markdown():
    source = (
        "---\ntitle: The Raft\nauthor: Eva Lind\nlang: en\n---\n\n# Low Water\n\nThe **raft** is _old_.[^1] See [the map](https://example.org/m) for `more`.\n\n"
        "![A raft](raft.png)\n\n```\n# no heading\nprint(1)\n```\n\n1. Rope.\n2. Tar.\n\n<!-- to do -->\n\n## On Board\n\nWe sat.\n\n***\n\nWe slept.\n\n# High Water\n\nNobody came.\n\n[^1]: Built in spring.\n"
    )
    book = text(source, "raft.md")
    assert (book.title, book.authors, book.language) == ("The Raft", ("Eva Lind",), "en")
    assert told(book) == [
        (
            "Low Water",
            ["The raft is old. | See the map for more.", "Rope.", "Tar.", "On Board", "We sat.", "We slept."],
        ),
        ("High Water", ["Nobody came."]),
    ]
    kinds = [(b.kind, b.skip_reason) for c in book.chapters for b in c.blocks if b.skip_reason]
    assert kinds == [
        ("image", "alternative text"),
        ("code", "code"),
        ("scene_break", "scene break"),
        ("note", "note"),
    ]
    assert book.chapters[0].blocks[1].source == "line 9"
    assert book.coverage == 1.0


# ---------------------------------------------------------------- Word


def test_word_styles_make_chapters():
    body = (
        paragraph("The Mill", "Titel")
        + paragraph("Ash", "Kop1")
        + paragraph("One. Two.")
        + paragraph("A quote.", "Zitat")
        + paragraph("Birch", "Own")
        + paragraph("Three.")
    )
    body += '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Cedar</w:t></w:r></w:p>' + paragraph(
        "Four."
    )
    book = book_parse(docx_make(body), "mill.docx")
    assert book.title == "The Mill"
    assert told(book) == [("Ash", ["One. | Two.", "A quote."]), ("Birch", ["Three."]), ("Cedar", ["Four."])]


def test_word_final_view_of_tracked_changes():
    body = (
        paragraph("Ash", "Kop1")
        + "<w:p><w:r><w:t>It was </w:t></w:r><w:del><w:r><w:delText>very </w:delText></w:r></w:del><w:ins><w:r><w:t>quite cold.</w:t></w:r></w:ins></w:p>"
        + "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>The first half </w:t></w:r></w:p>"
        + paragraph("and the second.")
    )
    book = book_parse(docx_make(body), "a.docx")
    assert told(book) == [("Ash", ["It was quite cold.", "The first half and the second."])]
    assert [x.reason for x in book.left_out] == ["deleted (tracked change)"]


def test_word_notes_fields_breaks_and_boxes():
    notes = f'<w:footnotes xmlns:w="{W}"><w:footnote w:id="2"><w:p><w:r><w:t>From the roll.</w:t></w:r></w:p></w:footnote></w:footnotes>'
    body = (
        paragraph("Ash", "Kop1")
        + '<w:p><w:r><w:t>Nine signed.</w:t></w:r><w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t xml:space="preserve"> Six</w:t><w:tab/><w:t>could</w:t><w:br/><w:t>write.</w:t></w:r></w:p>'
        + '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>17</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>The end.</w:t></w:r></w:p>'
    )
    book = book_parse(docx_make(body, footnotes=notes), "a.docx")
    assert told(book) == [("Ash", ["Nine signed. | Six could write.", "The end."])]
    assert [(b.text, b.skip_reason) for b in book.chapters[0].blocks if b.kind == "note"] == [
        ("From the roll.", "note")
    ]


def test_locked_office_file_says_so():
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(ImportRefused) as caught:
        book_parse(io.BytesIO(data), "a.docx")
    assert caught.value.code == "password_protected"


# ---------------------------------------------------------------- PDF


def lines(texts: list[str], *, left: float = 72, top: float = 720) -> list[tuple[float, float, float, str]]:
    """Lines of text of a page; one that begins with a tab is set in."""
    return [(left + 18 * t.startswith("\t"), top - 16 * n, 12, t.strip()) for n, t in enumerate(texts)]


def test_pdf_running_heads_hyphens_and_pages():
    pages = [
        [
            "\tThe river rose early that year, and every bit of infor-",
            "mation from the hills was a week old. The well-known",
            "road was shut and nobody in the town could say for how",
            "\tIn the morning we sent a boy to the coast with a",
        ],
        [
            "letter and some bread. He did not come back that day or",
            "on the next, and so we waited for the ice to break up,",
            "all of us.",
            "\tThen he came.",
        ],
        [
            "\tHe had lost the letter. He had eaten the bread in the",
            "saddle on the way, and was sorry for it.",
        ],
    ]
    made = [
        [*lines(p), (250, 760, 10, "THE RISING RIVER"), (300, 30, 10, str(40 + n))]
        for n, p in enumerate(pages)
    ]
    book = book_parse(pdf_make(made), "river.pdf")
    assert told(book)[0][1] == [
        "The river rose early that year, and every bit of information from the hills was a week old."
        " | The well-known road was shut and nobody in the town could say for how",
        "In the morning we sent a boy to the coast with a letter and some bread. | He did not come back that day or on the next, and so we"
        " waited for the ice to break up, all of us.",
        "Then he came.",
        "He had lost the letter. | He had eaten the bread in the saddle on the way, and was sorry for it.",
    ]
    assert [b.page for b in book.chapters[0].blocks] == ["40", "40", "41", "42"]
    assert {x.reason for x in book.left_out} == {"running head", "page number", "hyphen at a line end"}


def test_pdf_columns_are_read_one_after_the_other():
    left, right = (
        ["The left one comes", "first. A hen ran by", "and was gone.", "Nobody saw it."],
        ["The right one is", "second. The hen came", "back by night.", "All slept."],
    )
    drawn = [
        piece
        for n in range(4)
        for piece in ((60, 700 - 16 * n, 12, left[n]), (330, 700 - 16 * n, 12, right[n]))
    ]
    words = " ".join(" ".join(b) for _, b in told(book_parse(pdf_make([drawn]), "two.pdf")))
    assert words.replace(" | ", " ") == " ".join([*left, *right])


def test_pdf_chapters_from_large_lines():
    made = [
        [
            (72, 720, 22, "Chapter 1"),
            *lines(["It rained all day and all of the night that followed.", "Nobody came."], top=680),
        ],
        [(72, 720, 22, "Chapter 2"), *lines(["The sun rose over the hill and over the wet mill."], top=680)],
    ]
    assert [t for t, _ in told(book_parse(pdf_make(made), "a.pdf"))] == ["Chapter 1", "Chapter 2"]


def test_pdf_without_text_is_refused():
    with pytest.raises(ImportRefused) as caught:
        book_parse(pdf_make([[]]), "scan.pdf")
    assert caught.value.code == "no_readable_text"


# ---------------------------------------------------------------- the rest


def test_html():
    source = b"<!doctype html><html lang=en><head><title>The Mill</title><meta name=author content='Eva Lind'></head><body><nav><a href=#a>A</a></nav><h2>Ash</h2><p>One.<p>Two<br>three.<h2>Birch</h2><p>Four.</body></html>"
    book = book_parse(io.BytesIO(source), "mill.html")
    assert (book.title, book.authors, book.language) == ("The Mill", ("Eva Lind",), "en")
    assert told(book) == [("Ash", ["One.", "Two three."]), ("Birch", ["Four."])]


def test_fb2():
    source = """<?xml version="1.0" encoding="utf-8"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0" xmlns:l="http://www.w3.org/1999/xlink">
    <description><title-info><author><first-name>Eva</first-name><last-name>Lind</last-name></author><book-title>The Mill</book-title><lang>en</lang><sequence name="River" number="2"/></title-info></description>
    <body><title><p>The Mill</p></title><section><title><p>Part One</p></title><section><title><p>1</p><p>Ash</p></title><p>One.<a l:href="#n1" type="note">[1]</a> Two.</p><poem><stanza><v>The wheel</v><v>goes round</v></stanza></poem></section>
    <section><title><p>Birch</p></title><p>Three.</p><empty-line/><p>Four.</p></section></section></body>
    <body name="notes"><section id="n1"><title><p>1</p></title><p>A note.</p></section></body></FictionBook>"""
    book = book_parse(io.BytesIO(source.encode()), "mill.fb2")
    assert (book.title, book.authors, book.series, book.series_position) == (
        "The Mill",
        ("Eva Lind",),
        "River",
        "2",
    )
    assert told(book) == [
        ("Part One", []),
        ("1 Ash", ["One. | Two.", "The wheel | goes round"]),
        ("Birch", ["Three.", "Four."]),
    ]
    assert book.chapters[2].blocks[0].spoken == "Chapter One.\nAsh."
    assert book.coverage == 1.0


def test_odt():
    ns = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
    content = f"""<office:document-content {ns}><office:body><office:text><text:tracked-changes><text:changed-region><text:deletion><text:p>Gone.</text:p></text:deletion></text:changed-region></text:tracked-changes>
    <text:h text:outline-level="1">Ash</text:h><text:p>One<text:s text:c="2"/>and<text:tab/>two.<text:note text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body></text:note> Three.</text:p><text:h text:outline-level="1">Birch</text:h><text:p>Four<text:line-break/>five.</text:p></office:text></office:body></office:document-content>"""
    book = book_parse(
        zip_make({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": content}), "mill.odt"
    )
    assert told(book) == [("Ash", ["One and two. | Three."]), ("Birch", ["Four five."])]
    assert [x.reason for x in book.left_out] == ["deleted (tracked change)", "note mark"]
    assert book.coverage == 1.0


def test_rtf():
    source = (
        rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0 Arial;}{\f1\fnil\fcharset129 Batang;}}{\stylesheet{\s0 Normal;}{\s1 heading 1;}}"
        rb"{\info{\title The Mill}{\author Eva Lind}}{\header\pard Running head\par}\pard\s1 Ash\par\pard\s0 Caf\'e9 {\b op}ened \emdash  it\rquote s late.{\footnote\pard A note.}\line Two.\par"
        rb"{\v secret }\u-16148?\u-21268?{\f1\'bf\'c0}\par\pard\s1 Birch\par\pard\s0 Three.\par}"
    )
    book = book_parse(io.BytesIO(source), "mill.rtf")
    assert (book.title, book.authors) == ("The Mill", ("Eva Lind",))
    assert [t for t, _ in told(book)] == ["Ash", "Birch"]
    assert told(book)[0][1][0] == "Café opened — it’s late. | Two."
    assert "오" in told(book)[0][1][1]
    assert "secret" not in told(book)[0][1][1]
    assert [b.text for c in book.chapters for b in c.blocks if b.kind == "note"] == ["A note."]


def test_zip_of_chapter_files_in_natural_order():
    book = book_parse(
        zip_make(
            {
                "my book/10 Last.txt": "Three.",
                "my book/2 Middle.txt": "Two.",
                "my book/1 First.md": "# First\n\nOne.\n",
                "__MACOSX/._x.txt": "x",
            }
        ),
        "My_book.zip",
    )
    assert book.title == "My book"
    assert told(book) == [("First", ["One."]), ("Middle", ["Two."]), ("Last", ["Three."])]


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\x89PNG\r\n", "a.png"),
        (b"\x7fELF", "a"),
        (b"\0" * 60 + b"BOOKMOBI", "a.mobi"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.doc"),
    ],
)
def test_foreign_files_are_refused(head, name):
    with pytest.raises(ImportRefused) as caught:
        book_parse(io.BytesIO(head + b"\0" * 100), name)
    assert caught.value.code == "unsupported_format"


def test_control_characters_and_lone_surrogates_never_get_in():
    book = book_parse(io.BytesIO(rb"{\rtf1\ansi One\'00two \u-10179?\u0?three.\par}"), "a.rtf")
    text(b"One\0two\x07three. And more of it here.").title.encode()
    str(book).encode()
    assert "\0" not in str([b.text for c in book.chapters for b in c.blocks])
