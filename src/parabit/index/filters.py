"""Which documents a search may find, by their fields.

In Python a condition is a mapping of fields to what they must be, on the command line and in the search box a string:

    {"labels": "space"}                   labels=space          equal, or among the values of a list
    {"labels": ["space", "orbit"]}        labels=space (twice)  one of several
    {"year": (2000, 2010)}                year=2000..2010       a range, both ends included; None leaves one open
    {"year": {">=": 2000, "!=": 2005}}    year>=2000 year!=2005 comparisons, all of which must hold

Ranges compare numbers and dates (2001-05-03, with or without a time). The field `id` is the document's id.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from parabit.corpus import number_of
from parabit.errors import QueryError, did_you_mean

Where = Mapping[str, Any] | Sequence[str]
EQUAL, UNEQUAL = "=", "!="
ORDER = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}
_WRITTEN = re.compile(r"\s*([^=<>!]+?)\s*(!=|>=|<=|=|>|<)(.*)", re.DOTALL)


class Condition(NamedTuple):
    """What a field must be: equal or unequal to one of some values, or in order with a number."""

    field: str
    operator: str  # =, !=, >, >=, < or <=
    values: tuple[Any, ...]  # one or more of = and !=, one number of the others


def conditions(where: Where | None) -> tuple[Condition, ...]:
    """Conditions in either form, checked. Several that ask for a value of one field mean any of them."""
    written = [where] if isinstance(where, str) else where or ()
    wanted = where.items() if isinstance(where, Mapping) else map(_as_mapped, written)
    equal, others = dict[str, tuple[Any, ...]](), []
    for condition in (one for field, value in wanted for one in _of_value(field, value)):
        if condition.operator == EQUAL:
            equal[condition.field] = equal.get(condition.field, ()) + condition.values
        else:
            others.append(condition)
    return (*others, *(Condition(field, EQUAL, values) for field, values in equal.items()))


def _as_mapped(written: str) -> tuple[str, Any]:
    """A condition that was written, as a mapping has it."""
    match = _WRITTEN.fullmatch(written)
    if match is None:
        hint = "write labels=space, year=2000..2010, year>=2000 or labels!=space"
        raise QueryError(f"{written!r} is not a condition", hint)
    field, operator, value = match[1], match[2], match[3].strip()
    lower, dots, upper = value.partition("..")
    if operator == EQUAL and dots and (_bound(lower) is not None or _bound(upper) is not None):
        return field, (lower or None, upper or None)
    return field, {operator: value if operator in ORDER else [value, *_plain_value(value)]}


def _of_value(field: str, wanted: Any) -> Iterable[Condition]:
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            problem = f"a range is a pair, found {len(wanted)} values for the field {field!r}"
            raise QueryError(
                problem, hint="write (2000, 2010), or a list for one of several values"
            )
        lower, upper = (None if end is None else _number(field, end) for end in wanted)
        if lower is None and upper is None:
            raise QueryError(
                f"the range of the field {field!r} has no end",
                hint="write 2000..2010, 2000.. or ..2010",
            )
        if lower is not None and upper is not None and lower > upper:
            problem = f"the range {wanted[0]}..{wanted[1]} of the field {field!r} is empty"
            raise QueryError(problem, hint="lowest first")
        wanted = {order: end for order, end in ((">=", lower), ("<=", upper)) if end is not None}
    for operator, value in wanted.items() if isinstance(wanted, Mapping) else [(EQUAL, wanted)]:
        if operator in ORDER:
            yield Condition(field, operator, (_number(field, value),))
        elif operator in (EQUAL, UNEQUAL):
            yield Condition(field, operator, _values(field, value))
        else:
            known = ", ".join([EQUAL, UNEQUAL, *ORDER])
            raise QueryError(
                f"no comparison {operator!r} for the field {field!r}", hint=f"there are {known}"
            )


def _bound(written: str) -> float | None:
    try:
        return float(written)
    except ValueError:
        return number_of(written.strip())


def _number(field: str, value: Any) -> float:
    number = _bound(value) if isinstance(value, str) else number_of(value)
    if number is None or math.isnan(number):
        problem = f"{value!r} is neither a number nor a date, to compare the field {field!r} with"
        raise QueryError(problem, hint="write 2000, or a date such as 2001-05-03")
    return number


def _values(field: str, wanted: Any) -> tuple[Any, ...]:
    several = isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes | Mapping)
    values = tuple(
        one.item() if isinstance(one, np.generic) else one
        for one in (wanted if several else [wanted])
    )
    for value in values:
        if value is not None and not isinstance(value, str | int | float):
            problem = (
                f"documents cannot be found by a {type(value).__name__} in the field {field!r}"
            )
            raise QueryError(
                problem, hint="give a string, a number, True, False or None, or a list of these"
            )
    return values


def _plain_value(written: str) -> tuple[Any, ...]:
    """What a string says as JSON, if that is a number, true, false or null: 1993 may be stored as either."""
    with suppress(ValueError):
        value = json.loads(written)
        return (value,) if value is None or isinstance(value, int | float) else ()
    return ()


def need_field(condition: Condition, field_names: Sequence[str]) -> None:
    """Raise if no document can be compared so."""
    if condition.field == "id":
        if condition.operator in ORDER:
            raise QueryError("ids have no order", hint="compare them with = or !=")
    elif condition.field not in field_names or condition.field == "text":
        names = ["id", *(name for name in field_names if name != "text")]
        meant = did_you_mean(condition.field, names)
        hint = f"{meant} There are {', '.join(names)}" if meant else f"there are {', '.join(names)}"
        raise QueryError(f"no document has a field {condition.field!r}", hint)


def no_numbers(field: str) -> QueryError:
    """The error for a comparison with numbers that no document has."""
    return QueryError(
        f"no document has a number or a date in the field {field!r}", hint="compare it with = or !="
    )


def ids_among(values: Iterable[Any]) -> list[Any]:
    """Those of some values that can be ids."""
    return [
        value for value in values if isinstance(value, str | int) and not isinstance(value, bool)
    ]
