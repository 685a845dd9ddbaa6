"""The verbs of the index in processes of their own: signals, pipes, full disks, two writers."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from caught_at_work import COMMAND, INTERRUPTED, expected, interrupting, stopped
from typer.testing import CliRunner

from parabit import Document
from parabit.cli.app import app
from parabit.index import Index

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def large(topic_documents: list[Document], tmp_path: Path) -> Path:
    """More documents than one batch."""
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        for number in range(3_000):
            file.write(json.dumps({"id": f"large{number}", "text": topic_documents[number % 300].text}) + "\n")
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_reads_leaves_nothing(number: signal.Signals, topic_model: Path, tmp_path: Path) -> None:
    assert stopped(number, tmp_path, "index", topic_model, "-", "-o", "a.index") == expected(number)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["encoding", "building"])
def test_an_interrupt_at_any_stage_leaves_nothing_under_the_name(
    stage: str, large: Path, topic_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.cli.index.progress", interrupting(stage))
    command = ["index", topic_model, large, "-o", tmp_path / "a.index", "--backend", "multi"]
    result = CliRunner().invoke(app, [*map(str, command)])
    assert (result.exit_code, result.stderr) == (130, INTERRUPTED)
    assert [path.name for path in tmp_path.iterdir()] == ["large.jsonl"]


@pytest.mark.parametrize(
    ("verb", "limit"),
    [("index", 100), ("index", 20_000), ("overwrite", 3_000), ("add", 3_000), ("compact", 20_000), ("dedupe", 100)],
)
def test_a_full_disk_is_told_and_nothing_half_written_stays(
    verb: str, limit: int, news: Path, large: Path, topic_model: Path, tmp_path: Path
) -> None:
    """A limit on the size of files stands in for a full disk: writes fail in the same places, in the same way."""
    arguments = {
        "index": ["index", topic_model, large, "-o", "a.index"],
        "overwrite": ["index", topic_model, large, "-o", news, "--overwrite"],
        "add": ["add", news, large],
        "compact": ["compact", news],
        "dedupe": ["dedupe", news, "--shared", "0.05", "-o", "groups.csv"],
    }[verb]
    process = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.startswith("parabit: no room left on the disk")
    assert process.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"large.jsonl", "news.index"}
    with Index.open(news) as index:
        index.verify()
        assert len(index) == 300
        assert not [path for path in news.rglob("*") if "partial" in path.name]


def test_a_second_writer_is_told_who_the_first_is_and_readers_go_on(news: Path, parabit: Run, large: Path) -> None:
    with Index.open(news, write=True):
        for arguments in (("add", news, large), ("delete", news, "post1"), ("compact", news)):
            result = parabit(*arguments)
            assert (result.returncode, result.stdout) == (1, "")
            assert result.stderr == (
                f"parabit: news.index is being written by process {os.getpid()}; wait until it is done\n"
            )
        assert json.loads(parabit("info", news, "--json").stdout)["documents"] == 300
    assert parabit("delete", news, "post1").returncode == 0


def test_documents_and_ids_come_through_pipes(news: Path, parabit: Run, topic_documents: list[Document]) -> None:
    line = json.dumps({"id": "piped", "text": topic_documents[3].text}) + "\n"
    assert json.loads(parabit("add", news, "-", "--json", stdin=line).stdout)["added"] == 1
    hits = json.loads(parabit("search", news, "-", "--json", stdin=topic_documents[3].text).stdout)["hits"]
    assert {"piped", "post3"} == {hit["id"] for hit in hits[:2]}
    assert json.loads(parabit("delete", news, "--from", "-", "--json", stdin="piped\n").stdout)["documents"] == 300
    assert parabit("add", news, "-").stderr == "parabit: standard input: empty file\n"


def test_closed_streams_and_readers_that_leave_are_no_traceback(news: Path) -> None:
    for script, words in (
        ("search news.index - <&-", "standard input is closed"),
        ("delete news.index --from - <&-", "standard input is closed"),
        ("dedupe news.index --shared 0.05 --json >&-", "standard output is closed"),
        ("dedupe news.index --shared 0.05 --print-delete | head -1 >/dev/null", ""),
        ("dedupe news.index --shared 0.05 --json | head -c 9 >/dev/null", ""),
    ):
        process = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m parabit {script}"], capture_output=True, text=True, check=False
        )
        assert process.stderr.count("\n") == (1 if words else 0)
        assert words in process.stderr
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, "dedupe", "news.index"]
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (process.returncode, process.stderr.count("\n")) == (1, 1)
    assert process.stderr.startswith("parabit: no room left on the disk")


def test_newsgroups_are_indexed_and_found(real: Callable[[str], str], topic_model: Path, parabit: Run) -> None:
    corpus = real("20newsgroups/test")
    result = parabit("train", corpus, "-o", "news-32", "--bits", "32", "--quiet")
    assert result.returncode == 0
    told = json.loads(parabit("index", "news-32", corpus, "-o", "news.index", "--json").stdout)
    assert (told["documents"] + told["left_out"], told["fields"]) == (7532, ["labels"])
    where = ("--where", "labels=sci.space")
    hits = json.loads(parabit("search", "news.index", "the space shuttle in orbit", "--json", *where).stdout)["hits"]
    assert len(hits) == 10
    assert all(hit["fields"]["labels"] == ["sci.space"] for hit in hits)
