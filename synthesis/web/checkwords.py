"""The delivery check in the reader's language. The pure room speaks English and codes; this door translates by code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from synthesis.models import Export
from synthesis.revisions import CheckGroup, check_groups

_LABELS: dict[str, str | Promise] = {
    "rms": gettext_lazy("RMS, every file"),
    "peak": gettext_lazy("Peak"),
    "true_peak": gettext_lazy("True peak"),
    "noise_floor": gettext_lazy("Noise floor"),
    "head": gettext_lazy("Silence before"),
    "tail": gettext_lazy("Silence after"),
    "duration": gettext_lazy("Length of a file"),
    "size": gettext_lazy("Size of a file"),
    "digital_silence": gettext_lazy("Digital silence"),
    "lufs": gettext_lazy("Loudness"),
    "bit_rate_kbps": gettext_lazy("Bit rate"),
    "set_hours": gettext_lazy("Length of the book"),
    "codec": gettext_lazy("Format"),
    "constant_bit_rate": gettext_lazy("Constant bit rate"),
    "bit_rate": gettext_lazy("Bit rate"),
    "rate_hz": gettext_lazy("Sample rate"),
    "channel_mode": gettext_lazy("Channels"),
    "file_name": gettext_lazy("File names"),
    "same_channels": gettext_lazy("All files alike: channels"),
    "same_rate": gettext_lazy("All files alike: sample rate"),
    "same_bit_rate": gettext_lazy("All files alike: bit rate"),
    "names": gettext_lazy("Names all different"),
    "even_loudness": gettext_lazy("Loudness from file to file"),
    "opening_credits": gettext_lazy("Opening credits"),
    "closing_credits": gettext_lazy("Closing credits"),
    "opening_credits_text": gettext_lazy("Opening credits say what the book's data say"),
    "closing_credits_text": gettext_lazy("Closing credits say what the book's data say"),
    "retail_sample": gettext_lazy("Retail sample"),
    "cover": gettext_lazy("Cover"),
    "ai_narration": gettext_lazy("Narrated by a machine"),
    "missing": gettext_lazy("Sentences without sound"),
    "stale": gettext_lazy("Sentences whose sound is out of date"),
    "isbn": gettext_lazy("ISBN of the audiobook"),
}
_VALUES: dict[str, str | Promise] = {
    "there": gettext_lazy("there"),
    "missing": gettext_lazy("missing"),
    "not measured": gettext_lazy("not measured"),
    "yes": gettext_lazy("yes"),
    "True": gettext_lazy("yes"),
    "False": gettext_lazy("no"),
    "None": gettext_lazy("does not apply"),
    "one value": gettext_lazy("one value"),
    "a file of their own": gettext_lazy("a file of their own"),
    "title and names found": gettext_lazy("title and names found"),
    "title, authors, narrator": gettext_lazy("title, authors, narrator"),
    "neither JPEG nor PNG": gettext_lazy("neither JPEG nor PNG"),
    "13 digits": gettext_lazy("13 digits"),
    "ASCII, no special characters, at most 255 bytes": gettext_lazy(
        "ASCII, no special characters, at most 255 bytes"
    ),
    "ACX asks for human narration: likely ineligible, verify.": gettext_lazy(
        "ACX asks for human narration: likely ineligible, verify."
    ),
    "Only from a short list of tools: likely ineligible, verify.": gettext_lazy(
        "Only from a short list of tools: likely ineligible, verify."
    ),
    "Narration by a machine must be declared: verify.": gettext_lazy(
        "Narration by a machine must be declared: verify."
    ),
    "The aggregator's rules decide: verify.": gettext_lazy("The aggregator's rules decide: verify."),
}
_SOURCES: dict[str, str | Promise] = {
    "this studio's default": gettext_lazy("this studio's default"),
    "this studio's default for listeners": gettext_lazy("this studio's default for listeners"),
    "common advice, in no official text we read": gettext_lazy("common advice, in no official text we read"),
    "common to all shops": gettext_lazy("common to all shops"),
    "secondary pages": gettext_lazy("secondary pages"),
}
_AT_LEAST, _AT_MOST = re.compile(r"\bat least (?=[-\d])"), re.compile(r"\bat most (?=[-\d])")
_LONG, _THOUSANDS = re.compile(r"\d+\.\d{3,}"), re.compile(r"\b\d{4,6}\b")
_UNITS = {"bit_rate": "kbit/s", "same_bit_rate": "kbit/s", "rate_hz": "kHz", "same_rate": "kHz"}
_MINUS = re.compile(r"(?<![\w-])-(?=\d)")


def words(text: str, code: str = "") -> str:
    """A value or limit as it is shown: translated where it is made of known words, with a real minus sign.

    `code` is the rule's: rates come in whole hertz and bits, and are shown in thousands.
    """
    if text in _VALUES:
        return str(_VALUES[text])
    if text.startswith("not found: "):
        return _("not found: %(names)s") % {"names": text.removeprefix("not found: ")}
    text = _AT_LEAST.sub(lambda _m: _("at least") + " ", _AT_MOST.sub(lambda _m: _("at most") + " ", text))
    text = _LONG.sub(lambda m: f"{float(m[0]):.2f}", text)
    if unit := _UNITS.get(code):
        text = _THOUSANDS.sub(lambda m: f"{int(m[0]) / 1000:g} {unit}", text)
        text = text.replace(" or ", _(" or "))
    return _MINUS.sub("\u2212", text)


@dataclass(slots=True)
class CheckLine:
    """One rule as the table shows it. `measured` holds a line each; `fix` is a machine word or ""."""

    status: str
    label: str
    wanted: str
    source: str
    dated: str
    measured: list[str]
    note: str
    fix: str


@dataclass(slots=True)
class CheckShown:
    """An export's check as the page shows it."""

    export: Export
    label: str
    dated: str
    fail: int
    warn: int
    passed: int
    lufs: str = ""
    spread: str = ""
    lines: list[CheckLine] = field(default_factory=list)


def check_shown(export: Export) -> CheckShown | None:
    """An export's check for its page; None for one that has none."""
    summary = export.report.get("check")
    if not summary:
        return None
    loudness = export.report.get("loudness") or {}
    spread = loudness.get("spread_lu", 0.0)
    return CheckShown(
        export=export,
        label=summary["label"],
        dated=summary["dated"],
        fail=summary["fail"],
        warn=summary["warn"],
        passed=summary["pass"],
        lufs=words(f"{loudness['lufs']:.1f}") if loudness else "",
        spread=f"{spread:.1f}" if loudness and len(export.details.get("files", [])) > 1 else "",
        lines=[_line(group) for group in check_groups(export.details.get("check", []))],
    )


def _line(group: CheckGroup) -> CheckLine:
    return CheckLine(
        status=group.status,
        label=str(_LABELS.get(group.code, group.label)),
        wanted=words(group.wanted, group.code),
        source=str(_SOURCES.get(group.source, group.source)),
        dated=group.dated,
        measured=_measured(group),
        note=_note(group),
        fix=group.fix,
    )


def _measured(group: CheckGroup) -> list[str]:
    if group.status != "pass":
        return [
            f"{row['file']}: {words(row['value'])}"
            if row["file"] and row["value"] != row["file"]
            else words(row["value"], group.code)
            for row in group.failing
        ]
    return [words(group.value, group.code)] if group.value else []


def _note(group: CheckGroup) -> str:
    if group.further:
        return ngettext("and %(n)s more", "and %(n)s more", group.further) % {"n": group.further}
    if group.status == "pass" and group.files > 1:
        return _("%(n)s of %(n)s files") % {"n": group.files}
    return ""
