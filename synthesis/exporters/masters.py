"""Lossless masters: FLAC and WAV, 24 bit, one file a chapter. A WAV past 4 GiB becomes RF64 (EBU Tech 3306)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from synthesis.audio.render import Mastering, OpenClip
from synthesis.audio.timeline import BookPlan
from synthesis.exporters.base import ExportFacts, Progress
from synthesis.exporters.encode import Encoding
from synthesis.exporters.fileset import FileSet
from synthesis.exporters.renders import RenderStore


@dataclass(frozen=True, slots=True)
class FlacExporter:
    """A folder of FLAC files, 24 bit mono 44.1 kHz."""

    mastering: Mastering = field(default_factory=Mastering)
    naming: str = "numbered"
    name: str = "flac"
    label: str = "FLAC masters, one file a chapter"
    extension: str = ""
    mime: str = "audio/flac"
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
            Encoding("flac", "flac", "s32"), ".flac", self.mastering, self.naming, store=self.store
        )
        return made.export(plan, open_clip=open_clip, out=out, progress=progress, gain_db=gain_db)


@dataclass(frozen=True, slots=True)
class WavExporter:
    """A folder of WAV files, 24 bit mono 44.1 kHz."""

    mastering: Mastering = field(default_factory=Mastering)
    naming: str = "numbered"
    name: str = "wav"
    label: str = "WAV masters, one file a chapter"
    extension: str = ""
    mime: str = "audio/wav"
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
        encoding = Encoding("wav", "pcm_s24le", "s32", muxer_options={"rf64": "auto"})
        made = FileSet(encoding, ".wav", self.mastering, self.naming, store=self.store)
        return made.export(plan, open_clip=open_clip, out=out, progress=progress, gain_db=gain_db)
