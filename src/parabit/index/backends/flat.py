"""The scan: every code is compared with every query, by faiss, where the codes lie, which may be a memory map."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import faiss
import numpy as np
from numpy.typing import NDArray

from parabit.index.results import Found, Keys, join
from parabit.parallel import cores, ordered_map
from parabit.progress import Report, silent

Arrays: TypeAlias = Mapping[str, NDArray[Any]]
Codes: TypeAlias = NDArray[np.uint8]  # (codes, bytes), packed bits
T = TypeVar("T")

_COUNTING_BYTES = 1 << 27  # faiss reserves room for k hits at each distance
_QUERIES_AT_A_TIME = 4096  # hits are held twice for a moment, by faiss and by us
_SMALLEST_BLOCK = 8  # queries that are worth a thread


class Flat:
    """A scan of all codes: nothing to build, and as fast as the memory. Other back ends derive from this one.

    Cores share the queries, not the codes, so few queries start no threads: two threads would scan 5 million codes
    1.1 to 1.3 times as fast as one, and take 20 times as long for 7,500. The threads are ours, as those of faiss wait
    for each other after every 65,536 codes: on cores that have other work, a batch takes several times as long.
    """

    def __init__(self, codes: Codes, bits: int, arrays: Arrays | None = None) -> None:
        """Open what `build` gave for these codes, in a time that does not grow with them; without it, build it."""
        # faiss needs contiguous rows; and of a np.memmap every slice takes time.
        self.codes, self.bits = np.ascontiguousarray(codes), bits

    @classmethod
    def build(cls, codes: Codes, bits: int, report: Report = silent) -> dict[str, NDArray[Any]]:
        """The arrays that the back end needs beside the codes, to be stored with them."""
        return {}

    @classmethod
    def array_forms(
        cls, codes: int, bits: int
    ) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        """The type and the shape of each array that `build` gives for so many codes."""
        return {}

    def search(self, queries: Codes, most: int | None = None, radius: int | None = None) -> Found:
        """The nearest `most` codes of each query, or all within `radius` bits, or the nearest of those."""
        if not len(queries) or not len(self.codes):
            return Found.nothing(len(queries))
        queries = np.ascontiguousarray(queries)
        if most is None or (radius is not None and most >= len(self.codes)):
            return self._within(queries, self.bits if radius is None else radius)
        found = self._nearest(queries, min(most, len(self.codes)))
        return found if radius is None else found.keep(found.distances <= radius)

    def _nearest(self, queries: Codes, k: int) -> Found:
        bytes_per_query = k * (self.bits + 1) * 8
        if bytes_per_query > _COUNTING_BYTES:
            return join([self._within(query[None], self.bits).first(k) for query in queries])

        def search(block: Codes) -> Found:
            # "mc" counts the hits at each distance. It keeps the lowest rows of a tie, as rows come in order.
            with _one_thread():
                distances, rows = faiss.knn_hamming(block, self.codes, k, variant="mc")
            offsets = np.arange(len(block) + 1) * k
            return Found(
                offsets,
                rows.ravel().astype(np.int64, copy=False),
                distances.ravel().astype(np.int32),
            )

        return join(
            on_all_cores(search, queries, _COUNTING_BYTES // bytes_per_query, _SMALLEST_BLOCK)
        )

    def _within(self, queries: Codes, radius: int) -> Found:
        def search(block: Codes) -> Found:
            result = faiss.RangeSearchResult(len(block))
            with _one_thread():
                faiss.hamming_range_search(
                    faiss.swig_ptr(block),
                    faiss.swig_ptr(self.codes),
                    len(block),
                    len(self.codes),
                    min(radius, self.bits)
                    + 1,  # faiss returns distances below the radius; ours includes it
                    self.codes.shape[1],
                    result,
                )
            offsets = faiss.rev_swig_ptr(result.lims, len(block) + 1).astype(np.int64)
            total = int(offsets[-1])
            if not total:
                return Found.nothing(len(block))
            rows = faiss.rev_swig_ptr(
                result.labels, total
            )  # in faiss's memory, as long as the result lives
            distances = faiss.rev_swig_ptr(result.distances, total).astype(np.int32)
            keys = Keys(len(self.codes), self.bits)
            asked = np.repeat(np.arange(len(block)), np.diff(offsets)) if len(block) > 1 else 0
            packed = keys.pack(asked, distances, rows)
            packed.sort()
            return keys.found(packed, len(block))

        return join(on_all_cores(search, queries, _QUERIES_AT_A_TIME, _SMALLEST_BLOCK))


def on_all_cores(
    search: Callable[[Codes], T], queries: Codes, most: int, least: int, per_core: int = 1
) -> list[T]:
    """Search for blocks of queries, each on one core: so many blocks per core, but of at least and at most so many."""
    size = min(most, max(least, -(-len(queries) // (per_core * cores()))))
    blocks = [queries[start : start + size] for start in range(0, len(queries), size)]
    return list(ordered_map(search, blocks) if len(blocks) > 1 else map(search, blocks))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have faiss start no threads."""
    before = faiss.omp_get_max_threads()  # OpenMP keeps this number for each thread
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
