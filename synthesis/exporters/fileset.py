"""Sets: a folder with one sound file a chapter, each measured after encoding. MP3, FLAC, WAV and Opus share this."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from synthesis.audio.meter import Levels, levels_joined, levels_read
from synthesis.audio.render import Mastering, OpenClip, book_gain_db, chapter_render
from synthesis.audio.timeline import BookPlan, PlacedChapter, Timeline, samples_ms
from synthesis.exporters.base import (
    ExportFacts,
    FileFacts,
    Progress,
    atomic_folder,
    file_sha256,
    people,
    plan_check,
    title_clean,
    year_of,
)
from synthesis.exporters.encode import Encoding, encode
from synthesis.exporters.names import NAMINGS, chapter_label
from synthesis.exporters.renders import RenderStore, render_key, rendered

Header = Callable[[BookPlan, Timeline, PlacedChapter], bytes]
_CORRECTIONS = 2  # times the book's offset may be corrected before it is left to a person


@dataclass(frozen=True, slots=True)
class FileSet:
    """What a set is made like.

    With `rms_window`, (low, high) in dBFS, every file's RMS must lie in it *after encoding*: if one does not, the whole
    book's gain is corrected, at most twice; a single file is never treated apart.
    """

    encoding: Encoding
    extension: str
    mastering: Mastering = field(default_factory=Mastering)
    naming: str = "numbered"
    header: Header | None = None  # bytes in front of each file: its ID3 tag
    measure: bool = True
    rms_window: tuple[float, float] | None = None
    store: RenderStore | None = None  # chapters rendered before

    def export(
        self,
        plan: BookPlan,
        *,
        open_clip: OpenClip,
        out: Path,
        progress: Progress,
        gain_db: float | None = None,
    ) -> ExportFacts:
        """Write the set into the folder `out`, whole or not at all. See base.Exporter."""
        line, notes = plan_check(plan)
        gain = book_gain_db(line, open_clip, self.mastering) if gain_db is None else gain_db
        names = NAMINGS[self.naming](plan, line, self.extension)
        with atomic_folder(out) as folder:
            turn = 0
            while True:
                files = self._write(folder, names, plan, line, open_clip, gain, progress, turn)
                change = self._correction(files)
                if not change or turn == _CORRECTIONS:
                    break
                gain += change
                turn += 1
            if turn:
                notes.append(f"The book's gain was corrected {turn} times so that every file's RMS fits.")
            if change:
                low, high = self.rms_window or (0.0, 0.0)
                notes.append(
                    f"Not every file's RMS lies in {low:g} … {high:g} dB: the chapters differ too much."
                )
        progress(1.0)
        return set_facts(line, files, gain, notes)

    def _write(
        self,
        folder: Path,
        names: list[str],
        plan: BookPlan,
        line: Timeline,
        open_clip: OpenClip,
        gain: float,
        progress: Progress,
        turn: int,
    ) -> list[FileFacts]:
        """Encode and measure every chapter once."""
        files = []
        for chapter, name in zip(line.chapters, names, strict=True):
            path = folder / name
            levels = self._chapter(path, plan, line, chapter, open_clip, gain)
            files.append(
                FileFacts(
                    name=name,
                    bytes=path.stat().st_size,
                    duration_ms=samples_ms(chapter.samples),
                    title=chapter_label(chapter),
                    chapter_key=chapter.key,
                    kind=chapter.kind,
                    levels=levels,
                    sha256=file_sha256(path),
                )
            )
            done = chapter.end / line.samples
            begin, end = self._share(turn)
            progress(begin + (end - begin) * done)
        return files

    def _chapter(
        self,
        path: Path,
        plan: BookPlan,
        line: Timeline,
        chapter: PlacedChapter,
        open_clip: OpenClip,
        gain: float,
    ) -> Levels | None:
        """Write one file: its sound, from the store or made now, behind its tag."""
        tags = {} if self.header else chapter_tags(plan, line, chapter)

        def make(target: Path) -> Levels | None:
            blocks = chapter_render(chapter, open_clip=open_clip, gain_db=gain, mastering=self.mastering)
            with target.open("w+b") as file:
                encode(file, self.encoding, blocks, tags)
            if not self.measure:
                return None
            with target.open("rb") as file:
                return levels_read(file)

        sound = path.with_name(path.name + ".sound")
        encoding = {**asdict(self.encoding), "tags": sorted(tags.items()), "measured": self.measure}
        key = render_key(chapter, gain_db=gain, mastering=self.mastering, encoding=encoding)
        levels = rendered(sound, key, self.store, make)
        if self.header is None:
            sound.replace(path)
            return levels
        with path.open("wb") as file, sound.open("rb") as encoded:
            file.write(self.header(plan, line, chapter))
            shutil.copyfileobj(encoded, file, 1 << 20)
        sound.unlink()
        return levels

    def _share(self, turn: int) -> tuple[float, float]:
        """Return which part of the progress one turn is: where levels may be corrected, another may follow."""
        if self.rms_window is None:
            return 0.0, 0.99
        return ((0.0, 0.7), (0.7, 0.9), (0.9, 0.99))[turn]

    def _correction(self, files: list[FileFacts]) -> float:
        """Return the dB by which the whole book must move so that every file fits; 0 when it does.

        Where they cannot all fit, the middle of the extremes is as near as one offset gets.
        """
        levels = [file.levels.rms_db for file in files if file.levels]
        if self.rms_window is None or not levels:
            return 0.0
        low, high = self.rms_window
        softest, loudest = min(levels), max(levels)
        if softest >= low and loudest <= high:
            return 0.0
        if loudest - softest > high - low:
            change = (low + high) / 2 - (softest + loudest) / 2
            return change if abs(change) > 0.05 else 0.0
        room = min(0.3, (high - low - (loudest - softest)) / 2)  # do not land on the edge
        return (low + room - softest) if softest < low else (high - room - loudest)


def chapter_tags(plan: BookPlan, line: Timeline, chapter: PlacedChapter) -> dict[str, str]:
    """Return the tags of one chapter's file under FFmpeg's common names."""
    return {
        "title": chapter_label(chapter),
        "album": title_clean(plan.title),
        "artist": people(plan.authors),
        "album_artist": people(plan.authors),
        "composer": title_clean(plan.narrator),
        "track": f"{chapter.index + 1}/{len(line.chapters)}",
        "date": year_of(plan),
        "genre": title_clean(plan.genre),
        "publisher": title_clean(plan.publisher),
        "copyright": title_clean(plan.copyright),
        "language": plan.language,
    }


def set_facts(line: Timeline, files: list[FileFacts], gain: float, notes: list[str]) -> ExportFacts:
    """Return a set's facts: its measures as if the files were played one after the other."""
    levels = levels_joined([file.levels for file in files if file.levels])
    return ExportFacts(
        duration_ms=line.duration_ms,
        bytes=sum(file.bytes for file in files),
        chapters=len(line.chapters),
        gain_db=gain,
        loudness_lufs=levels.lufs if levels else None,
        true_peak_dbtp=levels.true_peak_db if levels else None,
        rms_db=levels.rms_db if levels else None,
        files=tuple(files),
        notes=tuple(notes),
    )
