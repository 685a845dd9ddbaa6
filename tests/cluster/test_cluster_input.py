"""What is told before a cluster is asked, and what needs none."""

import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from json_lines import as_lines
from parabit import Document, open_corpus
from parabit.cli.app import app
from parabit.cluster.connection import connected, in_words
from parabit.cluster.place import Place
from parabit.cluster.shards import open_shards, output_names
from parabit.corpus import ReadOptions
from parabit.errors import ClusterError, CorpusError

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("ray")


def told(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stderr


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


def test_options_of_a_cluster_are_refused_elsewhere() -> None:
    encode = ["encode", "model", "c.jsonl", "-o", "codes"]
    assert told(*encode, "--address", "auto") == (1, "parabit: --address is for a cluster; give --engine ray, too\n")
    code, error = told(*encode, "--engine", "spark")
    assert (code, "spark" in error) == (1, True)


def test_an_address_where_nobody_answers_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        port = taken.getsockname()[1]
        for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
            refused = f"no Ray cluster answers at {address}: Connection refused; is the cluster up"
            with pytest.raises(ClusterError, match=refused), connected(address):
                pass
    with pytest.raises(ClusterError, match="'nonsense' is no address of Ray; give HOST:PORT"), connected("nonsense"):
        pass


def test_a_server_that_is_no_cluster_is_told() -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"127.0.0.1:{server.server_port}"
        with pytest.raises(ClusterError, match=f"what answers at {address} is no Ray cluster"), connected(address):
            pass
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_that_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.cluster.connection._PATIENCE", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ClusterError, match=f"no Ray cluster answers at {address}: timed out"), connected(address):
            pass


def test_without_ray_it_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match=r"ray is not installed; pip install 'parabit\[ray\]'"), connected():
        pass


def test_a_corpus_that_cannot_be_shared_out_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.md").write_text("# One")
    for name, words in (
        ("20newsgroups/train", "is not made of files that a cluster can share out"),
        ("-", "is not made of files that a cluster can share out"),
        (str(tmp_path / "notes"), "has files that are a document each"),
    ):
        with pytest.raises(CorpusError, match=f"{words}; a cluster reads JSON lines"):
            open_shards(name, ReadOptions())


def test_documents_on_other_storage_are_read_as_from_a_disk(memory: str, tmp_path: Path) -> None:
    documents = [Document(str(number), f"telescope {number}") for number in range(7)]
    here = tmp_path / "corpus"
    here.mkdir()
    for name, part in (("b.jsonl", documents[:3]), ("c.jsonl", documents[3:])):
        (here / name).write_text(as_lines(part))
        put(f"{memory}/{name}", (here / name).read_bytes())
    put(f"{memory}/_SUCCESS", b"")
    put(f"{memory}/.hidden.jsonl", b"nonsense")
    for corpus in (open_corpus(memory), open_corpus(f"{memory}/"), open_corpus(f"{memory}/*.jsonl")):
        assert list(corpus) == list(open_corpus(here)) == documents
        assert corpus.share_read == 1.0
    assert list(open_corpus(f"{memory}/c.jsonl")) == documents[3:]
    assert output_names(memory, open_shards(memory, ReadOptions())) == ["b.jsonl.parquet", "c.jsonl.parquet"]
    put(f"{memory}/year=1994/b.jsonl", b'{"text": "deep"}')
    put(f"{memory}/_a.jsonl", b'{"text": "first"}')
    shards = open_shards("memory:///corpus", ReadOptions())  # as fsspec itself writes it
    assert output_names(memory, shards)[::3] == ["_a.jsonl.parquet", "year=1994/b.jsonl.parquet"]
    put("memory://.hid/a.jsonl", b'{"text": "asked for by its name"}')
    assert [document.text for document in open_corpus("memory://.hid/a.jsonl")] == ["asked for by its name"]
    assert len(list(open_corpus("memory://.hid/*.jsonl"))) == 1
    assert len(list(open_corpus("memory://.hid/a.jsonl", format="lines"))) == 1


def test_a_table_on_other_storage_is_read(memory: str, tmp_path: Path) -> None:
    import polars as pl

    pl.DataFrame({"text": ["one", "two"], "id": [1, 2]}).write_parquet(tmp_path / "t.parquet")
    put(f"{memory}/t.parquet", (tmp_path / "t.parquet").read_bytes())
    assert [document.text for document in open_corpus(memory)] == ["one", "two"]


@pytest.mark.parametrize(
    ("files", "name", "words"),
    [
        ({}, "memory://nothing", "there is nothing at memory://nothing"),
        ({"a.jsonl": b"{}", "b.csv": b"text"}, "memory://corpus", "has files of several kinds: csv, jsonl; name what"),
        ({"a": b"x"}, "memory://corpus", "has files of a kind that is not read there: no format"),
        ({"a.md": b"x"}, "memory://corpus", "has files of a kind that is not read there: markdown"),
        ({"a.txt": b"x"}, "memory://corpus", "a kind that is not read there: lines; name what to read with"),
        ({"a.jsonl": b"\x1f\x8b\x08 cut"}, "memory://corpus", "a.jsonl is damaged or cut off"),
        ({"a.jsonl": b"x"}, "nowhere://corpus", "nowhere://corpus cannot be read: Protocol not known: nowhere"),
    ],
)  # fmt: skip
def test_what_is_wrong_on_other_storage_is_told(files: dict[str, bytes], name: str, words: str, memory: str) -> None:
    for file, content in files.items():
        put(f"{memory}/{file}", content)
    with pytest.raises(CorpusError, match=words):
        list(open_corpus(name))


def test_a_file_takes_its_name_when_it_is_whole(memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    for place in (Place(memory), Place(str(tmp_path / "fol::der"))):
        names = ["below/a b#c.parquet", "below/a*b?.parquet", "below/a[1]é%20.parquet"]
        for name in names:
            place.put(tmp_path / "file", name)
        assert place.files() == sorted(names)

        def full(source: str, target: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(fsspec.get_filesystem_class("memory"), "put_file", lambda self, *names: full(*names))
            patched.setattr(shutil, "copyfile", full)
            with pytest.raises(ClusterError, match="below/more cannot be written: .*No space left"):
                place.put(tmp_path / "file", "below/more")
        assert place.files() == sorted(names)
        for name in names:
            place.remove(name)
        assert place.files() == []
    assert Place("memory://").name == "memory://"
    assert Place(f"file://{tmp_path}/codes/").name == str(tmp_path / "codes")  # where a file can take its name at once


def test_a_damaged_description_of_codes_can_be_replaced(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    (tmp_path / "about.json").write_text('{"model": "fa')
    assert place.read_json("about.json") == {}
    place.write_json("about.json", {"model": "fast"})
    assert place.read_json("about.json") == {"model": "fast"}


def test_what_a_worker_raised_is_told_in_its_own_words() -> None:
    from ray.exceptions import RayTaskError

    raised = CorpusError("a shard has changed", hint="run the same command again")
    wrapped = RayTaskError("_look", "Traceback: many lines", raised, pid=7, ip="10.0.0.1").as_instanceof_cause()
    assert isinstance(wrapped, CorpusError)
    for error in (raised, wrapped):
        assert str(in_words(error)) == "a shard has changed; run the same command again"
