"""A table of keys on disk: sorted, with the rows that have each, to look rows up in by touching a block or two."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parabit.index.store.arrays import BLOCK, CheckedWriter, MappedArrays

KEYS, ROWS, HEADS = ".keys", ".rows", ".heads"
_STEP = BLOCK // 8  # a head is the first key of a block
_AT_ONCE = 1 << 21  # entries sorted in memory at a time
_BUCKETS = 1 << 16  # by the first bits of a key, to cut the keys into ranges that fit


class TableWriter:
    """Sorts entries on disk, in bounded memory.

    Entries of one key must be added with their rows ascending, which documents in their order are by themselves.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._spool = folder / f"{name}.spool"
        self._file = self._spool.open("wb")
        self._counts = np.zeros(_BUCKETS, dtype=np.int64)
        self._length = 0

    def add(self, keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        """Take more entries."""
        entries = np.empty((len(keys), 2), dtype=np.uint64)
        entries[:, 0], entries[:, 1] = keys, rows
        self._file.write(entries.data)
        self._counts += np.bincount((keys >> np.uint64(48)).astype(np.int64), minlength=_BUCKETS)
        self._length += len(keys)

    def finish(self, keys: CheckedWriter, rows: CheckedWriter, heads: CheckedWriter) -> None:
        """Write the table and remove what was kept aside."""
        self._file.close()
        for some_keys, some_rows in self._sorted():
            first = -keys.length % _STEP
            heads.append(some_keys[first::_STEP])
            keys.append(some_keys)
            rows.append(some_rows)
        self._spool.unlink()

    def close(self) -> None:
        """Let go of the file after an error."""
        self._file.close()

    def _sorted(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
        for first, last in self._ranges():
            held = int(self._counts[first:last].sum())
            if held <= _AT_ONCE:
                parts = [_within(piece, first, last) for piece in self._pieces()]
                entries = np.concatenate(parts)
                # Stable, so that the rows of a key stay in order.
                order = np.argsort(entries[:, 0], kind="stable")
                yield entries[order, 0], entries[order, 1].astype(np.int64)
                continue
            # So many of one bucket are a value that millions share, and perhaps few others. Each by itself then, in the
            # order that it came in, which is sorted.
            present = [np.unique(_within(piece, first, last)[:, 0]) for piece in self._pieces()]
            for key in np.unique(np.concatenate(present)):
                for piece in self._pieces():
                    same = piece[piece[:, 0] == key]
                    yield same[:, 0], same[:, 1].astype(np.int64)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of buckets, each with no more entries than fit, unless it is a single one."""
        ends = np.cumsum(self._counts)
        first = 0
        while first < _BUCKETS and self._length:
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + _AT_ONCE, side="right")))
            if ends[last - 1] > before:
                yield first, last
            first = last

    def _pieces(self) -> Iterator[NDArray[np.uint64]]:
        with self._spool.open("rb") as file:
            while content := file.read(16 * _AT_ONCE):
                yield np.frombuffer(content, dtype=np.uint64).reshape(-1, 2)


class Table:
    """Finds rows by key."""

    def __init__(self, arrays: MappedArrays, name: str) -> None:
        self._arrays = arrays
        self._name = name
        self.keys: NDArray[np.uint64] = arrays[name + KEYS]
        self.rows: NDArray[np.int64] = arrays[name + ROWS]
        self._heads: NDArray[np.uint64] = arrays[name + HEADS]

    def bounds(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each key begin and end; what is read on the way is checked."""
        size = np.array([len(self._heads)])
        self._arrays.need(self._name + HEADS, size * 0, size)
        starts, stops = self._place(keys, "left"), self._place(keys, "right")
        self._arrays.need(self._name + ROWS, starts, stops)
        return starts, stops

    def rows_of(self, key: int) -> NDArray[np.int64]:
        """The rows that have a key, ascending."""
        starts, stops = self.bounds(np.array([key], dtype=np.uint64))
        return self.rows[starts[0] : stops[0]]

    def _place(self, keys: NDArray[np.uint64], side: str) -> NDArray[np.int64]:
        """`np.searchsorted`, by way of the heads: it reads the one block that it checks, and no other."""
        block = np.searchsorted(self._heads, keys, side="left" if side == "left" else "right") - 1
        low = np.maximum(block, 0) * _STEP
        high = np.where(block < 0, 0, np.minimum(low + _STEP, len(self.keys)))
        self._arrays.need(self._name + KEYS, low, high)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            found = self.keys[np.minimum(middle, len(self.keys) - 1)]
            after = open_ & ((found < keys) if side == "left" else (found <= keys))
            low, high = np.where(after, middle + 1, low), np.where(open_ & ~after, middle, high)
        return low


def _within(piece: NDArray[np.uint64], first: int, last: int) -> NDArray[np.uint64]:
    bucket = piece[:, 0] >> np.uint64(48)
    return piece[(bucket >= first) & (bucket < last)]
