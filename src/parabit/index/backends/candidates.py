"""Codes that may be near a query: their distances, and those near enough."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.buckets import Ranges
from parabit.index.results import Keys

_WORDS = [np.dtype(f"u{size}") for size in (8, 1, 2, 1, 4, 1, 2, 1)]  # by the bytes left over from words of 8
_AT_A_TIME = 1 << 15  # candidates measured at once, so that memory stays bounded and most of it in the cache


class Candidates:
    """Measures candidates of queries.

    Example:
        >>> codes = np.array([[0b00000000], [0b11110000], [0b11000000]], dtype=np.uint8)
        >>> candidates = Candidates(codes, bits=8, places=np.array([2, 0, 1]))
        >>> looked = Ranges(np.array([0]), np.array([0]), np.array([2]))  # the first two places, for query 0
        >>> hits = candidates.near(codes[:1], looked, np.array([0]), limits=np.array([2]))
        >>> candidates.keys.found(hits, queries=1).rows
        array([0, 2])
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        bits: int,
        places: NDArray[np.integer] | None,
        rows: NDArray[np.integer] | None = None,
    ) -> None:
        self.keys = Keys(len(codes), bits)
        self._places, self._codes = places, _words(codes)  # None: a range is of places
        self._rows = rows  # of the codes, where these are in an order of their own

    def near(
        self,
        queries: NDArray[np.uint8],
        ranges: Ranges,
        asked: NDArray[np.integer],
        limits: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """The candidates in the ranges, range i for query asked[i], that are within the limit of their query.

        They come as packed keys, sorted; a row that is in several ranges of a query comes several times.
        """
        words = _words(np.ascontiguousarray(queries))
        near = [self._near(words, *some, limits) for some in _pieces(ranges, asked)]
        packed = np.concatenate(near) if len(near) != 1 else near[0]
        packed.sort()
        return packed

    def _near(
        self,
        words: NDArray[np.unsignedinteger],
        starts: NDArray[np.integer],
        counts: NDArray[np.integer],
        queries: NDArray[np.integer],
        limits: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        before = counts.cumsum()
        before -= counts
        ranges = (starts - before).repeat(counts)
        ranges += np.arange(len(ranges), dtype=ranges.dtype)
        places = ranges if self._places is None else self._places.take(ranges)
        if len(words) == 1:
            return self._close(places, words, None, limits[0])
        asked = queries.repeat(counts)
        return self._close(places, words.take(asked, axis=0), asked, limits.take(asked))

    def near_one(self, query: NDArray[np.uint8], places: NDArray[np.integer], limit: int) -> NDArray[np.int64]:
        """The candidates at these places that are within the limit of a single query, as packed keys, not sorted."""
        return self._close(places, _words(np.ascontiguousarray(query)), None, limit)

    def _close(
        self,
        places: NDArray[np.integer],
        words: NDArray[np.unsignedinteger],
        asked: NDArray[np.integer] | None,
        limits: NDArray[np.integer] | np.integer | int,
    ) -> NDArray[np.int64]:
        distances = self._distances(places, words)
        close = (distances <= limits).nonzero()[0]
        rows = places.take(close)
        if self._rows is not None:
            rows = self._rows.take(rows)
        return self.keys.pack(None if asked is None else asked.take(close), distances.take(close), rows)

    def _distances(self, places: NDArray[np.integer], words: NDArray[np.unsignedinteger]) -> NDArray[np.integer]:
        """How far the codes at places are from the codes beside them, or from a single one."""
        if self._codes.shape[1] == 1:
            alone: NDArray[np.integer] = np.bitwise_count(self._codes[:, 0].take(places) ^ words[:, 0])
            return alone
        differ = self._codes.take(places, axis=0)
        differ ^= words
        counted: NDArray[np.integer] = np.bitwise_count(differ)
        if counted.shape[1] == 2:  # numpy is slow at sums over few columns
            counted[:, 0] += counted[:, 1]
            return counted[:, 0]
        summed: NDArray[np.int32] = counted.sum(axis=1, dtype=np.int32)
        return summed


def _pieces(
    ranges: Ranges, queries: NDArray[np.integer]
) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]]:
    """The ranges in pieces of a bounded number of candidates; a range that is longer by itself is cut."""
    starts: NDArray[np.integer] = ranges.starts
    counts: NDArray[np.integer] = ranges.counts
    total = int(counts.sum())
    if total <= _AT_A_TIME:
        yield starts, counts, queries
        return
    if counts.max() > _AT_A_TIME:
        parts = -(-counts.astype(np.int64) // _AT_A_TIME)
        piece = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        starts = np.repeat(starts, parts).astype(np.int64) + piece * _AT_A_TIME
        counts = np.minimum(np.repeat(counts, parts).astype(np.int64) - piece * _AT_A_TIME, _AT_A_TIME)
        queries = np.repeat(queries, parts)
    group = np.cumsum(counts, dtype=np.int64) // _AT_A_TIME
    for edges in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        some = slice(edges[0], edges[-1] + 1)
        yield starts[some], counts[some], queries[some]


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """The codes as the largest words that their bytes divide into, (codes, words), without a copy."""
    words: NDArray[np.unsignedinteger] = codes.view(_WORDS[codes.shape[1] % 8])
    return words
