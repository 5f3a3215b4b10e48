"""How long a text will take to say, before any voice was measured. Pure."""

from __future__ import annotations

import re

WORDS_PER_MINUTE = 155  # alphabetic text, common narration speed (DEFAULTS "Hours ahead")
CJK_CHARACTERS_PER_MINUTE = 325  # Korean, Japanese, Chinese: 300-350 characters a minute

# Hangul, kana, Han and their extensions: counted by character, not by word
_CJK = re.compile(
    r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


def words_count(text: str) -> int:
    """Words of an alphabetic text plus CJK characters."""
    characters = len(_CJK.findall(text))
    return characters + len(_WORD.findall(_CJK.sub(" ", text)))


def estimated_ms(text: str) -> int:
    """Predicted length of speech in milliseconds; 0 for text without words."""
    characters = len(_CJK.findall(text))
    words = len(_WORD.findall(_CJK.sub(" ", text)))
    return round(words * 60_000 / WORDS_PER_MINUTE + characters * 60_000 / CJK_CHARACTERS_PER_MINUTE)
