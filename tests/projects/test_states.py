"""The table of moves."""

from __future__ import annotations

import pytest

from projects.states import SOURCES, RenderState, at_rest, may_move, sources


def test_every_state_can_be_reached_and_left():
    for state in RenderState:
        assert SOURCES[state], state
        assert any(state in froms for froms in SOURCES.values()), state


@pytest.mark.parametrize(
    ("source", "to", "allowed"),
    [
        ("empty", "queued", True),
        ("empty", "rendering", False),
        ("queued", "rendering", True),
        ("rendering", "queued", True),
        ("ready", "rendering", False),
        ("ready", "failed", False),
        ("failed", "queued", True),
        ("rendering", "ready", True),
    ],
)
def test_moves(source, to, allowed):
    assert may_move(source, to) is allowed
    assert (source in sources(to)) is allowed


def test_an_unknown_state_is_an_error():
    with pytest.raises(ValueError, match="nonsense"):
        sources("nonsense")


def test_at_rest():
    assert at_rest(True) is RenderState.READY
    assert at_rest(False) is RenderState.EMPTY
