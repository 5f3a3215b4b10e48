"""Where a book goes: format, level, silence, names and rules of each shop, as data.

Nothing here is a promise that a shop accepts a book: rules change. Each carries its source and the date on which it was
read, and a project may keep its own copy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from synthesis.audio.render import Mastering
from synthesis.audio.timeline import BookPlan
from synthesis.exporters.base import Exporter
from synthesis.exporters.m4b import M4bExporter
from synthesis.exporters.masters import FlacExporter
from synthesis.exporters.mp3 import Mp3Exporter

# Level for shops that ask for RMS. RMS is a window checked on the encoded file, never the target.
_SHOP = Mastering(target_lufs=-20.0, ceiling_dbtp=-3.5, room_tone_db=-70.0)
_LISTENER = Mastering(target_lufs=-18.0, ceiling_dbtp=-1.5)


@dataclass(frozen=True, slots=True)
class Preset:
    """A destination. Times in ms; `rules` names a set in deliverycheck.RULE_SETS."""

    name: str
    label: str
    format: str  # an exporter's name
    mastering: Mastering
    head_ms: int
    tail_ms: int
    rules: str
    bit_rate: int = 0
    naming: str = "numbered"
    rms_window: tuple[float, float] | None = None
    max_ms: int = 0  # a longer file is split at a paragraph; 0 = never
    max_bytes: int = 0
    ai_narration: str = ""  # what is known about voices made by a machine


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="m4b_listener",
            label="M4B for listeners",
            format="m4b",
            mastering=_LISTENER,
            head_ms=500,
            tail_ms=1500,
            rules="m4b",
            bit_rate=96_000,
        ),
        Preset(
            name="acx",
            label="ACX-style MP3 set",
            format="mp3",
            mastering=_SHOP,
            head_ms=750,
            tail_ms=3000,
            rules="acx",
            bit_rate=192_000,
            rms_window=(-23.0, -18.0),
            max_ms=118 * 60_000,
            max_bytes=170_000_000,
            ai_narration="Technical conformity only: ACX asks for human narration. Likely ineligible, verify.",
        ),
        Preset(
            name="inaudio",
            label="INaudio (Findaway) MP3 set",
            format="mp3",
            mastering=_SHOP,
            head_ms=750,
            tail_ms=3000,
            rules="inaudio",
            bit_rate=192_000,
            rms_window=(-23.0, -18.0),
            max_ms=118 * 60_000,
            max_bytes=170_000_000,
            ai_narration="Takes machine narration only from a short list of tools. Likely ineligible, verify.",
        ),
        Preset(
            name="google_play",
            label="Google Play MP3 set",
            format="mp3",
            mastering=_SHOP,
            head_ms=750,
            tail_ms=3000,
            rules="google_play",
            bit_rate=192_000,
            naming="google",
            ai_narration="Must be declared. Verify.",
        ),
        Preset(
            name="spotify",
            label="Spotify for Authors MP3 set",
            format="mp3",
            mastering=_SHOP,
            head_ms=750,
            tail_ms=3000,
            rules="spotify",
            bit_rate=192_000,
            ai_narration="Must be declared when uploading. Verify.",
        ),
        Preset(
            name="aggregator",
            label="Apple and Kobo through an aggregator, MP3 set",
            format="mp3",
            mastering=_SHOP,
            head_ms=750,
            tail_ms=3000,
            rules="aggregator",
            bit_rate=192_000,
            naming="library",
            rms_window=(-23.0, -18.0),
            ai_narration="The aggregator's rules decide. Verify.",
        ),
        Preset(
            name="masters",
            label="FLAC masters",
            format="flac",
            mastering=_LISTENER,
            head_ms=500,
            tail_ms=1500,
            rules="masters",
        ),
    )
}


def preset_exporter(preset: Preset) -> Exporter:
    """Return the exporter that a preset describes."""
    if preset.format == "m4b":
        return M4bExporter(mastering=preset.mastering, bit_rate=preset.bit_rate)
    if preset.format == "mp3":
        return Mp3Exporter(
            mastering=preset.mastering,
            bit_rate=preset.bit_rate,
            naming=preset.naming,
            rms_window=preset.rms_window,
        )
    if preset.format == "flac":
        return FlacExporter(mastering=preset.mastering, naming=preset.naming)
    raise KeyError(preset.format)


def preset_plan(plan: BookPlan, preset: Preset) -> BookPlan:
    """Return the plan with the preset's silence around every chapter."""
    chapters = tuple(replace(c, head_ms=preset.head_ms, tail_ms=preset.tail_ms) for c in plan.chapters)
    return replace(plan, chapters=chapters)
