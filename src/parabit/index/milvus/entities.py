"""Documents as entities of a collection, and back."""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from parabit.errors import IndexFolderError
from parabit.index.store import Batch, Id, Ragged, Value
from parabit.index.store.fields import field_key, fields_in, keys_of, record_of
from parabit.index.store.ids import id_bytes, id_of
from parabit.index.store.schema import CODES, Schema

KEY, NUMBER, CODE, KEYS, RECORD, PARTS = "id", "number", "code", "keys", "record", "parts"
TEXT = "text"  # of a part that did not fit into its entity
LONGEST = 65_535  # bytes of a string that Milvus takes
# Bytes. Milvus 2.3.5 gathers the ids of what is replaced, 15,000 or so at a time, to mark older versions as deleted. If
# they are more than 64 MB, it forgets documents that it has not written to a file yet: most of 10,000 with 8,000 bytes.
_LONGEST_ID = 1000
MOST_KEYS = 4096  # values of an array
_BEGINNING = re.compile(r"=|\+(\d+);")  # of a string: whole, or with so many parts that follow


class Entity(NamedTuple):
    """A document as Milvus keeps it, and what of it is too long for one entity."""

    values: dict[str, Any]
    parts: list[dict[str, Any]]
    size: int  # bytes, about


def key_of(identity: Id) -> str:
    """An id as a string that Milvus takes; 7 and "7" are two ids.

    Example:
        >>> key_of("7"), key_of(7)
        ('s7', 'i7')
    """
    written = id_bytes(identity)
    if len(written) > 1 + _LONGEST_ID:
        raise IndexFolderError(
            f"the id {str(identity)[:40]!r}... has {len(written) - 1:,} bytes",
            hint=f"{_LONGEST_ID:,} are the most that Milvus keeps without loss",
        )
    try:
        return written.decode()
    except UnicodeDecodeError:  # half of a surrogate pair, which no server would take
        return "u" + json.dumps(identity)


def id_in(key: str) -> Id:
    r"""The id that `key_of` wrote.

    Example:
        >>> id_in("s7"), id_in("i7"), id_in(key_of(chr(0xD800)))
        ('7', 7, '\ud800')
    """
    if key[:1] == "u":
        identity: str = json.loads(key[1:])
        return identity
    return id_of(key.encode())


def field_number(name: str, value: Value) -> int:
    """What stands for a value of a field among an entity's keys: 63 bits, as Milvus cannot read all of 64."""
    return field_key(name, value) >> 1


def entities_of(batch: Batch, schema: Schema, first: int) -> Iterator[Entity]:
    """A batch as entities, numbered from `first`; what cannot be kept is told."""
    arrays = schema.arrays_of(batch)
    fields = [{}] * len(batch.ids) if batch.fields is None else batch.fields
    if len(fields) != len(batch.ids):
        raise IndexFolderError(
            f"{len(batch.ids)} ids and fields of {len(fields)} documents", hint="give fields for each id"
        )
    extra = {name: _rows(given) for name, given in batch.extra.items()}
    for place, (identity, code, own) in enumerate(zip(batch.ids, arrays[CODES], fields, strict=True)):
        number = first + place
        keys = sorted({key >> 1 for key in keys_of(own)})
        if len(keys) > MOST_KEYS:
            raise IndexFolderError(
                f"document {identity!r} has {len(keys):,} values in its fields",
                hint=f"Milvus finds a document by {MOST_KEYS:,} at most",
            )
        texts = {RECORD: _as_text(record_of(own, identity))}
        texts |= {name: b64encode(next(rows)).decode() for name, rows in extra.items()}
        values: dict[str, Any] = {KEY: key_of(identity), NUMBER: number, CODE: code.tobytes(), KEYS: keys}
        parts: list[dict[str, Any]] = []
        for name, text in texts.items():
            values[name], more = _split(text, f"{number}.{name}")
            parts += more
        values[PARTS] = len(parts)
        size = 200 + code.nbytes + 8 * len(keys) + sum(len(text.encode()) for text in (values[KEY], *texts.values()))
        yield Entity(values, parts, size)


def parts_of(name: str, number: int, value: str) -> list[str]:
    """The keys of the parts that belong to a string.

    Example:
        >>> parts_of("record", 7, "=whole"), parts_of("record", 7, "+2;beginning")
        ([], ['7.record.1', '7.record.2'])
    """
    match = _BEGINNING.match(value)
    return [f"{number}.{name}.{part}" for part in range(1, 1 + int(match[1] or 0))] if match else []


def joined(value: str, parts: list[str]) -> str:
    """A string and its parts as it was."""
    match = _BEGINNING.match(value)
    if match is None:
        raise IndexFolderError("the collection holds something that parabit did not write", hint="build the index anew")
    return value[match.end() :] + "".join(parts)


def bytes_in(text: str) -> bytes:
    """An extra array's row."""
    return b64decode(text)


def fields_of_text(text: str) -> dict[str, Any]:
    """The fields of a record."""
    return fields_in(text.encode())


def _as_text(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError:  # half of a surrogate pair: in ASCII, JSON can write it
        return json.dumps(fields_in(record), separators=(",", ":"))


def _rows(given: Any) -> Iterator[bytes]:
    if isinstance(given, Ragged):
        return (given.values[first:last].tobytes() for first, last in pairwise(given.offsets.tolist()))
    return (row.tobytes() for row in given)


def _split(text: str, name: str) -> tuple[str, list[dict[str, Any]]]:
    """What an entity keeps of a string, and entities of their own for the rest."""
    if len(text) < LONGEST // 4 or len(text.encode()) < LONGEST:
        return f"={text}", []
    pieces = list(_pieces(text.encode(), LONGEST - 20))  # with room for the mark
    rest = [
        {KEY: f"{name}.{place}", TEXT: piece, CODE: b"\0"}  # no collection is without a vector
        for place, piece in enumerate(pieces[1:], 1)
    ]
    return f"+{len(rest)};{pieces[0]}", rest


def _pieces(written: bytes, size: int) -> Iterator[str]:
    """UTF-8 in pieces of so many bytes at most, each of whole characters.

    Example:
        >>> list(_pieces("aéé".encode(), 3))
        ['aé', 'é']
    """
    start = 0
    while start < len(written):
        end = min(len(written), start + size)
        while end < len(written) and written[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        yield written[start:end].decode()
        start = end


def about_of(description: str) -> Mapping[str, Any]:
    """What a collection's description says of the index; nothing where it is none of ours.

    Example:
        >>> about_of("holiday pictures"), about_of('{"parabit": 1, "bits": 128}')["bits"]
        ({}, 128)
    """
    try:
        said = json.loads(description)
    except ValueError:
        return {}
    return said if isinstance(said, dict) and "parabit" in said else {}
