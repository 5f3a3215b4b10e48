"""M4B: one AAC file for listeners, with chapters, cover and tags as Apple's players and Audiobookshelf read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np

from synthesis.audio.meter import Levels, blocks_measured, levels_joined
from synthesis.audio.render import Mastering, OpenClip, book_gain_db, chapter_render
from synthesis.audio.timeline import RATE_HZ, BookPlan, PlacedChapter, Timeline, samples_ms
from synthesis.exporters import mp4
from synthesis.exporters.aac import (
    FRAME,
    PRIMING,
    aac_decoded,
    aac_encoder,
    aac_packets,
    adts_read,
    adts_write,
)
from synthesis.exporters.base import (
    ExportFacts,
    FileFacts,
    Progress,
    atomic_file,
    file_sha256,
    language_3,
    people,
    plan_check,
    title_clean,
    year_of,
)
from synthesis.exporters.renders import RenderStore, render_key, rendered

MAX_NERO_CHAPTERS = 255  # the list counts in one byte
_MAX_TITLE_BYTES = 255  # so do its titles
_ENCODED_SHARE = 0.85  # of the work; the rest is the second pass and measuring
_TIME_BASE = Fraction(1, RATE_HZ)


@dataclass(frozen=True, slots=True)
class M4bExporter:
    """AAC-LC mono in MP4. Defaults: design table "Levels", column M4B."""

    mastering: Mastering = field(default_factory=Mastering)
    bit_rate: int = 96_000
    measure_result: bool = True
    store: RenderStore | None = None  # chapters rendered before
    name: str = "m4b"
    label: str = "M4B audiobook"
    extension: str = ".m4b"
    mime: str = "audio/mp4"
    is_set: bool = False

    def export(
        self,
        plan: BookPlan,
        *,
        open_clip: OpenClip,
        out: Path,
        progress: Progress,
        gain_db: float | None = None,
    ) -> ExportFacts:
        """Write the book as one M4B. See Exporter.export; `gain_db` replaces the book's measured gain."""
        line, notes = plan_check(plan)
        gain = book_gain_db(line, open_clip, self.mastering) if gain_db is None else gain_db
        if len(line.chapters) > MAX_NERO_CHAPTERS:
            notes.append(
                f"{len(line.chapters)} chapters: more than the {MAX_NERO_CHAPTERS} of the Nero list, so only the "
                "QuickTime chapter track is written."
            )
        with atomic_file(out) as part:
            raw = part.with_name(part.name + ".mp4")
            try:
                levels = levels_joined(self._write(raw, line, open_clip, gain, progress, plan.language))
                mp4.finish(
                    raw,
                    part,
                    brand=b"M4B ",
                    compatible=(b"M4B ", b"M4A ", b"mp42", b"isom"),
                    tags=book_tags(plan),
                )
            finally:
                raw.unlink(missing_ok=True)
            size, digest = part.stat().st_size, file_sha256(part)
        progress(1.0)
        return ExportFacts(
            duration_ms=line.duration_ms,
            bytes=size,
            chapters=len(line.chapters),
            gain_db=gain,
            loudness_lufs=levels.lufs if levels else None,
            true_peak_dbtp=levels.true_peak_db if levels else None,
            rms_db=levels.rms_db if levels else None,
            files=(FileFacts(out.name, size, line.duration_ms, plan.title, levels=levels, sha256=digest),),
            notes=tuple(notes),
        )

    def _write(
        self,
        path: Path,
        line: Timeline,
        open_clip: OpenClip,
        gain_db: float,
        progress: Progress,
        language: str,
    ) -> list[Levels]:
        """Write sound and chapters, return the chapters' measures; tags, brand and faststart follow in mp4.finish."""
        options = {"fflags": "+bitexact"}
        if len(line.chapters) > MAX_NERO_CHAPTERS:
            options["movflags"] = "disable_chpl"
        measured = []
        chapter_file = path.with_name(path.name + ".aac")
        with av.open(str(path), "w", format="ipod", options=options) as container:
            stream = container.add_stream("aac", rate=RATE_HZ, layout="mono", format="fltp")
            stream.bit_rate = self.bit_rate
            stream.time_base = _TIME_BASE
            stream.metadata["language"] = language_3(language)
            container.set_chapters(cast(list[Any], chapter_list(line)))  # PyAV's type is no public name
            number = 0
            try:
                for chapter in line.chapters:
                    levels = self._chapter(chapter_file, chapter, line, open_clip, gain_db, progress)
                    if levels:
                        measured.append(levels)
                    with chapter_file.open("rb") as file:
                        packets = adts_read(file)
                        if chapter.index:
                            next(packets)  # its place is taken by the last packet of the chapter before
                        for data in packets:
                            packet = av.Packet(data)
                            packet.stream = stream
                            packet.time_base = _TIME_BASE
                            packet.pts = packet.dts = number * FRAME - PRIMING
                            packet.duration = FRAME
                            packet.is_keyframe = True
                            container.mux_one(packet)
                            number += 1
                    progress(_ENCODED_SHARE * chapter.end / line.samples)
            finally:
                chapter_file.unlink(missing_ok=True)
        return measured

    def _chapter(
        self,
        path: Path,
        chapter: PlacedChapter,
        line: Timeline,
        open_clip: OpenClip,
        gain_db: float,
        progress: Progress,
    ) -> Levels | None:
        """Bring a chapter's packets to `path` as ADTS; return the measures of what they decode to."""

        def heard() -> Iterator[np.ndarray]:
            done = chapter.start
            blocks = chapter_render(chapter, open_clip=open_clip, gain_db=gain_db, mastering=self.mastering)
            for number, block in enumerate(blocks):
                yield block
                done += len(block)
                if number % 10 == 9:
                    progress(_ENCODED_SHARE * done / line.samples)

        def make(target: Path) -> Levels | None:
            with target.open("wb") as file:
                adts_write(file, aac_packets(heard(), self.bit_rate))
            if not self.measure_result:
                return None
            with target.open("rb") as file:
                return blocks_measured(
                    aac_decoded(adts_read(file), aac_encoder(self.bit_rate).extradata), RATE_HZ
                )

        encoding = {"codec": "aac", "bit_rate": self.bit_rate, "measured": self.measure_result}
        key = render_key(chapter, gain_db=gain_db, mastering=self.mastering, encoding=encoding)
        return rendered(path, key, self.store, make)


def chapter_list(line: Timeline) -> list[dict[str, Any]]:
    """Return the chapters as PyAV takes them. In whole ms: then both tables of the file say exactly the same."""
    return [
        {
            "id": chapter.index + 1,
            "time_base": Fraction(1, 1000),
            "start": samples_ms(chapter.start),
            "end": samples_ms(chapter.end),
            "metadata": {"title": chapter_title(chapter.title, chapter.index)},
        }
        for chapter in line.chapters
    ]


def chapter_title(title: str, index: int) -> str:
    """Return a title as chapter tables hold it: one line, at most 255 bytes, never empty."""
    clean = title_clean(title) or f"Chapter {index + 1}"
    raw = clean.encode()
    if len(raw) <= _MAX_TITLE_BYTES:
        return clean
    return raw[: _MAX_TITLE_BYTES - 3].decode(errors="ignore").rstrip() + "…"


def book_tags(plan: BookPlan) -> list[mp4.Tag]:
    """Return the tags. Audiobookshelf: author←artist, narrator←composer, series and sequence←freeform (its
    server/utils/prober.js); Apple: `stik` 2 is "Audiobook", `pgap` plays without gaps."""
    title, authors = title_clean(plan.title), people(plan.authors)
    tags: list[mp4.Tag] = []

    def text(name: bytes | str, value: str) -> None:
        if value.strip():
            tags.append(mp4.text_tag(name, value.strip()))

    text(b"\xa9nam", title)
    text(b"\xa9alb", title)
    text(b"\xa9ART", authors)
    text(b"aART", authors)
    text(b"\xa9wrt", title_clean(plan.narrator))
    text(b"\xa9nrt", title_clean(plan.narrator))
    text(b"\xa9pub", title_clean(plan.publisher))
    text(b"\xa9day", year_of(plan))
    text(b"\xa9gen", title_clean(plan.genre))
    text(b"desc", plan.description)
    text(b"ldes", plan.description)
    text(b"\xa9cmt", plan.description)
    text(b"cprt", "; ".join(x for x in (title_clean(plan.copyright), title_clean(plan.phonogram)) if x))
    series = title_clean(plan.series)
    if series:
        number = title_clean(plan.series_position)
        text(b"\xa9grp", f"{series} #{number}" if number else series)
        text("SERIES", series)
        text("SERIES-PART", number)
    text("SUBTITLE", title_clean(plan.subtitle))
    text("PUBLISHER", title_clean(plan.publisher))
    text("NARRATOR", title_clean(plan.narrator))
    text("TRANSLATOR", title_clean(plan.translator))
    text("ISBN", plan.isbn)
    text("LANGUAGE", plan.language)
    if plan.abridged:
        text("ABRIDGED", "yes")
    tags.append(mp4.Tag(b"stik", b"\x02", mp4.TYPE_INT))
    tags.append(mp4.Tag(b"pgap", b"\x01", mp4.TYPE_INT))
    if plan.explicit:
        tags.append(mp4.Tag(b"rtng", b"\x01", mp4.TYPE_INT))
    if plan.cover:
        is_png = plan.cover.startswith(b"\x89PNG")
        tags.append(mp4.Tag(b"covr", plan.cover, mp4.TYPE_PNG if is_png else mp4.TYPE_JPEG))
    return tags
