"""A failing schedule made short: which of its unusual choices does it need?"""

from __future__ import annotations

from typing import Any

from tests.simulation.world import FLOW, Violation, World

Turn = tuple[str, int]
TRIES = 400


def fails(seed: int, forced: dict[Turn, Any], flow: Any) -> World | None:
    """The world of a schedule with just these unusual choices, if it breaks an invariant."""
    world = World(seed, flow=flow, forced=forced)
    try:
        world.play()
    except Violation:
        return world
    return None


def shrink(seed: int, *, flow: Any = FLOW) -> list[Turn]:
    """The unusual choices that a failing seed still fails with: halves are left out, then quarters, then single ones.

    Raises ValueError if the seed does not fail.
    """
    world = World(seed, flow=flow)
    try:
        world.play()
    except Violation:
        pass
    else:
        raise ValueError(f"seed {seed} does not fail")
    kept = list(world.choices.made)
    if fails(seed, dict.fromkeys(kept, 1), flow) is None:
        return kept
    tries, size = 0, max(len(kept) // 2, 1)
    while tries < TRIES:
        begin, smaller = 0, False
        while begin < len(kept) and tries < TRIES:
            without = kept[:begin] + kept[begin + size :]
            tries += 1
            if fails(seed, dict.fromkeys(without, 1), flow) is not None:
                kept, smaller = without, True
            else:
                begin += size
        if size == 1 and not smaller:
            break
        size = max(size // 2, 1)
    return kept


def story(seed: int, turns: list[Turn], *, flow: Any = FLOW) -> str:
    """A shrunk schedule for people: its settings, its unusual choices, what became of the jobs, and what broke."""
    world = World(seed, flow=flow, forced=dict.fromkeys(turns, 1))
    broke = ""
    try:
        world.play()
    except Violation as exc:
        broke = str(exc)
    lines = [
        f"seed {seed}: {world.limits}",
        "unusual: " + (", ".join(f"{n} #{t}" for n, t in turns) or "nothing"),
    ]
    lines += [
        f"{e.at:9.3f}  job {e.job}  {e.source or '·'!s:9} → {e.to!s:9} dispatch {e.dispatch_no}  {e.actor} {e.reason}"
        for e in world.rows.events
    ]
    return "\n".join([*lines, broke])
