"""What can go wrong with a Milvus server, from a wrong address to one that is killed while it writes."""

import json
import shutil
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import index_oracle as oracle
import numpy as np
import pytest
from index_models import TEXTS, binary, documents, real_binary
from typer.testing import CliRunner

from json_lines import as_lines
from milvus_server import Running, running
from parabit import Document, Index
from parabit.cli.app import app
from parabit.cli.index_options import CONSISTENCIES, MILVUS_INDEXES
from parabit.errors import CodesError, IndexFolderError
from parabit.index import Milvus, milvus
from parabit.index.milvus import server as server_module
from parabit.index.milvus.server import Server

CODES = np.arange(6, dtype=np.uint8)[:, None]
pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("milvus")]


@pytest.fixture(scope="module")
def server() -> Running:
    return running()


@pytest.fixture(scope="module")
def asked(server: Running) -> Iterator[Server]:
    """A connection of its own, to see what is on the server."""
    connection = Server(server.uri)
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Milvus("localhost:19530"), "'localhost:19530' is no address of a Milvus server; give one such as http://"),
        (Milvus("milvus.db"), "is no address"),
        (Milvus("http://host:port"), "is no address"),
        (Milvus("http://me:secret@localhost:19530"), "has a password in it; .*PARABIT_MILVUS_TOKEN"),
        (Milvus("http://localhost:1", collection="a b"), "cannot be named 'a b'"),
        (Milvus("http://localhost:1", index="BIN_FLATT"), "no index of Milvus 'BIN_FLATT'; did you mean BIN_FLAT"),
        (Milvus("http://localhost:1", consistency="weak"), "no consistency 'weak'; there are strong"),
        (Milvus("http://localhost:1", lists=4, probes=5), "5 of 4 lists"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_done(place: Milvus, words: str, tmp_path: Path) -> None:
    with pytest.raises(IndexFolderError, match=words):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "http://192.0.2.1:19530", "http://no-such-host.invalid:19530"])
def test_nobody_at_the_address_is_told_within_seconds(server: Running, uri: str, tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(IndexFolderError, match=f"no Milvus server answers at {uri}; start it, or correct the address"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(uri))
    assert time.monotonic() < start + 7
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_not_waited_for(server: Running, tmp_path: Path) -> None:
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(IndexFolderError, match="no Milvus server"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(f"http://127.0.0.1:{silent.getsockname()[1]}"))
    assert 4 < time.monotonic() - start < 8


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(IndexFolderError, match=r"pymilvus is not installed; pip install 'parabit\[milvus\]'"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus("http://localhost:1"))


def test_what_milvus_cannot_keep_is_told(server: Running, asked: Server, tmp_path: Path) -> None:
    place = Milvus(server.uri, collection="limits")
    for refused, options in (
        ("an index on Milvus needs a folder", {"folder": None}),
        ("Milvus takes codes of 32,768 bits at most, found 32,776", {"bits": 32_776, "codes": np.zeros((1, 4097))}),
        ("the id 'xxx.*has 65,537 bytes; Milvus takes 65,535", {"ids": ["x" * 65_536]}),
        ("document 0 has 4,097 values in its fields; .* 4,096 at most", {"fields": [{"n": [*range(4097)]}]}),
        ("of 65,537 ids, 1 are given twice", {"codes": np.zeros((65_537, 1)), "ids": [*range(65_536), 7]}),
    ):
        given: dict[str, Any] = {"codes": CODES[:1], "bits": 8, "folder": tmp_path / "m", **options}
        given["codes"] = given["codes"].astype(np.uint8)
        with pytest.raises((IndexFolderError, CodesError), match=refused):
            Index.of_codes(milvus=place, **given)
        assert list(tmp_path.iterdir()) == []
        assert not asked.ask("has_collection", "limits")


def test_a_collection_that_is_not_that_of_the_index_is_told(
    server: Running, asked: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    Index.build(binary(), documents(0, 5), folder, milvus=Milvus(server.uri, collection="mine")).close()
    with pytest.raises(IndexFolderError, match="has a collection 'mine' already; give another name"):
        Index.of_codes(CODES, 8, tmp_path / "other", milvus=Milvus(server.uri, collection="mine"))
    with pytest.raises(IndexFolderError, match="was made with another model"):
        Index.open(folder, model=real_binary())
    shutil.copytree(folder, tmp_path / "copy")
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    (tmp_path / "copy" / "manifest.json").write_text(json.dumps({**manifest, "bits": 12}))
    with pytest.raises(IndexFolderError, match="manifest.json is damaged"):
        Index.open(tmp_path / "copy")
    asked.ask("drop_collection", "mine")
    with pytest.raises(IndexFolderError, match="has no collection 'mine'; it was dropped, or is on another server"):
        Index.open(folder)
    Index.build(real_binary(), documents(0, 5), tmp_path / "new", milvus=Milvus(server.uri, collection="mine")).close()
    with pytest.raises(IndexFolderError, match="collection 'mine' at .* was made with another model than .*mine"):
        Index.open(folder)
    asked.ask("drop_collection", "mine")
    schema = asked.schema("holiday pictures")
    schema.add_field("id", asked.types.VARCHAR, is_primary=True, max_length=9)
    schema.add_field("code", asked.types.BINARY_VECTOR, dim=8)
    asked.ask("create_collection", "mine", schema=schema)
    with pytest.raises(IndexFolderError, match="collection 'mine' at .* is not that of an index"):
        Index.open(folder)
    asked.ask("drop_collection", "mine")
    monkeypatch.setattr(server_module, "_OLDEST", (99, 1, 0))
    with pytest.raises(IndexFolderError, match=r"is of version 2\..*; parabit needs 99.1.0 or later"):
        Index.open(folder)


def test_an_index_is_replaced_when_the_new_one_is_whole(server: Running, asked: Server, tmp_path: Path) -> None:
    folder = tmp_path / "replaced"

    def names() -> set[str]:
        return {name for name in asked.ask("list_collections") if name.startswith("parabit_replaced_")}

    class Broken:
        def __iter__(self) -> Iterator[Document]:
            yield from documents(0, 5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(binary(), Broken(), folder, milvus=Milvus(server.uri))
    assert (folder.exists(), names()) == (False, set())
    Index.build(binary(), documents(0, 5), folder, milvus=Milvus(server.uri)).close()
    first = names()
    with pytest.raises(KeyboardInterrupt):
        Index.build(binary(), Broken(), folder, milvus=Milvus(server.uri), overwrite=True)
    with Index.open(folder) as index:
        assert (len(index), names()) == (5, first)
    with Index.open(folder) as index:
        Index.build(real_binary(), documents(0, 7), folder, milvus=Milvus(server.uri), overwrite=True).close()
        assert (index.refresh(), len(index), len(names()), names() & first) == (True, 7, 1, set())
        assert (index.bits, index.search(TEXTS[:1], k=1).ids) == (12, [["d0"]])
        Index.build(binary(), documents(0, 3), folder, overwrite=True).close()
        with pytest.raises(IndexFolderError, match="is no index on Milvus any more; open it again"):
            index.refresh()
    with Index.open(folder) as index:
        assert (index.info()["backends"], names()) == (["flat"], set())
    Index.build(real_binary(), documents(0, 4), folder, milvus=Milvus(server.uri), overwrite=True).close()
    with Index.open(folder) as index:
        assert (len(index), index.search(TEXTS[:1], k=1).ids) == (4, [["d0"]])
    assert {path.name.partition("-")[0] for path in folder.iterdir()} == {"manifest.json", "lock", "model"}


def test_the_verbs_work_on_it(server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (MILVUS_INDEXES, CONSISTENCIES) == (milvus.INDEXES, milvus.CONSISTENCIES)
    binary().save(tmp_path / "model")
    Path("some.jsonl").write_text(as_lines(documents(0, 30)))
    Path("more.jsonl").write_text(as_lines(documents(25, 40)))

    def run(*arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, [*arguments, "--json"])
        assert (result.exit_code, result.stderr) == (0, "")
        told: dict[str, Any] = json.loads(result.stdout)
        return told

    made = run("index", "model", "some.jsonl", "-o", "m", "--backend", "milvus", "--uri", server.uri,
               "--collection", "verbs", "--consistency", "session")  # fmt: skip
    assert (made["documents"], made["backend"], made["milvus"]["collection"]) == (30, "BIN_FLAT", "verbs")
    assert run("add", "m", "more.jsonl", "--update")["documents"] == 40
    found = run("search", "m", TEXTS[35], "-k", "3")
    assert (found["hits"][0]["id"], found["documents"], len(found["hits"])) == ("d35", 40, 3)
    assert found["notes"] == ["with the consistency session the latest changes may be missing"]
    assert run("delete", "m", "d35", "d2")["documents"] == 38
    assert run("info", "m", "--verify")["documents"] == 38
    assert run("pairs", "m", "--radius", "20")["count"] == 38 * 37 // 2
    shown = CliRunner().invoke(app, ["info", "m"])
    assert f"on Milvus 2.3.5-lite at {server.uri}, verbs" in " ".join(shown.stdout.split())
    for wrong, words in (
        (["--backend", "milvus"], "--backend milvus needs a server; give --uri"),
        (["--uri", server.uri], "--uri is for an index on Milvus; give --backend milvus, too"),
        (["--milvus-index", "BIN_FLAT"], "--milvus-index is for an index on Milvus"),
    ):
        result = CliRunner().invoke(app, ["index", "model", "some.jsonl", "-o", "n", *wrong])
        assert result.exit_code != 0
        assert words in " ".join(result.stderr.split())


def test_a_server_that_is_killed_loses_nothing_that_it_acknowledged(server: Running, tmp_path: Path) -> None:
    """The last of all tests, as those before would find the server gone."""
    codes = oracle.made_up(3000, 64)
    there: dict[Any, int] = {}  # what was acknowledged: the id, and which code it has
    unsure: set[Any] = set()  # what was being changed when the server was killed
    index = Index.of_codes(codes[:100], 64, tmp_path / "m", milvus=Milvus(server.uri))
    reader = Index.open(tmp_path / "m")
    there.update((row, row) for row in range(100))
    rng = np.random.default_rng(0)

    def work() -> None:
        for batch in range(10**6):
            some = [int(row) for row in rng.choice(3000, 20, replace=False)]
            new, old = [row for row in some if row not in there], [row for row in some if row in there]
            unsure.clear()
            unsure.update(some)
            if batch % 3 == 0:
                index.add_codes(codes[new], new, [{"row": row} for row in new])
                there.update((row, row) for row in new)
            elif batch % 3 == 1:
                moved = [(row + batch) % 3000 for row in old]
                index.update_codes(codes[moved], old, [{"row": row} for row in moved])
                there.update(zip(old, moved, strict=True))
            else:
                index.delete(old[:3])
                for row in old[:3]:
                    del there[row]

    killer = threading.Timer(1.5, server.kill)
    killer.start()
    with pytest.raises(IndexFolderError, match="no Milvus server answers at|failed to"):
        work()
    killer.join()
    index.close()
    assert len(there) > 110  # some batches were acknowledged
    with pytest.raises(IndexFolderError, match="no Milvus server answers"):
        Index.open(tmp_path / "m")
    server.start()
    with Index.open(tmp_path / "m", write=True) as again:
        sure = [row for row in there if row not in unsure]
        stored = again.stored(sure)
        assert [one.code.tolist() for one in stored] == [codes[there[row]].tolist() for row in sure]
        gone = [row for row in range(3000) if row not in there and row not in unsure]
        assert not again.has(gone).any()
        assert len(again) <= len(sure) + len(unsure)
        found = again.search(codes[:50], k=3000).ids
        assert all({*sure} <= {*ids} <= {*sure, *unsure} for ids in found)
        left = [row for row in unsure if again.has([row])[0]]
        if left:
            again.delete(left)
        again.add_codes(codes[:1], ["after"])
        assert len(again) == len(sure) + 1
        # Whoever had it open goes on.
        assert reader.search(codes[:9], k=20).ids == again.search(codes[:9], k=20).ids
        reader.close()
