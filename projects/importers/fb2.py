"""FictionBook 2: an XML that says what everything is; plain or in a zip archive."""

import base64
import binascii
import posixpath
import re
from typing import BinaryIO

from lxml import etree

from projects.text.languages import language_guess, language_tag
from projects.text.spans import Span

from .archive import Archive
from .base import ImportRefused, LeftOut, ParsedBook
from .flow import Builder, Flow, RawBlock, counted, pieces_of, texts_of
from .markup import language_of, local, xml_tree
from .structure import About, Draft, book_finish

_LINK = "{http://www.w3.org/1999/xlink}href"
MAX_DEPTH = 40


class Fb2Importer:
    """FB2 files and zip archives that hold one (.fb2.zip, .fbz)."""

    name = "fb2"
    extensions = (".fb2", ".fb2.zip", ".fbz")

    def score(self, head: bytes, name: str) -> float:
        if b"<FictionBook" in head:
            return 1.0
        if head.startswith(b"PK") and re.search(rb"\.fb2(?:\0|$)", head) and b"mimetype" not in head[:80]:
            return 0.95
        return 0.75 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        start = file.read(4)
        file.seek(0)
        if start.startswith(b"PK"):
            archive = Archive(file)
            inner = next((n for n in archive.names if n.lower().endswith(".fb2")), None)
            if inner is None:
                raise ImportRefused("unsupported_format", "The archive holds no FB2 book.")
            data = archive.read(inner)
        else:
            data = file.read()
        tree = xml_tree(data, posixpath.basename(name))
        if local(tree.root) != "fictionbook":
            raise ImportRefused("malformed_document", "The file is no FictionBook document.")
        return _Reader(tree.root, name, tree.warnings).read()


class _Reader:
    """Reads one book."""

    def __init__(self, root: etree._Element, name: str, warnings: list[str]) -> None:
        self.root, self.name, self.warnings = root, name, warnings
        self.flow = Flow(posixpath.basename(name))
        self.drafts: list[Draft] = []

    def read(self) -> ParsedBook:
        about = self._about()
        for body in self.root:
            if local(body) != "body":
                continue
            self.flow.total += sum(map(counted, texts_of(body)))
            kind = (body.get("name") or "").casefold()
            if kind in ("notes", "comments", "footnotes"):
                blocks = self._all(body, "note", "note")
                title = next((b.text for b in blocks if b.kind == "heading"), "Notes")
                self.drafts.append(
                    Draft(
                        title,
                        blocks,
                        types=frozenset({"notes"}),
                        kind="notes",
                        included=False,
                        reason="notes",
                    )
                )
            else:
                self._section(body, 0)
        about.language = about.language or language_guess(
            " ".join(b.text for d in self.drafts for b in d.blocks[:50])
        )
        self.flow.blocks = [b for d in self.drafts for b in d.blocks]
        return book_finish(
            self.drafts,
            about,
            flows=[self.flow],
            warnings=self.warnings,
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
        )

    def _about(self) -> About:
        about = About()
        info = next((e for e in self.root.iter() if local(e) == "title-info"), None)
        if info is None:
            return about
        for element in info:
            tag, text = local(element), " ".join("".join(texts_of(element)).split())
            if tag == "book-title":
                about.title = text
            elif tag in ("author", "translator"):
                parts = {local(e): " ".join("".join(texts_of(e)).split()) for e in element}
                name = " ".join(
                    parts[k] for k in ("first-name", "middle-name", "last-name") if parts.get(k)
                ) or parts.get("nickname", "")
                if name and tag == "author":
                    about.authors = (*about.authors, name)
                elif name:
                    about.translator = about.translator or name
            elif tag == "lang":
                about.language = language_tag(text)
            elif tag == "annotation":
                about.description = text
            elif tag == "sequence":
                about.series, about.series_position = element.get("name") or "", element.get("number") or ""
            elif tag == "date" and (found := re.search(r"\d{4}", element.get("value") or text)):
                about.year = found[0]
            elif tag == "coverpage":
                self._cover(element, about)
        publish = next((e for e in self.root.iter() if local(e) == "publish-info"), None)
        for element in publish if publish is not None else ():
            text = " ".join("".join(texts_of(element)).split())
            if local(element) == "publisher":
                about.publisher = text
            elif local(element) == "isbn":
                about.isbn = re.sub(r"[^0-9Xx]", "", text)
            elif local(element) == "year" and text:
                about.year = text
        return about

    def _cover(self, page: etree._Element, about: About) -> None:
        image = next((e for e in page.iter() if local(e) == "image"), None)
        target = (image.get(_LINK) or image.get("href") or "").lstrip("#") if image is not None else ""
        for binary in self.root:
            if local(binary) == "binary" and binary.get("id") == target and target:
                try:
                    data = base64.b64decode(binary.text or "", validate=False)
                except (binascii.Error, ValueError):
                    return
                if data.startswith(b"\xff\xd8\xff"):
                    about.cover, about.cover_type = data, "image/jpeg"
                elif data.startswith(b"\x89PNG"):
                    about.cover, about.cover_type = data, "image/png"

    def _section(self, section: etree._Element, depth: int) -> None:
        """A section is a chapter; what stands in it before its first inner section is its own text."""
        inner = [c for c in section if local(c) == "section"]
        titled = any(local(s) == "section" and any(local(c) == "title" for c in s) for s in inner)
        own = [c for c in section if local(c) != "section"]
        is_body = local(section) == "body"
        if inner and (titled or is_body) and depth < MAX_DEPTH:
            blocks = self._children(own, section)
            if blocks:
                head = next((b for b in blocks if b.kind == "heading"), None)
                title = " ".join(head.text.split()) if head else ""
                only_title = is_body and all(b.kind == "heading" or not b.read for b in blocks)
                draft = Draft(
                    title,
                    blocks,
                    depth=max(0, depth - 1),
                    group=not is_body,
                    listed=bool(title) and not only_title,
                )
                if only_title:
                    draft.kind, draft.included, draft.reason = (
                        "front_matter",
                        False,
                        "title page (said in the opening credits)",
                    )
                self.drafts.append(draft)
            for child in inner:
                self._section(child, depth + 1)
            return
        blocks = self._children(list(section), section)
        if blocks:
            head = next((b for b in blocks if b.kind == "heading"), None)
            if head is None and self.drafts and depth > 1 and self.drafts[-1].depth == depth - 1:
                self.drafts[-1].blocks += blocks  # a section without a title goes on
                return
            self.drafts.append(
                Draft(
                    " ".join(head.text.split()) if head else "",
                    blocks,
                    depth=max(0, depth - 1),
                    listed=head is not None,
                )
            )

    def _children(
        self,
        children: list[etree._Element],
        parent: etree._Element,
        kind: str = "paragraph",
        skip: str = "",
        depth: int = 0,
    ) -> list[RawBlock]:
        blocks: list[RawBlock] = []
        if parent.text and parent.text.strip() and local(parent) not in ("p", "v"):
            blocks += self._emit_text(parent.text, kind, skip)
        for child in children:
            tag = local(child)
            if not tag:
                pass
            elif tag == "title":
                lines = [
                    b
                    for b in (self._line(p, "heading", skip) for p in child if local(p) == "p")
                    if b is not None
                ]
                if lines:
                    head = lines[0]
                    for other_line in lines[1:]:
                        shift = len(head.text) + 1
                        head.text += "\n" + other_line.text
                        head.spans += [
                            Span(s.start + shift, s.end + shift, s.role, s.value) for s in other_line.spans
                        ]
                    head.level = 1
                    blocks.append(head)
                for other in child:
                    if local(other) not in ("p", "empty-line", ""):
                        blocks += self._children([other], etree.Element("x"), "heading", skip)
                    if other.tail and other.tail.strip():
                        blocks += self._emit_text(other.tail, "paragraph", skip)
            elif tag in ("p", "text-author", "subtitle", "date"):
                block_kind = "subheading" if tag == "subtitle" else kind
                line = self._line(child, block_kind, skip)
                if line is not None:
                    blocks.append(line)
            elif tag == "empty-line":
                if blocks and blocks[-1].kind not in ("heading", "subheading", "scene_break"):
                    blocks.append(
                        RawBlock("scene_break", "⁂", source=self.flow.name, skip_reason="scene break")
                    )
                    self.flow.synthetic += 1
            elif tag in ("epigraph", "cite", "annotation"):
                blocks += self._children(
                    list(child), child, "epigraph" if tag == "epigraph" else "quote", skip, depth + 1
                )
            elif tag == "poem":
                blocks += self._children(list(child), child, "verse", skip, depth + 1)
            elif tag == "stanza":
                lines = []
                for v in child:
                    if local(v) == "v":
                        line = self._line(v, "verse", skip)
                        if line is not None:
                            lines.append(line)
                    elif local(v):
                        blocks += self._children([v], etree.Element("x"), "subheading", skip, depth + 1)
                if lines:
                    head = lines[0]
                    for other_line in lines[1:]:
                        shift = len(head.text) + 1
                        head.text += "\n" + other_line.text
                        head.spans += [
                            Span(s.start + shift, s.end + shift, s.role, s.value) for s in other_line.spans
                        ]
                    blocks.append(head)
            elif tag == "v":
                line = self._line(child, "verse", skip)
                if line is not None:
                    blocks.append(line)
            elif tag == "table":
                for row in child.iter():
                    if local(row) == "tr":
                        cells = [
                            " ".join("".join(texts_of(c)).split()) for c in row if local(c) in ("td", "th")
                        ]
                        if any(cells):
                            blocks.append(
                                RawBlock(
                                    "table",
                                    "\u2003".join(cells),
                                    source=self.flow.name,
                                    skip_reason=skip or "table",
                                )
                            )
            elif tag == "image":
                if alt := " ".join((child.get("alt") or "").split()):
                    self.flow.synthetic += counted(alt)
                    blocks.append(
                        RawBlock("image", alt, source=self.flow.name, skip_reason="alternative text")
                    )
            elif depth < MAX_DEPTH:
                blocks += self._children(list(child), child, kind, skip, depth + 1)
            if child.tail and child.tail.strip() and local(parent) != "title":
                blocks += self._emit_text(child.tail, kind, skip)
        return blocks

    def _all(self, body: etree._Element, kind: str, skip: str) -> list[RawBlock]:
        return self._children(list(body), body, kind, skip)

    def _emit_text(self, text: str, kind: str, skip: str) -> list[RawBlock]:
        builder = Builder()
        builder.add(text)
        return [
            RawBlock(
                kind if kind != "heading" else "paragraph",
                builder.text().strip(),
                source=self.flow.name,
                skip_reason=skip,
            )
        ]

    def _line(self, element: etree._Element, kind: str, skip: str) -> RawBlock | None:
        builder = Builder()
        self._inline(element, builder)
        pieces = pieces_of(
            builder.text(), builder.spans, kind if kind != "verse" else "verse", verse=False, skip=skip
        )
        if not pieces:
            return None
        identity = element.get("id")
        block = RawBlock(
            kind,
            pieces[0][1],
            source=self.flow.name + (f"#{identity}" if identity else ""),
            skip_reason=skip,
            spans=pieces[0][2],
            level=3 if kind == "subheading" else 0,
        )
        for extra in pieces[1:]:
            block.text += " " + extra[1]
        language = language_tag(language_of(element))
        if language:
            block.language = language
        if kind == "paragraph" and not re.search(r"\w", block.text):
            block.kind, block.skip_reason = "scene_break", "scene break"
        return block

    def _inline(self, element: etree._Element, builder: Builder) -> None:
        if element.text:
            builder.add(element.text)
        for child in element:
            tag = local(child)
            start = builder.length
            if tag == "a" and ((child.get("type") or "") == "note" or _is_note(child)):
                self._inline(child, builder)
                if builder.length > start:
                    builder.spans.append(Span(start, builder.length, "skip", "note mark"))
            elif tag == "image":
                pass
            elif tag:
                self._inline(child, builder)
            elif isinstance(child, etree._Entity):
                self.flow.left_out.append(
                    LeftOut("unknown entity", counted(child.text or ""), child.text or "", self.flow.name)
                )
            if child.tail:
                builder.add(child.tail)


def _is_note(link: etree._Element) -> bool:
    href = link.get(_LINK) or link.get("href") or ""
    return href.startswith("#") and bool(
        re.fullmatch(r"[\[({]?\s*(?:\d{1,4}|[*†‡]+)\s*[\])}]?", "".join(texts_of(link)).strip())
    )
