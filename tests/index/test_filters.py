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
        ("year>soon", "'soon' is neither a number nor a date"),
        ("year=2010..2000", "the range 2010..2000 of the field 'year' is empty"),
        ("year=1990..soon", "'soon' is neither a number nor a date"),
        ("labels>=3", "no document has a number or a date in the field 'labels'"),
        ("author=me", "no document has a field 'author'"),
        ("id>3", "ids have no order"),
        ({"year": (1, 2, 3)}, "a range is a pair, found 3 values"),
        ({"year": (None, None)}, "the range of the field 'year' has no end"),
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


VALUES: dict[Any, dict[str, Any]] = {
    "a": {"labels": ["space", "orbit"], "year": 1993, "good": True, "note": None},
    "b": {"labels": ["space"], "year": 1994, "good": False, "note": ""},
    "c": {"labels": [], "year": "1993", "good": 1, "note": "None"},
    7: {"labels": "hockey", "year": 1993.0, "good": 0, "score": 0.5},
    "7": {"year": [1993, 1994], "nested": {"deep": 1}, "mixed": [1, "1", None, [2]]},
    "tail": {"labels": ("space",), "year": np.int64(1993), "late": "ja é"},
}
EVERYTHING = list(VALUES)
CASES: list[tuple[dict[str, Any], list[Any]]] = [
    ({}, EVERYTHING),
    ({"labels": "space"}, ["a", "b", "tail"]),
    ({"labels": ["orbit", "hockey"]}, ["a", 7]),
    ({"labels": np.array(["orbit", "hockey"])}, ["a", 7]),
    ({"labels": []}, []),
    ({"year": 1993}, ["a", 7, "7", "tail"]),
    ({"year": range(1990, 1994)}, ["a", 7, "7", "tail"]),
    ({"year": "1993"}, ["c"]),
    ({"year": None}, []),
    ({"note": None}, ["a"]),
    ({"note": [None, ""]}, ["a", "b"]),
    ({"good": True}, ["a"]),
    ({"good": [False, 0]}, ["b", 7]),
    ({"mixed": 1}, ["7"]),
    ({"mixed": None}, ["7"]),
    ({"nested": "deep"}, []),
    ({"late": "ja é"}, ["tail"]),
    ({"id": np.int64(7)}, [7]),
    ({"id": ["7", 7, "none", 8]}, [7, "7"]),
    ({"id": [None, 0.5, True]}, []),
    ({"id": "gone"}, []),
    ({"labels": "space", "year": 1993}, ["a", "tail"]),
    ({"labels": "space", "year": [1993, 1994], "id": ["b", "tail", 7]}, ["b", "tail"]),
    ({"labels": {"!=": ["space", "hockey"]}}, ["c", "7"]),
    ({"year": (1993, 1994)}, ["a", "b", 7, "tail"]),
    ({"year": (None, 1993.5)}, ["a", 7, "tail"]),
    ({"year": {">": 1993, "!=": 1995}}, ["b"]),
]


@pytest.fixture(scope="module", params=["with a tail", "compacted", pytest.param("on Milvus", marks=pytest.mark.scale)])
def values(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Six equal codes, the last added later, and two documents that are deleted and had everything."""
    codes = np.zeros((7, 2), dtype=np.uint8)
    gone = {"labels": ["space", "gone"], "year": 1993, "good": True, "note": None}
    fields = [*VALUES.values()]
    engine = milvus_file.place() if request.param == "on Milvus" else None
    folder = tmp_path_factory.mktemp("where") / "index"
    ids = ["gone", *EVERYTHING[:5]]
    with Index.of_codes(codes[:6], 16, folder, ids=ids, fields=[gone, *fields[:5]], engine=engine) as index:
        index.put_codes(codes[:2], ["tail", "gone too"], [fields[5], gone])
        index.delete(["gone", "gone too"])
        if request.param == "compacted":
            index.compact()
        yield index


def test_fields_come_back_as_json_has_them(values: Index) -> None:
    fields = {hit.id: hit.fields for hit in values.search(np.zeros((1, 2), dtype=np.uint8), k=99)[0]}
    assert fields == {**VALUES, "tail": {"labels": ["space"], "year": 1993, "late": "ja é"}}


@pytest.mark.parametrize(("where", "expected"), CASES)
def test_a_filter_lets_through(values: Index, where: dict[str, Any], expected: list[Any]) -> None:
    asked = np.zeros((2, 2), dtype=np.uint8)
    assert values.search(asked, k=99, where=where).ids == [expected] * 2
    assert values.search(asked, radius=0, where=where).ids == [expected] * 2
    assert values.search(asked, k=2, radius=3, where=where).ids == [expected[:2]] * 2
    assert values.search(asked, k=1, where=where).ids == [expected[:1]] * 2
