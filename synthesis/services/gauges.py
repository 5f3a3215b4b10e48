"""The state of queues, pools and breakers for Prometheus, read from the database when it is asked for."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db import DatabaseError, close_old_connections, connection
from django.db.models import Count, Min
from django.db.models.functions import Now
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from projects.models import ManuscriptImport
from projects.work import OPEN_STATES, WorkState
from synthesis.models import Breaker, Export, Garbage, Pool, SegmentJob

log = logging.getLogger(__name__)


class StudioGauges(Collector):
    """One reading per scrape. A database that is away gives no figures rather than old ones."""

    def describe(self) -> list[GaugeMetricFamily]:
        """Names are known without a database."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        ours = not connection.in_atomic_block  # a scrape has a thread, and so a connection, of its own
        if ours:
            close_old_connections()
        try:
            yield from list(self._read())
        except DatabaseError:
            log.warning("no figures: the database does not answer", exc_info=True)
        finally:
            if ours:
                close_old_connections()

    def _read(self) -> Iterator[GaugeMetricFamily]:
        jobs = GaugeMetricFamily("studio_jobs", "Open segment jobs.", labels=["pool", "lane", "state"])
        oldest = GaugeMetricFamily(
            "studio_oldest_waiting_seconds", "Age of the oldest waiting sentence.", labels=["pool", "lane"]
        )
        counts = SegmentJob.objects.filter(state__in=OPEN_STATES).order_by()
        for pool, lane, state, count, since in counts.values_list("pool", "lane", "state").annotate(
            n=Count("pk"), since=Min("created_at")
        ):
            jobs.add_metric([pool, lane, state], count)
            if state == WorkState.WAITING:
                oldest.add_metric([pool, lane], max((timezone.now() - since).total_seconds(), 0))
        yield jobs
        yield oldest
        overdue = GaugeMetricFamily("studio_leases_overdue", "Leases that ran out and are not settled yet.")
        overdue.add_metric(
            [], SegmentJob.objects.filter(state=WorkState.LEASED, lease_until__lt=Now()).count()
        )
        yield overdue
        work = GaugeMetricFamily("studio_work", "Open imports and exports.", labels=["kind", "state"])
        for kind, model in (("imports", ManuscriptImport), ("exports", Export)):
            rows = model.objects.filter(state__in=OPEN_STATES).order_by()  # type: ignore[attr-defined]
            for state, count in rows.values_list("state").annotate(n=Count("pk")):
                work.add_metric([kind, state], count)
        yield work
        pools = GaugeMetricFamily("studio_pool_away", "1 while no worker of a pool answers.", labels=["pool"])
        for name, since in Pool.objects.values_list("name", "unreachable_since"):
            pools.add_metric([name], float(since is not None))
        yield pools
        held = GaugeMetricFamily(
            "studio_breaker_open", "1 while the work of a voice or pool is held.", labels=["subject", "code"]
        )
        for subject, code in Breaker.objects.exclude(opened_at=None).values_list("subject", "code"):
            held.add_metric([subject, code], 1)
        yield held
        garbage = GaugeMetricFamily("studio_garbage", "Objects marked and not swept yet.")
        garbage.add_metric([], Garbage.objects.filter(swept_at=None).count())
        yield garbage


def gauges_register(registry: CollectorRegistry = REGISTRY) -> StudioGauges:
    """Let a registry read the gauges; once per process, in the upkeep role."""
    gauges = StudioGauges()
    registry.register(gauges)
    return gauges
