"""`manage.py loadtest`: a conversion of so many sentences, timed from end to end and stage by stage."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Count, Sum

from accounts.models import User
from projects.importers.base import ParsedBlock, ParsedBook, ParsedChapter
from projects.models import Project, Segment, Take, Voice
from projects.services.books import project_create
from projects.services.manuscripts import voice_default
from projects.work import OPEN_STATES, WorkState, kind_of
from synthesis.embedded import AlreadyRunning, EmbeddedRoles
from synthesis.models import Conversion, JobEvent, SegmentJob
from synthesis.services.conversions import Scope, conversion_cancel, conversion_start
from synthesis.services.voices import voices_sync

USER = "loadtest"
POLL_S = 0.25
SENTENCES = (
    "Lamp number {n} was lit before the tide turned.",
    "Nobody on the pier counted the {n} boats that came home that night.",
    "She wrote {n} in the ledger and closed it.",
    "The ferry left at {n} minutes past the hour, and the gulls went with it.",
)


class Command(BaseCommand):
    help = "Convert a book of so many sentences and print where the time went, as a table or as JSON."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--segments", type=int, default=250, help="sentences to convert")
        parser.add_argument("--text", type=Path, help="one sentence or paragraph per line instead of our own")
        parser.add_argument("--voice", default="", help="engine voice; the studio's for English if not given")
        parser.add_argument("--timeout", type=float, default=3600, help="seconds until it is given up")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
        parser.add_argument("--keep", action="store_true", help="keep the book; it is deleted otherwise")

    def handle(self, *args: Any, **options: Any) -> None:
        roles: Any = nullcontext()
        if not settings.BROKER_URL:
            Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
            call_command("migrate", interactive=False, verbosity=0)
            embedded = EmbeddedRoles()
            try:
                embedded.start()
            except AlreadyRunning:
                pass  # the studio that runs on this data does the work
            else:
                roles = embedded
        try:
            if isinstance(roles, EmbeddedRoles) and roles.child and not roles.child.ready_wait():
                raise CommandError("The voice did not get ready.")
            voices_sync()
            report = self._run(options)
        finally:
            if isinstance(roles, EmbeddedRoles):
                roles.stop()
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=2))
        else:
            self._table(report)
        if report["failed"]:
            raise CommandError(f"{report['failed']} sentences failed.")

    def _run(self, options: dict[str, Any]) -> dict[str, Any]:
        voice = (
            Voice.objects.filter(engine_voice=options["voice"], retired_at=None).first()
            if options["voice"]
            else voice_default("en")
        )
        if voice is None:
            raise CommandError("No such voice. `manage.py voices` lists them.")
        user, _created = User.objects.get_or_create(username=USER, defaults={"is_active": False})
        project = project_create(
            self._book(options["segments"], options["text"]), owner=user, voice=voice, language="en"
        )
        spare = Segment.objects.filter(document__project=project).exclude(spoken="").in_order()  # type: ignore[attr-defined]
        for pk in list(spare.values_list("pk", flat=True)[options["segments"] :]):
            Segment.objects.filter(pk=pk).delete()
        try:
            began, cpu = time.monotonic(), time.process_time()
            conversion = conversion_start(user, Scope.PROJECT, project)
            if conversion is None:
                raise CommandError("There was nothing to convert.")
            queued_s = time.monotonic() - began
            while Conversion.objects.filter(pk=conversion.pk, state=Conversion.State.RUNNING).exists():
                if time.monotonic() - began > options["timeout"]:
                    conversion_cancel(conversion)
                    raise CommandError("It took too long and was cancelled.")
                time.sleep(POLL_S)
            elapsed_s = time.monotonic() - began
            return self._report(project, conversion, elapsed_s, queued_s, time.process_time() - cpu)
        finally:
            if not options["keep"]:
                Conversion.objects.filter(project=project).delete()
                Project.objects.filter(pk=project.pk).delete()

    @staticmethod
    def _book(count: int, text: Path | None) -> ParsedBook:
        if text is not None:
            lines = [line.strip() for line in text.read_text().splitlines() if line.strip()]
        else:
            lines = [SENTENCES[n % len(SENTENCES)].format(n=n + 2) for n in range(count)]
        if not lines:
            raise CommandError("There are no sentences in it.")
        wanted = (lines * (count // len(lines) + 1))[: max(count, 1)]
        blocks = tuple(ParsedBlock("paragraph", line, source=f"line {n}") for n, line in enumerate(wanted, 1))
        return ParsedBook("Load test", (USER,), "en", (ParsedChapter("One", "chapter", blocks),))

    @staticmethod
    def _report(
        project: Project, conversion: Conversion, elapsed_s: float, queued_s: float, cpu_s: float
    ) -> dict[str, Any]:
        jobs = dict(conversion.jobs.values_list("pk", "segment_id"))
        seen: dict[int, dict[str, Any]] = {pk: {} for pk in jobs}
        reasons: dict[str, int] = {}
        events = JobEvent.objects.filter(kind=kind_of(SegmentJob), job__in=list(jobs)).order_by("seq")
        for event in events:
            times = seen[event.job]
            if event.to == WorkState.LEASED or not event.source or event.to not in OPEN_STATES:
                times[event.to] = event.at  # the last hand-out counts
            else:
                reasons[event.reason] = reasons.get(event.reason, 0) + 1
        takes = dict(
            Take.objects.filter(segment__document__project=project).values_list("segment", "inference_ms")
        )
        done = [pk for pk, times in seen.items() if WorkState.DONE in times]
        stages = {
            "waits for its turn": [
                (seen[pk][WorkState.LEASED] - seen[pk][WorkState.WAITING]).total_seconds() for pk in done
            ],
            "in flight": [
                (seen[pk][WorkState.DONE] - seen[pk][WorkState.LEASED]).total_seconds() for pk in done
            ],
            "of it inference": [takes.get(jobs[pk], 0) / 1000 for pk in done],
        }
        sums = Take.objects.filter(segment__document__project=project).aggregate(
            n=Count("pk"), samples=Sum("samples"), rate=Sum("rate_hz")
        )
        audio_s = (sums["samples"] or 0) / (sums["rate"] / sums["n"]) if sums["n"] else 0.0
        return {
            "segments": len(jobs),
            "done": len(done),
            "failed": conversion.jobs.filter(state=WorkState.FAILED).count(),
            "end_to_end_s": round(elapsed_s, 3),
            "queued_in_s": round(queued_s, 3),
            "segments_per_s": round(len(done) / elapsed_s, 2),
            "audio_s_per_s": round(audio_s / elapsed_s, 2),
            "cpu_ms_per_segment_here": round(cpu_s * 1000 / max(len(jobs), 1), 2),
            "again": reasons,
            "stages": {name: _spread(values) for name, values in stages.items()},
        }

    def _table(self, report: dict[str, Any]) -> None:
        self.stdout.write(
            f"{report['done']} of {report['segments']} sentences in {report['end_to_end_s']:.2f} s: "
            f"{report['segments_per_s']:.2f} sentences/s, {report['audio_s_per_s']:.2f} s of sound per second\n"
            f"queued in {report['queued_in_s']:.2f} s; {report['cpu_ms_per_segment_here']:.1f} ms CPU per sentence "
            f"in this process; handed out again: {report['again'] or 'never'}\n"
        )
        self.stdout.write(f"{'stage':22}{'p50 s':>10}{'p95 s':>10}{'most s':>10}")
        for name, spread in report["stages"].items():
            self.stdout.write(f"{name:22}{spread['p50']:10.3f}{spread['p95']:10.3f}{spread['max']:10.3f}")


def _spread(values: Iterable[float]) -> dict[str, float]:
    """Median, 95th percentile and largest, s."""
    ordered = sorted(values)
    if not ordered:
        return {"p50": 0.0, "p95": 0.0, "max": 0.0}
    return {
        "p50": round(statistics.median(ordered), 3),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 3),
        "max": round(ordered[-1], 3),
    }
