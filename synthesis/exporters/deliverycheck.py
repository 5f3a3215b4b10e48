"""The delivery check: what a shop asks for, held against what the encoded files are. Pure; rules are data.

A row says pass, warn or fail, with the number, the rule and where the rule was read. What cannot be measured (who may
narrate) is stated as a warning to verify, never guessed.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from synthesis.audio.timeline import BookPlan
from synthesis.exporters.base import FileFacts, title_clean
from synthesis.exporters.probe import Format

Status = Literal["pass", "warn", "fail"]

# A number may lie this much outside its window because meters round: 0.05 dB is less than two meters differ.
_EPSILON = 0.05


@dataclass(frozen=True, slots=True)
class Rule:
    """A window for one measured number of every file. Outside (low, high) it fails; None = no bound.

    `warn_low` and `warn_high` lie inside: beyond them it passes with a warning.
    """

    code: str
    label: str
    unit: str
    source: str
    dated: str  # when it was read
    low: float | None = None
    high: float | None = None
    warn_low: float | None = None
    warn_high: float | None = None
    soft: bool = False  # outside is a warning only: advice, or a rule not read in an official text
    fix: str = ""  # what would help: a machine code for the button


@dataclass(frozen=True, slots=True)
class Choice:
    """A property of every file that must be one of some values."""

    code: str
    label: str
    allowed: tuple[object, ...]
    source: str
    dated: str
    soft: bool = False
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What one shop asks for."""

    name: str
    label: str
    numbers: tuple[Rule, ...]
    choices: tuple[Choice, ...]
    needs_credits: bool = False
    needs_sample: bool = False
    cover_px: tuple[int, int] = (0, 0)  # least and greatest edge; 0 = no rule
    cover_source: str = ""
    ai_narration: str = ""
    dated: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One result. `file` is "" for what concerns the whole set; `code` is for machines, the rest for people."""

    file: str
    code: str
    label: str
    status: Status
    value: str
    wanted: str
    source: str
    dated: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class DeliveredFile:
    """A file as it was measured after encoding."""

    facts: FileFacts
    format: Format


_ACX = "help.acx.com, ACX audio submission requirements"
_ACX_QUOTED = "pages quoting ACX (audio-dubcheck.com/specs/acx, auphonic.com 2026-01-15)"
_ADVICE = "common advice, in no official text we read"
_GOOGLE = "support.google.com/books/partner/answer/3424254"
_READ = "2026-11"


def _shop_numbers(source: str) -> tuple[Rule, ...]:
    """Return the numbers that ACX and those who follow it ask for."""
    return (
        Rule("rms", "RMS", "dB", source, _READ, -23.0, -18.0, -22.7, -18.2, fix="book_gain"),
        Rule("peak", "Peak", "dB", source, _READ, None, -3.0, None, -3.1, fix="limiter"),
        Rule("true_peak", "True peak", "dBTP", _ADVICE, _READ, None, -3.0, soft=True, fix="limiter"),
        Rule(
            "noise_floor", "Noise floor", "dB RMS", source, _READ, None, -60.0, None, -62.0, fix="room_tone"
        ),
        Rule("head", "Silence before", "s", source, _READ, 0.5, 1.0, fix="head_tail"),
        Rule("tail", "Silence after", "s", source, _READ, 1.0, 5.0, fix="head_tail"),
        Rule("duration", "Length", "min", source, _READ, None, 120.0, None, 118.0, fix="split"),
        Rule(
            "size",
            "Size",
            "MB",
            "remembered upload limit near 170 MB",
            _READ,
            None,
            170.0,
            soft=True,
            fix="split",
        ),
        Rule(
            "digital_silence", "Digital silence", "s", _ADVICE, _READ, None, 0.1, soft=True, fix="room_tone"
        ),
    )


RULE_SETS: dict[str, RuleSet] = {
    rules.name: rules
    for rules in (
        RuleSet(
            "acx",
            "ACX-style",
            _shop_numbers(_ACX_QUOTED),
            (
                Choice("codec", "Format", ("mp3",), _ACX, _READ),
                Choice("constant_bit_rate", "Constant bit rate", (True,), _ACX, _READ),
                Choice("bit_rate", "Bit rate", (192_000, 224_000, 256_000, 320_000), _ACX, _READ),
                Choice("rate_hz", "Sample rate", (44_100,), _ACX, _READ),
                Choice("channel_mode", "Channels", ("mono", "stereo"), "older ACX help page", _READ),
            ),
            needs_credits=True,
            needs_sample=True,
            cover_px=(2400, 0),
            cover_source="secondary pages quoting ACX",
            ai_narration="ACX asks for human narration: likely ineligible, verify.",
            dated=_READ,
        ),
        RuleSet(
            "inaudio",
            "INaudio (Findaway)",
            _shop_numbers("blog.findawayvoices.com"),
            (
                Choice("codec", "Format", ("mp3", "flac"), "chapterpass.com/learn", _READ),
                Choice("rate_hz", "Sample rate", (44_100,), "blog.findawayvoices.com", _READ),
            ),
            needs_credits=True,
            cover_px=(2400, 0),
            cover_source="secondary pages",
            ai_narration="Only from a short list of tools: likely ineligible, verify.",
            dated=_READ,
        ),
        RuleSet(
            "google_play",
            "Google Play",
            (
                Rule("bit_rate_kbps", "Bit rate", "kbit/s", _GOOGLE, _READ, 128.0),
                Rule("set_hours", "Length of the book", "h", _GOOGLE, _READ, 5 / 60, 100.0),
                Rule("head", "Silence before", "s", _GOOGLE, _READ, 0.1, None, soft=True, fix="head_tail"),
                Rule("tail", "Silence after", "s", _GOOGLE, _READ, 0.1, None, soft=True, fix="head_tail"),
            ),
            (
                Choice("codec", "Format", ("mp3", "pcm_s16le", "pcm_s24le", "aac", "flac"), _GOOGLE, _READ),
                Choice("constant_bit_rate", "Constant bit rate", (True, None), _GOOGLE, _READ, soft=True),
                Choice(
                    "rate_hz", "Sample rate", (44_100, 48_000, 96_000), "secondary pages", _READ, soft=True
                ),
            ),
            cover_px=(1024, 7200),
            cover_source=_GOOGLE,
            ai_narration="Narration by a machine must be declared: verify.",
            dated=_READ,
        ),
        RuleSet(
            "spotify",
            "Spotify for Authors",
            (
                Rule(
                    "lufs",
                    "Loudness",
                    "LUFS",
                    "audio-dubcheck.com, low confidence",
                    _READ,
                    -20.5,
                    -14.0,
                    soft=True,
                ),
                Rule(
                    "true_peak",
                    "True peak",
                    "dBTP",
                    "audio-dubcheck.com, low confidence",
                    _READ,
                    None,
                    -1.0,
                    soft=True,
                ),
            ),
            (
                Choice(
                    "codec",
                    "Format",
                    ("mp3", "flac", "pcm_s16le", "pcm_s24le"),
                    "secondary pages",
                    _READ,
                    soft=True,
                ),
            ),
            cover_px=(3000, 0),
            cover_source="tomevox, narratemi",
            ai_narration="Narration by a machine must be declared: verify.",
            dated=_READ,
        ),
        RuleSet(
            "aggregator",
            "Apple and Kobo through an aggregator",
            _shop_numbers("narratemi, low confidence"),
            (
                Choice("codec", "Format", ("mp3", "aac"), "narratemi, low confidence", _READ),
                Choice("rate_hz", "Sample rate", (44_100,), "narratemi, low confidence", _READ),
            ),
            cover_px=(2400, 3000),
            cover_source="narratemi, low confidence",
            ai_narration="The aggregator's rules decide: verify.",
            dated=_READ,
        ),
        RuleSet(
            "m4b",
            "M4B for listeners",
            (
                Rule(
                    "lufs",
                    "Loudness",
                    "LUFS",
                    "this studio's default for listeners",
                    _READ,
                    -18.5,
                    -17.5,
                    fix="book_gain",
                ),
                Rule(
                    "true_peak",
                    "True peak",
                    "dBTP",
                    "this studio's default for listeners",
                    _READ,
                    None,
                    -1.0,
                    fix="limiter",
                ),
            ),
            (
                Choice("codec", "Format", ("aac",), "Apple players", _READ),
                Choice("rate_hz", "Sample rate", (44_100,), "Apple players", _READ),
            ),
            dated=_READ,
        ),
        RuleSet(
            "masters",
            "Lossless masters",
            (
                Rule(
                    "true_peak",
                    "True peak",
                    "dBTP",
                    "this studio's default",
                    _READ,
                    None,
                    -1.0,
                    fix="limiter",
                ),
            ),
            (Choice("codec", "Format", ("flac", "pcm_s24le"), "this studio's default", _READ),),
            dated=_READ,
        ),
    )
}


def _measures(file: DeliveredFile) -> dict[str, float | None]:
    """Return the numbers of a file that rules speak of."""
    levels, format_ = file.facts.levels, file.format
    found: dict[str, float | None] = {
        "duration": format_.duration_s / 60,
        "size": format_.bytes / 1e6,
        "bit_rate_kbps": format_.bit_rate / 1000,
    }
    if levels is not None:
        found |= {
            "rms": levels.rms_db,
            "peak": levels.peak_db,
            "true_peak": levels.true_peak_db,
            "noise_floor": levels.noise_floor_db,
            "lufs": levels.lufs,
            "head": levels.head_s,
            "tail": levels.tail_s,
            "digital_silence": levels.digital_silence_s,
        }
    return found


def check(files: Sequence[DeliveredFile], plan: BookPlan, rules: RuleSet) -> list[Row]:
    """Return all rows: first those of the set, then file by file."""
    rows = list(_set_rows(files, plan, rules))
    for file in files:
        rows += _file_rows(file, rules)
    return rows


def worst(rows: Sequence[Row]) -> Status:
    """Return the gravest status of some rows; "pass" for none."""
    found = {row.status for row in rows}
    return "fail" if "fail" in found else "warn" if "warn" in found else "pass"


def _file_rows(file: DeliveredFile, rules: RuleSet) -> Iterator[Row]:
    measures = _measures(file)
    for rule in rules.numbers:
        if rule.code in ("set_hours",):
            continue
        yield _number_row(file.facts.name, rule, measures.get(rule.code))
    for choice in rules.choices:
        yield _choice_row(file, choice)
    name = file.facts.name
    bad = (
        len(name.encode()) > 255
        or not name.isascii()
        or re.search(r'[/\\:*?"<>|\x00-\x1f]', name)
        or name[:1] in "-."
    )
    yield Row(
        name, "file_name", "File name", "fail" if bad else "pass", name,
        "ASCII, no special characters, at most 255 bytes", "common to all shops", _READ, "rename" if bad else "",
    )  # fmt: skip


def _number_row(name: str, rule: Rule, value: float | None) -> Row:
    wanted = _window(rule)
    if value is None:
        return Row(
            name, rule.code, rule.label, "warn", "not measured", wanted, rule.source, rule.dated, "measure"
        )
    outside = (rule.low is not None and value < rule.low - _EPSILON * (rule.unit.startswith("dB"))) or (
        rule.high is not None and value > rule.high + _EPSILON * (rule.unit.startswith("dB"))
    )
    near = (rule.warn_low is not None and value < rule.warn_low) or (
        rule.warn_high is not None and value > rule.warn_high
    )
    status: Status = ("warn" if rule.soft else "fail") if outside else "warn" if near else "pass"
    shown = f"{value:.1f} {rule.unit}" if rule.unit.startswith(("dB", "LUFS")) else f"{value:.2f} {rule.unit}"
    return Row(
        name,
        rule.code,
        rule.label,
        status,
        shown,
        wanted,
        rule.source,
        rule.dated,
        "" if status == "pass" else rule.fix,
    )


def _window(rule: Rule) -> str:
    if rule.low is not None and rule.high is not None:
        return f"{rule.low:g} … {rule.high:g} {rule.unit}"
    if rule.low is not None:
        return f"at least {rule.low:g} {rule.unit}"
    return f"at most {rule.high:g} {rule.unit}"


def _choice_row(file: DeliveredFile, choice: Choice) -> Row:
    value = getattr(file.format, choice.code)
    status: Status = "pass" if value in choice.allowed else "warn" if choice.soft else "fail"
    wanted = " or ".join(str(allowed) for allowed in choice.allowed if allowed is not None)
    return Row(
        file.facts.name, choice.code, choice.label, status, str(value), wanted, choice.source, choice.dated,
        "" if status == "pass" else choice.fix or "format",
    )  # fmt: skip


def _set_rows(files: Sequence[DeliveredFile], plan: BookPlan, rules: RuleSet) -> Iterator[Row]:
    """Yield what concerns the set: sameness, credits, sample, cover, length, narration."""

    def row(
        code: str, label: str, status: Status, value: str, wanted: str, source: str, fix: str = ""
    ) -> Row:
        return Row(
            "", code, label, status, value, wanted, source, rules.dated, "" if status == "pass" else fix
        )

    source = next((rule.source for rule in rules.numbers), "")
    for code, label, key in (
        ("same_channels", "All files alike: channels", lambda f: f.format.channels),
        ("same_rate", "All files alike: sample rate", lambda f: f.format.rate_hz),
        (
            "same_bit_rate",
            "All files alike: bit rate",
            lambda f: f.format.bit_rate if f.format.constant_bit_rate else 0,
        ),
    ):
        yield _same(files, code, label, key, row, source)
    doubles = [name for name, count in Counter(f.facts.name.lower() for f in files).items() if count > 1]
    yield row(
        "names",
        "Names all different",
        "fail" if doubles else "pass",
        ", ".join(doubles) or "yes",
        "yes",
        source,
    )
    lufs = [f.facts.levels.lufs for f in files if f.facts.levels and f.facts.levels.lufs is not None]
    if len(lufs) > 1:
        spread = max(lufs) - min(lufs)
        yield row(
            "even_loudness", "Loudness from file to file", "pass" if spread <= 2.0 else "warn",
            f"{spread:.1f} LU apart", "at most 2 LU", "this studio's default", "book_gain",
        )  # fmt: skip
    for rule in rules.numbers:
        if rule.code == "set_hours":
            yield replace(_number_row("", rule, sum(f.format.duration_s for f in files) / 3600), file="")
    kinds = {f.facts.kind for f in files}
    if rules.needs_credits:
        for kind, label in (("opening_credits", "Opening credits"), ("closing_credits", "Closing credits")):
            there = kind in kinds
            yield row(
                kind,
                label,
                "pass" if there else "fail",
                "there" if there else "missing",
                "a file of their own",
                source,
                "credits",
            )
        yield from _credit_rows(plan, row, source)
    if rules.needs_sample:
        sample = next((f for f in files if f.facts.kind == "retail_sample"), None)
        minutes = sample.format.duration_s / 60 if sample else 0.0
        status: Status = "fail" if sample is None or minutes > 5.0 else "pass"
        value = "missing" if sample is None else f"{minutes:.1f} min"
        yield row("retail_sample", "Retail sample", status, value, "at most 5 min", source, "sample")
    if any(rules.cover_px):
        yield _cover_row(plan, rules, row)
    if rules.ai_narration and plan.ai_narrated:
        yield row("ai_narration", "Narrated by a machine", "warn", "yes", rules.ai_narration, source)


def _same(
    files: Sequence[DeliveredFile],
    code: str,
    label: str,
    key: Callable[[DeliveredFile], int],
    row: Callable[..., Row],
    source: str,
) -> Row:
    values = sorted({key(file) for file in files})
    return row(
        code,
        label,
        "pass" if len(values) <= 1 else "fail",
        ", ".join(map(str, values)),
        "one value",
        source,
        "format",
    )


def _credit_rows(plan: BookPlan, row: Callable[..., Row], source: str) -> Iterator[Row]:
    """Yield whether the credits say title, authors and narrator as the metadata has them."""
    wanted = [title_clean(plan.title), *map(title_clean, plan.authors), title_clean(plan.narrator)]
    for chapter in plan.chapters:
        if chapter.kind not in ("opening_credits", "closing_credits") or not chapter.lines:
            continue
        if chapter.kind == "closing_credits":
            wanted = [title_clean(plan.title), *map(title_clean, plan.authors)]
        said = _plain(" ".join(line.text for line in chapter.lines))
        missing = [name for name in wanted if name and _plain(name) not in said]
        yield row(
            f"{chapter.kind}_text", f"{chapter.title}: as in the metadata", "warn" if missing else "pass",
            f"not found: {', '.join(missing)}" if missing else "title and names found", "title, authors, narrator", source, "credits",
        )  # fmt: skip


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).casefold().strip()


def _cover_row(plan: BookPlan, rules: RuleSet, row: Callable[..., Row]) -> Row:
    low, high = rules.cover_px
    wanted = f"square, at least {low} px" + (f", at most {high} px" if high else "")
    size = image_size(plan.cover) if plan.cover else None
    if size is None:
        value = "missing" if not plan.cover else "neither JPEG nor PNG"
        return row("cover", "Cover", "fail", value, wanted, rules.cover_source, "cover")
    fits = size[0] == size[1] and size[0] >= low and (not high or size[0] <= high)
    return row(
        "cover",
        "Cover",
        "pass" if fits else "fail",
        f"{size[0]} × {size[1]} px",
        wanted,
        rules.cover_source,
        "cover",
    )


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG or JPEG in pixels, or None for anything else."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data[:2] != b"\xff\xd8":
        return None
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker in (0x01, *range(0xD0, 0xD9)):
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    return None


def rows_csv(rows: Sequence[Row]) -> str:
    """Return the rows as CSV, RFC 4180; a cell that a spreadsheet would run as a formula gets an apostrophe."""

    def cell(value: str) -> str:
        safe = f"'{value}" if value[:1] in ("=", "+", "@", "\t") else value
        return '"' + safe.replace('"', '""') + '"'

    header = ("file", "check", "status", "value", "wanted", "source", "read")
    lines = [",".join(header)]
    for r in rows:
        cells = (r.file or "(set)", r.label, r.status, r.value, r.wanted, r.source, r.dated)
        lines.append(",".join(cell(value) for value in cells))
    return "\r\n".join(lines) + "\r\n"
