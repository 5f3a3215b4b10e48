"""PDF with a text layer: lines from positions, columns, running heads and page numbers out, paragraphs back together."""

import logging
import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO

import pypdf
from pypdf.errors import DependencyError, PdfReadError, PyPdfError

from projects.text.headings import looks_like_heading
from projects.text.languages import is_speakable, language_guess, language_tag
from projects.text.numbers import roman_value
from projects.text.spans import Span
from projects.text.wordlist import word_set

from .base import ImportRefused, LeftOut, ParsedBook
from .flow import Flow, RawBlock, counted, storable
from .structure import About, Draft, book_finish, drafts_by_headings, title_words

MAX_PAGES = 6_000
MAX_CONTENT_BYTES = 40_000_000
"""Largest content stream of one page, unpacked."""

_CLOSES = re.compile(r"[.!?…。！？:][”’\"'»)\]」』]*$")
_PREFIXES = word_set(
    """self ex half well cross non co semi quasi mid all ill great step vice pre post anti ever long short old new"""
)

_SOLID = word_set(
    """something somewhere anything anywhere everything everywhere nothing nowhere somebody anybody everybody nobody
    someone anyone everyone without within whatever whoever however therefore wherever whenever overcome understand
    understood become became himself herself itself themselves yourself myself ourselves another already although
    altogether afterwards afternoon sometimes meanwhile outside inside upstairs downstairs breakfast gentleman gentlemen
    bedroom forever indeed instead maybe moreover nevertheless otherwise perhaps somehow therein thereby today tomorrow
    tonight toward towards undergo undertake underneath upon wherein whereas withdraw withhold withstand workshop
    household housekeeper schoolmaster grandfather grandmother midnight moonlight sunlight daylight footstep fireplace
    doorway railway highway landlord landlady newspaper notebook overhead overlook sunset sunrise goodbye likewise"""
)

logging.getLogger("pypdf").setLevel(
    logging.CRITICAL
)  # it reports every oddity of a file; our warnings say what matters


@dataclass
class Piece:
    """A run of text as drawn. Points; origin at the lower left."""

    x: float
    y: float
    size: float
    text: str
    font: str
    number: int  # in drawing order
    stop: float = 0.0  # where the pen was after it, 0 = not reported

    @property
    def end(self) -> float:
        """Where it ends: as reported, where that is believable, else estimated from its letters."""
        estimate = _width(self.text.strip(), self.size)
        return self.stop if self.stop > self.x + 0.4 * estimate else self.x + estimate


@dataclass
class Line:
    """A line of text within a column."""

    x: float
    y: float
    size: float
    text: str
    bold: bool
    page: int  # index from 0
    column: int
    spans: list[Span] = field(default_factory=list)
    end: float = 0.0  # where it ends, estimated


class PdfImporter:
    """PDF files with text in them. Scans are refused; a password is said to be one."""

    name = "pdf"
    extensions = (".pdf",)

    def score(self, head: bytes, name: str) -> float:
        if b"%PDF-" in head[:1024]:
            return 1.0
        return 0.7 if name.lower().endswith(".pdf") else 0.0

    def parse(self, file: BinaryIO, name: str) -> ParsedBook:
        reader = _open(file)
        return _Reader(reader, name).read()


def _open(file: BinaryIO) -> pypdf.PdfReader:
    try:
        reader = pypdf.PdfReader(file, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise ImportRefused("password_protected", "The PDF is protected with a password.")
        pages = len(reader.pages)
    except DependencyError as exc:
        raise ImportRefused(
            "password_protected", "The PDF is encrypted in a way that cannot be opened here."
        ) from exc
    except (
        PyPdfError,
        PdfReadError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OSError,
    ) as exc:
        raise ImportRefused("malformed_document", "The PDF is damaged and cannot be opened.") from exc
    if pages > MAX_PAGES:
        raise ImportRefused("too_large", f"The PDF has more than {MAX_PAGES} pages.")
    if not pages:
        raise ImportRefused("no_readable_text", "The PDF has no pages.")
    return reader


class _Reader:
    """Reads one document."""

    def __init__(self, reader: pypdf.PdfReader, name: str) -> None:
        self.reader, self.name = reader, name
        self.flow = Flow(posixpath.basename(name))
        self.warnings: list[str] = []
        self.labels: dict[int, str] = {}
        self.body_size = 0.0
        self.words: Counter[str] = Counter()
        self.hyphened: Counter[str] = Counter()
        self.columns = 0

    def read(self) -> ParsedBook:
        pages = [self._lines(index) for index in range(len(self.reader.pages))]
        if not any(pages):
            raise ImportRefused(
                "no_readable_text",
                "The PDF has no text in it: it seems to be a scan. Run character recognition first.",
            )
        sizes: Counter[float] = Counter()
        for lines in pages:
            for line in lines:
                sizes[round(line.size * 2) / 2] += len(line.text)
        self.body_size = sizes.most_common(1)[0][0] or 10.0
        pages = self._without_margins(pages)
        broken = False  # the line before ended within a word
        for line in (line for lines in pages for line in lines):
            text = re.sub(r"^\s*[^\W\d_]+", "", line.text) if broken else line.text
            broken = bool(re.search(r"[^\W\d_][-\u00ad\u2010]$", text))
            if broken:
                text = re.sub(r"[^\W\d_]+[-\u00ad\u2010]$", "", text)
            for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", text.casefold()):
                (self.hyphened if "-" in word else self.words)[word] += 1
        self._paragraphs(pages)
        about = self._about()
        about.language = about.language or language_guess(" ".join(b.text for b in self.flow.blocks[:300]))
        drafts = self._drafts(about)
        if self.columns:
            self.warnings.append(
                f"{self.columns} pages are set in columns; check that the order of their text is right."
            )
        return book_finish(
            drafts,
            about,
            flows=[self.flow],
            warnings=self.warnings,
            fallback_title=posixpath.splitext(posixpath.basename(self.name))[0],
        )

    # ------------------------------------------------------------ lines

    def _lines(self, index: int) -> list[Line]:
        pieces: list[Piece] = []
        rotated: list[str] = []

        def visit(text: str, cm: Any, tm: Any, font: Any, size: float) -> None:
            if not text or not text.strip():
                if pieces and not pieces[-1].stop and tm[4]:
                    x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
                    y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
                    if abs(y - pieces[-1].y) < 1:
                        pieces[-1].stop = x
                if pieces and text and " " in text and not pieces[-1].text.endswith(" "):
                    pieces[-1].text += " "
                return
            a, b = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
            x = tm[4] * cm[0] + tm[5] * cm[2] + cm[4]
            y = tm[4] * cm[1] + tm[5] * cm[3] + cm[5]
            if abs(b) > abs(a):
                rotated.append(storable(text))
                return
            text = storable(text)
            if not text.strip():
                return
            scale = abs(tm[3] * cm[3]) or abs(a) or 1.0
            base = ""
            if isinstance(font, dict):
                base = str(font.get("/BaseFont", ""))
            pieces.append(Piece(x, y, float(size) * scale, text.replace("\n", " "), base, len(pieces)))

        try:
            page = self.reader.pages[index]
            contents = page.get_contents()
            if contents is not None and len(contents.get_data()) > MAX_CONTENT_BYTES:
                raise ImportRefused(
                    "unsafe_archive", f"Page {index + 1} of the PDF unpacks to more than is allowed."
                )
            page.extract_text(visitor_text=visit)
            width = float(page.mediabox.width) or 612.0
        except ImportRefused:
            raise
        except (
            PyPdfError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            RecursionError,
            ZeroDivisionError,
            OverflowError,
            OSError,
            NotImplementedError,
            UnicodeError,
            AssertionError,
        ) as exc:
            self.warnings.append(
                f"Page {index + 1} cannot be read ({type(exc).__name__}); its text is missing."
            )
            return []
        pieces = [p for p in pieces if p.text.strip()]
        self.flow.total += sum(counted(p.text) for p in pieces) + sum(map(counted, rotated))
        for text in rotated:
            self.flow.left_out.append(
                LeftOut("text set at an angle", counted(text), text.strip()[:60], f"page {index + 1}")
            )
        if not pieces:
            return []
        right = _second_column(pieces, width)
        if right:
            self.columns += 1
        return _ordered(pieces, right, index)

    # ------------------------------------------------------------ running heads

    def _without_margins(self, pages: list[list[Line]]) -> list[list[Line]]:
        """The pages without running heads and page numbers."""
        candidates: list[tuple[int, Line, str]] = []
        count = sum(bool(p) for p in pages)
        for index, lines in enumerate(pages):
            if not lines:
                continue
            byy = sorted(lines, key=lambda line: -line.y)
            for line in {id(x): x for x in [*byy[:2], *byy[-2:]]}.values():
                candidates.append((index, line, "top" if line in byy[:2] else "foot"))
        seen: Counter[tuple[str, str]] = Counter()
        for _, line, place in candidates:
            seen[place, _mask(line.text)] += 1
        numbers: Counter[int] = Counter()
        for index, line, _ in candidates:
            if (value := _page_number(line.text)) is not None:
                numbers[value - index] += 1
        shift = numbers.most_common(1)[0] if numbers else (0, 0)
        exact = Counter(" ".join(line.text.split()) for _, line, _ in candidates)
        gone: set[int] = set()
        for index, line, place in candidates:
            value = _page_number(line.text)
            mask = _mask(line.text)
            apart = self._apart(line, pages[index])
            if value is not None and (
                (value - index == shift[0] and shift[1] >= 2)
                or (apart and not heading_like_number(line, self.body_size))
            ):
                self.labels[index] = (
                    re.sub(r"[^\dA-Za-z]", "", line.text)
                    if not re.search(r"\bof\b", line.text)
                    else str(value)
                )
                gone.add(id(line))
                self._leave_out("page number", line.text, index)
            elif (
                not (exact[" ".join(line.text.split())] == 1 and self._is_title(line))
                and seen[place, mask] >= 2
                and seen[place, mask] >= min(3, count)
                and (seen[place, mask] >= 0.2 * count or seen[place, mask] >= 4)
                and (apart or seen[place, mask] >= 3)
            ):
                gone.add(id(line))
                self._leave_out("running head", line.text, index)
                if match := re.search(r"(?:^|\s)(\d{1,4})$|^(\d{1,4})(?:\s|$)", line.text.strip()):
                    self.labels.setdefault(index, match[1] or match[2])
        # A single page has no running head that could be told from its text, but a number set apart is a number.
        return [[line for line in lines if id(line) not in gone] for lines in pages]

    def _is_title(self, line: Line) -> bool:
        """Does a line that stands at the top of its page only once look like the title of a chapter?"""
        return line.size > 1.12 * self.body_size or looks_like_heading(line.text)

    def _apart(self, line: Line, lines: list[Line]) -> bool:
        """Is a line farther from its neighbours than lines of text are from each other?"""
        others = sorted((other.y for other in lines if other is not line), key=lambda y: abs(y - line.y))
        if not others:
            return True
        gaps = sorted(
            abs(a - b)
            for a, b in pairwise(sorted({round(other.y, 1) for other in lines if other is not line}))
        )
        usual = gaps[len(gaps) // 2] if gaps else line.size * 1.3
        return abs(others[0] - line.y) > 1.45 * max(usual, line.size)

    def _leave_out(self, reason: str, text: str, page: int) -> None:
        if counted(text):
            self.flow.left_out.append(
                LeftOut(reason, counted(text), " ".join(text.split())[:60], f"page {page + 1}")
            )

    # ------------------------------------------------------------ paragraphs

    def _paragraphs(self, pages: list[list[Line]]) -> None:
        lefts: Counter[tuple[int, int]] = Counter()
        gaps: list[float] = []
        for lines in pages:
            for line in lines:
                lefts[line.column, round(line.x)] += 1
            for above, below in pairwise(lines):
                if above.column == below.column and 0 < above.y - below.y < 4 * self.body_size:
                    gaps.append(above.y - below.y)
        gaps.sort()
        leading = gaps[len(gaps) // 2] if gaps else self.body_size * 1.3
        ends = sorted(line.end - line.x for lines in pages for line in lines)
        measure = ends[int(len(ends) * 0.9)] if ends else 400.0
        current: list[Line] = []
        previous: Line | None = None
        indents = self._indents(pages)
        for lines in pages:
            base = {
                c: min((line.x for line in lines if line.column == c), default=0)
                for c in {line.column for line in lines}
            }
            for c in base:
                usual = Counter(
                    round(line.x)
                    for line in lines
                    if line.column == c and abs(line.size - self.body_size) < 1.5
                )
                if usual:
                    base[c] = (
                        min(x for x, n in usual.items() if n >= 0.2 * sum(usual.values()) or n >= 3)
                        if any(n >= 0.2 * sum(usual.values()) or n >= 3 for n in usual.values())
                        else min(usual)
                    )
            if indents and previous is not None and lines:
                pass
            for line in lines:
                starts = previous is None
                if previous is not None:
                    same = previous.page == line.page and previous.column == line.column
                    indented = 0.6 * line.size < line.x - base[line.column] < 7 * line.size
                    gap = previous.y - line.y if same else 0
                    note = (
                        line.size < 0.9 * self.body_size
                        and re.match(r"\d{1,3}[\s.)]|[*†‡]", line.text) is not None
                    )
                    if abs(line.size - previous.size) > 0.12 * self.body_size and not (
                        same and abs(gap) < 0.6 * line.size
                    ):
                        starts = True
                        if (
                            not same
                            and current
                            and not _CLOSES.search(current[-1].text)
                            and abs(line.size - current[-1].size) < 0.5
                        ):
                            starts = False
                    elif (
                        (note and same and previous.size >= 0.9 * self.body_size)
                        or (indented and indents)
                        or gap > 1.35 * leading
                        or self._stands_alone(previous, measure)
                        or self._stands_alone(line, measure)
                        or (
                            not indents
                            and _CLOSES.search(previous.text)
                            and previous.end - previous.x < 0.82 * measure
                        )
                        or (
                            same
                            and previous.bold
                            and not line.bold
                            and len(previous.text) < 80
                            and not previous.text.rstrip().endswith(",")
                        )
                        or (
                            not same
                            and _CLOSES.search(previous.text)
                            and previous.end - previous.x < 0.9 * measure
                        )
                    ):
                        starts = True
                if starts and current:
                    self._block(current)
                    current = []
                current.append(line)
                previous = line
        if current:
            self._block(current)

    def _stands_alone(self, line: Line, measure: float) -> bool:
        """A chapter line in the size of the text."""
        return line.end - line.x < 0.7 * measure and looks_like_heading(line.text)

    def _indents(self, pages: list[list[Line]]) -> bool:
        """Do paragraphs begin with an indent in this document?"""
        inner = total = 0
        for lines in pages:
            for above, below in pairwise(lines):
                if above.column == below.column and abs(above.size - below.size) < 0.5:
                    total += 1
                    inner += 0.6 * below.size < below.x - above.x < 5 * below.size
        return total > 0 and 0.02 * total < inner < 0.6 * total

    def _block(self, lines: list[Line]) -> None:
        text, spans = "", []
        for number, line in enumerate(lines):
            piece = line.text.strip()
            lead = len(line.text) - len(line.text.lstrip())
            if number and text:
                glue = " "
                if text.endswith("\u00ad"):
                    text, glue = text[:-1], ""
                elif re.search(r"[^\W\d_][-\u2010]$", text) and piece[:1].isalpha():
                    text, glue = self._hyphen(text, piece, line.page), ""
                elif re.search(r"[—–]$", text) or _tight(text[-1], piece[:1]):
                    glue = ""
                text += glue
            shift = len(text) - lead
            spans += [Span(max(0, s.start + shift), s.end + shift, s.role, s.value) for s in line.spans]
            text += piece
        text = text.replace("\u00ad", "")
        if not text:
            return
        first = lines[0]
        page = self.labels.get(first.page) or str(first.page + 1)
        block = RawBlock(
            "paragraph",
            text,
            source=f"page {first.page + 1}",
            page=page,
            spans=[s for s in spans if 0 <= s.start < s.end <= len(text)],
        )
        large = min(line.size for line in lines) > 1.15 * self.body_size
        if not is_speakable(text):
            block.kind, block.skip_reason = "scene_break", "scene break"
        elif (
            len(text) < 160
            and is_speakable(text)
            and (
                large
                or (looks_like_heading(text) and len(lines) <= 2)
                or (
                    all(line.bold for line in lines)
                    and len(lines) <= 2
                    and not _CLOSES.search(text)
                    and len(text) < 80
                )
            )
        ):
            block.kind = "heading"
            ratio = min(line.size for line in lines) / self.body_size
            block.level = 1 if ratio > 1.7 else 2 if ratio > 1.35 else 3 if large else 4
            if looks_like_heading(text):
                block.level = min(block.level, 3)
        elif (
            max(line.size for line in lines) < 0.9 * self.body_size
            and re.match(r"\d{1,3}[\s.)]|[*†‡]", text)
            and first.y < 300
        ):
            block.kind, block.skip_reason = "note", "note"
        self.flow.blocks.append(block)

    def _hyphen(self, text: str, piece: str, page: int) -> str:
        """The text before a line end with its hyphen kept or dropped, as the rest of the document writes the word."""
        head = re.search(r"([^\W\d_]+(?:-[^\W\d_]+)*)[-\u2010]$", text)
        tail = re.match(r"[^\W\d_]+", piece)
        before, after = (head[1] if head else "").casefold(), (tail[0] if tail else "").casefold()
        if piece[:1].isupper() and not text[-3:-1].isupper():
            return text
        whole, parted = before + after, f"{before}-{after}"
        known = len(before) > 3 and len(after) > 3 and bool(self.words[before] and self.words[after])
        if known and not self.words[whole] and whole not in _SOLID:
            return text  # two words of this text: "travel-worn"
        if self.hyphened[parted] and not self.words[whole]:
            return text
        if (
            not self.words[whole]
            and before.rpartition("-")[2] in _PREFIXES
            and self.words[after]
            and self.words[before]
        ):
            return text
        self._leave_out("hyphen at a line end", "-", page)
        return text[:-1]

    # ------------------------------------------------------------ chapters

    def _drafts(self, about: About) -> list[Draft]:
        outline = self._outline()
        blocks = self.flow.blocks
        if len(outline) >= 2:
            cuts: list[tuple[int, str, int]] = []
            at = 0
            for title, page, depth in outline:
                found = next(
                    (
                        i
                        for i in range(at, len(blocks))
                        if _page_of(blocks[i]) == page and _same(blocks[i], title)
                    ),
                    None,
                )
                if found is None:
                    found = next((i for i in range(at, len(blocks)) if _page_of(blocks[i]) >= page), None)
                if found is None:
                    continue
                cuts.append((found, title, depth))
                at = found
            if len({c[0] for c in cuts}) >= 2:
                drafts = []
                if cuts[0][0] > 0:
                    drafts.append(Draft("", blocks[: cuts[0][0]], listed=False))
                for number, (start, title, depth) in enumerate(cuts):
                    end = cuts[number + 1][0] if number + 1 < len(cuts) else len(blocks)
                    if end > start:
                        drafts.append(Draft(title, blocks[start:end], depth=depth))
                return drafts
        return drafts_by_headings(blocks, about.title)

    def _outline(self) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = []

        def walk(items: Any, depth: int) -> None:
            for item in items:
                if len(found) > 3000 or depth > 8:
                    return
                if isinstance(item, list):
                    walk(item, depth + 1)
                    continue
                try:
                    page = self.reader.get_destination_page_number(item)
                    title = " ".join(str(item.title or "").split())
                except Exception:
                    continue
                if page is not None and page >= 0 and title:
                    found.append((title, page, depth))

        try:
            walk(self.reader.outline, 0)
        except Exception:
            return []
        return sorted(found, key=lambda f: f[1])

    def _about(self) -> About:
        about = About()
        try:
            info = self.reader.metadata
            if info:
                title = " ".join(str(info.title or "").split())
                if title and not re.search(
                    r"\.(?:docx?|indd|pdf|tex|qxd|odt)$|^untitled|^microsoft word", title, re.I
                ):
                    about.title = title
                author = " ".join(str(info.author or "").split())
                about.authors = tuple(a.strip() for a in re.split(r"\s*;\s*", author) if a.strip())
            root: Any = self.reader.trailer["/Root"]
            about.language = language_tag(str(root.get("/Lang", "")))
        except Exception:
            return about
        return about


def heading_like_number(line: Line, body: float) -> bool:
    """A number set larger than the text is a chapter's, not a page's."""
    return line.size > 1.25 * body


def _page_of(block: RawBlock) -> int:
    return int(block.source.removeprefix("page ")) - 1


def _same(block: RawBlock, title: str) -> bool:
    words, wanted = title_words(block.text), title_words(title)
    return bool(words) and (
        words == wanted or (len(words) >= 1 and wanted[: len(words)] == words and block.kind == "heading")
    )


def _mask(text: str) -> str:
    return re.sub(r"\d+|\b[ivxlc]+\b", "#", " ".join(text.split()).casefold())


def _page_number(text: str) -> int | None:
    match = re.fullmatch(
        r"(?:page\s+|p\.\s*|[-–—\[(|·•]\s*)?(\d{1,4}|[ivxlc]{1,7})(?:\s+of\s+\d+|\s*[-–—\])|·•])?",
        text.strip(),
        re.I,
    )
    if not match:
        return None
    return int(match[1]) if match[1].isdecimal() else roman_value(match[1].upper())


def _tight(before: str, after: str) -> bool:
    return bool(
        re.match("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]", before)
        and after
        and re.match("[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]", after)
    )


def _width(text: str, size: float) -> float:
    """Estimated width in points: half a size for a letter, a whole one for an East Asian character."""
    wide = sum(ord(c) > 0x2E80 for c in text)
    return size * (0.48 * (len(text) - wide) + wide)


def _second_column(pieces: list[Piece], width: float) -> float:
    """Where a second column begins, 0 if there is none."""
    starts = Counter(round(p.x / 4) * 4 for p in pieces if len(p.text.strip()) > 3)
    total = sum(starts.values())
    if total < 6:
        return 0.0
    middle = [x for x, n in starts.items() if 0.4 * width < x < 0.68 * width and n >= max(3, 0.2 * total)]
    if not middle:
        return 0.0
    right = float(min(middle)) - 3
    left = [p for p in pieces if p.x < right - 40]
    rights = [p for p in pieces if p.x >= right]
    if len(left) < 3 or len(rights) < 3:
        return 0.0
    # Runs on one line that merely change the font begin anywhere; columns begin at the same place again and again.
    crossing = sum(p.end > right + 12 for p in left)
    return right if crossing <= 0.25 * len(left) else 0.0


def _ordered(pieces: list[Piece], right: float, page: int) -> list[Line]:
    """Lines in reading order: down the left column, then down the right; a line across both parts them."""
    if not right:
        return _rows(pieces, page, 0)
    across = [p for p in pieces if p.x < right - 40 and p.end > right + 12]
    edges = sorted({p.y for p in across}, reverse=True)
    lines: list[Line] = []
    top = float("inf")
    for edge in [*edges, float("-inf")]:
        band = [p for p in pieces if edge < p.y < top and p not in across]
        lines += _rows([p for p in band if p.x < right], page, 0)
        lines += _rows([p for p in band if p.x >= right], page, 1)
        lines += _rows([p for p in across if p.y == edge], page, 0)
        top = edge
    return lines


def _rows(pieces: list[Piece], page: int, column: int) -> list[Line]:
    rows: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda p: (-p.y, p.x)):
        row = rows[-1] if rows else None
        if row is not None:
            main = max(row, key=lambda p: len(p.text))
            if abs(main.y - piece.y) < 0.5 * max(main.size, piece.size):
                row.append(piece)
                continue
        rows.append([piece])
    lines = []
    for row in rows:
        row.sort(key=lambda p: (p.x, p.number))
        main = max(row, key=lambda p: len(p.text))
        text, spans = "", []
        before: Piece | None = None
        for piece in row:
            words = re.sub(r"\s+", " ", piece.text)
            if before is not None and not text.endswith(" ") and not words.startswith(" "):
                end = before.end
                # Drawn one after the other without a blank they are one word, unless plainly apart.
                if not (piece.number == before.number + 1 and piece.x - end < 0.6 * piece.size):
                    text += " "
            if text.endswith(" "):
                words = words.lstrip()
            raised = (
                piece.size < 0.8 * main.size
                and piece.y > main.y + 0.15 * main.size
                and re.fullmatch(r"\s*(?:\d{1,3}|[*†‡§]+)\s*", words)
            )
            if raised and text.strip():
                spans.append(Span(len(text), len(text) + len(words.rstrip()), "skip", "note mark"))
            text += words
            before = piece
        lead = len(text) - len(text.lstrip())
        text = text.strip()
        if not text:
            continue
        spans = [Span(s.start - lead, min(s.end - lead, len(text)), s.role, s.value) for s in spans]
        last = row[-1]
        lines.append(
            Line(
                row[0].x,
                main.y,
                main.size,
                text,
                bool(re.search(r"bold|black|heavy|semibold", main.font, re.I)),
                page,
                column,
                spans,
                last.end,
            )
        )
    return lines
