"""Which documents a condition lets through, in Python, as JSON and as people write it."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import milvus_file
from parabit.errors import QueryError
from parabit.index import Index
from parabit.index.filters import conditions
from parabit.index.store import Id

FIELDS: dict[Id, dict[str, Any]] = {
    0: {"year": 1990, "day": "2001-05-03", "labels": ["space"], "flag": True},
    1: {"year": 1993, "day": "2001-05-03T12:00:00", "labels": ["space", "orbit"], "flag": 1},
    2: {"year": 1993.5, "day": "2001-06-01", "labels": ["hockey"], "flag": False},
    3: {"year": "1993", "day": "soon", "labels": [], "flag": 0},
    4: {"year": 2001, "day": None, "labels": "hockey", "flag": "true"},
    5: {"price": math.nan, "a=b": 1},
    "5": {"year": [1993, 1994], "nested": {"deep": 1}, "mixed": [1, "1", None, [2]]},
    6: {"year": -5, "day": "2001-05-03T14:00:00+05:00", "labels": ["x..y"], "far": math.inf},
    "tail": {"labels": ("space",), "year": np.int64(1993), "late": "ja é", "day": ""},
}
GONE = {"year": 1993, "labels": ["space", "gone"], "day": "2001-05-03", "flag": True}


@pytest.fixture(
    scope="module",
    params=["with a tail", "compacted", pytest.param("on Milvus", marks=pytest.mark.scale)],
)
def index(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Index]:
    """Nine equal codes, five of them added later, and two documents that are deleted and had everything."""
    codes, ids, fields = np.zeros((6, 2), dtype=np.uint8), [*FIELDS], [*FIELDS.values()]
    engine = milvus_file.place() if request.param == "on Milvus" else None
    folder = tmp_path_factory.mktemp("where") / "index"
    with Index.of_codes(
        codes[:5], 16, folder, ids=["gone", *ids[:4]], fields=[GONE, *fields[:4]], engine=engine
    ) as index:
        index.put_codes(codes, [*ids[4:], "gone too"], [*fields[4:], GONE])
        index.delete(["gone", "gone too"])
        if request.param == "compacted":
            index.compact()
        yield index


def found(index: Index, where: Any) -> list[Id]:
    asked = np.zeros((2, 2), dtype=np.uint8)
    ids = index.search(asked, k=99, where=where).ids
    assert index.search(asked, radius=0, where=where).ids == ids
    assert index.search(asked, k=2, radius=3, where=where).ids == [some[:2] for some in ids]
    assert index.search(asked, k=1, where=where).ids == [some[:1] for some in ids]
    assert ids[0] == ids[1]
    return ids[0]


CASES: list[tuple[dict[str, Any], Any, list[Id]]] = [
    # Ranges have both ends, and either may be open.
    ({"year": (1990, 1993)}, "year=1990..1993", [0, 1, "tail"]),
    ({"year": (1990, None)}, "year=1990..", [0, 1, 2, 4, "tail"]),
    ({"year": (None, 1993.5)}, "year=..1993.5", [0, 1, 2, 6, "tail"]),
    ({"year": (-10, 0)}, "year=-10..0", [6]),
    ({"year": {">": 1990}}, "year>1990", [1, 2, 4, "tail"]),
    ({"year": {">=": 1993, "<": 2001}}, ["year>=1993", "year < 2001"], [1, 2, "tail"]),
    ({"year": {"<=": 1990}}, "year<=1990", [0, 6]),
    # Dates, with and without a time; without a zone it is UTC.
    ({"day": ("2001-05-03", "2001-05-31")}, "day=2001-05-03..2001-05-31", [0, 1, 6]),
    ({"day": {">": "2001-05-03T10:00:00"}}, "day>2001-05-03T10:00:00", [1, 2]),
    ({"day": {"<": "2001-05-03T10:00:00+00:00"}}, "day<2001-05-03T10:00:00+00:00", [0, 6]),
    # Documents without the field are unequal to everything, and in no order with anything.
    ({"labels": {"!=": "space"}}, "labels!=space", [2, 3, 4, 5, "5", 6]),
    ({"labels": {"!=": ["space", "hockey"]}}, ["labels!=space", "labels!=hockey"], [3, 5, "5", 6]),
    ({"labels": "space", "year": {"!=": 1990}}, ["labels=space", "year!=1990"], [1, "tail"]),
    ({"id": {"!=": [0, 1, 2]}}, ["id!=0", "id!=1", "id!=2"], [3, 4, 5, "5", 6, "tail"]),
    ({"labels": ["orbit", "hockey"]}, ["labels=orbit", "labels=hockey"], [1, 2, 4]),
    ({"labels": "x..y"}, "labels=x..y", [6]),  # no range, as its ends are no numbers
    ({"year": {"=": [1990, 2001], "!=": 2001}}, ["year=1990", "year=2001", "year!=2001"], [0]),
    # What is written may be a string, or what it says as JSON; truth is no number.
    ({"flag": [True, "true"]}, "flag=true", [0, 4]),
    ({"flag": 1}, "flag=1", [1]),
    ({"year": [1993, "1993"]}, "year = 1993", [1, 3, "5", "tail"]),
    ({"day": None}, "day=null", [4]),
    ({"year": {"!=": [1993, "1993"]}}, "year!=1993", [0, 2, 4, 5, 6]),
    ({"far": math.inf}, {"far": [math.inf]}, [6]),
    # In Python a value may be one of many, or of NumPy; lists are searched by what is in them.
    ({}, {}, [*FIELDS]),
    ({"labels": "space"}, {"labels": np.array(["space", "none"])}, [0, 1, "tail"]),
    ({"year": 1993}, {"year": np.int64(1993)}, [1, "5", "tail"]),
    ({"year": range(1990, 1994)}, {"year": [1990, 1991, 1992, 1993]}, [0, 1, "5", "tail"]),
    ({"labels": []}, {"id": []}, []),
    ({"year": None}, {"id": [None, 0.5, True]}, []),
    ({"nested": "deep"}, {"id": "gone"}, []),
    ({"day": [None, ""]}, {"day": {"=": [None, ""]}}, [4, "tail"]),
    ({"flag": [False, 0]}, {"flag": {"=": [False, 0]}}, [2, 3]),
    ({"mixed": 1}, {"mixed": None}, ["5"]),
    ({"late": "ja é"}, "late=ja é", ["tail"]),
    ({"id": np.int64(5)}, {"id": 5}, [5]),
    ({"id": ["5", 5, "none", 8]}, "id=5", [5, "5"]),
    ({"labels": "space", "year": [1993, 1994], "id": [0, "tail", 5]}, {"id": "tail"}, ["tail"]),
]


@pytest.mark.parametrize(("python", "other", "expected"), CASES)
def test_a_filter_lets_through(
    index: Index, python: dict[str, Any], other: Any, expected: list[Id]
) -> None:
    assert found(index, python) == expected
    assert found(index, other) == expected


def test_fields_come_back_as_json_has_them(index: Index) -> None:
    fields = {hit.id: hit.fields for hit in index.search(np.zeros((1, 2), dtype=np.uint8), k=99)[0]}
    tail = {**FIELDS["tail"], "labels": ["space"], "year": 1993}
    assert fields == {**FIELDS, 5: {"price": None, "a=b": 1}, "tail": tail}


def test_infinity_is_above_all_numbers() -> None:  # Milvus does not keep it as a number
    with Index.of_codes(
        np.zeros((2, 2), np.uint8), 16, fields=[{"far": math.inf}, {"far": 1}]
    ) as index:
        assert found(index, "far>1e300") == [0]


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("labels", "is not a condition"),
        ("=space", "is not a condition"),
        ("year>soon", "'soon' is neither a number nor a date"),
        ("year=2010..2000", "the range 2010..2000 of the field 'year' is empty"),
        ("labels>=3", "no document has a number or a date in the field 'labels'"),
        ("author=me", "no document has a field 'author'"),
        ("id>3", "ids have no order"),
        ({"year": (1, 2, 3)}, "a range is a pair, found 3 values"),
        ({"year": (None, None)}, "the range of the field 'year' has no end"),
        ({"year": {"~": 3}}, "no comparison '~'"),
        ({"year": {">": True}}, "True is neither a number nor a date"),
        ({"year": {">": math.nan}}, "nan is neither a number nor a date"),
        ({"day": {">": "2001-13-45"}}, "'2001-13-45' is neither a number nor a date"),
        ({"labels": {"=": {"a": 1}}}, "found by a dict"),
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
