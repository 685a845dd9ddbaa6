"""The command in a process of its own: signals, pipes, full disks."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from caught_at_work import COMMAND, INTERRUPTED, PIPED, expected, interrupting, reading, some_lines, stopped
from typer.testing import CliRunner

from parabit.cli.app import app

Run = Callable[..., subprocess.CompletedProcess[str]]


# Ctrl-C is pressed when a module is first looked for.
PRESSED = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

MODULE = sys.argv.pop(1)
sys.meta_path.insert(0, Press())
from parabit.cli import main
main()
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A thousand documents."""
    path = tmp_path / "corpus.jsonl"
    path.write_text(some_lines(PIPED))
    return path


def test_standard_input_makes_a_corpus(parabit: Run) -> None:
    result = parabit("vocabulary", "-", "--json", stdin='{"text": "hubble space"}\n{"text": "space"}\n')
    assert json.loads(result.stdout)["documents"] == 2
    assert result.stderr == ""
    result = parabit("vocabulary", "-", "--json", stdin="hubble space\nspace\norbit\n")
    assert json.loads(result.stdout)["documents"] == 3
    result = parabit("vocabulary", "-")
    assert (result.returncode, result.stderr) == (1, "parabit: standard input: empty file\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_reads_leaves_nothing_half_written(number: signal.Signals, tmp_path: Path) -> None:
    assert stopped(number, tmp_path, "vocabulary", "-", "--bigrams", "-o", "kept.parquet") == expected(number)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_it_writes_leaves_nothing_half_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.cli.vocabulary.progress", interrupting("reading"))
    result = CliRunner().invoke(app, ["vocabulary", str(corpus), "--bigrams", "-o", str(tmp_path / "kept")])
    assert (result.exit_code, result.stderr) == (130, INTERRUPTED)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


@pytest.mark.parametrize("module", ["typer", "polars", "scipy", "safetensors", "sklearn"])
def test_ctrl_c_while_it_starts_ends_it_at_once_and_is_no_traceback(module: str, here: Path) -> None:
    command = [sys.executable, "-c", PRESSED, module, "train", "news.jsonl", "-o", "model"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode in (130, -signal.SIGINT)
    assert (result.stdout, result.stderr) in (("", ""), ("", INTERRUPTED))
    assert [path.name for path in here.iterdir()] == ["news.jsonl"]


@pytest.mark.parametrize("limit", [100, 5_000])
@pytest.mark.parametrize("options", [["-o", "kept"], ["-o", "kept", "--bigrams"]])
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
    assert out.decode().startswith(f"{corpus}: {PIPED:,} documents")
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


def test_nohup_is_respected(tmp_path: Path) -> None:
    command = ("vocabulary", "-", "-o", "kept", "--json")
    with reading(tmp_path, *command, command=["nohup", *COMMAND]) as process:
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(some_lines(1))
    assert process.returncode == 0
    assert json.loads(out)["documents"] == PIPED + 1


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
    assert json.loads(process.stdout)["documents"] == PIPED
