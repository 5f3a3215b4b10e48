"""Fair sharing of a window between projects."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from synthesis.flow.dispatch import share
from synthesis.flow.ports import Waiting


def _jobs(*counts: int) -> list[Waiting]:
    return [Waiting(job=p * 10_000 + n, project=p) for p, count in enumerate(counts) for n in range(count)]


def test_a_small_book_does_not_wait_behind_a_big_one():
    chosen = share(_jobs(1000, 3), {}, 8)
    assert Counter(job // 10_000 for job in chosen) == {0: 5, 1: 3}


def test_who_has_much_in_flight_waits():
    chosen = share(_jobs(10, 10), {0: 6}, 6)
    assert Counter(job // 10_000 for job in chosen) == {1: 6}


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=5),
    st.dictionaries(st.integers(0, 4), st.integers(0, 9)),
    st.integers(0, 20),
)
def test_properties(counts, flying, room):
    waiting = _jobs(*counts)
    chosen = share(waiting, flying, room)
    assert len(chosen) == min(room, len(waiting))
    assert len(set(chosen)) == len(chosen)
    for project in range(len(counts)):
        mine = [job for job in chosen if job // 10_000 == project]
        assert mine == sorted(mine)  # each project's own order
    # nobody with work left has less in flight than somebody who was served beyond him
    load = {p: flying.get(p, 0) + sum(job // 10_000 == p for job in chosen) for p in range(len(counts))}
    served = {job // 10_000 for job in chosen}
    for project, count in enumerate(counts):
        if sum(job // 10_000 == project for job in chosen) < count:
            assert all(
                load[other] <= load[project] + 1 for other in served if load[other] > flying.get(other, 0)
            )
