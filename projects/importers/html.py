"""HTML pages: one file that holds a book."""

import posixpath
import re
from typing import BinaryIO

from projects.text.languages import language_guess, language_tag

from .base import ParsedBook
from .encoding import plain_decode
from .flow import Walker
from .markup import css_hidden, html_tree, language_of, local
from .structure import About, book_finish, drafts_by_headings


class HtmlImporter:
    """HTML and XHTML files. Headings make chapters; navigation, scripts and forms are no text."""

    name = "html"
    extensions = (".html", ".htm", ".xhtml", ".xht")

    def score(self, head: bytes, name: str) -> float:
        start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower()
        if start.startswith((b"<!doctype html", b"<html")) or (
            start.startswith(b"<?xml") and b"<html" in head.lower()
        ):
            return 0.9
        return 0.8 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        data = file.read()
        default = "utf-8"
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            default = plain_decode(data)[1]
        strict = b"<?xml" in data[:200] or b"XHTML" in data[:400]
        tree = html_tree(data, posixpath.basename(name), default=default, strict=strict)
        about = About()
        sheets = []
        for element in tree.root.iter():
            tag = local(element)
            if tag == "title" and not about.title and local(element.getparent()) in ("head", "html"):
                about.title = " ".join("".join(element.itertext()).split())
            elif tag == "meta":
                key = (element.get("name") or element.get("property") or "").casefold()
                value = " ".join((element.get("content") or "").split())
                if key in ("author", "dc.creator", "dcterms.creator") and value:
                    about.authors = (*about.authors, value)
                elif key in ("dc.title", "og:title") and value:
                    about.title = value
                elif key in ("description", "dc.description") and value:
                    about.description = about.description or value
                elif key in ("dc.language", "dcterms.language"):
                    about.language = language_tag(value)
            elif tag == "style":
                sheets.append("".join(element.itertext()))
        if match := re.match(
            r"(?:The Project Gutenberg eBook of )(.+?)(?:,? by (.+?))?\.?$", about.title, re.I
        ):
            about.title = match[1]
            about.authors = about.authors or ((match[2],) if match[2] else ())
        about.language = language_tag(language_of(tree.root)) or about.language
        marks = {
            (link.get("href") or "")[1:]
            for link in tree.root.iter()
            if local(link) == "a" and (link.get("href") or "").startswith("#") and _raised(link)
        }
        walker = Walker(
            posixpath.basename(name),
            language=about.language,
            hidden=css_hidden(sheets),
            notes=frozenset(marks),
            note_target=lambda href: href.lstrip("#") in marks,
        )
        flow = walker.walk(tree.root)
        about.language = about.language or language_guess(" ".join(b.text for b in flow.blocks[:300]))
        drafts = drafts_by_headings(flow.blocks, about.title)
        stem = posixpath.splitext(posixpath.basename(name))[0]
        return book_finish(
            drafts, about, flows=[flow], warnings=[*flow.warnings, *tree.warnings], fallback_title=stem
        )


def _raised(link) -> bool:
    text = "".join(link.itertext()).strip()
    parent = link.getparent()
    raised = (parent is not None and local(parent) == "sup") or any(local(e) == "sup" for e in link)
    return bool(re.fullmatch(r"\[?(?:\d{1,4}|[*†‡§]+)\]?", text)) and (raised or text.startswith("["))
