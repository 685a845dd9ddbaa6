"""What goes to a Milvus server, in pieces of the sizes that it takes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from parabit.index.milvus.entities import Entity

SENT = 8 << 20  # bytes in a request
# Of what was deleted or replaced since it put all into its files, Milvus 2.3 remembers 5 MB when it loads a file anew,
# and no piece of more. It reckons with 8 bytes for each of a key and 16 beside, and with all keys as long as the first.
_REMEMBERED = 4_800_000

Thing = TypeVar("Thing")


def in_requests(entities: Sequence[Entity]) -> Iterator[list[Entity]]:
    """Entities in their order, as many at a time as go into a request."""
    some: list[Entity] = []
    size = 0
    for entity in entities:
        if some and size + entity.size > SENT:
            yield some
            some, size = [], 0
        some.append(entity)
        size += entity.size
    if some:
        yield some


def in_pieces(things: Sequence[Thing], most: int) -> Iterator[list[Thing]]:
    """Things in their order, at most so many at a time.

    Example:
        >>> list(in_pieces(["sa", "sb", "sc"], 2))
        [['sa', 'sb'], ['sc']]
    """
    return (list(things[start : start + most]) for start in range(0, len(things), most))


def longest(keys: Iterable[str]) -> int:
    """Bytes of the longest key.

    Example:
        >>> longest(["sa", "sé"]), longest([])
        (3, 0)
    """
    return max((len(key.encode()) for key in keys), default=0)


def most_deleted(length: int) -> int:
    """How many keys of up to so many bytes may be deleted or replaced at once, and until all is in the server's files.

    Example:
        >>> most_deleted(21), most_deleted(1001)
        (26086, 598)
    """
    return _REMEMBERED // (8 * length + 16)
