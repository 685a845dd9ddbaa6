"""Whatever is done to an index in whatever order, a search finds what a scan of a plain dictionary finds."""

import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from numpy.typing import NDArray

from parabit import ParabitError
from parabit.index import Index, code_search
from parabit.index.store import Id, Snapshot

SEEDS = st.integers(0, 60)
STRINGS = [
    "",
    "\N{GREEK SMALL LETTER MU}",
    "a\0b",
    "\N{ROCKET}",
    "\r\n\t\"'\\",
    "-1",
    " ",
    "1",
    "é",
    "a" * 300,
]
NAMES = [
    "\N{NO-BREAK SPACE}",
    "\N{ROCKET}",
    "\"'\\",
    "-1",
    " ",
    "1",
    "é",
    "a" * 300,
]  # that ids may be
IDS = st.one_of(st.integers(-3, 25), st.sampled_from(NAMES))
DOCUMENTS = st.dictionaries(IDS, SEEDS, max_size=12)
LABELS = ("space", "hockey", "cars")


class Question(NamedTuple):
    """What a search is asked."""

    seeds: list[int]  # of the queries
    k: int | None
    radius: int | None
    where: dict[str, Any]
    built: bool  # by the back end that was built, else by auto or by a scan
    scan: bool


SOME_LABELS = st.sampled_from(LABELS) | st.lists(st.sampled_from(LABELS))
YEARS = st.sampled_from([1990, 1991.0, "1990", None])
WHERE = st.fixed_dictionaries(
    {}, optional={"labels": SOME_LABELS, "year": YEARS, "id": IDS | st.lists(IDS)}
)
QUESTION = st.builds(
    Question,
    seeds=st.lists(SEEDS, max_size=3),
    k=st.sampled_from([None, 1, 2, 3, 5, 9, 40]),
    radius=st.sampled_from([None, None, 0, 1, 3, 8, 40, 200]),
    where=st.one_of(st.just({}), WHERE),
    built=st.booleans(),
    scan=st.booleans(),
)
QUESTIONS = st.lists(QUESTION, min_size=3, max_size=5)


def fields_of(seed: int) -> dict[str, Any]:
    odd = STRINGS[seed % len(STRINGS)]
    labels = sorted({LABELS[seed % 3], LABELS[seed % 2]})
    return {"labels": labels, "year": 1990 + seed % 3, "seed": seed, "text": odd, f"odd {odd}": odd}


class IndexMachine(RuleBasedStateMachine):
    """A writer, a reader that looks now and then, and a dictionary of each document's seed, in the order of rows."""

    engine: Any = None  # a folder

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()

    @initialize(
        documents=DOCUMENTS,
        bits=st.sampled_from([1, 12, 28, 128]),
        backend=st.sampled_from(["auto", "flat", "hashing"]),
        hashes=st.booleans(),
        collide=st.booleans(),
    )
    def create(
        self, documents: dict[Id, int], bits: int, backend: str, hashes: bool, collide: bool
    ) -> None:
        if collide:  # many ids have one hash
            self.patch.setattr("parabit.index.store.generation.hashes", few_hashes)
        if hashes:  # auto would scan so few codes
            self.patch.setattr(code_search, "choose_built", lambda *_: "hashing")
            self.patch.setattr(code_search, "choose", lambda *asked: sorted(asked[-1])[-1])
        self.make(documents, bits, backend)

    def make(self, documents: dict[Id, int], bits: int, backend: str) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.bits, self.backend = bits, backend
        self.codes = oracle.made_up(61, bits, clusters=4)
        self.index = Index.of_codes(
            self.codes_of(documents), bits, self.folder, ids=list(documents), fields=fields(documents),
            backend=backend, engine=self.engine,
        )  # fmt: skip
        self.expected, self.ever = dict(documents), bool(documents)
        self.reader, self.seen = Index.open(self.folder), dict(documents)
        self.keep_snapshot()

    @property
    def folder(self) -> Path:
        return self.root / "index"

    def codes_of(self, documents: dict[Id, int]) -> NDArray[np.uint8]:
        return self.codes[np.array(list(documents.values()), dtype=np.int64)]

    @rule(documents=DOCUMENTS)
    def add(self, documents: dict[Id, int]) -> None:
        new = {
            identity: seed for identity, seed in documents.items() if identity not in self.expected
        }
        assert self.index.put_codes(self.codes_of(new), list(new), fields(new)) == 0
        self.expected |= new
        self.ever = self.ever or bool(new)

    @rule(data=st.data())
    @precondition(lambda self: self.expected)
    def delete(self, data: st.DataObject) -> None:
        gone = data.draw(st.lists(st.sampled_from(list(self.expected)), unique=True))
        self.index.delete(gone)
        for identity in gone:
            del self.expected[identity]
        if gone:
            with pytest.raises(ParabitError, match="there is no document"):
                self.index.delete([*self.expected, gone[0]])

    @rule(documents=DOCUMENTS)
    def update(self, documents: dict[Id, int]) -> None:
        known = {
            identity: seed for identity, seed in documents.items() if identity in self.expected
        }
        assert self.index.put_codes(self.codes_of(known), list(known), fields(known)) == len(known)
        for identity, seed in known.items():  # which moves to the end
            del self.expected[identity]
            self.expected[identity] = seed

    @rule(over_itself=st.booleans())
    def compact(self, over_itself: bool) -> None:
        if over_itself:
            self.index.save(self.folder, overwrite=True)
        else:
            self.index.compact()
        assert self.index.info()["to_merge"] == {
            **self.index.info()["to_merge"],
            "added": 0,
            "deleted": 0,
        }

    @rule()
    def open_again(self) -> None:
        self.index.close()
        self.index = Index.open(self.folder, write=True)

    @rule(questions=QUESTIONS)
    def save(self, questions: list[Question]) -> None:
        self.index.save(self.root / "copy", overwrite=True)
        with Index.open(self.root / "copy") as copy:
            self.check(copy, self.expected, questions)

    @rule()
    def refresh(self) -> None:
        assert self.reader.refresh() or self.seen == self.expected
        self.seen = dict(self.expected)

    @rule()
    def keep_snapshot(self) -> None:
        self.snapshot, self.then = self.index.snapshot(), dict(self.expected)

    @rule()
    def look_at_the_snapshot(self) -> None:
        """A snapshot does not see later changes."""
        if self.engine is None:
            self.check_rows(self.snapshot, self.then)

    @rule(questions=QUESTIONS)
    def search(self, questions: list[Question]) -> None:
        self.check(self.index, self.expected, questions)

    @rule(questions=QUESTIONS)
    def search_elsewhere(self, questions: list[Question]) -> None:
        """What a reader finds is as old as its latest refresh, and whole."""
        self.check(self.reader, self.seen, questions)

    def check(self, index: Index, documents: dict[Id, int], questions: list[Question]) -> None:
        assert len(index) == len(documents)
        if self.engine is None:
            self.check_rows(index.snapshot(), documents)
        for question in questions:
            self.answer(index, documents, question)

    def check_rows(self, snapshot: Snapshot, documents: dict[Id, int]) -> None:
        """Every document has a row, in the order in which they came, with all that is kept of it."""
        rows = snapshot.sample(100)
        assert snapshot.ids_of(rows) == list(documents)
        assert snapshot.rows_of([*documents, "nobody"]).tolist() == [*rows.tolist(), -1]
        assert np.array_equal(snapshot.codes(rows), self.codes_of(documents))
        assert snapshot.fields_of(rows) == fields(documents)
        assert snapshot.numbers("seed")[rows].tolist() == list(documents.values())
        assert snapshot.count("labels", "cars") == sum(
            "cars" in fields_of(seed)["labels"] for seed in documents.values()
        )
        serials = snapshot.serials[rows]
        assert (np.diff(serials) > 0).all()
        by_serial = snapshot.rows_of_serials(np.arange(snapshot.last_serial + 2))
        assert np.array_equal(by_serial[serials], rows)
        assert np.count_nonzero(by_serial >= 0) == len(rows)
        found = snapshot.find(self.codes[:3], most=3, radius=None)
        near = oracle.search(self.codes_of(documents), self.codes[:3], most=3)
        assert oracle.pairs(found) == [[(rows[row], away) for row, away in some] for some in near]

    def answer(self, index: Index, documents: dict[Id, int], question: Question) -> None:
        where = question.where if self.ever and documents else {}
        asked = self.codes[np.array(question.seeds, dtype=np.int64)]
        backend = self.backend if question.built else ("flat" if question.scan else "auto")
        hits = index.search(asked, question.k, question.radius, where=where, backend=backend)
        kept = {
            identity: seed
            for identity, seed in documents.items()
            if lets_through(where, identity, seed)
        }
        k = 10 if question.k is None and question.radius is None else question.k
        radius = self.bits if question.radius is None else question.radius
        ids = list(kept)
        found = oracle.search(self.codes_of(kept), asked, radius=radius)
        assert hits.ids == [[ids[row] for row, _ in some[:k]] for some in found]
        assert [type(identity) for some in hits.ids for identity in some] == [
            type(ids[row]) for some in found for row, _ in some[:k]
        ]
        assert [some.tolist() for some in hits.distances] == [
            [away for _, away in some[:k]] for some in found
        ]
        for place, some in enumerate(hits):
            assert [{**hit.fields, "text": hit.text} for hit in some] == [
                fields_of(kept[hit.id]) for hit in some
            ]
            assert [hit.score for hit in some] == pytest.approx(
                [1 - (hit.distance or 0) / self.bits for hit in some]
            )
            rows = index.snapshot().rows_of(hits.ids[place])
            assert (np.diff(rows) > 0)[np.diff(hits.distances[place]) == 0].all()

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index.close()
            self.reader.close()
            shutil.rmtree(self.root, ignore_errors=True)  # tantivy may still be tidying up there
            self.patch.undo()


def few_hashes(rows: list[bytes]) -> NDArray[np.uint64]:
    return np.array([len(row) for row in rows], dtype=np.uint64)


def fields(documents: dict[Id, int]) -> list[dict[str, Any]]:
    return [fields_of(seed) for seed in documents.values()]


def lets_through(where: dict[str, Any], identity: Id, seed: int) -> bool:
    """Whether a document has one of the values asked for in every field."""
    for field, wanted in where.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if field == "id":
            if not any(identity == value and type(identity) is type(value) for value in values):
                return False
            continue
        held = fields_of(seed)[field]
        if not any(value in held if isinstance(held, list) else value == held for value in values):
            return False
    return True


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
