"""What hash tables and multi-index hashing have in common: buckets, and a scan for what they would be too slow for."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.index.backends.base import Arrays, check_asked, check_kept, check_searched
from parabit.index.backends.buckets import Buckets
from parabit.index.backends.candidates import Candidates
from parabit.index.backends.flat import Flat
from parabit.index.backends.groups import group
from parabit.index.results import Found, Nearest, join
from parabit.parallel import cores, ordered_map
from parabit.progress import Progress, Report, silent

# What things cost, in nanoseconds of one core, measured with benchmarks/index_speed.py. Only the ratios matter.
LOOK_UP = 28.0  # one key in the table of starts
CANDIDATE = 32.0  # one row: found, its code fetched and measured

_SMALLEST_BLOCK = 32  # queries that are worth a thread


def scan_cost(codes: int, width: int) -> float:
    """What a scan of so many codes of so many bytes costs a query."""
    return codes * max(0.7, width / 16)


class Hashed:
    """A back end that looks codes up in buckets. What one offers is in its `_search`.

    What a query looks at are mostly codes of its own neighbourhood, and fetching them from all over the memory would be
    most of the work. So the codes are kept once more, in an order in which near ones lie near: that of the only table,
    or, where there are several tables, in groups.
    """

    name: ClassVar[str]
    grouped: ClassVar[bool]

    def __init__(
        self,
        codes: NDArray[np.uint8],
        bits: int,
        buckets: Buckets,
        near: NDArray[np.uint8],
        rows: NDArray[np.integer] | None,
    ) -> None:
        self._flat = Flat(codes, bits)
        self.codes, self.bits, self._buckets = self._flat.codes, bits, buckets
        self._near, self._rows = np.asarray(near), None if rows is None else np.asarray(rows)
        if self._rows is None:
            self._candidates = Candidates(self._near, bits, None, buckets.places)
        else:
            self._candidates = Candidates(self._near, bits, buckets.places, self._rows)
        self._scan_cost = scan_cost(*self.codes.shape)

    @staticmethod
    def lengths(codes: int, bits: int) -> list[int]:
        """How long the substrings are that serve so many codes best."""
        raise NotImplementedError

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> Self:
        """Put near codes side by side, and sort them by each substring."""
        codes = check_searched(codes, bits)
        check_codes(codes, bits)
        lengths = cls.lengths(len(codes), bits)
        if not cls.grouped:
            buckets = Buckets.build(codes, bits, lengths, report)
            return cls(codes, bits, buckets, codes[buckets.places], None)
        report(Progress("grouping", 0, "codes", 0.0))
        kind: type[np.integer] = np.uint32 if len(codes) < 1 << 32 else np.int64
        rows = group(codes).astype(kind)
        report(Progress("grouping", len(codes), "codes", 1.0))
        near = codes[rows]
        return cls(codes, bits, Buckets.build(near, bits, lengths, report), near, rows)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The tables, and the codes in their order."""
        rows = {} if self._rows is None else {"rows": self._rows}
        return {**self._buckets.arrays, "near": self._near, **rows}

    @classmethod
    def of_arrays(cls, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> Self:
        """Open tables that were kept."""
        check_kept(cls.name, arrays, {"near": codes.shape, **({"rows": (len(codes),)} if cls.grouped else {})})
        buckets = Buckets.of_arrays(cls.name, codes, bits, arrays)
        return cls(codes, bits, buckets, arrays["near"], arrays["rows"] if cls.grouped else None)

    def nearest(self, queries: NDArray[np.uint8], k: int) -> Nearest:
        """The k nearest codes of each query."""
        check_asked(queries, self.bits, k=k)
        if not len(self.codes) or not len(queries):
            return Found.nothing(len(queries)).nearest(k)
        return self._search(queries, self.bits, min(k, len(self.codes))).nearest(k)

    def within(self, queries: NDArray[np.uint8], radius: int, most: int | None = None) -> Found:
        """All codes that differ from a query in `radius` bits or fewer; the nearest `most` where that is given."""
        check_asked(queries, self.bits, k=most, radius=radius)
        if not len(self.codes) or not len(queries):
            return Found.nothing(len(queries))
        return self._search(queries, min(radius, self.bits), most)

    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """The k nearest codes inside the radius, or all of them."""
        raise NotImplementedError

    def _by_blocks(
        self,
        queries: NDArray[np.uint8],
        search: Callable[[NDArray[np.uint8]], tuple[Found, NDArray[np.int64]]],
        block: int,
    ) -> tuple[Found, NDArray[np.int64]]:
        """Search blocks of queries on all cores: what was found, and which queries were not answered."""
        if len(queries) == 1:
            return search(queries)
        # Two blocks a core at least, so that none waits for the other, but none so small that threads do not pay.
        block = min(block, max(_SMALLEST_BLOCK, -(-len(queries) // (2 * cores()))), self._candidates.keys.most_queries)
        blocks = [queries[start : start + block] for start in range(0, len(queries), block)]
        done = list(ordered_map(search, blocks) if len(blocks) > 1 else map(search, blocks))
        rest = np.concatenate([left + block * number for number, (_, left) in enumerate(done)])
        return join([part for part, _ in done]), rest

    def _affordable(self, queries: int) -> float:
        """What looking up may cost a query so that a scan is not faster."""
        # A scan for few queries may share the codes out among the cores; looking up shares out the queries alone.
        return self._scan_cost * min(cores(), -(-queries // _SMALLEST_BLOCK)) / self._flat.threads(queries)

    def _scan(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """The answer of the scan."""
        return self._flat.within(queries, radius, k)


def replace(found: Found, queries: NDArray[np.int64], by: Found) -> Found:
    """The results with those of some queries replaced.

    Example:
        >>> found = Found(np.array([0, 1, 2]), np.array([4, 7]), np.array([0, 1], dtype=np.int32))
        >>> replace(found, np.array([0]), Found(np.array([0, 2]), np.array([5, 6]), np.array([1, 1], dtype=np.int32)))
        Found(offsets=array([0, 2, 3]), rows=array([5, 6, 7]), distances=array([1, 1, 1], dtype=int32))
    """
    if not len(queries):
        return found
    if len(queries) == len(found.offsets) - 1:
        return by
    stays = np.ones(len(found.offsets) - 1, dtype=np.bool_)
    stays[queries] = False
    kept = found.keep(stays[found.queries])
    both = np.concatenate([kept.queries, queries[by.queries]])
    order = np.argsort(both, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=len(stays)))])
    rows = np.concatenate([kept.rows, by.rows])[order]
    return Found(offsets, rows, np.concatenate([kept.distances, by.distances])[order])
