"""Inverted lists: near codes lie in one list, and a query reads the few lists whose centres are nearest to it."""

from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import faiss
import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.index.backends.base import Arrays, check_asked, check_kept, check_searched
from parabit.index.backends.flat import Flat, faiss_threads
from parabit.index.backends.groups import group
from parabit.index.results import Found, Keys, Nearest
from parabit.progress import Progress, Report, silent

RECALL = 0.95  # what the number of lists to read is chosen for
_K, _QUERIES = 10, 200  # what recall is measured with
_SEED = 0


class Lists:
    """Approximate: may miss hits, at a recall that was measured while building and that it tells.

    `recall` is the share of the 10 nearest codes that were found for a sample of the codes themselves, reading `probes`
    lists a query; a hit as near as the true ones counts. The first search copies the lists into memory.

    Example:
        >>> codes = np.random.default_rng(0).integers(0, 256, (3000, 4), dtype=np.uint8)
        >>> lists = Lists.build(codes, bits=32)
        >>> lists.nearest(codes[7:9], k=1).rows
        array([[7],
               [8]])
        >>> lists.exact, lists.recall >= 0.95
        (False, True)
    """

    name: ClassVar[str] = "lists"
    exact: ClassVar[bool] = False

    def __init__(self, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> None:
        self.codes, self.bits = check_searched(codes, bits), bits
        self._arrays = {name: np.asarray(arrays[name]) for name in ("near", "rows", "offsets", "centres", "measured")}
        self._near, self._rows, self._offsets, self._centres, measured = self._arrays.values()
        self.probes, self.recall = int(measured[0]), float(measured[1])

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent, recall: float = RECALL) -> Self:
        """Group the codes, and read as many lists as the recall asks for."""
        codes = check_searched(codes, bits)
        check_codes(codes, bits)
        report(Progress("grouping", 0, "codes", 0.0))
        groups = group(codes, _SEED)
        report(Progress("grouping", len(codes), "codes", 1.0))
        kind: type[np.integer] = np.uint32 if len(codes) < 1 << 32 else np.int64
        arrays = {
            "near": codes[groups.rows],
            "rows": groups.rows.astype(kind),
            "offsets": groups.offsets,
            "centres": groups.centres,
            "measured": np.array([1.0, 1.0]),
        }
        lists = cls(codes, bits, arrays)
        if len(codes):
            lists._measure(recall)
        return lists

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The codes in the lists' order, their rows, the lists and their centres, and what was measured."""
        return {**self._arrays, "measured": np.array([self.probes, self.recall])}

    @classmethod
    def of_arrays(cls, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> Self:
        """Open lists that were kept."""
        count = len(arrays["centres"]) if "centres" in arrays else 0
        shapes = {"rows": (len(codes),), "offsets": (count + 1,), "centres": (count, codes.shape[1]), "measured": (2,)}
        check_kept(cls.name, arrays, {"near": codes.shape, **shapes})
        return cls(codes, bits, arrays)

    def nearest(self, queries: NDArray[np.uint8], k: int) -> Nearest:
        """The k nearest codes of each query in the lists that are read."""
        check_asked(queries, self.bits, k=k)
        asked, k = k, min(k, len(self.codes))
        if not len(queries) or not k:
            return Found.nothing(len(queries)).nearest(asked)
        index = self._faiss
        index.nprobe = self.probes
        with faiss_threads(len(queries)):
            distances, rows = index.search(np.ascontiguousarray(queries), k)
        # faiss fills up with -1 and leaves rows of equal distance in the order of the lists.
        there = rows >= 0
        keys = Keys(len(self.codes) + 1, self.bits + 1)
        packed = keys.pack(None, np.where(there, distances, self.bits + 1).ravel(), np.where(there, rows, 0).ravel())
        packed = np.sort(packed.reshape(rows.shape), axis=1)
        found = keys.found(packed.ravel(), 1)
        missing = (found.distances > self.bits).reshape(rows.shape)
        filled = Nearest(
            np.where(missing, -1, found.rows.reshape(rows.shape)),
            np.where(missing, np.int32(-1), found.distances.reshape(rows.shape)),
        )
        return filled if asked == k else filled.found().nearest(asked)

    def within(self, queries: NDArray[np.uint8], radius: int, most: int | None = None) -> Found:
        """The codes inside the radius in the lists that are read; the nearest `most` where that is given."""
        check_asked(queries, self.bits, k=most, radius=radius)
        if most is not None:
            found = self.nearest(queries, most).found()
            return found.keep(found.distances <= radius)
        if not len(queries) or not len(self.codes):
            return Found.nothing(len(queries))
        index = self._faiss
        index.nprobe = self.probes
        with faiss_threads(len(queries)):
            # faiss returns distances below the radius; ours includes it.
            limits, distances, rows = index.range_search(np.ascontiguousarray(queries), min(radius, self.bits) + 1)
        keys = Keys(len(self.codes), self.bits)
        asked = np.repeat(np.arange(len(queries)), np.diff(limits.astype(np.int64)))
        return keys.found(np.sort(keys.pack(asked, distances.astype(np.int32), rows)), len(queries))

    @cached_property
    def _faiss(self) -> Any:
        """The lists as faiss wants them, in memory: made when first asked, as opening must not take that long."""
        wide = self.codes.shape[1] * 8
        self._centre_index = faiss.IndexBinaryFlat(wide)  # faiss does not keep it alive
        self._centre_index.add(np.ascontiguousarray(self._centres))
        index = faiss.IndexBinaryIVF(self._centre_index, wide, len(self._centres))
        for place, (start, stop) in enumerate(pairwise(self._offsets.tolist())):
            rows = self._rows[start:stop].astype(np.int64)
            codes = np.ascontiguousarray(self._near[start:stop])
            index.invlists.add_entries(place, stop - start, faiss.swig_ptr(rows), faiss.swig_ptr(codes))
        index.ntotal = len(self.codes)
        index.is_trained = True
        return index

    def _measure(self, target: float) -> None:
        """Read twice as many lists until the recall is reached, and keep both."""
        picked = np.random.default_rng(_SEED).choice(len(self.codes), min(_QUERIES, len(self.codes)), replace=False)
        # A code finds itself in any case, which says nothing: one more is asked for, and the first left out.
        queries, k = self.codes[np.sort(picked)], min(_K + 1, len(self.codes))
        worst = Flat(self.codes, self.bits).nearest(queries, k).distances[:, -1:]
        self.probes = 1
        while True:
            found = self.nearest(queries, k)
            right = (found.rows >= 0) & (found.distances <= worst)
            self.recall = 1.0 if k == 1 else float((right.sum(axis=1) - 1).mean() / (k - 1))
            if self.recall >= target or self.probes >= len(self._centres):
                return
            self.probes = min(2 * self.probes, len(self._centres))
