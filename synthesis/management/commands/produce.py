"""`manage.py produce FILE --out DIR`: a manuscript to an audiobook without a browser. Run again, it goes on."""

from __future__ import annotations

import hashlib
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Q

from accounts.models import User
from projects import selectors
from projects.failures import failure_words
from projects.models import Document, ManuscriptImport, Project, Segment, Voice
from projects.services.manuscripts import UploadRefused, import_create, import_of_file
from projects.services.projects import VoiceCannotSpeak, project_set_voice
from projects.states import RenderState
from projects.work import OPEN_STATES, WorkState
from synthesis.embedded import AlreadyRunning, EmbeddedRoles
from synthesis.exporters.base import name_safe
from synthesis.models import Export
from synthesis.selectors import waiting_why
from synthesis.services.conversions import ConversionRefused, Only, Scope, conversion_start
from synthesis.services.exports import ExportImpossible, export_create
from synthesis.services.voices import voices_sync

POLL_S = 0.3
SAID_EVERY_S = 15  # how often progress is said where nobody watches a bar
USER = "produce"  # whose books they are when nobody is named


class Command(BaseCommand):
    help = (
        "Make an audiobook from a manuscript: import, speak, export M4B. Resumable: run the same line again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="EPUB, DOCX, PDF, ODT, RTF, HTML, FB2, Markdown or text")
        parser.add_argument("--out", type=Path, required=True, help="folder for the finished file")
        parser.add_argument(
            "--voice", default="", help="name of a voice, for example af_heart (default: by language)"
        )
        parser.add_argument(
            "--language", default="", help="language of the book, if the file does not say it right"
        )
        parser.add_argument(
            "--chapters", default="", help="only these of the chapters that are read, for example 1,3-5"
        )
        parser.add_argument(
            "--user", default="", help="whose book it becomes (default: the first administrator)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        if not path.is_file():
            raise CommandError(f"There is no file {path}.")
        self.live = sys.stderr.isatty()
        self.said_at = time.monotonic()
        if settings.BROKER_URL:
            roles: Any = nullcontext()
        else:
            Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
            call_command("migrate", interactive=False, verbosity=0)
            roles = EmbeddedRoles()
            try:
                roles.start()
            except AlreadyRunning:
                roles = nullcontext()  # the rows carry the work to the studio's roles
                self._say("A studio runs on this data; it does the work, one step every few seconds.")
        try:
            with_roles = roles if isinstance(roles, EmbeddedRoles) else None
            self._produce(path, options, with_roles)
        except KeyboardInterrupt:
            self._bar_end()
            raise CommandError("Stopped. Run the same line again to go on.", returncode=130) from None
        finally:
            if isinstance(roles, EmbeddedRoles):
                roles.stop()

    def _produce(self, path: Path, options: dict[str, Any], roles: EmbeddedRoles | None) -> None:
        if roles and roles.child:
            self._say("Loading the voice")
            if not roles.child.ready_wait():
                raise CommandError(f"The voice did not get ready; see {settings.DATA_DIR}/inference.log.")
        if roles or settings.BROKER_URL:
            voices_sync()
        user = self._user(options["user"])
        project = self._project(path, user, options["language"])
        self._voice(project, options["voice"])
        documents = self._documents(project, options["chapters"])
        failed = self._speak(user, project, documents)
        target = self._export(user, project, documents, whole=not options["chapters"], out=options["out"])
        self.stdout.write(str(target))
        if failed:
            for segment in failed[:20]:
                reason, remedy = failure_words(segment.failure_code, segment.failure_detail)
                self.stderr.write(f"failed: {segment.text[:60]!r}: {reason} {remedy}")
            raise CommandError(f"{len(failed)} sentences failed and are missing from the file.")

    # -- steps -----------------------------------------------------------------------------------------------------
    def _user(self, name: str) -> User:
        if name:
            found = User.objects.filter(username=name).first()
            if found is None:
                raise CommandError(f"There is no user {name}.")
            return found
        admin = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
        if admin is not None:
            return admin
        user, created = User.objects.get_or_create(username=USER)
        if created:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        return user

    def _project(self, path: Path, user: User, language: str) -> Project:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        known = import_of_file(user, sha256)
        if known is not None:
            self._say(f"Going on with “{known.title}”")
            return known
        row = (
            ManuscriptImport.objects.filter(user=user, sha256=sha256, state__in=OPEN_STATES)
            .order_by("-pk")
            .first()
        )
        if row is None:
            try:
                with path.open("rb") as file:
                    row = import_create(user, file, path.name, language=language)
            except UploadRefused as exc:
                raise CommandError(str(exc)) from exc
        self._say(f"Reading {path.name}")
        while row.state in OPEN_STATES:
            time.sleep(POLL_S)
            row.refresh_from_db()
        if row.state != WorkState.DONE or row.project is None:
            reason, remedy = failure_words(row.failure_code, row.failure_detail)
            raise CommandError(f"{path.name}: {reason} {remedy} ({row.failure_code}: {row.failure_detail})")
        for warning in row.warnings:
            self._say(f"Note: {warning}")
        return row.project

    def _voice(self, project: Project, name: str) -> None:
        if not name:
            return
        found = (
            Voice.objects.filter(project=None, retired_at=None)
            .filter(Q(engine_voice__iexact=name) | Q(name__iexact=name))
            .order_by("-pk")
            .first()
        )
        if found is None:
            names = ", ".join(
                Voice.objects.filter(project=None, retired_at=None).values_list("engine_voice", flat=True)
            )
            raise CommandError(f"There is no voice {name}. These are there: {names or 'none yet'}.")
        if project.voice_id != found.pk:
            try:
                project_set_voice(project, found)
            except VoiceCannotSpeak as exc:
                raise CommandError(str(exc)) from exc

    def _documents(self, project: Project, wanted: str) -> list[Document]:
        rows = [
            row.document
            for row in selectors.documents_of(project)
            if row.document.included and row.counts.total
        ]
        if not wanted:
            return rows
        chapters = [d for d in rows if d.kind == Document.Kind.CHAPTER] or rows
        numbers: set[int] = set()
        try:
            for part in wanted.split(","):
                first, _, last = part.partition("-")
                numbers.update(range(int(first), int(last or first) + 1))
        except ValueError as exc:
            raise CommandError(f"--chapters {wanted}: write numbers and ranges, for example 1,3-5.") from exc
        chosen = [d for number, d in enumerate(chapters, start=1) if number in numbers]
        if not chosen:
            raise CommandError(f"The book has {len(chapters)} chapters that are read.")
        return chosen

    def _speak(self, user: User, project: Project, documents: list[Document]) -> list[Segment]:
        mine = Segment.objects.filter(document__in=documents).exclude(spoken="")
        for document in documents:
            try:
                conversion_start(user, Scope.DOCUMENT, document, only=Only.MISSING_STALE)
            except ConversionRefused as exc:
                raise CommandError(str(exc)) from exc
        begun, begun_ms = time.monotonic(), -1.0
        while True:
            sums = mine.with_stale().aggregate(  # type: ignore[attr-defined]
                total=Count("pk"),
                open=Count("pk", filter=Q(state__in=[RenderState.QUEUED, RenderState.RENDERING])),
                ready=Count("pk", filter=Q(state=RenderState.READY)),
            )
            if begun_ms < 0:
                begun_ms = sums["ready"]
            made, elapsed = sums["ready"] - begun_ms, time.monotonic() - begun
            left = f", about {sums['open'] * elapsed / made:.0f} s left" if made >= 3 else ""
            why = waiting_why(set(settings.INFERENCE_POOLS)) if sums["open"] else ""
            self._bar(sums["ready"], sums["total"], why or left)
            if not sums["open"]:
                break
            time.sleep(POLL_S)
        self._bar_end()
        return list(mine.filter(state=RenderState.FAILED))

    def _export(
        self, user: User, project: Project, documents: list[Document], *, whole: bool, out: Path
    ) -> Path:
        wanted = [] if whole else [str(d.public_id) for d in documents]
        try:
            export = export_create(project, user, documents=wanted)
        except ExportImpossible as exc:
            raise CommandError(str(exc)) from exc
        self._say("Writing the M4B")
        while export.state in OPEN_STATES:
            time.sleep(POLL_S)
            export.refresh_from_db()
            self._bar(round(export.progress * 100), 100, " %")
        self._bar_end()
        if export.state != WorkState.DONE:
            reason, remedy = failure_words(export.failure_code, export.failure_detail)
            raise CommandError(f"The export failed: {reason} {remedy} ({export.failure_detail})")
        return self._fetch(project, export, out)

    def _fetch(self, project: Project, export: Export, out: Path) -> Path:
        out.mkdir(parents=True, exist_ok=True)
        target = out / f"{name_safe(project.title, ascii_only=False)}.m4b"
        part = target.with_suffix(".m4b.part")
        with default_storage.open(export.file_key, "rb") as source, part.open("wb") as file:
            while piece := source.read(1_000_000):
                file.write(piece)
        part.replace(target)
        return target

    # -- what is seen ----------------------------------------------------------------------------------------------
    def _say(self, text: str) -> None:
        self.stderr.write(text)

    def _bar(self, done: float, total: float, note: str) -> None:
        share = done / total if total else 1
        if not self.live:  # a log file: a line now and then
            if time.monotonic() - self.said_at >= SAID_EVERY_S:
                self.said_at = time.monotonic()
                self._say(f"{done:.0f}/{total:.0f}{note}")
            return
        filled = round(share * 30)
        print(
            f"\r[{'█' * filled}{'·' * (30 - filled)}] {done:.0f}/{total:.0f}{note}\x1b[K",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def _bar_end(self) -> None:
        if self.live:
            print(file=sys.stderr)
