"""What one dispatch and one result cost while much waits: `python benchmarks/dispatch_cost.py [1000 50000]`.

Needs an empty database of its own (TEST_DATABASE_URL, else SQLite in a temporary folder); nothing is synthesised.
Prints ms per result (settled, and the window topped up) at each backlog: our CPU, and the time spent waiting for the
database, whose own work is in there.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceproject.settings.test")
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import django

django.setup()

from django.core.management import call_command
from django.db import connection, transaction

from projects.models import Segment
from synthesis.models import Conversion, SegmentJob
from synthesis.services import dispatching
from synthesis.speaking.conveyor import broker_make
from synthesis.speaking.wire import Outcome, SpeechOrder, SpeechResult
from tests.factories import book_make, project_make
from tests.synthesis.flow.benches import facts

RESULTS = 120  # measured per backlog
MOST = 50_000


class Belt:
    """Carries nothing, keeps the orders."""

    def __init__(self) -> None:
        self.orders: list[SpeechOrder] = []

    def publish(self, order: SpeechOrder) -> None:
        self.orders.append(order)


def backlog(count: int) -> None:
    """A book of so many waiting sentences; a hundred are real, the others point at copies of them."""
    project = project_make(book=book_make(chapters=[("One", ("A lamp was lit. " * 100,))], headings=False))
    first = list(Segment.objects.filter(document__project=project).order_by("pk"))
    copies = []
    for n in range(count - len(first)):
        source = first[n % len(first)]
        copies.append(
            Segment(
                **{
                    field.attname: getattr(source, field.attname)
                    for field in Segment._meta.concrete_fields
                    if field.attname not in ("id", "public_id", "order_key", "state")
                },
                order_key=f"zz{n:08}",
                state="queued",
            )
        )
    Segment.objects.bulk_create(copies, batch_size=1000)
    conversion = Conversion.objects.create(project=project, scope="project")
    rows = Segment.objects.filter(document__project=project).order_by("pk")
    jobs = [
        SegmentJob(
            conversion=conversion, segment_id=pk, voice=project.voice, pool="cpu", lane="bulk", position=n,
            recipe=recipe, fingerprint=recipe, text_rev=1,
        )
        for n, (pk, recipe) in enumerate(rows.values_list("pk", "recipe"))
    ]  # fmt: skip
    SegmentJob.objects.bulk_create(jobs, batch_size=1000)
    rows.update(state="queued")
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def measure() -> tuple[float, float, float]:
    """(mean CPU ms of a result, mean and median ms in the database) with the backlog as it stands."""
    belt = Belt()
    dispatching.BrokerConveyor.publish = lambda _self, order: belt.publish(order)  # type: ignore[method-assign,assignment]
    dispatching.pool_dispatch("cpu")
    took: list[float] = []
    asked: list[float] = []

    def timed(execute, *args):  # type: ignore[no-untyped-def]
        began = time.perf_counter()
        try:
            return execute(*args)
        finally:
            asked[-1] += (time.perf_counter() - began) * 1000

    for _ in range(RESULTS):
        order = belt.orders.pop(0)
        message = SpeechResult.of(order, Outcome.DONE, take=facts(order).to_wire()).to_wire()
        asked.append(0.0)
        began = time.process_time()
        with connection.execute_wrapper(timed):
            dispatching.result_settle(message)
        took.append((time.process_time() - began) * 1000)
    return statistics.fmean(took), statistics.fmean(asked), statistics.median(asked)


def main() -> None:
    call_command("migrate", verbosity=0)
    dispatching.broker_set(broker_make(""))
    for count in [int(word) for word in sys.argv[1:]] or [1_000, MOST]:
        with transaction.atomic():
            Conversion.objects.all().delete()
        backlog(count)
        cpu, mean, median = measure()
        print(
            f"{connection.vendor:10} {count:6} waiting: {cpu:6.2f} ms CPU, {mean:6.2f} ms in the database "
            f"(median {median:.2f})"
        )


if __name__ == "__main__":
    main()
