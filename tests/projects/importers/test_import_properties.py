"""Over generated books: every character is in a segment or listed as left out; damaged files are refused, never a crash."""

import io
import random
import zipfile
from collections import Counter
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from made_books import docx_make, epub_make, page, paragraph, pdf_make

from projects.importers.base import REFUSALS, ImportRefused, ParsedBook
from projects.importers.flow import Walker, counted
from projects.importers.markup import html_tree
from projects.importers.registry import book_parse
from projects.importers.report import book_report
from projects.text import segment_block

WORDS = st.lists(
    st.sampled_from(
        [
            "mill",
            "river",
            "“Yes!”",
            "Dr.",
            "5",
            "café",
            "—",
            "…",
            "it's",
            "春",
            "길",
            "שלום",
            "a.m.",
            "&",
            "<",
            "one\xadtwo",
            "end.",
            "Why?",
            "(so)",
            "3.5",
        ]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)
TEXTS = WORDS.map(lambda t: escape(t, quote=False))


def wrapped(inner: st.SearchStrategy[str], *tags: str) -> st.SearchStrategy[str]:
    return st.tuples(inner, st.sampled_from(tags)).map(lambda p: f"<{p[1]}>{p[0]}</{p[1].split()[0]}>")


INLINE = st.recursive(
    TEXTS,
    lambda inner: st.one_of(
        wrapped(
            inner,
            "b",
            "i",
            "span",
            "em",
            "sup",
            "q",
            'span class="dropcap"',
            "a href='#x'",
            "a epub:type='noteref' href='#n'",
            "span hidden=''",
            'span xml:lang="de"',
        ),
        st.tuples(inner, inner).map(" ".join),
        st.tuples(inner, inner).map("<br/>".join),
        st.tuples(inner, inner).map("".join),
        inner.map(lambda t: f"<ruby>{t}<rp>(</rp><rt>yomi</rt><rp>)</rp></ruby>"),
        inner.map(lambda t: f'{t}<span epub:type="pagebreak" id="p1">12</span>'),
        inner.map(lambda t: f"{t}<script>no()</script><!-- no -->"),
    ),
    max_leaves=5,
)
BLOCK = st.recursive(
    st.one_of(
        wrapped(
            INLINE,
            "p",
            "h1",
            "h2",
            "h3",
            "div",
            "p hidden=''",
            "aside epub:type='footnote'",
            "pre",
            "li",
            "figcaption",
            "p epub:type='title'",
            "dt",
            "center",
        ),
        INLINE,
        st.just("<hr/>"),
        st.just('<p><img src="a.png" alt="Alternative"/></p>'),
        st.tuples(INLINE, INLINE).map(
            lambda p: f"<table><caption>Cap</caption><tr><td>{p[0]}</td><td>{p[1]}</td></tr></table>"
        ),
        INLINE.map(
            lambda t: f'<svg xmlns="http://www.w3.org/2000/svg"><title>tip</title><text>Axis</text></svg>{t}'
        ),
    ),
    lambda inner: st.one_of(
        wrapped(
            st.lists(inner, max_size=4).map("".join),
            "div",
            "section",
            "blockquote",
            "ul",
            "ol",
            'div class="poem"',
            "hgroup",
            "header",
            "nav",
            "td",
            "section epub:type='epigraph'",
            "span",
        ),
    ),
    max_leaves=8,
)
BODY = st.lists(BLOCK, min_size=1, max_size=5).map("".join)


def characters(text: str) -> Counter[str]:
    """The characters that must be accounted for."""
    return Counter(c for c in text if counted(c))


@settings(max_examples=250, deadline=None)
@given(BODY)
def test_every_character_of_a_page_is_in_a_block_or_left_out(body):
    tree = html_tree(page(body).encode(), "a.xhtml")
    source = etree.fromstring(etree.tostring(tree.root))
    for comment in source.iter(etree.Comment):
        comment.text = ""
    total = characters("".join(source.find(".//{*}body").itertext()))
    flow = Walker("a.xhtml").walk(tree.root)
    kept = sum((characters(b.text) for b in flow.blocks), Counter())
    assert flow.total == total.total()
    assert kept.total() - flow.synthetic + sum(x.count for x in flow.left_out) == total.total()
    for block in flow.blocks:
        assert all(0 <= s.start <= s.end <= len(block.text) for s in block.spans)
        assert block.text == block.text.strip()


@settings(max_examples=60, deadline=None)
@given(st.lists(BODY, min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=3))
def test_every_block_of_a_book_is_in_one_chapter_and_joins(bodies, listed):
    pages = {f"c{n}.xhtml": f"{body}<p>Words {n}.</p>" for n, body in enumerate(bodies)}
    contents = [(f"Title {n}", f"c{n}.xhtml") for n in sorted(set(listed)) if n < len(bodies)]
    book = book_parse(epub_make(pages, contents), "a.epub")
    assert book.coverage == 1.0
    assert_whole(book)
    words = " ".join(b.text for c in book.chapters for b in c.blocks)
    assert [words.count(f"Words {n}.") for n in range(len(bodies))] == [1] * len(bodies)


def assert_whole(book: ParsedBook) -> None:
    """Segments join to their blocks, and what is said comes from what is there."""
    for chapter in book.chapters:
        assert chapter.included or chapter.reason
        for block in chapter.blocks:
            drafts = segment_block(
                block.kind,
                block.text,
                language=book.language,
                spans=block.spans,
                spoken=block.spoken,
                skip_reason=block.skip_reason,
            )
            assert "".join(d.text + d.separator for d in drafts) == block.text
            assert block.text.strip()
    book_report(book)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=4).map("\n".join), min_size=1, max_size=8),
    st.sampled_from(["\n\n", "\n", "\r\n\r\n", "\n\n\n"]),
)
def test_every_word_of_a_text_file_is_kept_in_order(paragraphs, glue):
    source = glue.join(paragraphs)
    book, code = outcome(source.encode(), "a.txt")
    if book is None:
        assert code == "no_readable_text"
        return
    assert book.coverage == 1.0
    assert_whole(book)
    assert "".join("".join(b.text for c in book.chapters for b in c.blocks).split()) == "".join(
        source.split()
    )


def outcome(data: bytes, name: str) -> tuple[ParsedBook | None, str]:
    """(the book, "") or (None, the code of the refusal)."""
    try:
        return book_parse(io.BytesIO(data), name), ""
    except ImportRefused as exc:
        return None, exc.code


SAMPLES = {
    "a.epub": lambda: epub_make(
        {
            "a.xhtml": '<h1 id="x">Ash</h1><p>One.<a epub:type="noteref" href="#n">1</a></p><table><tr><td>a</td><td>b</td></tr></table>',
            "b.xhtml": "<p>Two.</p><ol><li>Three.</li></ol>",
        }
    ),
    "a.docx": lambda: docx_make(paragraph("Ash", "Kop1") + paragraph("One. Two.") * 3),
    "a.pdf": lambda: pdf_make(
        [[(72, 700 - 16 * n, 12, "It rained all day and nobody came by.") for n in range(6)]] * 3
    ),
    "a.rtf": lambda: io.BytesIO(
        rb"{\rtf1\ansi{\fonttbl{\f0 A;}}{\stylesheet{\s1 heading 1;}}\pard\s1 Ash\par\pard One \'e9 {\b two}\u8212?.{\footnote Three.}\par}"
    ),
    "a.fb2": lambda: io.BytesIO(
        b"<FictionBook><description><title-info><book-title>A</book-title></title-info></description><body><section><title><p>Ash</p></title><p>One.</p></section></body></FictionBook>"
    ),
    "a.html": lambda: io.BytesIO(
        b"<!doctype html><html><body><h1>Ash</h1><p>One &amp; <b>two.</b><ul><li>Three.</ul></body></html>"
    ),
    "a.md": lambda: io.BytesIO(b"---\ntitle: A\n---\n# Ash\n\nOne *two*.[^1]\n\n- Three\n\n[^1]: Four.\n"),
}


def mutated(data: bytes, seed: str) -> bytes:
    """`data` cut off, with bits turned over, with stretches doubled, or with noise in it."""
    chance = random.Random(seed)
    made = bytearray(data)
    match chance.randrange(4):
        case 0:
            del made[chance.randrange(len(made)) :]
        case 1:
            for _ in range(chance.choice([1, 4, 20])):
                made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
        case 2:
            start = chance.randrange(len(made))
            made[start : start + 80] = made[start : start + 80] * chance.randrange(4)
        case _:
            start = chance.randrange(len(made))
            made[start : start + 20] = bytes(chance.randrange(256) for _ in range(20))
    return bytes(made)


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_are_read_or_refused(name, caplog):
    data = SAMPLES[name]().getvalue()
    for number in range(60):
        seed = f"{name} {number}"
        damaged = mutated(data, seed)
        if zipfile.is_zipfile(io.BytesIO(data)) and number % 2:
            damaged = _inside(data, seed)
        caplog.clear()
        book, code = outcome(damaged, name)
        assert code in REFUSALS | {""}, seed
        if book is not None:
            assert_whole(book)
        assert not [r for r in caplog.records if r.exc_info], f"an importer failed on seed {seed!r}"


def _inside(data: bytes, seed: str) -> bytes:
    """A sound archive with one damaged file in it."""
    chance = random.Random(seed)
    source = zipfile.ZipFile(io.BytesIO(data))
    victim = chance.choice([n for n in source.namelist() if n != "mimetype"])
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for entry in source.namelist():
            content = source.read(entry)
            archive.writestr(entry, mutated(content, seed) if entry == victim else content)
    return target.getvalue()
