"""`parabit serve` as a process."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from parabit import Index
from parabit.cli.app import app
from parabit.index import Map
from parabit.web.map import draw_map


class Started:
    """A server in a process of its own."""

    def __init__(self, *arguments: str | Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "parabit", "serve", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        line = self.process.stdout.readline() if ready else ""
        found = re.search(r"http://\S+?:\d+", line)
        assert found, line + self.end()[1]
        self.address = found[0]
        limit = time.monotonic() + 30
        while True:
            try:
                httpx.get(f"{self.local}/healthz")
                return
            except httpx.TransportError:
                assert time.monotonic() < limit
                time.sleep(0.05)

    @property
    def local(self) -> str:
        return re.sub(r"//.*:", "//127.0.0.1:", self.address)

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(number)
        _, told = self.process.communicate(timeout=30)
        return self.process.returncode, told


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    started: list[Started] = []

    def one(*arguments: str | Path, **environment: str) -> Started:
        started.append(Started(*arguments, **environment))
        return started[-1]

    yield one
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
            server.process.communicate()


def test_it_answers_until_ctrl_c_and_leaves_no_process_and_no_file(
    start: Callable[..., Started], news: Path, tmp_path: Path
) -> None:
    server = start(news, "--port", "0", TMPDIR=str(tmp_path / "scratch"))
    assert server.address.startswith("http://127.0.0.1:")
    answer = httpx.get(f"{server.address}/api/about").json()
    assert answer["documents"] == 300
    before = {path.name for path in news.iterdir()} - {"map.safetensors"}
    code, told = server.end()
    assert (code, told) == (0, "")
    assert {path.name for path in news.iterdir()} - {"map.safetensors"} == before
    assert not any(name.startswith(".map") for name in before)


def test_on_another_address_it_warns_unless_there_is_a_token(start: Callable[..., Started], news: Path) -> None:
    server = start(news, "--host", "0.0.0.0", "--port", "0", "--no-map")
    assert httpx.get(f"{server.local}/api/about").status_code == 200
    code, told = server.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert "everybody who reaches" in told
    assert "PARABIT_TOKEN" in told
    server = start(news, "--host", "0.0.0.0", "--port", "0", "--no-map", PARABIT_TOKEN="abc")
    assert httpx.get(f"{server.local}/api/about").status_code == 401
    assert httpx.get(f"{server.local}/api/about", headers={"authorization": "Bearer abc"}).status_code == 200
    assert server.end() == (0, "")


def failure(*arguments: str | Path) -> str:
    """What is told when there is nothing to serve."""
    result = CliRunner().invoke(app, ["serve", *map(str, arguments)])
    assert (result.exit_code, result.stdout) == (1, "")
    return " ".join(result.stderr.split())


def test_what_cannot_be_served_is_told_in_a_line(news: Path, topic_model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert failure(news, "--port", str(port)) == (
            f"parabit: port {port} is in use; choose another with --port, or --port 0 for any that is free"
        )
    for arguments, told in {
        ("nothing.index",): "no index in nothing.index",
        (topic_model,): "is a model, not an index",
        (news, "--host", "no.such.host.invalid"): "there is no address 'no.such.host.invalid'",
        (news, "--host", "192.0.2.1"): "192.0.2.1:0 cannot be listened on",
        (news, "--token", "two words"): "the token is empty, or has characters",
    }.items():
        assert told in failure(*arguments, "--port", "0")


def test_an_index_of_another_format_is_told(news: Path) -> None:
    manifest = news / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    assert "has format 2, this version of parabit reads up to 1" in failure(news, "--port", "0")
    manifest.write_text(manifest.read_text().replace('"format": 2', '"format": 0'))
    assert "damaged" in failure(news, "--port", "0")


def test_a_missing_library_is_told_with_its_extra(news: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert failure(news, "--port", "0") == "parabit: fastapi is not installed; pip install 'parabit[web]'"


def test_an_index_that_somebody_writes_to_is_served(start: Callable[..., Started], news: Path) -> None:
    with Index.open(news, write=True) as writer:
        server = start(news, "--port", "0", "--no-map")
        writer.delete(["post0"])
        limit = time.monotonic() + 10
        while httpx.get(f"{server.address}/api/about").json()["documents"] != 299:
            assert time.monotonic() < limit
            time.sleep(0.1)
    assert server.end()[0] == 0


def test_a_map_that_cannot_be_kept_is_drawn_all_the_same(
    news: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (news / "map.safetensors" / "in the way").mkdir(parents=True)
    draw_map(news, tmp_path / "drawn")
    drawn = Map.load(tmp_path / "drawn")
    assert drawn is not None
    assert len(drawn.ids) == 300
    told = capsys.readouterr()
    assert "the map is not kept" in told.err
    shares = [float(line) for line in told.out.split()]
    assert shares == sorted(shares)
    assert shares[-1] == 1
