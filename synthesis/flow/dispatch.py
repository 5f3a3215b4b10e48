"""Keeps a bounded window of jobs on the conveyor, fair between projects, previews first."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

from synthesis.speaking.conveyor import ConveyorDown
from synthesis.speaking.wire import SpeechOrder

from .ports import Conveyor, Limits, Rows, Waiting


def share(waiting: Sequence[Waiting], flying: Mapping[int, int], room: int) -> list[int]:
    """Pick at most `room` jobs: each time from the project that has the least in flight, in that project's order."""
    queues: dict[int, deque[int]] = defaultdict(deque)
    for job in waiting:
        queues[job.project].append(job.job)
    load = {project: flying.get(project, 0) for project in queues}
    chosen: list[int] = []
    while queues and len(chosen) < room:
        project = min(queues, key=lambda p: (load[p], p))
        chosen.append(queues[project].popleft())
        load[project] += 1
        if not queues[project]:
            del queues[project]
    return chosen


def dispatch(pool: str, *, rows: Rows, conveyor: Conveyor, limits: Limits) -> int:
    """Top up a pool's window; the number of orders handed over. Safe to run twice at once.

    The leases are committed before anything is published. What the broker does not confirm goes back into the queue;
    should even that fail, its lease expires and upkeep dispatches it anew.
    """
    orders: list[SpeechOrder] = []
    with rows.dispatcher(pool) as alone:
        if not alone:
            return 0
        flying = rows.in_flight(pool)
        room = limits.window - sum(flying.values())
        if room > 0:
            chosen = share(rows.waiting(pool, "preview", room), flying, room)
            orders += rows.lease(chosen, seconds=limits.preview_lease_s)
        room = limits.window - limits.preview_reserve - sum(flying.values()) - len(orders)
        if room > 0:
            chosen = share(rows.waiting(pool, "bulk", room), flying, room)
            orders += rows.lease(chosen, seconds=limits.bulk_lease_s)
    for place, order in enumerate(orders):
        try:
            conveyor.publish(order)
        except ConveyorDown:
            for unsent in orders[place:]:
                rows.job_unlease(unsent.job, unsent.dispatch_no, seconds=limits.publish_wait_s)
            return place
    return len(orders)
