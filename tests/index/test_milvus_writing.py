"""What is written to a Milvus server is there once and stays, and what was deleted or replaced does not come back."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_models import binary, documents
from milvus_fixtures import CODES, LONG

from milvus_server import Running
from parabit import Document, Index
from parabit.errors import IndexFolderError
from parabit.index import Milvus
from parabit.index.milvus import server as server_module
from parabit.index.milvus.collection import Collection
from parabit.index.milvus.server import Server

Asked = list[tuple[str, str, str]]
pytest_plugins = ("milvus_fixtures",)
pytestmark = [pytest.mark.scale]


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What is read from now on: how, of which collection, and with which consistency."""
    seen: Asked = []
    ask = Server.ask

    def noted(self: Server, what: str, *arguments: Any, **options: Any) -> Any:
        if "consistency_level" in options:
            seen.append((what, arguments[0], options["consistency_level"]))
        return ask(self, what, *arguments, **options)

    monkeypatch.setattr(Server, "ask", noted)
    return seen


@pytest.mark.parametrize("consistency", ["bounded", "eventually"])
def test_a_writer_counts_what_it_wrote(server: Running, tmp_path: Path, levels: Asked, consistency: str) -> None:
    place = Milvus(server.uri, collection=f"counted_{consistency}", consistency=consistency)
    with Index.of_codes(CODES[:1], 8, tmp_path / "m", milvus=place) as index:
        for number in range(10, 20):
            index.add_codes(CODES[:1], [number])
            levels.clear()
            assert len(index) == number - 8
            assert levels == [("query", place.collection, "Session")]
        index.delete([10, 11])
        assert len(index) == 9


def test_who_has_written_nothing_yet_looks_for_sure(server: Running, tmp_path: Path, levels: Asked) -> None:
    place = Milvus(server.uri, collection="looked", consistency="eventually")
    Index.of_codes(CODES[:2], 8, tmp_path / "m", milvus=place).close()
    with Index.open(tmp_path / "m", write=True) as index:
        for number, level in ((2, "Strong"), (3, "Session")):
            levels.clear()
            index.add_codes(CODES[number : number + 1], [number])
            assert levels == [("query", "looked", level)]


def test_what_was_deleted_is_not_found_by_who_deleted_it(server: Running, tmp_path: Path, levels: Asked) -> None:
    place = Milvus(server.uri, collection="deleted", consistency="session")
    with Index.of_codes(CODES[:2], 8, tmp_path / "m", fields=LONG * 2, milvus=place) as index:
        levels.clear()
        index.delete([1])  # and its parts, which are read first
        assert index.has([0, 1]).tolist() == [True, False]
        assert [level for _, name, level in levels if name == "deleted_more"] == ["Session"]
        # Of a deletion Milvus does not tell when it was, so that a session is not enough, until something was read.
        assert levels[-1] == ("query", "deleted", "Strong")
        assert (index.has([1]).tolist(), levels[-1]) == ([False], ("query", "deleted", "Session"))


def test_codes_of_many_bits_go_out_in_requests_that_the_server_takes(server: Running, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (17_000, 4096), dtype=np.uint8)  # more than its 64 MiB
    with Index.of_codes(codes, 32_768, tmp_path / "codes", milvus=Milvus(server.uri)) as index:
        assert len(index) == 17_000
        assert index.search(codes[[0, 16_999]], k=1).ids == [[0], [16_999]]
        index._home._collection.drop()  # type: ignore[attr-defined]


def test_long_ids_go_out_in_requests_that_the_server_takes(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, list[int]] = {"insert": [], "upsert": [], "query": [], "delete": [], "flush": []}
    ask = Server.ask

    def noted(self: Server, what: str, *arguments: Any, **options: Any) -> Any:
        if what in ("insert", "upsert"):
            sent[what].append(sum(len(row["id"]) for row in arguments[1]))
        elif what in sent:
            sent[what].append(len(options.get("filter", "")))
        return ask(self, what, *arguments, **options)

    ids, codes = [f"{number:05}{'x' * 995}" for number in range(9000)], np.zeros((9000, 1), dtype=np.uint8)
    monkeypatch.setattr(Server, "ask", noted)
    with Index.of_codes(codes, 8, tmp_path / "ids", ids=ids, milvus=Milvus(server.uri)) as index:
        sent["flush"].clear()
        index.update_codes(codes[:1], ids[:1], LONG)
        assert index.has(ids).all()
        index.update_codes(codes[:1000], ids[:1000])  # with the parts of the first to be looked for
        index.delete(ids[1:1000])
        # A server that is too old forgets what it was told to delete beyond a piece, if it is not in its files: before
        # the first, as others may have written, and before each of four pieces, for both collections.
        assert len(sent["flush"]) == 2 * (1 + 4)
        assert (len(index), index.has(ids[:2]).tolist()) == (8001, [True, False])
    for what, (least, most) in {"insert": (6, 9), "query": (4, 9), "upsert": (0.5, 0.6), "delete": (0.5, 0.61)}.items():
        assert least * 1e6 < max(sent[what]) < most * 1e6


@pytest.mark.parametrize(
    ("forgets", "properties"), [(True, {"collection.autocompaction.enabled": "false"}), (False, {})]
)
def test_a_server_that_forgets_does_not_merge_files_of_its_own_accord(
    server: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forgets: bool,
    properties: dict[str, str],
) -> None:
    if not forgets:
        monkeypatch.setattr(server_module, "_REMEMBERS", (2, 3))
    with Index.of_codes(CODES[:1], 8, tmp_path / "m", fields=LONG, milvus=Milvus(server.uri)) as index:
        collection = index._home._collection  # type: ignore[attr-defined]
        for name in collection._names():
            described = collection.server.ask("describe_collection", name)
            assert {key: value for key, value in described["properties"].items() if "parabit" not in key} == properties
        assert len(collection._names()) == 2


@pytest.mark.parametrize("remembers", [True, False])
def test_a_server_that_remembers_is_not_flushed(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remembers: bool
) -> None:
    flushed = 0
    flush = Collection.flush

    def counted(self: Collection, *arguments: Any) -> None:
        nonlocal flushed
        flushed += 1
        flush(self, *arguments)

    with Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(server.uri)) as index:
        monkeypatch.setattr(index._home._collection.server, "remembers", remembers)  # type: ignore[attr-defined]
        monkeypatch.setattr(Collection, "flush", counted)
        index.update_codes(CODES[:2], [0, 1])
        index.delete([0])
        assert flushed == (0 if remembers else 1)
        monkeypatch.setattr(Collection, "flush", flush)


def test_what_was_replaced_or_deleted_stays_so_while_the_server_loads_its_files(
    server: Running, tmp_path: Path
) -> None:
    """Milvus 2.3 forgets deletions that come meanwhile if they are many, and if it has just merged those files."""
    ids, codes = [f"{number:05}{'x' * 195}" for number in range(5000)], np.zeros((5000, 1), dtype=np.uint8)
    with Index.of_codes(codes, 8, tmp_path / "m", ids=ids, milvus=Milvus(server.uri)) as index:
        for _ in range(2):
            index.update_codes(codes, ids)
        index.delete(ids[1:])
        end = time.monotonic() + 5  # it looks every second
        while time.monotonic() < end:
            assert index.search(codes[:1], k=3).ids == [ids[:1]]
            assert index._home._collection.count(level="strong") == 1  # type: ignore[attr-defined]


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> dict[str, BaseException]:
    """What is asked of the server, and done, whose answer gets lost on the way, and what comes in its place."""
    lost: dict[str, BaseException] = {}
    ask = Server.ask

    def asked(self: Server, what: str, *arguments: Any, **options: Any) -> Any:
        answer = ask(self, what, *arguments, **options)
        if what in lost:
            raise lost[what]
        return answer

    monkeypatch.setattr(Server, "ask", asked)
    return lost


def test_what_was_inserted_though_nobody_heard_of_it_is_not_there_twice(
    server: Running, asked: Server, tmp_path: Path, lost: dict[str, BaseException]
) -> None:
    silence = IndexFolderError("no Milvus server answers", hint="try again")
    lost["insert"] = silence
    place = Milvus(server.uri, collection="unheard", consistency="session")
    with Index.of_codes(CODES[:3], 8, tmp_path / "m", fields=LONG * 3, milvus=place) as index:
        index.add_codes(CODES[3:4], [3], LONG)
        assert (len(index), index.search(CODES[3:4], k=9).ids) == (4, [[3, 1, 2, 0]])
        parts = asked.ask("query", "unheard_more", filter="", output_fields=["count(*)"], consistency_level="Strong")
        assert parts == [{"count(*)": 4}]
        for identity, comes in ((4, {"insert": silence, "upsert": silence}), (5, {"insert": KeyboardInterrupt()})):
            lost |= comes
            with pytest.raises(type(comes["insert"])):
                index.add_codes(CODES[:1], [identity])
            lost.clear()
            with pytest.raises(IndexFolderError, match=f"the id {identity} is in the index already"):
                index.add_codes(CODES[:1], [identity])
        assert len(index) == 6


def test_documents_without_a_word_that_the_model_knows_may_come_first(server: Running, tmp_path: Path) -> None:
    unknown = [Document(f"u{number}", "") for number in range(10_000)]  # more than are encoded at once
    with Index.build(binary(), [*unknown, *documents(0, 5)], tmp_path / "m", milvus=Milvus(server.uri)) as index:
        assert (len(index), index.left_out) == (5, 10_000)


def test_documents_that_the_server_does_not_have_are_told(
    server: Running, asked: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = Collection.insert
    monkeypatch.setattr(Collection, "insert", lambda self, entities: insert(self, entities[1:]))
    with pytest.raises(IndexFolderError, match="the Milvus server at .* was given 6 documents and has 5; its log may"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(server.uri, collection="lacking"))
    assert list(tmp_path.iterdir()) == []
    assert not asked.ask("has_collection", "lacking")
