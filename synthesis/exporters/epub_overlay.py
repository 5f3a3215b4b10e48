"""EPUB 3 with Media Overlays: the text as printed, read aloud, each sentence lit while it is heard.

Made from the plan: one document, one overlay and one sound file a chapter. Sources: W3C "EPUB 3.3", chapter 9.
The sound is MP3 (a core media type), whose encoder delay decoders take off by its LAME notes.
"""

from __future__ import annotations

import uuid
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from synthesis.audio.render import Mastering, OpenClip
from synthesis.audio.timeline import BookPlan, PlacedChapter, PlacedLine, samples_ms
from synthesis.exporters.base import (
    ZIP_EPOCH,
    ExportFacts,
    FileFacts,
    Progress,
    atomic_file,
    file_sha256,
    plan_check,
    title_clean,
    year_of,
    zip_add,
)
from synthesis.exporters.fileset import FileSet
from synthesis.exporters.mp3 import mp3_encoding
from synthesis.exporters.renders import RenderStore
from synthesis.exporters.transcript import paragraphs

ACTIVE_CLASS = "-epub-media-overlay-active"
PLAYBACK_CLASS = "-epub-media-overlay-playing"
_CSS = f"""body {{ line-height: 1.5; margin: 1em; }}
h1, h2 {{ line-height: 1.2; }}
.scene {{ text-align: center; }}
.verse {{ margin: 0 0 0 2em; }}
.{ACTIVE_CLASS} {{ background-color: #ffe9a8; color: #000; }}
.{PLAYBACK_CLASS} {{ color: #444; }}
"""
# How a block of a kind is written: element, class, epub:type.
_ELEMENTS: dict[str, tuple[str, str, str]] = {
    "heading": ("h1", "", ""),
    "part_title": ("h1", "", ""),
    "subheading": ("h2", "", ""),
    "quote": ("blockquote", "", ""),
    "epigraph": ("blockquote", "", "epigraph"),
    "letter": ("blockquote", "", ""),
    "dedication": ("p", "", "dedication"),
    "verse": ("p", "verse", ""),
    "list_item": ("p", "", ""),
    "note": ("aside", "", "footnote"),
    "scene_break": ("p", "scene", ""),
}
# https://www.w3.org/TR/epub-ssv-11/: skippable ones a reader may pass over, escapable ones it may leave.
_SKIPPABLE = {"footnote"}


@dataclass(frozen=True, slots=True)
class EpubOverlayExporter:
    """One reflowable EPUB 3 that reads itself aloud."""

    mastering: Mastering = field(default_factory=Mastering)
    bit_rate: int = 96_000
    modified: datetime | None = None  # dcterms:modified; now, if not given
    name: str = "epub"
    label: str = "EPUB 3 with read-aloud"
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
        """Write the EPUB. See base.Exporter."""
        line, notes = plan_check(plan)
        folder = out.with_name(f".{out.name}.audio")
        made = FileSet(mp3_encoding(self.bit_rate), ".mp3", self.mastering, store=self.store)
        try:
            facts = made.export(
                plan, open_clip=open_clip, out=folder, progress=lambda p: progress(0.97 * p), gain_db=gain_db
            )
            modified = self.modified or datetime.now(UTC)
            with atomic_file(out) as part, zipfile.ZipFile(part, "w", allowZip64=True) as archive:
                archive.writestr(
                    zipfile.ZipInfo("mimetype", ZIP_EPOCH), "application/epub+zip"
                )  # first and stored
                for name, text in epub_texts(plan, line.chapters, facts.files, modified):
                    zip_add(archive, name, text)
                if plan.cover:
                    zip_add(archive, f"EPUB/{_cover(plan)[0]}", plan.cover)
                for chapter, file in zip(line.chapters, facts.files, strict=True):
                    zip_add(archive, f"EPUB/audio/{_id(chapter)}.mp3", folder / file.name)
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


def epub_texts(
    plan: BookPlan, chapters: tuple[PlacedChapter, ...], files: tuple[FileFacts, ...], modified: datetime
) -> Iterator[tuple[str, str]]:
    """Yield (name, contents) of everything in the EPUB that is text."""
    yield (
        "META-INF/container.xml",
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">\n<rootfiles>\n'
        '<rootfile full-path="EPUB/package.opf" media-type="application/oebps-package+xml"/>\n'
        "</rootfiles>\n</container>\n",
    )
    yield "EPUB/style.css", _CSS
    yield "EPUB/nav.xhtml", _nav(plan, chapters)
    for chapter in chapters:
        yield f"EPUB/{_id(chapter)}.xhtml", _document(plan, chapter)
        if overlay_lines(chapter):
            yield f"EPUB/{_id(chapter)}.smil", overlay(chapter)
    yield "EPUB/package.opf", _package(plan, chapters, modified)


def _id(chapter: PlacedChapter) -> str:
    return f"c{chapter.index + 1:04d}"


def overlay_lines(chapter: PlacedChapter) -> list[tuple[str, int, int, PlacedLine]]:
    """Return (id in the document, clip begin, clip end, line) of every line that is both seen and heard, times in ms.

    They come from the timeline, so they never overlap, and the end lies after the beginning.
    """
    found, last = [], 0
    for number, placed in enumerate(chapter.lines, start=1):
        begin = max(samples_ms(placed.start - chapter.start), last)
        end = samples_ms(placed.end - chapter.start)
        if placed.line.text.strip() and end > begin:
            found.append((f"s{number}", begin, end, placed))
            last = end
    return found


def overlay(chapter: PlacedChapter) -> str:
    """Return a chapter's overlay."""
    name = _id(chapter)
    pars = []
    for identifier, begin, end, placed in overlay_lines(chapter):
        kind = _ELEMENTS.get(placed.line.kind, ("p", "", ""))[2]
        role = f' epub:type="{kind}"' if kind in _SKIPPABLE else ""
        pars.append(
            f'<par id="p{identifier}"{role}><text src="{name}.xhtml#{identifier}"/>'
            f'<audio src="audio/{name}.mp3" clipBegin="{_seconds(begin)}" clipEnd="{_seconds(end)}"/></par>'
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<smil xmlns="http://www.w3.org/ns/SMIL" xmlns:epub="http://www.idpf.org/2007/ops" version="3.0">\n'
        f'<body>\n<seq id="seq1" epub:textref="{name}.xhtml#body" epub:type="bodymatter chapter">\n'
        + "\n".join(pars)
        + "\n</seq>\n</body>\n</smil>\n"
    )


def _seconds(ms: int) -> str:
    return f"{ms // 1000}.{ms % 1000:03d}s"


def _clock(ms: int) -> str:
    hours, rest = divmod(ms, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def _document(plan: BookPlan, chapter: PlacedChapter) -> str:
    """Return a chapter's text: a span with an id for each line."""
    numbers = {id(placed): f"s{number}" for number, placed in enumerate(chapter.lines, start=1)}
    blocks, has_heading = [], False
    for group in paragraphs(chapter):
        kind = group[0].line.kind
        element, class_, type_ = _ELEMENTS.get(kind, ("p", "", ""))
        has_heading = has_heading or kind in ("heading", "part_title")
        spans = []
        for at, placed in enumerate(group):
            language = placed.line.language
            lang = f' xml:lang="{escape(language)}" lang="{escape(language)}"' if language else ""
            text = escape(_printable(placed.line.text), quote=False)
            separator = escape(_printable(placed.line.separator), quote=False) if at < len(group) - 1 else ""
            spans.append(f'<span id="{numbers[id(placed)]}"{lang}>{text}</span>{separator}')
        attributes = (f' class="{class_}"' if class_ else "") + (f' epub:type="{type_}"' if type_ else "")
        inner = "".join(spans)
        if element in ("blockquote", "aside"):
            inner = f"<p>{inner}</p>"
        blocks.append(f"<{element}{attributes}>{inner}</{element}>")
    title = escape(title_clean(chapter.title), quote=False)
    if not has_heading and title:
        blocks.insert(0, f"<h1>{title}</h1>")
    language = escape(plan.language or "und")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'xml:lang="{language}" lang="{language}">\n<head>\n<title>{title or "Chapter"}</title>\n'
        '<link rel="stylesheet" type="text/css" href="style.css"/>\n</head>\n<body id="body">\n'
        + "\n".join(blocks)
        + "\n</body>\n</html>\n"
    )


def _printable(text: str) -> str:
    """Return text that XML 1.0 can hold; a line break is a blank."""
    kept = (" " if c in "\r\n\t" else c for c in text if c >= " " or c in "\r\n\t")
    return "".join(c for c in kept if c not in "\ufffe\uffff" and not "\ud800" <= c <= "\udfff")


def _nav(plan: BookPlan, chapters: tuple[PlacedChapter, ...]) -> str:
    language = escape(plan.language or "und")
    rows = "\n".join(
        f'<li><a href="{_id(c)}.xhtml">{escape(title_clean(c.title) or f"Chapter {c.index + 1}", quote=False)}</a></li>'
        for c in chapters
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n'
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" '
        f'xml:lang="{language}" lang="{language}">\n<head>\n<title>Contents</title>\n</head>\n<body>\n'
        f'<nav epub:type="toc" id="toc">\n<h1>Contents</h1>\n<ol>\n{rows}\n</ol>\n</nav>\n</body>\n</html>\n'
    )


def _package(plan: BookPlan, chapters: tuple[PlacedChapter, ...], modified: datetime) -> str:
    """Return the package document. The total duration is the exact sum of the overlays'."""
    durations = {c.index: sum(end - begin for _, begin, end, _ in overlay_lines(c)) for c in chapters}
    identifier = plan.identifier or f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, plan.title + '|' + plan.isbn)}"

    def element(tag: str, value: str, attributes: str = "") -> str:
        return (
            f"<{tag}{attributes}>{escape(_printable(value), quote=False)}</{tag}>\n" if value.strip() else ""
        )

    metadata = [
        f'<dc:identifier id="pub-id">{escape(identifier)}</dc:identifier>\n',
        element("dc:title", title_clean(plan.title) or "Untitled", ' id="title"'),
        element("dc:language", plan.language or "und"),
        *(element("dc:creator", title_clean(name)) for name in plan.authors),
        element("dc:publisher", title_clean(plan.publisher)),
        element("dc:date", year_of(plan)),
        element("dc:description", plan.description),
        element("dc:rights", title_clean(plan.copyright)),
        f'<meta property="dcterms:modified">{modified.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}</meta>\n',
        f'<meta property="media:duration">{_clock(sum(durations.values()))}</meta>\n',
        *(
            f'<meta property="media:duration" refines="#{_id(c)}-overlay">{_clock(durations[c.index])}</meta>\n'
            for c in chapters
            if durations[c.index]
        ),
        element("meta", title_clean(plan.narrator), ' property="media:narrator"'),
        f'<meta property="media:active-class">{ACTIVE_CLASS}</meta>\n',
        f'<meta property="media:playback-active-class">{PLAYBACK_CLASS}</meta>\n',
        *(f'<meta property="schema:accessMode">{mode}</meta>\n' for mode in ("textual", "auditory")),
        '<meta property="schema:accessModeSufficient">textual</meta>\n',
        '<meta property="schema:accessModeSufficient">auditory</meta>\n',
        *(
            f'<meta property="schema:accessibilityFeature">{feature}</meta>\n'
            for feature in (
                "synchronizedAudioText",
                "tableOfContents",
                "readingOrder",
                "structuralNavigation",
            )
        ),
        '<meta property="schema:accessibilityHazard">none</meta>\n',
        '<meta property="schema:accessibilitySummary">Every sentence is narrated and highlighted while it is heard.'
        "</meta>\n",
    ]
    if plan.translator.strip():
        metadata.append(element("dc:contributor", title_clean(plan.translator), ' id="translator"'))
        metadata.append('<meta refines="#translator" property="role" scheme="marc:relators">trl</meta>\n')
    if plan.series.strip():
        metadata.append(
            element("meta", title_clean(plan.series), ' property="belongs-to-collection" id="series"')
        )
        metadata.append('<meta refines="#series" property="collection-type">series</meta>\n')
        metadata.append(
            element("meta", title_clean(plan.series_position), ' refines="#series" property="group-position"')
        )
    manifest = [
        '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>\n',
        '<item id="css" href="style.css" media-type="text/css"/>\n',
    ]
    if plan.cover:
        name, mime = _cover(plan)
        manifest.append(f'<item id="cover" href="{name}" media-type="{mime}" properties="cover-image"/>\n')
    for chapter in chapters:
        name = _id(chapter)
        spoken = f' media-overlay="{name}-overlay"' if durations[chapter.index] else ""
        manifest.append(
            f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"{spoken}/>\n'
        )
        if spoken:
            manifest.append(
                f'<item id="{name}-overlay" href="{name}.smil" media-type="application/smil+xml"/>\n'
            )
        manifest.append(f'<item id="{name}-audio" href="audio/{name}.mp3" media-type="audio/mpeg"/>\n')
    spine = "".join(f'<itemref idref="{_id(c)}"/>\n' for c in chapters)
    language = escape(plan.language or "und")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="pub-id" '
        f'xml:lang="{language}" prefix="media: http://www.idpf.org/epub/vocab/overlays/#">\n'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">\n'
        + "".join(metadata)
        + "</metadata>\n<manifest>\n"
        + "".join(manifest)
        + f"</manifest>\n<spine>\n{spine}</spine>\n</package>\n"
    )


def _cover(plan: BookPlan) -> tuple[str, str]:
    is_png = (plan.cover or b"").startswith(b"\x89PNG")
    return ("cover.png", "image/png") if is_png else ("cover.jpg", "image/jpeg")
