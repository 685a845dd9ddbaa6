"""What nobody may lose on a Milvus server: what is others', and an index when an interrupt or a slip comes upon it."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_models import binary, documents

from milvus_server import Running, running
from parabit import Document, Index
from parabit.errors import IndexFolderError
from parabit.index import Milvus, labels, pairing
from parabit.index.labels import labels_of
from parabit.index.milvus import home as home_module
from parabit.index.milvus import making
from parabit.index.milvus.collection import Collection
from parabit.index.milvus.server import Server
from parabit.index.milvus.view import Fetched

CODES = np.arange(6, dtype=np.uint8)[:, None]
LONG = [{"text": "long " * 20_000}]  # more than goes into one entity
Asked = list[tuple[str, str, str]]
pytestmark = [pytest.mark.scale]


@pytest.fixture(scope="module")
def server() -> Running:
    return running()


@pytest.fixture
def asked(server: Running) -> Iterator[Server]:
    """A connection of its own, to see what is on the server."""
    connection = Server(server.uri)
    yield connection
    connection.close()


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


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def somebodys(asked: Server, name: str) -> None:
    """Make a collection that is not of an index, with a document in it."""
    schema = asked.schema("holiday pictures")
    schema.add_field("id", asked.types.VARCHAR, is_primary=True, max_length=99)
    schema.add_field("text", asked.types.VARCHAR, max_length=65_535)
    schema.add_field("code", asked.types.BINARY_VECTOR, dim=8)
    indexes = asked.index_params()
    indexes.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
    asked.ask("create_collection", name, schema=schema, index_params=indexes)
    asked.ask("upsert", name, [{"id": "beach", "text": "sand", "code": b"\0"}])


def is_untouched(asked: Server, name: str) -> bool:
    rows = asked.ask("query", name, filter='id != ""', output_fields=["id"], consistency_level="Strong")
    return [row["id"] for row in rows] == ["beach"]


def test_a_collection_of_somebody_else_is_neither_written_nor_dropped(
    server: Running, asked: Server, tmp_path: Path
) -> None:
    place = Milvus(server.uri, collection="shared")
    somebodys(asked, "shared_more")
    with pytest.raises(IndexFolderError, match="has a collection 'shared_more' already; give another name"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert not asked.ask("has_collection", "shared")
    asked.ask("drop_collection", "shared_more")
    with Index.of_codes(CODES, 8, tmp_path / "m", milvus=place) as index:
        somebodys(asked, "shared_more")  # later than the index, which had no need of it yet
        with pytest.raises(IndexFolderError, match="a collection 'shared_more' that is not of this index; what is too"):
            index.add_codes(CODES[:1], ["long"], LONG)
        index.add_codes(CODES[:1], ["short"])
        index.delete([0])
        index.compact()
        assert len(index) == 6
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert not asked.ask("has_collection", "shared")
    assert is_untouched(asked, "shared_more")
    asked.ask("drop_collection", "shared_more")


def test_a_collection_that_has_taken_the_name_of_an_index_stays(server: Running, asked: Server, tmp_path: Path) -> None:
    Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(server.uri, collection="retaken")).close()
    asked.ask("drop_collection", "retaken")
    somebodys(asked, "retaken")
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert is_untouched(asked, "retaken")
    asked.ask("drop_collection", "retaken")


def test_an_index_and_what_is_too_long_for_it_go_together(server: Running, asked: Server, tmp_path: Path) -> None:
    place = Milvus(server.uri, collection="whole")
    with Index.of_codes(CODES[:1], 8, tmp_path / "m", fields=LONG, milvus=place) as index:
        assert index.stored([0])[0].text == LONG[0]["text"]
    assert asked.ask("has_collection", "whole_more")
    Index.of_codes(CODES, 8, tmp_path / "m", overwrite=True).close()
    assert not asked.ask("has_collection", "whole")
    assert not asked.ask("has_collection", "whole_more")


def test_what_cannot_be_made_is_not_left(
    server: Running, asked: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pymilvus = pytest.importorskip("pymilvus")
    place = Milvus(server.uri, collection="unmade")

    def made() -> list[str]:
        return sorted(name for name in asked.ask("list_collections") if name.startswith("unmade"))

    with monkeypatch.context() as patch:
        patch.setattr(pymilvus.MilvusClient, "load_collection", stop)
        with pytest.raises(KeyboardInterrupt):
            Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert (made(), list(tmp_path.iterdir())) == ([], [])
    with Index.of_codes(CODES, 8, tmp_path / "m", milvus=place) as index:
        with monkeypatch.context() as patch:
            patch.setattr(pymilvus.MilvusClient, "load_collection", stop)
            with pytest.raises(KeyboardInterrupt):
                index.add_codes(CODES[:1], ["long"], LONG)
        assert made() == ["unmade"]
        index.add_codes(CODES[:1], ["long"], LONG)
        assert (made(), index.stored(["long"])[0].text) == (["unmade", "unmade_more"], LONG[0]["text"])


def _clearing_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "remove_leftovers", stop)


def _just_written(monkeypatch: pytest.MonkeyPatch) -> None:
    write = making.write_manifest
    monkeypatch.setattr(making, "write_manifest", lambda *given: (write(*given), stop()))


@pytest.mark.parametrize("interrupted", [_clearing_away, _just_written])
def test_an_interrupt_after_the_new_index_is_in_force_leaves_it(
    server: Running,
    asked: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    interrupted: Callable[[pytest.MonkeyPatch], None],
) -> None:
    folder = tmp_path / "m"
    Index.of_codes(CODES[:2], 8, folder).close()
    interrupted(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        Index.of_codes(CODES, 8, folder, milvus=Milvus(server.uri), overwrite=True)
    monkeypatch.undo()
    with Index.open(folder) as index:
        assert len(index) == 6
        assert index.search(CODES[:1], radius=0).ids == [[0]]


def test_a_copy_over_another_index_drops_its_collection_and_never_its_own(
    server: Running, asked: Server, tmp_path: Path
) -> None:
    for name, codes in (("saved", CODES), ("replaced", CODES[:2])):
        Index.of_codes(codes, 8, tmp_path / name, milvus=Milvus(server.uri, collection=name)).close()
    with Index.open(tmp_path / "saved") as index:
        index.save(tmp_path / "replaced", overwrite=True)
        assert not asked.ask("has_collection", "replaced")
        shutil.copytree(tmp_path / "saved", tmp_path / "copy")
        index.save(tmp_path / "copy", overwrite=True)
        assert len(index.search(CODES, radius=0).ids) == 6
        with Index.open(tmp_path / "replaced") as one, Index.open(tmp_path / "copy") as other:
            assert (len(one), len(other), one.info()["backends"]) == (6, 6, ["flat"])
    with Index.open(tmp_path / "saved") as index:
        assert len(index) == 6


def test_what_goes_through_all_documents_keeps_a_block_of_them(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    fetch = Fetched._fetch

    def noted(self: Fetched, *given: Any) -> Any:
        read = fetch(self, *given)
        kept.append(max(len(self._keys), len(self._rows), *map(len, read.values())))
        return read

    with Index.build(binary(), documents(0, 60), tmp_path / "m", milvus=Milvus(server.uri)) as index:
        expected = {pair for some in index.pairs(1) for pair in zip(some.first, some.second, strict=True)}
        monkeypatch.setattr(home_module, "_AT_ONCE", 7)
        monkeypatch.setattr(pairing, "_AT_ONCE", 7)
        monkeypatch.setattr(Fetched, "_fetch", noted)
        index.verify()
        index.save(tmp_path / "copy")
        assert 0 < max(kept) <= 7
        kept.clear()
        assert {pair for some in index.pairs(1) for pair in zip(some.first, some.second, strict=True)} == expected
        assert 0 < max(kept) <= 7
        with Index.open(tmp_path / "copy") as copy:
            assert [one.text for one in copy.stored(["d0", "d59"])] == [one.text for one in index.stored(["d0", "d59"])]
            assert len(copy) == 60


def test_labels_are_counted_of_what_is_there_and_not_of_what_was(server: Running, tmp_path: Path) -> None:
    fields = [{"labels": ["even" if row % 2 == 0 else "odd"]} for row in range(6)]
    with (
        Index.of_codes(CODES[:0], 8, tmp_path / "m", milvus=Milvus(server.uri)) as index,
        Index.open(tmp_path / "m") as reader,
    ):
        assert len(reader) == 0
        index.add_codes(CODES, [*range(6)], fields)
        assert reader.labels() == labels.Labels({"even": 3, "odd": 3}, complete=True)  # the count is still 0
        assert (reader.refresh(), len(reader)) == (True, 6)
        index.delete([0, 2, 4, 5])
        assert reader.labels() == labels.Labels({"odd": 2}, complete=True)
        assert labels_of(reader._home.view(), 9, looked_at=3).complete is False  # one in two, as far as it knows


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


def test_what_was_replaced_or_deleted_stays_so_while_the_server_compacts(server: Running, tmp_path: Path) -> None:
    """Milvus 2.3 loads what it has compacted, and forgets deletions that come meanwhile if there are too many."""
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


def test_a_damaged_manifest_does_not_lead_in_a_circle(server: Running, asked: Server, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    place = Milvus(server.uri, collection="circle")
    Index.of_codes(CODES, 8, folder, milvus=place).close()
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "bits": 12}))
    for milvus in (None, Milvus(server.uri)):
        with pytest.raises(
            IndexFolderError, match="cannot be replaced: .*is damaged; restore it.* or remove the folder first, which"
        ):
            Index.of_codes(CODES, 8, folder, milvus=milvus, overwrite=True)
    assert asked.ask("has_collection", "circle")
    shutil.rmtree(folder)
    Index.of_codes(CODES, 8, folder, milvus=Milvus(server.uri), overwrite=True).close()
    with Index.open(folder) as index:
        assert len(index) == 6
