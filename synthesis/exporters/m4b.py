"""M4B: one AAC file for listeners, with chapters, cover and tags as Apple's players and Audiobookshelf read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av

from synthesis.audio.meter import levels_read
from synthesis.audio.render import Mastering, OpenClip, book_gain_db, chapter_render
from synthesis.audio.timeline import RATE_HZ, BookPlan, PlacedChapter, Timeline, samples_ms
from synthesis.exporters import mp4
from synthesis.exporters.aac import FRAME, PRIMING, aac_packets
from synthesis.exporters.base import (
    ExportFacts,
    FileFacts,
    Progress,
    atomic_file,
    people,
    plan_check,
    title_clean,
    year_of,
)

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
                self._encode(raw, line, open_clip, gain, progress)
                mp4.finish(
                    raw,
                    part,
                    brand=b"M4B ",
                    compatible=(b"M4B ", b"M4A ", b"mp42", b"isom"),
                    tags=book_tags(plan),
                )
            finally:
                raw.unlink(missing_ok=True)
            levels = None
            if self.measure_result:
                with part.open("rb") as file:
                    levels = levels_read(file)
            size = part.stat().st_size
        progress(1.0)
        return ExportFacts(
            duration_ms=line.duration_ms,
            bytes=size,
            chapters=len(line.chapters),
            gain_db=gain,
            loudness_lufs=levels.lufs if levels else None,
            true_peak_dbtp=levels.true_peak_db if levels else None,
            rms_db=levels.rms_db if levels else None,
            files=(FileFacts(out.name, size, line.duration_ms, plan.title),),
            notes=tuple(notes),
        )

    def _encode(
        self, path: Path, line: Timeline, open_clip: OpenClip, gain_db: float, progress: Progress
    ) -> None:
        """Write sound and chapters; tags, brand and faststart follow in mp4.finish."""
        flags = "disable_chpl" if len(line.chapters) > MAX_NERO_CHAPTERS else ""
        options = {"movflags": flags, "fflags": "+bitexact"} if flags else {"fflags": "+bitexact"}
        with av.open(str(path), "w", format="ipod", options=options) as container:
            stream = container.add_stream("aac", rate=RATE_HZ, layout="mono", format="fltp")
            stream.bit_rate = self.bit_rate
            stream.time_base = _TIME_BASE
            container.set_chapters(cast(list[Any], chapter_list(line)))  # PyAV's type is no public name
            total = line.samples // FRAME + 1
            for number, data in enumerate(self._packets(line, open_clip, gain_db)):
                packet = av.Packet(data)
                packet.stream = stream
                packet.time_base = _TIME_BASE
                packet.pts = packet.dts = number * FRAME - PRIMING
                packet.duration = FRAME
                packet.is_keyframe = True
                container.mux_one(packet)
                if number % 430 == 0:  # about ten seconds of sound
                    progress(_ENCODED_SHARE * number / total)

    def _packets(self, line: Timeline, open_clip: OpenClip, gain_db: float) -> Iterator[bytes]:
        """Yield the packets of all chapters as one stream."""
        for chapter in line.chapters:
            packets = self._chapter_packets(chapter, open_clip, gain_db)
            if chapter.index:
                next(packets)  # its place is taken by the last packet of the chapter before
            yield from packets

    def _chapter_packets(
        self, chapter: PlacedChapter, open_clip: OpenClip, gain_db: float
    ) -> Iterator[bytes]:
        blocks = chapter_render(chapter, open_clip=open_clip, gain_db=gain_db, mastering=self.mastering)
        return aac_packets(blocks, self.bit_rate)


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
