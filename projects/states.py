"""Segment render states and the moves between them. Pure: no Django.

Three axes, never one enum: the stored *render state* (here), the stored *review marks* (edit pass, QC pass, pickup,
lock) and the computed *flags* (stale, suspect). The screen shows the most urgent.
"""

from __future__ import annotations

from enum import StrEnum


class RenderState(StrEnum):
    """What the machine is doing for a segment. A chosen take, if any, stays and sounds in every state."""

    EMPTY = "empty"  # no take yet
    QUEUED = "queued"  # a job waits in the database
    RENDERING = "rendering"  # handed to the workers
    READY = "ready"  # a take is chosen
    FAILED = "failed"  # the last job failed for good; the reason stands beside


# to -> the states it may be reached from
SOURCES: dict[RenderState, frozenset[RenderState]] = {
    RenderState.EMPTY: frozenset(
        {RenderState.QUEUED, RenderState.RENDERING, RenderState.READY, RenderState.FAILED}
    ),
    RenderState.QUEUED: frozenset(
        {RenderState.EMPTY, RenderState.READY, RenderState.FAILED, RenderState.RENDERING}
    ),
    RenderState.RENDERING: frozenset({RenderState.QUEUED}),
    RenderState.READY: frozenset(RenderState),  # a take may arrive or be chosen at any time
    RenderState.FAILED: frozenset({RenderState.QUEUED, RenderState.RENDERING}),
}


def sources(to: str) -> list[str]:
    """The states from which a segment may move to `to`. Raises ValueError for an unknown state."""
    return sorted(SOURCES[RenderState(to)])


def may_move(source: str, to: str) -> bool:
    """Whether the table allows the move."""
    return RenderState(source) in SOURCES[RenderState(to)]


def at_rest(has_take: bool) -> RenderState:
    """Where a segment stands when no job wants it any more."""
    return RenderState.READY if has_take else RenderState.EMPTY
