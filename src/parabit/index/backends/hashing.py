"""Multi-index hashing: a hash table for each of several substrings of the code; for a short code, one for all of it.

A substring is some bits of a code, read as a number. For each substring there is a table: the rows of all codes sorted
by its value, and where each value's rows start. A ring is the codes whose substring differs from the query's in a
certain number of bits. Of each substring some rings are taken, the first ones: a code in none of them differs from the
query in as many bits as there are rings, or more. So all codes within a radius are in any radius + 1 rings, and a query
takes those with the fewest codes. It is left to a scan if that is faster.

Norouzi, Punjani and Fleet, "Fast exact search in Hamming space with multi-index hashing", 2014, take all rings alike;
but codes of documents fill their tables unevenly.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import combinations
from math import ceil, comb, gcd, log2
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.flat import Arrays, Codes, Flat, on_all_cores
from parabit.index.results import Found, Keys, join
from parabit.parallel import cores, ordered_map
from parabit.progress import Progress, Report, silent
from parabit.text.bags import blocks

Integers: TypeAlias = NDArray[np.integer]

SHORT = 40  # bits up to which one table beats several

_LONGEST = 28  # bits of a substring: its table of starts takes a gigabyte
# What things cost, in nanoseconds of one core, measured with benchmarks/index_speed.py. Only the ratios matter.
_LOOK_UP = 28.0  # one key in the table of starts
_CANDIDATE = 32.0  # one row: found, its code fetched and measured
_TRIED = 0.06  # of what a scan costs, spent before a query is given up

_READ_AT_A_TIME = 8192  # codes whose substrings are read at once while building: what that takes stays in the cache
_QUERIES_AT_A_TIME = 64
_SMALLEST_BLOCK = 32  # queries that are worth a thread
_KEYS_AT_A_TIME = 1 << 17
_CANDIDATES_AT_A_TIME = (
    1 << 15
)  # measured at once, so that memory stays bounded and most of it in the cache


def scan_cost(codes: int, width: int) -> float:
    """What a scan of so many codes of so many bytes costs per query."""
    return codes * max(0.7, width / 16)


class Hashing(Flat):
    """Looks codes up by the values of their substrings: fast if what is asked for is near.

    All substrings share two arrays: `starts[(substring << length) + value]` is where in `places` the rows of the codes
    with this value start, and the next entry where they end.
    """

    def __init__(self, codes: Codes, bits: int, arrays: Arrays | None = None) -> None:
        super().__init__(codes, bits)
        arrays = self.build(codes, bits) if arrays is None else arrays
        self.starts, self.places, self._groups = (
            np.asarray(arrays[name]) for name in ("starts", "places", "bits")
        )
        self.substrings, self.length = self._groups.shape
        self._bases = np.arange(self.substrings) << self.length
        # How many keys so many rings have, those with fewest flips first.
        rings = [comb(self.length, flips) for flips in range(self.length + 1)]
        self._keys_in = np.cumsum([0.0, *np.repeat(rings, self.substrings)])
        self._keys = Keys(len(codes), bits)
        self._words = _words(self.codes)

    @classmethod
    def build(cls, codes: Codes, bits: int, report: Report = silent) -> dict[str, NDArray[Any]]:
        """Sort the rows by each of the substrings, one after the other."""
        total = len(codes)
        count, length = _shape(total, bits)
        # Bits from the whole code, and neighbours in different substrings, as these are most alike.
        groups = (
            (np.arange(count * length, dtype=np.int32) * bits // (count * length))
            .reshape(length, count)
            .T
        )
        values = np.empty((count, total), dtype=np.uint32)
        blocks = [
            slice(start, start + _READ_AT_A_TIME) for start in range(0, total, _READ_AT_A_TIME)
        ]
        for some, read in zip(
            blocks, ordered_map(lambda block: _read(codes[block], groups), blocks), strict=True
        ):
            values[:, some] = read.T
        kind = _kind(total * count)
        places = np.empty(total * count, dtype=kind)
        starts = np.zeros((count << length) + 1, dtype=kind)
        row_bits = max(1, total - 1).bit_length()
        for substring in range(count):
            # Value and row in one number: numpy sorts those five times as fast as it finds the order of values.
            packed = values[substring].astype(np.int64)
            packed <<= row_bits
            packed |= np.arange(total)
            packed.sort()
            packed &= (1 << row_bits) - 1
            places[substring * total : (substring + 1) * total] = packed
            ends = starts[(substring << length) + 1 : ((substring + 1) << length) + 1]
            np.cumsum(np.bincount(values[substring], minlength=1 << length), out=ends)
            ends += kind.type(substring * total)
            report(Progress("building", substring + 1, "tables", (substring + 1) / count))
        return {"bits": groups, "starts": starts, "places": places}

    @classmethod
    def array_forms(
        cls, codes: int, bits: int
    ) -> Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]:
        count, length = _shape(codes, bits)
        kind = _kind(codes * count)
        return {
            "bits": (np.dtype(np.int32), (count, length)),
            "starts": (kind, ((count << length) + 1,)),
            "places": (kind, (codes * count,)),
        }

    def search(self, queries: Codes, most: int | None = None, radius: int | None = None) -> Found:
        if not len(self.codes) or not len(queries):
            return Found.nothing(len(queries))
        farthest = self.bits if radius is None else min(radius, self.bits)
        # A scan has a thread for every query, looking up one for every block of them.
        available = cores()
        threads = min(available, -(-len(queries) // _SMALLEST_BLOCK))
        affordable = scan_cost(*self.codes.shape) * threads / min(available, len(queries))
        keys = self._keys_in[self._needed(farthest if most is None else 0)]
        if keys * _LOOK_UP > affordable:
            return super().search(queries, most, radius)
        k = None if most is None else min(most, len(self.codes))
        look = partial(self._look, k=k, radius=farthest, affordable=affordable)
        size = max(1, min(_QUERIES_AT_A_TIME, int(_KEYS_AT_A_TIME / keys)))
        # At least two blocks per core, so that none waits for the other, but none so small that threads do not pay.
        parts, dear = zip(
            *on_all_cores(look, queries, size, _SMALLEST_BLOCK, per_core=2), strict=True
        )
        found, left = join(parts), np.concatenate(dear).nonzero()[0]
        return (
            found.replace(left, super().search(queries[left], most, radius)) if len(left) else found
        )

    def _needed(self, radius: Any) -> Any:
        """How many rings hold all codes within a radius."""
        return np.minimum(radius + 1, len(self._keys_in) - 1)

    def _look(
        self, queries: Codes, k: int | None, radius: int, affordable: float
    ) -> tuple[Found, NDArray[np.bool_]]:
        """What is near some queries, and which of them a scan answers faster: of those only a part was found."""
        count, substrings = len(queries), self.substrings
        values = _read(queries, self._groups) | self._bases
        words = _words(np.ascontiguousarray(queries))
        limits = np.full(count, radius)  # what is farther is of no use
        needed = self._needed(limits)
        hits, dear = (
            np.empty(0, dtype=np.int64),
            np.zeros(count, dtype=np.bool_),
        )  # hits are packed keys, sorted
        candidates = np.zeros(count)
        active, flips = np.arange(count), 0  # rings with fewer flips were taken
        while len(active):
            # Of the k nearest, hits make the radius smaller with each ring. What a radius needs is known: of the last
            # rings some, and all before.
            stop = flips + 1 if k is not None else max(flips + 1, int(needed[0]) // substrings)
            asked, starts, counts = self._take(
                values[active], needed[active] - flips * substrings, flips, stop
            )
            asked = active[asked]
            more = np.bincount(asked, counts, minlength=count)
            dear |= more * _CANDIDATE > affordable
            if dear.any():
                left = ~dear[asked]
                asked, starts, counts = asked[left], starts[left], counts[left]
            pieces = blocks(counts, _CANDIDATES_AT_A_TIME)
            parts = [
                self._measure(words, starts[some], counts[some], asked[some], limits)
                for some in pieces
            ]
            hits = np.concatenate([hits, *parts])
            hits.sort()
            if substrings > 1 and len(hits):  # a code that is near is found in several
                hits = hits[np.concatenate([[True], hits[1:] != hits[:-1]])]
            flips, taken = stop, stop * substrings
            if k is None:
                active = (~dear & (needed > taken)).nonzero()[0]
                continue
            # Of each query k hits are enough, and what is farther than the last of them is of no use any more.
            offsets = self._keys.offsets(hits, count)
            found = np.diff(offsets)
            settled = found >= k
            limits[settled] = self._keys.distances(hits[offsets[:-1][settled] + k - 1])
            hits = hits[np.arange(len(hits)) - np.repeat(offsets[:-1], found) < k]
            # What is left should cost less than a scan. Before k codes are found, only the next rings count.
            candidates += more
            needed = self._needed(limits)
            spent = self._keys_in[taken] * _LOOK_UP + candidates * _CANDIDATE
            ahead = np.where(settled, needed, np.minimum(needed, taken + substrings))
            rest = (self._keys_in[ahead] / self._keys_in[taken] - 1) * spent
            dear |= (spent > _TRIED * affordable) & (rest > affordable)
            active = (~dear & (needed > taken)).nonzero()[0]
        return self._keys.found(hits, count), dear

    def _take(
        self, values: NDArray[np.int64], needed: NDArray[np.int64], flips: int, stop: int
    ) -> tuple[NDArray[np.int64], NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]:
        """Where among the places the codes of some rings are: query, start and count of each stretch."""
        masks = _masks(self.length, flips, stop)
        keys = (values[:, :, None] ^ masks).ravel()
        starts = self.starts.take(keys)
        keys += 1
        counts = self.starts.take(keys)
        counts -= starts
        there = counts.nonzero()[0]
        starts, counts = starts.take(there), counts.take(there)
        rings = there // len(masks)  # numbered by query and substring
        if needed.min() < self.substrings:  # any rings will do: the emptiest
            codes = np.bincount(rings, counts, minlength=values.size).reshape(values.shape)
            order = codes.argsort(axis=1, kind="stable").argsort(axis=1)
            use = (order < needed[:, None]).ravel()[rings].nonzero()[0]
            rings, starts, counts = rings[use], starts[use], counts[use]
        return rings // self.substrings, starts, counts

    def _measure(
        self, words: Integers, starts: Integers, counts: Integers, asked: Integers, limits: Integers
    ) -> NDArray[np.int64]:
        """The codes in some stretches that are within the limits of their queries, as packed keys."""
        before = counts.cumsum()
        before -= counts
        places = (starts - before).repeat(counts)
        places += np.arange(len(places), dtype=places.dtype)
        rows = self.places.take(places)
        queries = asked.repeat(counts)
        if len(words) > 1:
            words, limits = words.take(queries, axis=0), limits.take(queries)
        differ = self._words.take(rows, axis=0)
        differ ^= words
        columns = np.bitwise_count(differ).T
        # numpy is slow at sums of few columns
        distances = (
            columns.sum(axis=0, dtype=np.int32)
            if len(columns) > 2
            else sum(columns[1:], start=columns[0])
        )
        close = (distances <= limits).nonzero()[0]
        return self._keys.pack(queries[close], distances[close], rows[close])


def _shape(codes: int, bits: int) -> tuple[int, int]:
    """How many substrings, and their length: about one key for every code, and two to four of a short code."""
    if bits <= SHORT:
        return 1, min(bits, _LONGEST, max(codes, 2).bit_length() + 1)
    best = min(max(4.0, log2(max(codes, 2)) - 0.5), _LONGEST - 3)
    count = max(ceil(bits / (best + 2)), round(bits / best))
    return count, bits // count


def _kind(places: int) -> np.dtype[np.unsignedinteger]:
    """The type of numbers that so many places need."""
    return np.dtype(np.uint32) if places < 1 << 32 else np.dtype(np.uint64)


def _read(codes: Codes, groups: NDArray[np.int32]) -> NDArray[np.int64]:
    """The substrings of codes as numbers, (codes, substrings); `groups` has the bits of each, (substrings, length)."""
    weights = 1 << np.arange(groups.shape[1])[::-1]
    values: NDArray[np.int64] = np.unpackbits(codes, axis=1).take(groups, axis=1) @ weights
    return values


@lru_cache(maxsize=256)
def _masks(length: int, flips: int, stop: int) -> NDArray[np.int64]:
    """The numbers of so many bits with `flips` to `stop` - 1 of them set."""
    chosen = (bits for count in range(flips, stop) for bits in combinations(range(length), count))
    return np.array(sorted(sum(1 << bit for bit in bits) for bits in chosen))


def _words(codes: Codes) -> NDArray[np.unsignedinteger]:
    """The codes as the largest words that their bytes divide into, (codes, words), without a copy."""
    return codes.view(f"u{gcd(codes.shape[1], 8)}")
