"""Pairs of documents that are near each other, of a whole index."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.index.filtering import alive_in
from parabit.index.reading import Reading
from parabit.index.searching import Searcher
from parabit.index.store import Id, State
from parabit.progress import Progress, Report

_AT_ONCE = 1024  # documents


class Pairs(NamedTuple):
    """Documents whose codes are near each other, each pair once."""

    first: list[Id]
    second: list[Id]
    distances: NDArray[np.int32]


def pairs_within(state: State, searcher: Searcher, radius: int, report: Report, backend: str) -> Iterator[Pairs]:
    """The pairs within a Hamming radius, block by block; what is deleted or added meanwhile does not change them."""
    segments = state.segments
    reading = Reading(segments)
    rows = np.flatnonzero(np.concatenate([alive_in(segment) for segment in segments]))
    for start in range(0, len(rows), _AT_ONCE):
        mine = rows[start : start + _AT_ONCE]
        found = searcher.search(segments, reading.codes(mine), radius=radius, backend=backend)
        later = found.keep(found.rows > mine[found.queries])
        done = start + len(mine)
        if len(later.rows):
            first, second = mine[later.queries], later.rows
            yield Pairs(state.ids_of(first), state.ids_of(second), later.distances)
        report(Progress("comparing", done, "documents", done / len(rows)))
