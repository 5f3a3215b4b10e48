"""Segments join to their block, never exceed what an engine takes, and end where sentences end."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.text import Span, boundary_between, is_dialogue, segment_block
from projects.text.kinds import BLOCK_KINDS, BOUNDARY_KINDS
from projects.text.segment import SEGMENT_MAX_CHARS, SEGMENT_MAX_CHARS_CJK

ENGLISH = [
    (["Mrs. Vale saw Capt. Orme near St. Brides.", "They spoke."]),
    (["It is Nos. 4 and 5, not No. 6.", "No.", "It is not."]),
    (["K. T. Moor signed it.", "B. Lane did not."]),
    (["He sailed to the U.K. but died in Spain."]),
    (["She bought nails, glue, etc. and a saw.", "Then she left."]),
    (["See vol. 3, pp. 5–9 and fig. 2 there."]),
    (["They came at 7 a.m.", "Nobody slept."]),
    (["It opened at 7 a.m. on Monday."]),
    (["“Will you stay?” he asked."]),
    (["“Will you stay?” Ann asked."]),
    (["“Run!” she shouted.", "“It is falling.”"]),
    (["Who cried “Help?!” out there?"]),
    (["“Never?”", "“Never.”"]),
    (["He said, “Go home.”", "Then he slept."]),
    (["“Wait!”, he said."]),
    (["(Nobody knew.)", "We sat down."]),
    (["He came (it was late. It was dark) and left."]),
    (["It rose 2.5% to $7.10 in 1920.", "It fell after."]),
    (["Read https://example.org/x.y?z=1.2 first."]),
    (["Mail a.b@example.com.", "He answers."]),
    (["She has 7.", "He has 12."]),
    (["Hm... what is it?"]),
    (["Stop!!!", "Go on!"]),
    (["So did I.", "He laughed."]),
    (["1. Salt.", "2. Tar."]),
    (["He wrote to Messrs. Bell & Co. in Hull."]),
    (["“Oh, Mr. Fitch!”", "“Yes, Dr. Lowe?”"]),
    (["It was 5 p.m.", "The sun was low."]),
    (["We love it 👩‍👧.", "Wave 👋!"]),
    (["It was plan B.", "Then came plan C."]),
    (["“What is it?” said the old man.", "“A ship.”"]),
]  # fmt: skip

OTHERS = [
    ("de", ["Dr. Klein kam am 3. Mai an.", "Er blieb bis zum 5. Juni."]),
    ("de", ["„Kommst du?“, fragte sie.", "„Ja.“"]),
    ("de", ["Es gab Äpfel, Birnen usw. im Keller.", "Niemand aß sie."]),
    ("de", ["Das ist z. B. ein Satz.", "Das auch."]),
    ("fr", ["M. Petit est parti.", "Il pleuvait."]),
    ("fr", ["« Tu viens ? » demanda-t-elle.", "« Non. »"]),
    ("es", ["El Sr. Gil llegó.", "¿Quién era?", "¡Nadie lo supo!"]),
    ("es", ["—¿Vienes? —preguntó ella.", "—No."]),
    ("it", ["Il sig. Neri partì.", "Pioveva."]),
    ("pt", ["O Sr. Reis saiu.", "Chovia muito."]),
    ("ru", ["— Ты идёшь? — спросила она.", "— Нет."]),
    ("ru", ["Он взял хлеб, соль и т. д. и ушёл.", "Шёл дождь."]),
    ("pl", ["Przyszedł dr Nowak.", "Padał deszcz."]),
    ("cs", ["Přišel 3. května.", "Pršelo."]),
    ("zh", ["他走了。", "我留下了！", "你呢？"]),
    ("zh", ["“你走吗？”她问。", "他没有回答。"]),
    ("ja", ["雪が降った。", "寒い！", "どこへ行く？"]),
    ("ja", ["「行くの？」と彼は聞いた。", "彼女は黙った。"]),
    ("ja", ["「はい」", "「いいえ」"]),
    ("ko", ["비가 왔다.", "우산이 없었다!", "어떻게 할까?"]),
    ("ko", ["“가자.” 라고 그가 말했다.", "나는 웃었다."]),
    ("hi", ["वह आया।", "मैं गया।", "कौन था?"]),
    ("ar", ["خرج الولد.", "هل عاد؟", "نعم عاد!"]),
    ("he", ["הוא הלך.", "מי בא?", "איש לא בא."]),
    ("el", ["Έφυγε.", "Κανείς δεν ήρθε."]),
    ("en", ["She said 再见。", "Then she went."]),
]


def split(text: str, language: str = "en", **more) -> list[str]:
    drafts = segment_block("paragraph", text, language=language, **more)
    assert "".join(d.text + d.separator for d in drafts) == text
    return [d.text for d in drafts]


@pytest.mark.parametrize("sentences", ENGLISH, ids=lambda s: s[0][:30])
def test_english_sentences(sentences):
    assert split(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    ("language", "sentences"), OTHERS, ids=lambda x: x if isinstance(x, str) else x[0][:20]
)
def test_sentences_of_other_languages(language, sentences):
    glue = "" if language in ("zh", "ja") else " "
    assert split(glue.join(sentences), language) == sentences


@pytest.mark.parametrize("text", ["...", "—", "* * *", "?!", "“ ”", "♡", "……", "👋"])
def test_nothing_to_say_is_a_pause(text):
    drafts = segment_block("paragraph", text, language="en")
    assert "".join(d.text + d.separator for d in drafts) == text
    assert [d.spoken for d in drafts] == [""]


def test_a_thousand_words_without_a_stop_are_cut_between_words():
    text = " ".join(f"word{n}" for n in range(1000))
    drafts = segment_block("paragraph", text, language="en")
    assert max(len(d.text) for d in drafts) <= SEGMENT_MAX_CHARS
    assert {d.boundary for d in drafts[:-1]} == {"clause_split"}
    assert " ".join(d.text for d in drafts) == text


def test_long_sentences_are_cut_after_commas():
    text = ", ".join(f"the {n}th man of the row" for n in range(200)) + "."
    assert all(t.endswith(",") for t in split(text)[:-1])


def test_cjk_pieces_are_shorter_and_never_part_combining_characters():
    assert max(map(len, split("あ" * 1000, "ja"))) <= SEGMENT_MAX_CHARS_CJK
    pieces = split("e\u0301" * 600)
    assert not any(unicodedata.combining(p[0]) for p in pieces)


def test_note_marks_neither_hide_nor_make_sentence_ends():
    text = "It fell in 1879.1 Nobody knew* why. The end."
    spans = [
        Span(16, 17, "skip", "note mark"),
        Span(text.index("*"), text.index("*") + 1, "skip", "note mark"),
    ]
    drafts = segment_block("paragraph", text, language="en", spans=spans)
    assert [d.text for d in drafts] == ["It fell in 1879.1", "Nobody knew* why.", "The end."]
    assert [d.spoken for d in drafts] == ["It fell in eighteen seventy-nine.", "Nobody knew why.", "The end."]


def test_headings_are_segments_of_their_own_with_their_spoken_form():
    drafts = segment_block(
        "heading", "VII\nThe Letter. And More", language="en", spoken="Chapter Seven.\nThe Letter. And More."
    )
    assert [(d.text, d.separator, d.boundary, d.spoken) for d in drafts] == [
        ("VII", "\n", "chapter_number", "Chapter Seven."),
        ("The Letter. And More", "", "chapter_number", "The Letter. And More."),
    ]
    (whole,) = segment_block("heading", "VII\nThe Letter", language="en", spoken="Seven, the letter.")
    assert (whole.text, whole.spoken) == ("VII\nThe Letter", "Seven, the letter.")


def test_verse_is_cut_at_its_lines():
    drafts = segment_block("verse", "The wheel goes round,\nThe stones go by.", language="en")
    assert [(d.text, d.boundary) for d in drafts] == [
        ("The wheel goes round,", "verse_line"),
        ("The stones go by.", "verse_line"),
    ]


def test_what_is_not_read_says_nothing():
    assert [
        d.spoken for d in segment_block("note", "See there. And there.", language="en", skip_reason="note")
    ] == ["", ""]
    assert [d.spoken for d in segment_block("scene_break", "* * *", language="en")] == [""]


def test_whole_segments_in_another_language_carry_it():
    text = "Hello there. Bonjour."
    drafts = segment_block("paragraph", text, language="en", spans=[Span(13, 21, "lang", "fr")])
    assert [d.language for d in drafts] == ["", "fr"]


def test_time_grows_with_length_only():
    import time

    def seconds(n: int) -> float:
        text = "Entry one was copied by hand and put away again. " * n
        start = time.process_time()
        segment_block("paragraph", text, language="en")
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 12 * max(seconds(1000), 0.02)


@pytest.mark.parametrize(
    ("kind", "following", "boundary"),
    [
        ("paragraph", "paragraph", "paragraph"), ("heading", "paragraph", "heading"), ("paragraph", "subheading", "subheading_before"),
        ("subheading", "paragraph", "subheading_after"), ("part_title", "paragraph", "part_title"), ("paragraph", "scene_break", "scene_break"),
        ("scene_break", "paragraph", "scene_break"), ("verse", "verse", "stanza"), ("list_item", "list_item", "list_item"),
        ("paragraph", "letter", "quotation"), ("letter", "letter", "paragraph"), ("paragraph", "note", "note"), ("paragraph", None, "chapter_end"),
    ],
)  # fmt: skip
def test_boundaries_between_blocks(kind, following, boundary):
    assert boundary_between(kind, following) == boundary


def test_every_pair_of_kinds_has_a_boundary():
    assert all(boundary_between(a, b) in BOUNDARY_KINDS for a in BLOCK_KINDS for b in (*BLOCK_KINDS, None))
    assert boundary_between("paragraph", "paragraph", dialogue=True) == "dialogue_turn"
    assert is_dialogue("“Yes.”")
    assert not is_dialogue("Yes.")


PROSE = st.text(
    st.sampled_from(
        "abcXYZ .,;:!?…—-'\"“”‘’()[]«»„\n\t\u00a0\u2060\u00ad012 Mr.Dr.e\u0301。！？「」、あ漢가नमस्ते۔؟한👋\u200d"
    ),
    max_size=300,
)


@settings(max_examples=300, deadline=None)
@given(
    PROSE,
    st.sampled_from(BLOCK_KINDS),
    st.sampled_from(
        [
            "en",
            "de",
            "fr",
            "es",
            "it",
            "pt",
            "ru",
            "pl",
            "cs",
            "zh",
            "ja",
            "ko",
            "hi",
            "ar",
            "he",
            "th",
            "el",
            "xx",
            "",
        ]
    ),
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 20), st.sampled_from(["skip", "say", "lang"])),
        max_size=4,
    ),
    st.integers(8, 60),
)
def test_segments_join_to_their_block(text, kind, language, raw_spans, limit):
    spans = [
        Span(a, min(a + n, len(text)), role, "de" if role == "lang" else "x")
        for a, n, role in raw_spans
        if a < len(text)
    ]
    drafts = segment_block(kind, text, language=language, spans=spans, max_chars=limit)
    assert "".join(d.text + d.separator for d in drafts) == text
    assert all(text[d.start : d.end] == d.text for d in drafts)
    assert all(d.text for d in drafts)
    assert all(not d.separator.strip() for d in drafts)
    assert all(d.boundary in BOUNDARY_KINDS for d in drafts)
    if not spans and kind not in ("heading", "subheading", "part_title", "scene_break"):
        assert all(len(d.text.strip()) <= limit for d in drafts)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "It rained.",
                "“No!” he cried.",
                "Dr. Vale came at 5 p.m. on foot.",
                "Why?",
                "She left (late). We stayed…",
                "1. Salt.",
            ]
        ),
        min_size=60,
        max_size=400,
    )
)
def test_windows_of_long_blocks_lose_nothing(pieces):
    text = " ".join(pieces)
    assert " ".join(split(text)) == text
