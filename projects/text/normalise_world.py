"""Rules of languages other than English: what is sure in each, and no more."""

import re

from .numbers import korean_native, words_for
from .rules import Rule, replacing


def _numbers(language: str, *, thousands: str, point: str) -> tuple[Rule, ...]:
    """Plain numbers, decimals and percent in words. `thousands`: the characters that part groups of three."""
    group = re.escape(thousands)
    pattern = rf"(?<![\w{re.escape(point)}])(?P<minus>(?<=\s)[-−])?(?P<whole>\d{{1,3}}(?:[{group}]\d{{3}})+|\d+)(?:{re.escape(point)}(?P<part>\d+))?(?![\w]|[{re.escape(point)}:/]\d)"

    def say(match: re.Match[str]) -> str:
        whole = re.sub(rf"[{group}]", "", match["whole"])
        if len(whole) > 1 and whole.startswith("0") and not match["part"]:
            digits = [words_for(d, language) for d in whole]
            return " ".join(d or "" for d in digits)
        if match["part"]:
            said = words_for(f"{whole}.{match['part']}", language)
        else:
            said = words_for(whole, language) if len(whole) <= 15 else None
        if said is None:
            return match[0]
        return (f"{_MINUS.get(language, 'minus')} " if match["minus"] else "") + said

    return (replacing("number", pattern, say),)


_MINUS = {
    "fr": "moins",
    "es": "menos",
    "it": "meno",
    "pt": "menos",
    "ru": "минус",
    "ko": "마이너스",
    "he": "מינוס",
}
_PERCENT = {
    "de": "Prozent", "fr": "pour cent", "es": "por ciento", "it": "per cento", "pt": "por cento", "nl": "procent",
    "pl": "procent", "cs": "procent", "sv": "procent", "da": "procent", "no": "prosent", "fi": "prosenttia",
    "ru": "процентов", "tr": "yüzde", "ko": "퍼센트", "ja": "パーセント", "hu": "százalék", "ro": "la sută",
}  # fmt: skip


def _percent(language: str) -> Rule:
    word = _PERCENT[language]
    glue = "" if language in ("ko", "ja") else " "
    return replacing("percent", r"(?<=\d)\s?%", f"{glue}{word}")


def _money(signs: dict[str, str]) -> Rule:
    """ "5 €", "€5", "$5": the amount, then the currency."""
    signs_any = "".join(re.escape(s) for s in signs)
    amount = r"\d+(?:[.,\u00a0\u202f ]\d{3})*(?:[.,]\d{1,2})?"

    def say(match: re.Match[str]) -> str:
        return f"{match['a'] or match['b']} {signs[match['s'] or match['t']]}"

    return replacing(
        "money", rf"(?P<s>[{signs_any}])\s?(?P<a>{amount})|(?P<b>{amount})\s?(?P<t>[{signs_any}])", say
    )


def _words(name: str, table: dict[str, str], *, before: str = r"(?<![\w.])") -> Rule:
    """Abbreviations as whole words, with their full stop; longest first."""
    keys = sorted(table, key=len, reverse=True)

    def say(match: re.Match[str]) -> str:
        key = match[0]
        said = table[key]
        ends = key.endswith(".") and re.fullmatch(r"\s*[”’\"'»)\]]*\s*", match.string[match.end() :])
        return said + ("." if ends else "")

    return replacing(name, rf"{before}(?:{'|'.join(map(re.escape, keys))})(?!\w)", say)


_EURO = {
    "de": {"€": "Euro", "$": "Dollar", "£": "Pfund"}, "fr": {"€": "euros", "$": "dollars", "£": "livres"},
    "es": {"€": "euros", "$": "dólares", "£": "libras"}, "it": {"€": "euro", "$": "dollari", "£": "sterline"},
    "pt": {"€": "euros", "$": "dólares", "£": "libras"}, "nl": {"€": "euro", "$": "dollar", "£": "pond"},
}  # fmt: skip

_GERMAN_ORDINALS = {
    1: "erst", 3: "dritt", 7: "siebt", 8: "acht",
}  # fmt: skip
_GERMAN_MONTHS = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"


def _german_date(match: re.Match[str]) -> str:
    day = int(match[2])
    if not 1 <= day <= 31:
        return match[0]
    stem = _GERMAN_ORDINALS.get(day) or (words_for(str(day), "de") or "") + ("t" if day < 20 else "st")
    ending = "en" if match[1] else "er"
    return f"{match[1] or ''}{stem}{ending} {match[3]}"


def _german_year(match: re.Match[str]) -> str:
    return words_for(match[0], "de", "year") or match[0]


_GERMAN = (
    _words(
        "abbreviations",
        {
            "z. B.": "zum Beispiel",
            "z.B.": "zum Beispiel",
            "d. h.": "das heißt",
            "d.h.": "das heißt",
            "usw.": "und so weiter",
            "u. a.": "unter anderem",
            "u.a.": "unter anderem",
            "bzw.": "beziehungsweise",
            "vgl.": "vergleiche",
            "ca.": "circa",
            "Dr.": "Doktor",
            "Prof.": "Professor",
            "Hr.": "Herr",
            "Fr.": "Frau",
            "Nr.": "Nummer",
            "evtl.": "eventuell",
            "ggf.": "gegebenenfalls",
            "sog.": "sogenannte",
            "Str.": "Straße",
            "St.": "Sankt",
            "n. Chr.": "nach Christus",
            "v. Chr.": "vor Christus",
            "etc.": "et cetera",
            "u. s. w.": "und so weiter",
        },
    ),
    _money(_EURO["de"]),
    _percent("de"),
    replacing("date", rf"\b((?:am|vom|zum|dem|den|bis) )?(\d{{1,2}})\.\s({_GERMAN_MONTHS})\b", _german_date),
    replacing("year", r"(?<![\d.,])\b1[1-9]\d\d\b(?![\d.,]\d)", _german_year),
    replacing(
        "clock", r"\b(\d{1,2}):(\d\d) Uhr\b", lambda m: f"{m[1]} Uhr" + (f" {int(m[2])}" if int(m[2]) else "")
    ),
    *_numbers("de", thousands=".\u202f\u00a0", point=","),
)
_FRENCH = (
    _words(
        "abbreviations",
        {
            "M.": "Monsieur",
            "MM.": "Messieurs",
            "Mme": "Madame",
            "Mmes": "Mesdames",
            "Mlle": "Mademoiselle",
            "Dr": "Docteur",
            "Pr": "Professeur",
            "Me": "Maître",
            "etc.": "et cetera",
            "p. ex.": "par exemple",
            "c.-à-d.": "c'est-à-dire",
            "cf.": "confer",
            "av. J.-C.": "avant Jésus-Christ",
            "apr. J.-C.": "après Jésus-Christ",
            "n°": "numéro",
            "St": "Saint",
            "Ste": "Sainte",
        },
    ),
    _money(_EURO["fr"]),
    _percent("fr"),
    replacing("ordinal", r"\b1er\b", "premier"),
    replacing("ordinal", r"\b1re\b", "première"),
    replacing("ordinal", r"\b(\d+)(?:e|ème)\b", lambda m: words_for(m[1], "fr", "ordinal") or m[0]),
    replacing("clock", r"\b(\d{1,2})\s?h\s?(\d\d)\b", lambda m: f"{m[1]} heures {int(m[2]) or ''}".strip()),
    *_numbers("fr", thousands="\u00a0\u202f ", point=","),
)
_SPANISH = (
    _words(
        "abbreviations",
        {
            "Sr.": "Señor",
            "Sra.": "Señora",
            "Srta.": "Señorita",
            "Dr.": "Doctor",
            "Dra.": "Doctora",
            "Ud.": "Usted",
            "Uds.": "Ustedes",
            "etc.": "etcétera",
            "p. ej.": "por ejemplo",
            "EE. UU.": "Estados Unidos",
            "D.": "Don",
            "Dña.": "Doña",
            "núm.": "número",
            "pág.": "página",
        },
    ),
    _money(_EURO["es"]),
    _percent("es"),
    *_numbers("es", thousands=".\u00a0\u202f", point=","),
)
_ITALIAN = (
    _words(
        "abbreviations",
        {
            "Sig.": "Signor",
            "Sig.ra": "Signora",
            "Dott.": "Dottor",
            "Dott.ssa": "Dottoressa",
            "Prof.": "Professor",
            "ecc.": "eccetera",
            "pag.": "pagina",
            "S.": "San",
        },
    ),
    _money(_EURO["it"]),
    _percent("it"),
    *_numbers("it", thousands=".\u00a0\u202f", point=","),
)
_PORTUGUESE = (
    _words(
        "abbreviations",
        {
            "Sr.": "Senhor",
            "Sra.": "Senhora",
            "Dr.": "Doutor",
            "Dra.": "Doutora",
            "D.": "Dona",
            "etc.": "et cetera",
            "p. ex.": "por exemplo",
            "pág.": "página",
        },
    ),
    _money(_EURO["pt"]),
    _percent("pt"),
    *_numbers("pt", thousands=".\u00a0\u202f", point=","),
)
_RUSSIAN = (
    _words(
        "abbreviations",
        {
            "т. е.": "то есть",
            "т.е.": "то есть",
            "т. д.": "так далее",
            "т.д.": "так далее",
            "т. п.": "тому подобное",
            "т.п.": "тому подобное",
            "г-н": "господин",
            "г-жа": "госпожа",
            "др.": "другие",
        },
    ),
    _percent("ru"),
    *_numbers("ru", thousands="\u00a0\u202f ", point=","),
)

_KO_COUNTERS = "시|명|개|살|마리|권|잔|장|대|벌|켤레|송이|그루|채|척|자루|병|통|다발|곳|군데|가지|사람|달|배|바퀴|걸음|마디|숟갈|그릇"


def _korean_counter(match: re.Match[str]) -> str:
    said = korean_native(int(match[1]))
    return f"{said} {match[2]}" if said else match[0]


def _korean_hanja(match: re.Match[str]) -> str:
    """동광학교(東光學校): the word once."""
    return match[1] if len(match[1]) >= len(match[2]) else match[0]


_KOREAN = (
    replacing("hanja_repeated", r"([가-힣]+)\s?[(（]([\u3400-\u9fff]+)[)）]", _korean_hanja),
    replacing("counter", rf"(?<![\d.,제])(\d{{1,2}})\s?({_KO_COUNTERS})(?=[\s가-힣.,!?]|$)", _korean_counter),
    _percent("ko"),
    replacing(
        "number",
        r"(?<![A-Za-z\d.])(\d{1,3}(?:,\d{3})+|\d+)(?![\d.]\d)",
        lambda m: (
            (words_for(m[1].replace(",", ""), "ko") or m[0]).replace(" ", "") if len(m[1]) <= 16 else m[0]
        ),
    ),
)


def _japanese_reading(match: re.Match[str]) -> str:
    """麓（ふもと）: the reading in brackets repeats the word, so it is not said again."""
    return match[1]


_JAPANESE = (
    replacing("reading_repeated", r"([\u3400-\u9fff々]+)[（(][\u3041-\u309fー]+[）)]", _japanese_reading),
)


def _plain(language: str, thousands: str = ".\u00a0\u202f ", point: str = ",") -> tuple[Rule, ...]:
    return (
        *((_percent(language),) if language in _PERCENT else ()),
        *_numbers(language, thousands=thousands, point=point),
    )


WORLD_RULES: dict[str, tuple[Rule, ...]] = {
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "it": _ITALIAN,
    "pt": _PORTUGUESE,
    "ru": _RUSSIAN,
    "ko": _KOREAN,
    "ja": _JAPANESE,
    "nl": (_money(_EURO["nl"]), *_plain("nl")),
    "pl": _plain("pl", "\u00a0\u202f "),
    "cs": _plain("cs", "\u00a0\u202f "),
    "uk": _plain("uk", "\u00a0\u202f "),
    "sv": _plain("sv", "\u00a0\u202f "),
    "da": _plain("da"),
    "no": _plain("no"),
    "fi": _plain("fi", "\u00a0\u202f "),
    "hu": _plain("hu", "\u00a0\u202f "),
    "tr": _plain("tr"),
    "ro": _plain("ro"),
    "he": _numbers("he", thousands=",", point="."),
    "ar": _numbers("ar", thousands=",٬", point="."),
}
"""By two-letter code. A language that is not here gets the common rules only: its figures go to the engine."""
