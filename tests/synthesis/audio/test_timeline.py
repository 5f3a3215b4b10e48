from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthesis.audio.timeline import (
    GRID,
    RATE_HZ,
    BookPlan,
    ChapterPlan,
    Clip,
    Line,
    chapters_left_out,
    samples_ms,
    timeline,
)


def clip(rate_hz=24000, speech=24000, before=0, after=0, key="k"):
    return Clip(key, rate_hz, before, before + speech, before + speech + after)


@st.composite
def plans(draw):
    rates = st.sampled_from([8000, 16000, 22050, 24000, 32000, 44100, 48000, 23999])
    clips = st.builds(
        clip,
        rate_hz=rates,
        speech=st.integers(0, 400_000),
        before=st.integers(0, 9000),
        after=st.integers(0, 9000),
    )
    lines = st.builds(Line, clip=clips, pause_after_ms=st.integers(0, 5000))
    chapters = st.builds(
        ChapterPlan,
        title=st.just("T"),
        lines=st.lists(lines, max_size=12).map(tuple),
        head_ms=st.integers(0, 2000),
        tail_ms=st.integers(0, 5000),
    )
    return BookPlan("B", tuple(draw(st.lists(chapters, max_size=6))))


@settings(max_examples=40, deadline=None)
@given(plans())
def test_positions_are_exact_fractions_rounded_once(plan):
    placed = timeline(plan)
    full = [chapter for chapter in plan.chapters if chapter.lines]
    assert len(placed.chapters) == len(full)
    end = 0
    for chapter, where in zip(full, placed.chapters, strict=True):
        assert where.start == end
        assert where.samples % GRID == 0
        at = Fraction(chapter.head_ms, 1000)
        for line, spot in zip(chapter.lines, where.lines, strict=True):
            length = Fraction(line.clip.speech_end - line.clip.speech_start, line.clip.rate_hz)
            assert abs(spot.start - where.start - at * RATE_HZ) <= Fraction(1, 2)
            assert abs(spot.end - where.start - (at + length) * RATE_HZ) <= Fraction(1, 2)
            last = at + length
            at = last + Fraction(line.pause_after_ms, 1000)
        due = (last + Fraction(chapter.tail_ms, 1000)) * RATE_HZ
        assert -1 < where.samples - due <= GRID or where.samples == GRID
        end = where.end
    assert placed.samples == end


@settings(max_examples=40, deadline=None)
@given(plans())
def test_order_is_kept_and_nothing_overlaps(plan):
    before = 0
    for line in timeline(plan).lines():
        assert before <= line.start <= line.end
        before = line.end


def test_a_long_book_does_not_drift():
    """60 hours of sentences whose length is no whole number of samples at the delivery rate."""
    speech = 24_007
    lines = tuple(Line(clip(speech=speech), 333) for _ in range(1000))
    placed = timeline(BookPlan("B", tuple(ChapterPlan(str(n), lines) for n in range(160))))
    assert placed.duration_ms > 59 * 3_600_000
    last = placed.chapters[-1]
    exact = Fraction(500, 1000) + 999 * (Fraction(speech, 24000) + Fraction(333, 1000))
    assert abs(last.lines[-1].start - last.start - exact * RATE_HZ) <= Fraction(1, 2)


def test_pause_runs_from_end_to_start_of_speech_whatever_silence_the_takes_have():
    tight = ChapterPlan("C", (Line(clip(), 350), Line(clip(), 0)))
    loose = ChapterPlan("C", (Line(clip(before=9000, after=20000), 350), Line(clip(before=500), 0)))
    for chapter in (tight, loose):
        first, second = timeline(BookPlan("B", (chapter,))).chapters[0].lines
        assert first.start == RATE_HZ // 2
        assert second.start - first.end == round(0.350 * RATE_HZ)


def test_the_last_pause_is_the_chapters_tail():
    (chapter,) = timeline(BookPlan("B", (ChapterPlan("C", (Line(clip(), 9999),), tail_ms=1500),))).chapters
    assert 0 <= chapter.end - chapter.lines[-1].end - 1.5 * RATE_HZ < GRID


def test_chapters_without_lines_take_no_time_and_are_named():
    plan = BookPlan("B", (ChapterPlan("Empty", ()), ChapterPlan("C", (Line(clip(), 0),))))
    assert [c.title for c in timeline(plan).chapters] == ["C"]
    assert timeline(plan).chapters[0].start == 0
    assert chapters_left_out(plan) == ("Empty",)
    assert timeline(BookPlan("B", ())).samples == 0


@pytest.mark.parametrize(("samples", "ms"), [(0, 0), (22, 0), (23, 1), (44100, 1000), (66150, 1500)])
def test_milliseconds_are_rounded_once(samples, ms):
    assert samples_ms(samples) == ms


@pytest.mark.parametrize("bounds", [(-1, 5, 10), (6, 5, 10), (0, 11, 10)])
def test_impossible_clips_are_refused(bounds):
    with pytest.raises(ValueError, match="speech"):
        Clip("k", 24000, *bounds)
