"""Rich Text Format: groups, control words, code pages."""

import posixpath
import re
from dataclasses import dataclass, replace
from typing import BinaryIO

from projects.text.languages import is_speakable, language_guess
from projects.text.spans import Span

from .base import ImportRefused, LeftOut, ParsedBook
from .flow import Builder, Flow, RawBlock, counted, pieces_of
from .structure import About, book_finish, drafts_by_headings

MAX_DEPTH = 2_000

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z0-9'])|([{}])|[\r\n]+|([^\\{}\r\n]+)|(.)",
    re.S,
)
_SKIPPED = {
    "fonttbl": "", "colortbl": "", "stylesheet": "", "info": "", "pict": "", "header": "running head", "headerl": "running head",
    "headerr": "running head", "headerf": "running head", "footer": "running foot", "footerl": "running foot", "footerr": "running foot",
    "footerf": "running foot", "fldinst": "", "bkmkstart": "", "bkmkend": "", "listtable": "", "listoverridetable": "", "rsidtbl": "",
    "themedata": "", "colorschememapping": "", "datastore": "", "latentstyles": "", "xe": "", "tc": "", "rxe": "", "objdata": "",
    "objclass": "", "nonshppict": "", "annotation": "comment", "atnid": "comment", "atnauthor": "comment", "atrfstart": "", "atrfend": "",
    "generator": "", "filetbl": "", "revtbl": "", "pgdsctbl": "", "listtext": "", "pntext": "", "ftnsep": "", "ftnsepc": "", "aftnsep": "",
    "aftnsepc": "", "xmlnstbl": "", "mmathPr": "", "wgrffmtfilter": "", "sp": "", "falt": "", "panose": "", "fname": "",
}  # fmt: skip
"""Destinations whose content is no text, and what it is where it was written to be read."""
_CHARSETS = {
    0: "cp1252", 1: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
    254: "cp437", 255: "cp850",
}  # fmt: skip
_SYMBOLS = {
    "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•", "tab": " ",
    "emspace": "\u2003", "enspace": "\u2002", "qmspace": " ", "zwj": "\u200d", "zwnj": "\u200c", "ltrmark": "\u200e", "rtlmark": "\u200f",
}  # fmt: skip


@dataclass
class State:
    """What holds within a group."""

    destination: str = ""  # "" = the text, "skip", "note", "title", "author", "style"
    reason: str = ""
    unicode_skip: int = 1
    font: int = 0
    hidden: bool = False
    deleted: bool = False
    raised: bool = False


class RtfImporter:
    """RTF files."""

    name = "rtf"
    extensions = (".rtf",)

    def score(self, head: bytes, name: str) -> float:
        if head.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{\\rtf"):
            return 1.0
        return 0.5 if name.lower().endswith(".rtf") else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        data = file.read()
        if b"{\\rtf" not in data[:64]:
            raise ImportRefused("malformed_document", "The file is no RTF document.")
        return _Reader(name).read(data)


class _Reader:
    """Reads one document."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.flow = Flow(posixpath.basename(name))
        self.about = About()
        self.codepage = "cp1252"
        self.fonts: dict[int, str] = {}
        self.styles: dict[int, str] = {}
        self.outlines: dict[int, int] = {}
        self.builder = Builder()
        self.note_builder: Builder | None = None
        self.pending_notes: list[RawBlock] = []
        self.raw = bytearray()
        self.state = State()
        self.stack: list[State] = []
        self.text_of: dict[str, list[str]] = {}
        self.paragraph: dict[str, int] = {}
        self.in_table = False
        self.cells: list[str] = []
        self.number = 0
        self.skip_next = 0
        self.gone: dict[str, list[str]] = {}
        self.style_number = -1

    def read(self, data: bytes) -> ParsedBook:
        for match in _TOKEN.finditer(data):
            word, value, byte, symbol, brace, text, other = match.groups()
            if brace == b"{":
                self._decode()
                if len(self.stack) > MAX_DEPTH:
                    raise ImportRefused("malformed_document", "The RTF document is nested too deeply.")
                self.stack.append(replace(self.state))
            elif brace == b"}":
                self._decode()
                self._close()
            elif byte is not None:
                if self.skip_next:
                    self.skip_next -= 1
                else:
                    self.raw.append(int(byte, 16))
            elif text is not None:
                if self.skip_next:
                    cut = min(self.skip_next, len(text))
                    self.skip_next -= cut
                    text = text[cut:]
                self.raw += text
            elif word is not None:
                name = word.decode("ascii")
                number = int(value) if value is not None else None
                if name == "bin" and number:
                    continue
                self._decode()
                self._word(name, number)
            elif symbol is not None:
                self._decode()
                self._symbol(symbol)
            elif other is not None and other == b"\\":
                pass
        self._decode()
        self._end_paragraph()
        for reason, pieces in self.gone.items():
            text = " ".join("".join(pieces).split())
            if counted(text):
                self.flow.left_out.append(LeftOut(reason, counted(text), text[:60], self.flow.name))
        self.flow.total = sum(counted(b.text) for b in self.flow.blocks) + sum(
            x.count for x in self.flow.left_out
        )
        self.about.title = " ".join("".join(self.text_of.get("title", [])).split())
        author = " ".join("".join(self.text_of.get("author", [])).split())
        self.about.authors = tuple(a.strip() for a in author.split(";") if a.strip())
        self.about.language = language_guess(" ".join(b.text for b in self.flow.blocks[:300]))
        drafts = drafts_by_headings(self.flow.blocks, self.about.title)
        return book_finish(
            drafts,
            self.about,
            flows=[self.flow],
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
        )

    # ------------------------------------------------------------ tokens

    def _close(self) -> None:
        if not self.stack:
            return
        before, self.state = self.state, self.stack.pop()
        if (
            before.destination == "note"
            and self.state.destination != "note"
            and self.note_builder is not None
        ):
            text = self.note_builder.text()
            for kind, piece, spans in pieces_of(
                text, self.note_builder.spans, "note", verse=False, skip="note"
            ):
                self.pending_notes.append(
                    RawBlock(kind, piece, source=f"paragraph {self.number}", skip_reason="note", spans=spans)
                )
            self.note_builder = None
        if before.destination == "style" and self.state.destination == "skip":
            name = "".join(self.text_of.pop("style", [])).strip().rstrip(";").casefold()
            if self.style_number >= 0:
                self.styles[self.style_number] = name

    def _decode(self) -> None:
        if self.raw:
            data, self.raw = bytes(self.raw), bytearray()
            encoding = self.fonts.get(self.state.font, self.codepage)
            try:
                text = data.decode(encoding)
            except (UnicodeDecodeError, LookupError):
                text = data.decode(self.codepage if encoding != self.codepage else "cp1252", "replace")
            self._add(text)

    def _add(self, text: str) -> None:
        state = self.state
        if state.destination in ("title", "author", "style"):
            self.text_of.setdefault(state.destination, []).append(text)
        elif state.destination == "skip":
            if state.reason:
                self.gone.setdefault(state.reason, []).append(text)
        elif state.deleted:
            self.gone.setdefault("deleted (tracked change)", []).append(text)
        else:
            builder = (
                self.note_builder
                if state.destination == "note" and self.note_builder is not None
                else self.builder
            )
            start = builder.length
            builder.add(text)
            if state.hidden and builder.length > start:
                builder.spans.append(Span(start, builder.length, "skip", "hidden in the source"))

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            if self.state.destination != "skip":
                self.state = replace(self.state, destination="star")
            return
        if symbol in (b"\\", b"{", b"}"):
            self._add(symbol.decode())
        elif symbol == b"~":
            self._add("\u00a0")
        elif symbol == b"_":
            self._add("\u2011")
        elif symbol in (b"\n", b"\r"):
            self._end_paragraph()

    def _word(self, name: str, number: int | None) -> None:
        state = self.state
        if state.destination == "star":
            known = {"shppict": "", "fldinst": "skip", "footnote": "note"}
            state.destination = known.get(name, "skip")
            if name in ("shptxt",):
                state.destination = ""
            if state.destination == "skip":
                state.reason = _SKIPPED.get(name, "")
            if state.destination != "note":
                return
        if name in _SKIPPED and state.destination != "skip":
            self.state = replace(state, destination="skip", reason=_SKIPPED[name])
            if name == "fonttbl":
                self.state.reason = ""
            return
        if state.destination == "skip":
            self._in_skipped(name, number)
            return
        if state.destination == "style" and name != "u":
            if name == "outlinelevel" and number is not None:
                self.outlines[self.style_number] = number
            return
        if name == "u" and number is not None:
            self._add(
                chr(number % 65536)
                if not 0xD800 <= number % 65536 < 0xE000
                else self._surrogate(number % 65536)
            )
            self.skip_next = state.unicode_skip
        elif name == "uc":
            state.unicode_skip = max(0, number or 0)
        elif name == "ansicpg" and number:
            self.codepage = {
                932: "cp932",
                949: "cp949",
                936: "gb18030",
                950: "big5",
                65001: "utf-8",
                10000: "mac_roman",
            }.get(number, f"cp{number}")
        elif name == "mac":
            self.codepage = "mac_roman"
        elif name == "f" and number is not None:
            state.font = number
        elif name in ("par", "sect") or name == "page":
            self._end_paragraph()
        elif name == "line":
            (
                self.note_builder if state.destination == "note" and self.note_builder else self.builder
            ).line_break()
        elif name == "pard":
            self.paragraph = {}
            self.in_table = False
        elif name in ("s", "outlinelevel", "ls"):
            self.paragraph[name] = number if number is not None else 0
        elif name == "intbl":
            self.in_table = True
        elif name in ("cell", "nestcell"):
            self.cells.append(" ".join(self.builder.text().split()))
            self.builder = Builder()
        elif name in ("row", "nestrow"):
            if any(self.cells):
                self.flow.blocks.append(
                    RawBlock(
                        "table",
                        "\u2003".join(self.cells),
                        source=f"paragraph {self.number}",
                        skip_reason="table",
                    )
                )
            self.cells = []
        elif name == "v":
            state.hidden = number != 0
        elif name in ("deleted",):
            state.deleted = number != 0
        elif name == "plain":
            state.hidden = state.deleted = False
        elif name == "footnote":
            self.state = replace(state, destination="note")
            self.note_builder = Builder()
        elif name == "chftn":
            pass
        elif name in _SYMBOLS:
            self._add(_SYMBOLS[name])

    _high = 0

    def _surrogate(self, unit: int) -> str:
        if unit < 0xDC00:
            self._high = unit
            return ""
        high, self._high = self._high, 0
        return chr(0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00)) if high else "\ufffd"

    def _in_skipped(self, name: str, number: int | None) -> None:
        """Of what is no text, the fonts' code pages, the names of styles and the title are worth knowing."""
        if name == "f" and number is not None:
            self.state.font = number
        elif name == "fcharset" and number is not None and number in _CHARSETS:
            self.fonts[self.state.font] = _CHARSETS[number]
        elif name in ("title", "author"):
            self.state = replace(self.state, destination=name)
        elif name == "s" and number is not None:
            self.style_number = number
            self.state = replace(self.state, destination="style")
            self.text_of["style"] = []
        elif name == "uc":
            self.state.unicode_skip = max(0, number or 0)
        elif name == "u":
            if self.state.reason:
                self.gone.setdefault(self.state.reason, []).append(
                    chr((number or 0) % 65536) if not 0xD800 <= (number or 0) % 65536 < 0xE000 else ""
                )
            self.skip_next = self.state.unicode_skip

    def _end_paragraph(self) -> None:
        if self.state.destination == "note" and self.note_builder is not None:
            self.note_builder.line_break()
            self.note_builder.line_break()
            return
        if self.state.destination not in ("", "note"):
            return
        if self.in_table and self.cells:
            self.builder.add(" ")
            return
        self.number += 1
        builder, self.builder = self.builder, Builder()
        text = builder.text()
        name = self.styles.get(self.paragraph.get("s", -1), "")
        kind, level = "paragraph", 0
        if "outlinelevel" in self.paragraph and self.paragraph["outlinelevel"] < 9:
            kind, level = "heading", self.paragraph["outlinelevel"] + 1
        elif self.outlines.get(self.paragraph.get("s", -1), 9) < 9:
            kind, level = "heading", self.outlines[self.paragraph["s"]] + 1
        elif match := re.match(r"(?:heading|überschrift|titre|título|titolo|заголовок)\s*([1-9])", name):
            kind, level = "heading", int(match[1])
        elif name in ("quote", "intense quote", "block text", "quotations"):
            kind = "quote"
        elif name == "title":
            kind, level = "heading", 9
        if text.strip():
            for piece_kind, piece, spans in pieces_of(text, builder.spans, kind, verse=False, skip=""):
                block = RawBlock(
                    piece_kind, piece, source=f"paragraph {self.number}", spans=spans, level=level
                )
                if not is_speakable(piece):
                    block.kind, block.skip_reason = "scene_break", "scene break"
                self.flow.blocks.append(block)
        self.flow.blocks += self.pending_notes
        self.pending_notes = []
