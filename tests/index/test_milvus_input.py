"""What cannot be an index on Milvus is told at once; no server is needed to find that out."""

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from milvus_fixtures import CODES

from parabit import Index
from parabit.errors import IndexFolderError
from parabit.index import Milvus
from parabit.index.milvus import server as server_module
from parabit.index.milvus.manifest import Manifest, write_manifest


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (Milvus("localhost:19530"), "'localhost:19530' is no address of a Milvus server; give one such as http://"),
        (
            Milvus("milvus.db"),
            "a file, as Milvus Lite takes one, and Milvus Lite 3 has no binary vectors",
        ),
        (Milvus("milvus"), "'milvus' is no address"),
        (Milvus("http://host:port"), "is no address"),
        (Milvus("http://me:secret@localhost:19530"), "has a password in it; .*PARABIT_MILVUS_TOKEN"),
        (Milvus("http://localhost:1", collection="a b"), "cannot be named 'a b'"),
        (
            Milvus("http://localhost:1", collection="a_more"),
            "cannot be named 'a_more'; names that end in _more",
        ),
        (Milvus("http://localhost:1", index="BIN_FLATT"), "no index of Milvus 'BIN_FLATT'; did you mean BIN_FLAT"),
        (Milvus("http://localhost:1", consistency="weak"), "no consistency 'weak'; there are strong"),
        (Milvus("http://localhost:1", lists=4, probes=5), "5 of 4 lists"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_done(place: Milvus, words: str, tmp_path: Path) -> None:
    with pytest.raises(IndexFolderError, match=words):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1", "http://no-such-host.invalid:19530"])
def test_nobody_at_the_address_is_told_within_seconds(uri: str, tmp_path: Path) -> None:
    pytest.importorskip("pymilvus")
    start = time.monotonic()
    with pytest.raises(IndexFolderError, match=f"no Milvus server answers at {uri}; start it, or correct the address"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(uri))
    assert time.monotonic() < start + 10
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pymilvus")
    assert server_module._SECONDS == 5
    monkeypatch.setattr(server_module, "_SECONDS", 1.0)
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(IndexFolderError, match="no Milvus server"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(f"http://127.0.0.1:{silent.getsockname()[1]}"))
    assert 0.9 < time.monotonic() - start < 5


def test_a_password_that_is_wrong_is_told(tmp_path: Path) -> None:
    pytest.importorskip("pymilvus")
    grpc = pytest.importorskip("grpc")

    class Refusing(grpc.GenericRpcHandler):  # type: ignore[misc, name-defined]
        def service(self, _: object) -> object:
            return grpc.unary_unary_rpc_method_handler(
                lambda _, context: context.abort(grpc.StatusCode.UNAUTHENTICATED, "auth check failure")
            )

    refusing = grpc.server(ThreadPoolExecutor(2), [Refusing()])
    address = f"http://127.0.0.1:{refusing.add_insecure_port('127.0.0.1:0')}"
    refusing.start()
    with pytest.raises(IndexFolderError, match="does not let us in; set PARABIT_MILVUS_TOKEN to a token or USER:PASS"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus(address))
    refusing.stop(None).wait()


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(IndexFolderError, match=r"pymilvus is not installed; pip install 'parabit\[milvus\]'"):
        Index.of_codes(CODES, 8, tmp_path / "m", milvus=Milvus("http://localhost:1"))


def test_an_index_whose_server_is_gone_is_not_replaced(tmp_path: Path) -> None:
    pytest.importorskip("pymilvus")
    place = Milvus("http://127.0.0.1:1", collection="left")
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "lock").touch()
    write_manifest(folder, Manifest(place, 8, "", {"text": False}, {}))
    written = (folder / "manifest.json").read_bytes()
    for other in (None, replace(place, uri="http://127.0.0.1:2")):
        with pytest.raises(
            IndexFolderError, match="cannot be replaced: no Milvus server answers at .*:1; .* 'left' there"
        ):
            Index.of_codes(CODES, 8, folder, milvus=other, overwrite=True)
    assert (folder / "manifest.json").read_bytes() == written
