"""Order keys: fractional strings, so that insert, split and move touch one row. Pure: no Django.

Keys use 0-9a-z only, which every collation of PostgreSQL and SQLite sorts alike, and never end in "0", so that there
is always room between two of them. (Fractional indexing; the idea is David Greenspan's, 2020.)
"""

from __future__ import annotations

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
BASE = len(DIGITS)


def key_between(before: str | None, after: str | None) -> str:
    """A key that sorts after `before` and before `after`; None is the open end.

    Raises ValueError if they are not in order.
    """
    low, high = before or "", after
    if high is not None and low >= high:
        raise ValueError(f"not in order: {before!r} and {after!r}")
    if (before is not None and not before) or (high is not None and (not high or high.endswith("0"))):
        raise ValueError("an order key may not be empty or end in 0")
    if high is None and low:
        return _after(low)
    key, place = "", 0
    while True:
        a = DIGITS.index(low[place]) if place < len(low) else 0
        b = DIGITS.index(high[place]) if high is not None and place < len(high) else BASE
        if a == b:
            key += DIGITS[a]
        elif b - a > 1:
            return key + DIGITS[(a + b) // 2]
        else:  # neighbours: keep the lower digit, and from here on there is no upper bound
            key += DIGITS[a]
            high = None
        place += 1


def _after(low: str) -> str:
    """The next short key after `low`: appending at the end must not lengthen keys by a digit each time."""
    for place, digit in enumerate(low):
        value = DIGITS.index(digit)
        if value < BASE - 1:
            return low[:place] + DIGITS[value + 1]
    return low + DIGITS[BASE // 2]


def keys_spread(count: int) -> list[str]:
    """`count` keys in order, evenly spread, all of one length before trailing zeros are cut; for a fresh import."""
    width = 1
    while BASE**width < (count + 1) * 2:
        width += 1
    step = BASE**width // (count + 1)
    return [_digits(step * (i + 1), width) for i in range(count)]


def _digits(value: int, width: int) -> str:
    text = ""
    for _ in range(width):
        value, digit = divmod(value, BASE)
        text = DIGITS[digit] + text
    return text.rstrip("0")
