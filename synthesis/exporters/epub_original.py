"""Media Overlays in the book's own EPUB 3: its text, markup, pictures and styles stay; only spans and sound come in.

Every line of the plan is looked for in the original's text, in reading order, by its letters and digits alone (white
space, soft hyphens and typographic marks differ between a manuscript and what was read). Where a sentence crosses
inline markup, the markup is parted in two; where it crosses blocks it is left alone. What is not found is listed:
a line that was edited in the studio is not in the original.
"""

from __future__ import annotations

import copy
import html.entities
import posixpath
import re
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

from lxml import etree

from synthesis.audio.render import Mastering, OpenClip
from synthesis.audio.timeline import BookPlan, PlacedLine, Timeline, samples_ms
from synthesis.exporters.base import (
    ZIP_EPOCH,
    ExportFacts,
    ExportRefused,
    FileFacts,
    Progress,
    atomic_file,
    file_sha256,
    plan_check,
    title_clean,
    zip_add,
)
from synthesis.exporters.epub_overlay import ACTIVE_CLASS, PLAYBACK_CLASS
from synthesis.exporters.fileset import FileSet
from synthesis.exporters.mp3 import mp3_encoding
from synthesis.exporters.renders import RenderStore

_XHTML = "http://www.w3.org/1999/xhtml"
_OPF = "http://www.idpf.org/2007/opf"
_CONTAINER = "urn:oasis:names:tc:opendocument:xmlns:container"
_NS = {"h": _XHTML, "o": _OPF, "c": _CONTAINER}
_INLINE = {
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q",
    "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var",
}  # fmt: skip
_BETWEEN = _INLINE | {"br", "img", "wbr", "rb", "rt", "rp", "rtc"}  # what may stand inside a sentence
_SILENT = {"script", "style", "head", "rt", "rp", "template", "math", "svg"}
_NEAR = 4_000  # letters within which a short line ("No.") is looked for
_SHORT = 12  # letters; a longer line is looked for in all that follows
_END = 12  # letters by which a line's beginning and end are known
_MARKER = "{urn:voiceproject}marker"
_CSS = f".{ACTIVE_CLASS} {{ background-color: #ffe9a8; color: #000; }}\n.{PLAYBACK_CLASS} {{ color: inherit; }}\n"


@dataclass(slots=True)
class _Text:
    """A content document as letters: where each stands in the tree."""

    path: str  # in the archive
    tree: etree._ElementTree
    letters: str
    places: list[tuple[etree._Element, str, int]]  # element, "text" or "tail", offset


@dataclass(slots=True)
class _Found:
    """A line's place: letters [start, end) of a document."""

    text: _Text
    start: int
    end: int
    placed: PlacedLine
    chapter: int
    origin: int  # sample at which the chapter begins


@dataclass(frozen=True, slots=True)
class EpubOriginalExporter:
    """The original EPUB, reading itself aloud. `original` opens it."""

    original: Callable[[], BinaryIO]
    mastering: Mastering = field(default_factory=Mastering)
    bit_rate: int = 96_000
    modified: datetime | None = None
    name: str = "epub_original"
    label: str = "The original EPUB with read-aloud"
    extension: str = ".epub"
    mime: str = "application/epub+zip"
    is_set: bool = False
    store: RenderStore | None = None

    def export(
        self,
        plan: BookPlan,
        *,
        open_clip: OpenClip,
        out: Path,
        progress: Progress,
        gain_db: float | None = None,
    ) -> ExportFacts:
        """Write the EPUB. See base.Exporter. Raises ExportRefused for an original that is no EPUB 3."""
        line, notes = plan_check(plan)
        folder = out.with_name(f".{out.name}.audio")
        with self.original() as source, zipfile.ZipFile(source) as archive:
            package_path, package = _package(archive)
            texts = list(_texts(archive, package_path, package))
            found, lost = _match(line, texts)
            spoken = _wrap(texts, found, lost)
            if not spoken:
                raise ExportRefused("text_not_found", "No line of this book was found in the original EPUB.")
            notes += _differences(lost, line)
            made = FileSet(mp3_encoding(self.bit_rate), ".mp3", self.mastering, store=self.store)
            try:
                facts = made.export(
                    plan,
                    open_clip=open_clip,
                    out=folder,
                    progress=lambda p: progress(0.97 * p),
                    gain_db=gain_db,
                )
                sounds = {f"{_audio(number)}": folder / f.name for number, f in enumerate(facts.files)}
                used = {_audio(item.chapter) for item, _ in spoken}
                modified = self.modified or datetime.now(UTC)
                _package_extend(package, package_path, spoken, sorted(used), plan, modified)
                with atomic_file(out) as part, zipfile.ZipFile(part, "w", allowZip64=True) as target:
                    _copy(archive, target, package_path, package, texts, spoken, {n: sounds[n] for n in used})
            finally:
                if folder.is_dir():
                    for path in folder.iterdir():
                        path.unlink()
                    folder.rmdir()
        size = out.stat().st_size
        progress(1.0)
        return ExportFacts(
            facts.duration_ms,
            size,
            facts.chapters,
            facts.gain_db,
            facts.loudness_lufs,
            facts.true_peak_dbtp,
            facts.rms_db,
            (FileFacts(out.name, size, facts.duration_ms, plan.title, sha256=file_sha256(out)),),
            (*facts.notes, *(n for n in notes if n not in facts.notes)),
        )


def _parser() -> etree.XMLParser:
    """Return a parser that loads nothing from outside and expands no entities of the document's own."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True
    )


def _package(archive: zipfile.ZipFile) -> tuple[str, etree._Element]:
    """Return the package document's path and root. Raises ExportRefused."""
    try:
        container = etree.fromstring(archive.read("META-INF/container.xml"), _parser())
        path = container.find(".//c:rootfile", _NS).get("full-path")
        package = etree.fromstring(archive.read(path), _parser())
    except (KeyError, AttributeError, etree.XMLSyntaxError, zipfile.BadZipFile) as exc:
        raise ExportRefused("not_an_epub", "The original is not an EPUB that can be read.") from exc
    if not package.get("version", "").startswith("3"):
        raise ExportRefused(
            "original_not_epub3",
            "The original is an EPUB 2, which knows no read-aloud; export the studio's EPUB 3.",
        )
    return path, package


def _texts(archive: zipfile.ZipFile, package_path: str, package: etree._Element) -> Iterator[_Text]:
    """Yield the content documents in reading order."""
    base = posixpath.dirname(package_path)
    items = {item.get("id"): item for item in package.iterfind(".//o:manifest/o:item", _NS)}
    for ref in package.iterfind(".//o:spine/o:itemref", _NS):
        item = items.get(ref.get("idref"))
        if item is None or item.get("media-type") != "application/xhtml+xml" or item.get("media-overlay"):
            continue
        path = posixpath.normpath(posixpath.join(base, unquote(item.get("href", ""))))
        try:
            data = archive.read(path)
        except KeyError:
            continue
        tree = etree.ElementTree(etree.fromstring(_entities(data), _parser()))
        body = tree.getroot().find("h:body", _NS) if tree.getroot() is not None else None
        if body is None:
            continue
        letters: list[str] = []
        places: list[tuple[etree._Element, str, int]] = []
        for element, where, text in _strings(body):
            for offset, char in enumerate(text):
                for key in _key(char):
                    letters.append(key)
                    places.append((element, where, offset))
        yield _Text(path, tree, "".join(letters), places)


def _entities(data: bytes) -> bytes:
    """Return XHTML with HTML's named entities as numbers: no DTD is loaded that would explain them."""

    def number(match: re.Match[bytes]) -> bytes:
        name = match.group(1).decode()
        code = html.entities.name2codepoint.get(name)
        return match.group() if code is None or name in ("amp", "lt", "gt", "quot") else f"&#{code};".encode()

    return re.sub(rb"&([A-Za-z][A-Za-z0-9]{1,31});", number, data)


def _strings(element: etree._Element) -> Iterator[tuple[etree._Element, str, str]]:
    """Yield the text nodes below an element in document order; not those that nobody reads."""
    if element.text:
        yield element, "text", element.text
    for child in element:
        if isinstance(child.tag, str) and etree.QName(child).localname not in _SILENT:
            yield from _strings(child)
        if child.tail:
            yield child, "tail", child.tail


def _key(text: str) -> str:
    """Return a text's letters and digits, compatibility forms folded: what two writings of it have in common."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _match(line: Timeline, texts: list[_Text]) -> tuple[list[_Found], list[PlacedLine]]:
    """Find each line, in order. Return what was found and which lines were not."""
    found: list[_Found] = []
    lost: list[PlacedLine] = []
    at_text, at = 0, 0
    for chapter in line.chapters:
        for placed in chapter.lines:
            key = _key(placed.line.text)
            if not key or placed.end <= placed.start:
                continue
            place = _search(texts, at_text, at, key) or _search_ends(texts, at_text, at, key)
            if place is None:
                lost.append(placed)
                continue
            at_text, start, at = place
            found.append(_Found(texts[at_text], start, at, placed, chapter.index, chapter.start))
    return found, lost


def _search(texts: list[_Text], text: int, start: int, key: str) -> tuple[int, int, int] | None:
    """Return (document, first letter, end) of the first occurrence from a position on; a short key only near by."""
    for number in range(text, len(texts)):
        begin = start if number == text else 0
        end = begin + _NEAR if len(key) < _SHORT else len(texts[number].letters)
        place = texts[number].letters.find(key, begin, end)
        if place >= 0:
            return number, place, place + len(key)
        if len(key) < _SHORT and len(texts[number].letters) - begin > _NEAR:
            return None
    return None


def _search_ends(texts: list[_Text], text: int, start: int, key: str) -> tuple[int, int, int] | None:
    """Find a line by its beginning and its end: a page number or a note's mark stands within it, or it was edited."""
    if len(key) < 3 * _END:
        return None
    for number in range(text, min(text + 2, len(texts))):
        letters = texts[number].letters
        begin = start if number == text else 0
        first = letters.find(key[:_END], begin, begin + _NEAR)
        if first < 0:
            continue
        reach = first + len(key) + max(len(key) // 5, 24)
        last = letters.find(key[-_END:], first + len(key) - max(len(key) // 5, 24), reach)
        if last >= 0:
            return number, first, last + _END
    return None


def _wrap(texts: list[_Text], found: list[_Found], lost: list[PlacedLine]) -> list[tuple[_Found, str]]:
    """Put a span around every found line; return them with their ids, in order."""
    taken = {text.path: {e.get("id") for e in text.tree.getroot().iter() if e.get("id")} for text in texts}
    done: list[tuple[_Found, str]] = []
    for number in range(len(found) - 1, -1, -1):  # from the end: what lies before keeps its place
        item = found[number]
        identifier = f"vp{number + 1}"
        while identifier in taken[item.text.path]:
            identifier += "x"
        if _span(item, identifier):
            done.append((item, identifier))
        else:
            lost.append(item.placed)
    return done[::-1]


def _span(item: _Found, identifier: str) -> bool:
    """Wrap one line; False, and nothing changed that could be seen, where blocks are crossed."""
    first, last = item.text.places[item.start], item.text.places[item.end - 1]
    start, end = _grown(first, last)
    start, end = _outside_ruby(start, at_end=False), _outside_ruby(end, at_end=True)
    ancestor = _common(_holder(*start[:2]), _holder(*end[:2]))
    for holder in (_holder(*start[:2]), _holder(*end[:2])):
        while holder is not ancestor:
            if _local(holder) not in _INLINE:
                return False
            holder = holder.getparent()
    if not _only_inline(ancestor, _child_of(ancestor, start), _child_of(ancestor, end)):
        return False
    after = _insert(*end)
    before = _insert(*start)
    _lift(after, ancestor)
    _lift(before, ancestor)
    span = etree.Element(f"{{{_XHTML}}}span", {"id": identifier})
    span.text = before.tail
    node = before.getnext()
    while node is not after:
        following = node.getnext()
        span.append(node)
        node = following
    span.tail = after.tail
    ancestor.replace(before, span)
    span.tail = after.tail
    after.tail = None
    ancestor.remove(after)
    return True


def _grown(
    first: tuple[etree._Element, str, int], last: tuple[etree._Element, str, int]
) -> tuple[tuple[etree._Element, str, int], tuple[etree._Element, str, int]]:
    """Return the range with the punctuation that clings to its ends; the end is exclusive."""
    element, where, offset = first
    text = getattr(element, where)
    while offset > 0 and not text[offset - 1].isalnum() and not text[offset - 1].isspace():
        if (
            unicodedata.category(text[offset - 1]) not in ("Ps", "Pi", "Pd", "Po")
            or text[offset - 1] in ".,;:!?…"
        ):
            break
        offset -= 1
    start = (element, where, offset)
    element, where, offset = last
    text = getattr(element, where)
    offset += 1
    while offset < len(text) and not text[offset].isalnum() and not text[offset].isspace():
        if unicodedata.category(text[offset]) in ("Ps", "Pi"):
            break
        offset += 1
    return start, (element, where, offset)


def _outside_ruby(place: tuple[etree._Element, str, int], *, at_end: bool) -> tuple[etree._Element, str, int]:
    """Return a place inside a ruby as one before or after it: a word and its reading are never parted."""
    holder = _holder(*place[:2])
    rubies = [e for e in (holder, *holder.iterancestors()) if _local(e) == "ruby"]
    if not rubies:
        return place
    ruby = rubies[-1]
    if at_end:
        return ruby, "tail", 0
    before, parent = ruby.getprevious(), ruby.getparent()
    if before is not None:
        return before, "tail", len(before.tail or "")
    return parent, "text", len(parent.text or "")


def _holder(element: etree._Element, where: str) -> etree._Element:
    """Return the element whose content a text node is."""
    return element if where == "text" else element.getparent()


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname if isinstance(element.tag, str) else ""


def _common(one: etree._Element, two: etree._Element) -> etree._Element:
    """Return the nearest element that holds both."""
    above = [one, *one.iterancestors()]
    holder = two
    while holder not in above:
        holder = holder.getparent()
    return holder


def _child_of(ancestor: etree._Element, place: tuple[etree._Element, str, int]) -> int:
    """Return twice the index of the ancestor's child in which a place lies, one more behind it; -1 = before all."""
    element, where, _ = place
    if element is ancestor and where == "text":
        return -1
    behind = where == "tail" and element.getparent() is ancestor
    while element.getparent() is not ancestor:
        element = element.getparent()
    return 2 * ancestor.index(element) + behind


def _only_inline(ancestor: etree._Element, first: int, last: int) -> bool:
    """Tell whether nothing between two places, as _child_of counts them, is a block."""
    return all(
        not isinstance(element.tag, str) or _local(element) in _BETWEEN
        for child in ancestor[(first + 1) // 2 : last // 2 + 1]
        for element in child.iter()
    )


def _insert(element: etree._Element, where: str, offset: int) -> etree._Element:
    """Put a marker into a text node."""
    marker = etree.Element(_MARKER)
    text = getattr(element, where) or ""
    marker.tail = text[offset:]
    if where == "text":
        element.text = text[:offset]
        element.insert(0, marker)
    else:
        element.tail = None
        element.addnext(marker)
        element.tail = text[:offset]
    return marker


def _lift(marker: etree._Element, ancestor: etree._Element) -> None:
    """Bring a marker up to the ancestor, parting the inline elements it stood in."""
    while (parent := marker.getparent()) is not ancestor:
        before = bool(parent.text) or marker.getprevious() is not None
        after = bool(marker.tail) or marker.getnext() is not None
        tail, parent.tail = parent.tail, None
        if not before:  # nothing stands before it: it may as well stand before the element
            rest, marker.tail = marker.tail, None
            parent.text = rest
            parent.addprevious(marker)
            parent.tail = tail
            continue
        if after:
            second = etree.Element(
                parent.tag, {k: v for k, v in parent.attrib.items() if k != "id"}, parent.nsmap
            )
            second.text = marker.tail
            for node in list(marker.itersiblings()):
                second.append(node)
            marker.tail = None
            parent.addnext(marker)
            marker.addnext(second)
            second.tail = tail
        else:
            marker.tail = None
            parent.addnext(marker)
            marker.tail = tail


def _differences(lost: list[PlacedLine], line: Timeline) -> list[str]:
    """Return notes on the lines that are heard but not lit."""
    if not lost:
        return []
    order = {id(placed): number for number, placed in enumerate(line.lines())}
    ordered = sorted(lost, key=lambda placed: order[id(placed)])
    shown = [f"“{title_clean(placed.line.text)[:80]}”" for placed in ordered[:20]]
    more = f" and {len(ordered) - 20} more" if len(ordered) > 20 else ""
    return [
        f"{len(ordered)} lines are not in the original's text and have no place in it: {', '.join(shown)}{more}"
    ]


def _audio(chapter: int) -> str:
    return f"vp-c{chapter + 1:04d}.mp3"


def _clip(item: _Found) -> tuple[int, int]:
    begin = samples_ms(item.placed.start - item.origin)
    return begin, max(samples_ms(item.placed.end - item.origin), begin + 1)


def _clock(ms: int) -> str:
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def _smil(path: str, body: str, audio_folder: str, items: list[tuple[_Found, str]]) -> str:
    """Return one document's overlay; it stands beside the document."""
    name, here = posixpath.basename(path), posixpath.dirname(path)
    pars = []
    for item, identifier in items:
        begin, end = _clip(item)
        source = posixpath.relpath(posixpath.join(audio_folder, _audio(item.chapter)), here or ".")
        pars.append(
            f'<par id="p-{identifier}"><text src="{_href(name)}#{identifier}"/><audio src="{_href(source)}" '
            f'clipBegin="{begin // 1000}.{begin % 1000:03d}s" clipEnd="{end // 1000}.{end % 1000:03d}s"/></par>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<smil xmlns="http://www.w3.org/ns/SMIL" xmlns:epub="http://www.idpf.org/2007/ops" version="3.0">\n'
        f'<body>\n<seq id="vp-seq" epub:textref="{_href(name)}#{body}">\n'
        + "\n".join(pars)
        + "\n</seq>\n</body>\n</smil>\n"
    )


def _href(path: str) -> str:
    """Return a path as it stands in an attribute."""
    return re.sub(r"[^A-Za-z0-9._~/-]", lambda m: "".join(f"%{b:02X}" for b in m.group().encode()), path)


def _package_extend(
    package: etree._Element,
    package_path: str,
    spoken: list[tuple[_Found, str]],
    sounds: list[str],
    plan: BookPlan,
    modified: datetime,
) -> None:
    """Enter overlays, sound and durations into the package document."""
    base = posixpath.dirname(package_path)
    metadata, manifest = package.find("o:metadata", _NS), package.find("o:manifest", _NS)

    def meta(name: str, value: str, refines: str = "") -> None:
        attributes = {"property": name} | ({"refines": refines} if refines else {})
        etree.SubElement(metadata, f"{{{_OPF}}}meta", attributes).text = value

    by_path = _by_path(spoken)
    total = 0
    for old in metadata.findall("o:meta", _NS):
        if old.get("property") in ("dcterms:modified", "media:duration", "media:active-class") or old.get(
            "property"
        ) in ("media:playback-active-class", "media:narrator"):
            metadata.remove(old)
    for item in list(manifest.findall("o:item", _NS)):
        path = posixpath.normpath(posixpath.join(base, unquote(item.get("href", ""))))
        if path not in by_path:
            continue
        identifier = f"vp-overlay-{len(manifest)}"
        item.set("media-overlay", identifier)
        length = sum(end - begin for begin, end in (_clip(found) for found, _ in by_path[path]))
        total += length
        href = posixpath.relpath(path + ".smil", base or ".")
        etree.SubElement(
            manifest,
            f"{{{_OPF}}}item",
            {"id": identifier, "href": _href(href), "media-type": "application/smil+xml"},
        )
        meta("media:duration", _clock(length), f"#{identifier}")
    for number, name in enumerate(sounds):
        etree.SubElement(
            manifest,
            f"{{{_OPF}}}item",
            {"id": f"vp-audio-{number}", "href": f"vp-audio/{name}", "media-type": "audio/mpeg"},
        )
    etree.SubElement(
        manifest,
        f"{{{_OPF}}}item",
        {"id": "vp-css", "href": "vp-audio/overlay.css", "media-type": "text/css"},
    )
    meta("media:duration", _clock(total))
    meta("media:active-class", ACTIVE_CLASS)
    meta("media:playback-active-class", PLAYBACK_CLASS)
    if plan.narrator.strip():
        meta("media:narrator", title_clean(plan.narrator))
    meta("dcterms:modified", f"{modified.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}")


def _by_path(spoken: list[tuple[_Found, str]]) -> dict[str, list[tuple[_Found, str]]]:
    """Return the wrapped lines by document."""
    grouped: dict[str, list[tuple[_Found, str]]] = {}
    for item, identifier in spoken:
        grouped.setdefault(item.text.path, []).append((item, identifier))
    return grouped


def _copy(
    archive: zipfile.ZipFile,
    target: zipfile.ZipFile,
    package_path: str,
    package: etree._Element,
    texts: list[_Text],
    spoken: list[tuple[_Found, str]],
    sounds: dict[str, Path],
) -> None:
    """Write the new archive: everything of the old one, the changed documents, overlays and sound."""
    base = posixpath.dirname(package_path)
    folder = posixpath.join(base, "vp-audio")
    by_path = _by_path(spoken)
    changed = {package_path: _xml(etree.ElementTree(package))}
    for text in texts:
        if text.path not in by_path:
            continue
        head = text.tree.getroot().find("h:head", _NS)
        if head is not None:
            href = posixpath.relpath(
                posixpath.join(folder, "overlay.css"), posixpath.dirname(text.path) or "."
            )
            link = {"rel": "stylesheet", "type": "text/css", "href": _href(href)}
            etree.SubElement(head, f"{{{_XHTML}}}link", link)
        body = text.tree.getroot().find("h:body", _NS)
        if not body.get("id"):
            taken = {e.get("id") for e in text.tree.getroot().iter() if e.get("id")}
            body.set("id", next(f"vp-body{n}" for n in range(len(taken) + 1) if f"vp-body{n}" not in taken))
        changed[text.path] = _xml(text.tree)
    target.writestr(zipfile.ZipInfo("mimetype", ZIP_EPOCH), "application/epub+zip")  # first, and stored
    for info in archive.infolist():
        if info.filename == "mimetype" or info.is_dir():
            continue
        entry = copy.copy(info)
        entry.compress_type = zipfile.ZIP_DEFLATED
        target.writestr(entry, changed.get(info.filename) or archive.read(info))
    for path, items in by_path.items():
        body = items[0][0].text.tree.getroot().find("h:body", _NS).get("id")
        zip_add(target, path + ".smil", _smil(path, body, folder, items))
    zip_add(target, posixpath.join(folder, "overlay.css"), _CSS)
    for name, sound in sounds.items():
        zip_add(target, posixpath.join(folder, name), sound)


def _xml(tree: etree._ElementTree) -> bytes:
    return etree.tostring(tree, xml_declaration=True, encoding="UTF-8")
