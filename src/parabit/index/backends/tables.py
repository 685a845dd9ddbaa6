"""A hash table on a short code, or on the bits of a longer one that say most: keys inside a radius are enumerated."""

from functools import lru_cache, partial
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.hashing import CANDIDATE, LONGEST, LOOK_UP, Hashed, ball
from parabit.index.results import Found, replace

_LOOKED_UP = 1 << 17  # keys looked up at a time
_FARTHEST = 6  # bits flipped in one table: half a million keys


class Tables(Hashed):
    """One hash table on the whole code, or on its bits that say most: for short codes.

    Every code within a radius of the query has a key within that radius of the query's key.

    Example:
        >>> codes = np.array([[0b00000000], [0b11110000], [0b11000000], [0b00000001]], dtype=np.uint8)
        >>> tables = Tables.build(codes, bits=8)
        >>> tables.within(codes[:2], radius=1).rows
        array([0, 3, 1])
        >>> tables.nearest(codes[:1], k=2).rows
        array([[0, 3]])
    """

    name: ClassVar[str] = "tables"
    grouped: ClassVar[bool] = False

    @staticmethod
    def lengths(codes: int, bits: int) -> list[int]:
        """Two to four keys a code: with more most would be empty, with fewer they hold codes that are not near."""
        return [max(1, min(bits, LONGEST, max(codes, 2).bit_length() + 1))]

    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """Look inside the radius, or for the k nearest inside 1, 2, 3 … bits, as far as that is cheaper than a scan."""
        if k is None:
            return self._inside(queries, radius, None)
        waiting, found = np.arange(len(queries)), Found.nothing(len(queries))
        # Where a key has k codes or more, equal codes may be enough.
        step = 0 if len(self.codes) >= k << self._buckets.substrings.lengths[0] else 1
        while len(waiting):
            step = min(step, radius)
            if not self._affords(step, len(waiting)):
                return replace(found, waiting, self._scan(queries[waiting], radius, k))
            some = self._inside(queries[waiting], step, k)
            done = some.counts >= k if step < radius else np.ones(len(waiting), dtype=np.bool_)
            if done.all():
                return replace(found, waiting, some)
            found = replace(found, waiting[done], some.of_queries(done))
            waiting = waiting[~done]
            step += 1
        return found

    def _affords(self, radius: int, queries: int) -> bool:
        """Whether looking up all keys inside the radius costs less than a scan."""
        [length] = self._buckets.substrings.lengths
        return radius <= _FARTHEST and _ball_size(length, radius) * LOOK_UP < self._affordable(queries)

    def _inside(self, queries: NDArray[np.uint8], radius: int, most: int | None) -> Found:
        """All codes inside the radius, or the nearest."""
        if not self._affords(radius, len(queries)):
            return self._scan(queries, radius, most)
        masks = ball(self._buckets.substrings.lengths[0], radius)
        if len(queries) == 1:
            found = self._alone(masks, radius, queries)
            return self._scan(queries, radius, most) if found is None else found.first(most)
        look = partial(self._look, masks, self._affordable(len(queries)), radius, most)
        found, dear = self._by_blocks(queries, look, block=max(1, _LOOKED_UP // len(masks)))
        return replace(found, dear, self._scan(queries[dear], radius, most)) if len(dear) else found

    def _alone(self, masks: NDArray[np.int64], radius: int, query: NDArray[np.uint8]) -> Found | None:
        """What `_look` does, for one query in as few steps as can be, as steps are most of what it costs."""
        buckets, candidates = self._buckets, self._candidates
        keys = buckets.substrings.read(query)[0, 0] ^ masks
        starts = buckets.starts.take(keys)
        keys += 1
        counts = buckets.starts.take(keys)
        counts -= starts
        before = counts.cumsum()
        total = int(before[-1])
        if total * CANDIDATE > self._affordable(1):
            return None
        before -= counts
        ranges = (starts - before).repeat(counts)
        ranges += np.arange(total, dtype=ranges.dtype)
        hits = candidates.near_one(query, ranges, radius)
        hits.sort()
        return candidates.keys.found(hits, 1)

    def _look(
        self, masks: NDArray[np.int64], affordable: float, radius: int, most: int | None, queries: NDArray[np.uint8]
    ) -> tuple[Found, NDArray[np.int64]]:
        """All keys inside the radius at once; queries whose keys hold more codes than a scan is worth are left."""
        ranges = self._buckets.look_alone(queries, masks)
        counts = np.bincount(ranges.cells, ranges.counts, minlength=len(queries))
        dear = (counts * CANDIDATE > affordable).nonzero()[0]
        if len(dear):
            ranges = ranges.only(~np.isin(ranges.cells, dear))
        hits = self._candidates.near(queries, ranges, ranges.cells, np.full(len(queries), radius))
        return self._candidates.keys.found(hits, len(queries)).first(most), dear


@lru_cache(maxsize=256)
def _ball_size(length: int, radius: int) -> int:
    return sum(comb(length, flips) for flips in range(min(radius, length) + 1))
