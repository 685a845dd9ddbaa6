"""Pairs of documents that are near each other, of a whole index."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.index.store import Id, Snapshot
from parabit.progress import Progress, Report

_AT_ONCE = 1024  # documents


class Pairs(NamedTuple):
    """Documents whose codes are near each other, each pair once."""

    first: list[Id]
    second: list[Id]
    distances: NDArray[np.int32]


def pairs_within(view: Snapshot, radius: int, report: Report, backend: str) -> Iterator[Pairs]:
    """The pairs within a Hamming radius, block by block.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> batch = Batch(["a", "b", "c"], np.array([[0], [1], [7]], np.uint8))
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [batch])
        >>> view = Store.open(folder).snapshot()
        >>> [(some.first, some.second) for some in pairs_within(view, 1, lambda progress: None, "auto")]
        [(['a'], ['b'])]
    """
    total, done = view.documents, 0
    for mine in view.blocks(_AT_ONCE):
        found = view.find(view.codes(mine), None, radius, backend=backend)
        later = found.keep(found.rows > mine[found.queries])
        if len(later.rows):
            yield Pairs(view.ids_of(mine[later.queries]), view.ids_of(later.rows), later.distances)
        done += len(mine)
        report(Progress("comparing", done, "documents", min(1.0, done / max(total, done))))
