"""Uploads and imports: the row comes first, the file streams to storage, parsing happens in an import worker."""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
from pathlib import PurePath
from typing import BinaryIO, cast

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import User
from projects import notify
from projects.importers import registry
from projects.importers.base import ImportRefused
from projects.models import ManuscriptImport, Project, Voice
from projects.services.books import TextLost, book_draft, language_chosen, project_create
from projects.work import WorkState, work_added, work_created, work_move, work_retry

log = logging.getLogger(__name__)

PIECE = 1_000_000  # bytes read at a time
_SUFFIX = re.compile(r"\.[a-z0-9]{1,10}")


class UploadRefused(Exception):
    """Raised when a file cannot be taken at all; `code` is the machine word, the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def voice_default(language: str) -> Voice | None:
    """The studio's voice for a language: one of its own regional variant before others, a preferred one before others."""
    voices = [
        v for v in Voice.objects.filter(project=None, retired_at=None).order_by("pk") if v.speaks(language)
    ]
    exact = [v for v in voices if v.languages[0].lower() == language.lower()]  # its first language is its own
    for candidates in (exact, voices):
        by_name = {v.engine_voice: v for v in reversed(candidates)}
        preferred = [by_name[name] for name in settings.DEFAULT_VOICES if name in by_name]
        if preferred or candidates:
            return next(iter(preferred or candidates))
    return None


def import_create(
    user: User, file: BinaryIO, name: str, *, language: str = "", voice: Voice | None = None
) -> ManuscriptImport:
    """Take a manuscript in: stream it to storage and note the row that an import worker will fill.

    Raises UploadRefused for an empty or too large file.
    """
    safe = PurePath(name.replace("\\", "/")).name[:255] or "manuscript"
    digest, size = hashlib.sha256(), 0
    with tempfile.TemporaryFile() as copy:
        while piece := file.read(PIECE):
            size += len(piece)
            if size > settings.UPLOAD_LIMIT_BYTES:
                raise UploadRefused(
                    "too_large",
                    _(
                        "The file is larger than %(limit)s MB. Split it, or ask the operator to raise UPLOAD_LIMIT_MB."
                    )
                    % {"limit": settings.UPLOAD_LIMIT_BYTES // 1_000_000},
                )
            digest.update(piece)
            copy.write(piece)
        if not size:
            raise UploadRefused("empty_file", _("The file is empty. Choose the manuscript again."))
        copy.seek(0)
        row = ManuscriptImport(
            user=user, name=safe, size_bytes=size, sha256=digest.hexdigest(), language=language, voice=voice
        )
        suffix = PurePath(safe).suffix.lower()
        if not _SUFFIX.fullmatch(suffix):  # a name may end in anything, and a key must stay one a store takes
            suffix = ""
        row.file_key = default_storage.save(f"imports/{row.public_id}/{row.sha256[:16]}{suffix}", File(copy))
    with transaction.atomic():
        row.save()
        work_created(row)
        notify.library_changed(user.public_id)
        work_added("imports")
    return row


def import_run(row: ManuscriptImport, dispatch_no: int) -> bool:
    """Parse an import's file and create its project; False if another dispatch took over meanwhile.

    Safe to run twice: the project is created in the transaction that closes the row. A refusal is recorded on the row
    with its reason and leaves no project behind.
    """
    try:
        with default_storage.open(row.file_key, "rb") as file:
            book = registry.book_parse(
                cast(BinaryIO, file), row.name, limit_bytes=settings.UPLOAD_LIMIT_BYTES
            )
    except ImportRefused as exc:
        return _import_failed(row, dispatch_no, exc.code, str(exc))
    language = language_chosen(book, row.language)
    try:
        drafts = book_draft(book, language)
        with transaction.atomic():
            held = ManuscriptImport.objects.select_for_update().get(pk=row.pk)
            if held.state != WorkState.LEASED or held.dispatch_no != dispatch_no:
                return False
            project = project_create(
                book,
                owner=row.user,
                voice=row.voice or voice_default(language),
                language=language,
                drafts=drafts,
            )
            work_move(
                ManuscriptImport,
                row.pk,
                dispatch_no=dispatch_no,
                state=WorkState.DONE,
                project=project,
                finished_at=timezone.now(),
                warnings=list(book.warnings),
                lease_until=None,
            )
            notify.library_changed(row.user.public_id)
    except TextLost as exc:
        log.error("import %s would lose text at %s", row.public_id, exc)
        return _import_failed(row, dispatch_no, "text_lost", str(exc))
    return True


def _import_failed(row: ManuscriptImport, dispatch_no: int, code: str, detail: str) -> bool:
    with transaction.atomic():
        changed = work_move(
            ManuscriptImport,
            row.pk,
            dispatch_no=dispatch_no,
            state=WorkState.FAILED,
            failure_code=code,
            failure_detail=detail[:2000],
            finished_at=timezone.now(),
            lease_until=None,
        )
        notify.library_changed(row.user.public_id)
    return changed


@transaction.atomic
def import_retry(row: ManuscriptImport) -> bool:
    """Read a failed import's file once more; False if it is not failed (any more)."""
    again = work_retry(row)
    if again:
        notify.library_changed(row.user.public_id)
        work_added("imports")
    return again


@transaction.atomic
def import_dismiss(row: ManuscriptImport) -> None:
    """Take a finished or failed import off the library page."""
    ManuscriptImport.objects.filter(pk=row.pk).update(dismissed_at=timezone.now())
    notify.library_changed(row.user.public_id)


def import_of_file(user: User, sha256: str) -> Project | None:
    """The project this person made from the same file before, newest first; makes `produce` resumable."""
    row = (
        ManuscriptImport.objects.filter(user=user, sha256=sha256, state=WorkState.DONE)
        .exclude(project=None)
        .order_by("-pk")
        .select_related("project")
        .first()
    )
    return row.project if row else None
