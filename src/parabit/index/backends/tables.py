"""A hash table on a short code, or on the bits of a longer one that say most: keys within a radius are enumerated."""

from functools import lru_cache, partial
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.hashing import CANDIDATE, LONGEST, LOOK_UP, Hashed, Ranges, build_tables, ring
from parabit.index.results import Found
from parabit.progress import Report, silent

_KEYS_AT_A_TIME = 1 << 17
_FARTHEST = 6  # bits flipped in one table: half a million keys


class Tables(Hashed):
    """One hash table on the whole code, or on its bits that say most: for short codes.

    Every code within a radius of the query has a key within that radius of the query's key.
    """

    name: ClassVar[str] = "tables"

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> dict[str, NDArray[Any]]:
        """Sort the rows by two to four keys per code: of more most are empty, of fewer each has codes that are far."""
        return build_tables(codes, bits, [min(bits, LONGEST, max(len(codes), 2).bit_length() + 1)], report)

    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """Look within the radius, or for the k nearest within 1, 2, 3 … bits, as far as that is cheaper than a scan."""
        if k is None:
            return self._inside(queries, radius, None)
        waiting, found = np.arange(len(queries)), Found.nothing(len(queries))
        # If there are k codes per key or more, equal codes may be enough.
        step = 0 if len(self.codes) >= k << self.substrings.lengths[0] else 1
        while len(waiting):
            step = min(step, radius)
            if not self._affords(step, len(waiting)):
                return found.replace(waiting, self._flat.search(queries[waiting], k, radius))
            some = self._inside(queries[waiting], step, k)
            done = some.counts >= k if step < radius else np.ones(len(waiting), dtype=np.bool_)
            if done.all():
                return found.replace(waiting, some)
            found = found.replace(waiting[done], some.of_queries(done))
            waiting = waiting[~done]
            step += 1
        return found

    def _affords(self, radius: int, queries: int) -> bool:
        """Whether looking up all keys within the radius costs less than a scan."""
        [length] = self.substrings.lengths
        return radius <= _FARTHEST and _ball_size(length, radius) * LOOK_UP < self._affordable(queries)

    def _inside(self, queries: NDArray[np.uint8], radius: int, most: int | None) -> Found:
        """All codes within the radius, or the nearest."""
        if not self._affords(radius, len(queries)):
            return self._flat.search(queries, most, radius)
        masks = _ball(self.substrings.lengths[0], radius)
        look = partial(self._look, masks, self._affordable(len(queries)), radius, most)
        return self._by_blocks(queries, radius, most, look, block=max(1, _KEYS_AT_A_TIME // len(masks)))

    def _look(
        self, masks: NDArray[np.int64], affordable: float, radius: int, most: int | None, queries: NDArray[np.uint8]
    ) -> tuple[Found, NDArray[np.int64]]:
        """All keys within the radius at once; queries whose keys have more codes than a scan is worth are left."""
        starts, counts, there = self.look_up((self.substrings.read(queries) ^ masks).ravel())
        ranges = Ranges(there // len(masks), starts, counts)
        codes = np.bincount(ranges.cells, ranges.counts, minlength=len(queries))
        dear = (codes * CANDIDATE > affordable).nonzero()[0]
        if len(dear):
            ranges = ranges.only(~np.isin(ranges.cells, dear))
        hits = self.near(queries, ranges, ranges.cells, np.full(len(queries), radius))
        return self.keys.found(hits, len(queries)).first(most), dear


@lru_cache(maxsize=64)
def _ball(length: int, flips: int) -> NDArray[np.int64]:
    """All numbers of so many bits of which at most `flips` are set, in order."""
    numbers = np.sort(np.concatenate([ring(length, few) for few in range(min(flips, length) + 1)]))
    numbers.flags.writeable = False
    return numbers


@lru_cache(maxsize=256)
def _ball_size(length: int, radius: int) -> int:
    return sum(comb(length, flips) for flips in range(min(radius, length) + 1))
