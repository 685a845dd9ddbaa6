"""What can go wrong with a Milvus server, from a wrong address to one that is killed while it writes."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import index_oracle as oracle
import numpy as np
import pytest
from index_models import TEXTS, binary, documents, real_binary
from milvus_fixtures import CODES
from typer.testing import CliRunner

from json_lines import as_lines
from milvus_server import Running
from parabit import Document, Index
from parabit.cli.app import app
from parabit.errors import CodesError, IndexFolderError
from parabit.index import Milvus
from parabit.index.milvus import server as server_module
from parabit.index.milvus.server import Server
from parabit.web import Settings
from parabit.web.collection import Asked, Collection, refusal_of

_ADDING = """
import sys
from parabit import Index
from parabit.corpus import open_corpus

documents = list(open_corpus(sys.argv[2]))
with Index.open(sys.argv[1], write=True) as index:
    for start in range(0, len(documents), 10):
        index.add(documents[start : start + 10])
        print(start + 10, flush=True)
"""
pytest_plugins = ("milvus_fixtures",)
pytestmark = [pytest.mark.scale]


@pytest.fixture
def alone() -> Iterator[Running]:
    """A server that no other test needs, so that it may be killed; it has few collections, each with its own log."""
    server = Running()
    yield server
    server.close()


def test_what_milvus_cannot_keep_is_told(server: Running, asked: Server, tmp_path: Path) -> None:
    place = Milvus(server.uri, collection="limits")
    for refused, options in (
        ("an index on Milvus needs a folder", {"folder": None}),
        ("Milvus takes codes of 32,768 bits at most, found 32,776", {"bits": 32_776, "codes": np.zeros((1, 4097))}),
        ("the id 'xxx.*has 1,001 bytes; 1,000 are the most that Milvus keeps", {"ids": ["x" * 1001]}),
        ("document 0 has 4,097 values in its fields; .* 4,096 at most", {"fields": [{"n": [*range(4097)]}]}),
        ("the id 7 is given twice", {"codes": np.zeros((65_537, 1)), "ids": [*range(65_536), 7]}),
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
    notes = ["with the consistency session the latest changes may be missing"]
    assert found["notes"] == notes
    assert run("delete", "m", "d35", "d2")["documents"] == 38
    assert run("info", "m", "--verify")["documents"] == 38
    pairs = run("pairs", "m", "--radius", "20")
    assert (pairs["count"], pairs["notes"]) == (38 * 37 // 2, notes)
    merged = CliRunner().invoke(app, ["compact", "m"])
    assert "the server has merged its files" in merged.stdout
    for command in (["search", "m", TEXTS[5]], ["pairs", "m", "--radius", "0"], ["info", "m"]):
        assert notes[0] in " ".join(CliRunner().invoke(app, command).output.split())
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


def test_a_writer_that_is_killed_leaves_what_was_acknowledged_and_can_go_on(server: Running, tmp_path: Path) -> None:
    folder, corpus, everything = tmp_path / "m", tmp_path / "corpus.jsonl", documents(0, 300)
    corpus.write_text(as_lines(everything))
    Index.build(binary(), [], folder, milvus=Milvus(server.uri)).close()
    command = [sys.executable, "-c", _ADDING, folder, corpus]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) == 50:
                writer.kill()
                break
        done = max([50, *map(int, writer.stdout)])  # what it managed to say before it was dead
    assert done < 300
    with Index.open(folder, write=True) as index:
        there = index.has([document.id for document in everything])
        assert there[:done].all()
        assert not there[done + 10 :].any()
        written = index.put(everything)  # as `parabit add --update` does
        assert (written.added, written.replaced) == (300 - there.sum(), there.sum())
        assert index.search([everything[299].text], k=1, rank="tfidf").ids == [["d299"]]
        assert len(index) == 300
        index.verify()


def test_a_server_that_is_killed_loses_nothing_that_it_acknowledged(alone: Running, tmp_path: Path) -> None:
    server, codes = alone, oracle.made_up(3000, 64)
    there: dict[Any, int] = {}  # what was acknowledged: the id, and which code it has
    unsure: set[Any] = set()  # what was being changed when the server was killed
    index = Index.of_codes(codes[:100], 64, tmp_path / "m", milvus=Milvus(server.uri))
    reader, page = Index.open(tmp_path / "m"), Collection(tmp_path / "m", Settings(map=False))
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
    page.refresh()
    assert page.failure == "the index cannot be read anew"
    question = Asked(query=None, like=5, k=9, radius=None, rank=None, where=())
    with pytest.raises(IndexFolderError, match="no Milvus server answers") as problem:
        page.search([question])
    assert (refusal_of(problem.value).status, refusal_of(problem.value).error) == (503, "the index cannot be read")
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
        page.refresh()
        assert page.failure == ""
        assert page.search([question._replace(like="after")])[0]["documents"] == len(again)
        page.close()
        assert reader.search(codes[:9], k=20).ids == again.search(codes[:9], k=20).ids
        reader.close()


def test_what_a_writer_has_left_to_an_old_server_is_in_its_files(
    server: Running, asked: Server, tmp_path: Path
) -> None:
    """So that a kill does not matter: of its log such a server may skip a part when it starts again."""
    codes = oracle.made_up(300, 64)

    def in_files() -> int:
        return int(asked.ask("get_collection_stats", "left")["row_count"])

    with Index.of_codes(codes[:100], 64, tmp_path / "m", milvus=Milvus(server.uri, collection="left")) as index:
        index.add_codes(codes[100:], range(100, 300))
        assert index.info()["milvus"]["fault"] == (
            "this version may lose what is being written when it is killed, and leaves it to `parabit compact` to "
            "merge files; better is 2.4.6 or later"
        )
        assert in_files() == 100
    assert in_files() == 300
    with Index.open(tmp_path / "m", write=True) as index:
        index.delete([7])
    with Index.open(tmp_path / "m") as index:
        assert len(index) == 299
