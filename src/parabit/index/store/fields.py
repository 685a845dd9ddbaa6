"""A document's fields: JSON to give them back, and hashes of their values to find documents by them."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from parabit.errors import IndexFolderError
from parabit.index.store.ids import hashes
from parabit.index.store.schema import Id

Value: TypeAlias = str | int | float | bool | None

TEXT = "text"  # the one field that documents are not found by


def record_of(fields: Mapping[str, Any], identity: Id) -> bytes:
    """The fields of a document as bytes.

    Example:
        >>> record_of({"text": "Hubble", "labels": ("space",)}, "a")
        b'{"text":"Hubble","labels":["space"]}'
    """
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
    """The fields that `record_of` wrote.

    Example:
        >>> fields_in(b'{"labels":["space"],"year":1993}')
        {'labels': ['space'], 'year': 1993}
    """
    fields: dict[str, Any] = json.loads(record.decode("utf-8", "surrogatepass"))
    return fields


def keys_of(fields: Mapping[str, Any]) -> Iterator[int]:
    """The keys that a document is found by: one for every value of a field, and of every item if it is a list."""
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

    Numbers are equal as they are in Python, 1 and 1.0, but True is no number.

    Example:
        >>> field_key("year", 1993) == field_key("year", 1993.0), field_key("year", 1) == field_key("year", True)
        (True, False)
    """
    if isinstance(value, np.generic):
        value = value.item()
    return _key(name, value)


@lru_cache(maxsize=1 << 14, typed=True)  # labels come again and again
def _key(name: str, value: Value) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return int(hashes([json.dumps([name, value]).encode()])[0])


def _is_value(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | np.generic)


def _plain(value: object) -> object:
    """What json asks for where it does not know a value: numpy's numbers and arrays are as good as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is no JSON")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
