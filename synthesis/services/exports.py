"""Deliverables: r1, r2, … made by a production worker from the chosen takes, never overwritten."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from projects import notify
from projects.models import Document, Project, Segment
from projects.work import OPEN_STATES, WorkState, work_added, work_move, work_retry
from synthesis.audio.pauses import HEAD_TAIL_MS, pause_ms
from synthesis.audio.timeline import BookPlan, ChapterPlan, Clip, Line
from synthesis.exporters.base import name_safe
from synthesis.exporters.m4b import M4bExporter
from synthesis.models import Export

PROGRESS_STEP = 0.02  # written to the row and told to the pages no more often than this


class ExportImpossible(Exception):
    """Raised when there is nothing to export; the message says what to do."""


class LeaseLost(Exception):
    """Raised inside a running export when another dispatch took over: its file must not appear."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What an export lacks, said before and after it is made."""

    chapter: str
    sentences: int


def export_missing(project: Project, documents: Iterable[str] = ()) -> list[Missing]:
    """Chapters of the audiobook with sentences that have no take yet, in order."""
    found = []
    for document in _documents(project, documents):
        count = Segment.objects.filter(document=document, chosen_take=None).exclude(spoken="").count()
        if count:
            found.append(Missing(document.title, count))
    return found


def _documents(project: Project, public_ids: Iterable[str]) -> list[Document]:
    wanted = list(public_ids)
    chapters = project.documents.order_by("order_key")
    return list(chapters.filter(public_id__in=wanted) if wanted else chapters.filter(included=True))


@transaction.atomic
def export_create(
    project: Project, user: User | None, *, preset: str = Export.Preset.M4B, documents: Iterable[str] = ()
) -> Export:
    """Ask for the next revision. Raises ExportImpossible if no chosen take lies in what is asked for.

    An unfinished book is exported too: what is missing is said on the row.
    """
    Project.objects.select_for_update().get(pk=project.pk)  # one revision number at a time
    wanted = [str(d) for d in documents]
    chapters = _documents(project, wanted)
    if (
        not Segment.objects.filter(document__in=chapters)
        .exclude(chosen_take=None)
        .exclude(spoken="")
        .exists()
    ):
        raise ExportImpossible(_("Nothing has been made yet. Make a chapter first, then export."))
    last = project.exports.aggregate(n=Max("revision"))["n"] or 0
    export = Export.objects.create(
        project=project,
        revision=last + 1,
        preset=preset,
        requested_by=user,
        documents=wanted,
        report={"missing": [asdict(m) for m in export_missing(project, wanted)]},
    )
    notify.project_changed(project.public_id, "exports")
    work_added("exports")
    return export


@transaction.atomic
def export_retry(export: Export) -> bool:
    """Make a failed export again under its revision; False if it is not failed (any more)."""
    again = work_retry(export)
    if again:
        notify.project_changed(export.project.public_id, "exports")
        work_added("exports")
    return again


def book_plan(project: Project, documents: Iterable[str] = ()) -> BookPlan:
    """Everything an exporter needs, from the rows. Only chosen takes of sentences that are read aloud."""
    head, tail = HEAD_TAIL_MS["m4b"]
    chapters = []
    for document in _documents(project, documents):
        lines = _lines(document, project)
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
        chapters=tuple(chapters),
    )


def _lines(document: Document, project: Project) -> list[Line]:
    rules = {name: int(ms) for name, ms in (project.rules.get("pauses") or {}).items()}
    lines: list[Line] = []
    segments = (
        Segment.objects.filter(document=document)
        .select_related("block", "chosen_take")
        .in_order()
        .iterator(chunk_size=500)
    )
    for segment in segments:
        pause = pause_ms(segment.boundary, rules, segment_pause(segment))
        take = segment.chosen_take
        if take is None or not segment.spoken:
            # a scene break, say: silent itself, but the pause it asks for is kept
            if lines and not segment.spoken and lines[-1].pause_after_ms < pause:
                lines[-1] = _with_pause(lines[-1], pause)
            continue
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
                source=segment.block.source_ref,
            )
        )
    return lines


def segment_pause(segment: Segment) -> int | None:
    """The pause set by hand after a segment: its own, or, where it ends its block, the block's. None = by the rules."""
    if segment.pause_after_ms is not None:
        return segment.pause_after_ms
    return segment.block.pause_after_ms if not segment.separator else None


def _with_pause(line: Line, pause: int) -> Line:
    return replace(line, pause_after_ms=pause)


def export_file_name(project: Project, revision: int, extension: str) -> str:
    """A name that says the book and the revision: The_Salt_Ledger_r3.m4b."""
    return f"{name_safe(project.title)}_r{revision}{extension}"


def export_run(row: Export, dispatch_no: int, ours: Callable[[], bool]) -> None:
    """Make the file and close the row, if this dispatch still holds it. Streams; safe to run again after a crash."""
    exporter = M4bExporter()
    project = row.project
    said = 0.0

    def progress(share: float) -> None:
        nonlocal said
        if not ours():
            raise LeaseLost
        if share - said >= PROGRESS_STEP:
            said = share
            work_move(Export, row.pk, dispatch_no=dispatch_no, progress=round(share, 3))
            notify.project_changed(project.public_id, "exports")

    def open_clip(key: str) -> BinaryIO:
        return cast(BinaryIO, default_storage.open(key, "rb"))

    with tempfile.TemporaryDirectory(prefix="export-") as folder:
        out = Path(folder) / f"book{exporter.extension}"
        try:
            facts = exporter.export(
                book_plan(project, row.documents), open_clip=open_clip, out=out, progress=progress
            )
        except LeaseLost:
            return
        name = export_file_name(project, row.revision, exporter.extension)
        key = f"p/{project.public_id}/exports/r{row.revision}/{dispatch_no}/{name}"
        with out.open("rb") as file:
            key = default_storage.save(key, File(file))
        report: dict[str, Any] = {**row.report, "facts": asdict(facts)}
        with transaction.atomic():
            closed = work_move(
                Export,
                row.pk,
                dispatch_no=dispatch_no,
                state=WorkState.DONE,
                progress=1.0,
                file_key=key,
                file_name=name,
                size_bytes=out.stat().st_size,
                duration_ms=facts.duration_ms,
                report=report,
                lease_until=None,
                finished_at=timezone.now(),
            )
            notify.project_changed(project.public_id, "exports")
        if not closed:
            default_storage.delete(key)


def exports_open(project: Project) -> bool:
    """Whether an export of this book is being made."""
    return project.exports.filter(Q(state__in=OPEN_STATES)).exists()
