"""What a document is to the store: an id, fields as JSON, a row in some arrays, and keys that it is
found by.
"""

import json
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import isnan, nan, prod
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from parabit.characters import without_halves
from parabit.codes import check_codes
from parabit.corpus import number_of
from parabit.corpus.document import (
    DEEPEST,
    RefusedError,
    check_id,
    clean_fields,
    clean_value,
)
from parabit.errors import IndexDamagedError, IndexFolderError

Id: TypeAlias = str | int
Value: TypeAlias = str | int | float | bool | None
Arrays: TypeAlias = dict[str, NDArray[Any]]

CODES, SERIALS, VECTORS, IDS, RECORDS = "codes", "serials", "vectors", "ids", "records"
TEXT = "text"  # the one field that documents are not found by
_LONGEST_REMEMBERED = 200  # characters of a name and its value whose key is kept in memory
_COUNTS = struct.Struct("<QQ")  # deleted and added documents
_FLAT = frozenset((str, int, float, bool, type(None)))  # types of values that cannot be nested
_TOO_DEEP = f"(left out: nested more than {DEEPEST} deep)"
# A string as a whole, as a bracket in it is none. Each matches in one way, also without its end:
# that is linear time.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.S)


class Batch(NamedTuple):
    """Some documents: an id, a code and fields each (`text` is one of these), and perhaps a vector."""

    ids: Sequence[Id]
    codes: NDArray[np.uint8]  # (documents, bytes)
    fields: Sequence[Mapping[str, Any]] | None = None
    vectors: NDArray[np.float16] | None = None  # (documents, dim)


class Columns(NamedTuple):
    """Documents as they are stored: ids and fields as bytes, and a row each of the codes, serials
    and vectors.
    """

    ids: Sequence[bytes]
    records: Sequence[bytes]
    arrays: Arrays


class Change(NamedTuple):
    """A step in the life of an index: some rows are deleted, then documents are added."""

    deleted: NDArray[np.int64]
    added: Columns


def columns_of(batch: Batch | None, bits: int, dim: int, first_serial: int) -> Columns:
    """A batch as it is stored, with serial numbers from `first_serial` on; raise if it does not
    fit.
    """
    if batch is None:
        return Columns([], [], {})
    count, codes, vectors = len(batch.ids), np.asarray(batch.codes), batch.vectors
    check_codes(codes, bits)
    if codes.ndim != 2 or len(codes) != count:
        raise IndexFolderError(
            f"{count} ids and codes of shape {codes.shape}", hint="give a code for each id"
        )
    fields = [{}] * count if batch.fields is None else batch.fields
    arrays: Arrays = {
        CODES: codes,
        SERIALS: np.arange(first_serial, first_serial + count, dtype=np.uint64),
    }
    wanted = f"float16 vectors of shape {(count, dim)}" if dim else "no vectors"
    found = "no vectors" if vectors is None else f"{vectors.dtype} vectors of shape {vectors.shape}"
    if found != wanted:
        raise IndexFolderError(
            f"the index keeps {wanted}, found {found}", hint="give what it keeps"
        )
    if vectors is not None:
        arrays[VECTORS] = vectors
    for identity in batch.ids:
        _check_id(identity)
    records = [record_of(some, identity) for some, identity in zip(fields, batch.ids, strict=True)]
    return Columns([id_bytes(identity) for identity in batch.ids], records, arrays)


def pack(change: Change) -> bytes:
    """A change as a record of the log: counts, deleted rows, arrays, and the lengths and bytes of
    ids and records.
    """
    ids, records, arrays = change.added
    lengths = np.array([len(written) for written in (*ids, *records)], dtype=np.int64)
    head = _COUNTS.pack(len(change.deleted), len(ids))
    return b"".join(
        [
            head,
            *(array.tobytes() for array in (change.deleted, *arrays.values(), lengths)),
            *ids,
            *records,
        ]
    )


def unpack(record: bytes, kinds: Mapping[str, np.dtype[Any]]) -> Change:
    """The change that `pack` wrote; `kinds` are in the order of the arrays. A ValueError says that
    it is none.
    """
    reader = _RecordReader(record)
    deleted, added = reader.counts()
    rows = reader.array(np.dtype("<i8"), deleted)
    arrays = {name: reader.array(kind, added) for name, kind in kinds.items()}
    strings = reader.strings(2 * added)
    return Change(rows, Columns(strings[:added], strings[added:], arrays))


class _RecordReader:
    """Reads a record of the log from its beginning to its end."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._position = 0

    def counts(self) -> tuple[int, int]:
        """How many documents were deleted, and how many added."""
        if len(self._record) < _COUNTS.size:
            raise ValueError("a record is too short")
        self._position = _COUNTS.size
        deleted, added = _COUNTS.unpack_from(self._record)
        if max(deleted, added) > len(self._record):
            raise ValueError("a record has fewer bytes than documents")
        return deleted, added

    def array(self, kind: np.dtype[Any], count: int) -> NDArray[Any]:
        """The next array, with a row of some kind for each of so many documents."""
        if not count:  # of which numpy reads nothing, wherever that would be
            return np.zeros((0, *kind.shape), kind.base)
        values = np.frombuffer(self._record, kind.base, count * prod(kind.shape), self._position)
        self._position += values.nbytes
        return values.reshape(count, *kind.shape)

    def strings(self, count: int) -> list[bytes]:
        """The strings that are the rest of the record; their lengths come first."""
        lengths = self.array(np.dtype("<i8"), count)
        outside = (lengths < 0) | (lengths > len(self._record))
        if outside.any() or self._position + lengths.sum() != len(self._record):
            raise ValueError("the strings of a record do not fill it")
        strings = []
        for length in lengths.tolist():
            strings.append(self._record[self._position : self._position + length])
            self._position += length
        return strings


def _check_id(identity: Id) -> None:
    try:
        if isinstance(identity, str):
            check_id(identity)
    except RefusedError as problem:
        raise IndexFolderError(problem.problem, hint=problem.hint) from problem


def id_bytes(identity: Id) -> bytes:
    """An id as bytes; 7 and "7" are two ids: b"i7" and b"s7"."""
    if isinstance(identity, str):
        return b"s" + identity.encode("utf-8", "surrogatepass")
    if isinstance(identity, int | np.integer) and not isinstance(identity, bool):
        try:
            return b"i%d" % identity
        except ValueError as problem:  # Python writes numbers of up to 4,300 digits
            raise IndexFolderError("an id has over 4,000 digits", hint="shorten it") from problem
    raise IndexFolderError(
        f"an id must be a string or an integer, found {identity!r}",
        hint="convert it, for example with str()",
    )


def id_of(written: bytes) -> Id:
    """The id that `id_bytes` wrote."""
    try:
        if written.startswith(b"s"):
            return written[1:].decode("utf-8", "surrogatepass")
        if written.startswith(b"i"):
            return int(written[1:])
    except ValueError as problem:
        raise _damaged_id() from problem
    raise _damaged_id()


def _damaged_id() -> IndexDamagedError:
    hint = "find out with `parabit info INDEX --verify`"
    return IndexDamagedError("the id of a document is damaged", hint)


def need_distinct(ids: Sequence[Id]) -> None:
    """Raise if an id is given twice."""
    for written, count in Counter(map(id_bytes, ids)).items():
        if count > 1:
            raise IndexFolderError(
                f"the id {id_of(written)!r} is given twice", hint="ids must be unique"
            )


class SameIdError(IndexFolderError):
    """Two documents have one id."""

    def __init__(self, identity: Id, places: str) -> None:
        super().__init__(
            f"two documents have the id {identity!r}: {places}",
            hint="choose another field with --id-field; --id-field '' names records by path and line",
        )
        self.identity = identity


def same_id(identity: Id, first: int, second: int) -> SameIdError:
    """The error for two documents with one id, by their numbers in the order in which they come."""
    return SameIdError(identity, f"numbers {first} and {second}, from 0")


def hashes(rows: Iterable[bytes]) -> NDArray[np.uint64]:
    """64 bits of BLAKE2b of each: the same in every process and version, and evenly spread whatever goes in."""
    return np.frombuffer(
        b"".join([blake2b(row, digest_size=8).digest() for row in rows]), dtype="<u8"
    )


def record_of(fields: Mapping[str, Any], identity: Id) -> bytes:
    """The fields of a document as bytes."""
    for name, value in fields.items():
        if not isinstance(name, str):
            raise IndexFolderError(
                f"document {identity!r} has a field named {name!r}", hint="names are strings"
            )
        if type(value) not in _FLAT:
            _need_shallow(name, value, identity)
    try:
        return _ENCODER.encode(dict(fields)).encode()
    except UnicodeEncodeError as problem:
        raise IndexFolderError(
            f"document {identity!r} cannot be kept: half of a surrogate pair: "
            f"the field {_with_half(fields)!r}",
            hint="replace it by U+FFFD",
        ) from problem
    except (TypeError, ValueError, RecursionError) as problem:
        raise IndexFolderError(
            f"a field of document {identity!r} cannot be kept: {problem}",
            hint="give strings, numbers, true or false, None, and lists of these",
        ) from problem


def _need_shallow(name: str, value: object, identity: Id) -> None:
    try:
        clean_value(value)
    except RefusedError as problem:
        raise IndexFolderError(
            f"document {identity!r} cannot be kept: {problem.problem}: the field {name!r}",
            hint=problem.hint,
        ) from problem


def _with_half(fields: Mapping[str, Any]) -> str:
    """The name of the first field that has half of a surrogate pair, in its name or its value."""
    for name, value in fields.items():
        if clean_fields({name: value}).get(name) is not value:
            return name
    return ""


def fields_in(record: bytes) -> dict[str, Any]:
    """The fields that `record_of` wrote, and what anybody else wrote as fields that could be stored
    today.

    Halves of surrogate pairs become U+FFFD, and a text stands for a field that is nested too deep.
    """
    try:
        text = _text_of(record)
        fields = _DECODER.decode(text)
    except RecursionError:
        fields = _shallow(text)
    except ValueError as problem:
        raise _damaged() from problem
    if not isinstance(fields, dict):
        raise _damaged()
    try:
        return cast(dict[str, Any], clean_fields(fields))
    except RefusedError:
        return _cleaned(fields)


def _text_of(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError:  # it may have halves of surrogate pairs, or be damaged
        return without_halves(record.decode("utf-8", "surrogatepass"))


def _damaged() -> IndexFolderError:
    return IndexFolderError(
        "the record of a document is damaged", hint="find out with `parabit info INDEX --verify`"
    )


def _cleaned(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields without halves of surrogate pairs, and with a text in place of each that cannot be
    written back.
    """
    cleaned = {}
    for name, value in fields.items():
        try:
            cleaned[without_halves(name)] = clean_value(value)
        except RefusedError:
            cleaned[without_halves(name)] = _TOO_DEEP
    return cleaned


def _shallow(text: str) -> Any:
    """What JSON holds in which a field is nested deeper than Python can read."""
    pieces: list[str] = []
    written = 0  # characters of the text that are in the pieces, or left out
    start = depth = deepest = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if depth == 2:  # a field begins
                start = token.start()
                deepest = 2
        elif token[0] in "]}":
            depth -= 1
            if depth == 1 and deepest > DEEPEST + 1:
                pieces += [text[written:start], json.dumps(_TOO_DEEP)]
                written = token.end()
    pieces.append(text[written:])
    try:
        return _DECODER.decode("".join(pieces))
    except (ValueError, RecursionError) as problem:
        raise _damaged() from problem


def entries_of(fields: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """What finds a document with such stored fields: a key of every value and of every item in a
    list, without a number, and a key of every field that can be compared as a number or a date,
    with it.
    """
    for name, value in fields.items():
        if name == TEXT:
            continue
        items = value if isinstance(value, list) else [value]
        plain = [item for item in items if item is None or isinstance(item, str | int | float)]
        yield from ((key, nan) for key in {field_key(name, item) for item in plain})
        if (number := number_of(value)) is not None:
            yield number_key(name), number


def field_key(name: str, value: Value) -> int:
    """64 bits that stand for a value of a field; two values share theirs with a chance of 1 in 2^64.

    Numbers are equal if they are equal in Python, as 1 and 1.0, but True is not a number, and NaN
    is None.
    """
    if isinstance(value, str) and len(name) + len(value) > _LONGEST_REMEMBERED:
        return _field_key(name, value)
    return _remembered_field_key(name, value)


def _field_key(name: str, value: Value) -> int:
    if isinstance(value, float):
        value = int(value) if value.is_integer() else None if isnan(value) else value
    return int(hashes([json.dumps([name, value]).encode()])[0])


_remembered_field_key = lru_cache(maxsize=1 << 14, typed=True)(_field_key)  # labels come often


@lru_cache(maxsize=1 << 10)
def number_key(name: str) -> int:
    """64 bits that stand for the name of a field with numbers."""
    return int(hashes([name.encode("utf-8", "surrogatepass")])[0])


def _plain(value: object) -> object:
    """What json asks for a value it does not know: numpy's numbers and arrays are as good as
    Python's.
    """
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
# NaN is written if there is no value, as pandas has it; JSON does not know it, so it is read as
# null.
_DECODER = json.JSONDecoder(
    parse_constant=lambda constant: None if constant == "NaN" else float(constant)
)
