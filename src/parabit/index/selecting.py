"""Searches that see only some rows: those not deleted, or those that a filter let through.

Back ends know nothing of this. Where few rows are selected they are scanned by themselves; else a back end is asked for
more hits than needed, and for more again where too many of them were not selected.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from parabit.errors import CodesError
from parabit.index.backends.base import Backend
from parabit.index.backends.flat import Flat
from parabit.index.backends.hashing import replace
from parabit.index.results import Found, Nearest

# Fetching a code from its place costs as much as scanning some ten that lie side by side, and a back end that looks at
# few codes is faster than that: up to this share of the rows, selected ones are scanned by themselves.
_FEW = 0.02
_SCANNED = 4096  # so few are always scanned


class Selection:
    """The rows that a search may find. Made once for many searches, it counts and gathers them once.

    Example:
        >>> selection = Selection(np.array([True, False, True]))
        >>> selection.count, selection.rows
        (2, array([0, 2]))
    """

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        if mask.ndim != 1 or mask.dtype != np.bool_:
            raise CodesError(
                f"a selection is one bool a row, found {mask.dtype} of shape {mask.shape}",
                hint="make one as in `years > 2000`",
            )
        self.mask = mask

    @cached_property
    def count(self) -> int:
        """How many rows are selected."""
        return int(np.count_nonzero(self.mask))

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """The selected rows."""
        return np.flatnonzero(self.mask)


def nearest(
    backend: Backend, queries: NDArray[np.uint8], k: int, selection: Selection | NDArray[np.bool_] | None = None
) -> Nearest:
    """The k nearest selected codes of each query; all are selected where that is None.

    Example:
        >>> codes = np.array([[0b0000], [0b0001], [0b0011]], dtype=np.uint8)
        >>> nearest(Flat(codes, bits=8), codes[:1], k=2, selection=np.array([True, False, True])).rows
        array([[0, 2]])
    """
    if (selection := _selection(backend, selection)) is None:
        return backend.nearest(queries, k)
    if _is_few(selection):
        return _moved(_gathered(backend, selection).nearest(queries, k).found(), selection).nearest(k)

    def ask(some: NDArray[np.uint8], most: int) -> Found:
        return backend.nearest(some, most).found()

    return _selected(ask, queries, min(k, selection.count), selection).nearest(k)


def within(
    backend: Backend,
    queries: NDArray[np.uint8],
    radius: int,
    most: int | None = None,
    selection: Selection | NDArray[np.bool_] | None = None,
) -> Found:
    """The selected codes inside the radius; the nearest `most` of them where that is given.

    Example:
        >>> codes = np.array([[0b0000], [0b0001], [0b0011]], dtype=np.uint8)
        >>> within(Flat(codes, bits=8), codes[:1], radius=2, selection=np.array([True, False, True])).rows
        array([0, 2])
    """
    if (selection := _selection(backend, selection)) is None:
        return backend.within(queries, radius, most)
    if _is_few(selection):
        return _moved(_gathered(backend, selection).within(queries, radius, most), selection)
    if most is None:
        found = backend.within(queries, radius)
        return found.keep(selection.mask[found.rows])
    return _selected(lambda some, more: backend.within(some, radius, more), queries, most, selection)


def _selection(backend: Backend, selection: Selection | NDArray[np.bool_] | None) -> Selection | None:
    if selection is None:
        return None
    if not isinstance(selection, Selection):
        selection = Selection(selection)
    if len(selection.mask) != len(backend.codes):
        raise CodesError(
            f"the selection is of {len(selection.mask)} rows, but there are {len(backend.codes)} codes",
            hint="give one bool for each code",
        )
    return None if selection.count == len(selection.mask) else selection


def _is_few(selection: Selection) -> bool:
    return selection.count <= max(_SCANNED, _FEW * len(selection.mask))


def _gathered(backend: Backend, selection: Selection) -> Flat:
    return Flat(backend.codes[selection.rows], backend.bits)


def _moved(found: Found, selection: Selection) -> Found:
    """What was found among gathered rows, as rows of all; these are in order, so that hits stay in theirs."""
    return found._replace(rows=selection.rows[found.rows])


def _selected(
    ask: Callable[[NDArray[np.uint8], int], Found], queries: NDArray[np.uint8], k: int, selection: Selection
) -> Found:
    """Ask for as many hits as should hold k selected ones, and for twice as many for the queries where they do not."""
    total = len(selection.mask)
    more = min(total, int(1.2 * k * total / selection.count) + 8)
    found, waiting = Found.nothing(len(queries)), np.arange(len(queries))
    while len(waiting):
        hits = ask(queries[waiting], more)
        kept = hits.keep(selection.mask[hits.rows])
        # Fewer hits than were asked for: there are no others.
        done = (kept.counts >= k) | (hits.counts < more) | (more >= total)
        found = replace(found, waiting[done], kept.of_queries(done).first(k))
        waiting, more = waiting[~done], min(total, 2 * more)
    return found
