"""Fair sharing of a window between people, their books and conversions."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from synthesis.flow.dispatch import share
from synthesis.flow.ports import Flying, Line


class Queue:
    """What waits: conversion → number of jobs. Notes what was read."""

    def __init__(self, counts: dict[int, int]) -> None:
        self.counts, self.read = counts, 0

    def __call__(self, line: Line, limit: int) -> list[int]:
        found = list(range(min(self.counts.get(line.conversion, 0), limit)))
        self.read += len(found) + 1
        return [line.conversion * 100_000 + n for n in found]


def _line(conversion: int, user: int = 1, project: int | None = None, **more: int) -> Line:
    facts: dict[str, Any] = {"weight": 1, "urgent": 0, "idle_s": 0.0, **more}
    return Line(conversion, user, conversion if project is None else project, **facts)


def _shares(chosen: list[int]) -> dict[int, int]:
    return dict(Counter(job // 100_000 for job in chosen))


def test_a_small_book_does_not_wait_behind_a_big_one():
    chosen = share([_line(1), _line(2)], [], 8, Queue({1: 1000, 2: 3}))
    assert _shares(chosen) == {1: 5, 2: 3}


def test_people_share_before_books():
    lines = [_line(1, user=1), _line(2, user=1), _line(3, user=1), _line(4, user=2)]
    assert _shares(share(lines, [], 12, Queue(dict.fromkeys(range(1, 5), 99)))) == {1: 2, 2: 2, 3: 2, 4: 6}


def test_who_has_much_in_flight_waits():
    lines = [_line(1, user=1), _line(2, user=2)]
    flying = [Flying(user=1, project=1, lane="bulk", count=6)]
    assert _shares(share(lines, flying, 6, Queue({1: 10, 2: 10}))) == {2: 6}


def test_a_weight_counts():
    lines = [_line(1, user=1, weight=3), _line(2, user=2)]
    assert _shares(share(lines, [], 8, Queue({1: 99, 2: 99}))) == {1: 6, 2: 2}


def test_one_place_goes_round():
    """A window of one: between equals comes whoever has waited longest."""
    lines = [_line(1, user=1, idle_s=2.0), _line(2, user=2, idle_s=9.0)]
    assert _shares(share(lines, [], 1, Queue({1: 9, 2: 9}))) == {2: 1}


def test_older_conversions_of_a_book_first_unless_one_is_urgent():
    lines = [_line(1, project=7), _line(2, project=7), _line(3, project=7, urgent=1)]
    assert _shares(share(lines, [], 3, Queue({1: 2, 2: 2, 3: 1}))) == {3: 1, 1: 2}


def test_what_waits_is_not_read():
    queue = Queue({1: 50_000, 2: 50_000})
    share([_line(1), _line(2)], [], 16, queue)
    assert queue.read < 40


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
    st.dictionaries(st.integers(0, 4), st.integers(0, 9)),
    st.integers(0, 20),
)
def test_properties(counts, flying, room):
    lines = [_line(n, user=n) for n in range(len(counts))]
    flights = [Flying(user=n, project=n, lane="bulk", count=c) for n, c in flying.items()]
    chosen = share(lines, flights, room, Queue(dict(enumerate(counts))))
    assert len(chosen) == min(room, sum(counts))
    assert len(set(chosen)) == len(chosen)
    got = _shares(chosen)
    load = {n: flying.get(n, 0) + got.get(n, 0) for n in range(len(counts))}
    for n, count in enumerate(counts):
        assert [job for job in chosen if job // 100_000 == n] == sorted(
            j for j in chosen if j // 100_000 == n
        )
        if got.get(n, 0) < count:  # work left: nobody who was served stands more than one above
            assert all(load[other] <= load[n] + 1 for other in got)
