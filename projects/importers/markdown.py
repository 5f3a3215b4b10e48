"""Markdown (CommonMark, tables, strikethrough, footnotes, front matter): parsed to HTML, read like HTML."""

import posixpath
import re
from html import escape
from typing import Any, BinaryIO

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline

from projects.text.languages import language_guess, language_tag

from .base import ImportRefused, LeftOut, ParsedBook
from .encoding import is_binary, plain_decode
from .flow import Walker, counted
from .markup import html_tree
from .structure import About, book_finish, drafts_by_headings

_NOTE = re.compile(r"^\[\^([^\]\s]+)\]:[ \t]*(.*(?:\n(?:[ \t]{2,}\S.*|[ \t]*(?=\n[ \t]{4}\S)))*)", re.M)
_FRONT = re.compile(r"\A(?:---|\+\+\+)[ \t]*\n(.*?)\n(?:---|\+\+\+|\.\.\.)[ \t]*(?:\n|\Z)", re.S)


class MarkdownImporter:
    """Markdown files. Headings make chapters; code, tables and link addresses are not read."""

    name = "markdown"
    extensions = (".md", ".markdown", ".mdown", ".mkd", ".qmd")

    def score(self, head: bytes, name: str) -> float:
        if is_binary(head):
            return 0.0
        return 0.9 if name.lower().endswith(self.extensions) else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        data = file.read()
        if is_binary(data):
            raise ImportRefused("unsupported_format", "The file is no text that could be read.")
        text, _, warnings = plain_decode(data)
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
        about, body, front = _front_matter(text)
        first = text.count("\n", 0, len(text) - len(body)) + 1
        body, notes = _notes(body)
        html = _render(body, notes, first)
        tree = html_tree(f"<html><body>{html}</body></html>".encode(), name, strict=False)
        walker = Walker("line", notes=frozenset(f"fn-{_identity(k)}" for k in notes), language=about.language)
        flow = walker.walk(tree.root)
        for block in flow.blocks:
            block.source = block.source.replace("line#L", "line ") if "#L" in block.source else "line"
        if front.strip():
            flow.left_out.append(LeftOut("front matter", counted(front), " ".join(front.split())[:60], name))
            flow.total += counted(front)
        about.language = about.language or language_guess(" ".join(b.text for b in flow.blocks))
        drafts = drafts_by_headings(flow.blocks, about.title)
        if not about.title:
            top = [b for b in flow.blocks if b.kind == "heading" and b.level == 1 and b.read]
            if (
                len(top) == 1
                and drafts
                and top[0] is not next((b for b in drafts[-1].blocks if b.kind == "heading"), None)
            ):
                about.title = " ".join(top[0].text.split())
        for draft in drafts:
            if not draft.title and not draft.listed and len(drafts) > 1 and _only_title(draft.blocks):
                draft.kind, draft.included, draft.reason = (
                    "front_matter",
                    False,
                    "title page (said in the opening credits)",
                )
                draft.title = "Title page"
        return book_finish(
            drafts,
            about,
            flows=[flow],
            warnings=[*warnings, *tree.warnings],
            fallback_title=posixpath.splitext(posixpath.basename(name))[0],
        )


def _only_title(blocks: list[Any]) -> bool:
    return (
        all(b.kind == "heading" or (b.read and len(b.text.split()) <= 8) or not b.read for b in blocks)
        and sum(b.kind != "heading" and b.read for b in blocks) <= 1
    )


def _front_matter(text: str) -> tuple[About, str, str]:
    """(what it says, text after it, front matter). Only plain `key: value` lines and lists are understood."""
    about = About()
    match = _FRONT.match(text)
    if not match:
        return about, text, ""
    values: dict[str, list[str]] = {}
    key = ""
    for line in match[1].split("\n"):
        found = re.match(r"([A-Za-z][\w-]*)\s*[:=]\s*(.*)$", line)
        item = re.match(r"\s*-\s+(?:name:\s*)?(.+)$", line)
        if found:
            key = found[1].casefold()
            values[key] = [_bare(v) for v in _list_value(found[2])]
        elif item and key:
            values[key].append(_bare(item[1]))
        elif key and line.startswith((" ", "\t")) and line.strip():
            values[key] = [" ".join([*values[key], line.strip()]).strip()]
    if not values:
        return about, text, ""

    def first(*names: str) -> str:
        return next((v for n in names for v in values.get(n, []) if v and v not in ("|", ">")), "")

    about.title = first("title")
    about.authors = tuple(v for n in ("author", "authors", "creator") for v in values.get(n, []) if v)
    about.language = language_tag(first("lang", "language"))
    about.subtitle, about.publisher, about.rights = (
        first("subtitle"),
        first("publisher"),
        first("rights", "copyright"),
    )
    about.description, about.translator = first("description", "abstract"), first("translator")
    about.series, about.isbn = first("series"), first("isbn")
    if found := re.search(r"\b\d{4}\b", first("date", "year")):
        about.year = found[0]
    return about, text[match.end() :], match[0]


def _list_value(value: str) -> list[str]:
    value = value.strip()
    if value.startswith("[") and value.endswith("]"):
        return value[1:-1].split(",")
    return [value] if value else []


def _bare(value: str) -> str:
    value = value.strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


def _notes(text: str) -> tuple[str, dict[str, str]]:
    """The text without the definitions of its footnotes, and these. Line numbers stay. Code fences are left alone."""
    notes: dict[str, str] = {}
    fenced = [m.span() for m in re.finditer(r"^(```|~~~).*?^\1[ \t]*$", text, re.S | re.M)]

    def take(match: re.Match[str]) -> str:
        if any(a <= match.start() < b for a, b in fenced):
            return match[0]
        notes.setdefault(match[1], re.sub(r"\n[ \t]+", "\n", match[2]))
        return "\n" * match[0].count("\n")

    return _NOTE.sub(take, text), notes


def _identity(key: str) -> str:
    return re.sub(r"\W", "_", key)


def _render(text: str, notes: dict[str, str], first: int) -> str:
    used: list[str] = []

    def reference(state: StateInline, silent: bool) -> bool:
        match = re.compile(r"\[\^([^\]\s]+)\]").match(state.src, state.pos)
        if not match or match[1] not in notes:
            return False
        if not silent:
            token = state.push("html_inline", "", 0)
            key = _identity(match[1])
            token.content = f'<a class="noteref" role="doc-noteref" href="#fn-{key}">{escape(match[1])}</a>'
            if match[1] not in used:
                used.append(match[1])
        state.pos = match.end()
        return True

    parser = MarkdownIt("commonmark", {"html": True, "typographer": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "footnote_ref", reference)
    tokens = parser.parse(text)
    for token in tokens:
        if token.map and token.nesting >= 0 and token.type not in ("inline", "html_block"):
            token.attrSet("id", f"L{first + token.map[0]}")
    html: str = parser.renderer.render(tokens, parser.options, {})
    for key in [*used, *(k for k in notes if k not in used)]:
        inner = parser.render(notes[key])
        html += f'<aside role="doc-footnote" id="fn-{_identity(key)}">{inner}</aside>'
    return html
