"""Word documents (DOCX), read from their XML: styles, outline levels, lists, notes, tracked changes, fields."""

import posixpath
import re
from dataclasses import dataclass, field
from typing import BinaryIO

from lxml import etree

from projects.text.languages import is_speakable, language_base, language_guess, language_tag
from projects.text.spans import Span

from .archive import Archive
from .base import ImportRefused, LeftOut, ParsedBook
from .flow import Builder, Flow, RawBlock, counted, pieces_of
from .markup import local, xml_tree
from .structure import About, book_finish, drafts_by_headings

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"

_SKIP_FIELDS = ("TOC", "PAGE", "NUMPAGES", "INDEX", "XE", "TC", "PAGEREF")
_SYMBOL_FONTS = {"symbol", "wingdings", "wingdings 2", "wingdings 3", "webdings"}


@dataclass
class Style:
    """A paragraph style with what it inherits."""

    name: str = ""
    based_on: str = ""
    outline: int | None = None  # 0 = highest
    number: tuple[str, int] | None = None  # (numId, level)
    hidden: bool = False


@dataclass
class Counter:
    """The state of one numbered list."""

    values: dict[int, int] = field(default_factory=dict)


class DocxImporter:
    """DOCX files. The final view is read: insertions in, deletions out; headers and footers are no text."""

    name = "docx"
    extensions = (".docx", ".docm", ".dotx")

    def score(self, head: bytes, name: str) -> float:
        if head.startswith(b"PK") and b"word/document.xml" in head:
            return 1.0
        return 0.7 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        archive = Archive(file)
        main = _main_part(archive)
        return _Reader(archive, main, name).read()


def _main_part(archive: Archive) -> str:
    rels = archive.find("_rels/.rels")
    if rels:
        for element in xml_tree(archive.read(rels), rels).root.iter():
            if local(element) == "relationship" and (element.get("Type") or "").endswith("/officeDocument"):
                found = archive.find((element.get("Target") or "").lstrip("/"))
                if found:
                    return found
    found = archive.find("word/document.xml")
    if not found:
        raise ImportRefused("unsupported_format", "The file is no Word document.")
    return found


class _Reader:
    """Reads one document."""

    def __init__(self, archive: Archive, main: str, name: str) -> None:
        self.archive, self.main, self.name = archive, main, name
        self.folder = posixpath.dirname(main)
        self.warnings: list[str] = []
        self.styles: dict[str, Style] = {}
        self.default_style = ""
        self.formats: dict[
            tuple[str, int], tuple[str, int, str]
        ] = {}  # (numId, level) → (format, start, text)
        self.abstract: dict[str, str] = {}  # numId → abstractNumId
        self.counters: dict[str, Counter] = {}
        self.flow = Flow(posixpath.basename(main))
        self.about = About()
        self.builder = Builder()
        self.notes: dict[tuple[str, str], etree._Element] = {}
        self.pending_notes: list[tuple[str, str]] = []
        self.fields: list[tuple[str, bool]] = []  # (instruction, result reached)
        self.page = 1
        self.paged = False
        self.number = 0
        self.carry: Builder | None = None
        self.language = ""

    def read(self) -> ParsedBook:
        self._styles()
        self._numbering()
        self._notes("footnotes")
        self._notes("endnotes")
        self._properties()
        tree = xml_tree(self.archive.read(self.main), self.main)
        self.warnings += tree.warnings
        body = next((e for e in tree.root.iter() if local(e) == "body"), tree.root)
        self.flow.total = self._count(body) + sum(self._count(n) for n in self.notes.values())
        self._blocks(body, "")
        self._end_notes()
        self.about.language = (
            self.about.language
            or self.language
            or language_guess(" ".join(b.text for b in self.flow.blocks[:200]))
        )
        guessed = language_guess(" ".join(b.text for b in self.flow.blocks[:200] if b.read))
        if guessed and language_base(self.about.language) not in ("", guessed):
            # Word writes the language of the program, not of the text, into most files.
            self.warnings.append(
                f"The document says that its language is {self.about.language}; its text looks like {guessed}, which was taken."
            )
            self.about.language = guessed
        title = next((b for b in self.flow.blocks if "doc-title" in b.types and b.read), None)
        if title is not None:
            self.about.title = self.about.title or title.text
        drafts = drafts_by_headings(self.flow.blocks, self.about.title)
        for draft in drafts:
            if (
                not draft.listed
                and len(drafts) > 1
                and all("doc-title" in b.types or not b.read for b in draft.blocks)
            ):
                draft.kind, draft.included, draft.title = "front_matter", False, "Title page"
                draft.reason = "title page (said in the opening credits)"
        return book_finish(
            drafts,
            self.about,
            flows=[self.flow],
            warnings=self.warnings,
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
        )

    @staticmethod
    def _count(element: etree._Element) -> int:
        return sum(
            counted(e.text or "")
            for e in element.iter()
            if (isinstance(e.tag, str) and e.tag in (f"{W}t", f"{W}delText"))
            or (local(e) == "t" and isinstance(e.tag, str) and not e.tag.startswith(W))
        )

    # ------------------------------------------------------------ parts

    def _part(self, name: str) -> etree._Element | None:
        found = self.archive.find(posixpath.join(self.folder, name))
        if not found:
            return None
        try:
            return xml_tree(self.archive.read(found), found).root
        except ImportRefused as exc:
            self.warnings.append(exc.message)
            return None

    def _styles(self) -> None:
        root = self._part("styles.xml")
        if root is None:
            return
        for lang in root.iter(f"{W}lang"):
            if not self.language:
                self.language = language_tag(lang.get(f"{W}val") or lang.get(f"{W}eastAsia") or "")
        for element in root.iter(f"{W}style"):
            if element.get(f"{W}type") not in (None, "paragraph"):
                continue
            identity = element.get(f"{W}styleId") or ""
            style = Style()
            for child in element:
                tag = local(child)
                if tag == "name":
                    style.name = (child.get(f"{W}val") or "").casefold()
                elif tag == "basedon":
                    style.based_on = child.get(f"{W}val") or ""
                elif tag == "ppr":
                    style.outline = _outline(child)
                    style.number = _number_of(child)
                elif tag == "rpr":
                    style.hidden = _on(child.find(f"{W}vanish"))
            self.styles[identity] = style
            if element.get(f"{W}default") in ("1", "true"):
                self.default_style = identity

    def _style_chain(self, identity: str) -> list[Style]:
        chain: list[Style] = []
        seen: set[str] = set()
        while identity in self.styles and identity not in seen:
            seen.add(identity)
            chain.append(self.styles[identity])
            identity = self.styles[identity].based_on
        return chain

    def _numbering(self) -> None:
        root = self._part("numbering.xml")
        if root is None:
            return
        levels: dict[str, dict[int, tuple[str, int, str]]] = {}
        for abstract in root.iter(f"{W}abstractNum"):
            mine = levels.setdefault(abstract.get(f"{W}abstractNumId") or "", {})
            for level in abstract.iter(f"{W}lvl"):
                mine[_int(level.get(f"{W}ilvl"))] = _level(level)
        for num in root.iter(f"{W}num"):
            identity = num.get(f"{W}numId") or ""
            link = num.find(f"{W}abstractNumId")
            base = (link.get(f"{W}val") or "") if link is not None else ""
            self.abstract[identity] = base
            for index, value in levels.get(base, {}).items():
                self.formats[identity, index] = value
            for override in num.iter(f"{W}lvlOverride"):
                index = _int(override.get(f"{W}ilvl"))
                start = override.find(f"{W}startOverride")
                if start is not None and (identity, index) in self.formats:
                    kind, _, text = self.formats[identity, index]
                    self.formats[identity, index] = (kind, _int(start.get(f"{W}val"), 1), text)
                    self.abstract[identity] = identity  # counts by itself

    def _notes(self, kind: str) -> None:
        root = self._part(f"{kind}.xml")
        if root is None:
            return
        for note in root:
            if local(note) in ("footnote", "endnote") and note.get(f"{W}type") not in (
                "separator",
                "continuationSeparator",
                "continuationNotice",
            ):
                self.notes[local(note), note.get(f"{W}id") or ""] = note

    def _properties(self) -> None:
        found = self.archive.find("docProps/core.xml")
        if not found:
            return
        try:
            root = xml_tree(self.archive.read(found), found).root
        except ImportRefused:
            return
        for element in root:
            value, tag = " ".join((element.text or "").split()), local(element)
            if not value:
                continue
            if tag == "title":
                self.about.title = value
            elif tag == "creator":
                self.about.authors = tuple(a.strip() for a in value.split(";") if a.strip())
            elif tag == "description":
                self.about.description = value
            elif tag == "language":
                self.about.language = language_tag(value)

    # ------------------------------------------------------------ blocks

    def _blocks(self, parent: etree._Element, skip: str, note: bool = False) -> None:
        for child in parent:
            tag = local(child)
            if tag == "p":
                self._paragraph(child, skip, note)
            elif tag == "tbl":
                self._table(child, skip, note)
            elif tag == "sdt":
                gallery = next((e.get(f"{W}val") or "" for e in child.iter(f"{W}docPartGallery")), "")
                inner = "contents" if "table of contents" in gallery.casefold() else ""
                for content in child:
                    if local(content) == "sdtcontent":
                        self._blocks(content, skip or inner, note)
            elif tag in ("ins", "moveto", "customxml", "smarttag", "sdtcontent"):
                self._blocks(child, skip, note)
            elif tag in ("del", "movefrom"):
                self._gone(child, "deleted (tracked change)")
            elif tag == "altchunk":
                self.warnings.append("The document embeds another document, whose text is not imported.")
            elif tag == "alternatecontent":
                self._blocks(_choice(child), skip, note)
                for other in child:
                    if other is not _choice(child):
                        self._gone(other, "second form of the same content")

    def _gone(self, element: etree._Element, reason: str) -> None:
        text = "".join(e.text or "" for e in element.iter() if local(e) in ("t", "deltext"))
        if counted(text):
            self.flow.left_out.append(
                LeftOut(reason, counted(text), " ".join(text.split())[:60], self.flow.name)
            )

    def _paragraph(self, p: etree._Element, skip: str, note: bool) -> None:
        self.number += 1
        properties = p.find(f"{W}pPr")
        style_id, outline, numbering, mark_deleted = self.default_style, None, None, False
        if properties is not None:
            style = properties.find(f"{W}pStyle")
            if style is not None:
                style_id = style.get(f"{W}val") or ""
            outline = _outline(properties)
            numbering = _number_of(properties)
            mark = properties.find(f"{W}rPr")
            if mark is not None:
                mark_deleted = mark.find(f"{W}del") is not None or mark.find(f"{W}moveFrom") is not None
        chain = self._style_chain(style_id)
        if self.carry is not None:
            self.builder, self.carry = self.carry, None
        else:
            self.builder = Builder()
        start_page = str(self.page) if self.paged else ""
        self._runs(p, skip)
        if mark_deleted:
            self.carry = self.builder  # its end was deleted: the next paragraph goes on
            return
        kind, level, types = self._kind(chain, style_id, outline)
        if note:
            kind, level, types = "note", 0, frozenset()
        why = skip or ("hidden in the source" if any(s.hidden for s in chain) else "")
        if kind == "toc":
            why = why or "contents"
        elif kind == "caption":
            why = why or "caption"
        elif kind == "note":
            why = why or "note"
        marker = ""
        inherited = next((s.number for s in chain if s.number), None)
        numbering = numbering or inherited
        if numbering and numbering[0] != "0" and not note:
            marker, bullet = self._marker(numbering)
            if kind == "paragraph":
                kind = "list_item"
            elif kind == "heading" and marker and not bullet:
                pass
        text = self.builder.text()
        if text.strip():
            self._emit(text, self.builder.spans, kind, level, types, why, marker, start_page)
        self.flow.blocks += self.builder.pending
        self.builder = Builder()
        mine, self.pending_notes = (
            [n for n in self.pending_notes if n[0] == "footnote"],
            [n for n in self.pending_notes if n[0] != "footnote"],
        )
        for key in mine:
            self._note(key)

    def _emit(
        self,
        text: str,
        spans: list[Span],
        kind: str,
        level: int,
        types: frozenset[str],
        why: str,
        marker: str,
        page: str,
    ) -> None:
        for index, (piece_kind, piece, piece_spans) in enumerate(
            pieces_of(text, spans, kind, verse=kind == "verse", skip=why)
        ):
            block = RawBlock(
                piece_kind,
                piece,
                source=f"paragraph {self.number}",
                page=page,
                skip_reason=why,
                spans=piece_spans,
                level=level,
                types=types,
            )
            if index == 0 and marker and piece_kind == "list_item":
                block.spans = [Span(0, 0, "say", marker), *block.spans]
            if (
                not is_speakable(piece)
                and not why
                and piece_kind in ("paragraph", "heading", "quote", "list_item")
            ):
                block.kind, block.skip_reason = "scene_break", "scene break"
            self.flow.blocks.append(block)

    def _kind(
        self, chain: list[Style], style_id: str, outline: int | None
    ) -> tuple[str, int, frozenset[str]]:
        names = [s.name for s in chain] or [style_id.casefold()]
        for name in names:
            if match := re.fullmatch(
                r"(?:heading|überschrift|titre|título|titolo|заголовок|제목|見出し|标题)\s*([1-9])", name
            ):
                return "heading", int(match[1]), frozenset()
            if re.fullmatch(
                r"chapter(?: (?:title|heading|head|number|name))?|kapitel(?:überschrift|titel)?|titre de chapitre|章",
                name,
            ):
                return "heading", 1, frozenset()
            if name in ("title", "titel", "titre", "book title"):
                return "heading", 9, frozenset({"doc-title"})
            if name == "subtitle":
                return "paragraph", 0, frozenset({"doc-title"})
            if name.startswith("toc ") or name in ("toc heading", "table of figures"):
                return "toc", 0, frozenset()
            if name in (
                "quote",
                "intense quote",
                "block text",
                "block quote",
                "blockquote",
                "zitat",
                "citation",
            ):
                return "quote", 0, frozenset()
            if name == "caption":
                return "caption", 0, frozenset()
            if name in ("footnote text", "endnote text"):
                return "note", 0, frozenset()
            if name in ("epigraph", "dedication"):
                return name, 0, frozenset()
            if name in ("verse", "poem", "poetry", "stanza"):
                return "verse", 0, frozenset()
            if name in ("html preformatted", "code", "source code", "plain text code"):
                return "code", 0, frozenset()
        level = (
            outline
            if outline is not None
            else next((s.outline for s in chain if s.outline is not None), None)
        )
        if level is not None and level < 9:
            return "heading", level + 1, frozenset()
        return "paragraph", 0, frozenset()

    def _marker(self, numbering: tuple[str, int]) -> tuple[str, bool]:
        """(what is said before an item, is it a bullet)."""
        identity, level = numbering
        kind, start, _text = self.formats.get((identity, level), ("", 1, ""))
        counter = self.counters.setdefault(self.abstract.get(identity, identity), Counter())
        counter.values[level] = counter.values.get(level, start - 1) + 1
        for deeper in [k for k in counter.values if k > level]:
            del counter.values[deeper]
        if kind in ("bullet", "none", ""):
            return "", True
        value = counter.values[level]
        if kind in ("lowerLetter", "upperLetter") and 1 <= value <= 26:
            return f"{chr(64 + value)}. ", False
        return f"{value}. ", False

    def _note(self, key: tuple[str, str]) -> None:
        note = self.notes.pop(key, None)
        if note is not None:
            saved = self.builder
            self._blocks(note, "note", note=True)
            self.builder = saved

    def _end_notes(self) -> None:
        """Endnotes, and notes without a mark: after the text."""
        if self.carry is not None:
            self._emit(self.carry.text(), self.carry.spans, "paragraph", 0, frozenset(), "", "", "")
            self.carry = None
        for key in [*self.pending_notes, *self.notes]:
            self._note(key)

    def _table(self, table: etree._Element, skip: str, note: bool) -> None:
        rows = [r for r in table if local(r) == "tr"]
        widths = [sum(local(c) == "tc" for c in row) for row in rows]
        longest = max(
            (
                counted("".join(e.text or "" for e in c.iter(f"{W}t")))
                for r in rows
                for c in r
                if local(c) == "tc"
            ),
            default=0,
        )
        if max(widths, default=0) <= 1 or longest > 600:
            for row in rows:
                for cell in row:
                    if local(cell) == "tc":
                        self._blocks(cell, skip, note)
            return
        for row in rows:
            first = len(self.flow.blocks)
            for cell in row:
                if local(cell) in ("tc", "sdt"):
                    self._blocks(cell, skip or "table", note)
            cells = self.flow.blocks[first:]
            del self.flow.blocks[first:]
            plain = [b for b in cells if b.kind != "note"]
            if plain:
                self.flow.blocks.append(
                    RawBlock(
                        "table",
                        "\u2003".join(b.text.replace("\n", " ") for b in plain),
                        source=plain[0].source,
                        page=plain[0].page,
                        skip_reason=skip or "table",
                    )
                )
            self.flow.blocks += [b for b in cells if b.kind == "note"]

    # ------------------------------------------------------------ runs

    def _runs(self, parent: etree._Element, skip: str) -> None:
        for child in parent:
            tag = local(child)
            if tag == "r":
                self._run(child)
            elif tag in (
                "ins",
                "hyperlink",
                "smarttag",
                "customxml",
                "fldsimple",
                "moveto",
                "sdtcontent",
                "dir",
                "bdo",
            ):
                if (
                    tag == "fldsimple"
                    and (child.get(f"{W}instr") or "").split()[:1]
                    and (child.get(f"{W}instr") or "").split()[0].upper() in ("PAGE", "NUMPAGES")
                ):
                    self._gone(child, "page number")
                else:
                    self._runs(child, skip)
            elif tag == "sdt":
                for content in child:
                    if local(content) == "sdtcontent":
                        self._runs(content, skip)
            elif tag in ("del", "movefrom"):
                self._gone(child, "deleted (tracked change)")
            elif tag in ("omath", "omathpara"):
                words = "".join(e.text or "" for e in child.iter() if local(e) == "t")
                if words.strip():
                    start = self.builder.length
                    self.builder.add(words)
                    self.builder.spans.append(Span(start, self.builder.length, "skip", "formula"))
            elif tag == "alternatecontent":
                chosen = _choice(child)
                self._runs(chosen, skip)
                for other in child:
                    if other is not chosen:
                        self._gone(other, "second form of the same content")

    def _run(self, run: etree._Element) -> None:
        properties = run.find(f"{W}rPr")
        hidden = properties is not None and _on(properties.find(f"{W}vanish"))
        language, symbol_font = "", False
        if properties is not None:
            font = properties.find(f"{W}rFonts")
            symbol_font = font is not None and (font.get(f"{W}ascii") or "").casefold() in _SYMBOL_FONTS
        start = self.builder.length
        for child in run:
            tag = local(child)
            if tag == "fldchar":
                self._field(child)
            elif tag == "instrtext":
                if self.fields and not self.fields[-1][1]:
                    self.fields[-1] = (self.fields[-1][0] + (child.text or ""), False)
            elif tag == "t" and child.tag == f"{W}t":
                if self._in_skipped_field():
                    self._gone(run, "field") if child is next(run.iter(f"{W}t")) else None
                elif symbol_font:
                    self._gone(run, "symbols of a picture font") if child is next(run.iter(f"{W}t")) else None
                else:
                    self.builder.add(child.text or "")
            elif tag == "tab" or tag == "ptab":
                self.builder.add(" ")
            elif tag == "br" or tag == "cr":
                if child.get(f"{W}type") == "page":
                    self._next_page()
                    self.builder.add(" ")
                elif child.get(f"{W}type") == "column":
                    self.builder.add(" ")
                else:
                    self.builder.line_break()
            elif tag == "lastrenderedpagebreak":
                self._next_page()
            elif tag == "nobreakhyphen":
                self.builder.add("\u2011")
            elif tag in ("footnotereference", "endnotereference"):
                self.pending_notes.append((tag.removesuffix("reference"), child.get(f"{W}id") or ""))
                custom = child.get(f"{W}customMarkFollows")
                if custom in ("1", "true", "on"):
                    mark = run.find(f"{W}t")
                    if mark is not None and mark.text:
                        begin = self.builder.length
                        self.builder.add(mark.text)
                        self.builder.spans.append(Span(begin, self.builder.length, "skip", "note mark"))
                        break
            elif tag == "ruby":
                self._ruby(child)
            elif tag == "alternatecontent":
                chosen = _choice(child)
                self._drawing(chosen)
                for other in child:
                    if other is not chosen:
                        self._gone(other, "second form of the same content")
            elif tag in ("drawing", "pict", "object"):
                self._drawing(child)
            elif tag == "deltext":
                self._gone(run, "deleted (tracked change)")
        end = self.builder.length
        if end > start and hidden:
            self.builder.spans.append(Span(start, end, "skip", "hidden in the source"))
        elif end > start and language:
            self.builder.spans.append(Span(start, end, "lang", language))

    def _ruby(self, ruby: etree._Element) -> None:
        base = ruby.find(f"{W}rubyBase")
        reading = ruby.find(f"{W}rt")
        start = self.builder.length
        if base is not None:
            self._runs(base, "")
        if reading is not None:
            said = "".join(e.text or "" for e in reading.iter(f"{W}t"))
            self._gone(reading, "reading (said in place of its base)")
            if is_speakable(said) and self.builder.length > start:
                self.builder.spans.append(Span(start, self.builder.length, "say", said.strip()))

    def _drawing(self, drawing: etree._Element) -> None:
        """Text boxes come after the paragraph they hang on; pictures by their description, not read."""
        boxes = [e for e in drawing.iter() if local(e) == "txbxcontent"]
        if boxes:
            saved, fields = self.builder, self.fields
            kept = self.flow.blocks
            self.flow.blocks = []
            self.fields = []
            for box in boxes:
                self._blocks(box, "")
            saved.pending += self.flow.blocks
            self.flow.blocks, self.builder, self.fields = kept, saved, fields
        for properties in drawing.iter():
            if local(properties) == "docpr" and (properties.get("descr") or "").strip():
                text = " ".join((properties.get("descr") or "").split())
                self.flow.synthetic += counted(text)
                self.builder.pending.append(
                    RawBlock("image", text, source=f"paragraph {self.number}", skip_reason="alternative text")
                )
        others = [
            e
            for e in drawing.iter()
            if local(e) == "t" and not any(local(a) == "txbxcontent" for a in e.iterancestors())
        ]
        if others:
            text = " ".join(e.text or "" for e in others)
            if text.strip():
                self.builder.pending.append(
                    RawBlock(
                        "image",
                        " ".join(text.split()),
                        source=f"paragraph {self.number}",
                        skip_reason="drawing",
                    )
                )

    def _field(self, char: etree._Element) -> None:
        kind = char.get(f"{W}fldCharType")
        if kind == "begin":
            self.fields.append(("", False))
        elif kind == "separate" and self.fields:
            self.fields[-1] = (self.fields[-1][0], True)
        elif kind == "end" and self.fields:
            self.fields.pop()

    def _in_skipped_field(self) -> bool:
        return any(
            instruction.split()[:1] and instruction.split()[0].upper() in _SKIP_FIELDS
            for instruction, _ in self.fields
        )

    def _next_page(self) -> None:
        self.page += 1
        self.paged = True


def _choice(alternatives: etree._Element) -> etree._Element:
    """Of two forms of the same content the first that has text, else the first."""
    children = [c for c in alternatives if local(c) in ("choice", "fallback")]
    for child in children:
        if any(local(e) == "t" for e in child.iter()):
            return child
    return children[0] if children else alternatives


def _outline(properties: etree._Element) -> int | None:
    element = properties.find(f"{W}outlineLvl")
    return _int(element.get(f"{W}val"), 9) if element is not None else None


def _number_of(properties: etree._Element) -> tuple[str, int] | None:
    numbering = properties.find(f"{W}numPr")
    if numbering is None:
        return None
    identity, level = numbering.find(f"{W}numId"), numbering.find(f"{W}ilvl")
    if identity is None:
        return None
    return identity.get(f"{W}val") or "0", _int(level.get(f"{W}val")) if level is not None else 0


def _level(level: etree._Element) -> tuple[str, int, str]:
    kind, start, text = level.find(f"{W}numFmt"), level.find(f"{W}start"), level.find(f"{W}lvlText")
    return (
        (kind.get(f"{W}val") or "") if kind is not None else "decimal",
        _int(start.get(f"{W}val"), 1) if start is not None else 1,
        (text.get(f"{W}val") or "") if text is not None else "",
    )


def _on(element: etree._Element | None) -> bool:
    return element is not None and (element.get(f"{W}val") or "1") not in ("0", "false", "off")


def _int(value: str | None, default: int = 0) -> int:
    try:
        return int(value or default)
    except ValueError:
        return default
