"""Opus in Ogg, one file a chapter: small files for the ear, 48 kHz as the codec wants it."""

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
class OpusExporter:
    """A folder of Opus files."""

    mastering: Mastering = field(default_factory=Mastering)
    bit_rate: int = 48_000
    naming: str = "numbered"
    name: str = "opus"
    label: str = "Opus, one file a chapter"
    extension: str = ""
    mime: str = "audio/ogg"
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
        encoding = Encoding(
            "opus", "libopus", "flt", self.bit_rate, rate_hz=48_000, codec_options={"application": "audio"}
        )
        made = FileSet(encoding, ".opus", self.mastering, self.naming, store=self.store)
        return made.export(plan, open_clip=open_clip, out=out, progress=progress, gain_db=gain_db)
