"""Near-duplicates: documents that share at least half of their words."""

from collections.abc import Sequence

from parabit.text import Tokenizer

SHARED = 0.5  # the share of common words from which two texts are copies


def copies_among(texts: Sequence[str]) -> list[int]:
    """For each of a few texts, such as hits, the position of the first that it is a near-copy of, or else its own.

    Example:
        >>> copies_among(["The telescope was repaired", "Goalies like ice", "The telescope was repaired again"])
        [0, 1, 0]
    """
    tokenizer = Tokenizer()
    words = [frozenset(tokenizer.words(text)) for text in texts]
    firsts: list[int] = []
    for place, own in enumerate(words):
        kept = (first for first in range(place) if firsts[first] == first)
        firsts.append(next((first for first in kept if _share(words[first], own) >= SHARED), place))
    return firsts


def _share(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of their words that both texts have (Jaccard); a text without words shares nothing."""
    return len(first & second) / max(1, len(first | second))
