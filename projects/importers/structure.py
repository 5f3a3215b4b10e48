"""From blocks to chapters: where they begin, what they are called, what kind they are, and why."""

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from projects.text.headings import heading_number, heading_spoken, looks_like_heading, number_value
from projects.text.languages import is_speakable, language_base, language_tag
from projects.text.wordlist import word_set

from .base import ImportRefused, LeftOut, ParsedBlock, ParsedBook, ParsedChapter
from .flow import Flow, RawBlock, block_join, block_split, counted, storable

MIN_COVERAGE = 0.995
"""Below this share of accounted characters the import warns."""


def words_in(text: str) -> int:
    """Words, and for scripts without blanks what would be words: two characters each."""
    wide = len(_WIDE.findall(text))
    return len(text.split()) if wide < 2 else max(len(text.split()), wide // 2)


_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


@dataclass
class Draft:
    """A chapter on its way."""

    title: str
    blocks: list[RawBlock] = field(default_factory=list)
    depth: int = 0
    types: frozenset[str] = frozenset()  # evidence from the contents, landmarks and guide
    group: bool = False  # has chapters below it in the contents
    listed: bool = True  # is in the contents
    linear: bool = True
    kind: str = ""
    included: bool = True
    reason: str = ""
    source: str = ""
    order: tuple[int, int] = (0, 0)

    def read(self) -> list[RawBlock]:
        return [b for b in self.blocks if b.read]

    def words(self) -> int:
        return sum(words_in(b.text) for b in self.blocks if b.kind not in ("image", "toc"))


@dataclass
class About:
    """What the source says of the book as a whole."""

    title: str = ""
    authors: tuple[str, ...] = ()
    language: str = ""
    subtitle: str = ""
    translator: str = ""
    publisher: str = ""
    description: str = ""
    series: str = ""
    series_position: str = ""
    year: str = ""
    isbn: str = ""
    rights: str = ""
    cover: bytes | None = None
    cover_type: str = ""


# ---------------------------------------------------------------- comparing titles


def title_words(text: str) -> list[str]:
    """A title as comparable words: case, marks and ways to write a number do not matter."""
    words = []
    for word in re.findall(r"\w+", text.casefold()):
        found = heading_number(word.upper()) if re.fullmatch(r"\d+|[ivxlc]+", word) else None
        words.append(str(found.number) if found and not found.rest else word)
    return words


_SMALL = {
    w: str(i)
    for i, w in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
}


def _same_title(a: str, b: str) -> bool:
    one = [_SMALL.get(w, w) for w in title_words(a)]
    two = [_SMALL.get(w, w) for w in title_words(b)]
    return one == two and bool(one)


# ---------------------------------------------------------------- headings inside a chapter


def headings_settle(draft: Draft) -> None:
    """Join the lines of the chapter's title into one heading; what follows are subheadings.

    The title may stand in paragraphs that only look like a heading: those whose words are the title's.
    """
    blocks = draft.blocks
    first = next((i for i, b in enumerate(blocks) if b.read), None)
    if first is None:
        return
    taken = _title_run(blocks, first, draft.title)
    if taken:
        head = blocks[taken[0]]
        for index in taken[1:]:
            block_join(head, blocks[index])
        for index in reversed(taken[1:]):
            del blocks[index]
        head.kind = "heading"
        head.level = head.level or 1
    seen, text_before = False, False
    for block in blocks:
        if block.kind == "heading":
            if seen or text_before:
                block.kind = "subheading"
            seen = True
        elif block.read and block.kind not in _BEFORE_HEADING:
            text_before = True


_BEFORE_HEADING = frozenset({"scene_break", "image", "caption", "epigraph", "toc"})


def _title_run(blocks: list[RawBlock], first: int, title: str) -> list[int]:
    """Indices of the blocks, from `first` on, that together are the chapter's title."""
    wanted = [_SMALL.get(w, w) for w in title_words(title)]
    run: list[int] = []
    words: list[str] = []
    for index in range(first, min(first + 5, len(blocks))):
        block = blocks[index]
        if block.kind in ("image", "scene_break") or block.skip_reason:
            if block.kind == "scene_break" and run:
                break
            continue
        if block.kind not in ("heading", "subheading", "paragraph") or len(block.text) > 200:
            break
        mine = [_SMALL.get(w, w) for w in title_words(_without_spans(block))]
        grown = words + mine
        if wanted and mine and wanted[: len(grown)] == grown:
            run.append(index)
            words = grown
            if words == wanted:
                return run
            continue
        break
    if run and (blocks[run[0]].kind == "heading" or words == wanted):
        pass
    elif run and all(blocks[i].kind == "paragraph" for i in run):
        # Paragraphs that are only the beginning of the title: a title if short and numbered.
        run = run if heading_number(" ".join(blocks[i].text for i in run)) and len(words) <= 3 else []
    if not run and blocks[first].kind == "heading":
        run = [first]
        # "Chapter One" above "The Letter", where the contents name only the latter.
        for index in range(first + 1, min(first + 3, len(blocks))):
            if blocks[index].kind not in ("heading", "subheading") or not blocks[index].read:
                break
            if _same_title(_without_spans(blocks[index]), title):
                return list(range(first, index + 1))
    if not run:
        return []
    # A heading that is but a number goes on in the heading right after it.
    after = run[-1] + 1
    joined = " ".join(blocks[i].text for i in run)
    found = heading_number(joined)
    if found and not found.rest and after < len(blocks):
        follower = blocks[after]
        if (
            follower.kind in ("heading", "subheading")
            and follower.read
            and not follower.group
            and not heading_number(follower.text)
        ):
            run.append(after)
    return run


def _without_spans(block: RawBlock) -> str:
    text = block.text
    for span in sorted(block.spans, key=lambda s: -s.start):
        if span.role == "skip":
            text = text[: span.start] + text[span.end :]
    return text


# ---------------------------------------------------------------- chapters from headings


def headings_guess(blocks: Sequence[RawBlock]) -> None:
    """Where no style says what is a heading, lines that say so by themselves are: "Chapter 7", or "1", "2", "3" …"""
    if any(b.kind == "heading" and b.read and b.level < 9 for b in blocks):
        return
    run: list[RawBlock] = []
    for block in blocks:
        if block.kind not in ("paragraph", "list_item") or not block.read or len(block.text) > 120:
            continue
        if block.kind == "paragraph" and looks_like_heading(block.text):
            part = re.match(
                r"(?:part|book|volume|teil|buch|partie|livre|tome|parte|libro|часть|книга)\b",
                block.text,
                re.I,
            )
            block.kind, block.level = "heading", 1 if part else 2
            continue
        match = re.fullmatch(r"([IVXLC]+|\d{1,3})\.?", block.text)
        value = number_value(match[1]) if match else None
        if value == 1:
            run = [block]
        elif run and value == len(run) + 1:
            run.append(block)
        if len(run) >= 2:
            for member in run:
                member.kind, member.level = "heading", 2


def drafts_by_headings(blocks: Sequence[RawBlock], book_title: str = "") -> list[Draft]:
    """Chapters of a flow that has no table of contents: its headings of the level that makes chapters."""
    headings_guess(blocks)
    levels = [b.level for b in blocks if b.kind == "heading" and b.read]
    if not levels:
        return [Draft("", list(blocks), listed=False)] if blocks else []
    top = min(levels)
    chapter, part = _chapter_level(blocks, sorted(set(levels)), book_title)
    drafts: list[Draft] = []
    for block in blocks:
        if (
            block.kind == "heading"
            and block.read
            and (block.level == chapter or (part and block.level == part))
        ):
            number_only = drafts and _is_open_title(drafts[-1], block)
            if not number_only:
                is_part = block.level == part
                drafts.append(
                    Draft(_plain_title(block.text), depth=0 if is_part or not part else 1, group=is_part)
                )
            else:
                drafts[-1].title = _plain_title(f"{drafts[-1].title}: {block.text}")
        elif not drafts:
            drafts.append(Draft("", listed=False))
        elif (
            block.kind == "heading"
            and block.read
            and block.level < chapter
            and block.level >= top
            and block.level != part
        ):
            drafts.append(Draft(_plain_title(block.text)))
        drafts[-1].blocks.append(block)
    return drafts


def _is_open_title(draft: Draft, block: RawBlock) -> bool:
    """Is the last chapter but a number so far, and `block` the title that belongs to it?"""
    read = draft.read()
    if len(read) != 1 or read[0].kind != "heading" or read[0].level != block.level:
        return False
    found = heading_number(read[0].text)
    return bool(
        found and not found.rest and not heading_number(block.text) and not looks_like_heading(block.text)
    )


def _chapter_level(blocks: Sequence[RawBlock], levels: list[int], book_title: str) -> tuple[int, int]:
    """The level of headings that begin chapters, and that of parts above them (0 = none)."""
    if len(levels) == 1:
        return levels[0], 0
    for level, below in itertools.pairwise(levels):
        sections = _sections(blocks, level)
        inner = [sum(b.kind == "heading" and b.level == below for b in s) for s in sections]
        if len(sections) == 1 and sum(inner) >= 2:
            # One heading above them all: the book's title, if little stands under it.
            body = _before_first(sections[0], below)
            if body <= 120 or _same_title(sections[0][0].text, book_title):
                continue
            return level, 0
        if (
            len(sections) >= 2
            and all(inner)
            and all(_before_first(s, below) == 0 for s in sections)
            and sum(inner) > len(sections)
        ):
            return below, level  # headings with nothing but headings under them are parts
        labelled = sum(
            bool(
                re.match(
                    r"(?:part|book|volume|teil|buch|partie|livre|tome|parte|libro|часть|книга|제?\s*\d+\s*부)\b",
                    s[0].text,
                    re.I,
                )
            )
            for s in sections
        )
        if labelled and labelled >= len(sections) - 2 and sum(inner) >= labelled:
            return below, level
        return level, 0
    return levels[-1], 0


def _sections(blocks: Sequence[RawBlock], level: int) -> list[list[RawBlock]]:
    found: list[list[RawBlock]] = []
    for block in blocks:
        if block.kind == "heading" and block.level == level and block.read:
            found.append([])
        if found:
            found[-1].append(block)
    return found


def _before_first(section: list[RawBlock], level: int) -> int:
    """Words of text between a section's heading and its first heading of `level`."""
    words = 0
    for block in section[1:]:
        if block.kind == "heading" and block.level == level:
            break
        if block.read and block.kind != "heading":
            words += len(block.text.split())
    return words


def _plain_title(text: str) -> str:
    """A title on one line: "VII\\nThe Letter" → "VII: The Letter"."""
    lines = [" ".join(line.split()) for line in text.split("\n") if line.strip()]
    title = ""
    for line in lines:
        if not title:
            title = line
        elif title[-1] in ".:;,!?—–-":
            title += " " + line
        else:
            found = heading_number(title)
            title += (": " if found and not found.rest else " ") + line
    return title


# ---------------------------------------------------------------- kinds of chapters

_NOT_READ = {
    "copyright-page": "copyright page", "imprint": "imprint", "colophon": "colophon", "toc": "table of contents",
    "landmarks": "table of contents", "loi": "list of illustrations", "lot": "list of tables", "lov": "list of videos",
    "loa": "list of recordings", "index": "index", "bibliography": "bibliography", "acknowledgments": "acknowledgements",
    "acknowledgements": "acknowledgements", "cover": "cover", "titlepage": "title page (said in the opening credits)",
    "halftitlepage": "half-title page", "halftitle": "half-title page", "title-page": "title page (said in the opening credits)",
    "other-credits": "credits", "credits": "credits", "contributors": "contributors", "errata": "errata", "glossary": "glossary",
    "credit": "credits", "uncopyright": "copyright page", "text-index": "index", "notes-page": "notes", "promotional-copy": "advertisement",
    "pagelist": "page list", "page-list": "page list",
}  # fmt: skip
_NOTES = word_set("""endnotes footnotes rearnotes notes rearnote endnote footnote""")
_FRONT = word_set(
    """frontmatter dedication epigraph foreword preface introduction preamble halftitlepage titlepage prologue
    abstract"""
)
_BACK = word_set("""backmatter afterword appendix conclusion epilogue postscript""")
_CHAPTER_TYPES = frozenset({"chapter", "prologue", "epilogue", "subchapter"})
_PART_TYPES = frozenset({"part", "volume", "division"})

_RIGHTS = re.compile(
    r"©|\(c\)\s*\d{4}|\bcopyright\b|all rights reserved|\bISBN\b|library of congress|first published|published by|printed in"
    r"|no part of this|alle rechte|tous droits|todos los derechos|tutti i diritti|저작권|著作権|版权|발행일|펴낸"
    r"|זכויות|הוצאת|حقوق الطبع|جميع الحقوق|دار النشر|права защищены|издательство|wydawnictwo|prawa zastrzeżone",
    re.I,
)
_TITLES = {
    "contents": r"(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matières|sommaire|índice|indice|目次|目录|차례|목차|содержание|spis treści|obsah",
    "index": r"(?:general |subject )?index(?: of .+)?|register|stichwortverzeichnis|索引|찾아보기",
    "bibliography": r"(?:select(?:ed)? )?bibliography|works cited|references|literaturverzeichnis|bibliographie|bibliografía|参考文献|참고문헌",
    "acknowledgements": r"acknowledge?ments?|danksagung|remerciements|agradecimientos|ringraziamenti|감사의 말|謝辞",
    "about the author": r"about the authors?|über den autor|über die autorin|à propos de l[’']auteur|sobre el autor|sull[’']autore|지은이 소개|저자 소개|著者紹介",
    "also by the author": r"(?:also|books|other (?:books|works|titles)|by the same author|novels) by .+|also available|by the same author|du même auteur",
    "notes": r"(?:end|foot)?notes|anmerkungen|notas?|note|注|註|각주|주석|примечания",
    "copyright page": r"copyright(?: page)?|impressum|legal notice|版权信息|판권|זכויות יוצרים|حقوق النشر|авторские права",
    "title page": r"title ?page|half ?title|titelseite|page de titre|표제지",
    "cover": r"cover|umschlag|couverture|cubierta|copertina|표지|封面|表紙",
}
_TITLE_RULES = {name: re.compile(rf"(?:{pattern})\.?", re.I) for name, pattern in _TITLES.items()}


def _titled(title: str, name: str) -> bool:
    return bool(_TITLE_RULES[name].fullmatch(" ".join(title.split())))


def kinds_settle(drafts: list[Draft], about: About) -> None:
    """Give each chapter its kind, and leave out what a listener does not expect, with the reason.

    Evidence is what the book says (epub:type, landmarks), where the chapter stands and what is in it. A title
    alone never leaves anything out.
    """
    total = len(drafts)
    bodies = [i for i, d in enumerate(drafts) if d.words() > 250 or d.types & _CHAPTER_TYPES]
    first_body, last_body = (bodies[0], bodies[-1]) if bodies else (0, total - 1)
    for number, draft in enumerate(drafts):
        if draft.kind:
            continue
        types = draft.types | _common_types(draft.blocks)
        own = types & frozenset(_NOT_READ)
        words = draft.words()
        if not draft.linear:
            draft.kind, draft.included, draft.reason = (
                "back_matter",
                False,
                "outside the reading order (linear=no)",
            )
            continue
        if types & _NOTES:
            draft.kind, draft.included, draft.reason = "notes", False, "notes"
            continue
        if own and not types & (_CHAPTER_TYPES | {"dedication", "epigraph"}):
            reason = _NOT_READ[sorted(own)[0]]
            draft.kind = (
                "back_matter"
                if "backmatter" in types or (number > last_body and total > 2)
                else "front_matter"
            )
            if any(b.kind in ("epigraph", "dedication") and b.read for b in draft.blocks):
                for block in draft.blocks:  # the dedication on a title page is read all the same
                    if block.read and block.kind not in ("epigraph", "dedication"):
                        block.skip_reason = reason
                continue
            draft.included, draft.reason = False, reason
            continue
        reason = _by_content(draft, number, total, first_body, last_body, about)
        if reason:
            draft.included, draft.reason = False, reason
            draft.kind = (
                "notes"
                if reason == "notes"
                else "front_matter"
                if number <= first_body and number < total / 2
                else "back_matter"
            )
            continue
        draft.types = types
        if words <= 60 and ((types & _PART_TYPES and not types & _CHAPTER_TYPES) or draft.group):
            draft.kind = "part"
        elif types & _CHAPTER_TYPES:
            draft.kind = "chapter"
        elif types & _FRONT and not (types & {"bodymatter"}):
            draft.kind = "front_matter"
        elif types & _BACK and not (types & {"bodymatter"}):
            draft.kind = "back_matter"
        elif number < first_body and not draft.listed and words < 250:
            draft.kind = "front_matter"
        else:
            draft.kind = "chapter"
        if not any(is_speakable(b.text) and not b.skip_reason for b in draft.blocks):
            draft.included = False
            draft.reason = _silent_reason(draft)
            if draft.kind == "chapter" and number < first_body:
                draft.kind = "front_matter"


def _silent_reason(draft: Draft) -> str:
    reasons = {b.skip_reason for b in draft.blocks if b.skip_reason and b.kind != "scene_break"}
    if reasons == {"contents"}:
        return "table of contents"
    if reasons == {"note"}:
        return "notes"
    return "nothing to read: " + ", ".join(sorted(reasons)) if reasons else "no text"


def _common_types(blocks: list[RawBlock]) -> frozenset[str]:
    """Types that hold for all the text of a chapter, not only for a part of it."""
    texts = [b for b in blocks if b.kind not in ("scene_break", "image", "caption") and counted(b.text)]
    if not texts:
        return blocks[0].types if blocks else frozenset()
    common = texts[0].types
    for block in texts[1:]:
        common = common & block.types
    return common


def _by_content(draft: Draft, number: int, total: int, first_body: int, last_body: int, about: About) -> str:
    """Why a chapter is left out, judged by what is in it and where it stands; "" if it is not."""
    read = draft.read()
    words = sum(words_in(b.text) for b in read)
    text = " ".join(b.text for b in read)
    before, after = number < first_body or number == 0, number > last_body
    early, late = before or number <= max(2, total // 20), after or number >= total - max(3, total // 12)
    if total < 2 or not read:
        return ""
    linked = sum(b.linked for b in draft.blocks)
    whole = sum(counted(b.text) for b in draft.blocks) or 1
    entries = sum(b.linked > 0.6 * counted(b.text) for b in read)
    if linked > 0.7 * whole and entries >= 3 and (early or late or _titled(draft.title, "contents")):
        return "table of contents"
    if _titled(draft.title, "contents") and (early or late) and len(read) > 3 and words / len(read) < 12:
        return "table of contents"
    rights = len({m[0].casefold() for m in _RIGHTS.finditer(text)})
    if (early or late) and words < 600 and rights >= 2 and (before or after or words < 250):
        return "copyright page"
    if (
        (early or late)
        and words < 120
        and (
            rights
            and re.search(
                r"©|ISBN|rights reserved|כל הזכויות|זכויות יוצרים|جميع الحقوق|무단|無断|禁止转载", text, re.I
            )
        )
    ):
        return "copyright page"
    if (
        (before or after)
        and words < 250
        and _titled(draft.title, "copyright page")
        and re.search(r"©|copyright|licen[cs]e|creative commons|isbn|\b(?:19|20)\d\d\b", text, re.I)
    ):
        return "copyright page"
    if early and before and _is_title_page(read, words, about):
        return "title page (said in the opening credits)"
    if _titled(draft.title, "notes") and late and len(read) > 2:
        marked = sum(
            bool(re.match(r"\[?\d{1,4}[\].)]?\s|[*†‡]", b.text)) or b.kind in ("note", "list_item")
            for b in read
        )
        if marked >= 0.6 * (len(read) - 1):
            return "notes"
    if late and _titled(draft.title, "index"):
        lines = [b for b in read if b.kind != "heading"]
        if len(lines) >= 8 and sum(bool(re.search(r"\d[\d–, -]*\.?$", b.text)) for b in lines) >= 0.5 * len(
            lines
        ):
            return "index"
    if (after or late) and _titled(draft.title, "bibliography"):
        lines = [b for b in read if b.kind != "heading"]
        if lines and sum(bool(re.search(r"\b(?:1[5-9]|20)\d\d\b", b.text)) for b in lines) >= 0.4 * len(
            lines
        ):
            return "bibliography"
    if (
        late
        and after
        and _titled(draft.title, "acknowledgements")
        and re.search(r"\bthank|\bgrateful|\bdank|merci|gracias|grazie|감사|感謝", text, re.I)
    ):
        return "acknowledgements"
    if (
        before
        and early
        and _titled(draft.title, "acknowledgements")
        and words < 1500
        and re.search(r"\bthank|\bgrateful|\bdank|merci|gracias|감사|感謝", text, re.I)
    ):
        return "acknowledgements"
    if (after or before) and words < 600 and _titled(draft.title, "about the author"):
        names = {w for a in about.authors for w in re.findall(r"\w{3,}", a.casefold())}
        if not names or names & set(re.findall(r"\w{3,}", text.casefold())):
            return "about the author"
    if (
        (after or before)
        and words < 400
        and len(read) >= 2
        and (_titled(draft.title, "also by the author") or _titled(read[0].text, "also by the author"))
    ) and words / len(read) < 15:
        return "also by the author"
    return ""


def _is_title_page(read: list[RawBlock], words: int, about: About) -> bool:
    """Short, and hardly more than the book's title and the names on it."""
    if words > 80 or any(b.kind in ("dedication", "epigraph") for b in read):
        return False
    known = set(
        re.findall(
            r"\w+",
            " ".join(
                [about.title, about.subtitle, *about.authors, about.translator, about.publisher, about.year]
            ).casefold(),
        )
    )
    if not known:
        return False
    mine = re.findall(r"\w+", " ".join(b.text for b in read).casefold())
    title = re.findall(r"\w+", about.title.casefold())
    loose = known | {
        "by",
        "a",
        "the",
        "of",
        "and",
        "novel",
        "translated",
        "from",
        "edition",
        "with",
        "illustrated",
        "written",
        "author",
        "vol",
        "volume",
        "or",
    }
    strange = sum(w not in loose for w in mine)
    named = bool(title) and all(w in mine for w in title)
    return named and strange <= max(2, 0.3 * len(mine))


# ---------------------------------------------------------------- the book


def speakable_titles(draft: Draft, language: str) -> None:
    """Fill in the spoken form of the headings of a chapter."""
    for block in draft.blocks:
        if (
            block.kind in ("heading", "part_title")
            and block.read
            and block.spoken is None
            and not any(s.role == "say" for s in block.spans)
        ):
            text = _without_spans(block)
            block.spoken = heading_spoken(
                text,
                language=block.language or language,
                kind="part_title" if _is_part(draft) else "heading",
                chapter=draft.kind == "chapter",
            )


def _is_part(draft: Draft) -> bool:
    return draft.kind == "part" or bool(draft.types & _PART_TYPES and not draft.types & _CHAPTER_TYPES)


def heading_from_contents(draft: Draft) -> None:
    """A chapter whose title stands only in the table of contents says it all the same."""
    read = draft.read()
    if (
        not read
        or not draft.listed
        or draft.kind not in ("chapter", "part")
        or not draft.included
        or not is_speakable(draft.title)
    ):
        return
    if any(b.kind == "heading" for b in read[:4]):
        return
    head = " ".join(b.text for b in read[:2])
    if title_words(head)[: len(title_words(draft.title))] == title_words(draft.title):
        return
    draft.blocks.insert(0, RawBlock("heading", draft.title, source="contents", level=1))


def book_finish(
    drafts: Iterable[Draft],
    about: About,
    *,
    flows: Iterable[Flow] = (),
    warnings: Iterable[str] = (),
    left_out: Iterable[LeftOut] = (),
    fallback_title: str = "",
    coverage: float | None = None,
    contents_titles: bool = False,
    lexicon: Iterable[tuple[str, str, str, str]] = (),
) -> ParsedBook:
    """Settle headings, kinds and titles of the drafts, and make the book. Raises ImportRefused `no_readable_text`."""
    drafts = [d for d in drafts if d.blocks or d.listed]
    flows = list(flows)
    notes = list(dict.fromkeys(warnings))
    if not any(b.read for d in drafts for b in d.blocks):
        raise ImportRefused("no_readable_text", "There is no text in the file that could be read aloud.")
    language = language_tag(about.language)
    about = replace(about)
    for name, value in vars(about).items():
        if isinstance(value, str):
            setattr(about, name, storable(value))
    about.authors = tuple(storable(a) for a in about.authors if a.strip())
    title = " ".join(about.title.split())
    for draft in drafts:
        headings_settle(draft)
    kinds_settle(drafts, replace(about, title=title))
    if not any(d.included for d in drafts):
        for draft in drafts:  # better to ask than to leave out everything
            if any(b.read for b in draft.blocks):
                draft.included, draft.reason = True, ""
                if draft.kind in ("front_matter", "back_matter"):
                    draft.kind = "chapter"
    if coverage is None:
        coverage, doubled = _coverage(drafts, flows)
        if doubled:
            notes.append("Some text of the source stands in the book twice.")
    notes += _much_left_out(drafts)
    chapters = []
    for draft in drafts:
        draft.title = " ".join(storable(draft.title).split()) or _title_from(draft)
        if contents_titles:
            heading_from_contents(draft)
        speakable_titles(draft, language)
        for block in draft.blocks:
            if block.kind == "heading" and draft.kind == "part":
                block.kind = "part_title"
    first_listed = next((n for n, d in enumerate(drafts) if d.listed), 0)
    for number, draft in enumerate(drafts):
        if draft.title:
            continue
        named = {"front_matter": "Front matter", "back_matter": "Back matter", "notes": "Notes"}.get(
            draft.kind, ""
        )
        alone = draft.kind == "chapter" and sum(d.kind == "chapter" for d in drafts) == 1
        if not named and not alone and not draft.listed and number < first_listed:
            named = "Opening"
        draft.title = named or ((title or fallback_title) if alone else "") or f"Chapter {number + 1}"
    for draft in drafts:
        chapters.append(
            ParsedChapter(
                title=draft.title,
                kind=draft.kind,
                blocks=tuple(_parsed(b) for b in draft.blocks if b.text.strip()),
                included=draft.included,
                reason=draft.reason,
                language=_chapter_language(draft, language),
                depth=draft.depth,
            )
        )
    gone = [*left_out, *(x for f in flows for x in f.left_out)]
    if coverage < MIN_COVERAGE:
        notes.append(f"Only {coverage:.1%} of the characters of the source are accounted for.")
    return ParsedBook(
        title=title or fallback_title or "Untitled",
        authors=about.authors,
        language=language,
        chapters=tuple(chapters),
        subtitle=about.subtitle,
        translator=about.translator,
        publisher=about.publisher,
        description=about.description,
        series=about.series,
        series_position=about.series_position,
        year=about.year,
        isbn=about.isbn,
        rights=about.rights,
        cover=about.cover,
        cover_type=about.cover_type,
        warnings=tuple(notes),
        coverage=coverage,
        left_out=tuple(gone),
        lexicon=tuple(dict.fromkeys([*lexicon, *(x for f in flows for x in f.lexicon)])),
    )


_EXPECTED = frozenset({"note", "contents", "scene break", "frame of Project Gutenberg", "alternative text"})


def _much_left_out(drafts: list[Draft]) -> list[str]:
    """Warnings where much of the text of included chapters is of a sort that is not read."""
    words: dict[str, int] = {}
    for draft in drafts:
        for block in draft.blocks if draft.included else ():
            words[block.skip_reason] = words.get(block.skip_reason, 0) + words_in(block.text)
    total = sum(words.values())
    return [
        f"{count / total:.0%} of the text is not read ({reason}); look whether that is right."
        for reason, count in words.items()
        if reason and reason not in _EXPECTED and count > 0.05 * total and count > 100
    ]


def _coverage(drafts: list[Draft], flows: list[Flow]) -> tuple[float, bool]:
    """(share of the source's characters that are in chapters or left out with a reason, is text there twice)."""
    total = sum(f.total for f in flows)
    if not total:
        return 1.0, False
    kept = sum(counted(b.text) for d in drafts for b in d.blocks) - sum(f.synthetic for f in flows)
    share = (kept + sum(x.count for f in flows for x in f.left_out)) / total
    return min(share, 1 / share) if share > 0 else 0.0, share > 1.0005


def _title_from(draft: Draft) -> str:
    head = next((b for b in draft.blocks if b.kind in ("heading", "part_title") and b.text), None)
    return _plain_title(_without_spans(head)) if head else ""


def _chapter_language(draft: Draft, book: str) -> str:
    languages = {b.language for b in draft.blocks if b.language and b.read}
    texts = [b for b in draft.blocks if b.read]
    if len(languages) == 1 and texts and all(b.language for b in texts):
        tag = next(iter(languages))
        return tag if language_base(tag) != language_base(book) else ""
    return ""


def _parsed(block: RawBlock) -> ParsedBlock:
    return ParsedBlock(
        kind=block.kind,
        text=block.text,
        source=block.source,
        page=block.page,
        language=block.language,
        spoken=block.spoken,
        skip_reason=block.skip_reason,
        spans=tuple(sorted(block.spans, key=lambda s: (s.start, s.end))),
    )


def cut_at(flow: Flow, index: int, offset: int) -> int:
    """Make `offset` within block `index` of a flow the start of a block; its index is returned.

    At the very start or end of a block nothing is cut. Anchors after the cut move along.
    """
    if offset <= 0 or index >= len(flow.blocks):
        return index
    block = flow.blocks[index]
    if not block.text[:offset].strip():
        return index
    if not block.text[offset:].strip():
        return index + 1
    left, right = block_split(block, offset)
    flow.blocks[index : index + 1] = [left, right]
    shift = len(block.text) - len(right.text)
    for name, (at, where) in list(flow.anchors.items()):
        if at > index:
            flow.anchors[name] = (at + 1, where)
        elif at == index and where >= offset:
            flow.anchors[name] = (at + 1, max(0, where - shift))
    return index + 1
