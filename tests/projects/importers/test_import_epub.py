"""EPUB: chapters from the contents, text without loss, what is not read and why."""

import pytest
from made_books import CONTAINER, epub_make, page, zip_make

from projects.importers.base import ImportRefused, ParsedBook
from projects.importers.registry import book_parse
from projects.importers.report import book_report


def parse(file, name: str = "made.epub") -> ParsedBook:
    return book_parse(file, name)


def told(book: ParsedBook) -> list[tuple[str, list[str]]]:
    """Included chapters with the texts that are read in them, without their titles."""
    report = book_report(book)
    return [
        (
            c["title"],
            [
                " | ".join(s["text"] for s in b["segments"] if s["spoken"])
                for b in c["blocks"]
                if b["spoken"] and b["role"] != "heading"
            ],
        )
        for c in report["chapters"]
        if c["included"]
    ]


def test_chapters_follow_fragments_in_one_file():
    file = epub_make(
        {
            "a.xhtml": '<h2 id="x">Ash</h2><p>One.</p><p>Two.<a id="y"></a></p><h2>Birch</h2><p>Three.</p><div id="z"><h2>Cedar</h2><p>Four.</p></div>'
        },
        [("Ash", "a.xhtml#x"), ("Birch", "a.xhtml#y"), ("Cedar", "a.xhtml#z")],
    )
    assert told(parse(file)) == [("Ash", ["One.", "Two."]), ("Birch", ["Three."]), ("Cedar", ["Four."])]


def test_anchor_inside_a_paragraph_cuts_it():
    file = epub_make(
        {"a.xhtml": '<h1 id="x">Ash</h1><div>First words. <a id="y"></a>Second words.</div>'},
        [("Ash", "a.xhtml#x"), ("Birch", "a.xhtml#y")],
    )
    assert told(parse(file)) == [("Ash", ["First words."]), ("Birch", ["Second words."])]


def test_chapter_goes_on_in_files_the_contents_do_not_name():
    file = epub_make(
        {
            "a.xhtml": "<h1>Ash</h1><p>One.</p>",
            "b.xhtml": "<p>Two.</p><h2>Later</h2><p>Three.</p>",
            "c.xhtml": "<h1>Birch</h1><p>Four.</p>",
        },
        [("Ash", "a.xhtml"), ("Birch", "c.xhtml")],
    )
    assert told(parse(file)) == [("Ash", ["One.", "Two.", "Later", "Three."]), ("Birch", ["Four."])]


def test_heading_at_the_top_of_an_unlisted_file_begins_a_chapter():
    file = epub_make(
        {
            "a.xhtml": "<h1>Ash</h1><p>One.</p>",
            "b.xhtml": "<h1>Birch</h1><p>Two.</p>",
            "c.xhtml": "<h1>Cedar</h1><p>Three.</p>",
        },
        [("Ash", "a.xhtml"), ("Cedar", "c.xhtml")],
    )
    assert [c.title for c in parse(file).chapters] == ["Ash", "Birch", "Cedar"]


def test_parts_above_chapters():
    nav = '<ol><li><a href="p.xhtml">Part One</a><ol><li><a href="a.xhtml">Ash</a></li><li><a href="b.xhtml">Birch</a></li></ol></li></ol>'
    book = parse(
        epub_make(
            {
                "p.xhtml": "<h1>Part One</h1>",
                "a.xhtml": "<h2>Ash</h2><p>One.</p>",
                "b.xhtml": "<h2>Birch</h2><p>Two.</p>",
            },
            nav=nav,
        )
    )
    assert [(c.title, c.kind, c.depth) for c in book.chapters] == [
        ("Part One", "part", 0),
        ("Ash", "chapter", 1),
        ("Birch", "chapter", 1),
    ]
    assert book.chapters[0].blocks[0].kind == "part_title"


def test_epub2_ncx_and_spine_order():
    file = epub_make(
        {"z.xhtml": "<h1>Last</h1><p>Two.</p>", "a.xhtml": "<h1>First</h1><p>One.</p>"},
        [("First", "a.xhtml"), ("Last", "z.xhtml")],
        ncx=True,
        spine=["a.xhtml", "z.xhtml"],
    )
    assert told(parse(file)) == [("First", ["One."]), ("Last", ["Two."])]


def test_no_contents_at_all_takes_headings():
    file = epub_make({"a.xhtml": "<h1>Ash</h1><p>One.</p><h1>Birch</h1><p>Two.</p>"}, [])
    book = parse(file)
    assert [c.title for c in book.chapters] == ["Ash", "Birch"]
    assert any("no table of contents" in w for w in book.warnings)


def test_title_only_in_the_contents_is_said_once():
    book = parse(epub_make({"a.xhtml": "<p>It rained.</p>"}, [("The Flood", "a.xhtml")]))
    assert [(b.kind, b.text, b.spoken) for b in book.chapters[0].blocks] == [
        ("heading", "The Flood", "The Flood."),
        ("paragraph", "It rained.", None),
    ]


@pytest.mark.parametrize(
    ("body", "text", "spoken"),
    [
        ("<h1>Chapter 7</h1><h2>The Letter</h2>", "Chapter 7\nThe Letter", "Chapter Seven.\nThe Letter."),
        ("<h1>Chapter 7<br/>The Letter</h1>", "Chapter 7\nThe Letter", "Chapter Seven.\nThe Letter."),
        (
            '<p class="n">Chapter 7</p><p class="t">The Letter</p>',
            "Chapter 7\nThe Letter",
            "Chapter Seven.\nThe Letter.",
        ),
        (
            '<hgroup><h2>VII</h2><p epub:type="title">The Letter</p></hgroup>',
            "VII\nThe Letter",
            "Chapter Seven.\nThe Letter.",
        ),
    ],
)
def test_titles_of_two_lines_are_one_heading(body, text, spoken):
    title = "7. The Letter" if "VII" in body else "Chapter 7: The Letter"
    chapter = parse(
        epub_make({"a.xhtml": body + "<p>It came on Monday.</p>"}, [(title, "a.xhtml")])
    ).chapters[0]
    assert (chapter.blocks[0].kind, chapter.blocks[0].text, chapter.blocks[0].spoken) == (
        "heading",
        text,
        spoken,
    )
    assert len(chapter.blocks) == 2


def test_inline_markup_keeps_words_whole_and_apart():
    file = epub_make(
        {
            "a.xhtml": '<h1>A</h1><p><span class="dropcap">S</span>he un<i>do</i>ubtedly<br/>went <b>home</b>\n  at <em>six</em>.</p>'
        }
    )
    assert told(parse(file))[0][1] == ["She undoubtedly went home at six."]


def test_painted_initial_gives_its_letter():
    file = epub_make({"a.xhtml": '<h1>A</h1><p><img src="t.png" alt="T"/>here was a mill.</p>'})
    assert told(parse(file))[0][1] == ["There was a mill."]


def test_bare_text_and_nested_blocks():
    file = epub_make(
        {
            "a.xhtml": "<h1>A</h1>Loose.<div>One.<div>Two.<p>Three.</p></div>Four.</div><ul><li>Five.</li></ul>Six."
        }
    )
    assert told(parse(file))[0][1] == ["Loose.", "One.", "Two.", "Three.", "Four.", "Five.", "Six."]


def test_two_breaks_part_paragraphs_and_short_lines_are_verse():
    file = epub_make(
        {
            "a.xhtml": "<h1>A</h1><div>First line here.<br/><br/>Second line here.</div><p>The sea is wide,<br/>The night is deep,<br/>And all the gulls<br/>Are fast asleep.</p>"
        }
    )
    blocks = parse(file).chapters[0].blocks
    assert [(b.kind, b.text) for b in blocks[1:]] == [
        ("paragraph", "First line here."),
        ("paragraph", "Second line here."),
        ("verse", "The sea is wide,\nThe night is deep,\nAnd all the gulls\nAre fast asleep."),
    ]


def test_notes_and_their_marks_are_kept_but_not_read():
    body = (
        '<h1>A</h1><p>The mill burned.<a epub:type="noteref" href="#n1">1</a> It was<sup><a href="#n2">2</a></sup> old.</p>'
        '<aside epub:type="footnote" id="n1"><p>In spring.</p></aside><div id="n2"><p>Very old.</p></div>'
    )
    book = parse(epub_make({"a.xhtml": body}))
    paragraph, *notes = book.chapters[0].blocks[1:]
    assert paragraph.text == "The mill burned.1 It was2 old."
    assert [paragraph.text[s.start : s.end] for s in paragraph.spans if s.role == "skip"] == ["1", "2"]
    assert [(n.kind, n.text, n.skip_reason) for n in notes] == [
        ("note", "In spring.", "note"),
        ("note", "Very old.", "note"),
    ]
    assert told(book)[0][1] == ["The mill burned. | It was old."]


def test_powers_and_ordinals_are_no_note_marks():
    file = epub_make(
        {"a.xhtml": "<h1>A</h1><p>It held 10<sup>6</sup> of 5 cm<sup>2</sup> on the 5<sup>th</sup>.</p>"}
    )
    report = book_report(parse(file))
    (segment,) = report["chapters"][0]["blocks"][1]["segments"]
    assert segment["text"] == "It held 106 of 5 cm2 on the 5th."
    assert segment["spoken"] == "It held ten to the power of six of five centimetres squared on the fifth."


def test_page_numbers_leave_words_whole_and_stay_with_the_block():
    body = '<h1>A</h1><p>One.</p><p>Nobody spo<span epub:type="pagebreak" id="p9">9</span>ke.</p><p>Two.</p>'
    book = parse(epub_make({"a.xhtml": body}))
    assert [(b.text, b.page) for b in book.chapters[0].blocks[1:]] == [
        ("One.", ""),
        ("Nobody spoke.", ""),
        ("Two.", "9"),
    ]
    assert [(x.reason, x.count) for x in book.left_out] == [("page number", 1)]


def test_hidden_text_is_listed_and_not_read():
    head = "<style>.gone { display : none } .seen { color: red }</style>"
    body = '<h1>A</h1><p hidden="hidden">No.</p><p class="gone">No.</p><p class="seen">Yes <span style="display:none">no</span>indeed.</p><script>no()</script>'
    book = parse(epub_make({"a.xhtml": page(body, head=head)}))
    assert told(book)[0][1] == ["Yes indeed."]
    assert [b.skip_reason for b in book.chapters[0].blocks[1:]] == [
        "hidden in the source",
        "hidden in the source",
        "",
    ]
    assert book.coverage == 1.0


def test_ruby_is_said_in_place_of_its_base():
    book = parse(
        epub_make(
            {
                "a.xhtml": page(
                    "<h1>春</h1><p><ruby>山<rp>(</rp><rt>やま</rt><rp>)</rp>道<rt>みち</rt></ruby>を行く。</p>",
                    language="ja",
                )
            }
        )
    )
    block = book.chapters[0].blocks[1]
    assert block.text == "山道を行く。"
    report = book_report(book)
    assert report["chapters"][0]["blocks"][1]["segments"][0]["spoken"] == "やまみちを行く。"


def test_tables_code_and_formulae():
    body = (
        "<h1>A</h1><p>Before.</p><table><tr><th>Sort</th><th>Sum</th></tr><tr><td>Red</td><td>3</td></tr></table><pre><code>x = f(1);</code></pre>"
        '<p>The rule <math xmlns="http://www.w3.org/1998/Math/MathML"><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation>\\frac ab</annotation></math> holds.</p>'
    )
    book = parse(epub_make({"a.xhtml": body}))
    assert [(b.kind, b.skip_reason) for b in book.chapters[0].blocks[1:]] == [
        ("paragraph", ""), ("table", "table"), ("table", "table"), ("code", "code"), ("paragraph", ""),
    ]  # fmt: skip
    assert "SortSum" not in book.chapters[0].blocks[2].text
    assert told(book)[0][1][-1].split() == ["The", "rule", "holds."]
    assert book.coverage == 1.0


def test_numbered_lists_say_their_numbers():
    book = parse(
        epub_make(
            {
                "a.xhtml": '<h1>A</h1><ol start="3"><li>Oats.</li><li><p>Rye.</p></li></ol><ul><li>Salt.</li></ul>'
            }
        )
    )
    report = book_report(book)
    said = [s["spoken"] for b in report["chapters"][0]["blocks"][1:] for s in b["segments"]]
    assert said == ["three. Oats.", "four. Rye.", "Salt."]


def test_titles_alone_leave_nothing_out():
    names = [
        "Success",
        "The Index",
        "Notes",
        "Cover",
        "Contents of a Drawer",
        "Acknowledgements",
        "Copyright",
        "About the Author",
    ]
    file = epub_make(
        {
            f"c{i}.xhtml": f"<h1>{n}</h1><p>{n} came late that year, and nobody minded.</p>"
            for i, n in enumerate(names)
        },
        [(n, f"c{i}.xhtml") for i, n in enumerate(names)],
    )
    assert [c.included for c in parse(file).chapters] == [True] * len(names)


def test_evidence_leaves_out_with_a_reason():
    long = "<p>" + "Something happened then, and more after it. " * 60 + "</p>"
    file = epub_make(
        {
            "t.xhtml": "<h1>A Made Book</h1><p>A. Writer</p>",
            "c.xhtml": "<p>Copyright © 2020 A. Writer. All rights reserved.</p><p>ISBN 978-3-16-148410-0</p>",
            "d.xhtml": '<p epub:type="dedication">For my mother.</p>',
            "n.xhtml": '<h1>Contents</h1><p><a href="1.xhtml">Ash</a></p><p><a href="2.xhtml">Birch</a></p><p><a href="x.xhtml">Index</a></p>',
            "1.xhtml": "<h1>Ash</h1>" + long,
            "2.xhtml": "<h1>Birch</h1>" + long,
            "k.xhtml": "<h1>Acknowledgements</h1><p>I thank my editor.</p>",
            "x.xhtml": "<h1>Index</h1>" + "".join(f"<p>word {n}, {n + 10}, {n + 20}</p>" for n in range(20)),
        },
        [("Ash", "1.xhtml"), ("Birch", "2.xhtml"), ("Acknowledgements", "k.xhtml"), ("Index", "x.xhtml")],
    )
    book = parse(file)
    assert [(c.included, c.reason.split(" (")[0]) for c in book.chapters] == [
        (False, "title page"), (False, "copyright page"), (True, ""), (False, "table of contents"),
        (True, ""), (True, ""), (False, "acknowledgements"), (False, "index"),
    ]  # fmt: skip
    assert all(c.blocks for c in book.chapters)  # still there, to be brought back


def test_epub_types_decide():
    file = epub_make(
        {
            "c.xhtml": '<section epub:type="colophon"><h1>Coda</h1><p>Set in type.</p></section>',
            "a.xhtml": "<h1>Ash</h1><p>One.</p>",
            "e.xhtml": '<section epub:type="endnotes"><h1>More</h1><ol><li id="n">Note text.</li></ol></section>',
        },
        [("Coda", "c.xhtml"), ("Ash", "a.xhtml"), ("More", "e.xhtml")],
    )
    assert [(c.kind, c.included, c.reason) for c in parse(file).chapters] == [
        ("front_matter", False, "colophon"),
        ("chapter", True, ""),
        ("notes", False, "notes"),
    ]


def test_nonlinear_items_stand_apart():
    file = epub_make(
        {"a.xhtml": "<h1>Ash</h1><p>One.</p>", "x.xhtml": "<p>Answers.</p>", "b.xhtml": "<p>Two.</p>"},
        [("Ash", "a.xhtml")],
        nonlinear=("x.xhtml",),
    )
    book = parse(file)
    assert told(book) == [("Ash", ["One.", "Two."])]
    assert [c.included for c in book.chapters] == [True, False]


def test_metadata():
    metadata = (
        "<dc:title id='t'>Salt &amp; Tar</dc:title><meta refines='#t' property='title-type'>main</meta><dc:title id='s'>A Tale</dc:title>"
        "<meta refines='#s' property='title-type'>subtitle</meta><dc:creator id='a'>Eva Lind</dc:creator><dc:creator id='b'>Jo Mar</dc:creator>"
        "<dc:contributor id='r'>Tom Over</dc:contributor><meta refines='#r' property='role'>trl</meta><dc:language>en_GB</dc:language>"
        "<dc:publisher>Quay</dc:publisher><dc:identifier>urn:isbn:9783161484100</dc:identifier><dc:date>2019-05-01</dc:date>"
        "<meta property='belongs-to-collection' id='c'>Harbour</meta><meta refines='#c' property='group-position'>2</meta>"
        "<meta name='cover' content='cov'/>"
    )
    png = b"\x89PNG\r\n\x1a\n" + b"0" * 20
    file = epub_make({"a.xhtml": "<h1>A</h1><p>One.</p>"}, metadata=metadata, extra={"OEBPS/cover.png": png})
    book = parse(file)
    assert (book.title, book.subtitle, book.authors, book.translator, book.language) == (
        "Salt & Tar",
        "A Tale",
        ("Eva Lind", "Jo Mar"),
        "Tom Over",
        "en-GB",
    )
    assert (book.publisher, book.isbn, book.year, book.series, book.series_position) == (
        "Quay",
        "9783161484100",
        "2019",
        "Harbour",
        "2",
    )


def test_language_and_title_fall_back():
    book = parse(
        epub_make(
            {"a.xhtml": page("<h1>Un</h1><p>Il pleut.</p>", language="fr")}, metadata="<dc:title> </dc:title>"
        ),
        "ma-nuit.epub",
    )
    assert (book.title, book.authors, book.language) == ("ma-nuit", (), "fr")


def test_broken_pages_are_read_whole_and_said():
    broken = "<html><head><title></title></head><body><h1>Fire & Ice</h1><p>Salt&nbsp;wind.<p>Second & third.</p><p>Last.</body></html>"
    book = parse(epub_make({"a.xhtml": broken}, [("Fire & Ice", "a.xhtml")]))
    assert told(book) == [("Fire & Ice", ["Salt\u00a0wind.", "Second & third.", "Last."])]
    assert any("not well-formed" in w for w in book.warnings)


def test_missing_page_is_named():
    book = parse(
        epub_make(
            {"a.xhtml": "<h1>A</h1><p>One.</p>"}, [("A", "a.xhtml"), ("B", "b.xhtml")], missing=("b.xhtml",)
        )
    )
    assert any("b.xhtml" in w and "missing" in w for w in book.warnings)


def test_pronunciations_are_collected():
    body = '<h1>A</h1><p><span xmlns:ssml="http://www.w3.org/2001/10/synthesis" ssml:ph="ˈniːəm" ssml:alphabet="ipa">Niamh</span> sang.</p>'
    pls = '<lexicon version="1.0" alphabet="ipa" xml:lang="en" xmlns="http://www.w3.org/2005/01/pronunciation-lexicon"><lexeme><grapheme>Cork</grapheme><alias>Kork</alias></lexeme></lexicon>'
    file = epub_make({"a.xhtml": body}, extra={"OEBPS/w.pls": pls})
    book = parse(file)
    assert ("Niamh", "ˈniːəm", "ipa", "en") in book.lexicon


def test_foreign_words_keep_their_language():
    book = parse(
        epub_make(
            {
                "a.xhtml": '<h1>A</h1><p>He said <i xml:lang="de">Guten Tag</i> twice.</p><p xml:lang="fr">Bonjour.</p>'
            }
        )
    )
    first, second = book.chapters[0].blocks[1:]
    assert [(first.text[s.start : s.end], s.value) for s in first.spans] == [("Guten Tag", "de")]
    assert second.language == "fr"


# ---------------------------------------------------------------- refusals


def refused(file, name: str = "made.epub") -> str:
    with pytest.raises(ImportRefused) as caught:
        book_parse(file, name)
    assert len(caught.value.message) > 10
    return caught.value.code


def encryption(algorithm: str, target: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container" xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        f'<e:EncryptionMethod Algorithm="{algorithm}"/><e:CipherData><e:CipherReference URI="{target}"/></e:CipherData></e:EncryptedData></encryption>'
    )


def test_copy_protection_is_told_from_scrambled_fonts():
    pages = {"a.xhtml": "<h1>A</h1><p>One.</p>"}
    locked = encryption("http://www.w3.org/2001/04/xmlenc#aes256-cbc", "OEBPS/a.xhtml")
    fonts = encryption("http://www.idpf.org/2008/embedding", "OEBPS/f.otf")
    assert refused(epub_make(pages, extra={"META-INF/encryption.xml": locked})) == "drm_protected"
    assert parse(epub_make(pages, extra={"META-INF/encryption.xml": fonts})).chapters


@pytest.mark.parametrize(
    "name", ["../../evil.txt", "OEBPS/../../evil.txt", "/etc/evil", "C:\\evil.txt", "..\\evil.txt"]
)
def test_names_that_climb_out_are_refused(name):
    assert refused(epub_make({"a.xhtml": "<p>One.</p>"}, extra={name: "x"})) == "unsafe_archive"


def test_bombs_are_refused():
    assert (
        refused(epub_make({"a.xhtml": "<p>One.</p>"}, extra={"OEBPS/b.xhtml": b" " * 130_000_000}))
        == "unsafe_archive"
    )
    assert (
        refused(epub_make({"a.xhtml": "<p>One.</p>"}, extra={"OEBPS/b.css": b"a" * 12_000_000}))
        == "unsafe_archive"
    )


def test_entities_never_reach_outside_or_explode():
    outside = '<?xml version="1.0"?><!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd">]><html xmlns="http://www.w3.org/1999/xhtml"><body><p>Calm &x; sea.</p></body></html>'
    book = parse(epub_make({"a.xhtml": outside}))
    assert "root:" not in str(book)
    assert any("outside" in w for w in book.warnings)
    laughs = '<!DOCTYPE html [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]><html><body><p>&c;</p></body></html>'
    assert refused(epub_make({"a.xhtml": laughs})) in ("malformed_document", "no_readable_text")


def test_not_an_archive_and_not_an_epub():
    whole = epub_make({"a.xhtml": "<p>One.</p>"}).getvalue()
    import io

    assert refused(io.BytesIO(whole[: len(whole) // 2])) == "not_an_archive"
    assert refused(io.BytesIO(b"")) == "empty_file"
    assert refused(zip_make({"readme.bin": "x"})) == "not_an_epub"
    assert (
        refused(zip_make({"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER}))
        == "not_an_epub"
    )
    with pytest.raises(ImportRefused) as caught:
        book_parse(io.BytesIO(whole), "made.epub", limit_bytes=100)
    assert caught.value.code == "too_large"


def test_a_book_without_text_is_refused():
    assert (
        refused(epub_make({"a.xhtml": '<p><img src="a.png" alt="A picture"/></p><p>…</p>'}))
        == "no_readable_text"
    )


def test_folder_zipped_along_is_seen_through():
    inner = epub_make({"a.xhtml": "<h1>A</h1><p>One.</p>"}, [("A", "a.xhtml")])
    import zipfile

    with zipfile.ZipFile(inner) as archive:
        entries = {f"My Book/{name}": archive.read(name) for name in archive.namelist()}
    assert told(parse(zip_make(entries))) == [("A", ["One."])]


def test_text_that_calls_itself_a_page_mark_is_not_lost():
    body = '<h1>A</h1><section epub:type="pagebreak"><p>All of this is text.</p></section><p>So is <span class="folio">Hamlet</span> here.</p>'
    assert told(parse(epub_make({"a.xhtml": body})))[0][1] == ["All of this is text.", "So is Hamlet here."]


def test_much_that_is_not_read_is_said():
    rows = "".join(f"<tr><td>word {n}</td><td>number {n}</td></tr>" for n in range(60))
    book = parse(epub_make({"a.xhtml": f"<h1>A</h1><p>One or two words of text.</p><table>{rows}</table>"}))
    assert any("not read (table)" in w for w in book.warnings)
