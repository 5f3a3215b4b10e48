"""What is known about languages: tags, scripts, and what may be said of a text from its letters alone."""

import re
import unicodedata
from functools import lru_cache

from .wordlist import word_set

CJK_LANGUAGES = frozenset({"ja", "zh", "ko", "yue", "wuu"})
"""Languages whose length is counted in characters, not in words."""

UNSPACED_LANGUAGES = word_set("""ja zh yue wuu th lo my km""")
"""Languages written without blanks between words."""

_ISO3 = {
    "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr", "spa": "es", "ita": "it", "por": "pt",
    "rus": "ru", "pol": "pl", "ces": "cs", "cze": "cs", "zho": "zh", "chi": "zh", "jpn": "ja", "kor": "ko",
    "hin": "hi", "ara": "ar", "heb": "he", "iw": "he", "nld": "nl", "dut": "nl", "swe": "sv", "ell": "el",
    "gre": "el", "tur": "tr", "ukr": "uk", "cmn": "zh", "lat": "la", "fas": "fa", "per": "fa",
}  # fmt: skip

_NAMES = {
    "english": "en", "german": "de", "deutsch": "de", "french": "fr", "français": "fr", "spanish": "es",
    "español": "es", "italian": "it", "portuguese": "pt", "russian": "ru", "polish": "pl", "czech": "cs",
    "chinese": "zh", "japanese": "ja", "korean": "ko", "hindi": "hi", "arabic": "ar", "hebrew": "he",
    "dutch": "nl", "swedish": "sv", "greek": "el", "turkish": "tr", "finnish": "fi", "latin": "la",
    "danish": "da", "norwegian": "no", "hungarian": "hu", "catalan": "ca", "esperanto": "eo",
}  # fmt: skip

_TAG = re.compile(r"^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{1,8})*$")

_STOPWORDS = {
    "en": "the and of to a in that he was it his her with as had for not at on you be is but she they which",
    "de": "der die und das ist nicht sie ich ein zu er es den in mit von auf dem sich war wie auch eine hatte",
    "fr": "le la les et de un une des il elle que qui dans est pas pour au ce je ne se du en vous nous était",
    "es": "el la los las y de que en un una no se por con su para es lo al del había como más pero le",
    "it": "il la le di che e un una non per in è si con del della gli lo era come più ma al nel sono",
    "pt": "o a os as e de que em um uma não se por com para é do da no na ao era como mais mas seu",
    "nl": "de het een en van ik te dat die in hij niet zijn is was op met voor er maar om had zij",
    "pl": "i w nie na się z że do to jest jak był ale o co po tak za od przez jego już tylko",
    "cs": "a se na v je že to s z do o jako by ale byl si jsem tak po když za jeho jen",
    "sv": "och att det i en som han på är av för med den till inte om hade var jag hon ett sig",
}


def language_tag(value: str) -> str:
    """A tidy BCP 47 tag ("EN_us" → "en-US", "eng" → "en", "English" → "en"), "" if it is none."""
    value = value.strip().replace("_", "-")
    if value.casefold() in _NAMES:
        return _NAMES[value.casefold()]
    if not _TAG.match(value) or value.casefold() in {"und", "mul", "zxx", "mis"}:
        return ""
    base, *rest = value.split("-")
    base = _ISO3.get(base.lower(), base.lower())
    parts = [
        p.title() if len(p) == 4 and p.isalpha() else p.upper() if len(p) == 2 else p.lower() for p in rest
    ]
    return "-".join([base, *parts])


@lru_cache(maxsize=256)
def language_base(tag: str) -> str:
    """The primary subtag in lower case, ISO 639-1 where there is one: "pt-BR" → "pt", "" → ""."""
    base = tag.strip().replace("_", "-").split("-")[0].lower()
    return _ISO3.get(base, base)


def letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script a text has, for the scripts that tell languages apart."""
    counts: dict[str, int] = {}
    for char in text:
        code = ord(char)
        if code < 0x41:
            continue
        if code < 0x250:
            script = "latin" if char.isalpha() else ""
        elif 0x370 <= code < 0x400:
            script = "greek"
        elif 0x400 <= code < 0x530:
            script = "cyrillic"
        elif 0x590 <= code < 0x600:
            script = "hebrew"
        elif 0x600 <= code < 0x780:
            script = "arabic"
        elif 0x900 <= code < 0x980:
            script = "devanagari"
        elif 0xE00 <= code < 0xE80:
            script = "thai"
        elif 0x3040 <= code < 0x3100:
            script = "kana"
        elif 0x3400 <= code < 0xA000 or 0xF900 <= code < 0xFB00:
            script = "han"
        elif 0xAC00 <= code < 0xD7B0 or 0x1100 <= code < 0x1200:
            script = "hangul"
        else:
            script = ""
        if script:
            counts[script] = counts.get(script, 0) + 1
    return counts


def language_guess(text: str) -> str:
    """The likely language of a text that does not say, "" if there is too little to go by."""
    counts = letters_by_script(text[:20_000])
    total = sum(counts.values())
    if not total:
        return ""
    if counts.get("hangul", 0) > 0.3 * total:
        return "ko"
    if counts.get("kana", 0) > 0.1 * total:
        return "ja"
    if counts.get("han", 0) > 0.4 * total:
        return "zh"
    for script, language in (
        ("cyrillic", "ru"),
        ("greek", "el"),
        ("hebrew", "he"),
        ("arabic", "ar"),
        ("devanagari", "hi"),
        ("thai", "th"),
    ):
        if counts.get(script, 0) > 0.5 * total:
            if language == "ru" and re.search("[іїєґІЇЄҐ]", text[:20_000]):
                return "uk"
            return language
    words = re.findall(r"[^\W\d_]+", text[:20_000].casefold())
    if not words:
        return ""
    scores = {lang: sum(word in known for word in words) for lang, known in _STOPWORD_SETS.items()}
    best = max(scores, key=lambda lang: scores[lang])
    return best if scores[best] >= max(3, 0.12 * len(words)) else ""


_STOPWORD_SETS = {lang: frozenset(words.split()) for lang, words in _STOPWORDS.items()}


def is_speakable(text: str) -> bool:
    """Is there anything in a text that a voice could say: a letter or a digit of any script."""
    return any(unicodedata.category(char)[0] in "LN" for char in text)
