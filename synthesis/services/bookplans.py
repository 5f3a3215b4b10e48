"""From rows to a BookPlan: chosen takes of what is read aloud, pauses by rule or by hand, a fixed gain for each voice."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from django.core.files.storage import default_storage
from django.utils.translation import gettext as _

from projects.models import Document, Project, Segment
from synthesis.audio.pauses import HEAD_TAIL_MS, pause_ms
from synthesis.audio.timeline import BookPlan, ChapterPlan, Clip, Line
from synthesis.exporters.credits import SAMPLE_MAX_MS, sample_chapter
from synthesis.exporters.presets import Preset, preset_plan
from synthesis.exporters.split import chapters_split
from synthesis.revisions import documents_exported

GAIN_STEP_DB = 0.5  # voices' gains move in steps: one new take must not make a whole book's renders stale
GAIN_MOST_DB = 12.0  # a voice further off than this has a fault that no gain should hide
CHUNK = 500  # sentences read at a time


def book_plan(project: Project, documents: Iterable[str] = ()) -> BookPlan:
    """Everything an exporter needs, from the rows. Only chosen takes of sentences that are read aloud."""
    head, tail = HEAD_TAIL_MS["m4b"]
    rules = {name: int(ms) for name, ms in (project.rules.get("pauses") or {}).items()}
    chapters: list[ChapterPlan] = []
    voices: dict[str, int | None] = {}  # take's key -> voice
    for document in documents_exported(project, documents):
        lines = _lines(document, rules, voices)
        if lines:
            chapters.append(
                ChapterPlan(
                    title=document.title or _("Untitled"),
                    lines=tuple(lines),
                    head_ms=head,
                    tail_ms=tail,
                    kind=document.kind,
                    key=str(document.public_id),
                )
            )
    cover = b""
    if project.cover_key:
        with default_storage.open(project.cover_key, "rb") as file:
            cover = file.read()
    return BookPlan(
        title=project.title,
        subtitle=project.subtitle,
        authors=tuple(project.authors),
        narrator=project.narrator,
        language=project.language,
        publisher=project.publisher,
        description=project.description,
        year=project.year,
        series=project.series,
        series_position=project.series_position,
        isbn=project.isbn,
        copyright=project.rights,
        translator=project.translator,
        cover=cover or None,
        cover_type="image/png" if project.cover_key.endswith(".png") else ("image/jpeg" if cover else ""),
        identifier=f"urn:uuid:{project.public_id}",
        ai_narrated=project.narration != Project.Narration.HUMAN,
        chapters=_voices_evened(chapters, voices),
    )


def _lines(document: Document, rules: Mapping[str, int], voices: dict[str, int | None]) -> list[Line]:
    lines: list[Line] = []
    segments = (
        Segment.objects.filter(document=document)
        .select_related("block", "chosen_take", "voice")
        .in_order()
        .iterator(chunk_size=CHUNK)
    )
    for segment, following in pairwise(chain(segments, (None,))):
        assert segment is not None  # only the last one's follower is
        ends_block = following is None or following.block_id != segment.block_id
        pause = pause_ms(segment.boundary, rules, segment_pause(segment, ends_block=ends_block))
        take = segment.chosen_take
        if take is None or not segment.spoken:
            # a scene break, say: silent itself, but the pause it asks for is kept
            if lines and not segment.spoken and lines[-1].pause_after_ms < pause:
                lines[-1] = replace(lines[-1], pause_after_ms=pause)
            continue
        voices[take.audio_key] = take.voice_id
        lines.append(
            Line(
                clip=Clip(
                    key=take.audio_key,
                    rate_hz=take.rate_hz,
                    speech_start=take.speech_start,
                    speech_end=take.speech_end,
                    samples=take.samples,
                    segment=str(segment.public_id),
                    loudness_lufs=take.loudness_lufs,
                ),
                pause_after_ms=pause,
                text=segment.text,
                spoken=segment.spoken,
                separator=segment.separator,
                block=str(segment.block.public_id),
                kind=segment.block.kind,
                language=segment.language or segment.block.language,
                speaker=segment.voice.name if segment.voice else "",
                source=segment.block.source_ref,
            )
        )
    return lines


def segment_pause(segment: Segment, *, ends_block: bool) -> int | None:
    """The pause set by hand after a segment: its own, or, where it ends its block, the block's. None = by the rules."""
    if segment.pause_after_ms is not None:
        return segment.pause_after_ms
    return segment.block.pause_after_ms if ends_block else None


def _voices_evened(chapters: list[ChapterPlan], voices: Mapping[str, int | None]) -> tuple[ChapterPlan, ...]:
    """The chapters with every voice brought to the level of the one that speaks most: a fixed gain for each.

    Never a gain per sentence: that would make the level jump.
    """
    gains = _voice_gains((line.clip for chapter in chapters for line in chapter.lines), voices)
    if not any(gains.values()):
        return tuple(chapters)
    return tuple(
        replace(
            chapter,
            lines=tuple(
                replace(line, clip=replace(line.clip, gain_db=gains.get(voices[line.clip.key], 0.0)))
                for line in chapter.lines
            ),
        )
        for chapter in chapters
    )


def _voice_gains(clips: Iterable[Clip], voices: Mapping[str, int | None]) -> dict[int | None, float]:
    energy: dict[int | None, float] = defaultdict(float)
    seconds: dict[int | None, float] = defaultdict(float)
    for clip in clips:
        if clip.loudness_lufs is None:
            continue
        length = (clip.speech_end - clip.speech_start) / clip.rate_hz
        energy[voices[clip.key]] += length * 10.0 ** (clip.loudness_lufs / 10.0)
        seconds[voices[clip.key]] += length
    levels = {v: 10.0 * math.log10(energy[v] / seconds[v]) for v in energy if energy[v] and seconds[v]}
    if len(levels) < 2:
        return {}
    main = levels[max(levels, key=lambda voice: seconds[voice])]
    return {
        voice: max(-GAIN_MOST_DB, min(GAIN_MOST_DB, round((main - level) / GAIN_STEP_DB) * GAIN_STEP_DB))
        for voice, level in levels.items()
    }


def plan_for(
    plan: BookPlan, shop: Preset | None, *, with_sample: bool, sample: Mapping[str, Any]
) -> tuple[BookPlan, list[str]]:
    """The plan as a preset wants it (its silence, its longest file, its retail sample), and notes on that.

    `sample` is Export.sample. The sample comes last and repeats takes of the book.
    """
    if not with_sample:
        plan = replace(plan, chapters=tuple(c for c in plan.chapters if c.kind != "retail_sample"))
    if shop is None:
        return plan, []
    made, notes = chapters_split(preset_plan(plan, shop), shop.max_ms)
    if with_sample and (chapter := _sample(plan, sample)):
        chapter = replace(chapter, head_ms=shop.head_ms, tail_ms=shop.tail_ms)
        made = replace(made, chapters=(*made.chapters, chapter))
    return made, notes


def _sample(plan: BookPlan, sample: Mapping[str, Any]) -> ChapterPlan | None:
    wanted = str(sample.get("document", ""))
    most = min(int(sample.get("minutes") or 5) * 60_000, SAMPLE_MAX_MS)
    if any(chapter.kind == "retail_sample" for chapter in plan.chapters):
        return None  # somebody made one of its own
    chosen = [chapter for chapter in plan.chapters if not wanted or chapter.key == wanted]
    if wanted:  # whatever it is, foreword or part: it was asked for
        chosen = [replace(chapter, kind="chapter") for chapter in chosen]
    return sample_chapter(replace(plan, chapters=tuple(chosen)), most)
