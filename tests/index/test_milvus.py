"""An index on Milvus answers as one in a folder does, whatever is asked and done."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from index_models import TEXTS, UNKNOWN, binary, documents, queries, real_binary
from test_index_machine import DOCUMENTS, QUESTIONS, IndexMachine, Question

import milvus_file
from parabit import Document, Index
from parabit.engines.milvus import Milvus, client, snapshot
from parabit.errors import IndexFolderError
from parabit.explore import field_types
from parabit.index import Hits
from parabit.index.store import Id

pytestmark = [pytest.mark.scale]

Both = tuple[Index, Index]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The same documents in a folder and on Milvus."""
    folder = tmp_path_factory.mktemp("milvus") / "news"
    with (
        Index.build(documents(0, 120), model=real_binary(), vectors=True) as embedded,
        Index.build(
            documents(0, 120), folder, model=real_binary(), vectors=True, engine=milvus_file.place()
        ) as milvus,
    ):
        yield embedded, milvus


def same(one: Hits, other: Hits) -> None:
    """Check that two answers are the same, to the last field."""
    assert one.ids == other.ids
    assert [some.tolist() for some in one.distances] == [some.tolist() for some in other.distances]
    assert [some.tolist() for some in one.scores] == [some.tolist() for some in other.scores]
    assert (one.known.tolist(), one.codes.tolist()) == (other.known.tolist(), other.codes.tolist())
    for query in range(len(one)):
        ours, theirs = (
            [(hit.text, hit.fields, hit.code.tolist()) for hit in hits[query]]
            for hits in (one, other)
        )
        assert ours == theirs


@pytest.mark.parametrize("rank", ["hamming", "asymmetric", "cosine"])
def test_codes_and_vectors_are_ranked_alike(texts: Both, rank: str) -> None:
    embedded, milvus = texts
    asked = [*queries(5), UNKNOWN]
    filtered: dict[str, Any] = {"k": 2, "where": {"odd": True}}
    for options in ({"k": 3}, {"k": 500}, {"radius": 3}, {"k": 4, "radius": 3}, filtered):
        same(
            embedded.search(asked, rank=rank, **options), milvus.search(asked, rank=rank, **options)
        )
    same(embedded.like(["d3", "d9"], k=5, rank=rank), milvus.like(["d3", "d9"], k=5, rank=rank))


@pytest.mark.parametrize("rank", ["hybrid", "words"])
@pytest.mark.parametrize(
    "options", [{}, {"where": {"odd": True}}, {"where": {"place": (10, 90), "odd": {"!=": True}}}]
)
def test_words_find_the_same_documents_with_similar_scores(
    texts: Both, rank: str, options: dict[str, Any]
) -> None:
    """BM25 differs a little, as tantivy rounds lengths."""
    one, other = (
        index.search([*queries(6), UNKNOWN], k=10, rank=rank, **options) for index in texts
    )
    for query in range(6):
        shared = set(one.ids[query]) & set(other.ids[query])
        assert len(shared) >= 0.8 * len(one.ids[query])
        expected = dict(zip(one.ids[query], one.scores[query].tolist(), strict=True))
        for identity, score in zip(other.ids[query], other.scores[query].tolist(), strict=True):
            assert identity not in shared or score == pytest.approx(expected[identity], rel=0.1)
        assert one.word_queries[query].words == other.word_queries[query].words
    assert (one.ids[6], one.notes[6]) == (other.ids[6], other.notes[6])


@pytest.mark.parametrize(
    "asked",
    [
        "{0} +{1}",
        "{0} -{1}",
        '"{0} {1}"',
        '{0} -"{0} {1}"',
        "{0}*",
        "{0} place:7",
        "{0}x",
        "+{0} +{1} -{2}",
    ],
)
def test_operators_let_through_the_same_documents(texts: Both, asked: str) -> None:
    words = TEXTS[7].split()
    one, other = (index.search([asked.format(*words)], k=200, rank="words") for index in texts)
    assert sorted(one.ids[0]) == sorted(other.ids[0])
    assert one.notes == other.notes
    assert len(one.ids[0]) < 120


def test_an_index_says_the_same_about_itself(texts: Both) -> None:
    for ask in (
        lambda index: (len(index), index.bits, index.ranks, index.best_rank, sorted(index.fields)),
        lambda index: (index.keeps_text, index.knows_texts),
        lambda index: [(one.name, one.kind, one.values) for one in field_types(index.snapshot())],
        lambda index: (index.has(["d1", "none", 1]).tolist(), index.ids_of(["d1", "7"])),
        lambda index: [
            (one.id, one.code.tolist(), one.text, one.fields) for one in index.stored(["d7", "d0"])
        ],
        lambda index: [(group.kept, group.copies) for group in index.duplicates()],
        lambda index: sorted(index.info()["keeps"]),
    ):
        assert ask(texts[0]) == ask(texts[1])
    assert texts[1].info()["engine"]["name"] == "milvus"


def test_changes_are_found_by_code_and_by_words(tmp_path: Path) -> None:
    with Index.build(
        documents(0, 40), tmp_path / "m", model=binary(), engine=milvus_file.place()
    ) as milvus:
        assert milvus.search(["quagga"]).ids == [[]]
        written = milvus.put(
            [Document("d3", f"quagga {TEXTS[3]}"), Document("new", "quagga zebra", ("horses",))]
        )
        assert (written.added, written.replaced, len(milvus)) == (1, 1, 41)
        assert sorted(milvus.search(["quagga"]).ids[0][:2]) == ["d3", "new"]
        assert milvus.search(["zebra"], where={"labels": "horses"}).ids == [["new"]]
        with Index.open(tmp_path / "m") as reader:
            milvus.delete(["new", "d0"])
            assert milvus.search(["zebra"], rank="words").ids == [[]]
            assert (reader.refresh(), len(reader), reader.refresh()) == (True, 39, False)
            with pytest.raises(IndexFolderError, match="open for reading"):
                reader.delete("d1")
        milvus.verify()
        milvus.save(tmp_path / "copy")
        with Index.open(tmp_path / "copy") as copy:
            assert copy.search(["quagga"]).ids[0][0] == "d3"


def test_lists_that_milvus_cuts_are_made_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes, asked = oracle.made_up(300, 12, flips=0.05), oracle.made_up(4, 12, seed=5)
    with (
        Index.of_codes(codes, 12) as embedded,
        Index.of_codes(codes, 12, tmp_path / "m", engine=milvus_file.place()) as milvus,
    ):
        for module in (client, snapshot):
            monkeypatch.setattr(module, "WINDOW", 20)
        monkeypatch.setattr(snapshot, "_FIRST", 10)
        monkeypatch.setattr(snapshot, "_SPARE", 0)
        monkeypatch.setattr(client, "_NAMED", 7)
        monkeypatch.setattr(client, "_REMEMBERED", 50)
        limits: list[tuple[int | None, int | None]] = [(k, None) for k in (1, 3, 30, 150, 999)]
        limits += [(None, radius) for radius in (0, 1, 4, 12)]
        for k, radius in [*limits, (200, 3)]:
            same(embedded.search(asked, k, radius), milvus.search(asked, k, radius))


def test_nothing_is_sent_to_a_server_that_a_moved_or_foreign_index_names(tmp_path: Path) -> None:
    codes = np.arange(3, dtype=np.uint8)[:, None]
    Index.of_codes(codes, 8, tmp_path / "m", engine=milvus_file.place()).close()
    (tmp_path / "m").rename(tmp_path / "moved")
    with pytest.raises(IndexFolderError, match="nothing was sent there; .* --trust"):
        Index.open(tmp_path / "moved")
    Index.trust(tmp_path / "moved")
    with Index.open(tmp_path / "moved") as index:
        assert len(index) == 3


def test_long_texts_come_back_as_they_were(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    huge = "".join(map(chr, rng.choice([*range(32, 127), 0xE9, 0x4E2D, 0x1F680], 200_000)))
    codes = np.arange(3, dtype=np.uint8)[:, None]
    ids: list[Id] = ["x" * 1000, 7, "7"]
    fields: list[dict[str, Any]] = [{"text": huge}, {"n": 1}, {"text": huge[::-1], "n": [1, 2]}]
    with (
        Index.of_codes(codes, 8, ids=ids, fields=fields) as embedded,
        Index.of_codes(
            codes, 8, tmp_path / "m", ids=ids, fields=fields, engine=milvus_file.place()
        ) as milvus,
    ):
        for index in (embedded, milvus):
            index.put_codes(codes[:1], ids[:1], [{"text": huge[5:]}])
            index.delete(["7"])
        same(embedded.search(codes[:2], k=9), milvus.search(codes[:2], k=9))
        assert milvus.has(ids).tolist() == [True, True, False]
        with pytest.raises(IndexFolderError, match="takes .* bytes compressed"):
            milvus.put_codes(codes[:1], ["z"], [{"text": rng.bytes(400_000).hex()}])
        with pytest.raises(IndexFolderError, match="the id .* takes 5,001 bytes"):
            milvus.has(["y" * 5000])


def test_an_index_is_replaced_as_a_whole(tmp_path: Path) -> None:
    place = milvus_file.place()
    server = client.Server(place.uri)
    before = set(server.ask("list_collections"))
    codes = np.arange(4, dtype=np.uint8)[:, None]
    Index.of_codes(codes, 8, tmp_path / "m", engine=place).close()
    with Index.open(tmp_path / "m") as reader:
        with pytest.raises(IndexFolderError, match="the id 1 is given twice"):
            Index.of_codes(codes, 8, tmp_path / "m", ids=[1, 2, 1, 3], engine=place, overwrite=True)
        assert len(reader) == 4
        Index.of_codes(codes[:3], 8, tmp_path / "m", engine=place, overwrite=True).close()
        assert (reader.refresh(), len(reader)) == (True, 3)
    assert len(set(server.ask("list_collections")) - before) == 1
    name = json.loads((tmp_path / "m" / "manifest.json").read_text())["engine"]["collection"]
    server.ask("drop_collection", name)
    with pytest.raises(IndexFolderError, match="it was dropped, or is on another server"):
        Index.open(tmp_path / "m")
    server.close()


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("localhost:19530", "give one such as http://localhost:19530, or a file such as news.db"),
        ("http://root:secret@localhost:19530", "PARABIT_MILVUS_TOKEN"),
        ("http://localhost:1", "does not answer; start the server"),
        ("no such folder/x.db", "cannot be opened.*one process at a time"),
    ],
)
def test_what_cannot_be_reached_is_explained(tmp_path: Path, uri: str, message: str) -> None:
    with pytest.raises(IndexFolderError, match=message):
        Index.of_codes(np.zeros((1, 1), np.uint8), 8, tmp_path / "m", engine=Milvus(uri))
    assert not (tmp_path / "m").exists()


WRITER = """
import sys, numpy as np
from parabit import Index
index = Index.open(sys.argv[1], write=True)
for number in range(10**6):
    index.put_codes(np.full((3, 1), number % 256, np.uint8), [f"{number}.{part}" for part in range(3)])
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    codes = np.zeros((1, 1), np.uint8)
    Index.of_codes(
        codes, 8, tmp_path / "m", ids=["first"], engine=Milvus(str(tmp_path / "kill.db"))
    ).close()
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "m"], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(20)]
        with pytest.raises(IndexFolderError, match="is being written"):
            Index.open(tmp_path / "m", write=True)
        with pytest.raises(IndexFolderError, match="one process at a time"):
            Index.open(tmp_path / "m")
        writer.kill()
        last = max(acknowledged + [int(line) for line in writer.stdout.read().split()])
    with Index.open(tmp_path / "m", write=True) as index:
        index.verify()
        assert index.has(
            [f"{number}.{part}" for number in range(last + 1) for part in range(3)]
        ).all()
        index.put_codes(codes, ["after"])


class MilvusMachine(IndexMachine):
    """The suite of the embedded index, but that a reader finds what is there when it searches."""

    @initialize(documents=DOCUMENTS, bits=st.sampled_from([1, 12, 28, 128]))
    def create(self, documents: dict[Id, int], bits: int) -> None:
        self.engine = milvus_file.place()
        self.make(documents, bits, backend="auto")

    @rule(questions=QUESTIONS)
    def search_elsewhere(self, questions: list[Question]) -> None:
        self.refresh()
        self.check(self.reader, self.seen, questions)

    def teardown(self) -> None:
        if hasattr(self, "index"):
            store: Any = self.index._store
            store._server.ask("drop_collection", store.engine.collection)
        super().teardown()


def test_the_suite_of_the_embedded_index_holds_on_milvus() -> None:
    # A failure is reported as it was found: to make it smaller would take very long.
    few = settings(max_examples=3, stateful_step_count=30, deadline=None, phases=[Phase.generate])
    run_state_machine_as_test(MilvusMachine, settings=few)


# The package that brings the server leaves sockets open.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_codes_alone_work_on_a_real_server(tmp_path: Path) -> None:
    """The server from PyPI is of version 2.3.5, which has no BM25."""
    milvus = pytest.importorskip("milvus")
    codes, asked = oracle.made_up(300, 28), oracle.made_up(4, 28, seed=5)
    fields = [
        {"labels": [["a", "b"], ["b"]][number % 2], "year": 1990 + number % 10}
        for number in range(300)
    ]
    server = milvus.MilvusServer()
    server.set_base_dir(str(tmp_path / "server"))
    with server, Index.of_codes(codes, 28, fields=fields) as embedded:
        engine = Milvus(f"http://127.0.0.1:{server.listen_port}")
        refusal = "does not answer"
        while "does not answer" in refusal:  # yet, on a busy machine
            with pytest.raises(IndexFolderError) as refused:
                Index.build(documents(0, 9), tmp_path / "words", model=binary(), engine=engine)
            refusal = str(refused.value)
        assert "cannot search by words; upgrade it to 2.5 or later" in refusal
        with Index.of_codes(codes, 28, tmp_path / "m", fields=fields, engine=engine) as index:
            for some in (embedded, index):
                some.put_codes(codes[:3], [5, 6, 7])
                some.delete([1, 2])
            for options in (
                {"k": 50},
                {"radius": 3},
                {"where": {"labels": {"!=": "a"}, "year": (1993, 1995)}},
            ):
                same(embedded.search(asked, **options), index.search(asked, **options))
            index.compact()
            index.verify()
