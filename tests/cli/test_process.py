"""The command in processes of its own: signals, pipes, full disks, terminals."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from caught_at_work import INTERRUPTED, interrupting, signalled
from commands import contents, names, run

from parabit import Document
from parabit.index import Index

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
signal.signal(signal.SIGINT, signal.default_int_handler)
from parabit.cli import main
main()
"""


@pytest.fixture
def large(topic_documents: list[Document], tmp_path: Path) -> Path:
    """More documents than one batch."""
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        for number in range(3_000):
            file.write(
                json.dumps({"id": f"large{number}", "text": topic_documents[number % 300].text})
                + "\n"
            )
    return path


# Called with a temporary file for what is read, and with a complete file before it takes its name.
READING, WRITING = "parabit.corpus.sources.copyfileobj", "parabit.storage.sync"


@pytest.mark.parametrize(
    ("number", "moment", "command"),
    [
        (signal.SIGINT, READING, "vocabulary - --bigrams -o kept.parquet"),
        (signal.SIGHUP, READING, "train - -o model"),
        (signal.SIGTERM, WRITING, "encode MODEL - -o codes.npy"),
    ],
)
def test_a_signal_leaves_nothing_half_written(
    number: signal.Signals, moment: str, command: str, tmp_path: Path, lines: str, topic_model: Path
) -> None:
    arguments = command.replace("MODEL", str(topic_model)).split()
    result = signalled(number, moment, 1, tmp_path, *arguments, stdin=lines)
    assert (result.returncode, result.stderr) == (
        128 + number,
        INTERRUPTED if number == signal.SIGINT else "",
    )
    assert list(tmp_path.iterdir()) == []


def test_nohup_is_respected(tmp_path: Path, lines: str) -> None:
    command = ("vocabulary", "-", "-o", "kept.csv", "--json")
    result = signalled(signal.SIGHUP, READING, 1, tmp_path, *command, stdin=lines, under=["nohup"])
    assert (result.returncode, json.loads(result.stdout)["documents"]) == (0, 300)


@pytest.mark.parametrize(
    ("stages", "command", "other"),
    [
        ("reading", "vocabulary large.jsonl --bigrams -o v.csv", "--max-size 5"),
        ("reading rotating", "train large.jsonl --bits 16 -o model", "--seed 5"),
        (
            "rotating encoding building",
            "index large.jsonl --bits 16 --backend hashing -o a.index",
            "--seed 5",
        ),
        ("encoding", "encode MODEL large.jsonl -o codes.npy", "more.txt"),
        ("encoding", "encode MODEL large.jsonl -o codes.parquet", "more.txt"),
    ],
)
def test_what_is_there_is_replaced_only_if_asked_for_and_not_by_interrupted_work(
    stages: str,
    command: str,
    other: str,
    large: Path,
    topic_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, arguments = large.parent, command.replace("MODEL", str(topic_model)).split()
    monkeypatch.chdir(here)
    Path("more.txt").write_text("one more")
    monkeypatch.setattr("parabit.model.encoder.AT_ONCE", 400)

    def interrupt(*options: str) -> None:
        for stage in stages.split():
            with monkeypatch.context() as patch:
                patch.setattr("parabit.cli.command.progress", interrupting(stage))
                result = run(*arguments, *options)
            assert (result.exit_code, result.stdout, result.stderr) == (130, "", INTERRUPTED)

    interrupt()
    assert names(here) == {"large.jsonl", "more.txt"}
    assert run(*arguments).exit_code == 0
    before = contents(here)
    interrupt("--overwrite")
    again = run(*arguments, *other.split())
    said = f"parabit: {arguments[-1]} exists already; choose another name, or replace it with --overwrite\n"
    assert (again.exit_code, again.stderr) == (1, said)
    assert contents(here) == before
    assert run(*arguments, *other.split(), "--overwrite").exit_code == 0
    assert contents(here) != before
    assert names(here) == {"large.jsonl", "more.txt", arguments[-1]}


@pytest.mark.parametrize("module", ["typer", "polars", "sklearn"])
def test_ctrl_c_while_it_starts_ends_it_at_once_without_a_traceback(
    module: str, here: Path
) -> None:
    command = [sys.executable, "-c", PRESSED, module, "train", "news.jsonl", "-o", "model"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode in (130, -signal.SIGINT)
    assert (result.stdout, result.stderr) in (("", ""), ("", INTERRUPTED))
    assert [path.name for path in here.iterdir()] == ["news.jsonl"]


@pytest.mark.parametrize(
    ("command", "limit"),
    [
        ("vocabulary large.jsonl -o kept.csv", 100),
        ("index large.jsonl -o a.index", 20_000),
        ("index large.jsonl -o news.index --overwrite", 3_000),
        ("add news.index large.jsonl", 3_000),
        ("compact news.index", 20_000),
        ("encode MODEL large.jsonl -o codes.npy", 100),
        ("encode MODEL large.jsonl -o codes.npy", 2_000),
        ("encode MODEL large.jsonl -o codes.parquet --vectors", 2_000),
    ],
)
def test_a_full_disk_is_explained_and_nothing_half_written_stays(
    command: str,
    limit: int,
    news: Path,
    large: Path,
    topic_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit on the size of files stands in for a full disk: writes fail in the same places, in the same way."""
    monkeypatch.setattr("tempfile.tempdir", str(large.parent))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, usual[1]))
    try:
        result = run(*command.replace("MODEL", str(topic_model)).split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("parabit: no space left on the disk")
    assert result.stderr.count("\n") == 1
    assert names(large.parent) == {"large.jsonl", "news.index"}
    with Index.open(news) as index:
        index.verify()
        assert len(index) == 300
        assert not [path for path in news.rglob("*") if "partial" in path.name]


def test_a_closed_pipe_is_no_error(news: Path) -> None:
    for command in ("--help", "search news.index --like post1 -k 300 --full"):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            command_line = [sys.executable, "-m", "parabit", *command.split()]
            result = subprocess.run(
                command_line, stdout=writing, stderr=subprocess.PIPE, check=False
            )
        finally:
            os.close(writing)
        assert (result.returncode, result.stderr) == (0, b""), command


def test_closed_and_full_streams_are_explained(news: Path) -> None:
    for script, words in (
        ("vocabulary - <&-", "standard input is closed"),
        ("vocabulary - </dev/null", "standard input: empty file"),
        ("delete news.index - <&-", "standard input is closed"),
        ("datasets --json >&-", "output is closed"),
        ("datasets --json > /dev/full", "no space left on the disk"),
    ):
        command = ["bash", "-c", f'"{sys.executable}" -m parabit {script}']
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        assert words in result.stderr


def test_progress_goes_to_a_terminal_on_standard_error_alone(large: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "parabit", "vocabulary", large, "--bigrams"],
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = b""
    try:
        while block := os.read(ours, 65536):
            drawn += block
    except OSError:  # the terminal's end, as Linux reports it
        pass
    out, _ = process.communicate()
    os.close(ours)
    assert b"reading" in drawn
    assert b"documents" in drawn
    assert out.decode().startswith(f"{large}: 3,000 documents")
    assert b"\x1b" not in out


def test_output_fits_encodings_and_colours_terminals(
    news: Path, parabit: Run, topic_documents: list[Document]
) -> None:
    result = parabit("vocabulary", "-", stdin="Привет мир", PYTHONIOENCODING="ascii")
    assert (result.returncode, "\\u043f" in result.stdout) == (0, True)
    word = topic_documents[7].text.split()[0]
    assert f"\x1b[1m{word}" in parabit("search", news, word, "-k", "1", FORCE_COLOR="1").stdout
    green = "\x1b[32m"
    assert green in parabit("datasets", FORCE_COLOR="1").stdout
    assert green not in parabit("datasets", FORCE_COLOR="1", NO_COLOR="1").stdout
