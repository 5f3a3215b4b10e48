"""Keeps a bounded window of jobs on the conveyor: previews first, then fair between people, then between their books."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from synthesis.speaking.conveyor import ConveyorDown
from synthesis.speaking.wire import SpeechOrder

from .ports import Conveyor, Flying, JobState, Limits, Line, Move, Rows

LANES = ("preview", "bulk")

Heads = Callable[[Line, int], Sequence[int]]  # the first due jobs of a line, at most so many


def share(lines: Iterable[Line], flying: Iterable[Flying], room: int, heads: Heads) -> list[int]:
    """Pick at most `room` jobs, one after the other, each from whoever has least.

    The person with the least in flight per weight comes first, then that person's book with the least, then the book's
    most urgent and oldest conversion. Between equals the one that has waited longest since its last turn. Jobs are
    read page by page, only where they are picked: the cost depends on `room`, not on what waits.
    """
    left = sorted(lines, key=lambda line: (-line.urgent, line.conversion))
    users: dict[int, float] = defaultdict(float)
    projects: dict[int, float] = defaultdict(float)
    for flight in flying:
        users[flight.user] += flight.count
        projects[flight.project] += flight.count
    turn: dict[tuple[str, int], float] = {}  # when served last: negative ages, then the turns of this call
    weight: dict[tuple[str, int], int] = {}
    for line in left:
        for key in (("user", line.user), ("project", line.project)):
            turn[key] = max(turn.get(key, float("-inf")), -line.idle_s)
            weight[key] = max(weight.get(key, 1), line.weight)
    pages: dict[int, list[int]] = {}
    chosen: list[int] = []
    while left and len(chosen) < room:
        user = min(
            {line.user for line in left},
            key=lambda u: (users[u] / weight["user", u], turn["user", u], u),
        )
        project = min(
            {line.project for line in left if line.user == user},
            key=lambda p: (projects[p] / weight["project", p], turn["project", p], p),
        )
        line = next(line for line in left if line.user == user and line.project == project)
        if line.conversion not in pages:
            pages[line.conversion] = list(heads(line, room - len(chosen)))[::-1]
        if not pages[line.conversion]:
            left.remove(line)
            continue
        chosen.append(pages[line.conversion].pop())
        users[user] += 1
        projects[project] += 1
        turn["user", user] = turn["project", project] = float(len(chosen))
    return chosen


def dispatch(pool: str, *, rows: Rows, conveyor: Conveyor, limits: Limits, least: int = 1) -> int | None:
    """Top up a pool's window; the number of orders handed over, or None if somebody else was at it.

    Does nothing while fewer than `least` places are free, unless somebody waits for a preview. Safe to run twice at once. Leases are committed before
    anything is published, and are short until the broker has confirmed: what it does not confirm goes back into the
    queue, and should even that fail, is dispatched anew seconds later.
    """
    with rows.dispatcher(pool) as alone:
        if not alone:
            return None
        orders = _lease(pool, rows, limits, least)
    for place, order in enumerate(orders):
        try:
            conveyor.publish(order)
        except ConveyorDown:
            for unsent in orders[place:]:
                rows.job_move(
                    Move(
                        unsent.job,
                        JobState.LEASED,
                        unsent.dispatch_no,
                        JobState.WAITING,
                        "dispatch",
                        wait_s=limits.publish_wait_s,
                        code="unconfirmed",
                    )
                )
            return place
        seconds = limits.preview_lease_s if order.lane == "preview" else limits.bulk_lease_s
        rows.lease_extend(order.job, order.dispatch_no, seconds=seconds)
    return len(orders)


def _lease(pool: str, rows: Rows, limits: Limits, least: int) -> list[SpeechOrder]:
    """Choose and lease what there is room for."""
    holds = rows.holds(pool)
    flying = list(rows.in_flight(pool))
    count = sum(flight.count for flight in flying)
    if count >= limits.window:
        return []
    lines = {"preview": rows.lines("preview")}
    if not lines["preview"] and limits.window - limits.preview_reserve - count < least:
        return []
    lines["bulk"] = rows.lines("bulk")
    orders: list[SpeechOrder] = []

    def pick(lane: str, room: int, without: frozenset[int] = frozenset(), only: int = 0) -> int:
        """Lease up to `room` jobs of a lane; the number chosen."""
        if room <= 0:
            return 0
        chosen = share(
            lines[lane],
            flying,
            room,
            lambda line, limit: rows.heads(pool, lane, line.conversion, limit, without=without, only=only),
        )
        if chosen:
            orders.extend(rows.lease(chosen, seconds=limits.confirm_lease_s))
        return len(chosen)

    held = any(hold.voice is None for hold in holds)
    for hold in holds:
        # One order finds out whether what is held works again.
        if (
            hold.probe_due
            and (hold.voice is None or not held)
            and count + len(orders) < limits.window
            and rows.breaker_probed(hold.subject, most_s=limits.probe_most_s)
        ):
            any(pick(lane, 1, only=hold.voice or 0) for lane in LANES)
    if held:
        return orders
    without = frozenset(hold.voice for hold in holds if hold.voice is not None)
    if not any(flight.lane == "bulk" for flight in flying) and any(
        line.idle_s >= limits.ageing_s for line in lines["bulk"]
    ):
        pick("bulk", min(1, limits.window - count - len(orders)), without)
    pick("preview", limits.window - count - len(orders), without)
    pick("bulk", limits.window - limits.preview_reserve - count - len(orders), without)
    return orders
