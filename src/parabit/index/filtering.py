"""Which documents a search may find: those that have a value in a field."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store import Id, Snapshot, Value

Where = Mapping[str, Value | Iterable[Value]]  # the value, or one of the values, that each field must have


def rows_where(snapshot: Snapshot, where: Where) -> NDArray[np.bool_]:
    """Which rows have what is asked for in every field, (rows,); `id` is one of these.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> fields = [{"labels": ["space", "orbit"]}, {"labels": ["hockey"]}]
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.zeros((2, 1), np.uint8), fields)])
        >>> rows_where(Store.open(folder).snapshot(), {"labels": "space", "id": ["a", "b"]}).tolist()
        [True, False]
    """
    mask = np.ones(snapshot.rows, dtype=np.bool_)
    for field, wanted in where.items():
        mask &= _having(snapshot, field, values_of(field, wanted))
    return mask


def where_of(conditions: Sequence[str]) -> Where:
    """Conditions as people write them, FIELD=VALUE; several of one field mean any of these values.

    What is written 1993 may have been stored as a number or as a string, so both are looked for.

    Example:
        >>> where_of(["labels=sci.space", "labels=sci.med", "year=1993"])
        {'labels': ['sci.space', 'sci.med'], 'year': ['1993', 1993]}
    """
    where: dict[str, list[Value]] = {}
    for condition in conditions:
        field, equals, value = condition.partition("=")
        if not equals or not field:
            raise IndexFolderError(f"{condition!r} is no condition", hint="write FIELD=VALUE, as labels=sci.space")
        where.setdefault(field, []).extend([value, *_plain_value(value)])
    return where


def _plain_value(written: str) -> list[Value]:
    """What a string says as JSON, where that is a number, true, false or null."""
    try:
        value = json.loads(written)
    except ValueError:
        return []
    return [value] if value is None or isinstance(value, int | float) else []


def ids_among(values: Iterable[Value]) -> list[Id]:
    """Those of some values that can be ids.

    Example:
        >>> ids_among(["a", 7, 0.5, True, None])
        ['a', 7]
    """
    return [value for value in values if isinstance(value, str | int | np.integer) and not isinstance(value, bool)]


def _having(snapshot: Snapshot, field: str, values: Sequence[Value]) -> NDArray[np.bool_]:
    """Which rows have one of the values in a field."""
    mask = np.zeros(snapshot.rows, dtype=np.bool_)
    if field == "id":
        rows = snapshot.rows_of(ids_among(values))
        mask[rows[rows >= 0]] = True
        return mask
    need_field(field, snapshot.field_names)
    for value in values:
        mask |= snapshot.having(field, value)
    return mask


def need_field(field: str, names: Sequence[str]) -> None:
    """Raise unless documents have such a field, to be found by.

    Example:
        >>> need_field("lables", ["labels", "text"])
        Traceback (most recent call last):
        parabit.errors.IndexFolderError: no document has a field 'lables' to look in; there are id, labels
    """
    if field not in names or field == "text":
        there = ", ".join(["id", *(name for name in names if name != "text")])
        raise IndexFolderError(f"no document has a field {field!r} to look in", hint=f"there are {there}")


def values_of(field: str, wanted: object) -> list[Value]:
    """The values that are asked for, one or several.

    Example:
        >>> values_of("year", 1993), values_of("year", range(1993, 1995)), values_of("labels", "space")
        ([1993], [1993, 1994], ['space'])
    """
    several = isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes | Mapping)
    values: list[Any] = list(wanted) if several else [wanted]  # type: ignore[call-overload]
    for value in values:
        if value is not None and not isinstance(value, str | int | float | np.generic):
            raise IndexFolderError(
                f"documents are not found by a {type(value).__name__}, as asked for in the field {field!r}",
                hint="give a string, a number, True, False or None, or a list of these",
            )
    return values
