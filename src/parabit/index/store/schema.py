"""What a document is to the store, and the arrays that documents are kept in."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.errors import IndexFolderError

Id: TypeAlias = str | int
Arrays: TypeAlias = dict[str, NDArray[Any]]

OFFSETS = ".offsets"  # the array NAME.offsets tells where each row of the ragged array NAME begins
EXTRA = "extra."  # how the names of extra arrays begin
CODES, IDS, RECORDS, SERIALS = "codes", "ids", "records", "serials"


class Ragged(NamedTuple):
    """Rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`.

    Example:
        >>> bags = Ragged(np.array([5, 7, 7]), np.array([0, 1, 1, 3]))
        >>> bags.values[bags.offsets[2] : bags.offsets[3]].tolist()
        [7, 7]
    """

    values: NDArray[Any]  # (entries,) or (entries, width)
    offsets: NDArray[np.int64]  # (rows + 1,), from 0


class Kind(NamedTuple):
    """What the rows of an extra array are: numbers of one type, a fixed `width` of them or, if `ragged`, any number.

    Example:
        >>> vectors, bags = Kind("float16", 300), Kind([("feature", "<i4"), ("weight", "<f4")], ragged=True)
    """

    dtype: Any  # what np.dtype takes; several numbers an entry are a structured type
    width: int | None = None
    ragged: bool = False


class Batch(NamedTuple):
    """Some documents: an id, a code and fields each (`text` is one of these), and a row of every extra array.

    Example:
        >>> Batch(["a"], np.zeros((1, 4), np.uint8), [{"text": "hubble", "labels": ["space"]}]).ids
        ['a']
    """

    ids: Sequence[Id]
    codes: NDArray[np.uint8]  # (documents, bytes)
    fields: Sequence[Mapping[str, Any]] | None = None
    extra: Mapping[str, NDArray[Any] | Ragged] = {}


class Layout(NamedTuple):
    """The type of an array, and the shape of one of its rows."""

    dtype: np.dtype[Any]
    row: tuple[int, ...] = ()


class Schema:
    """Which arrays documents are kept in, the same in a generation, in the log and in memory."""

    def __init__(self, bits: int, extra: Mapping[str, Kind]) -> None:
        self.bits = bits
        self.extra = dict(extra)
        text = Layout(np.dtype(np.uint8))
        self.layouts = {CODES: Layout(np.dtype(np.uint8), (-(-bits // 8),)), **_ragged(IDS, text)}
        self.layouts |= _ragged(RECORDS, text)
        self.layouts[SERIALS] = Layout(np.dtype(np.uint64))
        for name, kind in extra.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise IndexFolderError(f"an extra array cannot be named {name!r}", hint="use letters, digits, - and _")
            layout = Layout(np.dtype(kind.dtype), () if kind.width is None else (kind.width,))
            if layout.dtype.hasobject:
                raise IndexFolderError(f"{name} has Python objects, which are not kept", hint="give numbers")
            self.layouts |= _ragged(EXTRA + name, layout) if kind.ragged else {EXTRA + name: layout}

    def arrays_of(self, batch: Batch) -> Arrays:
        """The codes and extra arrays of a batch as they are kept; anything that does not fit is told."""
        count = len(batch.ids)
        codes = np.asarray(batch.codes)
        check_codes(codes, self.bits)
        if codes.ndim != 2 or len(codes) != count:
            raise IndexFolderError(f"{count} ids and codes of shape {codes.shape}", hint="give a code for each id")
        if batch.extra.keys() != self.extra.keys():
            found, wanted = sorted(batch.extra), sorted(self.extra)
            raise IndexFolderError(f"the index keeps the extra arrays {wanted}, found {found}", hint="give these")
        arrays: Arrays = {CODES: np.ascontiguousarray(codes)}
        for name, given in batch.extra.items():
            layout = self.layouts[EXTRA + name]
            if not self.extra[name].ragged:
                if isinstance(given, Ragged):
                    raise IndexFolderError(f"{name} is given as ragged", hint="give an array with a row a document")
                arrays[EXTRA + name] = _fitting(name, given, layout, count)
                continue
            if not isinstance(given, Ragged):
                raise IndexFolderError(f"{name} is ragged, found an array", hint="give Ragged(values, offsets)")
            offsets = np.asarray(given.offsets, dtype=np.int64)
            entries = len(given.values)
            if len(offsets) != count + 1 or offsets[0] or offsets[-1] != entries or (np.diff(offsets) < 0).any():
                raise IndexFolderError(
                    f"the offsets of {name} do not go with {count} documents and {entries} values",
                    hint="give one more offset than documents, ascending, from 0 to the number of values",
                )
            arrays[EXTRA + name] = _fitting(name, given.values, layout, entries)
            arrays[EXTRA + name + OFFSETS] = offsets
        return arrays


def joined(rows: Sequence[bytes]) -> Ragged:
    """Strings of bytes as one array.

    Example:
        >>> joined([b"ab", b"", b"c"]).offsets.tolist()
        [0, 2, 2, 3]
    """
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)), out=offsets[1:])
    return Ragged(np.frombuffer(b"".join(rows), dtype=np.uint8), offsets)


def taken(array: Ragged, rows: NDArray[np.int64]) -> Ragged:
    """Some rows of a ragged array.

    Example:
        >>> taken(joined([b"ab", b"", b"c"]), np.array([2, 0])).values.tobytes()
        b'cab'
    """
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    starts, stops = array.offsets[rows], array.offsets[rows + 1]
    np.cumsum(stops - starts, out=offsets[1:])
    # Rows that stand side by side are copied in one go: most of them, when few documents were deleted.
    breaks = np.flatnonzero(rows[1:] != rows[:-1] + 1) + 1
    pieces = [
        array.values[starts[first] : stops[last - 1]]
        for first, last in zip([0, *breaks.tolist()], [*breaks.tolist(), len(rows)], strict=True)
        if last > first
    ]
    return Ragged(np.concatenate(pieces) if pieces else array.values[:0], offsets)


def _ragged(name: str, layout: Layout) -> dict[str, Layout]:
    return {name: layout, name + OFFSETS: Layout(np.dtype(np.int64))}


def _fitting(name: str, given: NDArray[Any], layout: Layout, count: int) -> NDArray[Any]:
    given = np.asarray(given)
    if given.shape != (count, *layout.row) or given.dtype != layout.dtype:
        raise IndexFolderError(
            f"{name} must be {layout.dtype} of shape {(count, *layout.row)}, found {given.dtype} {given.shape}",
            hint="convert it, or make the index with another kind",
        )
    return np.ascontiguousarray(given)
