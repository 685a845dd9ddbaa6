"""What a search found: rows and their distances, nearest first, and of equally near ones the lowest row first.

A row is the place of a code in the array that was searched. The order leaves nothing open, so every exact back end
gives the same answer, also where a tie is cut at the k-th place.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from parabit.errors import CodesError
from parabit.text.bags import row_offsets


class Nearest(NamedTuple):
    """The k nearest of each query; -1, in rows and in distances, fills up where there are fewer than k.

    Example:
        >>> Nearest(np.array([[4, 0, -1]]), np.array([[0, 3, -1]], dtype=np.int32)).found().rows
        array([4, 0])
    """

    rows: NDArray[np.int64]  # (queries, k)
    distances: NDArray[np.int32]  # (queries, k)

    def found(self) -> "Found":
        """The same without what fills up."""
        there = self.rows >= 0
        return Found(row_offsets(there.sum(axis=1)), self.rows[there], self.distances[there])


class Found(NamedTuple):
    """All that was found for some queries, one query after the other.

    Example:
        >>> found = Found(np.array([0, 2, 3]), np.array([4, 0, 7]), np.array([0, 3, 1], dtype=np.int32))
        >>> found.of(0).tolist(), found.counts.tolist()
        ([4, 0], [2, 1])
        >>> found.nearest(2).rows
        array([[ 4,  0],
               [ 7, -1]])
    """

    offsets: NDArray[np.int64]  # (queries + 1,): query i has rows[offsets[i]:offsets[i + 1]]
    rows: NDArray[np.int64]
    distances: NDArray[np.int32]

    @classmethod
    def nothing(cls, queries: int) -> Self:
        """No row for any query.

        Example:
            >>> Found.nothing(2).counts
            array([0, 0])
        """
        return cls(np.zeros(queries + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows were found for each query."""
        return np.diff(self.offsets)

    @property
    def queries(self) -> NDArray[np.int64]:
        """The query of each row, beside rows and distances."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def of(self, query: int) -> NDArray[np.int64]:
        """The rows of one query, nearest first."""
        return self.rows[self.offsets[query] : self.offsets[query + 1]]

    def keep(self, which: NDArray[np.bool_]) -> "Found":
        """The rows that are marked, in the same order.

        Example:
            >>> found = Found(np.array([0, 2, 3]), np.array([4, 0, 7]), np.array([0, 3, 1], dtype=np.int32))
            >>> found.keep(found.distances < 3)
            Found(offsets=array([0, 1, 2]), rows=array([4, 7]), distances=array([0, 1], dtype=int32))
        """
        kept = np.concatenate([[0], np.cumsum(which)])
        return Found(kept[self.offsets], self.rows[which], self.distances[which])

    def of_queries(self, which: NDArray[np.bool_]) -> "Found":
        """The results of the queries that are marked.

        Example:
            >>> found = Found(np.array([0, 2, 3]), np.array([4, 0, 7]), np.array([0, 3, 1], dtype=np.int32))
            >>> found.of_queries(np.array([False, True]))
            Found(offsets=array([0, 1]), rows=array([7]), distances=array([1], dtype=int32))
        """
        kept = np.repeat(which, self.counts)
        return Found(row_offsets(self.counts[which]), self.rows[kept], self.distances[kept])

    def first(self, most: int | None) -> "Found":
        """No more than `most` rows a query, the nearest; all where it is None."""
        if most is None or not len(self.rows) or self.counts.max() <= most:
            return self
        return self.keep(np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], self.counts) < most)

    def nearest(self, k: int) -> Nearest:
        """The first k rows of each query, filled up with -1."""
        first = self.first(k)
        rows, distances = np.full((len(self.offsets) - 1, k), -1), np.full((len(self.offsets) - 1, k), -1, np.int32)
        there = np.arange(k) < first.counts[:, None]
        rows[there], distances[there] = first.rows, first.distances
        return Nearest(rows, distances)


class Keys:
    """Hits as single numbers that sort by query, then distance, then row: sorting those is several times as fast.

    Example:
        >>> keys = Keys(rows=100, bits=28)
        >>> packed = keys.pack(np.array([0, 0, 1]), np.array([3, 0, 1]), np.array([0, 4, 7]))
        >>> keys.found(np.sort(packed), queries=2)
        Found(offsets=array([0, 2, 3]), rows=array([4, 0, 7]), distances=array([0, 3, 1], dtype=int32))
    """

    def __init__(self, rows: int, bits: int) -> None:
        self._row_bits = max(rows - 1, 1).bit_length()
        self._distance_bits = bits.bit_length()
        self._row_mask, self._distance_mask = (1 << self._row_bits) - 1, (1 << self._distance_bits) - 1
        self._shift = self._row_bits + self._distance_bits

    @property
    def most_queries(self) -> int:
        """How many queries there is room for in a number."""
        return int(1 << max(0, 63 - self._shift))

    def pack(
        self, queries: NDArray[np.integer] | None, distances: NDArray[np.integer], rows: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """One number a hit; None stands for query 0 alone."""
        if queries is None:
            packed: NDArray[np.int64] = distances.astype(np.int64)
        else:
            packed = queries.astype(np.int64)
            packed <<= self._distance_bits
            packed |= distances
        packed <<= self._row_bits
        packed |= rows
        return packed

    def distances(self, packed: NDArray[np.int64]) -> NDArray[np.int32]:
        """The distances of packed hits."""
        return ((packed >> self._row_bits) & self._distance_mask).astype(np.int32)

    def offsets(self, packed: NDArray[np.int64], queries: int) -> NDArray[np.int64]:
        """Where each query's hits begin among sorted ones, (queries + 1,)."""
        if queries == 1:
            return np.array([0, len(packed)])
        return np.searchsorted(packed, np.arange(queries + 1) << self._shift)

    def found(self, packed: NDArray[np.int64], queries: int) -> Found:
        """The hits, which must be sorted, as arrays."""
        return Found(self.offsets(packed, queries), packed & self._row_mask, self.distances(packed))


def join(parts: Sequence[Found]) -> Found:
    """The results of one block of queries after the other, as one.

    Example:
        >>> one = Found(np.array([0, 1]), np.array([4]), np.array([0], dtype=np.int32))
        >>> join([one, Found.nothing(1), one])
        Found(offsets=array([0, 1, 1, 2]), rows=array([4, 4]), distances=array([0, 0], dtype=int32))
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Found.nothing(0)
    counts = np.concatenate([part.counts for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return Found(row_offsets(counts), rows, np.concatenate([part.distances for part in parts]))


def merge(parts: Sequence[Found], starts: Sequence[int], bits: int, most: int | None = None) -> Found:
    """The results of the same queries in several arrays, as of one: part i's rows begin at starts[i].

    Example:
        >>> base = Found(np.array([0, 2]), np.array([4, 0]), np.array([1, 3], dtype=np.int32))
        >>> tail = Found(np.array([0, 1]), np.array([2]), np.array([1], dtype=np.int32))
        >>> merge([base, tail], starts=[0, 100], bits=28)
        Found(offsets=array([0, 3]), rows=array([  4, 102,   0]), distances=array([1, 1, 3], dtype=int32))
    """
    if len({len(part.offsets) for part in parts}) != 1:
        raise CodesError(
            f"results to merge must be of the same queries, found {[len(part.offsets) - 1 for part in parts]} queries",
            hint="search each part for all queries",
        )
    queries = len(parts[0].offsets) - 1
    moved = [part.rows + start for part, start in zip(parts, starts, strict=True)]
    keys = Keys(1 + max((int(rows.max()) for rows in moved if len(rows)), default=0), bits)
    if queries > keys.most_queries:
        raise CodesError(
            f"{queries} queries at once are too many to merge", hint=f"search at most {keys.most_queries} at a time"
        )
    packed = [keys.pack(part.queries, part.distances, rows) for part, rows in zip(parts, moved, strict=True)]
    return keys.found(np.sort(np.concatenate(packed)), queries).first(most)
