"""OpenDocument texts (ODT), read from their XML."""

import posixpath
import re
from typing import BinaryIO

from lxml import etree

from projects.text.languages import is_speakable, language_guess, language_tag
from projects.text.spans import Span
from projects.text.wordlist import word_set

from .archive import Archive
from .base import ImportRefused, LeftOut, ParsedBook
from .flow import Builder, Flow, RawBlock, counted, pieces_of, texts_of
from .markup import local, xml_tree
from .structure import About, book_finish, drafts_by_headings

_NS = {
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "style": "urn:oasis:names:tc:opendocument:xmlns:style:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "fo": "urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0",
}
TEXT = "{" + _NS["text"] + "}"
STYLE = "{" + _NS["style"] + "}"
FO = "{" + _NS["fo"] + "}"

_INDEXES = word_set(
    """table-of-content alphabetical-index bibliography illustration-index table-index object-index user-index"""
)
_GONE = {
    "annotation": "comment", "annotation-end": "comment", "page-number": "page number", "page-count": "page number",
    "sequence-decls": "field", "variable-decls": "field", "user-field-decls": "field", "tracked-changes": "deleted (tracked change)",
    "forms": "form", "bookmark-ref": "", "script": "script", "hidden-text": "hidden in the source", "title": "tooltip", "desc": "description",
    "note-citation": "note mark",
}  # fmt: skip


class OdtImporter:
    """ODT files and their templates."""

    name = "odt"
    extensions = (".odt", ".ott", ".fodt")

    def score(self, head: bytes, name: str) -> float:
        if b"application/vnd.oasis.opendocument.text" in head[:200]:
            return 1.0
        if b"office:document" in head and b"opendocument.text" in head:
            return 1.0
        return 0.7 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        start = file.read(2)
        file.seek(0)
        reader = _Reader(name)
        if start == b"PK":
            archive = Archive(file)
            manifest = archive.find("META-INF/manifest.xml")
            if manifest and b"encryption-data" in archive.read(manifest):
                raise ImportRefused("password_protected", "The document is protected with a password.")
            content = archive.find("content.xml")
            if not content:
                raise ImportRefused("unsupported_format", "The file is no OpenDocument text.")
            roots = [xml_tree(archive.read(content), content)]
            for part in ("styles.xml", "meta.xml"):
                if found := archive.find(part):
                    try:
                        roots.append(xml_tree(archive.read(found), found))
                    except ImportRefused as exc:
                        reader.warnings.append(exc.message)
        else:
            roots = [xml_tree(file.read(), posixpath.basename(name))]
        for tree in roots:
            reader.warnings += tree.warnings
        return reader.read([t.root for t in roots])


class _Reader:
    """Reads one document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.flow = Flow(posixpath.basename(name))
        self.warnings: list[str] = []
        self.parents: dict[str, str] = {}
        self.outline: dict[str, int] = {}
        self.names: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.languages: dict[str, str] = {}
        self.numbered: dict[str, set[int]] = {}
        self.language = ""
        self.builder = Builder()
        self.notes: list[etree._Element] = []
        self.number = 0

    def read(self, roots: list[etree._Element]) -> ParsedBook:
        about = About()
        for root in roots:
            self._styles(root)
            self._about(root, about)
        body = next(
            (e for e in roots[0].iter() if local(e) == "text" and e.tag.startswith("{" + _NS["office"])), None
        )
        if body is None:
            raise ImportRefused("unsupported_format", "The file is no OpenDocument text.")
        self.flow.total = sum(map(counted, texts_of(body)))
        self._blocks(body, "paragraph", "")
        about.language = (
            about.language
            or self.language
            or language_guess(" ".join(b.text for b in self.flow.blocks[:200]))
        )
        guessed = language_guess(" ".join(b.text for b in self.flow.blocks[:200] if b.read))
        if guessed and about.language.split("-")[0] not in ("", guessed):
            self.warnings.append(
                f"The document says that its language is {about.language}; its text looks like {guessed}, which was taken."
            )
            about.language = guessed
        title = next((b for b in self.flow.blocks if "doc-title" in b.types and b.read), None)
        if title is not None:
            about.title = about.title or title.text
        drafts = drafts_by_headings(self.flow.blocks, about.title)
        for draft in drafts:
            if len(drafts) > 1 and all("doc-title" in b.types or not b.read for b in draft.blocks):
                draft.kind, draft.included, draft.title = "front_matter", False, "Title page"
                draft.reason = "title page (said in the opening credits)"
        return book_finish(
            drafts,
            about,
            flows=[self.flow],
            warnings=self.warnings,
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
        )

    def _styles(self, root: etree._Element) -> None:
        for style in root.iter(f"{STYLE}style", f"{STYLE}default-style"):
            name = style.get(f"{STYLE}name") or ""
            self.parents.setdefault(name, style.get(f"{STYLE}parent-style-name") or "")
            self.names.setdefault(
                name, (style.get(f"{STYLE}display-name") or name).replace("_20_", " ").casefold()
            )
            level = style.get(f"{STYLE}default-outline-level") or ""
            if level.isdigit():
                self.outline.setdefault(name, int(level))
            for properties in style.iter(f"{STYLE}text-properties"):
                if properties.get(f"{TEXT}display") == "none":
                    self.hidden.add(name)
                language, country = (
                    properties.get(f"{FO}language") or "",
                    properties.get(f"{FO}country") or "",
                )
                tag = (
                    language_tag(f"{language}-{country}" if country not in ("", "none") else language)
                    if language not in ("", "none", "zxx")
                    else ""
                )
                if tag and not name and not self.language and style.get(f"{STYLE}family") == "paragraph":
                    self.language = tag
                elif tag and name:
                    self.languages[name] = tag
        for style in root.iter(f"{TEXT}list-style"):
            name = style.get(f"{STYLE}name") or ""
            for level in style:
                if local(level) == "list-level-style-number" and level.get(f"{STYLE}num-format"):
                    self.numbered.setdefault(name, set()).add(int(level.get(f"{TEXT}level") or "1"))

    def _about(self, root: etree._Element, about: About) -> None:
        meta = next(
            (e for e in root.iter() if local(e) == "meta" and e.tag.startswith("{" + _NS["office"])), None
        )
        for element in meta if meta is not None else ():
            value, tag = " ".join((element.text or "").split()), local(element)
            if tag == "title" and value:
                about.title = value
            elif (
                tag in ("initial-creator", "creator")
                and value
                and (tag == "initial-creator" or not about.authors)
            ):
                about.authors = (value,)
            elif tag == "description" and value:
                about.description = value
            elif tag == "language" and value:
                about.language = language_tag(value)

    def _chain(self, name: str) -> list[str]:
        chain: list[str] = []
        while name and name not in chain:
            chain.append(name)
            name = self.parents.get(name, "")
        return chain

    # ------------------------------------------------------------ blocks

    def _blocks(
        self,
        parent: etree._Element,
        kind: str,
        skip: str,
        marker: str = "",
        level: int = 0,
        list_style: str = "",
    ) -> None:
        count = 0
        for child in parent:
            tag = local(child)
            if tag in ("p", "h"):
                self._paragraph(child, kind, skip, marker)
                marker = ""
            elif tag == "list":
                style = child.get(f"{TEXT}style-name") or list_style
                self._blocks(child, "list_item" if kind == "paragraph" else kind, skip, "", level + 1, style)
            elif tag in ("list-item", "list-header"):
                start = child.get(f"{TEXT}start-value") or ""
                count = int(start) if start.isdigit() else count + (tag == "list-item")
                numbered = level in self.numbered.get(list_style, ())
                self._blocks(
                    child,
                    kind,
                    skip,
                    f"{count}. " if numbered and tag == "list-item" else "",
                    level,
                    list_style,
                )
            elif tag == "table":
                self._table(child, skip)
            elif tag in _INDEXES:
                self._blocks(
                    child,
                    "toc" if tag == "table-of-content" else kind,
                    skip or ("contents" if tag == "table-of-content" else "index"),
                )
            elif tag in _GONE:
                self._gone(child, _GONE[tag] or "field")
            elif tag in ("frame", "text-box", "custom-shape", "g", "image", "object"):
                self._blocks(child, kind, skip)
            elif tag:
                self._blocks(child, kind, skip, "", level, list_style)

    def _gone(self, element: etree._Element, reason: str) -> None:
        text = "".join(texts_of(element))
        if counted(text):
            self.flow.left_out.append(
                LeftOut(reason, counted(text), " ".join(text.split())[:60], self.flow.name)
            )

    def _paragraph(self, element: etree._Element, kind: str, skip: str, marker: str) -> None:
        self.number += 1
        saved, self.builder = self.builder, Builder()
        notes, self.notes = self.notes, []
        style = element.get(f"{TEXT}style-name") or ""
        chain = self._chain(style)
        names = [self.names.get(n, n.replace("_20_", " ").casefold()) for n in chain]
        level, types = 0, frozenset[str]()
        why = skip or ("hidden in the source" if any(n in self.hidden for n in chain) else "")
        if kind in ("paragraph", "list_item"):
            outline = element.get(f"{TEXT}outline-level") or ""
            if local(element) == "h" or any(n in self.outline for n in chain):
                level = (
                    int(outline)
                    if outline.isdigit()
                    else next((self.outline[n] for n in chain if n in self.outline), 1)
                )
                kind = "heading"
            elif any(n == "title" for n in names):
                kind, level, types = "heading", 9, frozenset({"doc-title"})
            elif any(n == "subtitle" for n in names):
                types = frozenset({"doc-title"})
            elif any(n in ("quotations", "quote", "block quotation") for n in names):
                kind = "quote"
            elif any(n in ("verse", "poem", "poetry") for n in names):
                kind = "verse"
            elif any(n in ("preformatted text", "source code") for n in names):
                kind, why = "code", why or "code"
            elif any(n in ("caption", "illustration", "figure", "drawing") for n in names):
                kind, why = "caption", why or "caption"
        self._inline(element, self.builder)
        text = self.builder.text()
        if text.strip():
            for index, (piece_kind, piece, spans) in enumerate(
                pieces_of(text, self.builder.spans, kind, verse=kind == "verse", skip=why)
            ):
                block = RawBlock(
                    piece_kind,
                    piece,
                    source=f"paragraph {self.number}",
                    skip_reason=why,
                    spans=spans,
                    level=level,
                    types=types,
                )
                if index == 0 and marker and piece_kind == "list_item":
                    block.spans = [Span(0, 0, "say", marker), *spans]
                if (
                    not is_speakable(piece)
                    and not why
                    and piece_kind in ("paragraph", "heading", "quote", "list_item")
                ):
                    block.kind, block.skip_reason = "scene_break", "scene break"
                self.flow.blocks.append(block)
        self.flow.blocks += self.builder.pending
        mine = self.notes
        self.builder, self.notes = saved, notes
        for note in mine:
            self._blocks(note, "note", skip or "note")

    def _inline(self, element: etree._Element, builder: Builder) -> None:
        if element.text:
            builder.add(element.text)
        for child in element:
            tag = local(child)
            start = builder.length
            if tag == "s" or tag == "tab":
                builder.add(" ")
            elif tag == "line-break":
                builder.line_break()
            elif tag == "note":
                for part in child:
                    if local(part) == "note-citation":
                        self._gone(part, "note mark")
                    elif local(part) == "note-body":
                        self.notes.append(part)
            elif tag == "ruby":
                base = next((e for e in child if local(e) == "ruby-base"), None)
                reading = next((e for e in child if local(e) == "ruby-text"), None)
                if base is not None:
                    self._inline(base, builder)
                if reading is not None:
                    said = "".join(texts_of(reading)).strip()
                    self._gone(reading, "reading (said in place of its base)")
                    if is_speakable(said) and builder.length > start:
                        builder.spans.append(Span(start, builder.length, "say", said))
            elif tag in _GONE and tag != "bookmark-ref":
                self._gone(child, _GONE[tag])
            elif tag in ("frame", "text-box", "custom-shape", "g"):
                kept, self.flow.blocks = self.flow.blocks, []
                self._blocks(child, "paragraph", "")
                builder.pending += self.flow.blocks
                self.flow.blocks = kept
            elif tag == "soft-page-break":
                pass
            elif tag:
                self._inline(child, builder)
                chain = self._chain(child.get(f"{TEXT}style-name") or "")
                if builder.length > start and any(n in self.hidden for n in chain):
                    builder.spans.append(Span(start, builder.length, "skip", "hidden in the source"))
                language = next((self.languages[n] for n in chain if n in self.languages), "")
                if (
                    builder.length > start
                    and language
                    and self.language
                    and language.split("-")[0] != self.language.split("-")[0]
                ):
                    builder.spans.append(Span(start, builder.length, "lang", language))
            if child.tail:
                builder.add(child.tail)

    def _table(self, table: etree._Element, skip: str) -> None:
        rows = [r for r in table.iter() if local(r) == "table-row"]
        widths = [sum(local(c) == "table-cell" for c in row) for row in rows]
        longest = max(
            (counted("".join(texts_of(c))) for r in rows for c in r if local(c) == "table-cell"), default=0
        )
        for row in rows:
            first = len(self.flow.blocks)
            for cell in row:
                if local(cell) == "table-cell":
                    self._blocks(
                        cell, "paragraph", skip if max(widths) <= 1 or longest > 600 else skip or "table"
                    )
            if max(widths) <= 1 or longest > 600:
                continue
            cells = self.flow.blocks[first:]
            del self.flow.blocks[first:]
            if cells:
                text = "\u2003".join(re.sub(r"\n", " ", b.text) for b in cells)
                self.flow.blocks.append(
                    RawBlock("table", text, source=cells[0].source, skip_reason=skip or "table")
                )
