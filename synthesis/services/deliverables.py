"""What can be asked for: every preset of an export with its exporter, its rules and how it is handed over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

from django.core.files.storage import default_storage
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from projects.models import ManuscriptImport, Project
from projects.work import WorkState
from synthesis.audio.render import Mastering
from synthesis.exporters.base import Exporter, name_safe
from synthesis.exporters.deliverycheck import RULE_SETS, RuleSet
from synthesis.exporters.epub_original import EpubOriginalExporter
from synthesis.exporters.presets import PRESETS, Preset, preset_exporter
from synthesis.exporters.registry import exporter_get
from synthesis.exporters.renders import RenderStore
from synthesis.models import Export

# A preset that goes by a shop's rules, or by the studio's own (exporters.presets); the others are bare formats.
_SHOPS = {
    Export.Preset.M4B: "m4b_listener",
    Export.Preset.ACX: "acx",
    Export.Preset.INAUDIO: "inaudio",
    Export.Preset.GOOGLE_PLAY: "google_play",
    Export.Preset.SPOTIFY: "spotify",
    Export.Preset.AGGREGATOR: "aggregator",
    Export.Preset.FLAC: "masters",
}
_HINTS: dict[str, str | Promise] = {
    Export.Preset.M4B: _("One file with chapters and cover, for listeners."),
    Export.Preset.ACX: _("MP3, 192 kbit/s constant, mono, room tone; with credits and retail sample."),
    Export.Preset.INAUDIO: _("MP3, 192 kbit/s constant, mono, room tone; credits in files of their own."),
    Export.Preset.GOOGLE_PLAY: _("MP3 files named after the ISBN, 1of42 and so on."),
    Export.Preset.SPOTIFY: _("MP3, one file a chapter."),
    Export.Preset.AGGREGATOR: _("MP3 files named after ISBN, number and title."),
    Export.Preset.MP3: _("For any player: 192 kbit/s, tags and chapter marks."),
    Export.Preset.EPUB: _("Text and sound together; each sentence is lit while it is heard."),
    Export.Preset.EPUB_ORIGINAL: _("The imported EPUB as it is, with sound laid over its text."),
    Export.Preset.SRT: _("Every sentence at its time in the M4B."),
    Export.Preset.VTT: _("Every sentence at its time in the M4B, for the web."),
    Export.Preset.FLAC: _("Lossless, 24 bit mono, one file a chapter."),
    Export.Preset.WAV: _("Uncompressed, 24 bit mono, one file a chapter."),
    Export.Preset.OPUS: _("Small files, 48 kbit/s."),
    Export.Preset.TRANSCRIPT: _("The text as it was recorded."),
    Export.Preset.LPF: _("One package with contents, cover and MP3 files."),
    Export.Preset.DAW: _("The untouched takes on the timeline, a track a speaker, markers."),
}
# What is known about machine narration, by the shop's preset; exporters.presets has it in English, with its source.
_DISCLOSURES: dict[str, str | Promise] = {
    Export.Preset.ACX: _(
        "Technical conformity only: ACX asks for human narration. Likely ineligible, verify."
    ),
    Export.Preset.INAUDIO: _(
        "Machine narration is taken only from a short list of tools. Likely ineligible, verify."
    ),
    Export.Preset.GOOGLE_PLAY: _("Machine narration must be declared. Verify."),
    Export.Preset.SPOTIFY: _("Machine narration must be declared when uploading. Verify."),
    Export.Preset.AGGREGATOR: _("The aggregator's rules on machine narration decide. Verify."),
}
_FURTHER = (  # shown behind "Further formats"
    Export.Preset.INAUDIO,
    Export.Preset.GOOGLE_PLAY,
    Export.Preset.SPOTIFY,
    Export.Preset.AGGREGATOR,
    Export.Preset.EPUB_ORIGINAL,
    Export.Preset.VTT,
    Export.Preset.FLAC,
    Export.Preset.WAV,
    Export.Preset.OPUS,
    Export.Preset.TRANSCRIPT,
    Export.Preset.LPF,
    Export.Preset.DAW,
)


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A preset as the doors offer it. `shop` brings silence, length limits and names; `rules` the delivery check."""

    name: str
    label: str
    hint: str | Promise
    shop: Preset | None
    rules: RuleSet | None
    is_set: bool
    extension: str  # of the file that is handed over
    mime: str
    further: bool
    disclosure: str | Promise = ""  # what is known about narration by a machine

    @property
    def has_sample(self) -> bool:
        """Whether a retail sample belongs to it."""
        return bool(self.rules and self.rules.needs_sample)


def deliverable(preset: str) -> Deliverable:
    """A preset by its name. Raises KeyError for one that does not exist."""
    if preset not in Export.Preset.values:
        raise KeyError(preset)
    shop = PRESETS[_SHOPS[preset]] if preset in _SHOPS else None  # type: ignore[index]
    rules = RULE_SETS[shop.rules] if shop else RULE_SETS["masters"] if preset == Export.Preset.WAV else None
    exporter = exporter_of(preset)
    return Deliverable(
        name=preset,
        label=str(Export.Preset(preset).label),
        hint=_HINTS[preset],
        shop=shop,
        rules=rules,
        is_set=exporter.is_set,
        extension=".zip" if exporter.is_set else exporter.extension,
        mime="application/zip" if exporter.is_set else _served_as(exporter.mime),
        further=preset in _FURTHER,
        disclosure=_DISCLOSURES.get(preset, ""),
    )


def deliverables(project: Project | None = None) -> list[Deliverable]:
    """Every preset in the order in which it is offered; for a book, those that can be made of it."""
    names = [
        name
        for name in Export.Preset.values
        if name != Export.Preset.EPUB_ORIGINAL or project is None or manuscript_epub(project)
    ]
    return [deliverable(name) for name in names]


def _served_as(mime: str) -> str:
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime


def manuscript_epub(project: Project) -> str:
    """The storage key of the EPUB a book was imported from; "" if it came from something else."""
    row = (
        ManuscriptImport.objects.filter(project=project, state=WorkState.DONE, name__iendswith=".epub")
        .order_by("-pk")
        .first()
    )
    return row.file_key if row else ""


def exporter_of(preset: str, *, original: str = "", store: RenderStore | None = None) -> Exporter:
    """The exporter of a preset. `original` is the manuscript's key (for the original EPUB), `store` keeps renders."""
    exporter: Any
    if preset in _SHOPS:
        exporter = preset_exporter(PRESETS[_SHOPS[preset]])  # type: ignore[index]
    elif preset == Export.Preset.EPUB_ORIGINAL:
        exporter = EpubOriginalExporter(lambda: cast(BinaryIO, default_storage.open(original, "rb")))
    else:
        exporter = exporter_get(preset)
    if store is not None and hasattr(exporter, "store"):
        exporter = replace(exporter, store=store)
    return cast(Exporter, exporter)


def mastering_of(exporter: Exporter) -> Mastering | None:
    """How an exporter brings a book to level; None for one that makes no sound."""
    return getattr(exporter, "mastering", None)


def file_name(project: Project, export: Export) -> str:
    """A name that says the book, the revision and, for a set, the preset: The_Salt_Ledger_r3_acx.zip."""
    made = deliverable(export.preset)
    part = f"_{export.preset}" if made.is_set or export.preset == Export.Preset.EPUB_ORIGINAL else ""
    since = f"_since_r{export.since}" if export.since else ""
    return f"{name_safe(project.title)}_r{export.revision}{part}{since}{made.extension}"
