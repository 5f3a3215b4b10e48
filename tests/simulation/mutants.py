"""Guards taken out one at a time: what the simulation must notice.

A mutant is a change of the source text, so that it breaks loudly when the code it aims at has moved on.
"""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from synthesis.flow import breaker, collection, dispatch, results, simulated, upkeep
from tests.simulation.world import FLOW

MODULES = {
    "breaker": breaker,
    "collection": collection,
    "dispatch": dispatch,
    "results": results,
    "simulated": simulated,
    "upkeep": upkeep,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard removed."""

    name: str
    module: str
    old: str
    new: str
    first: int = 0  # the seed to begin with; a rare one is not looked for from the start each time


MUTANTS = (
    Mutant(
        "published before its lease is committed",
        "dispatch",
        "        orders = _lease(pool, rows, limits, least)\n",
        "        orders = _lease(pool, rows, limits, least)\n"
        "        for early in orders:\n            conveyor.publish(early)\n",
    ),
    Mutant(
        "two dispatchers of one pool at once",
        "dispatch",
        "        if not alone:\n            return None\n",
        "",
    ),
    Mutant(
        "previews are not counted against the window",
        "dispatch",
        "limits.window - limits.preview_reserve - count - len(orders)",
        "limits.window - count",
    ),
    Mutant(
        "held work is never probed",
        "dispatch",
        "            hold.probe_due\n",
        "            False\n",
    ),
    Mutant(
        "failures are not fenced",
        "results",
        "if job.state is not JobState.LEASED or job.dispatch_no != result.dispatch_no:",
        "if job.state is not JobState.LEASED:",
    ),
    Mutant(
        "successes are fenced",
        "results",
        "if not job.is_open or job.fingerprint != result.fingerprint:",
        "if not job.is_open or job.fingerprint != result.fingerprint or job.dispatch_no != result.dispatch_no:",
    ),
    Mutant(
        "a closed job takes a result",
        "results",
        "if not job.is_open or job.fingerprint != result.fingerprint:",
        "if job.fingerprint != result.fingerprint:",
    ),
    Mutant(
        "old words become the current take",
        "results",
        "    if job.segment_recipe == job.recipe:\n",
        "    if job.segment_recipe:\n",
    ),
    Mutant(
        "a result for other words counts",
        "results",
        "if not job.is_open or job.fingerprint != result.fingerprint:",
        "if not job.is_open:",
    ),
    Mutant(
        "an outage costs an attempt",
        "results",
        "return _again(job, rows, code, wait_s=limits.unreachable_wait_s * jitter)",
        "return _again(job, rows, code, wait_s=0.0, attempts=job.attempts + 1)",
    ),
    Mutant(
        "a late success is not looked up in the store",
        "results",
        "    if marked or not (current and job.in_lease):\n",
        "    if False:\n",
    ),
    Mutant(
        "the attempts never end",
        "results",
        "if not result.permanent and attempts < limits.max_attempts:",
        "if attempts < limits.max_attempts + 99:",
    ),
    Mutant(
        "a broken voice is not held",
        "breaker",
        "        held = held or opens\n",
        "        held = False\n",
    ),
    Mutant(
        "what is lost in an outage counts as poison",
        "upkeep",
        "losses = lost.losses + lost.blamed",
        "losses = lost.losses + 1",
    ),
    Mutant(
        "swept without looking again",
        "collection",
        "            if not rows.unreferenced([key]):\n",
        "            if False:\n",
    ),
    Mutant(
        "swept without holding the mark",
        "collection",
        "            if not rows.garbage_hold(key, seconds=limits.grace_s):\n                continue\n",
        "",
        first=3_700,
    ),
    Mutant(
        "a row is changed by id alone (dispatch)",
        "simulated",
        'job["state"] != move.seen or job["dispatch_no"] != move.dispatch_no:',
        'job["state"] != move.seen:',
    ),
    Mutant(
        "a row is changed by id alone (state)",
        "simulated",
        'job["state"] != move.seen or job["dispatch_no"] != move.dispatch_no:',
        'job["dispatch_no"] != move.dispatch_no:',
    ),
    Mutant(
        "a paused book is handed out",
        "simulated",
        'if row["state"] == "running" and row["lane"] == lane',
        'if row["state"] in ("running", "paused", "cancelled") and row["lane"] == lane',
    ),
    Mutant(
        "an edited sentence is not aimed at anew",
        "simulated",
        '        if segment["recipe"] == job["recipe"]:\n',
        "        if True:\n",
    ),
    Mutant(
        "two takes of one fingerprint",
        "simulated",
        '            if (take["segment"], take["fingerprint"]) == (job.segment, job.fingerprint):\n',
        "            if False:\n",
    ),
    Mutant(
        "two who close the last two jobs do not wait for each other",
        "simulated",
        '            row = self._lock_row("conversion", conversion) or {}\n'
        '            if row["state"] in ("running", "paused") and not self._open_of(conversion):\n',
        '            row = self._get("conversion", conversion) or {}\n'
        '            if row["state"] in ("running", "paused") and not self._open_of(conversion):\n',
    ),
)


def flow_of(mutant: Mutant) -> Any:
    """The flow with one guard removed."""
    source = inspect.getsource(MODULES[mutant.module])
    assert source.count(mutant.old) == 1, f"the source of {mutant.name!r} has moved on"
    broken = types.ModuleType(f"synthesis.flow.{mutant.module}")
    broken.__package__ = "synthesis.flow"
    code = compile(source.replace(mutant.old, mutant.new), f"<{mutant.name}>", "exec")
    with _registered(broken):
        exec(code, broken.__dict__)
    flow = SimpleNamespace(**vars(FLOW))
    if mutant.module == "breaker":
        again = types.ModuleType("synthesis.flow.results")
        again.__package__ = "synthesis.flow"
        with _registered(again):
            exec(compile(inspect.getsource(results), "results", "exec"), again.__dict__)
        again.__dict__["failure_hold"] = broken.__dict__["failure_hold"]
        flow.settle = again.__dict__["settle"]
    elif mutant.module == "simulated":
        broken.__dict__["Deadlock"] = simulated.Deadlock
        flow.rows = broken.__dict__["SimulatedRows"]
    else:
        for name in vars(flow):
            if name in broken.__dict__:
                setattr(flow, name, broken.__dict__[name])
    return flow


class _registered:
    """Dataclasses look their module up while they are made."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.name = module, module.__name__

    def __enter__(self) -> None:
        import sys

        self.before = sys.modules[self.name]
        sys.modules[self.name] = self.module

    def __exit__(self, *_: object) -> None:
        import sys

        sys.modules[self.name] = self.before
