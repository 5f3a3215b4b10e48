"""The delivery check of an export: the encoded files measured, held against the rules, kept with the revision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import av.error

from projects.models import Project, Segment
from synthesis.audio.timeline import BookPlan
from synthesis.exporters.base import FileFacts
from synthesis.exporters.deliverycheck import DeliveredFile, Row, RuleSet, check, rows_csv
from synthesis.exporters.probe import Format, format_read
from synthesis.revisions import Missing, check_counts, documents_exported

_STUDIO = "this studio's default"


def files_measured(files: Sequence[FileFacts], out: Path) -> list[tuple[FileFacts, Format | None]]:
    """Each delivered file with the format it really has; None for what is no sound.

    `out` is the folder of a set, or the single file.
    """
    found: list[tuple[FileFacts, Format | None]] = []
    for facts in files:
        path = out / facts.name if out.is_dir() else out
        try:
            found.append((facts, format_read(path)))
        except (av.error.FFmpegError, IndexError):
            found.append((facts, None))
    return found


def check_rows(
    files: Iterable[tuple[FileFacts, Format | None]],
    plan: BookPlan,
    rules: RuleSet,
    project: Project,
    documents: Iterable[str],
    missing: Sequence[Missing],
) -> list[dict[str, Any]]:
    """All rows as they are stored: those of the shop's rules, then those of the book behind them."""
    delivered = [DeliveredFile(facts, format_) for facts, format_ in files if format_ is not None]
    rows = check(delivered, plan, rules) + _book_rows(plan, rules, project, documents, missing)
    return [asdict(row) for row in rows]


def check_summary(rows: list[dict[str, Any]], rules: RuleSet) -> dict[str, Any]:
    """What a list shows of a check."""
    return {"rules": rules.name, "label": rules.label, "dated": rules.dated, **check_counts(rows)}


def check_csv(rows: Iterable[dict[str, Any]]) -> str:
    """A stored check as CSV."""
    return rows_csv([Row(**row) for row in rows])


def _book_rows(
    plan: BookPlan,
    rules: RuleSet,
    project: Project,
    documents: Iterable[str],
    missing: Sequence[Missing],
) -> list[Row]:
    """What the files cannot tell: sentences without sound, sentences out of date, the ISBN that shops ask for."""
    lacking = sum(item.sentences for item in missing)
    spoken = Segment.objects.filter(document__in=documents_exported(project, documents)).exclude(spoken="")
    stale = spoken.with_stale().filter(is_stale=True).count()  # type: ignore[misc]
    rows = [
        Row(
            "", "missing", "Sentences without sound", "fail" if lacking else "pass", str(lacking), "0", _STUDIO,
            rules.dated, "make" if lacking else "",
        ),
        Row(
            "", "stale", "Sentences whose sound is out of date", "warn" if stale else "pass", str(stale), "0",
            _STUDIO, rules.dated, "make" if stale else "",
        ),
    ]  # fmt: skip
    if rules.cover_px != (0, 0):  # a shop, not a format
        digits = [c for c in plan.isbn if c.isdigit()]
        rows.append(
            Row(
                "", "isbn", "ISBN of the audiobook", "pass" if len(digits) == 13 else "warn",
                plan.isbn or "missing", "13 digits", "common to all shops", rules.dated,
                "" if len(digits) == 13 else "metadata",
            )
        )  # fmt: skip
    return rows
