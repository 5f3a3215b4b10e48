"""Which formats there are. Adding one: its file, and a line here."""

from __future__ import annotations

from synthesis.exporters.base import Exporter, ExportRefused
from synthesis.exporters.captions import SrtExporter, VttExporter
from synthesis.exporters.daw import DawExporter
from synthesis.exporters.epub_overlay import EpubOverlayExporter
from synthesis.exporters.lpf import LpfExporter
from synthesis.exporters.m4b import M4bExporter
from synthesis.exporters.masters import FlacExporter, WavExporter
from synthesis.exporters.mp3 import Mp3Exporter
from synthesis.exporters.opus import OpusExporter
from synthesis.exporters.transcript import TranscriptExporter

_ALL: tuple[Exporter, ...] = (
    M4bExporter(),
    Mp3Exporter(),
    EpubOverlayExporter(),
    SrtExporter(),
    VttExporter(),
    FlacExporter(),
    WavExporter(),
    OpusExporter(),
    TranscriptExporter(),
    LpfExporter(),
    DawExporter(),
)


def exporters() -> dict[str, Exporter]:
    """Return the formats by name, in the order they are offered."""
    return {exporter.name: exporter for exporter in _ALL}


def exporter_get(name: str) -> Exporter:
    """Return a format. Raises ExportRefused for one that does not exist."""
    try:
        return exporters()[name]
    except KeyError:
        raise ExportRefused("unknown_format", f"There is no format {name!r}.") from None
