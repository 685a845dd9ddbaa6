"""Data sets by name: where their files are, downloads, splits and sizes."""

import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from parabit.corpus import datasets, open_corpus
from parabit.corpus.datasets import Dataset, DatasetCorpus, data_folder, fetch, in_split
from parabit.corpus.document import Document
from parabit.errors import CorpusError
from parabit.progress import Progress

CONTENT = bytes(range(256)) * 4000


class Server(BaseHTTPRequestHandler):
    """A file server that misbehaves as the path says."""

    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
            return
        content = b"another file" if self.path == "/other" else CONTENT
        breaks = self.path == "/always-breaks" or (
            self.path == "/breaks-once" and len(self.requests) == 1
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if breaks else content)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Server.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def tiny(*urls: str) -> Dataset:
    def corpus(paths: Any, split: str | None) -> DatasetCorpus:
        return DatasetCorpus(paths, split, lambda source, _: iter([Document("0", source.name)]))

    digest = sha256(CONTENT).hexdigest()
    return Dataset(
        about="", licence="", files="set/file.bin", corpus=corpus, urls=urls, sha256=digest
    )


@pytest.mark.parametrize("paths", [["/good"], ["/breaks-once"], ["/missing", "/other", "/good"]])
def test_a_file_arrives_whole_from_the_first_place_that_has_it(
    paths: list[str], server: str, data: Path
) -> None:
    reports: list[Progress] = []
    path = fetch(tiny(*(server + path for path in paths)), data, reports.append)
    assert path == data / "set" / "file.bin"
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]
    assert [report.stage for report in reports] == [f"downloading {path.name}"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("/missing", "404.*put the file at .*file.bin"),
        ("/other", "another SHA-256"),
        ("/always-breaks", "could not be downloaded.*try again"),
        ("http://127.0.0.1:1/closed", "could not be downloaded"),
    ],
)
def test_a_file_that_does_not_arrive_leaves_nothing(
    url: str, problem: str, server: str, data: Path
) -> None:
    with pytest.raises(CorpusError, match=problem):
        fetch(tiny(url if "://" in url else server + url), data)
    assert list((data / "set").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(server: str, data: Path) -> None:
    (data / "set").write_text("a file where the folder should be")
    with pytest.raises(CorpusError, match=r"cannot be written to .*set PARABIT_DATA"):
        fetch(tiny(f"{server}/good"), data)


def test_a_missing_data_set_is_downloaded_once(
    server: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "find_dataset", lambda name: tiny(f"{server}/good"))
    for _ in range(2):
        assert [document.text for document in datasets.open_dataset("tiny/train")] == [
            str(data / "set" / "file.bin")
        ]
    assert len(Server.requests) == 1


NAMES = ["Alan Turing", "Hubble Space Telescope", "Žižek", "\ud800", ""]


def test_splits_share_no_document_and_never_change() -> None:
    assert [in_split(name, "test", 0.5) for name in NAMES] == [False, False, True, True, True]
    assert [in_split(name, "train", 0.5) for name in NAMES] == [True, True, False, False, False]
    assert all(in_split(name, None, 0.5) for name in NAMES)
    for share in (0.1, 0.5):
        held = sum(in_split(f"name {place}", "test", share) for place in range(20_000))
        assert held / 20_000 == pytest.approx(share, abs=0.015)


def test_what_may_not_be_downloaded_says_what_to_put_where(data: Path) -> None:
    for name in ("rcv1", "wikipedia", "enwiki", "arxiv"):
        with pytest.raises(
            CorpusError, match=f"the data set {name} is not in {data}; .*{name}/.*PARABIT_DATA"
        ):
            open_corpus(f"{name}/test")


def test_an_unknown_split_is_refused_with_those_that_exist() -> None:
    for name in ("20newsgroups/trian", "docstrings/xyz"):
        with pytest.raises(CorpusError, match="its splits are train and test"):
            open_corpus(name)


def test_a_path_may_have_a_data_sets_name(
    write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write("arxiv/1.txt", "mine").parents[1])
    assert [document.text for document in open_corpus("./arxiv")] == ["mine"]


def test_the_data_folder_is_the_users_cache_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARABIT_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("PARABIT_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "parabit"


# Documents, and labels among them, of the real data sets.
SIZES = {
    "20newsgroups/train": (11_314, 20), "20newsgroups/test": (7_532, 20), "reuters21578/train": (9_603, 115),
    "reuters21578/test": (3_299, 93), "reuters21578": (21_578, 120), "enwiki/test": (5_672, 260),
    "arxiv/train": (49_817, 174),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_the_real_data_sets_have_their_known_sizes(name: str, real: Callable[[str], str]) -> None:
    found = [(document.id, document.labels) for document in open_corpus(real(name))]
    ids, labels = {id for id, _ in found}, {label for _, labels in found for label in labels}
    assert (len(found), len(labels)) == SIZES[name]
    assert len(ids) == len(found)
