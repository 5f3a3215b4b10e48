"""Plain text: any encoding, wrapped lines, chapter lines, scene breaks, Gutenberg's frame."""

import itertools
import posixpath
import re
import unicodedata
from dataclasses import dataclass, field
from typing import BinaryIO

from projects.text.headings import heading_number, looks_like_heading
from projects.text.languages import is_speakable, language_guess, language_tag
from projects.text.numbers import roman_value

from .base import ImportRefused, ParsedBook
from .encoding import is_binary, plain_decode
from .flow import RawBlock, counted
from .structure import About, Draft, book_finish

_ORNAMENT = re.compile(
    r"[\s]*(?:[^\w\s“”\"'‘’«»「」『』(){}\[\]]\s*){1,40}|\s*(?:o\s*[0oO]\s*o|~+|x\s+x\s+x|=+|_{3,})\s*"
)
_START = re.compile(
    r"^\s*\*{3}\s*START OF (?:THE|THIS) PROJECT GUTENBERG.*$|^\*END\*?THE SMALL PRINT.*$|^\s*\*{3} ?START: FULL LICENSE.*$",
    re.I | re.M,
)
_END = re.compile(
    r"^\s*\*{3}\s*END OF (?:THE|THIS) PROJECT GUTENBERG.*$|^\s*End of (?:the |this )?Project Gutenberg(?:[’']s)?\b.*$",
    re.I | re.M,
)
_FIELD = re.compile(
    r"^(Title|Author|Language|Translator|Release Date|Illustrator|Editor|Subtitle)\s*:\s*(.+(?:\n[ \t]+\S.*)*)",
    re.M,
)
_CJK_TIGHT = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_CLOSES = re.compile(r"[.!?…。！？:;][”’\"'»)\]」』_*]*$")
_CREDIT = re.compile(
    r"^(?:by|von|par|por|di|de|written by|translated by|illustrated by|edited by)\b|^(?:글|지은이|저자|옮긴이|作者|著者?|訳)\s*[:：]?\s",
    re.I,
)


@dataclass
class Line:
    """A line of the file: its number from 1, its indent, its text without outer white space."""

    number: int
    indent: int
    text: str


@dataclass
class Group:
    """Lines between two blank ones."""

    lines: list[Line]
    blank_before: int = 0

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)


@dataclass
class Layout:
    """How the whole file is set."""

    wrapped: bool  # lines are cut at a width
    width: int  # at which they are cut, in characters
    blank_parts: bool  # blank lines part paragraphs
    indent_parts: bool  # an indent begins a paragraph
    groups: list[Group] = field(default_factory=list)


class TxtImporter:
    """Plain text files. Blank lines, indents or line ends part paragraphs, as the file shows by itself."""

    name = "txt"
    extensions = (".txt", ".text", ".asc")

    def score(self, head: bytes, name: str) -> float:
        if is_binary(head):
            return 0.0
        return 0.7 if name.lower().endswith(self.extensions) else 0.2

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        return text_parse(file.read(), name)


def text_parse(data: bytes, name: str, *, language: str = "") -> ParsedBook:
    """A plain text as a book. Raises ImportRefused: `unsupported_format`, `no_readable_text`."""
    if is_binary(data):
        raise ImportRefused("unsupported_format", "The file is no text that could be read.")
    text, _, warnings = plain_decode(data, language)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "").replace("\x1a", "")
    text = re.sub(r"[\x0c\x0b\x85\u2028\u2029]", "\n\n", text)
    text = re.sub(r"[\x00-\x08\x0e-\x1f]", " ", text)
    total = counted(text)
    about = About()
    before, body, after, first = _gutenberg(text, about)
    if before or after:
        warnings.append("The licence of Project Gutenberg before and after the text was taken out.")
    about.language = language_tag(about.language) or language_guess(body)
    layout = layout_of(body, first)
    layout.groups = _parted(layout)
    drafts = _drafts(layout, about)
    if before.strip():
        drafts.insert(0, _frame("Project Gutenberg header", before, 1, "front_matter"))
    if after.strip():
        drafts.append(_frame("Project Gutenberg licence", after, first + body.count("\n"), "back_matter"))
    stem = posixpath.splitext(posixpath.basename(name.replace("\\", "/")))[0]
    kept = sum(counted(b.text) for d in drafts for b in d.blocks)
    return book_finish(
        drafts,
        about,
        warnings=warnings,
        fallback_title=stem,
        coverage=min(1.0, kept / total) if total else 1.0,
    )


def _frame(title: str, text: str, first: int, kind: str) -> Draft:
    blocks = [
        RawBlock("paragraph", " ".join(p.split()), source=f"line {first}")
        for p in re.split(r"\n\s*\n", text)
        if p.strip()
    ]
    return Draft(title, blocks, listed=False, kind=kind, included=False, reason="frame of Project Gutenberg")


def _gutenberg(text: str, about: About) -> tuple[str, str, str, int]:
    """(frame before, text, frame after, number of the text's first line). Fills in what the header says."""
    head = text[:20_000]
    start = next((m for m in _START.finditer(head)), None)
    end = None
    for match in _END.finditer(text, start.end() if start else 0):
        end = match
        break
    if start is None and (end is None or "gutenberg" not in head.casefold()):
        return "", text, "", 1
    at = start.end() if start else 0
    before = text[:at]
    for match in _FIELD.finditer(before or head):
        value = " ".join(match[2].split())
        name = match[1].casefold()
        if name == "title" and not about.title:
            about.title = value
        elif name == "author" and not about.authors:
            about.authors = tuple(a.strip() for a in re.split(r"\s+and\s+|;\s*", value) if a.strip())
        elif name == "language" and not about.language:
            about.language = value
        elif name == "translator":
            about.translator = value
        elif name == "subtitle":
            about.subtitle = value
    body = text[at : end.start()] if end else text[at:]
    after = text[end.start() :] if end else ""
    credit = re.match(
        r"\s*(?:Produced by|E-text prepared by|Transcribed (?:from|by)|This etext was)\b.*?\n\s*\n",
        body,
        re.S | re.I,
    )
    if credit and len(credit[0]) < 600:
        before += credit[0]
        body = body[credit.end() :]
    return before, body, after, 1 + text[: len(before)].count("\n")


# ---------------------------------------------------------------- layout


def layout_of(text: str, first: int = 1) -> Layout:
    """How a text is set, and its groups of lines."""
    lines = [
        Line(first + i, len(_expand(raw)) - len(_expand(raw).lstrip()), raw.strip())
        for i, raw in enumerate(text.split("\n"))
    ]
    groups: list[Group] = []
    blank = 0
    for line in lines:
        if not line.text:
            blank += 1
            continue
        if blank or not groups:
            groups.append(Group([], blank))
        groups[-1].lines.append(line)
        blank = 0
    lengths = sorted(_width(line.text) + line.indent for group in groups for line in group.lines)
    full = lengths[int(len(lengths) * 0.95)] if lengths else 0
    joined = [g for g in groups if len(g.lines) > 1]
    inner = [_width(line.text) + line.indent for g in joined for line in g.lines[:-1]]
    wrapped = bool(inner) and 30 <= full <= 130 and sum(n >= 0.72 * full for n in inner) >= 0.5 * len(inner)
    if wrapped and len(inner) < 4 and lengths[-1] > 160:
        wrapped = False
    if not wrapped and joined and lengths[-1] <= 90 and full > 45:
        # Few wrapped lines among much dialogue or verse: some paragraph must break without need.
        wrapped = any(
            not _CLOSES.search(line.text) and after.text[:1].islower()
            for g in joined
            for line, after in zip(g.lines, g.lines[1:], strict=False)
        )
    starts = [line for g in groups for line in g.lines]
    indented = sum(line.indent > 0 for line in starts)
    blank_parts = len(groups) > 0.08 * len(starts)
    indent_parts = wrapped and 0.03 * len(starts) < indented < 0.6 * len(starts) and not blank_parts
    return Layout(wrapped, full, blank_parts, indent_parts, groups)


def _expand(raw: str) -> str:
    return raw.replace("\t", "    ").replace("\u3000", "  ")


def _width(text: str) -> int:
    """Columns: East Asian wide characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _join(lines: list[Line]) -> str:
    text = ""
    for line in lines:
        words = " ".join(line.text.split())
        if text:
            text += "" if _CJK_TIGHT.match(text[-1]) and _CJK_TIGHT.match(words[0]) else " "
        text += words
    return text


def _blocks_of(group: Group, layout: Layout) -> list[RawBlock]:
    """The blocks in a group of lines: one wrapped paragraph, several paragraphs, or verse."""
    lines = group.lines
    if len(lines) == 1:
        return [_one(lines)]
    if any(_is_break(line.text) for line in lines):
        found: list[RawBlock] = []
        run: list[Line] = []
        for line in lines:
            if _is_break(line.text):
                found += _blocks_of(Group(run), layout) if run else []
                found.append(_one([line]))
                run = []
            else:
                run.append(line)
        return found + (_blocks_of(Group(run), layout) if run else [])
    if layout.indent_parts or (
        layout.wrapped and lines[0].indent > lines[1].indent and len({line.indent for line in lines[1:]}) <= 2
    ):
        base = min(line.indent for line in lines)
        runs: list[list[Line]] = []
        for line in lines:
            if not runs or (line.indent > base and base < line.indent <= base + 8):
                runs.append([])
            runs[-1].append(line)
        if len(runs) > 1 and len(runs) < len(lines):
            return [
                b
                for run in runs
                for b in _blocks_of(Group(run), Layout(layout.wrapped, layout.width, True, False))
            ]
    if not layout.wrapped:
        if _is_verse(lines, layout, free=True):
            return [_verse(lines)]
        return [_one([line]) for line in lines]
    if _is_verse(lines, layout, free=False):
        return [_verse(lines)]
    if _is_list(lines):
        items: list[list[Line]] = []
        for line in lines:
            if not items or _ITEM.match(line.text):
                items.append([])
            items[-1].append(line)
        return [_one(item, "list_item") for item in items]
    free = [_could_go_on(line, after, layout) for line, after in itertools.pairwise(lines)]
    if all(free) and all(_CLOSES.search(line.text) for line in lines):
        return [_one([line]) for line in lines]  # speech, a line each
    kind = (
        "quote"
        if min(line.indent for line in lines) >= 2
        and group.blank_before
        and layout.blank_parts
        and not layout.indent_parts
        else "paragraph"
    )
    return [_one(lines, kind)]


_ITEM = re.compile(r"(?:\d{1,3}[.)]|[-*•–]|[a-z][.)])\s+\S")


def _is_list(lines: list[Line]) -> bool:
    return bool(_ITEM.match(lines[0].text)) and sum(bool(_ITEM.match(line.text)) for line in lines) >= max(
        2, len(lines) // 3
    )


def _could_go_on(line: Line, after: Line, layout: Layout) -> bool:
    """Would the first word of the next line have fitted on this one? Then the line was ended on purpose."""
    word = after.text.split()[0]
    return line.indent + _width(line.text) + 1 + _width(word) <= layout.width - 3


def _is_verse(lines: list[Line], layout: Layout, *, free: bool) -> bool:
    """Lines ended on purpose, opening with capitals or set in, not each a sentence."""
    if len(lines) < 2:
        return False
    closed = sum(bool(re.search(r"[.!?。！？][”’\"'»)」』]*$", line.text)) for line in lines[:-1])
    capital = sum(bool(re.match(r"[\W_]*[A-ZÀ-ÞА-Я]", line.text)) for line in lines)
    if free:
        # An unwrapped file: lines of a paragraph's length are paragraphs.
        return (
            len(lines) >= 3
            and max(_width(line.text) for line in lines) <= 60
            and closed <= 0.5 * len(lines)
            and capital >= 0.7 * len(lines)
        )
    on_purpose = sum(_could_go_on(line, after, layout) for line, after in itertools.pairwise(lines))
    if on_purpose < 0.8 * (len(lines) - 1):
        return False
    set_in = min(line.indent for line in lines) >= 2
    return (set_in or (len(lines) >= 3 and capital >= 0.7 * len(lines))) and closed <= 0.6 * len(lines)


def _one(lines: list[Line], kind: str = "paragraph") -> RawBlock:
    text = _join(lines)
    if _is_break(text):
        return RawBlock("scene_break", text, source=f"line {lines[0].number}", skip_reason="scene break")
    return RawBlock(kind, text, source=f"line {lines[0].number}")


def _verse(lines: list[Line]) -> RawBlock:
    return RawBlock(
        "verse", "\n".join(" ".join(line.text.split()) for line in lines), source=f"line {lines[0].number}"
    )


def _is_break(text: str) -> bool:
    return (
        bool(text)
        and len(text) <= 80
        and _ORNAMENT.fullmatch(text) is not None
        and not is_speakable(text.replace("o", "").replace("O", "").replace("0", "").replace("x", ""))
    )


def _parted(layout: Layout) -> list[Group]:
    """The groups, cut before lines that are plainly chapter lines though no blank line stands before them."""
    groups: list[Group] = []
    for group in layout.groups:
        run: list[Line] = []
        blank = group.blank_before
        for number, line in enumerate(group.lines):
            alone = not layout.wrapped or (number and _CLOSES.search(group.lines[number - 1].text))
            if run and alone and looks_like_heading(line.text) and heading_number(line.text):
                groups.append(Group(run, blank))
                run, blank = [], 0
            run.append(line)
        if run:
            groups.append(Group(run, blank))
    if (
        groups
        and len(groups[0].lines) > 1
        and not layout.wrapped
        and re.fullmatch(r"[IVXLC]+|\d{1,3}|[一二三四五六七八九十]+", groups[0].lines[0].text)
    ):
        head, *rest = groups[0].lines  # a text that begins with the number of its chapter
        groups[:1] = [Group([head], groups[0].blank_before), Group(rest, 1)]
    return groups


# ---------------------------------------------------------------- chapters


def _drafts(layout: Layout, about: About) -> list[Draft]:
    groups = layout.groups
    heads = _heading_groups(groups, layout)
    if not heads:
        return _whole(groups, layout, about)
    drafts: list[Draft] = []
    front = groups[: heads[0][0]]
    if front:
        drafts.append(_front(front, layout, about))
    depth_of_chapters = 1 if any(h[3] for h in heads) else 0
    for number, (start, lines, rest, part) in enumerate(heads):
        end = heads[number + 1][0] if number + 1 < len(heads) else len(groups)
        text = "\n".join(" ".join(line.text.split()).strip("_*= ") for line in lines)
        raw = "\n".join(" ".join(line.text.split()) for line in lines)
        head = RawBlock("heading", raw, source=f"line {lines[0].number}", level=1 if part else 2)
        used = 1 + sum(1 for g in groups[start + 1 : end] if g.lines[0] in lines)
        blocks = [head]
        if rest:
            blocks += _blocks_of(Group(rest), layout)
        for group in groups[start + used : end]:
            blocks += _blocks_of(group, layout)
        drafts.append(
            Draft(
                _one_line(text),
                blocks,
                depth=0 if part else depth_of_chapters,
                group=part,
                kind="part" if part and len(blocks) == 1 else "",
            )
        )
    return drafts


def _one_line(text: str) -> str:
    lines = text.split("\n")
    title = lines[0]
    for line in lines[1:]:
        title += (" " if title[-1:] in ".:;,!?—–-" else ": ") + line
    return title


def _front(groups: list[Group], layout: Layout, about: About) -> Draft:
    """What stands before the first chapter: a title page, or text to be read."""
    blocks = [b for g in groups for b in _blocks_of(g, layout)]
    words = sum(len(b.text.split()) for b in blocks)
    sentences = sum(bool(_CLOSES.search(b.text)) and len(b.text.split()) > 6 for b in blocks)
    _title_from_front(groups, about)
    contents = [
        g
        for g in groups
        if re.fullmatch(
            r"(?:table of )?contents\.?|inhalt|目次|차례|목차|índice|indice|sommaire", g.text.strip(), re.I
        )
    ]
    if contents:
        inside = False
        for group in groups:
            inside = inside or group is contents[0]
            if inside:
                for block in blocks:
                    if any(block.source == f"line {line.number}" for line in group.lines):
                        block.kind, block.skip_reason = "toc", "contents"
    if (words <= 60 and not sentences) or not any(b.read for b in blocks):
        reason = (
            "title page (said in the opening credits)"
            if any(b.read for b in blocks)
            else "table of contents"
            if contents
            else "no text"
        )
        return Draft("Title page", blocks, listed=False, kind="front_matter", included=False, reason=reason)
    return Draft("Front matter", blocks, listed=False, kind="front_matter")


def _title_from_front(groups: list[Group], about: About) -> None:
    """Title and author, where the first lines are plainly that."""
    lines = [line.text for g in groups[:4] for line in g.lines][:6]
    if not lines:
        return
    if not about.title and len(lines[0]) <= 80 and not _CLOSES.search(lines[0]) and is_speakable(lines[0]):
        about.title = lines[0].title() if lines[0].isupper() and lines[0].isascii() else lines[0]
    if not about.authors:
        for line in lines[1:]:
            match = re.match(r"(?:by|von|par|written by)\s+(.{2,60})$", line, re.I)
            if match:
                about.authors = (match[1].strip().title() if match[1].isupper() else match[1].strip(),)
                return


def _whole(groups: list[Group], layout: Layout, about: About) -> list[Draft]:
    """A text without chapter lines: one chapter; first lines that are plainly its title are its heading."""
    blocks: list[RawBlock] = []
    at = 0
    title = ""
    lines = groups[0].lines if groups else []
    if (
        len(groups) > 1
        and len(lines) <= 3
        and groups[1].blank_before >= 1
        and all(
            _width(line.text) <= 60 and not _CLOSES.search(line.text) and is_speakable(line.text)
            for line in lines
        )
        and (
            lines[0].indent >= 6
            or groups[1].blank_before >= 2
            or (len(lines) > 1 and bool(_CREDIT.match(lines[1].text)))
            or lines[0].text.isupper()
        )
        and sum(len(g.text) for g in groups[1:]) > 8 * len(groups[0].text)
        and lines[0].text[:1] not in "“\"'‘«「—-"
    ):
        title = " ".join(lines[0].text.split())
        blocks.append(RawBlock("heading", title, source=f"line {lines[0].number}", level=1))
        for line in lines[1:]:
            name = " ".join(line.text.split())
            blocks.append(
                RawBlock(
                    "paragraph",
                    name,
                    source=f"line {line.number}",
                    skip_reason="author (said in the opening credits)",
                )
            )
            if not about.authors and len(name) <= 40:
                bare = re.sub(r"^(?:by|von|par)\s+", "", name, flags=re.I)
                about.authors = (
                    bare.replace(" ", "") if re.fullmatch(r"(?:[가-힣]\s?){2,5}", bare) else bare,
                )
        about.title = about.title or title
        at = 1
    for group in groups[at:]:
        blocks += _blocks_of(group, layout)
    return [Draft(title, blocks, listed=False)]


def _heading_groups(groups: list[Group], layout: Layout) -> list[tuple[int, list[Line], list[Line], bool]]:
    """(group index, lines of the heading, lines of the group after it, is a part) for every heading, in order."""
    found: list[tuple[int, list[Line], list[Line], bool]] = []
    numerals = _numeral_run(groups)
    skip_to = -1
    for index, group in enumerate(groups):
        if index <= skip_to:
            continue
        line = group.lines[0]
        named = looks_like_heading(line.text) and not _in_prose(group, layout)
        if not named and index not in numerals:
            continue
        lines, rest = [line], group.lines[1:]
        if rest:
            # "CHAPTER I." on one line and its name on the next; a text right below is text.
            if len(rest) == 1 and _is_name(rest[0].text):
                lines, rest = [line, rest[0]], []
            elif len(rest) > 1 and rest[0].text.isupper() and _is_name(rest[0].text):
                lines, rest = [line, rest[0]], rest[1:]
        number = heading_number(line.text)
        if not rest and len(lines) == 1 and number and not number.rest and index + 2 < len(groups):
            after = groups[index + 1]
            if (
                len(after.lines) <= 2
                and all(_is_name(x.text) for x in after.lines)
                and index + 1 not in numerals
                and not looks_like_heading(after.lines[0].text)
            ):
                following = groups[index + 2]
                if after.blank_before <= 2 and (
                    after.text.isupper()
                    or (_title_case(after.text) and len(following.text) > 2 * len(after.text))
                ):
                    lines += after.lines
                    skip_to = index + 1
        part = bool(
            re.match(
                r"(?:part|book|volume|teil|buch|partie|livre|tome|parte|libro|часть|книга)\b|第.+[部卷]|제?\s*\d+\s*부",
                line.text,
                re.I,
            )
        )
        found.append((index, lines, rest, part))
    found = _without_listing(found, groups)
    if found and all(f[3] for f in found):
        found = [(i, lines, rest, False) for i, lines, rest, _ in found]
    chapters = [f for f in found if not f[3]]
    if len(found) == 1 and len(groups) > 40 and found[0][0] > len(groups) * 0.8:
        return []  # an epilogue alone makes no chapters
    return found if chapters else []


def _in_prose(group: Group, layout: Layout) -> bool:
    """Is the first line of a group the beginning of a paragraph rather than a heading?"""
    if len(group.lines) == 1:
        return False
    line, after = group.lines[0], group.lines[1]
    if layout.wrapped and not _could_go_on(line, after, layout):
        return True
    return after.text[:1].islower()


def _is_name(text: str) -> bool:
    """Could a short line be the name of a chapter?"""
    return (
        0 < len(text) <= 70
        and is_speakable(text)
        and text[:1] not in "“\"‘'«「『—–-("
        and not re.search(r"[.,;:。、]$", text.rstrip("”’\"'"))
    ) or (text.isupper() and len(text) <= 80 and text[:1] not in '“"')


def _title_case(text: str) -> bool:
    words = list(re.findall(r"[^\W\d_]+", text))
    long = [w for w in words if len(w) > 3]
    return (
        bool(words)
        and words[0][0].isupper()
        and sum(w[0].isupper() for w in long) >= 0.7 * len(long)
        and len(words) <= 10
        and not re.search(r"[.!?…]$", text)
    )


_NUMERAL = re.compile(r"[\[(—–-]*\s*([IVXLC]+|\d{1,3}|[一二三四五六七八九十]+)\s*[.)\]—–-]*")


def _numeral_run(groups: list[Group]) -> set[int]:
    """Groups that are but a numeral ("I", "II" … or "1", "2" …) and count up from one; parts may each begin anew."""
    found: set[int] = set()
    run: list[int] = []
    style = ""
    for index, group in enumerate(groups):
        match = _NUMERAL.fullmatch(group.lines[0].text) if len(group.lines) == 1 else None
        if not match:
            continue
        text = match[1]
        kind = "roman" if text[0] in "IVXLC" else "digit" if text[0].isdecimal() else "han"
        value = roman_value(text) if kind == "roman" else int(text) if kind == "digit" else _han_value(text)
        if value == 1:
            run, style = [index], kind
        elif run and value == len(run) + 1 and kind == style:
            run.append(index)
        if len(run) >= 2:
            found |= set(run)
    found |= _titled_run(groups)
    if (
        not found
        and len(groups) > 1
        and len(groups[0].lines) == 1
        and _NUMERAL.fullmatch(groups[0].lines[0].text)
        and len(groups[1].text) > 60
    ):
        return {0}  # a text that begins with the number of its one chapter
    return found


_TITLED = re.compile(r"([IVXLC]+|\d{1,3})[.:)]\s+(\S.{0,70})")


def _titled_run(groups: list[Group]) -> set[int]:
    """Lines such as "I. A SCANDAL IN BOHEMIA" that count up from one, with text between them: no mere list."""
    runs: list[list[int]] = []
    for index, group in enumerate(groups):
        match = _TITLED.fullmatch(group.lines[0].text) if len(group.lines) == 1 else None
        if not match or not (match[2].isupper() or _title_case(match[2])):
            continue
        value = roman_value(match[1]) if match[1][0] in "IVXLC" else int(match[1])
        if value == 1:
            runs.append([index])
        elif runs and value == len(runs[-1]) + 1:
            between = sum(len(g.text) for g in groups[runs[-1][-1] + 1 : index])
            if between >= 200:
                runs[-1].append(index)
    return {index for run in runs if len(run) >= 2 for index in run}


def _han_value(text: str) -> int:
    digits = {c: i for i, c in enumerate("一二三四五六七八九", 1)}
    if "十" not in text:
        return digits.get(text, 0) if len(text) == 1 else 0
    tens, _, ones = text.partition("十")
    return 10 * (digits.get(tens, 1) if tens else 1) + (digits.get(ones, 0) if ones else 0)


def _without_listing(
    found: list[tuple[int, list[Line], list[Line], bool]], groups: list[Group]
) -> list[tuple[int, list[Line], list[Line], bool]]:
    """Without the lines of a table of contents: headings one after the other whose titles come again below."""
    titles = [" ".join(re.findall(r"\w+", f[1][0].text.casefold())) for f in found]
    keep = []
    for number, head in enumerate(found):
        here = head[0]
        after = found[number + 1][0] if number + 1 < len(found) else len(groups)
        empty = after - here <= len(head[1]) and not (head[2] and sum(len(x.text) for x in head[2]) > 200)
        again = titles[number] in titles[number + 1 :]
        if empty and again and not head[3]:
            continue
        if (
            empty
            and again
            and head[3]
            and number + 1 < len(found)
            and found[number + 1] not in keep
            and titles[number + 1] in titles[number + 2 :]
        ):
            continue
        if (
            not empty
            and again
            and number + 1 < len(found)
            and head[2]
            and all(looks_like_heading(x.text) for x in head[2])
        ):
            continue
        keep.append(head)
    return keep
