"""What a search found: rows and their distances, nearest first, and of equally near ones the lowest row first.

A row is the place of a code in the array that was searched. The order leaves nothing open, so every back end gives
the same answer, also where a tie is cut at the k-th place.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.text.bags import row_offsets

Rows: TypeAlias = NDArray[np.int64]
Scores: TypeAlias = NDArray[np.float32]  # of rows
Mask: TypeAlias = NDArray[np.bool_]  # of all rows, which may be found


class Found(NamedTuple):
    """All that was found for some queries, one query after the other."""

    offsets: Rows  # (queries + 1,): query i has rows[offsets[i]:offsets[i + 1]]
    rows: Rows
    distances: NDArray[np.int32]

    @classmethod
    def nothing(cls, queries: int) -> Self:
        """No row for any query."""
        return cls(np.zeros(queries + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))

    @property
    def counts(self) -> Rows:
        """How many rows were found for each query."""
        return np.diff(self.offsets)

    @property
    def queries(self) -> Rows:
        """The query of each row, beside rows and distances."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.counts)

    def keep(self, which: Mask) -> "Found":
        """The rows that are marked, in the same order."""
        kept = np.concatenate([[0], np.cumsum(which)])
        return Found(kept[self.offsets], self.rows[which], self.distances[which])

    def first(self, most: int | None) -> "Found":
        """At most `most` rows per query, the nearest; all if it is None."""
        if most is None or not len(self.rows) or self.counts.max() <= most:
            return self
        return self.keep(
            np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], self.counts) < most
        )

    def replace(self, queries: Rows, by: "Found") -> "Found":
        """The results with those of some queries replaced: `by` has one result for each of them."""
        kept = self.keep(~np.isin(self.queries, queries))
        asked = np.concatenate([kept.queries, queries[by.queries]])
        order = np.argsort(asked, kind="stable")
        rows = np.concatenate([kept.rows, by.rows])[order]
        distances = np.concatenate([kept.distances, by.distances])[order]
        return Found(
            row_offsets(np.bincount(asked, minlength=len(self.offsets) - 1)), rows, distances
        )


class Keys:
    """Hits as single numbers that sort by query, then distance, then row: sorting those is several times as fast.

    A number has room for a million queries, ten billion rows and codes of 256 bits.
    """

    def __init__(self, rows: int, bits: int) -> None:
        self._row_bits = max(rows - 1, 1).bit_length()
        self._distance_bits = bits.bit_length()
        self._row_mask, self._distance_mask = (
            (1 << self._row_bits) - 1,
            (1 << self._distance_bits) - 1,
        )

    def pack(
        self, queries: Rows | int, distances: NDArray[np.integer], rows: NDArray[np.integer]
    ) -> Rows:
        """One number per hit, of several queries or of one."""
        packed = distances.astype(np.int64)
        packed |= queries << self._distance_bits
        packed <<= self._row_bits
        packed |= rows
        return packed

    def distances(self, packed: Rows) -> NDArray[np.int32]:
        """The distances of packed hits."""
        return ((packed >> self._row_bits) & self._distance_mask).astype(np.int32)

    def offsets(self, packed: Rows, queries: int) -> Rows:
        """Where each query's hits begin among sorted ones, (queries + 1,)."""
        return np.searchsorted(
            packed, np.arange(queries + 1) << (self._row_bits + self._distance_bits)
        )

    def found(self, packed: Rows, queries: int) -> Found:
        """The hits, which must be sorted, as arrays."""
        return Found(self.offsets(packed, queries), packed & self._row_mask, self.distances(packed))


def join(parts: Sequence[Found]) -> Found:
    """The results of one block of queries after the other, as one."""
    if len(parts) < 2:
        return parts[0] if parts else Found.nothing(0)
    counts = np.concatenate([part.counts for part in parts])
    rows = np.concatenate([part.rows for part in parts])
    return Found(row_offsets(counts), rows, np.concatenate([part.distances for part in parts]))
