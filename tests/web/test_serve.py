"""`parabit serve` as a process."""

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from parabit.cli.app import app
from parabit.explore import Map
from parabit.web.map import draw_map
from serve_process import ServeProcess

Start = Callable[..., ServeProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[ServeProcess] = []

    def one(*arguments: str | Path, **environment: str) -> ServeProcess:
        started.append(ServeProcess(*arguments, **environment))
        return started[-1]

    yield one
    for server in started:
        server.end(signal.SIGKILL)


def about(address: str) -> httpx.Response:
    return httpx.get(f"{address.replace('0.0.0.0', '127.0.0.1')}/api/about", timeout=600)


def test_it_answers_until_ctrl_c_and_leaves_no_process_and_no_file(
    start: Start, news: Path, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    server = start(news, TMPDIR=str(scratch))
    assert server.address.startswith("http://127.0.0.1:")
    assert about(server.address).json()["documents"] == 300
    before = {path.name for path in news.iterdir()} - {"map.safetensors"}
    assert server.end() == (0, "")
    assert {path.name for path in news.iterdir()} - {"map.safetensors"} == before
    assert not any(name.startswith(".map") for name in before)
    assert list(scratch.iterdir()) == []


def test_on_another_address_it_needs_a_token_or_says_who_can_read(start: Start, news: Path) -> None:
    result = CliRunner().invoke(app, ["serve", str(news), "--host", "0.0.0.0", "--port", "0"])
    assert (result.exit_code, result.stdout) == (1, "")
    message = " ".join(result.stderr.split())
    assert "others can reach 0.0.0.0, and no token is set; set one, as in PARABIT_TOKEN=" in message
    assert "--no-token" in message
    both = ["serve", str(news), "--token", "abc", "--no-token"]
    assert "leave out one of them" in " ".join(CliRunner().invoke(app, both).stderr.split())

    server = start(news, "--host", "0.0.0.0", "--no-map", "--no-token")
    assert about(server.address).status_code == 200
    code, errors = server.end(signal.SIGTERM)
    assert code == 128 + signal.SIGTERM
    assert "everybody who reaches" in errors
    server = start(news, "--host", "0.0.0.0", "--no-map", PARABIT_TOKEN="abc")
    assert about(server.address).status_code == 401
    assert server.end() == (0, "")


def test_a_port_that_is_taken_and_a_missing_library_are_explained(
    news: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["serve", str(news), "--port", port])
    assert (result.exit_code, result.stdout) == (1, "")
    assert " ".join(result.stderr.split()) == (
        f"parabit: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --port, 0 for any "
        "that is free, or another --host"
    )
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = CliRunner().invoke(app, ["serve", str(news), "--port", "0"])
    assert (result.exit_code, result.stderr) == (
        1,
        "parabit: fastapi is not installed; run pip install '.[web]' in a copy of the repository\n",
    )


def test_a_map_that_cannot_be_kept_is_drawn_all_the_same(
    news: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.nice", lambda _: 0, raising=False)  # of this very process
    (news / "map.safetensors" / "in the way").mkdir(parents=True)
    draw_map(str(news), str(tmp_path / "drawn"))
    drawn = Map.load(tmp_path / "drawn")
    assert drawn is not None
    assert len(drawn.ids) == 300
    output, errors = capsys.readouterr()
    assert "the map is not kept" in errors
    shares = [float(line) for line in output.split()]
    assert shares == sorted(shares)
    assert shares[-1] == 1
