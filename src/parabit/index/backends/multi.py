"""Multi-index hashing: several tables, each on a part of a long code.

A query's substrings are each searched to a radius of their own: r₁ … rₘ, where -1 stands for not at all. A code that
was not found differs from the query in more than rᵢ bits of substring i, so in Σ(rᵢ + 1) bits or more: every code
nearer than that is known. The paper on multi-index hashing (Norouzi, Punjani and Fleet, 2014) grows all substrings
alike; here each query grows the one whose next ring holds the fewest codes, as codes of documents fill their buckets
unevenly.
"""

from math import ceil, comb, log2
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.hashing import CANDIDATE, LONGEST, LOOK_UP, Hashed, Ranges, build_tables, ring
from parabit.index.results import Found
from parabit.progress import Report, silent

_QUERIES_AT_A_TIME = 64

_ROUND = 120_000.0  # nanoseconds that a round takes for a block of queries, whatever it does
_DEARER = 4.5  # how much more the next ring of all substrings costs
_TRIED = 0.06  # of what a scan costs, spent before a query is given up
_UNSETTLED = 0.4  # of what a scan costs, spent on rounds until k codes are found
_KEYS_AT_A_TIME = 1 << 18
_COMBINATIONS = np.array(
    [[comb(length, flips) for flips in range(LONGEST + 2)] for length in range(LONGEST + 1)], float
)


class Multi(Hashed):
    """A table for each of several substrings of the code: for long codes whose nearest ones are near."""

    name: ClassVar[str] = "multi"

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> dict[str, NDArray[Any]]:
        """Sort the rows by each substring; these are as long as makes about one key for every code."""
        best = min(max(4.0, log2(max(len(codes), 2)) - 0.5), LONGEST - 3)
        count = max(ceil(bits / (best + 2)), round(bits / best))
        lengths = [bits * (place + 1) // count - bits * place // count for place in range(count)]
        return build_tables(codes, bits, lengths, report)

    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """Grow the flips; a query for which a scan would be faster is scanned for."""
        affordable = self._affordable(len(queries))

        def grow(some: NDArray[np.uint8]) -> tuple[Found, NDArray[np.int64]]:
            return _Growth(self, some, affordable, radius, k).run()

        return self._by_blocks(queries, radius, k, grow, block=_QUERIES_AT_A_TIME)


class _Growth:
    """One block of queries on its way: how far each substring has been searched, and what has been found."""

    def __init__(
        self, tables: Hashed, queries: NDArray[np.uint8], affordable: float, radius: int, k: int | None
    ) -> None:
        count, substrings = len(queries), len(tables.bases)
        self._tables, self._queries, self._affordable, self._k = tables, queries, affordable, k
        self._substrings = substrings
        self._lengths = np.array(tables.substrings.lengths)
        # A cell is a query and a substring; arrays of cells are (queries, substrings), or flat.
        self._values = tables.substrings.read(queries).astype(np.int64).ravel()
        self._bases = np.tile(tables.bases, count)
        self._rings = np.zeros((count, substrings), dtype=np.int64)  # the next ring of each cell
        self._costs = np.full((count, substrings), LOOK_UP)  # of that ring, or a guess if it was not counted
        self._counted = np.zeros((count, substrings), dtype=np.bool_)
        nothing = tables.starts[:0]
        self._waiting = Ranges(np.empty(0, dtype=np.int64), nothing, nothing)  # of rings counted and not read
        self._limits = np.full(count, radius)  # what is farther is of no use
        self._settled = np.full(count, k is None)  # whether the limit is more than a guess
        self._known = np.full(count, -1)  # all codes up to this distance have been found
        self._spent = np.zeros(count)
        self._rounds = 0.0  # what the rounds so far cost each query
        self._hits = np.empty(0, dtype=np.int64)  # packed keys, sorted

    def run(self) -> tuple[Found, NDArray[np.int64]]:
        """Search until every query is answered or given up; returns hits, and the queries that a scan answers faster.

        Of a query that was given up only a part was found.
        """
        given_up: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
        active = np.flatnonzero(self._known < self._limits)
        while len(active):
            costs = self._costs[active]
            needed = self._limits[active] - self._known[active]  # so many rings
            cheapest = np.argsort(costs, axis=1, kind="stable")
            running = np.cumsum(np.take_along_axis(costs, cheapest, axis=1), axis=1)
            dear = self._too_dear(active, needed, running)
            if dear.any():
                given_up.append(active[dear])
                active, needed, cheapest, running = (some[~dear] for some in (active, needed, cheapest, running))
                if not len(active):
                    break
            self._round(active, needed, cheapest, running)
            self._rounds += _ROUND / len(active)
            active = active[self._known[active] < self._limits[active]]
        found = self._tables.keys.found(self._hits, len(self._limits))
        return found, np.sort(np.concatenate(given_up))

    def _too_dear(
        self, active: NDArray[np.int64], needed: NDArray[np.int64], running: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """The queries whose remaining rings would cost more than a scan."""
        # Rounds over all substrings that are still to come: the next, and each after it dearer than the one before.
        levels = np.maximum(needed / self._substrings - 1, 0)
        last = np.minimum(needed, self._substrings) - 1
        rest = running[np.arange(len(active)), last] * (_DEARER ** (levels + 1) - 1) / (_DEARER - 1)
        rest += 2 * _ROUND / len(active)
        # At first the limit, and so the rest, is a guess: a little is spent in any case.
        tried = self._spent[active] + running[:, 0] > _TRIED * self._affordable
        guessed = ~self._settled[active] & (tried | (self._rounds > _UNSETTLED * self._affordable))
        tried |= self._rounds > 2 * _TRIED * self._affordable
        dear: NDArray[np.bool_] = guessed | (tried & (rest > self._affordable))
        return dear

    def _round(
        self,
        active: NDArray[np.int64],
        needed: NDArray[np.int64],
        cheapest: NDArray[np.int64],
        running: NDArray[np.float64],
    ) -> None:
        """Take the cheapest rings that are needed, for twice what was spent so far: few rounds, and little in vain."""
        budget = np.maximum(2 * self._spent[active], _ROUND / 3 / len(active))
        if self._k is None:
            budget[:] = self._affordable
        taken = running <= budget[:, None]
        taken[:, 0] = True
        taken &= np.arange(self._substrings) < needed[:, None]
        which, rank = np.nonzero(taken)
        cells = active[which] * self._substrings + cheapest[which, rank]
        counted = self._counted.ravel()
        sure = counted[cells] & (rank == 0)
        self._count(cells[~counted[cells]])
        # A ring that proved fuller than was guessed can wait, another may be cheaper.
        cells = cells[sure | (self._costs.ravel()[cells] <= budget[which])]
        self._read(cells)

    def _count(self, cells: NDArray[np.int64]) -> None:
        """Look up the next ring of cells: which rows it has."""
        if not len(cells):
            return
        rings, lengths = self._rings.ravel()[cells], self._lengths[cells % self._substrings]
        np.add.at(self._spent, cells // self._substrings, LOOK_UP * _combinations(lengths, rings))
        kinds = lengths * 256 + rings
        looked = [self._waiting]
        for kind in np.unique(kinds):
            masks = ring(int(kind) // 256, int(kind) % 256)
            alike = cells[kinds == kind]
            step = max(1, _KEYS_AT_A_TIME // len(masks))
            for start in range(0, len(alike), step):
                some = alike[start : start + step]
                keys = self._values[some, None] ^ masks
                keys += self._bases[some, None]
                first, counts, there = self._tables.look_up(keys.ravel())
                looked.append(Ranges(some[there // len(masks)], first, counts))
        self._waiting = Ranges(*(np.concatenate(parts) for parts in zip(*looked, strict=True)))
        rows = np.bincount(self._waiting.cells, self._waiting.counts, minlength=self._costs.size)
        self._costs.ravel()[cells] = rows[cells] * CANDIDATE
        self._counted.ravel()[cells] = True

    def _read(self, cells: NDArray[np.int64]) -> None:
        """Measure the codes of counted rings."""
        if not len(cells):
            return
        chosen = np.zeros(self._costs.size, dtype=np.bool_)
        chosen[cells] = True
        now = chosen[self._waiting.cells]
        ranges, self._waiting = self._waiting.only(now), self._waiting.only(~now)
        queries = cells // self._substrings
        np.add.at(self._spent, queries, self._costs.ravel()[cells])
        np.add.at(self._known, queries, 1)
        self._rings.ravel()[cells] += 1
        self._counted.ravel()[cells] = False
        self._guess(cells)
        if len(ranges.cells):
            self._take(self._tables.near(self._queries, ranges, ranges.cells // self._substrings, self._limits))

    def _guess(self, cells: NDArray[np.int64]) -> None:
        """What the ring after the last one may cost: its look-ups, and up to twice as many codes."""
        rings, lengths = self._rings.ravel()[cells], self._lengths[cells % self._substrings]
        keys = _combinations(lengths, rings)
        costs = self._costs.ravel()
        growth = np.minimum(2.0, keys / np.maximum(1, _combinations(lengths, rings - 1)))
        costs[cells] = np.where(rings > lengths, np.inf, LOOK_UP * keys + growth * costs[cells])

    def _take(self, hits: NDArray[np.int64]) -> None:
        """Add hits, and draw the limits in to the k-th of each query."""
        if len(self._hits):
            hits = np.concatenate([self._hits, hits])
            hits.sort()
        # A code that is near is found in several substrings.
        self._hits = hits[np.concatenate([[True], hits[1:] != hits[:-1]])] if len(hits) else hits
        if self._k is None:
            return
        keys = self._tables.keys
        offsets = keys.offsets(self._hits, len(self._limits))
        counts = np.diff(offsets)
        full = np.flatnonzero(counts >= self._k)
        self._limits[full] = keys.distances(self._hits[offsets[full] + self._k - 1])
        self._settled[full] = True
        if counts.max() > self._k:
            self._hits = self._hits[np.arange(len(self._hits)) - np.repeat(offsets[:-1], counts) < self._k]


def _combinations(lengths: NDArray[np.int64], flips: NDArray[np.int64]) -> NDArray[np.float64]:
    return _COMBINATIONS[lengths, np.minimum(flips, LONGEST + 1)]
