"""A search over all that an index holds: the generation by the back end that is fastest, and the log's tail."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit import choices
from parabit.errors import CodesError
from parabit.index.backends import BACKENDS, Backend, Flat, choose, choose_built
from parabit.index.results import Found, Nearest, join, merge, replace
from parabit.index.store import Derive, Segment
from parabit.progress import Report

_AT_ONCE = 1 << 14  # queries, so that what is found of a batch stays small


def check_backend(name: str) -> None:
    """Raise CodesError unless there is such a back end.

    Example:
        >>> check_backend("tree")
        Traceback (most recent call last):
        parabit.errors.CodesError: no back end 'tree'; there are auto, flat, tables, multi
    """
    if name not in choices.BACKENDS:
        raise CodesError(f"no back end {name!r}", hint=f"there are {', '.join(choices.BACKENDS)}")


def derive_with(name: str, bits: int, report: Report) -> Derive:
    """What makes the arrays of a back end, to be kept beside the codes."""

    def derive(codes: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        chosen = choose_built(len(codes), bits) if name == "auto" else name
        if chosen == "flat" or not len(codes):
            return {}
        arrays = BACKENDS[chosen].build(codes, bits, report).arrays
        return {f"{chosen}.{array}": values for array, values in arrays.items()}

    return derive


class _Part(NamedTuple):
    """What is searched of a segment."""

    segment: Segment
    mask: NDArray[np.bool_] | None
    added: bool  # after the generation was written


class Searcher:
    """Searches the segments of a store as if they were one. What it opened serves as long as their generation lasts.

    Example:
        >>> from parabit.index.store import Batch, Store
        >>> from tempfile import mkdtemp
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.array([[1], [2]], np.uint8))])
        >>> searcher = Searcher(bits=8)
        >>> searcher.search(Store.open(folder).segments, np.array([[3]], dtype=np.uint8), most=1).rows
        array([0])
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._open: dict[str, Backend] = {}  # of the generation

    def search(
        self,
        segments: Sequence[Segment],
        queries: NDArray[np.uint8],
        most: int | None = None,
        radius: int | None = None,
        masks: Sequence[NDArray[np.bool_] | None] | None = None,
        backend: str = "auto",
    ) -> Found:
        """The nearest `most` documents of each query, or all within the radius, or both; rows are the store's.

        The first segment is the generation, to which the back end belongs; what came after is scanned.
        `masks` say which documents of each segment may be found; without them it is those that were not deleted.
        """
        check_backend(backend)
        masks = [segment.alive for segment in segments] if masks is None else masks
        full = [
            _Part(segment, mask, place > 0)
            for place, (segment, mask) in enumerate(zip(segments, masks, strict=True))
            if len(segment)
        ]
        if not full:
            return Found.nothing(len(queries))
        blocks = (queries[start : start + _AT_ONCE] for start in range(0, len(queries), _AT_ONCE))
        return join([self._block(full, block, most, radius, backend) for block in blocks])

    def _block(
        self,
        segments: Sequence[_Part],
        queries: NDArray[np.uint8],
        most: int | None,
        radius: int | None,
        asked: str,
    ) -> Found:
        parts = []
        for segment, mask, added in segments:
            if added:  # the log's tail grows, and is small
                backend: Backend = Flat(segment.codes, self._bits)
            else:
                backend = self._backend(segment, asked, most, radius, len(queries))
            if radius is None:
                assert most is not None
                parts.append(nearest(backend, queries, min(most, len(segment)), mask).found())
            else:
                parts.append(within(backend, queries, radius, most, mask))
        return merge(parts, [part.segment.first for part in segments], self._bits, most) if len(parts) > 1 else parts[0]

    def _backend(self, segment: Segment, asked: str, most: int | None, radius: int | None, batch: int) -> Backend:
        built = {name.partition(".")[0] for name in segment.derived}
        name = asked
        if asked == "auto":
            name = choose(len(segment), self._bits, most, radius, batch, {"flat", *built})
        if name not in {"flat", *built}:
            raise CodesError(
                f"the index was not built with the back end {name}",
                hint=f"build it with backend={name!r}, or take {' or '.join(['auto', 'flat', *sorted(built)])}",
            )
        if name not in self._open:
            if name == "flat":
                self._open[name] = Flat(segment.codes, self._bits)
            else:
                arrays = {array.removeprefix(f"{name}."): values for array, values in segment.derived.items()}
                self._open[name] = BACKENDS[name].of_arrays(segment.codes, self._bits, arrays)
        return self._open[name]


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
