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
from caught_at_work import COMMAND, INTERRUPTED, LINE, PIPED, interrupting, signalled, waiting
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
            file.write(json.dumps({"id": f"large{number}", "text": topic_documents[number % 300].text}) + "\n")
    return path


def shell(script: str) -> subprocess.CompletedProcess[str]:
    script = f'set -o pipefail; parabit() {{ "{sys.executable}" -m parabit "$@"; }}; {script}'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("number", "command"),
    [
        (signal.SIGINT, "vocabulary - --bigrams -o kept.parquet"),
        (signal.SIGTERM, "index - -o a.index"),
        (signal.SIGHUP, "train - -o model"),
        (signal.SIGTERM, "encode MODEL - -o codes.npy"),
    ],
)
def test_a_signal_while_it_reads_leaves_nothing_half_written(
    number: signal.Signals, command: str, tmp_path: Path, topic_model: Path
) -> None:
    with waiting(tmp_path, *COMMAND, *command.replace("MODEL", str(topic_model)).split()) as process:
        process.send_signal(number)
        assert process.wait() == 128 + number
        assert process.stderr is not None
        assert process.stderr.read() == (INTERRUPTED if number == signal.SIGINT else "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "moment", "command"),
    [
        (signal.SIGINT, "parabit.model.persistence._card", "train news.jsonl -o model"),
        # Called with the complete file, before it takes its name.
        (signal.SIGINT, "parabit.storage.sync", "encode MODEL news.jsonl -o codes.parquet"),
        (signal.SIGTERM, "parabit.storage.sync", "encode MODEL news.jsonl -o codes.npy"),
    ],
)
def test_a_signal_while_it_writes_leaves_nothing_half_written(
    number: signal.Signals, moment: str, command: str, here: Path, topic_model: Path
) -> None:
    result = signalled(number, moment, 1, here, *command.replace("MODEL", str(topic_model)).split())
    assert (result.returncode, result.stderr) == (128 + number, INTERRUPTED if number == signal.SIGINT else "")
    assert names(here) == {"news.jsonl"}


@pytest.mark.parametrize(
    ("stages", "command", "other"),
    [
        ("reading", "vocabulary large.jsonl --bigrams -o v.csv", "--max-size 5"),
        ("reading rotating", "train large.jsonl --bits 16 -o model", "--seed 5"),
        ("rotating encoding building", "index large.jsonl --bits 16 --backend hashing -o a.index", "--seed 5"),
        ("encoding", "encode MODEL large.jsonl -o codes.npy", "more.txt"),
        ("encoding", "encode MODEL large.jsonl -o codes.parquet", "more.txt"),
    ],
)
def test_what_is_there_is_replaced_only_if_asked_for_and_not_by_interrupted_work(
    stages: str, command: str, other: str, large: Path, topic_model: Path, monkeypatch: pytest.MonkeyPatch
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
def test_ctrl_c_while_it_starts_ends_it_at_once_without_a_traceback(module: str, here: Path) -> None:
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
    command: str, limit: int, news: Path, large: Path, topic_model: Path, monkeypatch: pytest.MonkeyPatch
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
    for command in ("--help", "search --help", "datasets", "search news.index --like post1 -k 300 --full"):
        for reader in ("head -1 >/dev/null", "true"):
            result = shell(f"parabit {command} | {reader}")
            assert (result.returncode, result.stderr) == (0, ""), command


def test_closed_and_full_streams_are_explained(news: Path) -> None:
    for script, words in (
        ("parabit vocabulary - <&-", "standard input is closed"),
        ("parabit delete news.index - <&-", "standard input is closed"),
        ("parabit datasets --json >&-", "output is closed"),
        ("parabit datasets --json > /dev/full", "no space left on the disk"),
    ):
        result = shell(script)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        assert words in result.stderr


def test_corpora_queries_and_ids_come_through_pipes(news: Path, parabit: Run, topic_documents: list[Document]) -> None:
    text = topic_documents[3].text
    line = json.dumps({"id": "piped", "text": text}) + "\n"
    assert json.loads(parabit("add", news, "-", "--json", stdin=line).stdout)["added"] == 1
    hits = json.loads(parabit("search", news, "-", "--json", stdin=text).stdout)["hits"]
    assert {"piped", "post3"} == {hit["id"] for hit in hits[:2]}
    assert json.loads(parabit("delete", news, "-", "--json", stdin="piped\n").stdout)["documents"] == 300
    result = parabit("vocabulary", "-", "--json", stdin="hubble space\nspace\norbit\n")
    assert json.loads(result.stdout)["documents"] == 3
    assert json.loads(shell("parabit vocabulary <(printf 'hubble space') --json").stdout)["tokens"] == 2
    result = parabit("vocabulary", "-")
    assert (result.returncode, result.stderr) == (1, "parabit: standard input: empty file\n")
    lines = '{"text": "hubble space"}\n{"text": "orbit"}\n'.encode("utf-16")
    assert json.loads(parabit("vocabulary", "-", "--encoding", "utf-16", "--json", stdin=lines).stdout)["tokens"] == 3


def test_a_second_writer_is_told_who_the_first_is_and_readers_continue(news: Path, parabit: Run, large: Path) -> None:
    with Index.open(news, write=True):
        result = parabit("add", news, large)
        said = f"parabit: news.index is being written by process {os.getpid()}; wait until it is done\n"
        assert (result.returncode, result.stdout, result.stderr) == (1, "", said)
        assert json.loads(parabit("info", news, "--json").stdout)["documents"] == 300
    assert parabit("delete", news, "post1").returncode == 0


def test_progress_goes_to_a_terminal_on_standard_error_alone(large: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, "vocabulary", large, "--bigrams"], stdout=subprocess.PIPE, stderr=theirs)
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


def test_output_fits_the_terminals_encoding_and_colours_are_for_terminals(
    news: Path, parabit: Run, topic_documents: list[Document]
) -> None:
    text = topic_documents[7].text
    result = parabit("vocabulary", "-", stdin="Привет мир", PYTHONIOENCODING="ascii")
    assert (result.returncode, "\\u043f" in result.stdout) == (0, True)
    word = text.split()[0]
    assert f"\x1b[1m{word}" in parabit("search", news, word, "-k", "1", FORCE_COLOR="1").stdout
    green = "\x1b[32m"
    assert green in parabit("datasets", FORCE_COLOR="1").stdout
    assert "\x1b" not in parabit("datasets").stdout
    assert green not in parabit("datasets", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_nohup_is_respected(tmp_path: Path) -> None:
    command = ("vocabulary", "-", "-o", "kept.csv", "--json")
    with waiting(tmp_path, "nohup", *COMMAND, *command) as process:
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate(LINE)
    assert process.returncode == 0
    assert json.loads(out)["documents"] == PIPED + 1
