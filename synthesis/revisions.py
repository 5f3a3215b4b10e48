"""Page-shaped reads on exports: what was made, what it lacked, what its check found, whether the book moved on since."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from projects.failures import failure_words
from projects.models import Document, Project, Segment
from projects.work import WorkState
from synthesis.models import Export

SHOWN = 100  # revisions on the page
LEAST_PROGRESS = 0.05  # share made before a time left is named
DIGEST = 16  # hex digits
CHUNK = 1_000  # sentences read at a time
LISTED = 3  # files named where not all pass

_TAGS = (
    "title", "subtitle", "authors", "translator", "narrator", "language", "series", "series_position", "publisher",
    "year", "rights", "isbn", "description", "cover_key", "narration",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_GRAVITY = {"fail": 0, "warn": 1, "pass": 2}


# -- what is exported ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Missing:
    """What an export lacks, said before and after it is made."""

    chapter: str
    sentences: int


def documents_exported(project: Project, documents: Iterable[str] = ()) -> list[Document]:
    """The chapters of an export in order: those named, else all of the audiobook."""
    wanted = list(documents)
    chapters = project.documents.order_by("order_key")
    return list(chapters.filter(public_id__in=wanted) if wanted else chapters.filter(included=True))


def export_missing(project: Project, documents: Iterable[str] = ()) -> list[Missing]:
    """Chapters of the audiobook with sentences that have no take yet, in order."""
    chapters = documents_exported(project, documents)
    counts = dict(
        Segment.objects.filter(document__in=chapters, chosen_take=None)
        .exclude(spoken="")
        .values_list("document")
        .annotate(n=Count("pk"))
        .order_by()
    )
    return [Missing(chapter.title, counts[chapter.pk]) for chapter in chapters if chapter.pk in counts]


# -- whether it still is the book ------------------------------------------------------------------------------------
def chapter_digests(documents: Sequence[Document]) -> dict[str, str]:
    """What decides how each chapter sounds and reads in a deliverable, as one short digest by the chapter's id."""
    found = {document.pk: hashlib.sha256(document.title.encode()) for document in documents}
    rows = (
        Segment.objects.filter(document__in=documents)
        .order_by("document", "block__order_key", "order_key")
        .values_list(
            "document_id", "text", "separator", "spoken", "boundary", "pause_after_ms", "block__pause_after_ms",
            "block__kind", "chosen_take__audio_key", "chosen_take__speech_start", "chosen_take__speech_end",
        )
    )  # fmt: skip
    for document, *rest in rows.iterator(chunk_size=CHUNK):
        rest[2] = bool(rest[2])  # spoken: that it is read; how, the take says
        found[document].update(json.dumps(rest, ensure_ascii=False).encode())
    return {str(d.public_id): found[d.pk].hexdigest()[:DIGEST] for d in documents}


def tags_digest(project: Project) -> str:
    """What decides an export beside its chapters: metadata, cover, pause rules."""
    values = [getattr(project, name) for name in _TAGS] + [project.rules.get("pauses") or {}]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:DIGEST]


class _Book:
    """The book as it is now, read once for a page of exports, and no more of it than is needed."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.documents = {str(d.public_id): d for d in project.documents.order_by("order_key")}
        self.included = [key for key, document in self.documents.items() if document.included]
        self.tags = tags_digest(project)
        self.changed_at: dict[int, datetime] = dict(
            Segment.objects.filter(document__project=project)
            .values_list("document")
            .annotate(at=Max("changed_at"))
            .order_by()
        )
        self._digests: dict[str, str] = {}

    def moved(self, chapters: dict[str, str], read_at: datetime) -> list[str]:
        """Of an export's chapters, those that would come out otherwise now."""
        there = [self.documents[key] for key in chapters if key in self.documents]
        touched = [d for d in there if d.pk in self.changed_at and self.changed_at[d.pk] > read_at]
        unread = [d for d in touched if str(d.public_id) not in self._digests]
        if unread:
            self._digests |= chapter_digests(unread)
        return [
            str(d.public_id) for d in touched if self._digests[str(d.public_id)] != chapters[str(d.public_id)]
        ]

    def outdated_why(self, export: Export) -> str:
        """What changed since an export was made; "" while it still is the book."""
        report = export.report
        if export.state != WorkState.DONE or "read_at" not in report:
            return ""
        read_at = datetime.fromisoformat(report["read_at"])
        chapters: dict[str, str] = report.get("chapters", {})
        why = []
        moved = self.moved(chapters, read_at)
        if moved:
            count = Segment.objects.filter(
                document__public_id__in=moved, document__project=self.project, changed_at__gt=read_at
            ).count()
            why.append(ngettext("%(n)s sentence changed", "%(n)s sentences changed", count) % {"n": count})
        wanted = export.documents or self.included
        if [key for key in self.documents if key in chapters] != list(chapters) or set(wanted) != set(
            chapters
        ):
            why.append(_("chapters changed"))
        if report.get("tags") != self.tags:
            why.append(_("the book's data changed"))
        return ", ".join(why)


# -- rows ------------------------------------------------------------------------------------------------------------
class ExportRow:
    """An export as templates and doors see it."""

    def __init__(self, export: Export, outdated_why: str) -> None:
        self.export = export
        self.failure, self.remedy = (
            failure_words(export.failure_code, export.failure_detail) if export.failure_code else ("", "")
        )
        self.outdated_why = outdated_why
        self.outdated = bool(outdated_why)
        self.missing = sum(item["sentences"] for item in export.report.get("missing", []))
        self.check: dict[str, Any] | None = export.report.get("check")
        self.changes: dict[str, Any] | None = export.report.get("changes")
        self.notes: list[str] = export.report.get("notes", [])

    @property
    def may_delta(self) -> bool:
        """Whether what changed since can be delivered alone: it is a set of files."""
        return self.export.file_name.endswith(".zip")

    @property
    def version(self) -> int:
        """Grows with every change that is pushed: of one dispatch running, ended, waiting again, cancelled."""
        export = self.export
        step = {
            WorkState.LEASED: round(export.progress * 1000),
            WorkState.DONE: 5_000,
            WorkState.FAILED: 5_000,
            WorkState.WAITING: 9_000,
            WorkState.CANCELLED: 9_500,
        }[WorkState(export.state)]
        return export.dispatch_no * 10_000 + step

    def __getattr__(self, name: str) -> Any:
        return getattr(self.export, name)

    @property
    def eta_s(self) -> float | None:
        """Seconds left, by what was made so far; None before enough was."""
        export = self.export
        if export.state != WorkState.LEASED or not export.started_at or export.progress < LEAST_PROGRESS:
            return None
        elapsed = (timezone.now() - export.started_at).total_seconds()
        return elapsed * (1 - export.progress) / export.progress


def exports_listed(project: Project) -> QuerySet[Export]:
    """A book's exports, newest first, without what grows with the book."""
    return project.exports.select_related("project", "requested_by").defer("details").order_by("-revision")


def export_rows(project: Project, exports: Iterable[Export]) -> list[ExportRow]:
    """Exports of one book as rows; the query count does not grow with their number while the book stands still."""
    found = list(exports)
    book = _Book(project) if any(export.state == WorkState.DONE for export in found) else None
    return [ExportRow(export, book.outdated_why(export) if book else "") for export in found]


def exports_of(project: Project, limit: int = SHOWN) -> list[ExportRow]:
    """A book's deliverables, newest first, each with whether it is out of date."""
    return export_rows(project, exports_listed(project)[:limit])


# -- the delivery check ----------------------------------------------------------------------------------------------
@dataclass(slots=True)
class CheckGroup:
    """One check over all files it concerns. `rows` are as stored: deliverycheck.Row as a dict."""

    code: str
    label: str
    wanted: str
    source: str
    dated: str
    status: str = "pass"
    fix: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def failing(self) -> list[dict[str, Any]]:
        """The rows that did not pass, the gravest first, as many as are named."""
        bad = sorted((r for r in self.rows if r["status"] != "pass"), key=lambda r: _GRAVITY[r["status"]])
        return bad[:LISTED]

    @property
    def further(self) -> int:
        """How many more did not pass."""
        return max(0, sum(row["status"] != "pass" for row in self.rows) - LISTED)

    @property
    def files(self) -> int:
        """How many files were looked at; 0 for what concerns the whole set."""
        return sum(bool(row["file"]) for row in self.rows)

    @property
    def value(self) -> str:
        """What was measured, in one line: the value all share, or the least and the greatest."""
        values = list(dict.fromkeys(row["value"] for row in self.rows))
        if len(values) == 1:
            return values[0]
        numbers = [(float(m.group()), v) for v in values if (m := _NUMBER.match(v))]
        if len(numbers) < len(values):
            return ""
        return f"{_NUMBER.match(min(numbers)[1])[0]} … {max(numbers)[1]}"  # type: ignore[index]


def check_groups(rows: Iterable[dict[str, Any]]) -> list[CheckGroup]:
    """A stored check, one entry for each rule, what must be mended first."""
    by_code: dict[str, CheckGroup] = {}
    for row in rows:
        group = by_code.get(row["code"])
        if group is None:
            group = by_code[row["code"]] = CheckGroup(
                row["code"], row["label"], row["wanted"], row["source"], row["dated"]
            )
        group.rows.append(row)
        if _GRAVITY[row["status"]] < _GRAVITY[group.status]:
            group.status = row["status"]
        group.fix = group.fix or row["fix"]
    return sorted(by_code.values(), key=lambda group: _GRAVITY[group.status])


def check_counts(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many rules fail, warn and pass."""
    counts: dict[str, int] = defaultdict(int)
    for group in check_groups(rows):
        counts[group.status] += 1
    return {status: counts[status] for status in _GRAVITY}


def export_checked(project: Project) -> Export | None:
    """The newest export of a book that has a delivery check, with its rows."""
    for pk, report in (
        project.exports.filter(state=WorkState.DONE).order_by("-revision").values_list("pk", "report")[:SHOWN]
    ):
        if report.get("check"):
            return Export.objects.select_related("project").get(pk=pk)
    return None
