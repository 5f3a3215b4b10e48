"""Which encoding a plain text is in: marks first, then what each candidate would make of the bytes."""

import re

from projects.text.languages import language_base

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_SAMPLE = 400_000

_EXPECTED = {"ja": ("cp932", "euc_jp", "iso2022_jp"), "ko": ("cp949",), "zh": ("gb18030", "big5"), "ru": ("cp1251", "koi8_r", "cp866"),
             "uk": ("cp1251", "koi8_u"), "bg": ("cp1251",), "pl": ("cp1250", "iso8859_2"), "cs": ("cp1250", "iso8859_2"),
             "sk": ("cp1250",), "hu": ("cp1250",), "el": ("cp1253",), "tr": ("cp1254",), "he": ("cp1255",), "ar": ("cp1256",)}  # fmt: skip


def is_binary(data: bytes) -> bool:
    """Do bytes look like no text at all? Null bytes are no proof: UTF-16 is full of them."""
    sample = data[:8192]
    if not sample or any(sample.startswith(mark) for mark, _ in _BOMS) or _utf16_without_mark(sample):
        return False
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in sample)
    return odd > max(2, len(sample) // 100)


def _utf16_without_mark(sample: bytes) -> str:
    if len(sample) < 8:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.4 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.4 * half and odd < 0.05 * half:
        return "utf-16-be"
    return ""


def plain_decode(data: bytes, language: str = "") -> tuple[str, str, list[str]]:
    """(text, encoding, warnings) of a plain text file. Never fails: the last resort is Windows-1252."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            try:
                return data.decode(name), name, []
            except UnicodeDecodeError:
                return (
                    data.decode(name, "replace"),
                    name,
                    ["Some bytes of the text could not be read; they are marked with �."],
                )
    if name := _utf16_without_mark(data[:8192]):
        return data.decode(name, "replace"), name, []
    try:
        text = data.decode("utf-8")
        if "\x1b$" not in text[:_SAMPLE]:
            return text, "utf-8", []
    except UnicodeDecodeError as exc:
        # A UTF-8 text with a few broken bytes is still UTF-8.
        bad = data.decode("utf-8", "replace").count("�")
        good = len(re.findall(rb"[\xc2-\xf4][\x80-\xbf]+", data))
        if exc.start > 0 and good > 20 * bad:
            return (
                data.decode("utf-8", "replace"),
                "utf-8",
                ["Some bytes of the text could not be read; they are marked with �."],
            )
    sample = data[:_SAMPLE]
    if b"\x1b$" in sample or b"\x1b(" in sample:
        try:
            return data.decode("iso2022_jp"), "iso2022_jp", []
        except UnicodeDecodeError:
            pass
    expected = _EXPECTED.get(language_base(language), ())
    best, best_score = "cp1252", -1.0
    for name in (
        "cp932",
        "euc_jp",
        "cp949",
        "gb18030",
        "big5",
        "cp1251",
        "koi8_r",
        "cp1250",
        "cp1253",
        "cp1255",
        "cp1256",
        "cp1252",
    ):
        score = _plausible(sample, name) + (0.25 if name in expected else 0)
        if score > best_score:
            best, best_score = name, score
    try:
        return data.decode(best), best, []
    except UnicodeDecodeError:
        text = data.decode(best, "replace")
        if best == "cp1252":
            text = "".join(
                chr(b)
                if 0x80 <= b < 0xA0 and bytes([b]).decode("cp1252", "ignore") == ""
                else bytes([b]).decode("cp1252")
                for b in data
            )
            return text, "cp1252", ["The encoding of the text is uncertain: it was read as Windows-1252."]
        return text, best, ["Some bytes of the text could not be read; they are marked with �."]


def _plausible(sample: bytes, name: str) -> float:
    """How much like writing the bytes look in an encoding, about 0 to 1; -1 if they are invalid in it."""
    text = ""
    for cut in range(4):  # the sample may end within a character
        try:
            text = sample[: len(sample) - cut].decode(name)
            break
        except UnicodeDecodeError:
            if len(sample) < _SAMPLE:
                break
    if not text:
        return -1
    high = [c for c in text if ord(c) > 127]
    if not high:
        return 0.5 if name == "cp1252" else 0
    total = len(high)
    kana = sum("\u3041" <= c <= "\u30fe" for c in high)
    hangul = sum("\uac00" <= c <= "\ud7a3" for c in high)
    han = sum("\u4e00" <= c <= "\u9fff" for c in high)
    wide = sum(c in "。、「」『』（），．！？：；…―—“”‘’・ー　《》〈〉〔〕" for c in high)
    half_kana = sum("\uff61" <= c <= "\uff9f" for c in high)
    strange = sum(
        "\ue000" <= c <= "\uf8ff" or c == "\ufffd" or "\u0080" <= c < "\u00a0" or "\u2500" <= c < "\u25a0"
        for c in high
    )
    if name in ("cp932", "euc_jp"):
        if kana < 0.15 * total:
            return 0.1
        return 0.6 + 0.4 * (kana + han + wide) / total - 3 * half_kana / total - 3 * strange / total
    if name == "cp949":
        return (0.6 + 0.4 * (hangul + wide) / total - 2 * strange / total) if hangul > 0.5 * total else 0.1
    if name in ("gb18030", "big5"):
        common = sum(c in _COMMON_HAN for c in high)
        return (
            (0.5 + min(0.45, 3 * common / total) * ((han + wide) / total) - 2 * strange / total)
            if han > 0.5 * total
            else 0.1
        )
    letters = sum(c.isalpha() for c in high)
    all_letters = sum(c.isalpha() for c in text)
    if name in ("cp1251", "koi8_r", "cp1253", "cp1255", "cp1256"):
        low, top = {
            "cp1251": ("\u0400", "\u04ff"),
            "koi8_r": ("\u0400", "\u04ff"),
            "cp1253": ("\u0370", "\u03ff"),
            "cp1255": ("\u0590", "\u05ff"),
            "cp1256": ("\u0600", "\u06ff"),
        }[name]
        own = [c for c in text if low <= c <= top]
        if len(own) < 0.6 * all_letters or len(own) < 0.7 * len(high):
            return 0.1
        base = 0.7
        if name in ("cp1251", "koi8_r"):
            # In Russian small letters by far outnumber capitals; in the wrong one of the two it is the reverse.
            small = sum(c.islower() for c in own)
            common = sum(c in "оеаинтсрвл" for c in own)
            base += 0.2 * (small / len(own)) + 0.3 * (common / len(own)) - 0.3
        elif name == "cp1253":
            base += 0.2 * sum(c in "αοιετσνηυρ" for c in own) / len(own)
        return base - 2 * strange / total
    # Western and Central European: high characters stand between letters or are quotes and dashes.
    quotes = sum(c in "‘’“”–—…„«»€£©®°·¿¡§" for c in high)
    score = 0.55 * (letters + quotes) / total - 2 * strange / total
    pairs = len(re.findall(r"[^\x00-\x7f\W]{3,}", text))
    score -= min(0.4, pairs / max(1, total) * 2)
    if name == "cp1252":
        return score + 0.05
    central = sum(c in "ąęśźżćłńóěščřžýáíéúůďťňőűŁŚŻČŘŠŽ" for c in high)
    western = sum(c in "ěščřžůőűąęłśźż" for c in high)
    return score + (0.02 if western > 0.1 * total else -0.1) + 0.1 * central / total


_COMMON_HAN = frozenset(
    "的一是不了在人有我他这個这们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年過过發后作里用道行所然家種事成方多经麼么去法学如都同现當没動面起看定天分還进好小部其些主样理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運"
)
