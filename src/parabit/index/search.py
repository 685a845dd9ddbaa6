"""A search over all that an index holds: the generation by the back end that is fastest, and the log's tail."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit import choices
from parabit.errors import CodesError
from parabit.index.backends import BACKENDS, Backend, Flat, choose, choose_built
from parabit.index.results import Found, join, merge
from parabit.index.selecting import nearest, within
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
