"""What a normalisation rule is."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A named change from printed to spoken text. The name is what a user switches off."""

    name: str
    act: Callable[[str], str]
    headings_only: bool = False
    figures: bool = False  # acts only on texts with figures in them: others need not be searched
    needs: tuple[str, ...] = ()  # acts only on texts with one of these in them


def replacing(
    name: str,
    pattern: str,
    by: str | Callable[[re.Match[str]], str],
    *,
    flags: int = 0,
    headings_only: bool = False,
    needs: tuple[str, ...] = (),
) -> Rule:
    """A rule that replaces every match of a pattern. `by` may return the match unchanged."""
    compiled = re.compile(pattern, flags)
    return Rule(name, lambda text: compiled.sub(by, text), headings_only, r"\d" in pattern, needs)
