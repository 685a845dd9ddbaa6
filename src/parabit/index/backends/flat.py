"""The scan: every code is compared with every query, by faiss, where the codes lie."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, ClassVar, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.base import Arrays, check_asked, check_searched
from parabit.index.results import Found, Keys, Nearest, join, merge
from parabit.parallel import cores, ordered_map
from parabit.progress import Report, silent

# faiss shares queries out among threads. Fewer queries than so many a core leave cores idle at the end, so then the
# codes are shared out instead, if their bytes are worth starting threads for.
_QUERIES_A_CORE = 4
_WORTH_THREADS = 1 << 25
# faiss's heap is fast for few hits, counting for many; counting needs room for k hits at each distance.
_HEAP = 200
_COUNTING_BYTES = 1 << 27
_HITS_AT_A_TIME = 1 << 22


class Flat:
    """A scan of all codes: exact, nothing to build, and as fast as the memory.

    Example:
        >>> codes = np.array([[0b00000000], [0b11110000], [0b11000000], [0b00000001]], dtype=np.uint8)
        >>> flat = Flat.build(codes, bits=8)
        >>> flat.nearest(codes[:1], k=3).rows
        array([[0, 3, 2]])
        >>> flat.within(codes[:2], radius=1).rows
        array([0, 3, 1])
    """

    name: ClassVar[str] = "flat"

    def __init__(self, codes: NDArray[np.uint8], bits: int) -> None:
        self.codes, self.bits = check_searched(codes, bits), bits

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> Self:
        """A scan needs nothing beside the codes."""
        return cls(codes, bits)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    @classmethod
    def of_arrays(cls, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> Self:
        """The same as `build`."""
        return cls(codes, bits)

    def nearest(self, queries: NDArray[np.uint8], k: int) -> Nearest:
        """The k nearest codes of each query."""
        check_asked(queries, self.bits, k=k)
        asked, k = k, min(k, len(self.codes))
        if not len(queries) or not k:
            return Found.nothing(len(queries)).nearest(asked)
        queries = np.ascontiguousarray(queries)
        if k > _HEAP and k * (self.bits + 1) * 8 > _COUNTING_BYTES:
            found = join([self._sorted(query, k) for query in queries])
        elif parts := self._parts(len(queries), k):
            several = list(ordered_map(lambda part: _scan(queries, self.codes[part], k, threads=1), parts))
            starts = [part.start for part in parts]
            found = merge([nearest.found() for nearest in several], starts, self.bits, most=k)
        else:
            nearest = _scan(queries, self.codes, k)
            if asked == k:
                return nearest
            found = nearest.found()
        return found.nearest(asked)

    def within(self, queries: NDArray[np.uint8], radius: int, most: int | None = None) -> Found:
        """All codes that differ from a query in `radius` bits or fewer; the nearest `most` where that is given."""
        check_asked(queries, self.bits, k=most, radius=radius)
        if most is not None and most < len(self.codes):
            found = self.nearest(queries, most).found()
            return found.keep(found.distances <= radius)
        if not len(queries) or not len(self.codes):
            return Found.nothing(len(queries))
        queries = np.ascontiguousarray(queries)
        if parts := self._parts(len(queries)):
            several = list(ordered_map(lambda part: self._range(queries, part, radius, threads=1), parts))
            return merge(several, [part.start for part in parts], self.bits)
        whole = slice(0, len(self.codes))
        # Results are held twice for a moment, by faiss and by us: by blocks, so that it is not all of them.
        block = min(Keys(len(self.codes), self.bits).most_queries, 4096)
        blocks = [queries[start : start + block] for start in range(0, len(queries), block)]
        return join([self._range(some, whole, radius) for some in blocks])

    def threads(self, queries: int) -> int:
        """How many threads a scan for so many queries uses."""
        return len(self._parts(queries)) or min(queries, cores())

    def _parts(self, queries: int, k: int = 0) -> list[slice]:
        """The codes in as many parts as there are cores, or none where faiss should share out the queries."""
        count, total = cores(), len(self.codes)
        if count == 1 or queries > _QUERIES_A_CORE * count or total * self.codes.shape[1] < _WORTH_THREADS:
            return []
        if total < count * k:
            return []
        edges = [total * part // count for part in range(count + 1)]
        return [slice(start, stop) for start, stop in pairwise(edges)]

    def _range(self, queries: NDArray[np.uint8], part: slice, radius: int, threads: int | None = None) -> Found:
        """The codes of a part within the radius, counted from the part's start."""
        codes = self.codes[part]
        result = faiss.RangeSearchResult(len(queries))
        # faiss returns distances below the radius; ours includes it.
        below = min(radius, self.bits) + 1
        with faiss_threads(threads or len(queries)):
            faiss.hamming_range_search(
                faiss.swig_ptr(queries),
                faiss.swig_ptr(codes),
                len(queries),
                len(codes),
                below,
                codes.shape[1],
                result,
            )
        offsets = faiss.rev_swig_ptr(result.lims, len(queries) + 1).astype(np.int64)
        total = int(offsets[-1])
        if not total:
            return Found.nothing(len(queries))
        rows = faiss.rev_swig_ptr(result.labels, total)
        distances = faiss.rev_swig_ptr(result.distances, total).astype(np.int32)
        keys = Keys(len(codes), self.bits)
        asked = np.repeat(np.arange(len(queries)), np.diff(offsets)) if len(queries) > 1 else None
        packed = keys.pack(asked, distances, rows)
        del rows  # it lies in faiss's memory
        packed.sort()
        return keys.found(packed, len(queries))

    def _sorted(self, query: NDArray[np.uint8], k: int) -> Found:
        """The k nearest of one query by sorting all, for a k that comes near the number of codes."""
        distances = np.empty(len(self.codes), dtype=np.int32)
        faiss.hammings(
            faiss.swig_ptr(query),
            faiss.swig_ptr(self.codes),
            1,
            len(self.codes),
            self.codes.shape[1],
            faiss.swig_ptr(distances),
        )
        # A stable sort of 16-bit numbers is a radix sort.
        rows = np.argsort(distances.astype(np.uint16), kind="stable")[:k]
        return Found(np.array([0, k]), rows, distances[rows])


def _scan(queries: NDArray[np.uint8], codes: NDArray[np.uint8], k: int, threads: int | None = None) -> Nearest:
    """faiss's k nearest. It keeps the lowest rows of a tie: rows come in order, and only a nearer one enters."""
    heap = k <= _HEAP
    block = max(1, _HITS_AT_A_TIME // k) if heap else max(1, _COUNTING_BYTES // (k * (codes.shape[1] * 8 + 1) * 8))
    # A thread that has no query of its own would only be waited for, and long where the cores have other work.
    with faiss_threads(threads or len(queries)):
        parts = [
            faiss.knn_hamming(queries[start : start + block], codes, k, variant="hc" if heap else "mc")
            for start in range(0, len(queries), block)
        ]
    distances = np.concatenate([part[0] for part in parts]) if len(parts) > 1 else parts[0][0]
    rows = np.concatenate([part[1] for part in parts]) if len(parts) > 1 else parts[0][1]
    return Nearest(rows.astype(np.int64, copy=False), distances.astype(np.int32, copy=False))


@contextmanager
def faiss_threads(most: int | None) -> Iterator[None]:
    """Let faiss use no more threads than that, when the calling thread asks it.

    Example:
        >>> with faiss_threads(1):
        ...     faiss.omp_get_max_threads()
        1
    """
    before = faiss.omp_get_max_threads()  # OpenMP keeps this number for each thread
    faiss.omp_set_num_threads(min(most or before, before))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
