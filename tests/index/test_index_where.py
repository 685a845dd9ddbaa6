"""A filter lets through the documents that have one of the values asked for, in every field."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import milvus_file
from parabit.index import Index

FIELDS: dict[Any, dict[str, Any]] = {
    "a": {"labels": ["space", "orbit"], "year": 1993, "good": True, "note": None},
    "b": {"labels": ["space"], "year": 1994, "good": False, "note": ""},
    "c": {"labels": [], "year": "1993", "good": 1, "note": "None"},
    7: {"labels": "hockey", "year": 1993.0, "good": 0, "score": 0.5},
    "7": {"year": [1993, 1994], "nested": {"deep": 1}, "mixed": [1, "1", None, [2]]},
    "tail": {"labels": ("space",), "year": np.int64(1993), "late": "ja é"},
}
EVERYTHING = list(FIELDS)
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
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Six equal codes, the last added later, and two documents that are deleted and had everything."""
    codes = np.zeros((7, 2), dtype=np.uint8)
    gone = {"labels": ["space", "gone"], "year": 1993, "good": True, "note": None}
    fields = [*FIELDS.values()]
    engine = milvus_file.place() if request.param == "on Milvus" else None
    folder = tmp_path_factory.mktemp("where") / "index"
    ids = ["gone", *EVERYTHING[:5]]
    with Index.of_codes(codes[:6], 16, folder, ids=ids, fields=[gone, *fields[:5]], engine=engine) as index:
        index.put_codes(codes[:2], ["tail", "gone too"], [fields[5], gone])
        index.delete(["gone", "gone too"])
        if request.param == "compacted":
            index.compact()
        yield index


def test_fields_come_back_as_json_has_them(index: Index) -> None:
    fields = {hit.id: hit.fields for hit in index.search(np.zeros((1, 2), dtype=np.uint8), k=99)[0]}
    assert fields == {**FIELDS, "tail": {"labels": ["space"], "year": 1993, "late": "ja é"}}


@pytest.mark.parametrize(("where", "expected"), CASES)
def test_a_filter_lets_through(index: Index, where: dict[str, Any], expected: list[Any]) -> None:
    asked = np.zeros((2, 2), dtype=np.uint8)
    assert index.search(asked, k=99, where=where).ids == [expected] * 2
    assert index.search(asked, radius=0, where=where).ids == [expected] * 2
    assert index.search(asked, k=2, radius=3, where=where).ids == [expected[:2]] * 2
    assert index.search(asked, k=1, where=where).ids == [expected[:1]] * 2
