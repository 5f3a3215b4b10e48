"""MP3, one file a chapter, as shops take them: constant bit rate, mono, never joint stereo, ID3 with chapters."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from synthesis.audio.render import Mastering, OpenClip
from synthesis.audio.timeline import BookPlan, PlacedChapter, Timeline, samples_ms
from synthesis.exporters import id3
from synthesis.exporters.base import ExportFacts, Progress, language_3, people, title_clean, year_of
from synthesis.exporters.encode import Encoding
from synthesis.exporters.fileset import FileSet
from synthesis.exporters.names import chapter_label
from synthesis.exporters.renders import RenderStore


@dataclass(frozen=True, slots=True)
class Mp3Exporter:
    """A folder of MP3 files."""

    mastering: Mastering = field(default_factory=lambda: Mastering(target_lufs=-20.0, ceiling_dbtp=-3.5))
    bit_rate: int = 192_000
    naming: str = "numbered"
    rms_window: tuple[float, float] | None = None
    name: str = "mp3"
    label: str = "MP3, one file a chapter"
    extension: str = ""
    mime: str = "audio/mpeg"
    is_set: bool = True
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
        """Write the set into the folder `out`. See base.Exporter."""
        made = FileSet(
            encoding=mp3_encoding(self.bit_rate),
            extension=".mp3",
            mastering=self.mastering,
            naming=self.naming,
            header=mp3_tag,
            rms_window=self.rms_window,
            store=self.store,
        )
        return made.export(plan, open_clip=open_clip, out=out, progress=progress, gain_db=gain_db)


def mp3_encoding(bit_rate: int) -> Encoding:
    """Return LAME's settings: constant rate, no bit reservoir games with joint stereo, gapless notes in front."""
    return Encoding(
        muxer="mp3",
        codec="libmp3lame",
        sample_format="fltp",
        bit_rate=bit_rate,
        codec_options={"joint_stereo": "0", "abr": "0"},
        muxer_options={"id3v2_version": "0", "write_xing": "1"},
    )


def mp3_tag(plan: BookPlan, line: Timeline, chapter: PlacedChapter) -> bytes:
    """Return a chapter file's ID3 tag."""
    title, authors = title_clean(plan.title), people(plan.authors)
    language = language_3(plan.language)
    cover = b""
    if plan.cover:
        cover = id3.picture(plan.cover, "image/png" if plan.cover.startswith(b"\x89PNG") else "image/jpeg")
    return id3.tag(
        id3.text("TIT2", chapter_label(chapter)),
        id3.text("TALB", title),
        id3.text("TPE1", authors),
        id3.text("TPE2", authors),
        id3.text("TCOM", title_clean(plan.narrator)),
        id3.text("TIT3", title_clean(plan.subtitle)),
        id3.text("TRCK", f"{chapter.index + 1}/{len(line.chapters)}"),
        id3.text("TPOS", "1/1"),
        id3.text("TYER", year_of(plan)),
        id3.text("TCON", title_clean(plan.genre)),
        id3.text("TPUB", title_clean(plan.publisher)),
        id3.text("TCOP", title_clean(plan.copyright)),
        id3.text("TLAN", language),
        id3.user_text("NARRATOR", title_clean(plan.narrator)),
        id3.user_text("SERIES", title_clean(plan.series)),
        id3.user_text("SERIES-PART", title_clean(plan.series_position)),
        id3.user_text("ISBN", plan.isbn),
        id3.user_text("TRANSLATOR", title_clean(plan.translator)),
        id3.comment(plan.description, language),
        id3.chapters(chapter_marks(chapter)),
        cover,
    )


def chapter_marks(chapter: PlacedChapter) -> list[id3.Chapter]:
    """Return the marks inside a chapter's file: the chapter, and every subheading that is spoken in it."""
    starts = [(0, chapter_label(chapter))]
    for placed in chapter.lines:
        at = samples_ms(placed.start - chapter.start)
        if placed.line.kind == "subheading" and placed.line.text and at > starts[-1][0]:
            starts.append((at, title_clean(placed.line.text)))
    ends = [start for start, _ in starts[1:]] + [samples_ms(chapter.samples)]
    return [id3.Chapter(title, start, end) for (start, title), end in zip(starts, ends, strict=True)]
