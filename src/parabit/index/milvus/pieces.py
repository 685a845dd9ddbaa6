"""What goes to a Milvus server, in pieces of the sizes that it takes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

# Bytes of keys that one request may delete or replace, or all until what they wrote is in the server's files: of
# what came since, Milvus 2.3 remembers 5 MB when it loads a file anew, as it reckons, with 8 bytes for each of a key.
_KEYS = 600_000

Thing = TypeVar("Thing")


def in_pieces(keys: Sequence[str], most: int) -> Iterator[list[str]]:
    """Keys, at most so many at a time.

    Example:
        >>> list(in_pieces(["sa", "sb", "sc"], 2))
        [['sa', 'sb'], ['sc']]
    """
    return (list(keys[start : start + most]) for start in range(0, len(keys), most))


def in_requests(things: Sequence[Thing], shares: Iterable[float]) -> Iterator[list[Thing]]:
    """Things in their order, as many at a time as fit into a request, of which each takes a share.

    Example:
        >>> list(in_requests(["sa", "sb", "sc"], [0.5, 0.25, 0.5]))
        [['sa', 'sb'], ['sc']]
    """
    some: list[Thing] = []
    full = 0.0
    for thing, share in zip(things, shares, strict=True):
        if some and full + share > 1:
            yield some
            some, full = [], 0.0
        some.append(thing)
        full += share
    if some:
        yield some


def share_of(key: str) -> float:
    """How much of a request that deletes or replaces it a key takes, and of what may be before the next flush."""
    return (len(key.encode()) + 2) / _KEYS
