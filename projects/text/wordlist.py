"""Lists of words, written as text."""


def word_set(text: str) -> frozenset[str]:
    """The blank-separated words of a text as a set."""
    return frozenset(text.split())
