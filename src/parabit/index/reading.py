"""What is kept of the documents in some rows, wherever they are: in the generation or in the log's tail."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.store import Segment

VECTORS = "vectors"  # the name of the extra array


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
