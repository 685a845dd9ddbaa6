import json
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parabit import documents_from, open_corpus
from parabit.characters import CONTROLS, without_halves
from parabit.corpus import Corpus, Document, as_corpus, number_of
from parabit.corpus.document import RefusedError, Tally, checked
from parabit.errors import CorpusError

TEXTS = ["first text", "second text", ""]


class Rows:
    """What can be read again and is no list, as a data set of Hugging Face."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


def test_strings_documents_and_dictionaries_are_a_corpus() -> None:
    documents = [Document("a", "text", ("label",), {"year": 1993})]
    rows = Rows(
        [
            {"text": "a", "label": 3, "title": "A", "year": 1993},
            {"text": "b", "id": "x", "labels": ["p", "q"]},
        ]
    )
    for given_, expected in (
        (TEXTS, [Document(str(place), text) for place, text in enumerate(TEXTS)]),
        (Rows(TEXTS), [Document(str(place), text) for place, text in enumerate(TEXTS)]),
        (pd.Series(TEXTS), [Document(str(place), text) for place, text in enumerate(TEXTS)]),
        (documents, documents),
        (
            rows,
            [
                Document("0", "a", ("3",), {"title": "A", "year": 1993}),
                Document("x", "b", ("p", "q")),
            ],
        ),
    ):
        corpus = as_corpus(given_)
        assert list(corpus) == list(corpus) == expected
        if given_ is not TEXTS:  # which would be paths
            assert list(open_corpus(given_)) == expected


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("a bare string", "single str"),
        (b"bytes", "single bytes"),
        ({"text": "a mapping"}, "single dict"),
        (Document("1", "one document"), "single Document"),
        ((text for text in TEXTS), r"one-shot generator.*list\(\.\.\.\)"),
        (iter(TEXTS), "one-shot list_iterator"),
        (7, "must be iterable"),
        (
            pd.DataFrame({"text": TEXTS}),
            r"which column holds the text; .*documents_from\(df, text=",
        ),
        (pl.DataFrame({"text": TEXTS}), r"documents_from\(df, text="),
        (pl.LazyFrame({"text": TEXTS}), r"documents_from\(df, text="),
        (["text", None], r"document 1: missing \(None\)"),
        (["text", float("nan")], r"document 1: missing \(nan\)"),
        (["text", 7], "document 1: int, not a string"),
        ([{"text": "a"}, {"body": "b"}], "document 1: no text field: 'text' is not among body"),
        ([{"text": None}], "document 0: text is missing"),
        ([Document(3, "text")], "document 0: int as its id"),  # type: ignore[arg-type]
        ([Document("a", None)], "document 0: NoneType as its text"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_corpus_is_refused_in_words(wrong: Any, words: str) -> None:
    with pytest.raises(CorpusError, match=words):
        list(as_corpus(wrong))


COLUMNS = {
    "key": [7, 8], "body": ["Hubble", "goalie"], "topic": ["space", None], "head": ["H", None], "year": [1993.5, None],
    "day": [date(1993, 12, 2), date(1994, 1, 1)], "vector": [[1.0, 2.0], [3.0, 4.0]], "good": [True, False],
}  # fmt: skip


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)], ids=["pandas", "polars"]
)
def test_the_rows_of_a_frame_are_documents(frame: Any) -> None:
    documents = documents_from(frame, text="body", id="key", labels="topic", title="head")
    assert documents == [
        Document(
            "7",
            "Hubble",
            ("space",),
            {"year": 1993.5, "day": "1993-12-02", "good": True, "title": "H"},
        ),
        Document("8", "goalie", (), {"day": "1994-01-01", "good": False}),
    ]
    assert [document.id for document in documents_from(frame, text="body")] == ["0", "1"]
    with pytest.raises(CorpusError, match="document 1: text is missing: the field 'topic'"):
        documents_from(frame, text="topic")
    with pytest.raises(
        CorpusError, match="document 0: no text field: 'text' is not among key, body"
    ):
        documents_from(frame)
    with pytest.raises(
        CorpusError, match=r"documents_from\(df, text="
    ):  # to iterate would give the names of columns
        open_corpus(frame)


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 40), st.integers(1, 5))
def test_batches_hold_every_document_once_and_keep_their_bounds(
    texts: list[str], characters: int, most: int
) -> None:
    batches = list(as_corpus(texts).batches(characters, most))
    assert [document.text for batch in batches for document in batch] == texts
    for batch in batches:
        assert 1 <= len(batch) <= most
        assert len(batch) == 1 or sum(len(document.text) for document in batch) <= characters


def test_the_share_read_grows_to_one() -> None:
    corpus = as_corpus(TEXTS)
    assert isinstance(corpus, Corpus)
    assert [corpus.share_read for _ in corpus] == [1 / 3, 2 / 3, 1.0]


def test_a_tally_counts_all_and_names_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.corpus.document._MOST_NAMED", 2)
    tally = Tally()
    for number in range(5):
        tally.add(f"f:{number}", f"bad: {number}")
    assert (len(tally), tally.counts, [place for place, _ in tally]) == (
        5,
        {"bad": 5},
        ["f:0", "f:1"],
    )


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7.0), (-0.5, -0.5), (np.float32(0.5), 0.5), ("1970-01-02", 86400.0), ("1969-12-31T23:59:30", -30.0),
        ("1970-01-01 00:00:00.5", 0.5), ("1970-01-01T02:00:00+01:00", 3600.0), ("1970-01-01T00:01Z", 60.0),
        ("0001-01-01", -62135596800.0), ("9999-12-31T23:59:59Z", 253402300799.0), ("0001-01-01T00:00:00+12:00", None),
        ("9999-12-31T23:59:59-12:00", None), ("9999-12-31T23:59:59.999999", None), (True, None),
        (float("nan"), None), (10**400, None), ("7", None),
        ("2001-02-30", None), ("2001-05", None), ("in 2001-05-03", None), ([1], None), (None, None),
    ],
)  # fmt: skip
def test_numbers_and_dates_are_compared_as_numbers(value: Any, number: float | None) -> None:
    assert number_of(value) == number


ANY_TEXT = st.text(st.characters(), max_size=9)


def named(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Values with names that do not become one if halves of surrogate pairs are replaced."""
    return st.dictionaries(ANY_TEXT, values, max_size=3).filter(
        lambda items: len({without_halves(name) for name in items}) == len(items)
    )


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda values: st.lists(values, max_size=3) | named(values),
    max_leaves=9,
)


def is_utf_8(text: str) -> bool:
    return text == text.encode("utf-8", "replace").decode()


@given(ANY_TEXT, ANY_TEXT, st.lists(ANY_TEXT, max_size=2), named(ANY_VALUE))
def test_what_is_checked_can_be_written_back_and_named(
    identity: str, text: str, labels: list[str], fields: dict[str, Any]
) -> None:
    document = Document(identity, text, tuple(labels), fields)
    if CONTROLS.search(identity) or not identity or not is_utf_8(identity):
        with pytest.raises(RefusedError, match=r"in the id|id is empty"):
            checked(document)
        document = Document("a", text, tuple(labels), fields)
    clean = checked(document)
    written = json.dumps([clean.id, clean.text, clean.labels, clean.fields], ensure_ascii=False)
    assert json.dumps(json.loads(written.encode()), ensure_ascii=False) == written
    assert len(clean.id.splitlines()) == 1
    assert checked(clean) is clean
    assert (clean is document) == is_utf_8(json.dumps([text, labels, fields], ensure_ascii=False))


def test_what_can_be_written_back_is_not_touched() -> None:
    document = Document(
        "notes/Münchner\u00a0Süden 😀.txt",
        "\x00 text \u202e",
        ("a\tb",),
        {"list": [1, 2.5, None, True, "é"], "object": {"a": [{}]}, "\n": float("inf")},
    )
    assert checked(document) is document


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names of files")
def test_files_whose_names_have_line_breaks_are_not_lost(tmp_path: Path) -> None:
    names = [b"x\ncontract.txt", rb"x\ncontract.txt", b"contract.txt", b"\x1b[2J.txt", b"\x85.txt"]
    for name in [*names, rb"\x85.txt", "\x85\u2028.txt".encode()]:
        with open(os.path.join(os.fsencode(tmp_path), name), "w") as file:  # noqa: PTH118, PTH123
            file.write("text")
    corpus = open_corpus(tmp_path)
    ids = {document.id for document in corpus}
    assert ids == {
        r"x\ncontract.txt", r"x\\ncontract.txt", "contract.txt", r"\x1b[2J.txt", r"\x85.txt", r"\\x85.txt",
        r"\u0085\u2028.txt",
    }  # fmt: skip
    assert len(corpus.skipped) == 0
