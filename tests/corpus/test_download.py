import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from parabit.corpus import datasets
from parabit.corpus.datasets.dataset import Dataset, DatasetCorpus
from parabit.corpus.document import Document
from parabit.corpus.download import Download, fetch
from parabit.errors import DownloadError
from parabit.progress import Progress

CONTENT = bytes(range(256)) * 4000
CHECKSUM = sha256(CONTENT).hexdigest()


class Server(BaseHTTPRequestHandler):
    """A file server that misbehaves as the path says."""

    requests: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.requests.append((self.path, wanted))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.path != "/no-ranges" else 0
        if self.path == "/missing":
            self.send_error(404)
            return
        if start and start >= len(CONTENT):
            self.send_error(416)
            return
        content = b"another file" if self.path == "/other" else CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.path == "/resets-once" and len(self.requests) < 2:
            self.wfile.write(content[:1000])
            self.wfile.flush()
            # Close with a reset, as a crashed server or a firewall does, not politely.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        breaks = self.path == "/always-breaks" or (self.path == "/breaks-twice" and len(self.requests) < 3)
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


def of(*urls: str) -> Download:
    return Download(urls, CHECKSUM, "set/file.bin")


def test_a_file_arrives_whole_and_progress_is_told(server: str, tmp_path: Path) -> None:
    told: list[Progress] = []
    path = fetch(of(f"{server}/good"), tmp_path, told.append)
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]
    assert told[-1].share == 1.0
    assert told[-1].done == len(CONTENT)


def test_a_broken_transfer_goes_on_where_it_broke(server: str, tmp_path: Path) -> None:
    assert fetch(of(f"{server}/breaks-twice"), tmp_path).read_bytes() == CONTENT
    half = len(CONTENT) // 2
    assert [wanted for _, wanted in Server.requests] == [None, f"bytes={half}-", f"bytes={half + half // 2}-"]


def test_a_reset_connection_is_tried_again(server: str, tmp_path: Path) -> None:
    assert fetch(of(f"{server}/resets-once"), tmp_path).read_bytes() == CONTENT
    assert len(Server.requests) == 2


def test_a_full_disk_is_not_the_networks_fault(server: str, tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path\n"
        "from parabit.corpus.download import Download, fetch\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        f"fetch(Download(({server + '/good'!r},), {CHECKSUM!r}, 'set/file.bin'), Path({str(tmp_path)!r}))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "OSError: [Errno 27] File too large" in child.stderr
    assert len(Server.requests) == 1


def test_what_came_whole_is_not_fetched_again(server: str, tmp_path: Path) -> None:
    part = tmp_path / "set" / "file.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)
    assert fetch(of(f"{server}/good"), tmp_path).read_bytes() == CONTENT
    assert Server.requests == []


def test_what_arrived_is_kept_for_the_next_time(server: str, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"the connection broke off \d+ bytes before the end.*try again"):
        fetch(of(f"{server}/always-breaks"), tmp_path)
    kept = tmp_path / "set" / "file.bin.part"
    size = kept.stat().st_size
    assert 0 < size < len(CONTENT)
    assert not (tmp_path / "set" / "file.bin").exists()
    Server.requests.clear()
    assert fetch(of(f"{server}/good"), tmp_path).read_bytes() == CONTENT
    assert Server.requests == [("/good", f"bytes={size}-")]
    assert not kept.exists()


def test_a_server_without_ranges_sends_it_all_again(server: str, tmp_path: Path) -> None:
    part = tmp_path / "set" / "file.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT[:1000])
    assert fetch(of(f"{server}/no-ranges"), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("kept", [b"not the start of this file", CONTENT + b"longer"])
def test_a_kept_part_of_another_file_does_not_spoil_it(kept: bytes, server: str, tmp_path: Path) -> None:
    part = tmp_path / "set" / "file.bin.part"
    part.parent.mkdir()
    part.write_bytes(kept)
    assert fetch(of(f"{server}/good"), tmp_path).read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_kept(server: str, tmp_path: Path) -> None:
    found = sha256(b"another file").hexdigest()
    with pytest.raises(DownloadError, match=f"has the SHA-256 {found}, not {CHECKSUM}"):
        fetch(of(f"{server}/other"), tmp_path)
    assert (tmp_path / "set" / "file.bin.part").stat().st_size == 0
    assert not (tmp_path / "set" / "file.bin").exists()


def test_the_next_place_is_tried(server: str, tmp_path: Path) -> None:
    assert fetch(of(f"{server}/missing", f"{server}/other", f"{server}/good"), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["/missing", ""])
def test_a_place_that_does_not_answer_is_told(path: str, server: str, tmp_path: Path) -> None:
    url = f"{server}{path}" if path else "http://127.0.0.1:1/closed"
    with pytest.raises(
        DownloadError, match=r"could not be fetched: (Not Found|.*refused).*put the file at .*file\.bin"
    ):
        fetch(of(url), tmp_path)


def test_a_folder_that_cannot_be_made_is_told(server: str, tmp_path: Path) -> None:
    (tmp_path / "set").write_text("a file where the folder should be")
    with pytest.raises(DownloadError, match="set PARABIT_DATA"):
        fetch(of(f"{server}/good"), tmp_path)


def test_two_at_once_do_not_mix(server: str, tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    part = tmp_path / "set" / "file.bin.part"
    part.parent.mkdir()
    with part.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DownloadError, match="being downloaded by another process"):
            fetch(of(f"{server}/good"), tmp_path)


def test_a_missing_data_set_is_downloaded_when_it_is_opened(
    server: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Dataset(
        name="tiny",
        about="",
        licence="",
        splits=("train",),
        files="set/file.bin",
        corpus=lambda paths, split: DatasetCorpus(paths, lambda source: iter([Document("0", source.name)])),
        download=of(f"{server}/good"),
    )
    monkeypatch.setitem(datasets.DATASETS, "tiny", dataset)
    for _ in range(2):
        assert [document.text for document in datasets.open_dataset("tiny/train")] == [str(data / "set" / "file.bin")]
    assert len(Server.requests) == 1
