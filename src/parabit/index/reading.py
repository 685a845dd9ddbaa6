"""What is kept of the documents in some rows, wherever they are: in the generation or in the log's tail."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.store import Segment
from parabit.text.bags import row_offsets

VECTORS, WORDS = "vectors", "words"  # the names of the extra arrays
WORD = np.dtype([("feature", "<i4"), ("weight", "<f2")])  # an entry of a document's words


class Reading:
    """Reads rows of the segments of a store.

    Example:
        >>> from parabit.index.store import Batch, Store
        >>> from tempfile import mkdtemp
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.array([[1], [2]], np.uint8))])
        >>> Reading(Store.open(folder).segments).codes(np.array([1, 0])).ravel()
        array([2, 1], dtype=uint8)
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = [segment for segment in segments if len(segment)]

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes in some rows, (rows, bytes)."""
        return self._rows(rows, lambda segment: segment.codes)

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """The vectors in some rows, (rows, dim)."""
        return self._rows(rows, lambda segment: segment.extra(VECTORS))

    def words(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The words of the documents in some rows, one document after the other, and where each begins."""
        lengths = np.zeros(len(rows), dtype=np.int64)
        parts = []
        for segment, mine in self._parts(rows):
            bags = segment.ragged(WORDS)
            entries, offsets = row_entries(bags.offsets, rows[mine] - segment.first)
            lengths[mine] = np.diff(offsets)
            # Entries as plain numbers: numpy fetches those of several fields one by one, in fourteen times the time.
            plain = np.asarray(bags.values).view(np.uint16).reshape(-1, WORD.itemsize // 2)
            parts.append((mine, np.take(plain, entries, axis=0).view(WORD).ravel(), offsets))
        offsets = row_offsets(lengths)
        if len(parts) == 1:
            return parts[0][1], offsets
        found = np.empty(int(offsets[-1]), dtype=WORD)
        for mine, values, _ in parts:
            found[row_entries(offsets, mine)[0]] = values
        return found, offsets

    def _rows(self, rows: NDArray[np.int64], array: Callable[[Segment], NDArray[Any]]) -> NDArray[Any]:
        parts = [(mine, np.asarray(array(segment))[rows[mine] - segment.first]) for segment, mine in self._parts(rows)]
        if len(parts) == 1:
            return parts[0][1]
        found = np.empty((len(rows), *parts[0][1].shape[1:]), dtype=parts[0][1].dtype)
        for mine, values in parts:
            found[mine] = values
        return found

    def _parts(self, rows: NDArray[np.int64]) -> list[tuple[Segment, NDArray[np.int64]]]:
        """Each segment with the places, among the rows, of those that it has; the first where there are none."""
        parts = []
        for segment in self._segments:
            mine = np.flatnonzero((rows >= segment.first) & (rows < segment.first + len(segment)))
            if len(mine) or not len(rows):
                parts.append((segment, mine))
            if not len(rows):
                break
        return parts


def row_entries(
    offsets: NDArray[np.integer], chosen: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of all entries of some rows, and the rows' new offsets.

    Example:
        >>> row_entries(np.array([0, 2, 2, 5]), np.array([2, 0]))
        (array([2, 3, 4, 0, 1]), array([0, 3, 5]))
    """
    starts, lengths = offsets[chosen].astype(np.int64), (offsets[chosen + 1] - offsets[chosen]).astype(np.int64)
    ends = np.cumsum(lengths)
    places = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    return places, np.concatenate([[0], ends])
