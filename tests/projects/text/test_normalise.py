"""Printed to spoken, by language; every rule can be switched off; what is unclear is left alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.text import FRONTEND_REV, Span, spans_after_edit, spoken_text
from projects.text.headings import heading_number, heading_spoken, looks_like_heading
from projects.text.normalise import changes_of, rules_for
from projects.text.numbers import english_cardinal, english_ordinal, english_year, korean_native, roman_value

ENGLISH = [
    ("It cost $250.", "It cost two hundred and fifty dollars."),
    ("He owed £1.50 and $2.4 million.", "He owed one pound and fifty pence and two point four million dollars."),
    ("It was $1.", "It was one dollar."),
    ("We saw 2,150 geese.", "We saw two thousand one hundred and fifty geese."),
    ("Born in 1864, dead by 1905.", "Born in eighteen sixty-four, dead by nineteen oh five."),
    ("There were 1200 men.", "There were one thousand two hundred men."),
    ("In the 1920s and '30s.", "In the nineteen twenties and thirties."),
    ("The war of 1914–18 ended.", "The war of nineteen fourteen to eighteen ended."),
    ("It was 2.72 or -0.5.", "It was two point seven two or minus zero point five."),
    ("Come at 8:05 am, not 10:00.", "Come at eight oh five am, not ten o'clock."),
    ("Ring 555-0192.", "Ring five five five, zero one nine two."),
    ("Take 3/4 of it, or 2½.", "Take three quarters of it, or two and a half."),
    ("On May 3, 1902 and 4 June.", "On May third, nineteen oh two and the fourth of June."),
    ("On 2021-05-12.", "On May twelfth, twenty twenty-one."),
    ("The 21st of the 2nd month.", "The twenty-first of the second month."),
    ("It rose 5% to 40 km/h.", "It rose five percent to forty kilometres per hour."),
    ("It is 6 ft. long.", "It is six feet long."),
    ("See pp. 12–14 and No. 7.", "See pages twelve to fourteen and number seven."),
    ("Agent 007 came.", "Agent zero zero seven came."),
    ("Room B12.", "Room B twelve."),
    ("Version 2.0.1 works.", "Version two point zero point one works."),
    ("Mr. and Mrs. Orme met Prof. Lowe.", "Mister and Missus Orme met Professor Lowe."),
    ("Dr. Vale lives on Oak Dr. in Hull.", "Doctor Vale lives on Oak Drive in Hull."),
    ("St. Anne's is in Mill St. near us.", "Saint Anne's is in Mill Street near us."),
    ("Nails, rope, etc. came, e.g. tar.", "Nails, rope, et cetera came, for example tar."),
    ("He lives on Oak Dr.", "He lives on Oak Drive."),
    ("Chapter XIX began.", "Chapter nineteen began."),
    ("Henry VIII met Louis XIV.", "Henry the eighth met Louis the fourteenth."),
    ("World War II ended.", "World War two ended."),
    ("King George V died.", "King George the fifth died."),
    ("THE SNOW FELL ALL DAY.", "The snow fell all day."),
    ("It was VERY cold at the BBC.", "It was very cold at the BBC."),
    ("Read www.example.org/a?b=1 now.", "Read example dot org now."),
    ("Mail a.b@example.com.", "Mail a dot b at example dot com."),
    ("Bell & Sons", "Bell and Sons"),
    ("He _never_ came--never.", "He never came—never."),
    ("of\ufb01ce in\u00adside\u2060—here", "office inside—here"),
    ("Hello 👋 there ♡.", "Hello there."),
]  # fmt: skip

UNTOUCHED = [
    "I went home.", "Malcolm X spoke.", "Vitamin C helps.", "I mix it with civic dill.", "So did I.", "The mad MC left.",
    "Did I do it?", "No. He did not.", "No one came.", "She may go in March or May.", "Mary I saw yesterday.", "In this chapter I will speak.",
]  # fmt: skip

OTHERS = [
    ("de", "Dr. Klein kam am 3. Mai 1871.", "Doktor Klein kam am dritten Mai achtzehnhunderteinundsiebzig."),
    ("de", "Es kostet 2,5 %.", "Es kostet zwei Komma fünf Prozent."),
    ("fr", "M. Petit a 21 ans.", "Monsieur Petit a vingt et un ans."),
    ("fr", "C'était drôle et stéréo.", "C'était drôle et stéréo."),
    ("es", "El Sr. Gil tiene 21 años.", "El Señor Gil tiene veintiuno años."),
    ("ko", "사과 3개와 20살, 동광학교(東光學校)", "사과 세 개와 스무 살, 동광학교"),
    ("ja", "麓（ふもと）に３人", "麓に3人"),
    ("xx", "It is 5.", "It is 5."),
]


@pytest.mark.parametrize(("printed", "spoken"), ENGLISH)
def test_english(printed, spoken):
    assert spoken_text(printed, language="en-GB") == spoken


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_only_looks_like_a_code_is_left_alone(text):
    assert spoken_text(text, language="en") == text


@pytest.mark.parametrize(("language", "printed", "spoken"), OTHERS)
def test_other_languages(language, printed, spoken):
    assert spoken_text(printed, language=language) == spoken


def test_each_rule_can_be_switched_off():
    assert (
        spoken_text("Dr. Vale has $5.", language="en", without={"money", "number"}) == "Doctor Vale has $5."
    )
    assert spoken_text("Dr. Vale has $5.", language="en", without={"doctor"}) == "Dr. Vale has five dollars."
    assert all(rule.name for language in ("en", "de", "ko", "xx") for rule in rules_for(language))


def test_changes_are_shown_rule_by_rule():
    changes = changes_of("Dr. Vale has $5.", language="en")
    assert [c.rule for c in changes] == ["doctor", "money"]
    assert changes[0].after == changes[1].before


def test_spans_are_skipped_and_said_otherwise():
    text = "麓の神社1へ"
    spans = (Span(0, 1, "say", "ふもと"), Span(4, 5, "skip", "note mark"))
    assert spoken_text(text, language="ja", spans=spans) == "ふもとの神社へ"
    assert FRONTEND_REV


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=120), st.sampled_from(["en", "de", "fr", "ko", "ja", "ru", "he", "xx", ""]))
def test_any_text_can_be_said(text, language):
    said = spoken_text(text, language=language)
    assert said == " ".join(said.split())
    assert spoken_text(text, language=language) == said


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "the",
                "old",
                "mill",
                "stood",
                "there",
                "and",
                "nobody",
                "came",
                "by",
                "for",
                "many",
                "a",
                "year",
                "until",
                "Ann",
                "did",
            ]
        ),
        max_size=30,
    )
)
def test_plain_words_are_never_changed(words):
    text = " ".join(words)
    assert spoken_text(text, language="en") == text


@given(st.integers(0, 10**12))
def test_english_figures_never_remain(number):
    assert not any(c.isdigit() for c in spoken_text(f"It was {number} and {number:,}.", language="en"))


def test_numbers():
    assert english_cardinal(1_000_017) == "one million and seventeen"
    assert [english_ordinal(n) for n in (1, 12, 20, 101)] == [
        "first",
        "twelfth",
        "twentieth",
        "one hundred and first",
    ]
    assert [english_year(n) for n in (1066, 1900, 2000, 2007, 2024)] == [
        "ten sixty-six", "nineteen hundred", "two thousand", "two thousand and seven", "twenty twenty-four",
    ]  # fmt: skip
    assert [roman_value(t) for t in ("XIV", "IIX", "", "MCMXC")] == [14, None, None, 1990]
    assert [korean_native(n) for n in (3, 20, 21, 100)] == ["세", "스무", "스물한", None]


@pytest.mark.parametrize(
    ("printed", "language", "spoken"),
    [
        ("7. The Letter", "en", "Chapter Seven. The Letter."), ("CHAPTER I.", "en", "Chapter One."), ("XIV", "en", "Chapter Fourteen."),
        ("Part One: Outward", "en", "Part One. Outward."), ("The Storm", "en", "The Storm."), ("Why Not?", "en", "Why Not?"),
        ("Kapitel 3", "de", "Kapitel drei."), ("Erstes Kapitel", "de", "Erstes Kapitel."), ("第一章", "ja", "第一章。"), ("제1장", "ko", "제일장."),
        ("CHAPTER II\nTHE OLD HOUSE", "en", "Chapter Two.\nThe old house."),
    ],
)  # fmt: skip
def test_headings_are_said(printed, language, spoken):
    assert heading_spoken(printed, language=language) == spoken


def test_heading_numbers_and_chapter_lines():
    assert heading_number("Chapter VII: The Letter").number == 7
    assert heading_number("The Seventh Seal") is None
    for line in ("Chapter 1", "CHAPTER II THE PLAN", "Epilogue", "Kapitel 4", "第三章", "제2장 봄"):
        assert looks_like_heading(line), line
    for line in (
        "Part of me died.",
        "Chapter two was long.",
        "I",
        "Book the room, he said.",
        "Introduction of the new law was slow.",
    ):
        assert not looks_like_heading(line), line


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("It fell.1 Yes.", "It fell down.1 Yes.", [(13, 14)]),
        ("It fell.1 Yes.", "It fell. Yes.", []),
        ("It fell.1 Yes.", "Then it fell.1 Yes, it did.", [(13, 14)]),
        ("It fell.1 Yes.", "It fell.1 Yes.", [(8, 9)]),
    ],
)
def test_spans_move_with_their_characters(old, new, kept):
    spans = (Span(8, 9, "skip", "note mark"),)
    assert [(s.start, s.end) for s in spans_after_edit(old, new, spans)] == kept


@given(st.text("abc 1", max_size=30), st.text("abc 1", max_size=30), st.integers(0, 30), st.integers(0, 5))
def test_spans_after_an_edit_stay_within_the_text(old, new, start, length):
    span = Span(min(start, len(old)), min(start + length, len(old)), "skip", "x")
    for moved in spans_after_edit(old, new, (span,)):
        assert 0 <= moved.start <= moved.end <= len(new)
        assert new[moved.start : moved.end] == old[span.start : span.end]
