"""English rules. Each says a thing only where the text shows what it is; what is unclear stays as printed."""

import re

from .numbers import (
    english_cardinal,
    english_decimal,
    english_digits,
    english_ordinal,
    english_plural,
    english_year,
    roman_value,
)
from .rules import Rule, replacing
from .wordlist import word_set

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_MONTH_SHORT = {m[:3]: m for m in _MONTHS} | {"Sept": "September"}
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_MONTH_ANY = r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_NUM = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"

_CURRENCY = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "US$": ("US dollar", "US dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "", ""),
}
_MAGNITUDE = {
    "k": "thousand",
    "K": "thousand",
    "m": "million",
    "M": "million",
    "bn": "billion",
    "B": "billion",
    "b": "billion",
}

_UNITS = {
    "km": "kilometre", "cm": "centimetre", "mm": "millimetre", "m": "metre", "kg": "kilogram", "mg": "milligram",
    "g": "gram", "ml": "millilitre", "l": "litre", "mi": "mile", "yd": "yard", "yds": "yard", "lb": "pound",
    "lbs": "pound", "oz": "ounce", "mph": "mile per hour", "km/h": "kilometre per hour", "kmh": "kilometre per hour",
    "kph": "kilometre per hour", "ft": "foot", "ft.": "foot", "lb.": "pound", "lbs.": "pound", "oz.": "ounce",
    "yds.": "yard", "in.": "inch", "hz": "hertz", "Hz": "hertz", "kHz": "kilohertz", "MHz": "megahertz",
    "GHz": "gigahertz", "kW": "kilowatt", "W": "watt", "V": "volt", "MB": "megabyte", "GB": "gigabyte",
    "KB": "kilobyte", "kB": "kilobyte", "TB": "terabyte", "ha": "hectare", "mins": "minute", "min.": "minute",
    "mins.": "minute", "secs": "second", "sec.": "second", "hrs": "hour", "hr": "hour", "hrs.": "hour", "hr.": "hour",
    "cwt": "hundredweight", "hp": "horsepower", "dB": "decibel", "ms": "millisecond",
}  # fmt: skip
_UNIT_PLURALS = {
    "foot": "feet", "inch": "inches", "mile per hour": "miles per hour", "hertz": "hertz", "kilohertz": "kilohertz",
    "megahertz": "megahertz", "gigahertz": "gigahertz", "kilometre per hour": "kilometres per hour",
    "hundredweight": "hundredweight", "horsepower": "horsepower",
}  # fmt: skip

_NAMES_OF_RULERS = word_set(
    """Henry Edward Edouard Richard George James Charles William Elizabeth Mary Philip Felipe Louis Napoleon Pius Leo
    Benedict Gregory Paul Clement Innocent Urban Alexander Nicholas Peter Ivan Catherine Frederick Friedrich
    Wilhelm Ferdinand Alfonso Joseph Francis Franz Christian Gustav Gustavus Sixtus Julius Celestine Boniface
    Eugene Adrian Callixtus Martin Victor Emmanuel Umberto Albert Leopold Baudouin Carol Haakon Olaf Harald Magnus
    Eric Erik Canute Malcom Robert David Ptolemy Rameses Ramses Ramesses Amenhotep Thutmose Tutankhamun Seti
    Darius Xerxes Artaxerxes Cyrus Antiochus Seleucus Constantine Theodosius Justinian Otto Rudolf Rudolph
    Maximilian Sigismund Conrad Ladislaus Casimir Stanislaus Vladimir Basil Boris Fyodor Feodor Alexis Pedro Joao
    João Juan Manuel Sancho Alonso Umberto Humbert Amadeus Selim Suleiman Murad Mehmed Mahmud Abdul Bayezid Ismail
    Abbas Margaret Anne Isabella Isabel Joan Eleanor Maria Beatrix Juliana Wilhelmina Stephen Harold Ethelred
    Edmund Edgar Kenneth Duncan Alfred John Honorius Lucius Marcus Tiberius Baldwin Amalric Raymond Thibault Hugh
    Theobald Tarquin Rama"""
)
_TITLES = r"(?:King|Queen|Pope|Emperor|Empress|Tsar|Tsarina|Czar|Kaiser|Sultan|Prince|Princess|Duke|Saint|St)"
_NUMBERED = [
    "Chapter",
    "Book",
    "Part",
    "Volume",
    "Vol",
    "Act",
    "Scene",
    "Canto",
    "Section",
    "Appendix",
    "Figure",
    "Fig",
    "Table",
    "Article",
    "Psalm",
    "Letter",
    "Stave",
    "Lesson",
    "Stanza",
    "Verse",
    "Sonnet",
    "Ode",
    "Title",
    "Phase",
    "Stage",
    "Mark",
    "Type",
    "Class",
    "Grade",
    "Level",
    "Apollo",
    "Gemini",
    "Saturn",
    "Titan",
    "Plate",
    "Map",
    "Note",
    "Number",
    "Day",
    "Week",
    "Year",
    "Episode",
    "Series",
    "Season",
    "Installment",
    "Fit",
]


def _web(match: re.Match[str]) -> str:
    """A web address is said as its domain."""
    host = re.sub(r"^(?:https?://)?(?:www\.)?", "", match[0], flags=re.I)
    host, slash, rest = host.partition("/")
    host = host.split("?")[0].split("#")[0].split("@")[-1].split(":")[0]
    tail = re.search(r"[.,;:!?)\]]*$", (slash + rest) or host)
    end = tail[0] if tail else ""
    return host.rstrip(".,;:!?)]").replace(".", " dot ").replace("-", " dash ") + end


def _mail(match: re.Match[str]) -> str:
    user, _, host = match[0].partition("@")

    def say(part: str) -> str:
        return re.sub(
            r"\s+",
            " ",
            part.replace(".", " dot ")
            .replace("_", " underscore ")
            .replace("-", " dash ")
            .replace("+", " plus "),
        )

    return f"{say(user)} at {say(host)}"


def _money(match: re.Match[str]) -> str:
    sign, amount, scale, short = match["sign"], match["amount"], match["scale"], match["short"]
    one, many, cent, cents = _CURRENCY[sign]
    minus = "minus " if match["minus"] else ""
    if scale or short:
        word = scale or _MAGNITUDE[short]
        return f"{minus}{english_decimal(amount)} {word} {many}"
    whole, point, part = amount.replace(",", "").partition(".")
    number = int(whole)
    if point and len(part) == 2 and cent:
        small = int(part)
        low = f"{english_cardinal(small)} {cent if small == 1 else cents}"
        if not small:
            return f"{minus}{english_cardinal(number)} {one if number == 1 else many}"
        if not number:
            return minus + low
        return f"{minus}{english_cardinal(number)} {one if number == 1 else many} and {low}"
    if point:
        return f"{minus}{english_decimal(amount)} {many}"
    adjective = match.string[match.end() :]
    if re.match(r"-[a-z]", adjective):  # "a $5-bill"
        return f"{minus}{english_cardinal(number)}-{one}"
    return f"{minus}{english_cardinal(number)} {one if number == 1 else many}"


def _clock(match: re.Match[str]) -> str:
    hour, minute, second = int(match["h"]), int(match["m"]), match["s"]
    half = match["half"] or ""
    if hour > 24 or minute > 59:
        return match[0]
    if half:
        half = " " + half
    if minute == 0:
        said = (
            english_cardinal(hour)
            if half or second
            else f"{english_cardinal(hour)} o'clock"
            if 0 < hour <= 12
            else f"{english_cardinal(hour)} hundred hours"
        )
    elif minute < 10:
        said = f"{english_cardinal(hour)} oh {english_cardinal(minute)}"
    else:
        said = f"{english_cardinal(hour)} {english_cardinal(minute)}"
    if second:
        said += f" and {english_cardinal(int(second))} seconds"
    return said + half


def _iso_date(match: re.Match[str]) -> str:
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{_MONTHS[month - 1]} {english_ordinal(day)}, {english_year(year)}"


def _figures_date(match: re.Match[str]) -> str:
    """12.05.2021: which is the month is anybody's guess, so the figures are read one after the other."""
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if not (1 <= first <= 31 and 1 <= second <= 31):
        return match[0]
    low = f"oh {english_cardinal(second)}" if match[3].startswith("0") else english_cardinal(second)
    return f"{english_cardinal(first)} {low} {english_year(year)}"


def _month_day(match: re.Match[str]) -> str:
    day = int(match["day"])
    if not 1 <= day <= 31:
        return match[0]
    return f"{match['month']} {english_ordinal(day)}"


def _day_month(match: re.Match[str]) -> str:
    day = int(match["day"])
    if not 1 <= day <= 31:
        return match[0]
    article = "" if re.search(r"\bthe\s*$", match.string[: match.start()], re.I) else "the "
    return f"{article}{english_ordinal(day)} of {match['month']}"


def _decade(match: re.Match[str]) -> str:
    number = int(match[1])
    if match[2] == "00s" or match[1].endswith("00"):
        return (
            english_cardinal(number // 100) + " hundreds"
            if number % 1000
            else "thousands"
            if number == 1000
            else english_cardinal(number // 1000) + " thousands"
        )
    return english_plural(english_year(number))


def _century(match: re.Match[str]) -> str:
    value = roman_value(match[1])
    return f"{english_ordinal(value)} " if value and value <= 30 else match[0]


def _money_range(match: re.Match[str]) -> str:
    return f"{match[2]} to {match[3]} {_CURRENCY[match[1]][1]}"


def _month_days(match: re.Match[str]) -> str:
    return f"{match[1]} {english_ordinal(int(match[2]))} to {english_ordinal(int(match[3]))}"


def _days_month(match: re.Match[str]) -> str:
    return f"the {english_ordinal(int(match[1]))} to the {english_ordinal(int(match[2]))} of {match[3]}"


def _short_range(match: re.Match[str]) -> str:
    return f"{match[1]} to {match[2]}" if int(match[1]) < int(match[2]) else match[0]


def _short_decade(match: re.Match[str]) -> str:
    return english_plural(english_cardinal(int(match[1])))


_YEAR_BEFORE = re.compile(
    r"(?:\b(?:in|since|until|till|by|from|of|year|before|after|about|circa|ca\.?|c\.|during|around|early|late|spring|summer"
    r"|autumn|fall|winter|January|February|March|April|May|June|July|August|September|October|November|December"
    r"|AD|A\.D\.|anno|through|and|to|between|born|died|b\.|d\.|mid)[\s,-]*|[(\[–—,]\s?|(?:first|second|third|th)\s*,\s*|^)$",
    re.I,
)
_QUANTITY_AFTER = re.compile(
    r"\s+(?:[a-z]+(?:s|men|people|feet|women|children|head|horse)\b|of\b|or so\b|thousand|hundred|million|per\b|miles|metre)"
)
_NOT_QUANTITY = re.compile(
    r"\s+(?:was|is|has|does|this|his|its|as|us|yes|perhaps|always|towards|across|unless|thus|plus|less)\b"
)


def _year(match: re.Match[str]) -> str:
    number = int(match[0])
    before, after = match.string[: match.start()], match.string[match.end() :]
    if _QUANTITY_AFTER.match(after) and not _NOT_QUANTITY.match(after):
        return match[0]
    if (
        _YEAR_BEFORE.search(before)
        or re.match(r"[.,;:!?)\]’'”\"]|\s+(?:was|is|and|to|when|the|she|he|they)\b|$", after)
        or 1500 <= number < 2100
    ):
        return english_year(number)
    return match[0]


def _year_range(match: re.Match[str]) -> str:
    first, second = match[1], match[2]
    if len(second) == 2:
        if int(first[2:]) >= int(second):
            return match[0]
        low = (
            f"oh {english_cardinal(int(second))}" if second.startswith("0") else english_cardinal(int(second))
        )
        return f"{english_year(int(first))} to {low}"
    return f"{english_year(int(first))} to {english_year(int(second))}"


_FRACTION_NAMES = {2: ("half", "halves"), 3: ("third", "thirds"), 4: ("quarter", "quarters")}
_VULGAR = {
    "½": (1, 2), "⅓": (1, 3), "⅔": (2, 3), "¼": (1, 4), "¾": (3, 4), "⅕": (1, 5), "⅖": (2, 5), "⅗": (3, 5), "⅘": (4, 5),
    "⅙": (1, 6), "⅚": (5, 6), "⅛": (1, 8), "⅜": (3, 8), "⅝": (5, 8), "⅞": (7, 8), "⅐": (1, 7), "⅑": (1, 9), "⅒": (1, 10),
}  # fmt: skip


def _fraction_words(top: int, bottom: int) -> str:
    one, many = _FRACTION_NAMES.get(bottom) or (english_ordinal(bottom), english_ordinal(bottom) + "s")
    return f"{english_cardinal(top)} {one if top == 1 else many}"


def _vulgar(match: re.Match[str]) -> str:
    whole, sign = match[1], match[2]
    top, bottom = _VULGAR[sign]
    if not whole:
        return _fraction_words(top, bottom)
    part = (
        "a half"
        if (top, bottom) == (1, 2)
        else "a quarter"
        if (top, bottom) == (1, 4)
        else _fraction_words(top, bottom)
    )
    return f"{english_cardinal(int(whole.replace(',', '')))} and {part}"


def _fraction(match: re.Match[str]) -> str:
    whole, top, bottom = match[1], int(match[2]), int(match[3])
    if top == bottom and not whole:
        return f"{english_cardinal(top)} {english_cardinal(bottom)}"
    if (top, bottom) == (24, 7):
        return "twenty-four seven"
    if (top, bottom) == (9, 11):
        return "nine eleven"
    if not 0 < top < bottom or bottom > 100:
        return match[0]
    if whole:
        part = "a half" if (top, bottom) == (1, 2) else _fraction_words(top, bottom)
        return f"{english_cardinal(int(whole))} and {part}"
    return _fraction_words(top, bottom)


def _phone(match: re.Match[str]) -> str:
    return ", ".join(english_digits(group) for group in re.findall(r"\d+", match[0]))


def _ordinal(match: re.Match[str]) -> str:
    return english_ordinal(int(match[1].replace(",", "")))


def _range(match: re.Match[str]) -> str:
    return f"{match[1]} to {match[2]}"


def _minus(match: re.Match[str]) -> str:
    return f"minus {match[1]}"


def _number(match: re.Match[str]) -> str:
    text = match[0]
    digits = text.replace(",", "")
    if "." not in digits:
        if len(digits) > 1 and digits.startswith("0"):
            return english_digits(digits)
        if "," not in text and len(digits) > 6 and not digits.endswith("000"):
            return english_digits(digits)
        return english_cardinal(int(digits)) if len(digits) <= 21 else english_digits(digits)
    return english_decimal(text)


def _version(match: re.Match[str]) -> str:
    return " point ".join(_number(re.match(r"\d+", part) or match) for part in match[0].split("."))


def _code(match: re.Match[str]) -> str:
    """ "B12", "3D", "MP3": letters and figures apart."""
    text = match[0]
    if re.fullmatch(r"\d+(?:st|nd|rd|th|s|d)", text):
        return text
    return " ".join(
        english_cardinal(int(part))
        if part.isdigit() and (len(part) < 4 and not (len(part) > 1 and part[0] == "0"))
        else english_digits(part)
        if part.isdigit()
        else part
        for part in re.findall(r"\d+|[A-Za-z]+", text)
    )


def _unit(match: re.Match[str]) -> str:
    amount, unit = match["amount"], match["unit"]
    name = _UNITS[unit]
    single = amount.replace(",", "") == "1"
    if match["dash"] == "-":
        return f"{amount}-{name}"
    word = name if single else _UNIT_PLURALS.get(name, name + "s")
    stop = "." if unit.endswith(".") and re.match(r"\s*$|\s+[A-Z]", match.string[match.end() :]) else ""
    return f"{amount} {word}{stop}"


def _percent(match: re.Match[str]) -> str:
    return f"{match[1]} percent"


def _numbered(match: re.Match[str]) -> str:
    word, numeral, after = match["word"], match["numeral"], match.string[match.end() :]
    value = roman_value(numeral)
    if value is None:
        return match[0]
    if len(numeral) == 1:
        # "Chapter I", never "Chapter I wrote": one letter needs a mark or an end after it.
        if numeral not in "IVX" or not re.match(
            r"[.:,;)\]—–-]|\s*$|\s+(?:of|and|to|in which)\b|\s+[A-Z“‘\"]", after
        ):
            return match[0]
        if (
            re.match(r"\s+[A-Z]", after)
            and numeral == "I"
            and not re.match(r"\s+[A-Z]{2}|\s+[A-Z]\w+\s+[A-Z]", after)
        ):
            return match[0]
    return f"{word}{match['gap']}{english_cardinal(value)}"


def _ruler(match: re.Match[str]) -> str:
    title, name, numeral, after = (
        match["title"] or "",
        match["name"],
        match["numeral"],
        match.string[match.end() :],
    )
    value = roman_value(numeral)
    if value is None or value > 40 or (name not in _NAMES_OF_RULERS and not title):
        return match[0]
    if (
        len(numeral) == 1
        and numeral != "V"
        and not title
        and not re.match(
            r"\s*[.,;:!?)’”]|[’']s\b|\s*$|\s+(?:of|died|ruled|reigned|succeeded|abdicated|ascended)\b", after
        )
    ):
        return match[0]  # "Mary I saw yesterday"
    if (
        numeral == "I"
        and title
        and not re.match(
            r"\s*[.,;:!?)’”—]|[’']s\b|\s*$|\s+(?:of|and|was|is|died|ruled|reigned|succeeded|abdicated|ascended|became|who)\b",
            after,
        )
    ):
        return match[0]  # "as to King George I know nothing"
    if numeral in "DCLM" or (
        numeral == "X" and not title and name not in ("Leo", "Pius", "Charles", "Alfonso", "Benedict")
    ):
        return match[0]
    return f"{title}{name} the {english_ordinal(value)}"


def _world_war(match: re.Match[str]) -> str:
    value = roman_value(match[2])
    return f"{match[1]} {english_cardinal(value)}" if value else match[0]


_TITLES_SPOKEN = {
    "Mr": "Mister", "Messrs": "Messieurs", "Mrs": "Missus", "Prof": "Professor", "Rev": "Reverend", "Revd": "Reverend",
    "Capt": "Captain", "Col": "Colonel", "Gen": "General", "Lt": "Lieutenant", "Lieut": "Lieutenant", "Sgt": "Sergeant",
    "Cpl": "Corporal", "Maj": "Major", "Adm": "Admiral", "Gov": "Governor", "Sen": "Senator", "Supt": "Superintendent",
    "Insp": "Inspector", "Hon": "Honourable", "Pres": "President", "Cmdr": "Commander", "Det": "Detective", "Fr": "Father",
    "Rep": "Representative", "Pvt": "Private", "Bro": "Brother", "Mme": "Madame", "Mlle": "Mademoiselle",
}  # fmt: skip
_WORDS_SPOKEN = {
    "etc": "et cetera", "vs": "versus", "e.g": "for example", "i.e": "that is", "viz": "namely", "cf": "compare",
    "Jr": "Junior", "Sr": "Senior", "Esq": "Esquire", "Ltd": "Limited", "Inc": "Incorporated", "Bros": "Brothers",
    "Dept": "Department", "approx": "approximately", "Ave": "Avenue", "Blvd": "Boulevard", "Rd": "Road", "Hwy": "Highway",
    "al": "al", "Mt": "Mount", "Univ": "University", "Assn": "Association", "Corp": "Corporation",
}  # fmt: skip
_BEFORE_NUMBER = {
    "No": "number", "Nos": "numbers", "no": "number", "nos": "numbers", "p": "page", "pp": "pages", "fig": "figure",
    "Fig": "Figure", "figs": "figures", "vol": "volume", "Vol": "Volume", "vols": "volumes", "ch": "chapter",
    "Ch": "Chapter", "chap": "chapter", "Chap": "Chapter", "sec": "section", "Sec": "Section", "c": "circa", "ca": "circa",
    "art": "article", "Art": "Article", "pt": "part", "Pt": "Part", "v": "verse", "vv": "verses", "par": "paragraph",
}  # fmt: skip


def _keeps_stop(match: re.Match[str]) -> str:
    """The full stop of an abbreviation that ends the text or stands before a new sentence is also the sentence's."""
    after = match.string[match.end() :]
    return "." if re.fullmatch(r"\s*[”’\"')\]]*\s*", after) else ""


def _title(match: re.Match[str]) -> str:
    return _TITLES_SPOKEN[match[1]] + _keeps_stop(match)


def _word(match: re.Match[str]) -> str:
    return _WORDS_SPOKEN[match[1]] + _keeps_stop(match)


def _before_number(match: re.Match[str]) -> str:
    return f"{_BEFORE_NUMBER[match[1]]} "


def _doctor(match: re.Match[str]) -> str:
    before, after = match.string[: match.start()], match.string[match.end() :]
    if re.search(r"[A-Z]\w+ $", before) and not re.match(r"\s+[A-Z]", after):
        return "Drive" + _keeps_stop(match)
    return "Doctor" + _keeps_stop(match)


def _saint(match: re.Match[str]) -> str:
    before, after = match.string[: match.start()], match.string[match.end() :]
    street = re.search(r"(?:[A-Z][\w’']*|\d(?:st|nd|rd|th)) $", before)
    if re.match(r"\s+[A-Z]", after) and not (
        street and re.match(r"\s+(?:The|He|She|It|They|We|I|But|And|A|In|On|At)\b", after)
    ):
        if (
            street
            and not re.search(
                r"\b(?:The|At|In|On|And|To|From|By|Of|Near|Saint|Mount|Sir|Church|Cathedral) $", before
            )
            and re.match(r"\s+[A-Z]\w+[.!?]?$", after) is None
            and re.match(r"\s+(?:in|and)\b", after)
        ):
            return "Street"
        return "Saint"
    return ("Street" if street else "Saint") + _keeps_stop(match)


def _month_short(match: re.Match[str]) -> str:
    return _MONTH_SHORT[match[1]] + (" " if match[2] else "")


def _hash(match: re.Match[str]) -> str:
    return f"number {match[1]}"


_COMMON = word_set(
    """the and not you all any can had her was one our out day get has him his how man new now old see two way who
    boy did its let put say she too use very with that this have from they will what when were been into more some
    them then than your much must never only over such take come here just like look make many most no yes so on
    in at to of it is he we be do go if me my or up us as by an am oh ever every even always all nothing something
    anything everything none left right stop help dead alive love hate keep away down back again still there their
    which would could should about after before under great little good bad off why where dont cant wont house
    night rain fell king queen lord lady sir madam time shall may might first last long own own other"""
)
_CAPS_WORD = re.compile(r"(?<![A-Za-z.&'’])[A-Z]{2,}(?:['’][A-Z]+)?(?![A-Za-z&$£€]|\.[A-Z])")


def _sayable(word: str, *, in_run: bool = False) -> bool:
    """Could capitals be a word that is stressed, and not letters that are said one by one? `in_run`: among others."""
    low = word.casefold().replace("’", "").replace("'", "")
    if low in _COMMON or (in_run and low in ("a", "i", "o")):
        return True
    return (
        len(low) >= (4 if in_run else 5)
        and bool(re.search("[aeiouy]", low))
        and not re.search("[bcdfghjklmnpqrstvwxz]{5}", low)
    )


_CAPS_PAIR = re.compile("[A-Z]{2}")
_CAPS_RUN = re.compile(r"\b[A-Z][A-Z’']*\b(?:[\s,;:—–-]+[A-Z][A-Z’']*\b)+(?![a-z.])")
_SHORT_STRESSED = word_set("""no oh so my we he is if all any not and the you""")


def _shouting(text: str) -> str:
    """Words in capitals for stress are words. Letters that are said one by one (BBC, FBI) stay."""
    if not _CAPS_PAIR.search(text):
        return text

    def run(match: re.Match[str]) -> str:
        words = re.findall(r"[A-Z][A-Z’']*", match[0])
        known = sum(_sayable(w, in_run=True) for w in words)
        if not any(len(w) > 2 for w in words) or known < 0.75 * len(words):
            return match[0]
        low = re.sub(
            r"[A-Z][A-Z’']*", lambda w: w[0].lower() if w[0] != "I" and _is_word(w[0]) else w[0], match[0]
        )
        return low[:1].upper() + low[1:] if _at_start(match) else low

    def calm(match: re.Match[str]) -> str:
        word = match[0]
        if roman_value(word) is not None or not (
            word.casefold() in _SHORT_STRESSED or (len(word) > 2 and _sayable(word))
        ):
            return word
        return word.capitalize() if _at_start(match) else word.lower()

    return _CAPS_WORD.sub(calm, _CAPS_RUN.sub(run, text))


def _is_word(word: str) -> bool:
    return len(word) == 1 or len(word) > 4 or _sayable(word, in_run=True)


def _at_start(match: re.Match[str]) -> bool:
    before = match.string[: match.start()].rstrip("“‘\"'( ")
    return not before or before[-1] in ".!?…"


def _numeral_alone(match: re.Match[str]) -> str:
    value = roman_value(match[1])
    return english_cardinal(value).capitalize() + match[2] if value else match[0]


_SYMBOLS = (
    (re.compile(r"(?<=\w)\s*&\s*(?=\w)"), " and "),
    (re.compile(r"(?<=\d)\s*×\s*(?=\d)"), " by "),
    (re.compile(r"\s\+\s"), " plus "),
    (re.compile(r"\s=\s"), " equals "),
    (re.compile(r"§\s*(?=\d)"), "section "),
    (re.compile(r"№\s*(?=\d)"), "number "),
    (re.compile(r"(?<=\d)\s?°\s?C\b|(?<=\d)\s?℃"), " degrees Celsius"),
    (re.compile(r"(?<=\d)\s?°\s?F\b|(?<=\d)\s?℉"), " degrees Fahrenheit"),
    (re.compile(r"(?<=\d)\s?°"), " degrees"),
    (re.compile(r"\band/or\b"), "and or"),
    (re.compile(r"©\s?"), "copyright "),
    (re.compile(r"\b(w)/(o)\b"), "without"),
)


def _symbols(text: str) -> str:
    for pattern, by in _SYMBOLS:
        text = pattern.sub(by, text)
    return text


_END = r"(?=[\s.,;:!?)\]’”\"'—–-]|$)"

ENGLISH_RULES: tuple[Rule, ...] = (
    replacing("email", r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b", _mail, needs=("@",)),
    replacing(
        "web_address", r"\b(?:https?://|www\.)[^\s<>“”\"]+", _web, flags=re.I, needs=("://", "www.", "WWW.")
    ),
    Rule("shouting", _shouting),
    replacing(
        "numeral_heading", r"^([IVXLCDM]+)([.:]?)(?=$|[.:]\s|\s*[—–-])", _numeral_alone, headings_only=True
    ),
    replacing("century_roman", r"\b([IVX]+)(?:th|st|nd|rd)? (?=[Cc]entur(?:y|ies)\b)", _century),
    replacing("world_war", r"\b((?:First |Second )?World War|Vatican|Super Bowl) ([IVXL]+)\b", _world_war),
    replacing(
        "numbered_roman",
        rf"\b(?P<word>{'|'.join(_NUMBERED)}|{'|'.join(w.upper() for w in _NUMBERED)})(?P<gap>\.? )(?P<numeral>[IVXLC]+)\b",
        _numbered,
    ),
    replacing(
        "ruler_roman",
        rf"(?P<title>\b{_TITLES} )?\b(?P<name>[A-Z][a-zéèãç]+) (?:the )?(?P<numeral>[IVX]+)\b(?!\.[A-Z])",
        _ruler,
    ),
    replacing("months_short", rf"\b({_MONTH_ANY})\.?(\s)(?=\d)", _month_short),
    replacing("doctor", r"\bDr\.", _doctor, needs=("Dr.",)),
    replacing("doctor", r"\bDr(?= [A-Z])", "Doctor"),
    replacing("saint", r"\bSt\.", _saint, needs=("St.",)),
    replacing("saint", r"\bSt(?= [A-Z][a-z])", "Saint"),
    replacing("titles", rf"\b({'|'.join(_TITLES_SPOKEN)})\.(?=\s|$|[”’\"'])", _title, needs=(".",)),
    replacing("titles", r"\b(Mr|Mrs|Messrs|Prof|Capt)(?= [A-Z])", lambda m: _TITLES_SPOKEN[m[1]]),
    replacing("number_sign", r"(?<![\w&])#(\d+)\b", _hash),
    replacing("before_number", rf"\b({'|'.join(_BEFORE_NUMBER)})\.\s?(?=\d)", _before_number),
    replacing("abbreviations", r"(?<!\w)&c\.?", lambda m: "et cetera" + _keeps_stop(m), needs=("&c",)),
    replacing(
        "abbreviations",
        rf"(?<![\w.])({'|'.join(re.escape(w) for w in _WORDS_SPOKEN)})\.(?=[\s,;:!?)\]”’\"']|$)",
        _word,
    ),
    replacing("money", r"([$£€])(\d+)\s?[-–]\s?[$£€]?(\d+)\b(?![.,]?\d)", _money_range),
    replacing(
        "money",
        r"(?P<minus>(?<![\w-])[-−])?(?P<sign>US\$|[$£€¥₹₩])\s?(?P<amount>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
        r"(?:[ -](?P<scale>hundred thousand|hundred|thousand|million|billion|trillion)\b|(?P<short>bn|[kKmMBb])\b)?",
        _money,
    ),
    replacing("money", r"\b(\d+)\s?¢", lambda m: f"{m[1]} cent{'s' if m[1] != '1' else ''}"),
    replacing("money", r"\b(\d+)p(?=[\s.,;:!?)]|$)", lambda m: f"{m[1]} pence"),
    replacing("iso_date", r"\b(\d{4})[-/](\d\d)[-/](\d\d)\b", _iso_date),
    replacing("figures_date", r"(?<![\d.])(\d{1,2})([./-])(\d{1,2})\2(\d{4})\b(?!\.\d)", _figures_date),
    replacing(
        "phone", r"(?<![\w+])\+\d{1,3}(?:[ -]\(?\d{1,5}\)?){2,5}(?![\d-])", lambda m: "plus " + _phone(m)
    ),
    replacing(
        "phone", r"(?<![\d$.,-])(?:\+?\d{1,3}[ -])?(?:\(\d{3}\) ?|\d{3}[-. ])?\d{3}-\d{4}\b(?![\d-])", _phone
    ),
    replacing(
        "clock",
        r"(?<![\d:.])(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d))?(?:\s?(?P<half>[AaPp]\.?\s?[Mm]\b\.?))?(?![\d:])",
        _clock,
    ),
    replacing("clock", r"\b(\d{1,2})\s?(?=[ap]\.?m\b)", lambda m: english_cardinal(int(m[1])) + " "),
    replacing("ratio", r"(?<![\d:.])(\d+):(\d+)(?![\d:])", lambda m: f"{m[1]} to {m[2]}"),
    replacing("month_day", rf"\b({_MONTH}) (\d{{1,2}})\s?[-–]\s?(\d{{1,2}})\b(?![:\d]|[.,]\d)", _month_days),
    replacing("day_month", rf"\b(\d{{1,2}})\s?[-–]\s?(\d{{1,2}}) ({_MONTH})\b", _days_month),
    replacing(
        "month_day",
        rf"\b(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:\d]|[.,]\d)",
        _month_day,
    ),
    replacing(
        "day_month", rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})\b", _day_month
    ),
    replacing("decade", r"\b(1\d\d0|20\d0)[’']?(s)\b", _decade),
    replacing("decade", r"(?<![\w])[’'‘](\d0)s\b", _short_decade),
    replacing("decade", r"\b([2-9]0)s\b", _short_decade),
    replacing(
        "short_year",
        r"(?<![\w])[’'](\d\d)\b(?![’'\d])",
        lambda m: english_cardinal(int(m[1])) if m[1][0] != "0" else f"oh {english_cardinal(int(m[1]))}",
    ),
    replacing(
        "year_range", r"(?<![\d,.])(1\d{3}|20\d\d)\s?[–—-]\s?(1\d{3}|20\d\d|\d\d)\b(?![\d,.]\d)", _year_range
    ),
    replacing("version", r"(?<![\w.])\d+(?:\.\d+){2,}\b", _version),
    replacing("percent", rf"({_NUM})\s?%", _percent),
    replacing(
        "units",
        rf"(?P<amount>(?<![\w.])(?:{_NUM}))(?P<dash>[ -]?)(?P<unit>{'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w/’'])",
        _unit,
    ),
    Rule("symbols", _symbols, needs=tuple("&×+=§№°℃℉/©")),
    replacing("vulgar_fraction", rf"(\d+)?\s?([{''.join(_VULGAR)}])", _vulgar),
    replacing("fraction", r"(?<![\w/.,])(?:(\d+)[ -])?(\d{1,2})[/⁄](\d{1,3})(?![\w/]|[.,]\d)", _fraction),
    replacing("ordinal", r"\b(\d+(?:,\d{3})*)(?:st|nd|rd|th|d)\b", _ordinal),
    replacing("range", r"(?<![\w.,$£€-])(\d{1,3})-(\d{1,3})(?![\w-]|[.,]\d)", _short_range),
    replacing("by", r"(?<=\d)\s?[x×]\s?(?=\d)", " by "),
    replacing(
        "feet_inches", r"\b(\d{1,2})[’'′]\s?(\d{1,2})(?:[\"”″]|[’'′]{2})", lambda m: f"{m[1]} foot {m[2]}"
    ),
    replacing("range", rf"(?<![\w.,-])({_NUM})\s?[–—]\s?({_NUM})(?![\d-])", _range),
    replacing("range", r"(?<=pages )(\d+)-(\d+)", _range),
    replacing("minus", r"(?:(?<=\s)|(?<=^)|(?<=[(“‘\"]))[-−](\d)", _minus),
    replacing("year", r"(?<![\d.,$£€-])\b(?:1[1-9]\d\d|20\d\d)\b(?![,.]?\d|[-–]\d)", _year),
    replacing("codes", r"\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]+\b", _code),
    replacing("number", r"(?<![\w])(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)", _number),
    replacing("number", r"\d+", lambda m: f" {_number(m)} "),
)
