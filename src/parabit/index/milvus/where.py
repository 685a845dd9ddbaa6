"""A filter as Milvus reads it; it lets through what it lets through in an embedded index."""

import json
from collections.abc import Callable, Sequence

from parabit.index.filtering import Where, ids_among, need_field, values_of
from parabit.index.milvus.entities import KEY, KEYS, field_number, key_of


def condition_of(where: Where, names: Callable[[], Sequence[str]]) -> str | None:
    """A condition in Milvus' words; None where no document can meet it. `names` gives the fields that there are.

    Example:
        >>> condition_of({"id": ["a", 7, None]}, lambda: [])
        'id in ["sa", "i7"]'
        >>> condition_of({"labels": []}, lambda: ["labels"]) is None
        True
    """
    conditions = []
    for field, wanted in where.items():
        values = values_of(field, wanted)
        if field == "id":
            conditions.append(in_keys([key_of(identity) for identity in ids_among(values)]))
        else:
            need_field(field, names())
            numbers = ", ".join(str(field_number(field, value)) for value in values)
            conditions.append(f"array_contains_any({KEYS}, [{numbers}])" if numbers else "")
    return " and ".join(conditions) if all(conditions) else None


def in_keys(keys: Sequence[str]) -> str:
    """A condition that is met by some entities; empty for none.

    Example:
        >>> in_keys(["sa", "sé"])
        'id in ["sa", "sé"]'
    """
    return f"{KEY} in {json.dumps(list(keys), ensure_ascii=False)}" if keys else ""
