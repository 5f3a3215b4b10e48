"""Numbers in words: English by hand, other languages by num2words, Korean counters in native numbers."""

import re
from functools import lru_cache

_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip

_ROMAN = re.compile(r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def roman_value(text: str) -> int | None:
    """The value of a well-formed Roman numeral in capitals, None if it is none."""
    if not text or not _ROMAN.fullmatch(text):
        return None
    total = 0
    for char, after in zip(text, text[1:] + " ", strict=False):
        value = _ROMAN_VALUES[char]
        total += -value if _ROMAN_VALUES.get(after, 0) > value else value
    return total


def english_cardinal(number: int) -> str:
    """1234 → "one thousand two hundred and thirty-four"."""
    if number < 0:
        return "minus " + english_cardinal(-number)
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_ONES[hundreds]} hundred" + (f" and {english_cardinal(rest)}" if rest else "")
    groups = []
    scale = 0
    while number and scale < len(_SCALES):
        number, group = divmod(number, 1000)
        groups.append((group, _SCALES[scale]))
        scale += 1
    if number:  # beyond what has a name
        return " ".join(_ONES[int(d)] for d in str(number)) + " " + english_cardinal(0)
    words: list[str] = []
    for group, name in reversed(groups):
        if not group:
            continue
        if not name and group < 100 and words:
            words.append("and")
        words.append(english_cardinal(group))
        if name:
            words.append(name)
    return " ".join(words)


def english_ordinal(number: int) -> str:
    """21 → "twenty-first"."""
    head, dash, last = english_cardinal(number).rpartition("-")
    if not dash:
        head, dash, last = english_cardinal(number).rpartition(" ")
    if last in _ORDINALS:
        last = _ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return head + dash + last


def english_digits(digits: str) -> str:
    """One digit after the other: "0134" → "zero one three four"."""
    return " ".join(_ONES[int(d)] for d in digits if d.isdecimal())


def english_year(year: int) -> str:
    """1971 → "nineteen seventy-one", 1905 → "nineteen oh five", 2007 → "two thousand and seven"."""
    century, rest = divmod(year, 100)
    if year < 1000 or (2000 <= year < 2010) or year % 1000 == 0:
        return english_cardinal(year)
    if rest == 0:
        return f"{english_cardinal(century)} hundred"
    if rest < 10:
        return f"{english_cardinal(century)} oh {_ONES[rest]}"
    return f"{english_cardinal(century)} {english_cardinal(rest)}"


def english_decimal(text: str) -> str:
    """ "3.14" → "three point one four", "1,234.5" → "one thousand two hundred and thirty-four point five"."""
    whole, point, part = text.replace(",", "").partition(".")
    spoken = english_cardinal(int(whole)) if whole else "zero"
    return f"{spoken} point {english_digits(part)}" if point and part else spoken


def english_plural(words: str) -> str:
    """ "nineteen twenty" → "nineteen twenties"."""
    if words.endswith("y"):
        return words[:-1] + "ies"
    return words + ("es" if words.endswith(("s", "x")) else "s")


@lru_cache(maxsize=4096)
def words_for(number: str, language: str, to: str = "cardinal") -> str | None:
    """A number in the words of `language` (two-letter code), None if that language is not known.

    `number` is an integer or a decimal with a point.
    """
    from num2words import num2words  # here: costs start-up time, and English does not need it

    try:
        value: int | float = int(number) if "." not in number else float(number)
        if "." in number and language not in ("fr", "de", "es", "it", "pt", "nl", "ru", "pl", "cs", "sv"):
            return None
        return str(num2words(value, lang=language, to=to)).strip()
    except (NotImplementedError, OverflowError, ValueError, TypeError, KeyError, IndexError):
        return None


_KO_ONES = ("", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉")
_KO_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")


def korean_native(number: int) -> str | None:
    """1-99 in the native numbers that stand before counters: 3 → "세", 20 → "스무", 21 → "스물한"."""
    if not 1 <= number <= 99:
        return None
    if number == 20:
        return "스무"
    tens, ones = divmod(number, 10)
    return _KO_TENS[tens] + _KO_ONES[ones]
