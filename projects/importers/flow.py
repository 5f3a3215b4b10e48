"""From a tree of markup to a flow of blocks: what is text, what is apart from it, and not one character lost."""

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lxml import etree

from projects.text.languages import is_speakable, language_base, language_tag
from projects.text.spans import Span
from projects.text.wordlist import word_set

from .base import LeftOut
from .markup import SSML_NS, attribute, css_reason, language_of, local, types_of

BLOCKS = word_set(
    """html body p div h1 h2 h3 h4 h5 h6 section article aside header footer main nav blockquote ul ol li dl dt dd
    table thead tbody tfoot tr td th caption colgroup figure figcaption pre hr address form fieldset details
    summary center hgroup menu dir legend noscript switch case default"""
)
HEADINGS = {f"h{n}": n for n in range(1, 7)}
NEVER = {
    "script": "script", "style": "style sheet", "head": "document head", "template": "template", "noscript": "script",
    "annotation": "source of a formula", "annotation-xml": "source of a formula", "rp": "bracket of a reading",
    "object": "fallback of an embedded object", "video": "fallback of a video", "audio": "fallback of a sound",
    "iframe": "fallback of a frame", "canvas": "fallback of a drawing", "title": "tooltip", "desc": "description of a drawing",
    "metadata": "metadata", "defs": "drawing",
}  # fmt: skip
"""Elements whose text is no text of the book, and what it is."""

NOTE_TYPES = word_set("""footnote endnote rearnote note footnotes endnotes rearnotes notes""")
_NOTE_MARK = re.compile(r"[\[({]?\s*(?:\d{1,4}|[*†‡§¶‖#]{1,4}|[a-z]|[ivx]{1,5})\s*[\])}]?\.?")
_PAGE_CLASS = re.compile(
    r"(?:^|\s)(?:page-?num(?:ber)?s?|pagenos?|page-?no|pgnum|pb|folio|pagebreak|page-break-marker)(?:\s|$)",
    re.I,
)
_LINE_CLASS = re.compile(r"(?:^|\s)(?:lnum|linenum(?:ber)?|line-num(?:ber)?|ln)(?:\s|$)", re.I)
_VERSE_CLASS = re.compile(
    r"(?:^|[\s_-])(?:poem|poetry|verse|stanza|linegroup|line-group|song|lyrics)(?:[\s_-]|$)", re.I
)
_NOTE_CLASS = re.compile(r"(?:^|[\s_-])(?:footnotes?|endnotes?|rearnotes?|fnote)(?:[\s_-]|$)", re.I)
_CAPTION_CLASS = re.compile(r"(?:^|[\s_-])caption(?:[\s_-]|$)", re.I)
_LETTER_CLASS = re.compile(r"(?:^|[\s_-])letter(?:[\s_-]|$)", re.I)
_EPIGRAPH_CLASS = re.compile(r"(?:^|[\s_-])epigraphs?(?:[\s_-]|$)", re.I)
_DEDICATION_CLASS = re.compile(r"(?:^|[\s_-])dedication(?:[\s_-]|$)", re.I)
_DROPCAP_CLASS = re.compile(r"drop-?caps?|initial|lettrine|firstletter|first-letter", re.I)
_SPACES = re.compile("[ \t\n\r\f]+")
_ORNAMENT = re.compile(r"[\W_]{1,60}")
_CJK_TIGHT = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


_FORMAT = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0001\U000e0020-\U000e007f]"
)
"""Format characters (Unicode category Cf): they have no shape."""


def counted(text: str) -> int:
    """Characters of a text that must be accounted for: all but white space and invisible format characters."""
    total = sum(map(len, text.split()))
    return total if text.isascii() else total - len(_FORMAT.findall(text))


_UNSTORABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def storable(text: str) -> str:
    """A text without what no database and no JSON takes: control characters and lone surrogates are blanks."""
    return _UNSTORABLE.sub(" ", text)


@dataclass
class RawBlock:
    """A block on its way: what ParsedBlock will be, and the evidence for what it is."""

    kind: str
    text: str
    source: str = ""
    page: str = ""
    language: str = ""
    skip_reason: str = ""
    spans: list[Span] = field(default_factory=list)
    level: int = 0  # of a heading, 1 to 6
    types: frozenset[str] = frozenset()  # epub:type words of all elements around it
    linked: int = 0  # counted characters within links
    group: int = 0  # blocks of one heading group or one stanza share a number
    spoken: str | None = None

    @property
    def read(self) -> bool:
        """Will it be heard?"""
        return not self.skip_reason and self.kind != "scene_break" and is_speakable(self.text)


@dataclass
class Flow:
    """The blocks of one document, and where its anchors are."""

    name: str
    blocks: list[RawBlock] = field(default_factory=list)
    anchors: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # id → (block index, offset in its text)
    types: frozenset[str] = frozenset()  # of body and html
    language: str = ""
    left_out: list[LeftOut] = field(default_factory=list)
    total: int = 0  # counted characters in the source
    synthetic: int = (
        0  # counted characters of blocks that are no text in the source (rules, alternative texts)
    )
    warnings: list[str] = field(default_factory=list)
    lexicon: list[tuple[str, str, str, str]] = field(default_factory=list)
    page: str = ""  # label of the page on which it ends


@dataclass(frozen=True)
class _Context:
    kind: str = "paragraph"
    skip: str = ""
    language: str = ""
    types: frozenset[str] = frozenset()
    verse: int = 0  # number of the stanza-level container, 0 = none
    group: int = 0  # number of the heading group, 0 = none
    level: int = 0
    list_marker: str = ""
    preformatted: bool = False
    quoted: str = ""  # kind that paragraphs inside take


class Builder:
    """Text of one block, growing: white space collapsed, spans and offsets kept."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.last = ""
        self.spans: list[Span] = []
        self.linked = 0
        self.page: str | None = None  # of its first character
        self.note = False
        self.pending: list[RawBlock] = []  # blocks that stood inside this one and come after it

    def add(self, text: str, *, preformatted: bool = False) -> None:
        if _UNSTORABLE.search(text):
            text = storable(text)
        if preformatted:
            text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
            if not self.length:
                text = text.lstrip("\n")
        else:
            text = _SPACES.sub(" ", text)
            if text[:1] == " " and (not self.length or self.last in " \n"):
                text = text[1:]
        text = text.replace("\u00ad", "")
        if text:
            self.parts.append(text)
            self.length += len(text)
            self.last = text[-1]

    def line_break(self) -> None:
        if not self.length:
            return
        if self.last == " ":
            last = self.parts.pop()
            self.length -= 1
            if len(last) > 1:
                self.parts.append(last[:-1])
        self.parts.append("\n")
        self.length += 1
        self.last = "\n"

    def text(self) -> str:
        return "".join(self.parts)


class Walker:
    """Turns one document's tree into a Flow.

    `hidden`: selectors that the style sheets hide; `notes`: ids that note marks point at (in this document);
    `pages`: id → label from the page list; `alphabet`: default of ssml:ph.
    """

    def __init__(
        self,
        name: str,
        *,
        language: str = "",
        hidden: dict[str, str] | None = None,
        notes: frozenset[str] = frozenset(),
        pages: dict[str, str] | None = None,
        page: str = "",
        note_target: Callable[[str], bool] | None = None,
    ) -> None:
        self.flow = Flow(name, language=language)
        self.hidden = hidden or {}
        self.notes = notes
        self.pages = pages or {}
        self.page = page
        self.note_target = note_target or (lambda href: False)
        self._builder = Builder()
        self._counter = 0
        self._alphabet = "ipa"
        self._inline_languages: list[str] = []
        self._ruby: list[int] = []
        self._link_depth = 0
        self._ids: list[str] = []
        self._anchored: dict[int, list[str]] = {}  # block index → the ids of its anchors

    def walk(self, root: etree._Element) -> Flow:
        """The flow of the document's body (of all of it, where there is no body)."""
        body = next((e for e in root.iter() if local(e) == "body"), root)
        self._alphabet = attribute(root, "alphabet", SSML_NS, "ssml") or "ipa"
        self.flow.types = types_of(body) | types_of(root)
        language = language_of(body) or language_of(root)
        if language:
            self.flow.language = language_tag(language) or self.flow.language
        self.flow.total = sum(counted(t) for t in texts_of(body))
        context = _Context(language=self.flow.language, types=self.flow.types)
        reason = self._why_hidden(body)
        if reason:
            context = replace(context, skip=reason)
        if body.get("id"):
            self._anchor(body.get("id") or "")
        self._children(body, context)
        self._flush(context)
        self.flow.page = self.page
        return self.flow

    # ------------------------------------------------------------ elements

    def _children(self, element: etree._Element, context: _Context) -> None:
        self._text(element.text, context)
        for child in element:
            self._element(child, context)
            self._text(child.tail, context)

    def _element(self, element: etree._Element, context: _Context) -> None:
        name = local(element)
        if not name:
            if isinstance(element, etree._Entity):
                self._leave_out("unknown entity", element.text or "")
            return
        if (name in BLOCKS or name == "table") and name not in NEVER:
            self._flush(context)
        if element.get("id"):
            self._anchor(element.get("id") or "")
        if name == "a" and element.get("name"):
            self._anchor(element.get("name") or "")
        if name in NEVER:
            self._leave_out(NEVER[name], "".join(texts_of(element)))
            return
        types, classes = types_of(element), element.get("class") or ""
        if self._page_marker(element, types, classes):
            return
        if _LINE_CLASS.search(classes) and re.fullmatch(r"\s*\d{1,5}\s*", "".join(texts_of(element))):
            self._leave_out("line number", "".join(texts_of(element)))
            return
        reason = self._why_hidden(element)
        if name == "br":
            self._builder.line_break()
        elif name == "hr":
            self._flush(context)
            self.flow.blocks.append(self._block("scene_break", "⁂", context, "scene break"))
            self.flow.synthetic += 1
        elif name == "img" or name == "image":
            self._image(element, context)
        elif name == "svg":
            self._apart(element, context, "image", "drawing")
        elif name == "math":
            self._formula(element, context)
        elif name == "ruby":
            self._inline(element, context, types, classes, reason, ruby=True)
        elif name in ("rt", "rtc"):
            self._reading(element)
        elif name == "table":
            self._table(element, context, reason)
        elif name in BLOCKS:
            self._flush(context)
            inner = self._enter(element, name, context, types, classes, reason)
            self._children(element, inner)
            self._flush(inner)
        else:
            self._inline(element, context, types, classes, reason)

    def _enter(
        self,
        element: etree._Element,
        name: str,
        context: _Context,
        types: frozenset[str],
        classes: str,
        reason: str,
    ) -> _Context:
        """The context inside a block-level element."""
        inner = replace(context, types=context.types | types, list_marker="")
        language = language_tag(language_of(element))
        if language:
            inner = replace(inner, language=language)
        if reason:
            inner = replace(inner, skip=inner.skip or reason)
        if "pg-boilerplate" in classes.split():
            inner = replace(inner, skip=inner.skip or "frame of Project Gutenberg")
        if name in HEADINGS:
            return replace(inner, kind="heading", level=HEADINGS[name])
        if element.get("role") == "heading":
            level = element.get("aria-level") or "2"
            return replace(inner, kind="heading", level=int(level) if level.isdigit() else 2)
        is_note = bool(types & {"footnote", "endnote", "rearnote", "note"}) or (
            element.get("id") in self.notes
            and name in ("li", "p", "div", "aside", "dd", "section", "td", "tr")
        )
        if (
            not is_note
            and _NOTE_CLASS.search(classes)
            and name in ("div", "aside", "p", "section", "li", "ol", "ul")
        ):
            is_note = bool(element.xpath(".//*[local-name()='a'][@href]")) or name == "aside"
        if is_note:
            return replace(inner, kind="note", quoted="note", skip=inner.skip or "note")
        if name == "nav" and (
            types & {"toc", "landmarks", "page-list", "loi", "lot", "lov", "loa"} or not types
        ):
            return replace(inner, kind="toc", quoted="toc", skip=inner.skip or "contents")
        if name == "hgroup" or (name == "header" and _is_heading_group(element)):
            self._counter += 1
            levels = [HEADINGS[local(e)] for e in element.iter() if local(e) in HEADINGS]
            return replace(inner, kind="heading", group=self._counter, level=min(levels, default=2))
        if context.group and name in ("p", "div", "span"):
            return inner
        if (
            name in ("p", "div")
            and types & {"title", "subtitle", "ordinal", "bridgehead", "fulltitle"}
            and not _has_blocks(element)
        ):
            return replace(inner, kind="subheading", level=max(3, context.level or 3))
        if name in ("section", "article", "div", "aside", "blockquote", "figure", "p", "main"):
            kind = ""
            if "epigraph" in types or _EPIGRAPH_CLASS.search(classes):
                kind = "epigraph"
            elif "dedication" in types or _DEDICATION_CLASS.search(classes):
                kind = "dedication"
            elif (types & {"letter", "diary-entry"} and "letter" in types) or (
                _LETTER_CLASS.search(classes) and name == "blockquote"
            ):
                kind = "letter"
            if kind:
                inner = replace(inner, kind=kind, quoted=kind)
        if types & {"poem", "verse", "song", "hymn", "lyrics"} or (
            _VERSE_CLASS.search(classes)
            and name in ("div", "blockquote", "section", "figure")
            and _has_blocks(element)
        ):
            self._counter += 1
            return replace(inner, verse=self._counter)
        if context.verse and name in ("div", "blockquote", "section") and _has_blocks(element):
            self._counter += 1
            return replace(inner, verse=self._counter)
        if name == "blockquote":
            return replace(inner, kind=inner.quoted or "quote", quoted=inner.quoted or "quote")
        if name in ("li", "dt", "dd"):
            marker = _list_marker(element) if name == "li" else ""
            kind = context.quoted if context.quoted in ("note", "toc") else "list_item"
            return replace(inner, kind=kind, list_marker=marker if kind == "list_item" else "")
        if name in ("p", "div") and context.kind == "list_item":
            first = element.getprevious() is None and not (element.getparent().text or "").strip()  # type: ignore[union-attr]
            return replace(inner, list_marker=context.list_marker if first else "")
        if (
            name == "figcaption"
            or name == "caption"
            or (_CAPTION_CLASS.search(classes) and not _has_blocks(element))
        ):
            return replace(inner, kind="caption", skip=inner.skip or "caption")
        if name == "pre":
            if _is_prose(element):
                self._counter += 1
                return replace(inner, kind="verse", preformatted=True, verse=self._counter)
            return replace(inner, kind="code", skip=inner.skip or "code", preformatted=True)
        if name in (
            "p",
            "div",
            "section",
            "article",
            "main",
            "body",
            "header",
            "footer",
            "address",
            "center",
        ):
            kind = inner.quoted or (
                "list_item" if context.kind == "list_item" and name in ("p", "div") else "paragraph"
            )
            return replace(inner, kind=kind)
        return inner

    def _inline(
        self,
        element: etree._Element,
        context: _Context,
        types: frozenset[str],
        classes: str,
        reason: str,
        *,
        ruby: bool = False,
    ) -> None:
        builder = self._builder
        start = builder.length
        name = local(element)
        identity = element.get("id")
        if (
            identity in self.notes
            and start < 8
            and context.kind in ("paragraph", "list_item", "quote", "note")
        ):
            builder.note = True
        skip = reason
        text = "".join(texts_of(element))
        if not skip and name == "a":
            if "noteref" in types:
                skip = "note mark"
            elif "backlink" in types or text.strip() in ("↩", "↩︎", "^", "↑", "⏎"):
                skip = "link back"
            elif element.get("href") and _is_note_mark(element, text, self.note_target):
                skip = "note mark"
        elif not skip and name == "del":
            skip = "deleted in the source"
        elif (not skip and "noteref" in types) or (
            not skip and name == "sup" and not self._link_depth and _is_bare_mark(text, builder.text()[-12:])
        ):
            skip = "note mark"
        linked = name == "a" and bool(element.get("href"))
        language = language_tag(language_of(element))
        foreign = language and language_base(language) != language_base(context.language)
        if linked:
            self._link_depth += 1
        if ruby:
            self._ruby.append(builder.length)
        # Span offsets must not begin with the blank that collapses into the one before it.
        inner = replace(context, language=language) if foreign else context
        self._children(element, replace(inner, skip=context.skip or reason) if reason else inner)
        if ruby:
            self._ruby.pop()
        if linked:
            self._link_depth -= 1
        if builder is not self._builder:
            return  # a block-level element inside an inline one: the text is in blocks of its own
        end = builder.length
        if end <= start:
            return
        if skip:
            builder.spans.append(Span(start, end, "skip", skip))
        elif foreign:
            builder.spans.append(Span(start, end, "lang", language))
        elif name == "sup" and (
            said := _power(text, builder.text()[:start], context.language or self.flow.language)
        ):
            builder.spans.append(Span(start, end, "say", said))
        phonemes = attribute(element, "ph", SSML_NS, "ssml")
        if phonemes:
            alphabet = attribute(element, "alphabet", SSML_NS, "ssml") or self._alphabet
            word = " ".join(builder.text()[start:end].split())
            self.flow.lexicon.append((word, phonemes, alphabet, language or context.language))

    def _reading(self, element: etree._Element) -> None:
        """Ruby text: what is said in place of the base before it."""
        reading = "".join(t for t in texts_of(element, without=("rp",)))
        everything = "".join(texts_of(element))
        self._leave_out("reading (said in place of its base)", everything)
        reading = "".join(reading.split())
        if self._ruby and reading:
            start = self._ruby[-1]
            if start < self._builder.length:
                # An ornament over the text (dots for stress) is no reading.
                if is_speakable(reading):
                    self._builder.spans.append(Span(start, self._builder.length, "say", reading))
                self._ruby[-1] = self._builder.length

    def _page_marker(self, element: etree._Element, types: frozenset[str], classes: str) -> bool:
        identity = element.get("id") or ""
        text = "".join(texts_of(element)).strip()
        # A marker holds a page's label at most: an element with more in it is text, whatever it calls itself.
        is_label = (
            re.fullmatch(
                r"[\[({]?\s*(?:(?:pg|page|p)\.?\s*)?(?:\d{1,5}|[ivxlcdm]{1,8})?\s*[\])}]?", text, re.I
            )
            is not None
        )
        is_marker = (
            "pagebreak" in types and (is_label or (len(text) <= 12 and not _has_blocks(element)))
        ) or (_PAGE_CLASS.search(classes) is not None and is_label)
        if (
            not is_marker
            and identity in self.pages
            and (not text or text.strip("[]") == self.pages[identity])
        ):
            is_marker = True
        if not is_marker:
            if identity in self.pages:
                self.page = self.pages[identity]
            return False
        label = self.pages.get(identity) or element.get("title") or element.get("aria-label") or text
        label = re.sub(r"^\s*[\[({]?\s*(?:page|pg|p)?\.?\s*|[\])}.]?\s*$", "", label, flags=re.I)
        if not label and (found := re.search(r"(\d+|[ivxlc]+)$", identity)):
            label = found[1]
        self.page = label
        self._leave_out("page number", text)
        return True

    def _image(self, element: etree._Element, context: _Context) -> None:
        alt = " ".join((element.get("alt") or "").split())
        classes = (
            (element.get("class") or "")
            + " "
            + ((element.getparent().get("class") or "") if element.getparent() is not None else "")
        )  # type: ignore[union-attr]
        follows = (element.tail or "").lstrip()[:1]
        if (
            len(alt) == 1
            and alt.isalpha()
            and not self._builder.length
            and (follows.islower() or _DROPCAP_CLASS.search(classes))
        ):
            self.flow.synthetic += 1
            self._builder.add(alt)  # a painted initial: without it the first word would lack its letter
            self._builder.page = self.page
            return
        if alt and context.kind not in ("toc",):
            self.flow.synthetic += counted(alt)
            self._later(self._block("image", alt, context, "alternative text"))

    def _later(self, block: RawBlock) -> None:
        """A block that stands inside a paragraph comes after it."""
        self._builder.pending.append(block)

    def _apart(self, element: etree._Element, context: _Context, kind: str, reason: str) -> None:
        """The text of a drawing: kept, listed, not read."""
        words: list[str] = []
        self._collect(element, words)
        text = " ".join(" ".join(words).split())
        if text:
            self._later(self._block(kind, text, context, reason))

    def _collect(self, element: etree._Element, words: list[str]) -> None:
        if element.text:
            words.append(element.text)
        for child in element:
            name = local(child)
            if name in NEVER:
                self._leave_out(NEVER[name], "".join(texts_of(child)))
            elif name:
                self._collect(child, words)
            if child.tail:
                words.append(child.tail)

    def _formula(self, element: etree._Element, context: _Context) -> None:
        words: list[str] = []
        self._collect(element, words)
        text = " ".join(" ".join(words).split())
        said = " ".join((element.get("alttext") or "").split())
        plain = all(
            local(e)
            in (
                "math",
                "mrow",
                "mi",
                "mo",
                "mn",
                "mtext",
                "semantics",
                "mstyle",
                "mspace",
                "annotation",
                "annotation-xml",
                "",
            )
            or local(e.getparent()) in ("annotation-xml",)  # type: ignore[arg-type]
            for e in element.iter()
        )
        if not text:
            return
        start = self._builder.length
        self._builder.add(text)
        if said and not re.search(r"[\\{}^_]", said):
            self._builder.spans.append(Span(start, self._builder.length, "say", said))
        elif not plain:
            self._builder.spans.append(Span(start, self._builder.length, "skip", "formula"))
        self._touch()

    def _table(self, element: etree._Element, context: _Context, reason: str) -> None:
        self._flush(context)
        inner = replace(context, list_marker="", skip=context.skip or reason)
        rows = [e for e in element.iter() if local(e) == "tr"]
        widths = [sum(local(c) in ("td", "th") for c in row) for row in rows]
        nested = any(local(e) == "table" for e in element.iterdescendants())
        longest = max(
            (counted("".join(texts_of(c))) for row in rows for c in row if local(c) in ("td", "th")),
            default=0,
        )
        if not rows or max(widths) <= 1 or nested or longest > 600:
            self._children(element, inner)  # made for the layout: its text is ordinary text
            self._flush(inner)
            return
        for row in element.iter():
            name = local(row)
            if name == "caption":
                self._cells(row, [row], replace(inner, kind="caption", skip=inner.skip or "caption"))
            elif name == "tr":
                cells = [c for c in row if local(c) in ("td", "th")]
                self._cells(row, cells, replace(inner, kind="table", skip=inner.skip or "table"))
            elif name in ("table", "thead", "tbody", "tfoot", "colgroup", "col") and (row.text or "").strip():
                self._stray(row.text or "", inner)
            if (
                name in ("tr", "thead", "tbody", "tfoot", "colgroup", "col", "caption", "td", "th", "")
                and row is not element
            ):
                parent = local(row.getparent()) if row.getparent() is not None else ""  # type: ignore[arg-type]
                if (
                    row.tail
                    and row.tail.strip()
                    and parent in ("table", "thead", "tbody", "tfoot", "tr", "colgroup")
                ):
                    self._stray(row.tail, inner)
                if name == "tr" and row.text and row.text.strip():
                    self._stray(row.text, inner)
        for child in element.iterdescendants():
            parent = child.getparent()
            if (
                local(child)
                and parent is not None
                and local(parent) in ("table", "thead", "tbody", "tfoot", "tr")
                and local(child)
                not in ("tr", "thead", "tbody", "tfoot", "td", "th", "caption", "colgroup", "col")
            ):
                self._element(child, inner)  # not where it may be, but text all the same
                self._flush(inner)

    def _stray(self, text: str, context: _Context) -> None:
        self._text(text, context)
        self._flush(context)

    def _cells(self, row: etree._Element, cells: list[etree._Element], context: _Context) -> None:
        """A row as one block: cells parted by an em space, so that words never run together."""
        for number, cell in enumerate(cells):
            if number and self._builder.length and self._builder.last not in " \u2003\n":
                self._builder.add("\u2003")
            self._cell(cell, context)
        text = self._builder
        if text.length:
            self._flush(context)

    def _cell(self, element: etree._Element, context: _Context) -> None:
        self._text(element.text, context)
        for child in element:
            name = local(child)
            if name in BLOCKS or name == "br":
                if self._builder.length and self._builder.last not in " \u2003\n":
                    self._builder.add(" ")
                if child.get("id"):
                    self._anchor(child.get("id") or "")
                if name in NEVER:
                    self._leave_out(NEVER[name], "".join(texts_of(child)))
                elif name != "br":
                    self._cell(child, context)
                    if self._builder.length and self._builder.last not in " \u2003\n":
                        self._builder.add(" ")
            else:
                self._element(child, context)
            self._text(child.tail, context)

    # ------------------------------------------------------------ text

    def _touch(self) -> None:
        if self._builder.page is None:
            self._builder.page = self.page

    def _text(self, text: str | None, context: _Context) -> None:
        if not text:
            return
        before = self._builder.length
        self._builder.add(text, preformatted=context.preformatted)
        if self._builder.length > before:
            self._touch()
            if self._link_depth:
                self._builder.linked += counted(text)

    def _leave_out(self, reason: str, text: str, sample: int = 60) -> None:
        count = counted(text)
        if count:
            self.flow.left_out.append(LeftOut(reason, count, " ".join(text.split())[:sample], self.flow.name))

    def _anchor(self, identity: str) -> None:
        if identity not in self.flow.anchors:
            self.flow.anchors[identity] = (len(self.flow.blocks), self._builder.length)
            self._anchored.setdefault(len(self.flow.blocks), []).append(identity)
        if not self._builder.length:
            self._ids.append(identity)

    def _move_anchors(self, shift: int | None) -> None:
        """The block being built became part of the last one: its anchors, too, `shift` characters on (None: at 0)."""
        index = len(self.flow.blocks)
        for identity in self._anchored.pop(index, []):
            offset = self.flow.anchors[identity][1]
            self.flow.anchors[identity] = (index - 1, 0 if shift is None else shift + offset)
            self._anchored.setdefault(index - 1, []).append(identity)

    def _why_hidden(self, element: etree._Element) -> str:
        if element.get("hidden") is not None:
            return "hidden in the source"
        style = element.get("style")
        if style and (reason := css_reason(style)):
            return reason
        if not self.hidden:
            return ""
        name, identity = local(element), element.get("id")
        if identity and (
            reason := self.hidden.get(f"#{identity}") or self.hidden.get(f"{name}#{identity}", "")
        ):
            return reason
        for word in (element.get("class") or "").split():
            if reason := self.hidden.get(f".{word}") or self.hidden.get(f"{name}.{word}", ""):
                return reason
        return ""

    def _block(self, kind: str, text: str, context: _Context, skip: str = "") -> RawBlock:
        return RawBlock(
            kind,
            text,
            source=self.flow.name + (f"#{self._ids[-1]}" if self._ids else ""),
            page=self.page if self._builder.page is None else self._builder.page,
            language=context.language
            if language_base(context.language) != language_base(self.flow.language)
            else "",
            skip_reason=skip or context.skip,
            level=context.level if kind in ("heading", "subheading") else 0,
            types=context.types,
        )

    def _flush(self, context: _Context) -> None:
        """End the block that is being built."""
        builder, self._builder = self._builder, Builder()
        text = builder.text()
        if text.strip():
            self._finish(builder, text, context)
            self._ids = []
        self.flow.blocks += builder.pending

    def _finish(self, builder: Builder, text: str, context: _Context) -> None:
        kind, skip = context.kind, context.skip
        if builder.note and kind != "heading":
            kind, skip = "note", skip or "note"
        spans = builder.spans
        if context.preformatted:
            lines = [line.rstrip() for line in text.split("\n")]
            text = "\n".join(lines)
            spans = []
        pieces = pieces_of(text, spans, kind, verse=bool(context.verse), skip=skip)
        for number, (piece_kind, piece, piece_spans) in enumerate(pieces):
            block = self._block(piece_kind, piece, context, skip)
            block.page = self.page if builder.page is None else builder.page
            block.spans = piece_spans
            block.linked = builder.linked if len(pieces) == 1 else 0
            block.group = context.group
            if number == 0 and context.list_marker and piece_kind == "list_item":
                block.spans = [Span(0, 0, "say", context.list_marker), *block.spans]
            if (
                (
                    not is_speakable(piece)
                    and piece_kind in ("paragraph", "heading", "subheading", "quote", "list_item")
                    and not skip
                )
                and _ORNAMENT.fullmatch(piece)
                and counted(piece) <= 40
            ):
                block.kind, block.skip_reason = "scene_break", "scene break"
            if piece_kind == "verse" and context.verse and "\n" not in piece:
                block.group = context.verse
                last = self.flow.blocks[-1] if self.flow.blocks else None
                if (
                    last
                    and last.kind == "verse"
                    and last.group == context.verse
                    and last.skip_reason == block.skip_reason
                ):
                    shift = len(last.text) + 1
                    last.text += "\n" + block.text
                    last.spans += [replace(s, start=s.start + shift, end=s.end + shift) for s in block.spans]
                    self._move_anchors(shift)
                    continue
            if piece_kind == "heading" and context.group:
                last = self.flow.blocks[-1] if self.flow.blocks else None
                if last and last.group == context.group and last.kind == "heading":
                    block_join(last, block)
                    self._move_anchors(None)
                    continue
            self.flow.blocks.append(block)


def block_join(first: RawBlock, second: RawBlock) -> None:
    """Make `second` another line of the heading `first`."""
    shift = len(first.text) + 1
    first.text += "\n" + second.text
    first.spans += [replace(s, start=s.start + shift, end=s.end + shift) for s in second.spans]


def block_split(block: RawBlock, offset: int) -> tuple[RawBlock, RawBlock]:
    """Cut a block in two at `offset`; white space at the cut goes."""
    left_text = block.text[:offset].rstrip()
    at = offset
    while at < len(block.text) and block.text[at].isspace():
        at += 1
    left = replace(
        block,
        text=left_text,
        spans=[replace(s, end=min(s.end, len(left_text))) for s in block.spans if s.start < len(left_text)],
    )
    right = replace(
        block,
        text=block.text[at:],
        spans=[replace(s, start=max(0, s.start - at), end=s.end - at) for s in block.spans if s.end > at],
    )
    return left, right


def pieces_of(
    text: str, spans: list[Span], kind: str, *, verse: bool, skip: str
) -> list[tuple[str, str, list[Span]]]:
    """The blocks that one element's text makes: line breaks are lines of verse, new paragraphs or mere blanks."""
    lines = [(m.start(), m.end()) for m in re.finditer(r"[^\n]+", text)]
    lines = [
        (s + len(text[s:e]) - len(text[s:e].lstrip()), s + len(text[s:e].rstrip()))
        for s, e in lines
        if text[s:e].strip()
    ]
    if not lines:
        return []
    if kind == "code":
        return [(kind, text.strip("\n"), [])]
    if len(lines) == 1:
        s, e = lines[0]
        length = e - s
        if verse and kind in ("paragraph", "quote") and length <= 160:
            kind = "verse"
        return [(kind, text[s:e], _shift(spans, s, e))]
    if kind in ("heading", "subheading"):
        return [_joined(text, spans, lines, kind, "\n")]
    if kind in ("paragraph", "quote", "epigraph", "verse") and (
        verse or kind == "verse" or _is_verse(text, lines)
    ):
        stanzas, groups = [], [[lines[0]]]
        for before, line in itertools.pairwise(lines):
            if text.count("\n", before[1], line[0]) > 1:
                groups.append([])
            groups[-1].append(line)
        for group in groups:
            stanzas.append(_joined(text, spans, group, "verse", "\n"))
        return stanzas
    groups = [[lines[0]]]
    for before, line in itertools.pairwise(lines):
        if text.count("\n", before[1], line[0]) > 1:
            groups.append([])  # two breaks: a new paragraph
        groups[-1].append(line)
    return [_joined(text, spans, group, kind, " ") for group in groups]


def _joined(
    text: str, spans: list[Span], lines: list[tuple[int, int]], kind: str, glue: str
) -> tuple[str, str, list[Span]]:
    """Lines of `text` as one text, with the spans moved along."""
    result, kept = "", []
    for start, end in lines:
        piece = text[start:end]
        if result:
            tight = glue == " " and _CJK_TIGHT.match(result[-1]) and _CJK_TIGHT.match(piece[0])
            result += "" if tight else glue
        shift = len(result)
        kept += [replace(s, start=s.start + shift, end=s.end + shift) for s in _shift(spans, start, end)]
        result += piece
    return kind, result, kept


def _shift(spans: list[Span], start: int, end: int) -> list[Span]:
    kept = []
    for span in spans:
        low, high = max(span.start, start), min(span.end, end)
        if low < high:
            kept.append(replace(span, start=low - start, end=high - start))
    return kept


def _is_verse(text: str, lines: list[tuple[int, int]]) -> bool:
    """Three lines or more, all short, most of them opening with a capital and not closing a sentence."""
    if len(lines) < 3:
        return False
    pieces = [text[s:e] for s, e in lines]
    if max(map(len, pieces)) > 75:
        return False
    capital = sum(bool(re.match(r"[\W_]*[A-ZÀ-ÞА-Я]", p)) for p in pieces)
    closed = sum(p.rstrip("”’\"'»)")[-1:] in ".!?" for p in pieces[:-1])
    return capital >= 0.7 * len(pieces) and closed <= 0.5 * len(pieces)


def texts_of(element: etree._Element, without: tuple[str, ...] = ()) -> list[str]:
    """All text in an element in order, without comments and processing instructions."""
    found = []
    if element.text and isinstance(element.tag, str):
        found.append(element.text)
    for child in element:
        if isinstance(child.tag, str):
            if local(child) not in without:
                found += texts_of(child, without)
        elif isinstance(child, etree._Entity):
            found.append(child.text or "")
        if child.tail:
            found.append(child.tail)
    return found


def _has_blocks(element: etree._Element) -> bool:
    return any(local(child) in BLOCKS for child in element.iterdescendants())


def _is_heading_group(element: etree._Element) -> bool:
    """A header that holds nothing but the lines of a title."""
    children = [c for c in element if local(c)]
    if not any(local(c) in HEADINGS for c in children) or (element.text or "").strip():
        return False
    for child in children:
        if local(child) in HEADINGS or local(child) in ("img", "a"):
            continue
        if local(child) in ("p", "div") and types_of(child) & {
            "title",
            "subtitle",
            "ordinal",
            "fulltitle",
            "label",
        }:
            continue
        return False
    return len(children) > 1


def _list_marker(item: etree._Element) -> str:
    """What is said before an item of a numbered list; "" for lists without numbers."""
    parent = item.getparent()
    if (
        parent is None
        or local(parent) != "ol"
        or re.search(r"list-style(?:-type)?\s*:\s*none", parent.get("style") or "")
    ):
        return ""
    text = "".join(texts_of(item)).lstrip()
    if re.match(r"(?:\d+|[IVXivx]+)[.):]\s", text):
        return ""  # the number is part of the text
    number = 1
    start = parent.get("start") or "1"
    if start.lstrip("-").isdigit():
        number = int(start)
    step = 1
    if parent.get("reversed") is not None:
        step = -1
        if parent.get("start") is None:
            number = sum(local(c) == "li" for c in parent)
    for sibling in parent:
        if local(sibling) != "li":
            continue
        value = sibling.get("value") or ""
        if value.lstrip("-").isdigit():
            number = int(value)
        if sibling is item:
            break
        number += step
    if (parent.get("type") or "") in ("a", "A") and 1 <= number <= 26:
        return f"{chr(64 + number)}. "
    return f"{number}. "


def _is_prose(element: etree._Element) -> bool:
    """Is preformatted text prose or verse, and no code?"""
    if any(local(e) in ("code", "kbd", "samp", "var") for e in element.iterdescendants()):
        return False
    text = "".join(texts_of(element))
    letters = sum(c.isalpha() or c.isspace() for c in text)
    return bool(text) and letters / len(text) > 0.88 and not re.search(r"[{}<>;=\\|]|\(\)|::|->", text)


def _is_note_mark(element: etree._Element, text: str, note_target: Callable[[str], bool]) -> bool:
    """Is a link the mark of a note: short, raised or in brackets, and pointing into the book?"""
    href = element.get("href") or ""
    mark = text.strip()
    if "#" not in href or not _NOTE_MARK.fullmatch(mark) or re.match(r"[a-z]+:", href):
        return False
    parent = element.getparent()
    raised = any(local(e) == "sup" for e in element.iter()) or (parent is not None and local(parent) == "sup")
    classes = (element.get("class") or "") + " " + ((parent.get("class") or "") if parent is not None else "")
    styled = re.search(r"super|note|\bfn|ref", classes, re.I) is not None
    bracketed = bool(re.match(r"[\[({*†‡§¶]", mark))
    return raised or styled or bracketed or note_target(href)


def _power(text: str, before: str, language: str) -> str:
    """How a raised number after a number or a unit is said: "10³" is not "103"; "" if it is no power."""
    mark = text.strip()
    if not re.fullmatch(r"[-−]?\d{1,4}", mark) or not re.search(
        r"\d$|(?<![^\W_])(?:m|cm|km|mm|dm|ft|in|yd|mi)$", before
    ):
        return ""
    if language_base(language) not in ("en", ""):
        return f" {mark}"
    if not before[-1:].isdigit():
        return {"2": " squared", "3": " cubed"}.get(mark, "")
    return {"2": " squared", "3": " cubed"}.get(mark, f" to the power of {mark}")


def _is_bare_mark(text: str, before: str) -> bool:
    """A raised number without a link: a note's mark after a word or a full stop, but not a power or an ordinal."""
    mark = text.strip()
    if not re.fullmatch(r"\d{1,3}|[*†‡§¶]{1,3}", mark):
        return False
    return bool(re.search(r"[.,;:!?”’\"')\]]$|[^\W\d_]{4,}$|^[*†‡§¶]", before)) and not re.search(
        r"\b(?:cm|km|mm|dm|ft|in|yd|mi|sec)$", before
    )
