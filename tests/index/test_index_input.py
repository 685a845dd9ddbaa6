"""What cannot be done is explained, and changes nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import index_oracle as oracle
import numpy as np
import pytest
from index_models import TEXTS, binary, documents, queries
from numpy.typing import NDArray

from parabit import Document, ParabitError, ParagraphVectors
from parabit.choices import RANKS
from parabit.index import Index

BITS = 28
CODES = oracle.made_up(50, BITS)
QUERY = CODES[:1]


@pytest.fixture
def index() -> Iterator[Index]:
    """50 codes, of which the last 5 were added later and the first is deleted."""
    fields = [{"labels": ["even", "odd"][row % 2], "text": f"text {row}"} for row in range(50)]
    with Index.of_codes(CODES[:45], BITS, fields=fields[:45], backend="hashing") as index:
        index.put_codes(CODES[45:], list(range(45, 50)), fields[45:])
        index.delete([0])
        yield index


@pytest.fixture(scope="module")
def texts() -> Index:
    return Index.build(documents(0, 30), model=binary(), vectors=True)


def explained(problem: str, action: Callable[[], Any]) -> None:
    """Make sure that an error says what is wrong and what to do."""
    with pytest.raises(ParabitError, match=problem) as error:
        action()
    assert error.value.hint


def contents(index: Index) -> list[Any]:
    everything = index.search(np.zeros((1, -(-index.bits // 8)), dtype=np.uint8), k=1000)
    return [
        len(index),
        *everything[0],
        *index.snapshot().rows_of(everything.ids[0]).tolist(),
        index.info(),
    ]


WRONG_QUERIES: list[tuple[NDArray[Any], str]] = [
    (np.zeros((1, 5), dtype=np.uint8), "28 bits take 4 bytes"),  # as all codes are checked
    (CODES[0], "2-d array"),
    (np.array([["a"]]), "uint8"),
]
WRONG_NUMBERS: list[tuple[dict[str, Any], str]] = [
    ({"k": 0}, "k must be 1 or more, found 0"),
    ({"k": -100, "radius": 3}, "k must be 1 or more, found -100"),
    ({"radius": -1}, "radius must be 0 or more, found -1"),
    *(
        ({name: wrong}, f"{name} must be a whole number")
        for name in ("k", "radius")
        for wrong in (2.0, "2", True)
    ),
]


def test_queries_and_numbers_that_make_no_sense_are_explained(index: Index) -> None:
    for query, problem in WRONG_QUERIES:
        explained(problem, partial(index.search, query))
    for asked, problem in WRONG_NUMBERS:
        explained(problem, partial(index.search, QUERY, **asked))
    numbers: dict[str, Any] = {"k": np.int64(2), "radius": np.int32(28)}
    assert len(index.search(QUERY, **numbers).ids[0]) == 2
    assert len(index.search(QUERY).ids[0]) == 10
    everything: list[dict[str, Any]] = [{"k": 2**40}, {"radius": 29}, {"radius": 2**70}]
    for asked, backend in product(everything, ("auto", "flat", "hashing")):
        assert sorted(index.search(QUERY, **asked, backend=backend).ids[0]) == list(range(1, 50))


CODES_REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("there is no document 99", lambda index: index.delete([3, 99])),
    ("there is no document 0", lambda index: index.delete([0])),  # deleted before
    ("the id 3 is given twice", lambda index: index.delete([3, 4, 3])),
    ("an id must be a string or an integer", lambda index: index.delete([3, 4.5])),
    (
        "must be a string or an integer, found True",
        lambda index: index.put_codes(CODES[:1], [True]),
    ),
    ("the id 77 is given twice", lambda index: index.put_codes(CODES[:2], [77, 77])),
    ("2 codes and 3 fields", lambda index: index.put_codes(CODES[:2], [77, 78], [{}, {}, {}])),
    ("codes of shape", lambda index: index.put_codes(CODES[0], [77, 78, 79, 80])),
    ("after the first 28", lambda index: index.put_codes(CODES[:1] | 1, [3])),
    ("cannot be kept", lambda index: index.put_codes(CODES[:1], [77], [{"field": object()}])),
    ("a field named 7", lambda index: index.put_codes(CODES[:1], [77], [{7: 1}])),
    ("made of codes and knows no texts", lambda index: index.add(["hubble"])),
    ("made of codes and knows no texts", lambda index: index.model),
    ("keeps no texts to learn from", lambda index: index.retrain()),
    ("no rank 'best'", lambda index: index.search(QUERY, rank="best")),
    ("no back end 'tree'", lambda index: index.search(QUERY, backend="tree")),
    (
        "not built with the back end hashing",
        lambda _: Index.of_codes(CODES, BITS).search(QUERY, backend="hashing"),
    ),
    ("codes of shape", lambda _: Index.of_codes(CODES[0], BITS)),
    (
        "there is no folder",
        lambda index: Index.of_codes(CODES, BITS, index.folder / "none" / "a.index"),
    ),
    ("1 bit or more", lambda _: Index.of_codes(CODES, 0)),
    ("2 codes and 1 ids", lambda _: Index.of_codes(CODES[:2], BITS, ids=["a"])),
    ("no back end 'tree'", lambda _: Index.of_codes(CODES, BITS, backend="tree")),
]
TEXTS_REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("is in the index already", lambda index: index.add([*documents(30, 33), *documents(4, 5)])),
    ("d3", lambda index: index.put([*documents(3, 5), *documents(3, 4)])),
    ("a single str", lambda index: index.add(TEXTS[0])),
    ("one-shot", lambda index: index.add(iter(TEXTS))),
    ("document 0: int", lambda index: index.search([3])),
    ("cannot be kept", lambda index: index.add([Document("z", TEXTS[0], fields={"a": object()})])),
    ("a single str", lambda _: Index.build(TEXTS[0], model=binary())),
    (
        "a real-valued model",
        lambda _: Index.build(TEXTS, model=ParagraphVectors(None, dim=2).fit(TEXTS)),
    ),
]


def test_what_cannot_be_done_is_explained_and_changes_nothing(index: Index, texts: Index) -> None:
    for some, refused in ((index, CODES_REFUSED), (texts, TEXTS_REFUSED)):
        before = contents(some)
        for problem, act in refused:
            explained(problem, partial(act, some))
            assert contents(some) == before
    index.put_codes(CODES[:1], [77])  # it goes on
    assert len(index) == 50


def test_an_index_of_no_documents_knows_texts() -> None:
    with Index.build([], model=binary()) as index:
        explained("has no documents to learn from", index.retrain)
        assert index.search(queries(1), rank="hybrid").ids == [[]]
        assert index.search(queries(1)).known.tolist() == [True]
        index.add(documents(0, 2))
        assert sorted(index.search(queries(1), rank="hybrid").ids[0]) == ["d0", "d1"]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("asked", [{"k": 3}, {"radius": 20}])
def test_a_single_text_is_a_query_and_no_queries_have_no_hits(
    texts: Index, rank: str, asked: dict[str, Any]
) -> None:
    assert (
        texts.search(TEXTS[3], rank=rank, **asked).ids
        == texts.search([TEXTS[3]], rank=rank, **asked).ids
    )
    hits = texts.search([], rank=rank, **asked)
    assert (len(hits), list(hits), hits.ids, hits.scores, hits.known.tolist()) == (
        0,
        [],
        [],
        [],
        [],
    )
    assert texts.search(CODES[:0, :3]).ids == []


CHANGES: list[Callable[[Index], Any]] = [Index.compact, lambda index: index.delete([3])]
CHANGES.append(lambda index: index.put_codes(CODES[:1], [77]))
USES: list[Callable[[Index], Any]] = [*CHANGES, len, Index.refresh, Index.verify, Index.info]
USES += [
    lambda index: index.search(QUERY),
    lambda index: index.save(index.folder.with_name("copy")),
]


def test_a_closed_index_says_so(index: Index) -> None:
    index.close()
    for use in USES:
        explained("was closed", partial(use, index))
    assert not index.folder.with_name("copy").exists()
    index.close()  # a second time does no harm


def test_an_index_that_is_open_for_reading_is_not_written(index: Index, texts: Index) -> None:
    with Index.open(index.folder) as reader:
        before = contents(reader)
        for change in CHANGES:
            explained("is open for reading", partial(change, reader))
        assert contents(reader) == before == contents(index)
    with Index.open(texts.folder) as reader:
        for write in (reader.add, reader.put):
            explained("is open for reading", partial(write, documents(50, 52)))
        assert len(reader) == len(texts)
