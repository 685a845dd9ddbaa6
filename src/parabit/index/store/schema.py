"""What a document is to the store: the arrays that documents are kept in, their ids, and their fields as JSON."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.errors import IndexFolderError
from parabit.index.filters import number_of

Id: TypeAlias = str | int
Value: TypeAlias = str | int | float | bool | None
Arrays: TypeAlias = dict[str, NDArray[Any]]

CODES, IDS, RECORDS, SERIALS = "codes", "ids", "records", "serials"
OFFSETS = ".offsets"  # the array NAME.offsets says where each row of the ragged array NAME begins
EXTRA = "extra."  # prefix of extra arrays
VECTORS = "vectors"  # the extra array of an index
TEXT = "text"  # the one field that documents are not found by


class Ragged(NamedTuple):
    """Rows of different lengths: row i is `values[offsets[i]:offsets[i + 1]]`."""

    values: NDArray[Any]
    offsets: NDArray[np.int64]  # (rows + 1,), from 0


class Kind(NamedTuple):
    """What the rows of an extra array are: one number of a type, or `width` of them."""

    dtype: Any  # what np.dtype takes
    width: int | None = None


class Batch(NamedTuple):
    """Some documents: an id, a code and fields each (`text` is one of these), and a row of every extra array."""

    ids: Sequence[Id]
    codes: NDArray[np.uint8]  # (documents, bytes)
    fields: Sequence[Mapping[str, Any]] | None = None
    extra: Mapping[str, NDArray[Any]] = {}


class Layout(NamedTuple):
    """The type of an array, and the shape of one of its rows."""

    dtype: np.dtype[Any]
    row: tuple[int, ...] = ()


class Schema:
    """Which arrays documents are kept in: the same in a generation, in the log and in memory."""

    def __init__(self, bits: int, extra: Mapping[str, Kind]) -> None:
        self.bits = bits
        self.extra = dict(extra)
        text = Layout(np.dtype(np.uint8))
        self.layouts = {CODES: Layout(np.dtype(np.uint8), (-(-bits // 8),)), SERIALS: Layout(np.dtype(np.uint64))}
        self.layouts |= _ragged(IDS, text) | _ragged(RECORDS, text)
        for name, kind in extra.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
                raise IndexFolderError(f"an extra array cannot be named {name!r}", hint="use letters, digits, - and _")
            layout = Layout(np.dtype(kind.dtype), () if kind.width is None else (kind.width,))
            if layout.dtype.hasobject:
                raise IndexFolderError(f"{name} has Python objects, which are not kept", hint="give numbers")
            self.layouts[EXTRA + name] = layout

    def arrays_of(self, batch: Batch, first_serial: int) -> Arrays:
        """A batch as the arrays it is kept in, with serial numbers from `first_serial` on; raise if it does not fit."""
        count = len(batch.ids)
        codes = np.asarray(batch.codes)
        check_codes(codes, self.bits)
        if codes.ndim != 2 or len(codes) != count:
            raise IndexFolderError(f"{count} ids and codes of shape {codes.shape}", hint="give a code for each id")
        fields = [{}] * count if batch.fields is None else batch.fields
        if len(fields) != count:
            raise IndexFolderError(f"{count} ids and fields of {len(fields)} documents", hint="give fields for each id")
        if batch.extra.keys() != self.extra.keys():
            found, wanted = sorted(batch.extra), sorted(self.extra)
            raise IndexFolderError(f"the index keeps the extra arrays {wanted}, found {found}", hint="give these")
        ids = joined([id_bytes(identity) for identity in batch.ids])
        records = joined([record_of(some, identity) for some, identity in zip(fields, batch.ids, strict=True)])
        arrays: Arrays = {
            CODES: np.ascontiguousarray(codes),
            SERIALS: np.arange(first_serial, first_serial + count, dtype=np.uint64),
            IDS: ids.values,
            IDS + OFFSETS: ids.offsets,
            RECORDS: records.values,
            RECORDS + OFFSETS: records.offsets,
        }
        for name, given in batch.extra.items():
            arrays[EXTRA + name] = _fitting(name, given, self.layouts[EXTRA + name], count)
        return arrays


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


def joined(rows: Sequence[bytes]) -> Ragged:
    """Byte strings as one array."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)), out=offsets[1:])
    return Ragged(np.frombuffer(b"".join(rows), dtype=np.uint8), offsets)


def strings(array: Ragged, rows: NDArray[np.int64]) -> list[bytes]:
    """Some rows of a ragged array of bytes."""
    starts, stops = array.offsets[rows], array.offsets[rows + 1]
    if (starts > stops).any() or stops.max(initial=0) > len(array.values):
        raise IndexFolderError(
            "an array of the index is damaged: its offsets are impossible",
            hint="find it with `parabit info INDEX --verify`, and restore it from a copy",
        )
    values = array.values.data
    return [bytes(values[start:stop]) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def id_bytes(identity: Id) -> bytes:
    """An id as bytes; 7 and "7" are two ids: b"i7" and b"s7"."""
    if isinstance(identity, str):
        return b"s" + identity.encode("utf-8", "surrogatepass")
    if isinstance(identity, int | np.integer) and not isinstance(identity, bool):
        return b"i%d" % identity
    raise IndexFolderError(
        f"an id must be a string or an integer, found {identity!r}", hint="convert it, for example with str()"
    )


def id_of(written: bytes) -> Id:
    """The id that `id_bytes` wrote."""
    return written[1:].decode("utf-8", "surrogatepass") if written[:1] == b"s" else int(written[1:])


def need_distinct(ids: Sequence[Id]) -> None:
    """Raise if an id is given twice."""
    seen: set[bytes] = set()
    for identity in ids:
        if (written := id_bytes(identity)) in seen:
            raise IndexFolderError(f"the id {identity!r} is given twice", hint="ids must be unique")
        seen.add(written)


def hashes(rows: Iterable[bytes]) -> NDArray[np.uint64]:
    """64 bits of BLAKE2b of each: the same in every process and version, and evenly spread whatever goes in."""
    return np.frombuffer(b"".join([blake2b(row, digest_size=8).digest() for row in rows]), dtype="<u8")


def record_of(fields: Mapping[str, Any], identity: Id) -> bytes:
    """The fields of a document as bytes."""
    for name in fields:
        if not isinstance(name, str):
            raise IndexFolderError(f"document {identity!r} has a field named {name!r}", hint="names are strings")
    try:
        text = _ENCODER.encode(dict(fields))
    except (TypeError, ValueError, RecursionError) as problem:
        raise IndexFolderError(
            f"a field of document {identity!r} cannot be kept: {problem}",
            hint="give strings, numbers, true or false, None, and lists of these",
        ) from problem
    return text.encode("utf-8", "surrogatepass")


def fields_in(record: bytes) -> dict[str, Any]:
    """The fields that `record_of` wrote."""
    try:
        fields: dict[str, Any] = _DECODER.decode(record.decode("utf-8", "surrogatepass"))
    except ValueError as problem:
        raise IndexFolderError(
            "the record of a document is damaged", hint="find out with `parabit info INDEX --verify`"
        ) from problem
    return fields


def keys_of(fields: Mapping[str, Any]) -> Iterator[int]:
    """The keys that a document is found by: one for every value of a field, and for every item if it is a list."""
    for name, value in fields.items():
        if name == TEXT:
            continue
        if isinstance(value, np.generic | np.ndarray):
            value = value.tolist()
        if isinstance(value, list | tuple):
            yield from {field_key(name, item) for item in value if _is_value(item)}
        elif _is_value(value):
            yield field_key(name, value)


def field_key(name: str, value: Value) -> int:
    """64 bits that stand for a value of a field; two values share theirs with a chance of 1 in 2^64.

    Numbers are equal if they are equal in Python, as 1 and 1.0, but True is not a number, and NaN is None.
    """
    return _key(name, value.item() if isinstance(value, np.generic) else value)


@lru_cache(maxsize=1 << 14, typed=True)  # labels come again and again
def _key(name: str, value: Value) -> int:
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None if math.isnan(value) else value
    return int(hashes([json.dumps([name, value]).encode()])[0])


def numbers_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The fields of a document that can be compared with numbers or dates, as numbers."""
    for name, value in fields.items():
        if name != TEXT and (number := number_of(value)) is not None:
            yield name, number


@lru_cache(maxsize=1 << 10)
def number_key(name: str) -> int:
    """64 bits that stand for the name of a field with numbers."""
    return int(hashes([name.encode("utf-8", "surrogatepass")])[0])


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | np.generic)


def _plain(value: object) -> object:
    """What json asks for a value it does not know: numpy's numbers and arrays are as good as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
# NaN is written if there is no value, as pandas has it; JSON does not know it, so it is read as null.
_DECODER = json.JSONDecoder(parse_constant=lambda constant: None if constant == "NaN" else float(constant))
