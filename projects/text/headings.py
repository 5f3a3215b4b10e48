"""Titles of chapters: what number they carry, and how they are said."""

import re
from dataclasses import dataclass

from .languages import language_base
from .normalise import spoken_text
from .numbers import english_cardinal, roman_value, words_for

_CHAPTER_WORD = {
    "en": "Chapter", "de": "Kapitel", "fr": "Chapitre", "es": "Capítulo", "it": "Capitolo", "pt": "Capítulo",
    "nl": "Hoofdstuk", "ru": "Глава", "pl": "Rozdział", "cs": "Kapitola", "sv": "Kapitel", "da": "Kapitel",
    "no": "Kapittel", "uk": "Розділ", "fi": "Luku", "tr": "Bölüm", "ro": "Capitolul",
}  # fmt: skip

_PART_WORD = {
    "en": "Part", "de": "Teil", "fr": "Partie", "es": "Parte", "it": "Parte", "pt": "Parte", "nl": "Deel", "ru": "Часть",
    "pl": "Część", "cs": "Část", "sv": "Del", "da": "Del", "no": "Del",
}  # fmt: skip

CHAPTER_WORDS = (
    "chapter|chap|kapitel|chapitre|capítulo|capitulo|capitolo|hoofdstuk|глава|rozdział|kapitola|kapittel|розділ|luku|bölüm"
    "|capitolul|κεφάλαιο"
)
PART_WORDS = (
    "part|book|volume|vol|act|section|teil|buch|band|partie|livre|tome|parte|libro|livro|deel|boek|часть|книга|том"
    "|część|tom|část|kniha|del|bok|partea|stave|canto"
)
STANDING_TITLES = (
    "prologue|epilogue|introduction|preface|foreword|afterword|prelude|interlude|coda|postscript|dedication|prolog|epilog"
    "|vorwort|nachwort|einleitung|prólogo|epílogo|prefacio|introducción|introduzione|prefazione|prologo|epilogo|préface"
    "|avant-propos|postface|épilogue|prefácio|introdução|пролог|эпилог|предисловие|послесловие|введение|wstęp|prolog"
    "|l'envoi|envoi|finis|author[’']s note|note to the reader|to the reader|conclusion|appendix"
)

_UNITS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_ENGLISH_NUMBERS = {w: i for i, w in enumerate(_UNITS.split(), 1)}
for _tens, _value in (
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
):
    _ENGLISH_NUMBERS[_tens] = _value
    for _one, _low in list(_ENGLISH_NUMBERS.items())[:9]:
        _ENGLISH_NUMBERS[f"{_tens}-{_one}"] = _ENGLISH_NUMBERS[f"{_tens} {_one}"] = _value + _low
_ENGLISH_ORDINALS = {
    w: i
    for i, w in enumerate(
        [
            "first",
            "second",
            "third",
            "fourth",
            "fifth",
            "sixth",
            "seventh",
            "eighth",
            "ninth",
            "tenth",
            "eleventh",
            "twelfth",
            "thirteenth",
            "fourteenth",
        ],
        1,
    )
}
_NUMBER_WORDS = {
    **_ENGLISH_NUMBERS,
    **{w: i for i, w in enumerate(["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"], 1)},
    **{w: i for i, w in enumerate(["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze"], 1)},
    **{w: i for i, w in enumerate(["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "once", "doce"], 1)},
    "premier": 1, "première": 1, "primero": 1, "primo": 1, "erstes": 1, "erster": 1, "первая": 1, "вторая": 2, "третья": 3,
    "ten": 10, "the first": 1, "the second": 2, "the third": 3, "the last": 0,
}  # fmt: skip

_NUMBER = r"(?:\d{1,4}|[ivxlcdmIVXLCDM]+|(?:the )?[^\W\d_]+(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?)"
_LABELLED = re.compile(
    rf"^(?P<word>{CHAPTER_WORDS}|{PART_WORDS})\.?\s+(?:the\s+)?(?P<number>{_NUMBER})(?=$|[\s.:,;)\]—–-])(?P<stop>\s*[.:,;)\]—–-]*\s*)(?P<rest>.*)$",
    re.I | re.S,
)
_ORDINAL_FIRST = re.compile(
    rf"^(?P<number>(?:\d+\.|[^\W\d_]+))\s+(?P<word>{CHAPTER_WORDS}|{PART_WORDS})\b(?P<stop>\s*[.:,;—–-]*\s*)(?P<rest>.*)$",
    re.I | re.S,
)
_NUMBERED = re.compile(
    r"^(?P<number>\d{1,4}|[IVXLCDM]+)(?P<stop>\s*[.:)]+(?!\d)\s*|\s*[—–]\s+|—(?!\d)|\s+-\s+|$)(?P<rest>.*)$",
    re.S,
)
_EAST_ASIAN = re.compile(
    r"^第\s*[0-9０-９一二三四五六七八九十百千〇零壱弐参]+\s*[章回節节部卷巻話话篇編编幕集](?P<rest>.*)$|^제?\s*\d+\s*[장부화편권막](?P<rest2>.*)$",
    re.S,
)


@dataclass(frozen=True, slots=True)
class HeadingNumber:
    """A heading taken apart: "Chapter VII: The Letter" → word "Chapter", number 7, rest "The Letter"."""

    word: str  # "" where there is a number alone
    number: int
    rest: str


def number_value(text: str) -> int | None:
    """The value of a number in figures, Roman numerals or words; None if it is none."""
    text = text.strip().rstrip(".")
    if text.isdecimal():
        return int(text)
    folded = text.casefold().removeprefix("the ")
    if folded in _NUMBER_WORDS:
        return _NUMBER_WORDS[folded]
    if folded in _ENGLISH_ORDINALS:
        return _ENGLISH_ORDINALS[folded]
    return roman_value(text.upper()) if re.fullmatch("[ivxlcdm]+|[IVXLCDM]+", text) else None


def heading_number(text: str) -> HeadingNumber | None:
    """The number that a heading carries, None if it carries none."""
    text = " ".join(text.split())
    for pattern in (_LABELLED, _ORDINAL_FIRST):
        match = pattern.match(text)
        if match:
            value = number_value(match["number"])
            if value is not None:
                return HeadingNumber(match["word"], value, match["rest"].strip())
    match = _NUMBERED.match(text)
    if match:
        value = number_value(match["number"])
        if value is not None and (value > 0 or match["number"].isdecimal()):
            return HeadingNumber("", value, match["rest"].strip())
    return None


def looks_like_heading(line: str) -> bool:
    """Does a line of plain text say by itself that it is a heading: "Chapter 7", "第一章", "Epilogue"?"""
    line = " ".join(line.split()).strip("*_#= ")
    if not line or len(line) > 120:
        return False
    if _EAST_ASIAN.match(line):
        rest = next((g for g in _EAST_ASIAN.match(line).groups() if g), "")  # type: ignore[union-attr]
        return (
            len(rest) <= 40
            and not re.search(r"[。.!?！？]$", rest)
            and not re.match(r"[에을를은는이가의과와로]", rest)
        )
    for pattern in (_LABELLED, _ORDINAL_FIRST):
        match = pattern.match(line)
        if match and number_value(match["number"]) is not None:
            word, rest, stop = match["word"], match["rest"].strip(), match["stop"].strip()
            if pattern is _ORDINAL_FIRST and rest and not stop:
                return False
            if not (word[0].isupper() or word.isupper()):
                return False
            if not rest:
                return True
            # "Part two of the plan failed." is a sentence; "Chapter 2. The Plan" and "CHAPTER II THE PLAN" are not.
            if rest[0].islower():
                return False
            if re.search(r"[,;]$", rest) or (
                rest.endswith(".") and len(rest.split()) > 9 and not rest.isupper()
            ):
                return False
            return (
                bool(stop)
                or rest.isupper()
                or (len(rest.split()) <= 8 and rest[0].isupper() and not rest.endswith("."))
            )
    return bool(re.fullmatch(rf"(?:the\s+)?(?:{STANDING_TITLES})[.:]?", line, re.I)) and not line[0].islower()


def _with_stop(text: str, language: str) -> str:
    text = text.strip()
    if not text or text[-1] in ".!?…。！？:;؟।":
        return text
    if text[-1] in "”’\"'»)」』）" and len(text) > 1 and text[-2] in ".!?…。！？":
        return text
    return text + (
        "。"
        if language_base(language) in ("ja", "zh")
        else "।"
        if language_base(language) in ("hi", "mr")
        else "."
    )


def _number_words(number: int, language: str) -> str | None:
    base = language_base(language)
    if base in ("en", ""):
        words = english_cardinal(number)
        return re.sub(r"(^|[ -])(?!and\b)([a-z])", lambda m: m[1] + m[2].upper(), words)
    return words_for(str(number), base)


def heading_spoken(text: str, *, language: str, kind: str = "heading", chapter: bool = True) -> str:
    """How a heading is said, a line for each of its lines: "7. The Letter" → "Chapter Seven. The Letter."

    `kind` is the block kind; only the heading of a chapter (`chapter`) gets the word "Chapter" where it has
    but a number. Each line ends with a stop, so that the voice comes to rest.
    """
    lines = text.split("\n")
    said = []
    base = language_base(language) or "en"
    for index, line in enumerate(lines):
        line = " ".join(line.split())
        found = heading_number(line)
        if found and (index == 0 or found.word) and not re.match(r"\d{4}\b", line):
            words = _number_words(found.number, language)
            word = found.word
            if not word and kind == "part_title":
                word = _PART_WORD.get(base, "")
            elif not word and kind == "heading" and chapter:
                word = _CHAPTER_WORD.get(base, "")
            if words and (word or found.number) and not _is_spelled(line):
                label = (
                    f"{word.capitalize() if word.isupper() or not found.word else word} {words}"
                    if word
                    else words
                )
                if base != "en" and not word:
                    label = words
                rest = spoken_text(found.rest, language=language, kind=kind) if found.rest else ""
                said.append(
                    _with_stop(label[:1].upper() + label[1:], language)
                    + (" " + _with_stop(rest, language) if rest else "")
                )
                continue
        say = spoken_text(line, language=language, kind=kind)
        if base == "en":
            say = say[:1].upper() + say[1:]
            say = re.sub(r"^((?:chapter|book|part|volume) [\w-]+):\s", r"\1. ", say, flags=re.I)
        said.append(_with_stop(say, language))
    return "\n".join(said)


def _is_spelled(line: str) -> bool:
    """ "Chapter the Last", "Chapter Seven": words already, though perhaps in capitals."""
    match = _LABELLED.match(line) or _ORDINAL_FIRST.match(line)
    if not match:
        return False
    return not re.fullmatch(r"\d+\.?|[IVXLCDMivxlcdm]+", match["number"]) and not (
        line.isupper() or ":" in line
    )
