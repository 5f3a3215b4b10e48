"""Hand-over to an audio workstation: the untouched takes on the timeline, a track a speaker, chapters as markers.

A folder with `takes/*.flac`, `book.rpp` (Reaper project) and `labels.txt` (Audacity label track). Nothing is baked in:
trims are item edges, gains are item volumes. Reaper's project format is plain text, described at
github.com/ReaTeam/Doc (State Chunk Definitions).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from synthesis.audio.render import ClipUnusable, Mastering, OpenClip, book_gain_db
from synthesis.audio.timeline import RATE_HZ, BookPlan, Clip, PlacedLine, Timeline
from synthesis.exporters.base import (
    ExportFacts,
    FileFacts,
    Progress,
    atomic_folder,
    file_sha256,
    name_safe,
    plan_check,
    title_clean,
)

_FADE_S = 0.005


@dataclass(frozen=True, slots=True)
class DawExporter:
    """A folder that Reaper opens, with labels for Audacity."""

    mastering: Mastering = field(default_factory=Mastering)
    name: str = "daw"
    label: str = "Reaper and Audacity hand-over"
    extension: str = ""
    mime: str = "application/zip"
    is_set: bool = True

    def export(
        self,
        plan: BookPlan,
        *,
        open_clip: OpenClip,
        out: Path,
        progress: Progress,
        gain_db: float | None = None,
    ) -> ExportFacts:
        """Write the folder. Takes are copied as they are. See base.Exporter."""
        line, notes = plan_check(plan)
        gain = book_gain_db(line, open_clip, self.mastering) if gain_db is None else gain_db
        with atomic_folder(out) as folder:
            (folder / "takes").mkdir()
            files = self._takes(folder, line, open_clip, progress)
            project = "\n".join(reaper_project(line, gain)) + "\n"
            (folder / "book.rpp").write_text(project, encoding="utf-8")
            (folder / "labels.txt").write_text("".join(audacity_labels(line)), encoding="utf-8")
            for name in ("book.rpp", "labels.txt"):
                files.append(
                    FileFacts(name, (folder / name).stat().st_size, sha256=file_sha256(folder / name))
                )
        progress(1.0)
        return ExportFacts(
            line.duration_ms,
            sum(f.bytes for f in files),
            len(line.chapters),
            gain_db=gain,
            files=tuple(files),
            notes=tuple(notes),
        )

    def _takes(
        self, folder: Path, line: Timeline, open_clip: OpenClip, progress: Progress
    ) -> list[FileFacts]:
        files: dict[str, FileFacts] = {}
        for placed in line.lines():
            clip = placed.line.clip
            name = f"takes/{take_name(clip)}"
            if placed.end <= placed.start or name in files:
                continue
            try:
                with open_clip(clip.key) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            except (FileNotFoundError, KeyError) as exc:
                raise ClipUnusable(clip, f"The take {clip.key} cannot be read: {exc}") from exc
            size = (folder / name).stat().st_size
            length = round(clip.samples * 1000 / clip.rate_hz)
            files[name] = FileFacts(name, size, length, sha256=file_sha256(folder / name))
            progress(0.98 * placed.end / line.samples)
        return list(files.values())


def take_name(clip: Clip) -> str:
    """Return a take's file name: short, harmless, one for each key."""
    return f"{hashlib.sha256(clip.key.encode()).hexdigest()[:20]}.flac"


def reaper_project(line: Timeline, gain_db: float) -> Iterator[str]:
    """Yield the lines of a Reaper project: a track for each speaker, an item for each line."""
    yield "<REAPER_PROJECT 0.1"
    yield f"  SAMPLERATE {RATE_HZ} 1 0"
    for number, chapter in enumerate(line.chapters, start=1):
        yield f"  MARKER {number} {chapter.start / RATE_HZ:.9f} {_quoted(title_clean(chapter.title))} 0"
    speakers: dict[str, list[PlacedLine]] = {}
    for placed in line.lines():
        if placed.end > placed.start:
            speakers.setdefault(placed.line.speaker, []).append(placed)
    for speaker, lines in speakers.items():
        yield "  <TRACK"
        yield f"    NAME {_quoted(title_clean(speaker) or 'Narrator')}"
        for placed in lines:
            clip = placed.line.clip
            volume = 10.0 ** ((gain_db + clip.gain_db) / 20.0)
            yield "    <ITEM"
            yield f"      POSITION {placed.start / RATE_HZ:.9f}"
            yield f"      LENGTH {(clip.speech_end - clip.speech_start) / clip.rate_hz:.9f}"
            yield "      LOOP 0"
            yield f"      FADEIN 1 {_FADE_S} 0"
            yield f"      FADEOUT 1 {_FADE_S} 0"
            yield f"      NAME {_quoted(title_clean(placed.line.text)[:120] or name_safe(clip.segment))}"
            yield f"      VOLPAN {volume:.6f} 0 1 -1"
            yield f"      SOFFS {clip.speech_start / clip.rate_hz:.9f}"
            yield "      <SOURCE FLAC"
            yield f'        FILE "takes/{take_name(clip)}"'
            yield "      >"
            yield "    >"
        yield "  >"
    yield ">"


def _quoted(text: str) -> str:
    """Return text as a Reaper token: in whichever quotes it does not hold itself."""
    for quote in ('"', "'", "`"):
        if quote not in text:
            return f"{quote}{text}{quote}"
    return "`" + text.replace("`", "'") + "`"


def audacity_labels(line: Timeline) -> Iterator[str]:
    """Yield an Audacity label track: start, end and text of each chapter and line, tab-separated, seconds."""
    for chapter in line.chapters:
        yield f"{chapter.start / RATE_HZ:.6f}\t{chapter.end / RATE_HZ:.6f}\t{title_clean(chapter.title)}\n"
        for placed in chapter.lines:
            if placed.end > placed.start:
                text = title_clean(placed.line.text) or placed.line.clip.segment
                yield f"{placed.start / RATE_HZ:.6f}\t{placed.end / RATE_HZ:.6f}\t{text}\n"
