"""Multi-index hashing: several tables, each on a part of a long code."""

from functools import partial
from math import ceil, log2
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.buckets import LONGEST
from parabit.index.backends.growing import Growth
from parabit.index.backends.hashing import Hashed, replace
from parabit.index.results import Found

_QUERIES_AT_A_TIME = 64


class Multi(Hashed):
    """A table for each of several substrings of the code: for long codes whose nearest ones are near.

    Example:
        >>> codes = np.random.default_rng(0).integers(0, 256, (1000, 16), dtype=np.uint8)
        >>> multi = Multi.build(codes, bits=128)
        >>> multi.nearest(codes[5:7], k=1).rows
        array([[5],
               [6]])
    """

    name: ClassVar[str] = "multi"
    grouped: ClassVar[bool] = True

    @staticmethod
    def lengths(codes: int, bits: int) -> list[int]:
        """As many substrings as make about a key for every code."""
        best = min(max(4.0, log2(max(codes, 2)) - 0.5), LONGEST - 3)
        count = max(ceil(bits / (best + 2)), round(bits / best))
        return [bits * (place + 1) // count - bits * place // count for place in range(count)]

    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """Grow the flips; a query for which a scan would be faster is scanned for."""
        grow = partial(self._grow, self._affordable(len(queries)), radius, k)
        found, dear = self._by_blocks(queries, grow, block=_QUERIES_AT_A_TIME)
        return replace(found, dear, self._scan(queries[dear], radius, k)) if len(dear) else found

    def _grow(
        self, affordable: float, radius: int, k: int | None, queries: NDArray[np.uint8]
    ) -> tuple[Found, NDArray[np.int64]]:
        growth = Growth(self._buckets, self._candidates, queries, affordable, radius, k)
        given_up = growth.run()
        return growth.found(), given_up
