"""W3C Audiobook in the Lightweight Packaging Format: a ZIP with `publication.json`, sound, cover and contents.

W3C Recommendation "Audiobooks" (10 November 2020, checked against the editor's text of 2023-06-20) and the Note
"Lightweight Packaging Format".
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from synthesis.audio.render import Mastering, OpenClip
from synthesis.audio.timeline import BookPlan, Timeline
from synthesis.exporters.base import (
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
from synthesis.exporters.mp3 import mp3_encoding, mp3_tag
from synthesis.exporters.renders import RenderStore


@dataclass(frozen=True, slots=True)
class LpfExporter:
    """One .lpf file with an MP3 a chapter."""

    mastering: Mastering = field(default_factory=Mastering)
    bit_rate: int = 128_000
    modified: datetime | None = None  # dateModified; now, if not given
    name: str = "lpf"
    label: str = "W3C Audiobook"
    extension: str = ".lpf"
    mime: str = "application/audiobook+zip"
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
        """Write the package. See base.Exporter."""
        line, notes = plan_check(plan)
        if not plan.cover:
            notes.append("There is no cover; the W3C format wants one.")
        folder = out.with_name(f".{out.name}.audio")
        made = FileSet(mp3_encoding(self.bit_rate), ".mp3", self.mastering, header=mp3_tag, store=self.store)
        try:
            facts = made.export(
                plan, open_clip=open_clip, out=folder, progress=lambda p: progress(0.97 * p), gain_db=gain_db
            )
            modified = self.modified or datetime.now(UTC)
            with atomic_file(out) as part, zipfile.ZipFile(part, "w", allowZip64=True) as archive:
                manifest = lpf_manifest(plan, line, facts.files, modified)
                zip_add(archive, "publication.json", json.dumps(manifest, ensure_ascii=False, indent=1))
                zip_add(archive, "index.html", lpf_index(plan, line, facts.files))
                if plan.cover:
                    zip_add(archive, f"cover.{_cover(plan)[0]}", plan.cover)
                for file in facts.files:
                    zip_add(archive, f"audio/{file.name}", folder / file.name)
        finally:
            _folder_gone(folder)
        size = out.stat().st_size
        progress(1.0)
        whole = FileFacts(out.name, size, facts.duration_ms, plan.title, sha256=file_sha256(out))
        return ExportFacts(
            facts.duration_ms,
            size,
            facts.chapters,
            facts.gain_db,
            facts.loudness_lufs,
            facts.true_peak_dbtp,
            facts.rms_db,
            (whole,),
            (*facts.notes, *(n for n in notes if n not in facts.notes)),
        )


def lpf_manifest(
    plan: BookPlan, line: Timeline, files: tuple[FileFacts, ...], modified: datetime
) -> dict[str, object]:
    """Return publication.json's contents: the sum of the items' durations is the book's, exactly."""
    language = plan.language or "und"
    items = [
        {
            "type": "LinkedResource",
            "url": f"audio/{file.name}",
            "encodingFormat": "audio/mpeg",
            "name": file.title,
            "duration": _duration(file.duration_ms),
        }
        for file in files
    ]
    resources: list[dict[str, object]] = [
        {"type": "LinkedResource", "rel": "contents", "url": "index.html", "encodingFormat": "text/html"}
    ]
    if plan.cover:
        extension, mime = _cover(plan)
        resources.insert(
            0,
            {
                "type": "LinkedResource",
                "rel": "cover",
                "url": f"cover.{extension}",
                "encodingFormat": mime,
                "name": "Cover",
            },
        )
    manifest: dict[str, object] = {
        "@context": ["https://schema.org", "https://www.w3.org/ns/pub-context", {"language": language}],
        "conformsTo": "https://www.w3.org/TR/audiobooks/",
        "type": "Audiobook",
        "id": plan.identifier
        or (f"urn:isbn:{plan.isbn}" if plan.isbn else f"urn:title:{title_clean(plan.title)}"),
        "url": "index.html",
        "name": title_clean(plan.title),
        "author": list(plan.authors) or ["Unknown"],
        "readBy": [plan.narrator] if plan.narrator else ["Unknown"],
        "inLanguage": language,
        "readingProgression": "ltr",
        "dateModified": modified.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "datePublished": year_of(plan) or f"{modified:%Y}",
        "duration": _duration(sum(file.duration_ms for file in files)),
        "abridged": plan.abridged,
        "accessMode": ["auditory"],
        "accessModeSufficient": [{"type": "ItemList", "itemListElement": ["auditory"]}],
        "accessibilityFeature": ["tableOfContents"],
        "accessibilityHazard": ["none"],
        "accessibilitySummary": "A narrated audiobook with a table of contents.",
        "readingOrder": items,
        "resources": resources,
    }
    if plan.publisher:
        manifest["publisher"] = plan.publisher
    if plan.translator:
        manifest["translator"] = plan.translator
    if plan.description:
        manifest["description"] = plan.description
    if plan.copyright:
        manifest["copyrightNotice"] = plan.copyright
    return manifest


def lpf_index(plan: BookPlan, line: Timeline, files: tuple[FileFacts, ...]) -> str:
    """Return the primary entry page with the table of contents."""
    title, language = escape(title_clean(plan.title)), escape(plan.language or "und")
    rows = "\n".join(f'<li><a href="audio/{escape(f.name)}">{escape(f.title)}</a></li>' for f in files)
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<link rel="publication" href="publication.json">\n</head>\n<body>\n'
        f'<h1>{title}</h1>\n<nav role="doc-toc">\n<ol>\n{rows}\n</ol>\n</nav>\n</body>\n</html>\n'
    )


def _duration(ms: int) -> str:
    """Return an ISO 8601 duration in seconds."""
    return f"PT{ms // 1000}.{ms % 1000:03d}S"


def _cover(plan: BookPlan) -> tuple[str, str]:
    is_png = (plan.cover or b"").startswith(b"\x89PNG")
    return ("png", "image/png") if is_png else ("jpg", "image/jpeg")


def _folder_gone(folder: Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
