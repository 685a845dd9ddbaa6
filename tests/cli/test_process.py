"""The command in a process of its own: signals, pipes, full disks."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from caught_at_work import COMMAND, INTERRUPTED, expected, stopped

from parabit import Bags

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Big enough that a command can be caught at work."""
    path = tmp_path / "corpus.jsonl"
    words = ["alpha", "beta", "gamma", "delta", "space", "orbit", "moon", "hubble"]
    with path.open("w") as file:
        for row in range(20_000):
            text = " ".join(f"{words[(row + step) % 8]}{chr(97 + (row * step) % 26)}" for step in range(40))
            file.write(json.dumps({"id": row, "text": text}) + "\n")
    return path


def test_standard_input_makes_a_corpus(parabit: Run) -> None:
    result = parabit("vocabulary", "-", "--json", stdin='{"text": "hubble space"}\n{"text": "space"}\n')
    assert json.loads(result.stdout)["documents"] == 2
    assert result.stderr == ""
    result = parabit("vocabulary", "-", "--json", stdin="hubble space\nspace\norbit\n")
    assert json.loads(result.stdout)["documents"] == 3
    result = parabit("vocabulary", "-")
    assert (result.returncode, result.stderr) == (1, "parabit: no documents in standard input; the file is empty\n")


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_half_written(
    number: signal.Signals, delay: float, corpus: Path, tmp_path: Path
) -> None:
    for _ in range(5):  # on a busy machine it may be done before the signal comes
        command = ["vocabulary", corpus, "--bigrams", "--bags", tmp_path / "bags"]
        ended = stopped(number, delay, tmp_path, ".bags*", *command)
        left = {path.name for path in tmp_path.iterdir()} - {"corpus.jsonl"}
        if left != {"bags"}:
            break
        assert len(Bags.open(tmp_path / "bags")) == 20_000
        if delay:
            return
        shutil.rmtree(tmp_path / "bags")
    assert not left
    assert ended == expected(number)


def test_an_interrupt_while_it_starts_is_no_traceback(tmp_path: Path) -> None:
    for delay in (0.4, 0.6, 0.8):  # before that, on a busy machine, Python itself has not started yet
        process = subprocess.Popen([*COMMAND, "datasets"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] in (b"", INTERRUPTED)


@pytest.mark.parametrize("limit", [100, 5_000, 40_000, 300_000])
@pytest.mark.parametrize("options", [["--bags", "kept"], ["--bags", "kept", "--bigrams"], ["-o", "kept"]])
def test_a_full_disk_is_told_and_nothing_half_written_stays(
    limit: int, options: list[str], corpus: Path, tmp_path: Path
) -> None:
    """A limit on the size of files stands in for a full disk: writes fail in the same places, in the same way."""
    process = subprocess.run(
        [*COMMAND, "vocabulary", corpus, *options],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert process.returncode == 1
    assert process.stderr.startswith("parabit: no room left on the disk")
    assert process.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_a_full_disk_behind_standard_output_is_told(corpus: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [*COMMAND, "vocabulary", corpus, "--json"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert process.returncode == 1
    assert process.stderr.startswith("parabit: no room left on the disk")
    assert "Traceback" not in process.stderr


def test_a_reader_that_leaves_is_no_error_to_tell() -> None:
    command = f"{sys.executable} -m parabit datasets | true"
    process = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert process.stderr == ""


def test_progress_goes_to_a_terminal_on_standard_error_alone(corpus: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, "vocabulary", corpus, "--bigrams"], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    drawn = b""
    try:
        while block := os.read(ours, 65536):
            drawn += block
    except OSError:  # the terminal's end, as Linux tells it
        pass
    out, _ = process.communicate()
    os.close(ours)
    assert b"reading" in drawn
    assert b"documents" in drawn
    assert b"/s" in drawn
    assert out.decode().startswith(f"{corpus}: 20,000 documents")
    assert b"\x1b" not in out


def test_pipes_are_read_like_files(tmp_path: Path) -> None:
    script = f"""{sys.executable} -m parabit vocabulary <(printf '{{"text": "hubble space"}}\\n') --json"""
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert process.stderr == ""
    assert json.loads(process.stdout)["tokens"] == 2


def test_closed_streams_are_told() -> None:
    for script, words in (
        ("vocabulary - <&-", "standard input is closed"),
        ("datasets --json >&-", "output is closed"),
    ):
        process = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m parabit {script}"], capture_output=True, text=True, check=False
        )
        assert process.returncode == 1
        assert words in process.stderr
        assert "Traceback" not in process.stderr


def test_words_that_the_terminal_cannot_write_are_written_out(parabit: Run) -> None:
    result = parabit("vocabulary", "-", stdin="Привет мир", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "\\u043f" in result.stdout


def test_a_home_that_is_not_there_is_no_traceback(parabit: Run) -> None:
    result = parabit("datasets", "--json", PARABIT_DATA="~nosuchuser/data")
    assert json.loads(result.stdout)["folder"] == "~nosuchuser/data"


def test_nohup_is_respected(corpus: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        ["nohup", *COMMAND, "vocabulary", corpus, "--bags", tmp_path / "bags", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    while not list(tmp_path.glob(".bags*")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGHUP)
    assert json.loads(process.communicate()[0])["documents"] == 20_000
    assert process.returncode == 0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_json_lines_are_known_on_a_pipe_in_any_encoding(encoding: str, parabit: Run) -> None:
    lines = '{"text": "hubble space"}\n{"text": "orbit"}\n'.encode(encoding)
    result = parabit("vocabulary", "-", "--encoding", encoding.removesuffix("-sig"), "--json", stdin=lines)
    assert json.loads(result.stdout)["tokens"] == 3


def test_standard_input_has_a_path_too(corpus: Path) -> None:
    with corpus.open() as file:
        process = subprocess.run(
            [*COMMAND, "vocabulary", "/dev/stdin", "--json"], stdin=file, capture_output=True, check=True
        )
    assert json.loads(process.stdout)["documents"] == 20_000
