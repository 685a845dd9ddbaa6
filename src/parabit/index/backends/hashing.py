"""What hash tables and multi-index hashing have in common: buckets, and a scan for what they would be too slow for."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.index.backends.base import Arrays, check_asked, check_kept, check_searched
from parabit.index.backends.flat import Flat
from parabit.index.backends.groups import group
from parabit.index.results import Found, Keys, Nearest, join
from parabit.parallel import cores, ordered_map
from parabit.progress import Progress, Report, silent

_SAMPLED = 20_000  # codes that show which bits go together
_READ_AT_A_TIME = 8192  # codes whose substrings are read at once, so that what that takes stays in the cache


def spread(codes: NDArray[np.uint8], bits: int, lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    """Bits for substrings of these lengths, each bit at most once, so that those in one agree by chance alone.

    Example:
        >>> codes = np.array([[0b00110000], [0b11000000], [0b11110000], [0b00000000]], dtype=np.uint8)
        >>> spread(codes, bits=4, lengths=[2, 2])  # the first two bits are always equal, and so are the last two
        [array([0, 2]), array([1, 3])]
    """
    step = max(1, len(codes) // _SAMPLED)
    signs = np.unpackbits(np.ascontiguousarray(codes[::step]), axis=1, count=bits).astype(np.float32) * 2 - 1
    together = (signs.T @ signs / max(1, len(signs))) ** 2  # (bits, bits), 1 where two bits always say the same
    mean = signs.mean(axis=0) if len(signs) else np.zeros(bits)
    groups: list[list[int]] = [[] for _ in lengths]
    # The most balanced bits first: should there be more bits than places, those that say least are left.
    for bit in np.argsort(np.round(np.abs(mean), 2), kind="stable"):
        open_ones = [place for place, length in enumerate(lengths) if len(groups[place]) < length]
        if not open_ones:
            break
        loads = [
            (float(together[bit, groups[place]].sum()), len(groups[place]) - lengths[place]) for place in open_ones
        ]
        groups[open_ones[loads.index(min(loads))]].append(int(bit))
    return [np.sort(np.array(group, dtype=np.int64)) for group in groups]


class Substrings:
    """Reads substrings out of codes, each as a number.

    Example:
        >>> substrings = Substrings(12, [np.array([0, 1, 2]), np.array([3, 11])])
        >>> substrings.read(np.array([[0b10100000, 0b00010000]], dtype=np.uint8))
        array([[5, 1]], dtype=uint32)
    """

    def __init__(self, bits: int, groups: Sequence[NDArray[Any]]) -> None:
        self.bits, self.lengths = groups, [len(group) for group in groups]
        width = -(-bits // 8)
        # What each value of each byte adds to each substring: a look-up a byte, whatever bits go where.
        self._parts = np.zeros((width, 256, len(groups)), dtype=np.uint32)
        values = np.arange(256)
        for substring, chosen in enumerate(groups):
            for rank, bit in enumerate(chosen.tolist()):
                here = (values >> (7 - bit % 8)) & 1
                self._parts[bit // 8, :, substring] |= (here << (len(chosen) - 1 - rank)).astype(np.uint32)
        self._bytes = np.arange(width)

    def read(self, codes: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """The substrings of codes, (codes, substrings)."""
        if len(codes) <= _READ_AT_A_TIME:
            few: NDArray[np.uint32] = np.bitwise_or.reduce(self._parts[self._bytes, codes], axis=1)
            return few
        read = np.empty((len(codes), len(self.bits)), dtype=np.uint32)
        for start in range(0, len(codes), _READ_AT_A_TIME):
            some = slice(start, start + _READ_AT_A_TIME)
            np.bitwise_or.reduce(self._parts[self._bytes, codes[some]], axis=1, out=read[some])
        return read


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


_WORDS = [np.dtype(f"u{size}") for size in (8, 1, 2, 1, 4, 1, 2, 1)]  # by the bytes left over from words of 8
_AT_A_TIME = 1 << 15  # candidates measured at once, so that memory stays bounded and most of it in the cache


class Candidates:
    """Measures candidates of queries.

    Example:
        >>> codes = np.array([[0b00000000], [0b11110000], [0b11000000]], dtype=np.uint8)
        >>> candidates = Candidates(codes, bits=8, places=np.array([2, 0, 1]))
        >>> looked = Ranges(np.array([0]), np.array([0]), np.array([2]))  # the first two places, for query 0
        >>> hits = candidates.near(codes[:1], looked, np.array([0]), limits=np.array([2]))
        >>> candidates.keys.found(hits, queries=1).rows
        array([0, 2])
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        bits: int,
        places: NDArray[np.integer] | None,
        rows: NDArray[np.integer] | None = None,
    ) -> None:
        self.keys = Keys(len(codes), bits)
        self._places, self._codes = places, _words(codes)  # None: a range is of places
        self._rows = rows  # of the codes, where these are in an order of their own

    def near(
        self,
        queries: NDArray[np.uint8],
        ranges: Ranges,
        asked: NDArray[np.integer],
        limits: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """The candidates in the ranges, range i for query asked[i], that are within the limit of their query.

        They come as packed keys, sorted; a row that is in several ranges of a query comes several times.
        """
        words = _words(np.ascontiguousarray(queries))
        near = [self._near(words, *some, limits) for some in _pieces(ranges, asked)]
        packed = np.concatenate(near) if len(near) != 1 else near[0]
        packed.sort()
        return packed

    def _near(
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
        places = ranges if self._places is None else self._places.take(ranges)
        if len(words) == 1:
            return self._close(places, words, None, limits[0])
        asked = queries.repeat(counts)
        return self._close(places, words.take(asked, axis=0), asked, limits.take(asked))

    def near_one(self, query: NDArray[np.uint8], places: NDArray[np.integer], limit: int) -> NDArray[np.int64]:
        """The candidates at these places that are within the limit of a single query, as packed keys, not sorted."""
        return self._close(places, _words(np.ascontiguousarray(query)), None, limit)

    def _close(
        self,
        places: NDArray[np.integer],
        words: NDArray[np.unsignedinteger],
        asked: NDArray[np.integer] | None,
        limits: NDArray[np.integer] | np.integer | int,
    ) -> NDArray[np.int64]:
        distances = self._distances(places, words)
        close = (distances <= limits).nonzero()[0]
        rows = places.take(close)
        if self._rows is not None:
            rows = self._rows.take(rows)
        return self.keys.pack(None if asked is None else asked.take(close), distances.take(close), rows)

    def _distances(self, places: NDArray[np.integer], words: NDArray[np.unsignedinteger]) -> NDArray[np.integer]:
        """How far the codes at places are from the codes beside them, or from a single one."""
        if self._codes.shape[1] == 1:
            alone: NDArray[np.integer] = np.bitwise_count(self._codes[:, 0].take(places) ^ words[:, 0])
            return alone
        differ = self._codes.take(places, axis=0)
        differ ^= words
        counted: NDArray[np.integer] = np.bitwise_count(differ)
        if counted.shape[1] == 2:  # numpy is slow at sums over few columns
            counted[:, 0] += counted[:, 1]
            return counted[:, 0]
        summed: NDArray[np.int32] = counted.sum(axis=1, dtype=np.int32)
        return summed


def _pieces(
    ranges: Ranges, queries: NDArray[np.integer]
) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.integer]]]:
    """The ranges in pieces of a bounded number of candidates; a range that is longer by itself is cut."""
    starts: NDArray[np.integer] = ranges.starts
    counts: NDArray[np.integer] = ranges.counts
    total = int(counts.sum())
    if total <= _AT_A_TIME:
        yield starts, counts, queries
        return
    if counts.max() > _AT_A_TIME:
        parts = -(-counts.astype(np.int64) // _AT_A_TIME)
        piece = np.arange(int(parts.sum())) - np.repeat(np.cumsum(parts) - parts, parts)
        starts = np.repeat(starts, parts).astype(np.int64) + piece * _AT_A_TIME
        counts = np.minimum(np.repeat(counts, parts).astype(np.int64) - piece * _AT_A_TIME, _AT_A_TIME)
        queries = np.repeat(queries, parts)
    group = np.cumsum(counts, dtype=np.int64) // _AT_A_TIME
    for edges in np.split(np.arange(len(group)), np.flatnonzero(np.diff(group)) + 1):
        some = slice(edges[0], edges[-1] + 1)
        yield starts[some], counts[some], queries[some]


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """The codes as the largest words that their bytes divide into, (codes, words), without a copy."""
    words: NDArray[np.unsignedinteger] = codes.view(_WORDS[codes.shape[1] % 8])
    return words


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
