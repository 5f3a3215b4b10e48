"""Deliverables: r1, r2, … made by a production worker from the chosen takes, never overwritten."""

from __future__ import annotations

import errno
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Max, Q
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from projects import notify
from projects.models import Project, Segment
from projects.work import (
    OPEN_STATES,
    Moved,
    WorkState,
    kind_of,
    work_added,
    work_created,
    work_move,
    work_moved,
    work_retry,
)
from synthesis.audio.render import ClipUnusable, book_gain_db
from synthesis.audio.timeline import BookPlan, timeline
from synthesis.exporters.base import (
    Exporter,
    ExportFacts,
    ExportRefused,
    FileFacts,
    file_changes,
    folder_zip,
)
from synthesis.exporters.probe import Format
from synthesis.exporters.renders import gain_kept
from synthesis.models import Export
from synthesis.revisions import (
    Missing,
    chapter_digests,
    documents_exported,
    export_missing,
    tags_digest,
)
from synthesis.services.bookplans import book_plan, plan_for
from synthesis.services.deliverables import (
    Deliverable,
    deliverable,
    exporter_of,
    file_name,
    manuscript_epub,
    mastering_of,
)
from synthesis.services.deliverychecks import check_rows, check_summary, files_measured
from synthesis.services.renderkeeping import StorageRenders

__all__ = [
    "ExportFailed",
    "ExportImpossible",
    "Missing",
    "book_plan",
    "export_cancel",
    "export_create",
    "export_missing",
    "export_retry",
    "export_run",
    "exports_open",
]

PROGRESS_STEP = 0.02  # written to the row and told to the pages no more often than this
CHANGES_NAME = "CHANGES.txt"  # beside the files of a delta


class ExportImpossible(Exception):
    """Raised when there is nothing to export; the message says what to do."""

    def __init__(self, message: str, code: str = "nothing_to_export") -> None:
        super().__init__(message)
        self.code = code


class ExportFailed(Exception):
    """Raised inside a running export for a failure that has plain words; `code` is one of projects.failures."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class LeaseLost(Exception):
    """Raised inside a running export when another dispatch took over: its file must not appear."""


# -- asking ----------------------------------------------------------------------------------------------------------
@transaction.atomic
def export_create(
    project: Project,
    user: User | None,
    *,
    preset: str = Export.Preset.M4B,
    documents: Iterable[str] = (),
    since: int | None = None,
    sample: Mapping[str, Any] | None = None,
) -> Export:
    """Ask for the next revision. An unfinished book is exported too: what is missing is said on the row.

    `since` leaves out the files that are as they were in that revision of the same preset; `sample` is Export.sample.
    Raises ExportImpossible if no chosen take lies in what is asked for, or the preset cannot be made of this book.
    """
    Project.objects.select_for_update().get(pk=project.pk)  # one revision number at a time
    wanted = [str(d) for d in documents]
    made = deliverable(preset)
    _possible(project, made, wanted, since)
    last = project.exports.aggregate(n=Max("revision"))["n"] or 0
    export = Export.objects.create(
        project=project,
        revision=last + 1,
        preset=preset,
        requested_by=user,
        documents=wanted,
        since=since,
        sample=dict(sample or {}),
        report={"missing": [asdict(m) for m in export_missing(project, wanted)]},
    )
    work_created(export)
    notify.project_changed(project.public_id, "exports")
    work_added("exports")
    return export


def _possible(project: Project, made: Deliverable, wanted: list[str], since: int | None) -> None:
    chapters = documents_exported(project, wanted)
    has_sound = Segment.objects.filter(document__in=chapters).exclude(chosen_take=None).exclude(spoken="")
    if not has_sound.exists():
        raise ExportImpossible(_("Nothing has been made yet. Make a chapter first, then export."))
    if made.name == Export.Preset.EPUB_ORIGINAL and not manuscript_epub(project):
        raise ExportImpossible(_("This book did not come from an EPUB. Choose EPUB 3."), "no_original")
    if since is None:
        return
    if not made.is_set:
        raise ExportImpossible(_("Only a set of files can be delivered by what changed."), "not_a_set")
    if not project.exports.filter(revision=since, preset=made.name, state=WorkState.DONE).exists():
        raise ExportImpossible(
            _("There is no finished r%(n)s of this format to compare with.") % {"n": since}, "no_revision"
        )


@transaction.atomic
def export_retry(export: Export) -> bool:
    """Make a failed export again under its revision; False if it is not failed (any more).

    It goes on where it failed: chapters that were finished are kept.
    """
    again = work_retry(export)
    if again:
        Export.objects.filter(pk=export.pk).update(progress=0.0, started_at=None)
        notify.project_changed(export.project.public_id, "exports")
        work_added("exports")
    return again


@transaction.atomic
def export_cancel(export: Export) -> bool:
    """Want an export no more; False if it is finished already. What runs stops at its next step; no file appears."""
    row = Export.objects.select_for_update().only("state", "dispatch_no", "attempts").get(pk=export.pk)
    cancelled = Export.objects.filter(pk=export.pk, state__in=OPEN_STATES).update(
        state=WorkState.CANCELLED, lease_until=None, not_before=None, finished_at=Now()
    )
    if cancelled:
        work_moved(
            [
                Moved(
                    kind_of(Export),
                    export.pk,
                    row.state,
                    WorkState.CANCELLED,
                    row.dispatch_no,
                    row.attempts,
                    "user",
                )
            ]
        )
        notify.project_changed(export.project.public_id, "exports")
    return bool(cancelled)


def exports_open(project: Project) -> bool:
    """Whether an export of this book is being made."""
    return project.exports.filter(Q(state__in=OPEN_STATES)).exists()


# -- making ----------------------------------------------------------------------------------------------------------
def export_run(row: Export, dispatch_no: int, ours: Callable[[], bool]) -> None:
    """Make the file and close the row, if this dispatch still holds it. Streams; safe to run again after a crash.

    Raises ExportFailed and ExportRefused, whose codes say what went wrong.
    """
    try:
        _Run(row, dispatch_no, ours).run()
    except LeaseLost:
        return
    except ClipUnusable as exc:
        raise ExportFailed("clip_unusable", str(exc)) from exc
    except ExportRefused:
        raise
    except OSError as exc:
        code = "disk_full" if exc.errno in (errno.ENOSPC, errno.EDQUOT) else "storage_away"
        raise ExportFailed(code, str(exc)) from exc


class _Run:
    """One export while it is being made."""

    def __init__(self, row: Export, dispatch_no: int, ours: Callable[[], bool]) -> None:
        self.row, self.dispatch_no, self.ours = row, dispatch_no, ours
        self.project = row.project
        self.made = deliverable(row.preset)
        self.store = StorageRenders(self.project)
        self.said = 0.0

    def run(self) -> None:
        """From rows to a file in storage. Raises LeaseLost."""
        self._move(started_at=timezone.now(), progress=0.0)
        read_at = timezone.now()  # what changes from here on is not in it
        chapters = chapter_digests(documents_exported(self.project, self.row.documents))
        tags = tags_digest(self.project)
        missing = export_missing(self.project, self.row.documents)
        whole = book_plan(self.project, self.row.documents)
        plan, notes = plan_for(
            whole, self.made.shop, with_sample=self.made.has_sample, sample=self.row.sample
        )
        exporter = exporter_of(self.row.preset, original=self._original(), store=self.store)
        with tempfile.TemporaryDirectory(prefix="export-") as folder:
            name = file_name(self.project, self.row)
            out = Path(folder) / ("set" if self.made.is_set else name)
            gain = self._gain(exporter, whole)
            facts = self._export(exporter, plan, out, gain)
            files = files_measured(facts.files, out)
            report: dict[str, Any] = {
                "missing": [asdict(m) for m in missing],
                "facts": {k: v for k, v in asdict(facts).items() if k not in ("files", "notes")},
                "notes": [*notes, *facts.notes],
                "read_at": read_at.isoformat(),
                "chapters": chapters,
                "tags": tags,
                "loudness": _loudness(facts),
            }
            if gain:
                report["gain"] = gain | {"used_db": facts.gain_db}
            details: dict[str, Any] = {
                "files": [_file_stored(f, format_) for f, format_ in files],
                "renders": sorted(set(self.store.used)),
            }
            if self.made.rules:
                rows = check_rows(files, plan, self.made.rules, self.project, self.row.documents, missing)
                report["check"] = check_summary(rows, self.made.rules)
                details["check"] = rows
            if changes := self._changes(facts.files):
                report["changes"] = changes
            if self.made.is_set:
                out = self._packed(out, Path(folder) / name, changes)
            self._deliver(out, name, facts, report, details)

    def _original(self) -> str:
        if self.row.preset != Export.Preset.EPUB_ORIGINAL:
            return ""
        return manuscript_epub(self.project)

    def _move(self, **changes: Any) -> None:
        """Write to the row while it is ours. Raises LeaseLost."""
        if not self.ours() or not work_move(Export, self.row.pk, dispatch_no=self.dispatch_no, **changes):
            raise LeaseLost

    def _progress(self, share: float) -> None:
        if not self.ours():
            raise LeaseLost
        if share - self.said >= PROGRESS_STEP:
            self.said = share
            self._move(progress=round(min(share, 0.99), 3))
            notify.project_changed(self.project.public_id, "exports")

    def _gain(self, exporter: Exporter, plan: BookPlan) -> dict[str, Any]:
        """The book's one gain: as before while it has hardly moved, so that finished chapters need not be made anew.

        {} where nothing is brought to level. `anchor_db` is what was measured when the gain was last set.
        """
        mastering = mastering_of(exporter)
        if mastering is None:
            return {}
        how = {**asdict(mastering), "rms_window": list(getattr(exporter, "rms_window", None) or ())}
        measured = book_gain_db(timeline(plan), _clip_open, mastering)
        for report in (
            self.project.exports.filter(state=WorkState.DONE)
            .order_by("-revision")
            .values_list("report", flat=True)[:20]
        ):
            before = report.get("gain") or {}
            if before.get("how") == how and before.get("anchor_db") is not None:
                if gain_kept(measured, before["anchor_db"]) == before["anchor_db"]:
                    return {"how": how, "anchor_db": before["anchor_db"], "gain_db": before["used_db"]}
                break
        gain = gain_kept(measured, None)
        return {"how": how, "anchor_db": gain, "gain_db": gain}

    def _export(self, exporter: Exporter, plan: BookPlan, out: Path, gain: dict[str, Any]) -> ExportFacts:
        options: dict[str, Any] = {"gain_db": gain["gain_db"]} if gain else {}
        return exporter.export(
            plan, open_clip=_clip_open, out=out, progress=lambda p: self._progress(0.95 * p), **options
        )

    def _changes(self, files: Iterable[FileFacts]) -> dict[str, Any] | None:
        """What is new, changed and gone since an earlier revision: the one asked for, else the last of this preset."""
        if not self.made.is_set:
            return None
        mine = self.project.exports.filter(preset=self.row.preset, state=WorkState.DONE).exclude(
            pk=self.row.pk
        )
        if self.row.since:
            mine = mine.filter(revision=self.row.since)
        before = mine.order_by("-revision").first()
        if before is None:
            return None
        old = [FileFacts(f["name"], f["bytes"], sha256=f["sha256"]) for f in before.details.get("files", [])]
        return {"since": before.revision, **file_changes(old, list(files))}

    def _packed(self, folder: Path, target: Path, changes: dict[str, Any] | None) -> Path:
        """A set as one ZIP; of a delta only what changed, with the list of changes."""
        if self.row.since and changes:
            for name in changes["same"]:
                (folder / name).unlink(missing_ok=True)
            (folder / CHANGES_NAME).write_text(changes_text(changes, self.row.revision), encoding="utf-8")
        folder_zip(folder, target)
        shutil.rmtree(folder)
        return target

    def _deliver(
        self, out: Path, name: str, facts: ExportFacts, report: dict[str, Any], details: dict[str, Any]
    ) -> None:
        """Put the file into storage and close the row; a file that came too late is taken away again."""
        self._progress(0.98)
        size = out.stat().st_size
        # A message may be delivered twice: two runs of one dispatch must not share a key, for the later one is deleted.
        run = f"{self.dispatch_no}-{secrets.token_hex(4)}"
        key = f"p/{self.project.public_id}/exports/r{self.row.revision}/{run}/{name}"
        with out.open("rb") as file:
            key = default_storage.save(key, File(file))
        with transaction.atomic():
            closed = work_move(
                Export,
                self.row.pk,
                dispatch_no=self.dispatch_no,
                state=WorkState.DONE,
                progress=1.0,
                file_key=key,
                file_name=name,
                size_bytes=size,
                duration_ms=facts.duration_ms,
                report=report,
                details=details,
                lease_until=None,
                finished_at=timezone.now(),
            )
            notify.project_changed(self.project.public_id, "exports")
            if "check" in report:
                notify.project_changed(self.project.public_id, "check")
        if not closed:
            default_storage.delete(key)
            return
        self.store.drop(_renders_obsolete(self.project))


def _clip_open(key: str) -> BinaryIO:
    return cast(BinaryIO, default_storage.open(key, "rb"))


def _loudness(facts: ExportFacts) -> dict[str, float] | None:
    """The book's loudness as measured, and how far the file that differs most lies from it."""
    if facts.loudness_lufs is None:
        return None
    each = [f.levels.lufs for f in facts.files if f.levels and f.levels.lufs is not None]
    spread = max((abs(lufs - facts.loudness_lufs) for lufs in each), default=0.0)
    return {"lufs": round(facts.loudness_lufs, 2), "spread_lu": round(spread, 2)}


def _file_stored(facts: FileFacts, format_: Format | None) -> dict[str, Any]:
    """A delivered file as the row keeps it: without the meter's counts, which only serve to sum files up."""
    found = asdict(facts)
    if found["levels"]:
        del found["levels"]["blocks"]
    return {**found, "format": asdict(format_) if format_ else None}


def _renders_obsolete(project: Project) -> set[str]:
    """Renders that no preset's newest revision is made of: they are let go, so storage does not grow with revisions.

    The newest of each preset keeps its renders; what an older one alone was made of goes.
    """
    newest: set[str] = set()
    seen: set[tuple[str, bool]] = set()
    obsolete: set[str] = set()
    keeping = project.exports.filter(state=WorkState.DONE).exclude(details={}).exclude(details__renders=[])
    for export in keeping.only("preset", "documents", "details").order_by("-revision"):
        keys = set(export.details.get("renders", []))
        kind = (
            export.preset,
            bool(export.documents),
        )  # a chapter sent ahead does not cost the book its renders
        if kind in seen:
            obsolete |= keys
            Export.objects.filter(pk=export.pk).update(details={**export.details, "renders": []})
        else:
            seen.add(kind)
            newest |= keys
    return obsolete - newest


def changes_text(changes: Mapping[str, Any], revision: int) -> str:
    """The change list as it lies beside a delta's files."""
    parts = [
        _("Files of r%(new)s that differ from r%(old)s. All others are as they were.")
        % {"new": revision, "old": changes["since"]}
    ]
    for heading, names in (
        (_("New"), changes["new"]),
        (_("Changed"), changes["changed"]),
        (_("No longer part of the set"), changes["gone"]),
    ):
        if names:
            parts.append("\n".join([f"{heading}:", *(f"  {name}" for name in names)]))
    if len(parts) == 1:
        parts.append(_("Nothing differs."))
    return "\n\n".join(parts) + "\n"
