"""What cannot be done is explained, and changes nothing."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import index_oracle as oracle
import numpy as np
import pytest
from index_models import TEXTS, binary, documents, queries
from numpy.typing import NDArray

from parabit import Document, ParabitError, ParagraphVectors, ReadOptions, open_corpus
from parabit.choices import RANKS
from parabit.corpus import Corpus, document
from parabit.errors import IndexFolderError
from parabit.explore.overview import field_types
from parabit.index import Index
from parabit.index.store import Id, schema


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


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
    (r"control character in the id: 'a\\nb'", lambda index: index.put_codes(CODES[:1], ["a\nb"])),
    ("id is empty", lambda index: index.put_codes(CODES[:1], [""])),
    ("over 4,000 digits", lambda index: index.put_codes(CODES[:1], [10**5000])),
    (
        "document 77 cannot be kept: half of a surrogate pair: the field 'title'",
        lambda index: index.put_codes(CODES[:1], [77], [{"title": "\ud800"}]),
    ),
    (
        "document 77 cannot be kept: nested more than 100 deep: the field 'deep'",
        lambda index: index.put_codes(CODES[:1], [77], [{"deep": nested(101)}]),
    ),
    (
        "control character in the id",
        lambda _: Index.of_codes(CODES[:1], BITS, ids=["\x1b"]),
    ),
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
        "vectors is of type ndarray",
        lambda _: Index.build(TEXTS, model=binary(), vectors=np.zeros((2, 3))),  # type: ignore[arg-type]
    ),
    (
        "the model is of type function; give a ParagraphVectors",
        lambda _: Index.build(TEXTS, model=lambda texts: texts),  # type: ignore[arg-type]
    ),
    ("the model is of type str", lambda _: Index.build(TEXTS, model="news-128")),  # type: ignore[arg-type]
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


REFUSED: list[tuple[Document, str]] = [
    (Document("line\nbreak", TEXTS[0]), r"control character in the id: 'line\nbreak'"),
    (Document("\x1b[2J", TEXTS[0]), r"control character in the id: '\x1b[2J'"),
    (Document("end\u2028", TEXTS[0]), r"control character in the id: 'end\u2028'"),
    (Document("half \udc00", TEXTS[0]), r"half of a surrogate pair in the id: 'half \udc00'"),
    (Document("", TEXTS[0]), "id is empty"),
    (Document("x" * 20_001, TEXTS[0]), "id too long: 'xxx"),
    (
        Document("deep", TEXTS[0], fields={"a": nested(101)}),
        "nested more than 100 deep: the field 'a'",
    ),
    (
        Document("number", TEXTS[0], fields={"n": [10**5000]}),
        "number of over 4,000 digits: the field 'n'",
    ),
    (
        Document("names", TEXTS[0], fields=dict.fromkeys(["\ud800", "\udfff"], 1)),
        "half of a surrogate pair in the names of two fields",
    ),
]
KEPT = [
    Document("no-break\u00a0space", TEXTS[0]),
    Document("turned \u202e", TEXTS[1], ("\x1b",), {"\x00": "\x00", "n": [10**400]}),
    Document("x" * 20_000, TEXTS[2], fields={"a": nested(100)}),
]


class Given(Corpus):
    """A corpus of somebody else's."""

    def __init__(self, documents: list[Document]) -> None:
        self._documents = documents

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)


@pytest.mark.parametrize("made", [list, Given])
@pytest.mark.parametrize("how", ["build", "add", "put"])
def test_a_document_that_cannot_be_kept_costs_itself_alone(
    made: Callable[[list[Document]], Any], how: str, caplog: pytest.LogCaptureFixture
) -> None:
    mixed = documents(0, 3)
    for position, (refused, _) in enumerate(REFUSED):
        mixed.insert(2 * position, refused)
    mixed += KEPT
    given = made(mixed)
    if how == "build":
        index = Index.build(given, model=binary())
    else:
        index = Index.build([], model=binary())
        done = getattr(index, how)(given)
        counts = (done, 0) if how == "add" else (done.added, done.skipped)
        assert counts == (6, len(REFUSED) if how == "put" else 0)
    with index:
        index.verify()
        assert len(index) == 6
        assert index.has([kept.id for kept in KEPT]).all()
        places = [f"document {mixed.index(refused)}" for refused, _ in REFUSED]
        assert [place for place, _ in index.skipped] == places
        for (_, reason), (_, expected) in zip(index.skipped, REFUSED, strict=True):
            assert reason.startswith(expected)
        warnings = [record.getMessage() for record in caplog.records]
        assert warnings == [f"9 documents skipped; the first is {places[0]}: {REFUSED[0][1]}"]
        for kept, stored in zip(KEPT, index.stored([kept.id for kept in KEPT]), strict=True):
            assert stored.text == kept.text
            assert stored.fields == {**kept.fields, **({"labels": ["\x1b"]} if kept.labels else {})}


@pytest.mark.parametrize("made", [list, Given])
def test_half_of_a_surrogate_pair_becomes_one_replacement(
    made: Callable[[list[Document]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    half = Document(
        "s", "text \ud83d", ("\udc00",), {"title": "\ud800 x", "n\ud800": [{"a": "\ud83d\ude00"}]}
    )
    with Index.build(documents(0, 2), model=binary()) as index:
        assert index.add(made([*documents(2, 3), half])) == 2
        [stored] = index.stored(["s"])
        assert (stored.text, stored.fields) == (
            "text \ufffd",
            {"title": "\ufffd x", "n\ufffd": [{"a": "\U0001f600"}], "labels": ["\ufffd"]},
        )
        assert index.search("\ud83d text").ids[0]
        assert "replaced by U+FFFD" in caplog.text


def test_records_that_cannot_be_kept_are_skipped_by_line(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = [{"id": "a", "text": TEXTS[0]}, {"id": "b\nc", "text": TEXTS[1]}]
    records += [
        {"id": "d", "text": TEXTS[2], "deep": nested(150)},
        {"id": "e", "text": "\ud83d" + TEXTS[3]},
    ]
    path.write_text("\n".join(map(json.dumps, records)))
    corpus = open_corpus(path)
    with Index.build(corpus, model=binary()) as index:
        assert index.has(["a", "e"]).all()
        assert len(index) == 2
        assert [place for place, _ in index.skipped] == ["r.jsonl:2", "r.jsonl:3"]
        assert [reason.partition(":")[0] for _, reason in corpus.skipped] == [
            "control character in the id",
            "nested more than 100 deep",
        ]
        assert list(corpus.notes) == [("r.jsonl", document.REPLACED)]
    with pytest.raises(ParabitError, match=r"line 2: control character in the id: 'b\\nc'"):
        Index.build(open_corpus(path, ReadOptions(strict=True)), model=binary())


def written_before(fields: Mapping[str, Any], identity: Id) -> bytes:
    """What versions without a check wrote; a list stands for a nesting that `json` does not write."""
    written = json.dumps(
        {name: value if value != [3000] else "DEEP" for name, value in fields.items()},
        ensure_ascii=False,
    )
    return written.replace('"DEEP"', "[" * 3000 + "]" * 3000).encode("utf-8", "surrogatepass")


OLD: list[tuple[Document, dict[str, Any]]] = [
    (Document("s", TEXTS[0], fields={"title": "\ud800 x"}), {"title": "\ufffd x"}),
    (Document("s", TEXTS[0], fields={"n\ud800": "\udc00"}), {"n\ufffd": "\ufffd"}),
    (
        Document("s", TEXTS[0], fields={"a": nested(260), "b": 1, "c": "[" * 300}),
        {"a": "(left out: nested more than 100 deep)", "b": 1, "c": "[" * 300},
    ),
    (
        Document("s", TEXTS[0], fields={"a": [3000], "b": "]", "c": [[2]]}),
        {"a": "(left out: nested more than 100 deep)", "b": "]", "c": [[2]]},
    ),
    (Document("s\n\ud800", TEXTS[0]), {}),
    (Document("", TEXTS[0]), {}),
]


@pytest.mark.parametrize(("old", "fields"), OLD)
@pytest.mark.parametrize("how", ["build", "add"])
def test_an_index_that_holds_such_a_document_is_searched_and_the_document_deleted(
    old: Document, fields: dict[str, Any], how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a.index"
    with monkeypatch.context() as patch:
        patch.setattr(document, "checked", lambda given: given, raising=False)
        patch.setattr(schema, "check_id", lambda _: None, raising=False)
        patch.setattr(schema, "record_of", written_before)
        first = [old] if how == "build" else []
        with Index.build([*documents(1, 4), *first], folder, model=binary()) as index:
            if how == "add":
                batch = schema.Batch(
                    [old.id], np.zeros((1, 3), np.uint8), [{**old.fields, "text": old.text}]
                )
                index._store.put(batch)  # as words were added after that, and it failed
    with Index.open(folder, write=True) as index:
        index.verify()
        hits = index.search(old.text)[0]
        assert hits[0].id == old.id
        assert hits[0].fields == fields
        assert index.duplicates() is not None
        assert [hit.id for hit in index.like([old.id])[0]]
        field_types(index.snapshot())
        index.compact()
        assert index.has([old.id]).all()
        index.delete([old.id])
        assert len(index) == 3
    with Index.open(folder) as index:
        assert not index.has([old.id]).any()
        assert old.id not in index.search(old.text, k=9).ids[0]


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff",
        b"7",
        b"[1]",
        b'{"a": 1',
        b"[" * 3000,
        b"[" * 3000 + b"]" * 3000,
        b'{"a": ' + b"[" * 3000,
        b'{"a": ' + b"[" * 3000 + b'"' + rb"\"" * 100_000,
    ],
)
def test_a_record_that_is_none_is_damage_in_words(record: bytes) -> None:
    with pytest.raises(IndexFolderError, match="the record of a document is damaged"):
        schema.fields_in(record)


def test_halves_that_a_record_has_as_escapes_are_replaced() -> None:
    record = rb'{"a": "\ud800 \uD83d\ude00", "b\udc00": [["\ud83d"]]}'
    assert schema.fields_in(record) == {"a": "\ufffd \U0001f600", "b\ufffd": [["\ufffd"]]}


@pytest.mark.parametrize(
    "date", ["0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999999"]
)
def test_a_date_that_no_calendar_has_is_text(date: str) -> None:
    dated = [
        Document("d", TEXTS[0], fields={"date": date}),
        Document("e", TEXTS[1], fields={"date": "1993-12-02"}),
    ]
    with Index.build(dated, model=binary()) as index:
        [field] = field_types(index.snapshot())
        assert (field.name, field.kind) == ("date", "string")
        assert index.stored(["d"])[0].fields == {"date": date}
        assert index.ids_where({"date": date}) == ["d"]
        assert index.ids_where({"date": ("0001-01-01", "9999-12-31")}) == ["e"]


def test_the_same_id_is_named_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "\n".join(json.dumps({"id": number, "text": TEXTS[number]}) for number in range(3))
    )
    (tmp_path / "b.csv").write_text(f"id,text\n7,{TEXTS[7]}\n2,{TEXTS[2]}\n")
    corpus = open_corpus(tmp_path)
    same = "two documents have the id '2': a.jsonl:3 and b.csv:3"
    with Index.build([], model=binary()) as index:
        explained(same, partial(index.add, corpus))
        explained(same, partial(index.put, corpus))
        explained(same, partial(Index.build, corpus, model=binary()))
        pair = [*documents(3, 5), *documents(3, 4)]
        explained("have the id 'd3': document 0 and document 2", partial(index.add, pair))
        assert len(index) == 0
