"""Where sentences end. Rules that know decide; where they do not, pysbd is asked; the text is never touched."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from .languages import language_base
from .wordlist import word_set

OPENERS = "“‘\"'«‹([{¿¡「『（〔［｛〈《【„‚〝"
CLOSERS = "”’\"'»›)]}」』）〕］｝〉》】“‘〞〟"  # “ and ‘ close a quotation in German
TERMINATORS = ".!?…‥。！？｡．؟۔।॥՞։።፧᙮⁇⁈⁉‼"
WIDE = "。！？｡"
"""Terminators of unspaced scripts: the next sentence needs no blank before it."""

_CANDIDATE = re.compile(
    rf"(?P<marks>[{re.escape(TERMINATORS)}]+(?:[ \u00a0\u200a\u202f\u2060]*[{re.escape(TERMINATORS)}]+)*)"
    rf"(?P<close>(?:[ \u00a0\u202f\u2009\u200a]?[»›]|[{re.escape(CLOSERS)}\u2060])*)"
)
_BLANK = " \t\n\r\u00a0\u2002\u2003\u2009\u200a\u202f\u3000\u2060\u200b"
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_LEFT_TOKEN = re.compile(r"[^\s“”‘\"«»()\[\]{}—–…]+$")

_SPEECH = word_set(
    """said says say asked asks ask cried cries replied replies answered answers whispered shouted exclaimed muttered
    murmured called returned added continued remarked observed demanded inquired enquired repeated began
    interrupted growled gasped sighed laughed screamed yelled thought wondered snapped told went put spoke
    declared responded retorted stammered suggested agreed protested insisted breathed groaned roared sobbed
    hissed ejaculated interposed rejoined queried bellowed barked mumbled pleaded"""
)

_STARTERS_EN = word_set(
    """the a an he she it they we you i this that these those there here then when where what who why how his her its
    their our my your but and so or nor yet if in on at by for from with without after before as while although
    though because since until now never no not yes some every everyone everybody everything someone somebody
    something nobody nothing none all both each many most more much few such another other only even just still
    once perhaps maybe however moreover meanwhile later soon suddenly finally again two three one first next last
    let do did does is are was were can could will would shall should may might must have has had which whose whom
    nevertheless therefore thus indeed to up down out over under oh ah well"""
)


@dataclass(frozen=True)
class Abbreviations:
    """Words with a full stop, by what the stop says about the sentence. In lower case, without the last stop.

    `before_name`: a name follows, the sentence goes on ("Dr."). `before_number`: goes on if a number follows.
    `inside`: never ends a sentence ("e.g."). `either`: ends one only if a new one plainly begins ("etc.").
    """

    before_name: frozenset[str] = field(default_factory=frozenset)
    before_number: frozenset[str] = field(default_factory=frozenset)
    inside: frozenset[str] = field(default_factory=frozenset)
    either: frozenset[str] = field(default_factory=frozenset)
    starters: frozenset[str] = field(default_factory=frozenset)
    months: frozenset[str] = field(default_factory=frozenset)
    ordinal_stop: bool = False  # "3. Mai": a number with a full stop is an ordinal


_ENGLISH = Abbreviations(
    before_name=word_set(
        "mr mrs ms messrs dr prof rev revd hon st ste mt ft capt cpt lt col gen maj sgt cpl pvt adm cmdr gov sen"
        " rep pres supt insp det mme mlle sra fr bro msgr mgr esq. hr"
    )
    | word_set("lieut sergt brig comdr commr atty dir ald fig figs mons"),
    before_number=word_set(
        "no nos p pp fig figs vol vols ch chap chaps sec art par ver v vv l ll ed eds nr pt pts"
    ),
    inside=word_set("vs viz cf e.g i.e eg ie ca approx al ibid op cit resp c.f seq"),
    either=word_set(
        "etc inc ltd co corp bros jr sr esq a.m p.m am pm u.s u.k u.s.a u.n d.c ph.d m.d b.a m.a d.phil b.c a.d b.c.e"
        " c.e r.i.p n.b p.s jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri"
        " sat sun ave blvd rd ln hwy dept univ assn est min mins sec secs hr hrs lb lbs oz ft in yd yds mi cm mm"
        " km kg ext tel llc plc gmbh"
    ),
    starters=_STARTERS_EN,
)
_GERMAN = Abbreviations(
    before_name=word_set("hr fr frl dr prof st mag ing dipl hl sr frhr med jur phil rer"),
    before_number=word_set("nr s bd art abs kap abb tab str z"),
    inside=word_set(
        "z.b bzw d.h u.a o.ä u.ä z.t i.d.r vgl ca sog evtl ggf bspw inkl exkl zzgl m.e s.o s.u v.a a.d i.e z.zt"
        " geb gest z d u o i v a"
    ),
    either=word_set("usw usf etc uvm n.chr v.chr chr u.s.w jh jhd min std"),
    starters=word_set(
        "der die das ein eine er sie es wir ihr ich man dann da so als wenn und aber doch nun nur dort hier"
        " dieser diese dieses seine ihre in im am auf bei mit nach von vor zu für was wer wie wo warum"
        " niemand jemand alle viele keiner keine noch schon heute morgen später endlich plötzlich danach"
    ),
    months=word_set(
        "januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert"
    ),
    ordinal_stop=True,
)
_FRENCH = Abbreviations(
    before_name=word_set("m mm mme mmes mlle mlles dr pr me mgr st ste cdt cne gal col sr"),
    before_number=word_set("p pp n no vol chap art fig t"),
    inside=word_set("cf env ex p.ex c.-à-d c.à.d i.e av apr"),
    either=word_set("etc j.-c s.a r.s.v.p"),
    starters=word_set(
        "le la les un une des il elle ils elles on je tu nous vous ce cette ces cela mais et ou donc puis alors"
        " quand comme dans à au aux en sur sous pour par avec sans qui que quoi où pourquoi son sa ses leur"
        " personne rien tout tous"
    ),
)
_SPANISH = Abbreviations(
    before_name=word_set("sr sra srta sres dr dra d dña prof lic ing gral cap cnel sto sta fr mons"),
    before_number=word_set("p pp pág págs núm no n vol cap art fig tel"),
    inside=word_set("p.ej ej cf aprox e.g i.e"),
    either=word_set("etc ud uds vd vds ee.uu s.a a.m p.m d.c a.c avda"),
    starters=word_set(
        "el la los las un una unos unas él ella ellos yo tú nosotros y pero o que cuando como si en de por para"
        " con sin su sus mi este esta ese esa esto eso no nadie nada todo todos luego después entonces ahora"
    ),
)
_ITALIAN = Abbreviations(
    before_name=word_set(
        "sig sig.ra sigg dott dott.ssa prof prof.ssa ing avv geom on rev don s ss mons gen col cap"
    ),
    before_number=word_set("p pp pag pagg n nr vol cap art fig tel"),
    inside=word_set("cfr es p.es ecc. ca i.e"),
    either=word_set("ecc etc a.c d.c s.p.a s.r.l"),
    starters=word_set(
        "il lo la i gli le un uno una egli lui lei essi io tu noi voi e ma o che quando come se in di a da per"
        " con su non nessuno niente tutto tutti poi dopo allora ora questo questa quello quella"
    ),
)
_PORTUGUESE = Abbreviations(
    before_name=word_set("sr sra srta srs dr dra d prof profa eng exmo exma pe fr gen cel cap sto sta"),
    before_number=word_set("p pp pág págs n nº núm vol cap art fig tel"),
    inside=word_set("p.ex ex cf aprox i.e"),
    either=word_set("etc ltda cia s.a a.c d.c v.exa av"),
    starters=word_set(
        "o a os as um uma ele ela eles elas eu tu nós você e mas ou que quando como se em de por para com sem"
        " seu sua meu não ninguém nada tudo todos depois então agora este esta esse essa isto isso"
    ),
)
_RUSSIAN = Abbreviations(
    before_name=word_set("г гг гр д-р проф акад св им ул пл пр д кв гл тов г-н г-жа ген полк"),
    before_number=word_set("с стр т тт гл рис табл п ст № см"),
    inside=word_set("т.е т.к т.н т.о напр ср см т"),
    either=word_set("т.д т.п др пр г гг в вв н.э руб коп тыс млн млрд"),
    starters=word_set(
        "он она оно они я ты мы вы это этот эта эти тот та те и а но или что когда как если в на с к по за от"
        " до из у о не ни никто ничто все всё потом затем тогда теперь там здесь так"
    ),
)
_POLISH = Abbreviations(
    before_name=word_set("p pp dr prof inż mgr św ks gen płk por hr im ul al pl r"),
    before_number=word_set("s str t nr rys tab art ust pkt"),
    inside=word_set("np tj tzn tzw m.in ok por zob wg ds"),
    either=word_set("itd itp etc r w n.e p.n.e godz zł gr"),
    starters=word_set(
        "on ona ono oni one ja ty my wy to ten ta te i a ale lub że kiedy gdy jak jeśli w na z do po za od nie"
        " nikt nic wszyscy wszystko potem wtedy teraz tam tu tak"
    ),
)
_CZECH = Abbreviations(
    before_name=word_set("p pan pí sl dr mudr judr phdr ing mgr bc prof doc sv gen plk kpt ul nám"),
    before_number=word_set("s str č čís obr tab kap sv tel"),
    inside=word_set("např tj tzv tzn resp cca srov viz mj popř"),
    either=word_set("atd apod aj etc r n.l př.n.l stol hod kč"),
    starters=word_set(
        "on ona ono oni já ty my vy to ten ta ti a ale nebo že když jak jestli v na z do po za od s k o ne nikdo"
        " nic všichni všechno potom pak teď tam tady tak"
    ),
    months=word_set(
        "ledna února března dubna května června července srpna září října listopadu prosince století"
    ),
    ordinal_stop=True,
)

ABBREVIATIONS: dict[str, Abbreviations] = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "it": _ITALIAN,
    "pt": _PORTUGUESE,
    "ru": _RUSSIAN,
    "pl": _POLISH,
    "cs": _CZECH,
}

_JA_CONTINUES = re.compile(
    r"\s*(?:と(?!き|ころ|ある)|って|という|とか|など|なんて|は|が|を|も|の|に|で|へ|、|だ|です)"
)
_ZH_SPEECH = re.compile(r"[^。！？，；“「]{0,9}?(?:说|說|问|問|道|喊|叫|答|笑|嚷|喝|骂|罵|叹|嘆)")
_KO_PARTICLE = re.compile(
    r"\s*(?:라고|이라고|라며|이라며|라는|이라는|하고|하며|라면서|하는|라니|이라니|하더니)"
)


class SentenceSplitter(Protocol):
    """Finds sentence ends in one language."""

    def breaks(self, text: str) -> list[int]:
        """Offsets, rising, at which a sentence ends (exclusive) and another follows.

        White space after an offset belongs to neither. The end of the text is not among them.
        """
        ...


class PysbdSplitter:
    """pysbd as it is: what it returns is only used to find places, so it can lose no character."""

    def __init__(self, language: str) -> None:
        import pysbd  # here: most texts never need it, and it costs start-up time

        self._segmenter: Any = pysbd.Segmenter(language=language, clean=False)

    def breaks(self, text: str) -> list[int]:
        ends: list[int] = []
        at = 0
        for piece in self._segmenter.segment(text):
            bare = piece.strip()
            if not bare:
                continue
            found = text.find(bare, at)
            if found < 0 or text[at:found].strip():
                return ends  # it changed the text: trust it no further
            at = found + len(bare)
            ends.append(at)
        return [end for end in ends if text[end:].strip()]


PYSBD_LANGUAGES = word_set("""am ar bg da de el en es fa fr hi hy it ja kk mr my nl pl ru sk ur zh""")


@lru_cache(maxsize=16)
def _pysbd(language: str) -> SentenceSplitter:
    return PysbdSplitter(language if language in PYSBD_LANGUAGES else "en")


@dataclass(frozen=True)
class _Place:
    """A place where a sentence could end."""

    start: int  # of the marks
    marks: str
    close: str
    end: int  # after marks and closing quotes
    right: int  # where the next text begins


class RuleSplitter:
    """Sentence ends by rules; each candidate is a yes, a no, or a question to pysbd."""

    def __init__(self, language: str, *, ask: Callable[[str], SentenceSplitter] = _pysbd) -> None:
        self.language = language_base(language)
        self.known = ABBREVIATIONS.get(self.language, Abbreviations(starters=_STARTERS_EN))
        self._ask = ask

    def breaks(self, text: str) -> list[int]:
        ends: list[int] = []
        asked: set[int] | None = None
        start = 0  # of the sentence so far
        for place in self._places(text):
            if place.end <= start:
                continue
            verdict = self._judge(text, start, place)
            if verdict is None:
                if asked is None:
                    asked = self._asked(text)
                verdict = place.end in asked
            if verdict:
                ends.append(place.end)
                start = place.right
        return ends

    def _asked(self, text: str) -> set[int]:
        return set(self._ask(self.language or "en").breaks(text))

    def _places(self, text: str) -> list[_Place]:
        places = []
        for match in _CANDIDATE.finditer(text):
            end = match.end()
            close = match["close"]
            # A straight or German quote that opens the next sentence is not a closing one.
            while close and close[-1] in "“‘\"'" and self._opens_next(text, match.end("marks"), end):
                cut = len(close) - 1
                close = close[:cut].rstrip(_BLANK)
                end = match.end("marks") + len(close)
            right = end
            while right < len(text) and text[right] in _BLANK:
                right += 1
            if right >= len(text):
                break
            if right == end and not self._needs_no_blank(text, match["marks"], close, end):
                continue
            places.append(_Place(match.start("marks"), match["marks"], close, end, right))
        if self.language in ("ja", "zh"):
            places += self._quote_pairs(text)
            places.sort(key=lambda p: p.end)
        return places

    @staticmethod
    def _opens_next(text: str, marks_end: int, end: int) -> bool:
        """Is the last closing mark before `end` really an opening one: blank before it, letter after it?"""
        before = text[end - 2] if end >= 2 and end - 1 > marks_end - 1 else ""
        after = text[end] if end < len(text) else ""
        return before in _BLANK and after != "" and after not in _BLANK and after not in CLOSERS

    @staticmethod
    def _needs_no_blank(text: str, marks: str, close: str, end: int) -> bool:
        """May a sentence begin right after `end`, without a blank between?"""
        if any(mark in WIDE for mark in marks):
            return True
        if marks[-1] in "।॥؟۔" and not close:
            return True
        follows = text[end]
        # "“Really?”“Really.”", and a missing blank after a closing quote.
        return bool(close) and close[-1] in "”’»" and follows in "“‘«—" and marks[-1] not in ","

    @staticmethod
    def _quote_pairs(text: str) -> list[_Place]:
        """「はい」「いいえ」: turns of speech without a full stop between them."""
        return [
            _Place(m.start(), "", m.group(1), m.end(1), m.end())
            for m in re.finditer(r"(?<![。！？…])([」』])\s*(?=[「『])", text)
        ]

    def _judge(self, text: str, start: int, place: _Place) -> bool | None:
        """Does a sentence end at `place`? None: cannot tell."""
        follows = text[place.right]
        if follows in CLOSERS and follows not in OPENERS:
            return False
        if follows in ",;:、，；：،؛" or (
            follows in "-–—―" and not self._begins_after_dash(text, place.right)
        ):
            return False
        if not _WORD.search(text[start : place.end]):
            return False  # nothing said yet: an ellipsis or a dash opens the sentence
        if not _WORD.search(text, place.right):
            return False  # nothing said after it: keep the marks with the sentence they close
        if not place.marks:
            return True
        if self.language in ("ja", "zh") or any(mark in WIDE for mark in place.marks):
            return self._judge_wide(text, start, place)
        if self._within_brackets(text, start, place):
            return False
        first = self._first_letter(text, place.right)
        if first.islower():
            return False
        if self.language == "ko" and place.close and _KO_PARTICLE.match(text, place.end):
            return False
        last = place.marks[-1]
        if last in "।॥؟۔՞։።፧":
            return True
        if last in "!?⁇⁈⁉‼！？":
            return not self._speech_follows(text, place)
        if last in "…‥" or place.marks.endswith(("..", ". .")):
            word = _WORD.match(text, self._skip_openers(text, place.right))
            return not (
                word and word[0] in ("I", "I’m", "I'm", "I’ve", "I've", "I’ll", "I'll", "I’d", "I'd")
            ) or bool(place.close)
        return self._judge_stop(text, start, place, first)

    def _judge_wide(self, text: str, start: int, place: _Place) -> bool:
        if place.close and self.language == "ja" and _JA_CONTINUES.match(text, place.end):
            return False
        if place.close and self.language == "zh" and _ZH_SPEECH.match(text, place.right):
            return False
        opened = text.rfind("「", start, place.start), text.rfind("」", start, place.start)
        if not place.close and opened[0] > opened[1]:
            shut = text.find("」", place.end)
            # Inside a spoken line: keep it whole unless it is a speech.
            return shut < 0 or shut - opened[0] > 120
        if not place.close and self.language == "zh":
            opened = text.rfind("“", start, place.start), text.rfind("”", start, place.start)
            if opened[0] > opened[1]:
                shut = text.find("”", place.end)
                return shut < 0 or shut - opened[0] > 120
        if "…" in place.marks and not any(mark in WIDE + "!?" for mark in place.marks):
            return bool(place.close)
        return True

    def _judge_stop(self, text: str, start: int, place: _Place, first: str) -> bool | None:
        """A single full stop, followed by something that is not in lower case."""
        if place.start and text[place.start - 1] in _BLANK:
            return True  # "날이었다 . 문안에": a stop set apart is no abbreviation's
        match = _LEFT_TOKEN.search(text, max(start, place.start - 40), place.start)
        token = match[0] if match else ""
        word = token.lstrip(OPENERS + "-–—").casefold()
        nothing_before = not _WORD.search(text[start : place.start - len(token)]) if token else True
        next_match = _WORD.match(text, self._skip_openers(text, place.right))
        next_word = next_match[0] if next_match else ""
        known = self.known
        starter = next_word.casefold() in known.starters
        if place.close and place.close[0] in "”’»\"'":
            return True  # the stop closed a quotation
        if not word:
            return True
        bare = word.rstrip(".")
        number_follows = bool(next_word) and next_word[0].isdigit()
        if bare in known.before_name and bare not in known.either and not (number_follows or starter):
            return False
        if (
            bare in known.before_number
            and (number_follows or re.match(r"[IVXLC]+\b", next_word))
            and not (bare == "no" and nothing_before and not number_follows)
        ):
            return False
        if bare in known.inside:
            return False
        if bare in known.before_name and bare not in known.either:
            # "on Elm Dr. She left": a title is not followed by "She"; but "Fr. The" is rare enough to ask.
            return bool(starter and next_word and not nothing_before)
        if bare in known.either:
            return (
                True
                if starter or text[place.right] in '“‘"«('
                else None
                if next_word[:1].isupper()
                else False
            )
        if bare.isdigit():
            if nothing_before:
                return False  # "1. Rope." a list number
            if known.ordinal_stop and len(bare) <= 2:
                return starter and next_word.casefold() not in known.months
            return True
        if re.fullmatch(r"[ivxlcdm]+", bare) and nothing_before and token.isupper() and len(token) > 1:
            return False  # "IV. The Letter"
        if len(bare) == 1 and bare.isalpha() and token.lstrip(OPENERS).isupper():
            return self._judge_initial(text, start, place, token, next_word, starter, nothing_before)
        if re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", bare):  # "J.R", "U.S.S.R"
            if starter:
                return True
            return None if next_word[:1].isupper() else False
        if self.language and self.language not in ABBREVIATIONS and self.language in PYSBD_LANGUAGES:
            return None
        if token[:1].isupper() and len(bare) <= 4 and not starter and not nothing_before:
            return None
        if (
            not re.search("[aeiouyáéíóúàèìòùäöüâêîôûаеёиоуыэюяæøå]", bare)
            and bare.isalpha()
            and bare.isascii()
        ):
            return None  # "Blvd", "hrs": not a word
        return True

    def _judge_initial(
        self,
        text: str,
        start: int,
        place: _Place,
        token: str,
        next_word: str,
        starter: bool,
        nothing_before: bool,
    ) -> bool | None:
        """A single capital with a full stop: an initial, or the last word of a sentence."""
        before = _LEFT_TOKEN.search(text[start : place.start - len(token)].rstrip())
        previous = before[0] if before else ""
        if self.language == "en" and token.lstrip(OPENERS) == "I" and not nothing_before:
            return not (previous[:1].isupper() and previous.casefold() not in _STARTERS_EN) or starter
        if (
            len(next_word) == 1
            and text[place.right + len(next_word) : place.right + len(next_word) + 1] == "."
        ):
            return False  # "J. R. Whitlow"
        if nothing_before:
            return False
        return bool(starter)

    def _first_letter(self, text: str, at: int) -> str:
        """The first letter or digit from `at` on, past opening marks; "" if something else comes first."""
        at = self._skip_openers(text, at)
        return text[at] if at < len(text) else ""

    @staticmethod
    def _skip_openers(text: str, at: int) -> int:
        while at < len(text) and (text[at] in OPENERS or text[at] in _BLANK or text[at] in "-–—―…_*•"):
            at += 1
        return at

    def _begins_after_dash(self, text: str, at: int) -> bool:
        """“— Да. — Нет.”: a dash that opens a turn of speech, told by a capital or a quote after it."""
        dash = re.match(r"[-–—―]+[\s\u00a0]*", text[at:])
        rest = at + (dash.end() if dash else 1)
        first = self._first_letter(text, rest)
        return first.isupper() or (first != "" and text[rest : rest + 1] in "¿¡")

    def _speech_follows(self, text: str, place: _Place) -> bool:
        """“Are you coming?” Ann asked: the words after the quotation say who spoke."""
        if (
            self.language == "en"
            and place.close
            and place.close[-1] in "”’\"'"
            and text[place.right] not in OPENERS
        ):
            head = _WORD.findall(text, place.right, min(len(text), place.right + 60))[:5]
            if head and (
                head[0].casefold() not in _STARTERS_EN or head[0] in ("I", "He", "She", "They", "We", "The")
            ):
                limit = (
                    3
                    if head[0] in ("The", "Mr", "Mrs", "Miss", "Dr", "Captain", "Sir", "Lady", "Lord")
                    else 2
                )
                following = [w.casefold() for w in head[1:limit]]
                return any(w in _SPEECH for w in following) and not any(
                    h in ["He", "She", "They", "We"] and text[place.right :].startswith(h + " had")
                    for h in head[:1]
                )
        if self.language == "ko" and place.close:
            return bool(_KO_PARTICLE.match(text, place.end))
        return False

    @staticmethod
    def _within_brackets(text: str, start: int, place: _Place) -> bool:
        """Inside a bracket that was opened within this sentence and closes soon."""
        opened = max(text.rfind("(", start, place.end), text.rfind("[", start, place.end))
        if opened <= start:
            return False
        shut = ")" if text[opened] == "(" else "]"
        if text.find(shut, opened, place.end) >= 0 or not _WORD.search(text[start:opened]):
            return False
        closes = text.find(shut, place.end)
        return 0 <= closes - opened < 300


class LineSplitter:
    """Languages without marks that end a sentence (Thai, Lao, Khmer): blanks part phrases, as readers take them."""

    def breaks(self, text: str) -> list[int]:
        return [m.start() for m in re.finditer(r"(?<=[.!?…])\s+(?=\S)", text)]


@lru_cache(maxsize=64)
def splitter_for(language: str) -> SentenceSplitter:
    """The splitter of a language (BCP 47 tag; "" = unknown)."""
    if language_base(language) in ("th", "lo", "km"):
        return LineSplitter()
    return RuleSplitter(language)


_LONG = (
    3_000  # characters: beyond this a paragraph is read in windows, so that time grows with its length only
)


def sentence_ends(text: str, language: str) -> list[int]:
    """Offsets at which sentences of `text` end (exclusive), the last being the end of its last visible character.

    The white space between an offset and the next sentence belongs to no sentence.
    """
    end = len(text.rstrip())
    if not end:
        return []
    splitter = splitter_for(language)
    if len(text) <= _LONG:
        ends = splitter.breaks(text)
    else:
        ends, at = [], 0
        while at < end:
            window = text[at : at + _LONG]
            found = splitter.breaks(window)
            if at + _LONG >= end:
                ends += [at + e for e in found]
                break
            if len(found) < 2:  # one endless sentence: look at all that is left
                ends += [at + e for e in splitter.breaks(text[at:])]
                break
            found = found[:-1]  # the last may depend on what lies behind the window
            ends += [at + e for e in found]
            at += found[-1]
            while at < end and text[at].isspace():
                at += 1
    ends = [e for e in ends if e < end]
    return [*ends, end]
