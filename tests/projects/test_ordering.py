"""Order keys: always room between two, in every collation."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projects.ordering import DIGITS, key_between, keys_spread


@given(st.lists(st.integers(0, 10_000), max_size=120))
def test_inserting_anywhere_keeps_the_order(places):
    keys: list[str] = []
    for place in places:
        at = place % (len(keys) + 1)
        before = keys[at - 1] if at else None
        after = keys[at] if at < len(keys) else None
        key = key_between(before, after)
        assert set(key) <= set(DIGITS)
        assert not key.endswith("0")
        keys.insert(at, key)
    assert keys == sorted(set(keys))


@given(st.integers(0, 5_000))
def test_spread_keys_are_ordered_and_leave_room(count):
    keys = keys_spread(count)
    assert len(keys) == count
    assert keys == sorted(set(keys))
    for before, after in list(pairwise(keys))[:50]:
        assert before < key_between(before, after) < after


def test_appending_keeps_keys_short():
    key = None
    for _ in range(1000):
        key = key_between(key, None)
    assert len(key) <= 60  # the column's width


def test_always_before_the_first_there_is_room():
    key = keys_spread(3)[0]
    for _ in range(100):
        lower = key_between(None, key)
        assert lower < key
        key = lower


@pytest.mark.parametrize(("before", "after"), [("b", "a"), ("a", "a"), ("", "a"), ("a", "b0")])
def test_nonsense_is_refused(before, after):
    with pytest.raises(ValueError, match="order"):
        key_between(before, after)
