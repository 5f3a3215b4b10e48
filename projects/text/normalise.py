"""From printed to spoken text: rules per language, each with a name, applied in one fixed order."""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from .languages import language_base
from .normalise_en import ENGLISH_RULES
from .normalise_world import WORLD_RULES
from .rules import Rule
from .spans import Span, spans_apply

FRONTEND_REV = "2"
"""Revision of the rules. Stored with every spoken text; raise it when any rule changes what is said."""

__all__ = ["FRONTEND_REV", "Rule", "rules_for", "spoken_text"]

_LIGATURES = {
    "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "ĳ": "ij", "Ĳ": "IJ",
    "ſ": "s", "ŉ": "'n", "…": "…",
}  # fmt: skip
_INVISIBLE = dict.fromkeys(
    map(
        ord,
        "\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c\u180e\ufffc",
    ),
    None,
)
_FULLWIDTH = {
    code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))
}
_TABLE = {**{ord(k): v for k, v in _LIGATURES.items()}, **_INVISIBLE, **_FULLWIDTH}


def _characters(text: str) -> str:
    """Ligatures as letters, invisible marks gone, every blank an ordinary one, letters composed (NFC)."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.translate(_TABLE))
    return " ".join(text.split())


_MAYBE_PICTURE = re.compile(
    "[\u00a6\u00a9\u00ae\u00b0\u0482\u0600-\u1fff\u200d\u20e3\u2100-\u2bff\u2e80-\u2fff\u3004-\u303f\u3190-\u33ff\u4dc0-\u4dff"
    "\ua490-\uabff\ufd40-\ufe0f\uffe0-\uffff\U00010000-\U0010ffff]"
)


def _pictures(text: str) -> str:
    """Emoji and ornaments are not said. A joiner goes with them; one between letters stays (Persian, Hindi)."""
    if text.isascii() or not _MAYBE_PICTURE.search(text):
        return text
    kept = [
        char
        for i, char in enumerate(text)
        if not (
            (unicodedata.category(char) == "So" and char not in "°©®™№℃℉")
            or 0x1F000 <= ord(char) < 0x20000
            or char in "\ufe0e\ufe0f\u20e3"
            or (char == "\u200d" and (i + 1 == len(text) or not text[i + 1].isalpha()))
        )
    ]
    if len(kept) == len(text):
        return text
    return re.sub(r"\s+([.,!?;:…])", r"\1", re.sub(r"\s+", " ", "".join(kept))).strip()


def _emphasis(text: str) -> str:
    """Plain text's _emphasis_ and *emphasis*: the marks are not said."""
    text = re.sub(r"(?<![\w_])_+([^_]+?)_+(?![\w_])", r"\1", text)
    text = re.sub(r"(?<![\w*])\*+([^*\s](?:[^*]*[^*\s])?)\*+(?![\w*])", r"\1", text)
    return text.replace("_", " ") if re.fullmatch(r"[_\s]*", text) else text


def _dashes(text: str) -> str:
    """Typewriter dashes as dashes."""
    return re.sub(r"(?<=\S)\s?-{2,3}\s?(?=\S)|(?<=\s)-{2,3}|-{2,3}(?=\s|$)", "—", text)


COMMON_RULES: tuple[Rule, ...] = (
    Rule("characters", _characters),
    Rule("pictures", _pictures),
    Rule("emphasis", _emphasis, needs=("_", "*")),
    Rule("dashes", _dashes, needs=("--",)),
)
"""Rules of every language, before its own."""


_LOOSE_STOP = re.compile(r"\s+([,.;:!?…])(?=\s|$|[”’\"'»)])")


def _tidy(text: str) -> str:
    return _LOOSE_STOP.sub(r"\1", " ".join(text.split()))


@lru_cache(maxsize=128)
def rules_for(language: str) -> tuple[Rule, ...]:
    """The rules of a language (BCP 47 tag) in the order in which they act."""
    base = language_base(language)
    own = ENGLISH_RULES if base in ("en", "") else WORLD_RULES.get(base, ())
    return (*COMMON_RULES, *own)


def spoken_text(
    text: str,
    *,
    language: str,
    spans: Iterable[Span] = (),
    kind: str = "paragraph",
    without: Collection[str] = (),
) -> str:
    """What the voice is given for a printed text. Deterministic; a second pass over its result changes nothing
    that can be heard.

    `spans` mark what is skipped or read otherwise. `without` names rules that are switched off. `kind` is the
    kind of block: a numeral alone in a heading is a number.
    """
    said = spans_apply(text, spans) if spans else text
    figures = any(map(str.isnumeric, said))
    for rule in rules_for(language):
        if rule.name in without or (rule.figures and not figures):
            continue
        if rule.needs and not any(needed in said for needed in rule.needs):
            continue
        if rule.headings_only and kind not in ("heading", "part_title", "subheading"):
            continue
        said = rule.act(said)
    return _tidy(said)


@dataclass(frozen=True, slots=True)
class Change:
    """What one rule did to a text, for showing before and after."""

    rule: str
    before: str
    after: str


def changes_of(
    text: str, *, language: str, spans: Iterable[Span] = (), kind: str = "paragraph"
) -> list[Change]:
    """The rules that changed a text, in order, each with the text before and after it."""
    said = spans_apply(text, spans)
    changes = []
    for rule in rules_for(language):
        if rule.headings_only and kind not in ("heading", "part_title", "subheading"):
            continue
        after = rule.act(said)
        if after != said:
            changes.append(Change(rule.name, said, after))
        said = after
    return changes
