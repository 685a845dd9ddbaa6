"""Which documents a condition lets through, in Python, as JSON and as people write it."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit.errors import QueryError
from parabit.index import Index, conditions

FIELDS: list[dict[str, Any]] = [
    {"year": 1990, "day": "2001-05-03", "labels": ["space"], "flag": True},
    {"year": 1993, "day": "2001-05-03T12:00:00", "labels": ["space", "orbit"], "flag": 1},
    {"year": 1993.5, "day": "2001-06-01", "labels": ["hockey"], "flag": False},
    {"year": "1993", "day": "soon", "labels": [], "flag": 0},
    {"year": 2001, "day": None, "labels": "hockey", "flag": "true"},
    {"price": math.nan, "a=b": 1},
    {"year": -5, "day": "2001-05-03T14:00:00+05:00", "labels": ["x..y"], "far": math.inf},
]


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    codes = np.zeros((len(FIELDS) + 1, 2), dtype=np.uint8)
    gone = {"year": 1993, "labels": ["space"], "day": "2001-05-03"}
    with Index.of_codes(codes[:4], 16, ids=[99, 0, 1, 2], fields=[gone, *FIELDS[:3]]) as index:
        index.put_codes(codes[4:], [3, 4, 5, 6], FIELDS[3:])
        index.delete(99)
        yield index


def found(index: Index, where: Any) -> list[int]:
    return sorted(int(identity) for identity in index.search(np.zeros((1, 2), np.uint8), k=100, where=where).ids[0])


@pytest.mark.parametrize(
    ("python", "written", "expected"),
    [
        # Ranges have both ends, and either may be open.
        ({"year": (1990, 1993)}, "year=1990..1993", [0, 1]),
        ({"year": (1990, None)}, "year=1990..", [0, 1, 2, 4]),
        ({"year": (None, 1993.5)}, "year=..1993.5", [0, 1, 2, 6]),
        ({"year": (-10, 0)}, "year=-10..0", [6]),
        ({"year": {">": 1990}}, "year>1990", [1, 2, 4]),
        ({"year": {">=": 1993, "<": 2001}}, ["year>=1993", "year < 2001"], [1, 2]),
        ({"year": {"<=": 1990}}, "year<=1990", [0, 6]),
        # Dates, with and without a time; without a zone it is UTC.
        ({"day": ("2001-05-03", "2001-05-31")}, "day=2001-05-03..2001-05-31", [0, 1, 6]),
        ({"day": {">": "2001-05-03T10:00:00"}}, "day>2001-05-03T10:00:00", [1, 2]),
        ({"day": {"<": "2001-05-03T10:00:00+00:00"}}, "day<2001-05-03T10:00:00+00:00", [0, 6]),
        # Documents without the field are unequal to everything, and in no order with anything.
        ({"labels": {"!=": "space"}}, "labels!=space", [2, 3, 4, 5, 6]),
        ({"labels": {"!=": ["space", "hockey"]}}, ["labels!=space", "labels!=hockey"], [3, 5, 6]),
        ({"labels": "space", "year": {"!=": 1990}}, ["labels=space", "year!=1990"], [1]),
        ({"id": {"!=": [0, 1, 2]}}, ["id!=0", "id!=1", "id!=2"], [3, 4, 5, 6]),
        ({"labels": ["orbit", "hockey"]}, ["labels=orbit", "labels=hockey"], [1, 2, 4]),
        ({"labels": "x..y"}, "labels=x..y", [6]),  # no range, as its ends are no numbers
        ({"year": {"=": [1990, 2001], "!=": 2001}}, ["year=1990", "year=2001", "year!=2001"], [0]),
        # What is written may be a string, or what it says as JSON; truth is no number.
        ({"flag": [True, "true"]}, "flag=true", [0, 4]),
        ({"flag": 1}, "flag=1", [1]),
        ({"year": [1993, "1993"]}, "year = 1993", [1, 3]),
        ({"day": None}, "day=null", [4]),
        ({"year": {"!=": [1993, "1993"]}}, "year!=1993", [0, 2, 4, 5, 6]),
        ({"far": math.inf}, "far>1e300", [6]),
    ],
)
def test_conditions(index: Index, python: dict[str, Any], written: str | list[str], expected: list[int]) -> None:
    assert found(index, python) == expected
    assert found(index, written) == expected


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("labels", "is not a condition"),
        ("=space", "is not a condition"),
        ("", "is not a condition"),
        ("year>soon", "'soon' is neither a number nor a date"),
        ("year=2010..2000", "the range 2010..2000 of the field 'year' is empty"),
        ("year=1990..soon", "'soon' is neither a number nor a date"),
        ("labels>=3", "no document has a number or a date in the field 'labels'"),
        ("labels=1..3", "no document has a number or a date in the field 'labels'"),
        ("author=me", "no document has a field 'author'"),
        ("id>3", "ids have no order"),
        ({"year": (1, 2, 3)}, "a range is a pair, found 3 values"),
        ({"year": (None, None)}, "the range of the field 'year' has no end"),
        ({"year": (2010, 2000)}, "is empty"),
        ({"year": {"~": 3}}, "no comparison '~'"),
        ({"year": {">": None}}, "None is neither a number nor a date"),
        ({"year": {">": True}}, "True is neither a number nor a date"),
        ({"year": {">": math.nan}}, "nan is neither a number nor a date"),
        ({"day": {">": "2001-13-45"}}, "'2001-13-45' is neither a number nor a date"),
        ({"labels": {"=": {"a": 1}}}, "found by a dict"),
        ({"labels": [["space"]]}, "found by a list"),
    ],
)
def test_a_condition_that_cannot_hold_is_an_error(index: Index, where: Any, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as error:
        found(index, where)
    assert error.value.hint


@given(st.text())
def test_what_is_written_is_a_condition_or_told(written: str) -> None:
    try:
        [first, *_] = conditions([written])
    except QueryError:
        pass
    else:
        assert first.field in written
        assert first.operator in ("=", "!=", ">", ">=", "<", "<=")
