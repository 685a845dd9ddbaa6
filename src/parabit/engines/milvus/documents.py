"""Documents as entities of a Milvus collection, and back; filters as Milvus reads them.

An entity has the document's id as its key, a serial number, which is its row, its code (as a vector that is searched,
and as text that is read faster), the stems of its words, hashes of the values in its fields, its numbers, and all of
its fields as compressed JSON.
"""

import json
import math
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store import schema
from parabit.index.store.schema import Id, Value

KEY, SERIAL, VECTOR, CODE, WORDS, BM25 = "id", "serial", "vector", "code", "words", "bm25"
KEYS, NUMBERS, REAL = "keys", "numbers", "real"
RECORDS = ["record", *(f"record_{part}" for part in range(2, 9))]  # several, as a string of Milvus is short
LONGEST = 65_535  # bytes of a string
LONGEST_KEY, MOST_KEYS = 4096, 4096  # bytes of a key, and values of an array
NOTHING = f"{SERIAL} < 0"  # a filter that lets nothing through
_HIGHEST = 1.7e308  # number


def key_of(identity: Id) -> str:
    """An id as a key in plain ASCII: a quote or a newline in a key confuses Milvus Lite. 7 and "7" are two ids."""
    key = quote_from_bytes(schema.id_bytes(identity), safe=" !#$()*+,-./:;<=>?@[]^_{|}~")
    if len(key) > LONGEST_KEY:
        raise IndexFolderError(
            f"the id {str(identity)[:40]!r}... takes {len(key):,} bytes", hint=f"Milvus keeps up to {LONGEST_KEY:,}"
        )
    return key


def id_of_key(key: str) -> Id:
    """The id that `key_of` wrote."""
    return schema.id_of(unquote_to_bytes(key))


def entity_of(
    identity: Id,
    serial: int,
    code: NDArray[np.uint8],
    fields: Mapping[str, Any],
    words: Sequence[str] | None,
    vector: NDArray[np.float16] | None,
) -> dict[str, Any]:
    """A document as an entity; an IndexFolderError says what does not fit. `words` are stems, in order."""
    entries = list(schema.entries_of(fields))
    keys = sorted({key >> 1 for key, number in entries if math.isnan(number)})  # Milvus has no unsigned numbers
    if len(keys) > MOST_KEYS:
        raise IndexFolderError(
            f"document {identity!r} has {len(keys):,} values in its fields",
            hint=f"Milvus finds a document by {MOST_KEYS:,} at most",
        )
    numbers = {_number_name(key): number for key, number in entries if math.isfinite(number)}
    entity = {KEY: key_of(identity), SERIAL: serial, VECTOR: code.tobytes(), CODE: b64encode(code.tobytes()).decode()}
    entity |= {KEYS: keys, NUMBERS: numbers, **_record_parts(fields, identity)}
    if words is not None:
        written = f" {' '.join(words)} ".encode("utf-8", "replace")
        if len(written) > LONGEST:
            written = written[: written.rfind(b" ", 0, LONGEST) + 1]
        entity[WORDS] = written.decode()
    if vector is not None:
        entity[REAL] = b64encode(vector.tobytes()).decode()
    return entity


def _record_parts(fields: Mapping[str, Any], identity: Id) -> dict[str, str]:
    written = b64encode(zlib.compress(schema.record_of(fields, identity), 1)).decode()
    if len(written) > LONGEST * len(RECORDS):
        raise IndexFolderError(
            f"document {identity!r} takes {len(written):,} bytes compressed",
            hint=f"Milvus keeps up to {LONGEST * len(RECORDS):,}; index it in parts",
        )
    return {name: written[LONGEST * part : LONGEST * (part + 1)] for part, name in enumerate(RECORDS)}


def fields_of_entity(entity: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a document."""
    return schema.fields_in(zlib.decompress(b64decode("".join(entity[part] for part in RECORDS))))


def in_keys(keys: Iterable[str]) -> str:
    """A filter for the documents with some keys."""
    return f"{KEY} in {json.dumps(list(keys) or [''])}"  # which no document has


def in_rows(rows: Iterable[int]) -> str:
    """A filter for the documents in some rows."""
    return f"{SERIAL} in {list(rows)}"


def having(field: str, values: Iterable[Value]) -> str:
    """A filter for the documents that have one of the values in a field."""
    return f"array_contains_any({KEYS}, {[schema.field_key(field, value) >> 1 for value in values]})"


def comparing(field: str, operator: str, number: float) -> str:
    """A filter for the documents whose number in a field is in order with another."""
    return f'{NUMBERS}["{_number_name(schema.number_key(field))}"] {operator} {max(-_HIGHEST, min(_HIGHEST, number))!r}'


def saying(words: Sequence[str], end: str = " ") -> str:
    """A filter for the documents with some words, one after the other."""
    pattern = "".join("_" if letter in '%_\\"' else letter for letter in " ".join(words))
    return f'{WORDS} like "% {pattern}{end}%"'


def all_of(filters: Iterable[str]) -> str:
    """A filter for the documents that all let through; an empty one lets all through."""
    return " and ".join(f"({part})" for part in filters if part)


def _number_name(key: int) -> str:
    """The name of a number among an entity's: plain, whatever the field is called."""
    return f"n{key:x}"
