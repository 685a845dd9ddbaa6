"""What hash tables and multi-index hashing share: codes sorted by their substrings, as arrays that can be mapped.

A substring is some bits of a code, read as a number. For each substring there is a table: the rows of all codes sorted
by its value, and where each value's rows start. What would take longer than a scan is left to a scan.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.index.backends.base import Arrays, Backend
from parabit.index.backends.flat import Flat
from parabit.index.results import Found, Keys, join
from parabit.parallel import cores, ordered_map
from parabit.progress import Progress, Report

LONGEST = 28  # bits of a substring: its table of starts takes a gigabyte
# What things cost, in nanoseconds of one core, measured with benchmarks/index_speed.py. Only the ratios matter.
LOOK_UP = 28.0  # one key in the table of starts
CANDIDATE = 32.0  # one row: found, its code fetched and measured

_SAMPLED = 20_000  # codes that show which bits go together
_READ_AT_A_TIME = 8192  # codes whose substrings are read at once, so that what that takes stays in the cache
_CODES_AT_A_TIME = 1 << 18  # codes read from disk at a time while building
_CANDIDATES_AT_A_TIME = 1 << 15  # measured at once, so that memory stays bounded and most of it in the cache
_SMALLEST_BLOCK = 32  # queries that are worth a thread
_WORDS = [np.dtype(f"u{size}") for size in (8, 1, 2, 1, 4, 1, 2, 1)]  # by the bytes left over from words of 8


def scan_cost(codes: int, width: int) -> float:
    """What a scan of so many codes of so many bytes costs per query."""
    return codes * max(0.7, width / 16)


class Ranges(NamedTuple):
    """Stretches of `Hashed.places` to look at, each for one cell (a query and a substring)."""

    cells: NDArray[np.int64]
    starts: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]

    def only(self, which: NDArray[np.bool_]) -> "Ranges":
        """Those that are marked."""
        return Ranges(self.cells[which], self.starts[which], self.counts[which])


class Hashed(Backend):
    """A back end that looks codes up by the values of their substrings.

    All substrings share two arrays: `starts[bases[substring] + value]` is where in `places` the rows of the codes with
    this value start, and the next entry where they end.
    """

    def __init__(self, codes: NDArray[np.uint8], bits: int, arrays: Arrays | None = None) -> None:
        super().__init__(codes, bits)
        if arrays is None:
            arrays = self.build(codes, bits)
        lengths = arrays["lengths"].tolist()
        self.substrings = Substrings(bits, np.split(np.asarray(arrays["bits"]), np.cumsum(lengths)[:-1]))
        self.starts, self.places = np.asarray(arrays["starts"]), np.asarray(arrays["places"])
        self.bases = np.cumsum([0, *(1 << length for length in lengths)])[:-1]
        self.keys = Keys(len(codes), bits)
        self._words = _words(self.codes)
        self._flat = Flat(self.codes, bits)
        self._scan_cost = scan_cost(*self.codes.shape)

    def search(self, queries: NDArray[np.uint8], most: int | None = None, radius: int | None = None) -> Found:
        """The nearest `most` codes of each query, or all within `radius` bits, or the nearest of those."""
        if not len(self.codes) or not len(queries):
            return Found.nothing(len(queries))
        farthest = self.bits if radius is None else min(radius, self.bits)
        return self._search(queries, farthest, None if most is None else min(most, len(self.codes)))

    @abstractmethod
    def _search(self, queries: NDArray[np.uint8], radius: int, k: int | None) -> Found:
        """The k nearest codes within the radius, or all of them."""

    def _by_blocks(
        self,
        queries: NDArray[np.uint8],
        radius: int,
        k: int | None,
        look: Callable[[NDArray[np.uint8]], tuple[Found, NDArray[np.int64]]],
        block: int,
    ) -> Found:
        """Look up blocks of queries on all cores, and scan for those that `look` says are too dear to look up."""
        # At least two blocks per core, so that none waits for the other, but none so small that threads do not pay.
        block = min(block, max(_SMALLEST_BLOCK, -(-len(queries) // (2 * cores()))))
        blocks = [queries[start : start + block] for start in range(0, len(queries), block)]
        done = list(ordered_map(look, blocks) if len(blocks) > 1 else map(look, blocks))
        found = join([part for part, _ in done])
        dear = np.concatenate([left + block * number for number, (_, left) in enumerate(done)])
        return found.replace(dear, self._flat.search(queries[dear], k, radius)) if len(dear) else found

    def _affordable(self, queries: int) -> float:
        """What looking up may cost per query so that a scan is not faster."""
        # A scan has a thread for every query, looking up one for every block of them.
        return self._scan_cost * min(cores(), -(-queries // _SMALLEST_BLOCK)) / min(cores(), queries)

    def look_up(
        self, keys: NDArray[np.int64]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """Where the places of keys start, how many they are, and which of the keys have any; the keys are used up."""
        first = self.starts.take(keys)
        keys += 1
        counts = self.starts.take(keys)
        counts -= first
        there = counts.nonzero()[0]
        return first.take(there), counts.take(there), there

    def near(
        self, queries: NDArray[np.uint8], ranges: Ranges, asked: NDArray[np.integer], limits: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """The codes in the ranges, range i for query asked[i], that are within the limit of their query.

        They come as packed keys, sorted; a row that is in several ranges of a query comes several times.
        """
        words = _words(np.ascontiguousarray(queries))
        hits = [self._measure(words, *some, limits) for some in _pieces(ranges, asked)]
        packed = np.concatenate(hits) if len(hits) != 1 else hits[0]
        packed.sort()
        return packed

    def _measure(
        self,
        words: NDArray[np.unsignedinteger],
        starts: NDArray[np.integer],
        counts: NDArray[np.integer],
        queries: NDArray[np.integer],
        limits: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        before = counts.cumsum()
        before -= counts
        ranges = (starts - before).repeat(counts)
        ranges += np.arange(len(ranges), dtype=ranges.dtype)
        rows = self.places.take(ranges)
        asked = None
        if len(words) > 1:
            asked = queries.repeat(counts)
            words, limits = words.take(asked, axis=0), limits.take(asked)
        distances = self._distances(rows, words)
        close = (distances <= limits).nonzero()[0]
        return self.keys.pack(None if asked is None else asked.take(close), distances.take(close), rows.take(close))

    def _distances(self, rows: NDArray[np.integer], words: NDArray[np.unsignedinteger]) -> NDArray[np.integer]:
        """How far the codes in rows are from the codes beside them, or from a single one."""
        if self._words.shape[1] == 1:
            alone: NDArray[np.integer] = np.bitwise_count(self._words[:, 0].take(rows) ^ words[:, 0])
            return alone
        differ = self._words.take(rows, axis=0)
        differ ^= words
        counted: NDArray[np.integer] = np.bitwise_count(differ)
        if counted.shape[1] == 2:  # numpy is slow at sums over few columns
            counted[:, 0] += counted[:, 1]
            return counted[:, 0]
        summed: NDArray[np.int32] = counted.sum(axis=1, dtype=np.int32)
        return summed


class Substrings:
    """Reads substrings out of codes, each as a number; `groups` are the bits of each."""

    def __init__(self, bits: int, groups: Sequence[NDArray[Any]]) -> None:
        self.lengths = [len(group) for group in groups]
        width = -(-bits // 8)
        # What each value of each byte adds to each substring: one look-up per byte, whatever bits go where.
        self._parts = np.zeros((width, 256, len(groups)), dtype=np.uint32)
        values = np.arange(256)
        for substring, group in enumerate(groups):
            for rank, bit in enumerate(group.tolist()):
                here = (values >> (7 - bit % 8)) & 1
                self._parts[bit // 8, :, substring] |= (here << (len(group) - 1 - rank)).astype(np.uint32)
        self._bytes = np.arange(width)

    def read(self, codes: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """The substrings of codes, (codes, substrings)."""
        if len(codes) <= _READ_AT_A_TIME:
            few: NDArray[np.uint32] = np.bitwise_or.reduce(self._parts[self._bytes, codes], axis=1)
            return few
        read = np.empty((len(codes), len(self.lengths)), dtype=np.uint32)
        for start in range(0, len(codes), _READ_AT_A_TIME):
            some = slice(start, start + _READ_AT_A_TIME)
            np.bitwise_or.reduce(self._parts[self._bytes, codes[some]], axis=1, out=read[some])
        return read


def spread(codes: NDArray[np.uint8], bits: int, lengths: Sequence[int]) -> list[NDArray[np.int32]]:
    """Bits for substrings of these lengths, each bit at most once, so that those in one agree by chance alone.

    Two bits in one substring that say the same would make its values half as many, and their rows twice as many.
    """
    step = max(1, len(codes) // _SAMPLED)
    signs = np.unpackbits(np.ascontiguousarray(codes[::step]), axis=1, count=bits).astype(np.float32) * 2 - 1
    together = (signs.T @ signs / max(1, len(signs))) ** 2  # (bits, bits), 1 where two bits always say the same
    mean = signs.mean(axis=0) if len(signs) else np.zeros(bits)
    groups: list[list[int]] = [[] for _ in lengths]
    # The most balanced bits first: if there are more bits than places, those that say least are left out.
    for bit in np.argsort(np.round(np.abs(mean), 2), kind="stable"):
        open_ones = [place for place, length in enumerate(lengths) if len(groups[place]) < length]
        if not open_ones:
            break
        loads = [
            (float(together[bit, groups[place]].sum()), len(groups[place]) - lengths[place]) for place in open_ones
        ]
        groups[open_ones[loads.index(min(loads))]].append(int(bit))
    return [np.sort(np.array(group, dtype=np.int32)) for group in groups]


def build_tables(
    codes: NDArray[np.uint8], bits: int, lengths: Sequence[int], report: Report
) -> dict[str, NDArray[Any]]:
    """Sort the rows by each of the substrings, one after the other."""
    total, count = len(codes), len(lengths)
    groups = spread(codes, bits, lengths)
    substrings = Substrings(bits, groups)
    values = np.empty((count, total), dtype=np.uint32)
    blocks = [slice(start, start + _CODES_AT_A_TIME) for start in range(0, total, _CODES_AT_A_TIME)]
    for some, read in zip(blocks, ordered_map(lambda block: substrings.read(codes[block]), blocks), strict=True):
        values[:, some] = read.T
    kind: type[np.unsignedinteger] = np.uint32 if total * count < 1 << 32 else np.uint64
    places = np.empty(total * count, dtype=kind)
    starts = np.zeros(sum(1 << length for length in lengths) + 1, dtype=kind)
    row_bits = max(1, total - 1).bit_length()
    base = 0
    for place, length in enumerate(lengths):
        # Value and row in one number: numpy sorts those five times as fast as it finds the order of values.
        packed = values[place].astype(np.int64)
        packed <<= row_bits
        packed |= np.arange(total)
        packed.sort()
        packed &= (1 << row_bits) - 1
        places[place * total : (place + 1) * total] = packed
        filled = np.bincount(values[place], minlength=1 << length)
        np.cumsum(filled, out=starts[base + 1 : base + (1 << length) + 1])
        starts[base + 1 : base + (1 << length) + 1] += kind(place * total)
        base += 1 << length
        report(Progress("building", place + 1, "tables", (place + 1) / count))
    return {
        "bits": np.concatenate(groups),
        "lengths": np.array(lengths, dtype=np.int32),
        "starts": starts,
        "places": places,
    }


@lru_cache(maxsize=64)
def ring(length: int, flips: int) -> NDArray[np.int64]:
    """All numbers of so many bits of which `flips` are set, in order."""
    numbers = np.zeros(comb(length, flips), dtype=np.int64)
    if flips:
        chosen = np.array(list(combinations(range(length), flips)), dtype=np.int64)
        numbers = np.sort((np.int64(1) << chosen).sum(axis=1))
    numbers.flags.writeable = False
    return numbers


def _pieces(
    ranges: Ranges, queries: NDArray[np.integer]
) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]]:
    """The ranges in pieces of a bounded number of candidates; a range that is longer by itself is cut."""
    starts: NDArray[np.integer] = ranges.starts
    counts: NDArray[np.integer] = ranges.counts
    most = _CANDIDATES_AT_A_TIME
    if int(counts.sum()) <= most:
        yield starts, counts, queries
        return
    if counts.max() > most:
        parts = -(-counts.astype(np.int64) // most)
        piece = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        starts = np.repeat(starts, parts).astype(np.int64) + piece * most
        counts = np.minimum(np.repeat(counts, parts).astype(np.int64) - piece * most, most)
        queries = np.repeat(queries, parts)
    group = np.cumsum(counts, dtype=np.int64) // most
    for edges in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        some = slice(edges[0], edges[-1] + 1)
        yield starts[some], counts[some], queries[some]


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """The codes as the largest words that their bytes divide into, (codes, words), without a copy."""
    words: NDArray[np.unsignedinteger] = codes.view(_WORDS[codes.shape[1] % 8])
    return words
