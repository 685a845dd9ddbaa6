"""The places of codes by the value of a substring, as plain arrays that can be memory-mapped."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.base import Arrays, check_kept
from parabit.index.backends.substrings import Substrings, spread
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report

LONGEST = 28  # bits of a substring: its table of starts takes a gigabyte
_CODES_AT_A_TIME = 1 << 18  # codes read from the disk at a time while building


class Ranges(NamedTuple):
    """Stretches of `Buckets.places` that a search shall look at, each for one cell (a query and a substring)."""

    cells: NDArray[np.int64]
    starts: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]

    def only(self, which: NDArray[np.bool_]) -> "Ranges":
        """Those that are marked."""
        return Ranges(self.cells[which], self.starts[which], self.counts[which])


class Buckets:
    """For each substring of the codes, their places sorted by its value, and where each value's begin.

    All substrings share two arrays: `starts[base of a substring + value]` is where in `places` the value's begin,
    and the next entry where they end.

    Example:
        >>> codes = np.array([[0b10100000], [0b01000000], [0b10100000]], dtype=np.uint8)
        >>> buckets = Buckets.build(codes, bits=3, lengths=[3], report=lambda progress: None)
        >>> buckets.starts
        array([0, 0, 0, 1, 1, 1, 3, 3, 3], dtype=uint32)
        >>> buckets.places
        array([1, 0, 2], dtype=uint32)
    """

    def __init__(
        self, substrings: Substrings, starts: NDArray[np.unsignedinteger], places: NDArray[np.unsignedinteger]
    ) -> None:
        self.substrings, self.starts, self.places = substrings, np.asarray(starts), np.asarray(places)
        self.bases = np.cumsum([0, *(1 << length for length in substrings.lengths)])[:-1]

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, lengths: Sequence[int], report: Report) -> Self:
        """Sort the places, one substring after the other."""
        total, count = len(codes), len(lengths)
        substrings = Substrings(bits, spread(codes, bits, lengths))
        values = np.empty((count, total), dtype=np.uint32)
        blocks = [slice(start, start + _CODES_AT_A_TIME) for start in range(0, total, _CODES_AT_A_TIME)]
        for some, read in zip(blocks, ordered_map(lambda block: substrings.read(codes[block]), blocks), strict=True):
            values[:, some] = read.T
        small = max(total, 1) * count < 1 << 32
        kind: type[np.unsignedinteger] = np.uint32 if small else np.uint64
        places = np.empty(total * count, dtype=kind)
        starts = np.zeros(sum(1 << length for length in lengths) + 1, dtype=kind)
        row_bits = max(1, total - 1).bit_length()
        base = 0
        for place, length in enumerate(lengths):
            # Value and row in one number: numpy sorts those five times as fast as it finds the order of values.
            packed = values[place].astype(np.int64) << row_bits | np.arange(total)
            packed.sort()
            places[place * total : (place + 1) * total] = packed & ((1 << row_bits) - 1)
            filled = np.bincount(values[place], minlength=1 << length)
            np.cumsum(filled, out=starts[base + 1 : base + (1 << length) + 1])
            starts[base + 1 : base + (1 << length) + 1] += kind(place * total)
            base += 1 << length
            report(Progress("building", place + 1, "tables", (place + 1) / count))
        return cls(substrings, starts, places)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What to keep."""
        bits = np.concatenate([np.asarray(group, dtype=np.int32) for group in self.substrings.bits])
        lengths = np.array(self.substrings.lengths, dtype=np.int32)
        return {"bits": bits, "lengths": lengths, "starts": self.starts, "places": self.places}

    @classmethod
    def of_arrays(cls, name: str, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> Self:
        """Open what was kept."""
        for small in ("bits", "lengths"):
            check_kept(name, arrays, {small: arrays[small].shape[:1] if small in arrays else (1,)})
        lengths = [int(length) for length in arrays["lengths"]]
        starts = sum(1 << length for length in lengths) + 1
        check_kept(
            name,
            arrays,
            {"bits": (sum(lengths),), "starts": (starts,), "places": (len(lengths) * len(codes),)},
        )
        groups = np.split(np.array(arrays["bits"]), np.cumsum(lengths)[:-1])
        return cls(Substrings(bits, groups), arrays["starts"], arrays["places"])

    def look(
        self, cells: NDArray[np.int64], values: NDArray[np.int64], bases: NDArray[np.int64], masks: NDArray[np.int64]
    ) -> Ranges:
        """The places of codes whose substring differs from a cell's value in the bits of one of the masks."""
        asked = values[:, None] ^ masks
        asked += bases[:, None]
        first, counts, there = self._look(asked.ravel())
        return Ranges(cells[there // len(masks)], first, counts)

    def look_alone(self, queries: NDArray[np.uint8], masks: NDArray[np.int64]) -> Ranges:
        """The same where there is one substring only: a cell for each query."""
        first, counts, there = self._look((self.substrings.read(queries) ^ masks).ravel())
        cells = there // len(masks) if len(queries) > 1 else np.zeros_like(there)
        return Ranges(cells, first, counts)

    def _look(
        self, keys: NDArray[np.int64]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """Where the places of keys begin, how many they are, and which keys those are that have any."""
        first = self.starts.take(keys)
        keys += 1
        counts = self.starts.take(keys)
        counts -= first
        there = counts.nonzero()[0]
        return first.take(there), counts.take(there), there


@lru_cache(maxsize=64)
def ring(length: int, flips: int) -> NDArray[np.int64]:
    """All numbers of so many bits of which `flips` are set, in order.

    Example:
        >>> ring(3, 2)
        array([3, 5, 6])
    """
    numbers = np.zeros(comb(length, flips), dtype=np.int64)
    if flips:
        chosen = np.array(list(combinations(range(length), flips)), dtype=np.int64)
        numbers = np.sort((np.int64(1) << chosen).sum(axis=1))
    numbers.flags.writeable = False
    return numbers


@lru_cache(maxsize=64)
def ball(length: int, flips: int) -> NDArray[np.int64]:
    """All numbers of so many bits of which at most `flips` are set, in order.

    Example:
        >>> ball(3, 1)
        array([0, 1, 2, 4])
    """
    numbers = np.sort(np.concatenate([ring(length, few) for few in range(min(flips, length) + 1)]))
    numbers.flags.writeable = False
    return numbers
