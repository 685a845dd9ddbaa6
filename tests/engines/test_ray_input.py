"""What is checked before a cluster does anything, and reading from other storage."""

import json
import socket
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import polars as pl
import pytest

from made_up_files import as_lines
from parabit import Document, open_corpus
from parabit.corpus import ReadOptions
from parabit.engines.ray import connected, open_shards
from parabit.errors import ClusterError, CorpusError

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("ray")


@pytest.fixture
def memory() -> Iterator[str]:
    """Storage that is no disk."""
    storage = fsspec.filesystem("memory")
    storage.store.clear()
    yield "memory://corpus"
    storage.store.clear()


def put(address: str, content: bytes) -> None:
    with fsspec.open(address, "wb") as file:
        file.write(content)


def test_what_can_never_work_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = taken.getsockname()[1]
        for address, words in (
            (
                f"127.0.0.1:{port}",
                f"no Ray cluster answers at 127.0.0.1:{port}: Connection refused; is the cluster",
            ),
            ("nonsense", "'nonsense' is not an address of Ray; give HOST:PORT"),
            (
                "ray://127.0.0.1:10001",
                "'ray://127.0.0.1:10001' is not an address of Ray; give HOST:PORT",
            ),
        ):
            with pytest.raises(ClusterError, match=words), connected(address):
                pass
    for name in ("docstrings", "-"):
        with pytest.raises(CorpusError, match="cannot be read by the nodes of a cluster"):
            open_shards([name], ReadOptions())
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ClusterError, match=r"ray is not installed; run pip install '.\[ray\]'"),
        connected(),
    ):
        pass


def test_documents_on_other_storage_are_read_as_from_a_disk(memory: str, tmp_path: Path) -> None:
    documents = [Document(str(number), f"telescope {number}") for number in range(7)]
    here = tmp_path / "corpus"
    here.mkdir()
    for name, part in (("b.jsonl", documents[:3]), ("c.jsonl", documents[3:])):
        (here / name).write_text(as_lines(part))
        put(f"{memory}/{name}", (here / name).read_bytes())
    table = BytesIO()
    pl.DataFrame({"text": ["one", "two"], "id": [1, 2]}).write_parquet(table)
    put("memory://tables/t.parquet", table.getvalue())
    assert [document.text for document in open_corpus("memory://tables")] == ["one", "two"]
    put(f"{memory}/_SUCCESS", b"")
    put(f"{memory}/.hidden.jsonl", b"nonsense")
    for corpus in (
        open_corpus(memory),
        open_corpus(f"{memory}/"),
        open_corpus(f"{memory}/*.jsonl"),
    ):
        assert list(corpus) == list(open_corpus(here)) == documents
        assert corpus.share_read == 1.0
    assert list(open_corpus(f"{memory}/c.jsonl")) == documents[3:]
    assert [shard.sources[0].id for shard in open_shards([memory], ReadOptions())] == [
        "b.jsonl",
        "c.jsonl",
    ]
    put(f"{memory}/year=1994/b.jsonl", b'{"text": "deep"}')
    put(f"{memory}/_a.jsonl", b'{"text": "first"}')
    shards = open_shards(["memory:///corpus"], ReadOptions())  # as fsspec itself writes it
    assert [shard.sources[0].id for shard in shards][::3] == ["_a.jsonl", "year=1994/b.jsonl"]
    put("memory://.hid/a.jsonl", b'{"text": "asked for by its name"}')
    assert [document.text for document in open_corpus("memory://.hid/a.jsonl")] == [
        "asked for by its name"
    ]
    assert len(list(open_corpus("memory://.hid/*.jsonl"))) == 1
    assert len(list(open_corpus("memory://.hid/a.jsonl", ReadOptions(format="lines")))) == 1


def test_files_of_one_name_in_two_places_are_two(memory: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(f"{memory}/{name}/a.jsonl", json.dumps({"text": name, "id": name}).encode())
        with ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("a.jsonl", json.dumps({"text": name, "id": name}))
    for pattern in (f"{memory}/{{}}/*.jsonl", f"zip://*.jsonl::{tmp_path}/{{}}.zip"):
        corpus = open_corpus([pattern.format(name) for name in ("one", "two", "one")])
        assert [document.text for document in corpus] == ["one", "two"]


def test_what_is_wrong_on_other_storage_is_explained(memory: str) -> None:
    put("memory://cut/a.jsonl", b"\x1f\x8b\x08 cut")
    for name, words in (
        ("memory://nothing", "memory://nothing: nothing there"),
        ("memory://cut", "a.jsonl: damaged or cut off"),
        ("nowhere://corpus", "nowhere://corpus: cannot be read: Protocol not known: nowhere"),
    ):
        with pytest.raises(CorpusError, match=words):
            list(open_corpus(name))
    put(f"{memory}/gone.txt", b"text")
    put(f"{memory}/here.txt", b"text")
    corpus = open_corpus(memory)
    fsspec.filesystem("memory").rm("/corpus/gone.txt")  # it counts as read
    assert ([one.id for one in corpus], [*corpus.skipped]) == (
        ["here.txt"],
        [("gone.txt", "nothing there")],
    )
    assert corpus.share_read == 1.0
