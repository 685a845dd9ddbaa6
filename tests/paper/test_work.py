"""The folder that runs are kept in: what is taken from it, and what is made anew."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from made_up_collections import lay_out
from parabit.errors import EvaluationError
from parabit.paper import work as module
from parabit.paper.corpora import PaperCorpus, paper_corpora
from parabit.paper.jobs import JOBS, Run
from parabit.paper.work import Work, runs_of

CORPORA = paper_corpora(["enwiki"])
NEWS, REUTERS, WIKIPEDIA = CORPORA
RUN = Run(JOBS["tf-idf"], NEWS, 0)


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("data")
    lay_out(folder, "20newsgroups", "reuters21578", "enwiki", "arxiv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARABIT_DATA", str(folder))
        yield folder


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The arrays of the newsgroups."""
    folder = tmp_path_factory.mktemp("arrays")
    Work(folder, CORPORA).prepare(NEWS, bigrams=False)
    return folder


@pytest.fixture
def work(tmp_path: Path, arrays: Path) -> Work:
    """A folder with them alone."""
    shutil.copytree(arrays, tmp_path / "work")
    return Work(tmp_path / "work", CORPORA)


def result(work: Work, run: Run = RUN) -> dict[str, Any]:
    return {"identity": run.identity(work.data(run).fingerprint), "results": {"vectors": {"map": 0.5}}}


def test_a_kept_result_is_taken_again(work: Work) -> None:
    assert work.kept(RUN) is None
    assert not work.has(RUN)
    made = result(work)
    work.keep(RUN, made)
    assert work.kept(RUN) == made
    assert Work(work.folder, CORPORA).kept(RUN) == made
    assert work.has(RUN)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"data": "other data"}, {"size": 3}, {"bigrams": True}, {"networks": [{}]}, {"more": 1}]
)
def test_a_result_that_was_made_with_something_else_is_not_taken(change: dict[str, Any], work: Work) -> None:
    made = result(work)
    work.keep(RUN, {**made, "identity": {**made["identity"], **change}})
    assert work.kept(RUN) is None
    assert list(work.missing([RUN])) == [RUN]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"null", b'{"results": {}}', b"\xff\xfe\x00", b'{"identity": 5}']
)
def test_a_damaged_result_is_run_anew(content: bytes, work: Work) -> None:
    work.keep(RUN, result(work))
    (work.folder / "runs" / RUN.file).write_bytes(content)
    assert work.kept(RUN) is None
    assert list(work.missing([RUN])) == [RUN]
    work.keep(RUN, result(work))
    assert work.kept(RUN) == result(work)


def test_what_is_missing_is_what_is_not_kept_in_its_order(work: Work) -> None:
    runs = runs_of([NEWS], [JOBS["tf-idf"], JOBS["lsa-32"], JOBS["bm25"]], range(2))
    assert [(run.job.name, run.seed) for run in runs] == [("tf-idf", 0), ("lsa-32", 0), ("lsa-32", 1), ("bm25", 0)]
    assert list(work.missing(runs)) == runs
    work.keep(runs[1], result(work, runs[1]))
    assert list(work.missing(runs)) == [runs[0], *runs[2:]]


def test_an_interrupted_write_leaves_the_old_result(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    made = result(work)
    work.keep(RUN, made)

    def stop(path: Path, content: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", stop)
    with pytest.raises(KeyboardInterrupt):
        work.keep(RUN, {"identity": {}})
    monkeypatch.undo()
    assert json.loads((work.folder / "runs" / RUN.file).read_text()) == made


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Which arrays were written."""
    written: list[tuple[str, bool]] = []
    real = module.prepare

    def count(path: Path, corpus: PaperCorpus, bigrams: bool, *rest: Any) -> None:
        written.append((corpus.name, bigrams))
        real(path, corpus, bigrams, *rest)

    monkeypatch.setattr(module, "prepare", count)
    return written


def test_arrays_are_written_once(work: Work, prepared: list[tuple[str, bool]]) -> None:
    for _ in range(2):
        work.prepare(NEWS, bigrams=False)
        work.prepare(NEWS.small(20, 15), bigrams=False)
    assert prepared == [("20newsgroups", False)]  # the small ones are others
    assert work.data(RUN._replace(corpus=NEWS.small(20, 15))).fingerprint != work.data(RUN).fingerprint


def test_arrays_that_are_damaged_are_written_again(work: Work, prepared: list[tuple[str, bool]]) -> None:
    before = work.data(RUN).fingerprint
    [path] = work.folder.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:-100])
    assert work.facts(NEWS, bigrams=False) is None
    work.prepare(NEWS, bigrams=False)
    assert prepared == [("20newsgroups", False)]
    assert work.data(RUN).fingerprint == before


def test_what_a_network_of_wikipedia_is_asked_about_is_there_whichever_collection_was_named(tmp_path: Path) -> None:
    work = Work(tmp_path, CORPORA)
    work.prepare(WIKIPEDIA, bigrams=True)
    work.prepare(NEWS, bigrams=True)
    wikipedia, news = work.facts(WIKIPEDIA, bigrams=True), work.facts(NEWS, bigrams=True)
    assert wikipedia is not None
    assert news is not None
    assert list(wikipedia["tests"]) == ["enwiki", "20newsgroups", "reuters21578"]
    assert list(news["tests"]) == ["20newsgroups"]


def test_a_collection_that_came_later_is_asked_about_too(tmp_path: Path, prepared: list[tuple[str, bool]]) -> None:
    before, after = Work(tmp_path, CORPORA), Work(tmp_path, paper_corpora(["enwiki", "arxiv"]))
    before.prepare(WIKIPEDIA, bigrams=True)
    run = Run(JOBS["transfer"], WIKIPEDIA, 0)
    before.keep(run, result(before, run))
    after.prepare(WIKIPEDIA, bigrams=True)
    assert prepared == [("enwiki", True)] * 2
    assert "arxiv" in after.data(run).tests
    assert after.kept(run) is None
    before.prepare(WIKIPEDIA, bigrams=True)  # nor is there less than was asked for
    assert prepared == [("enwiki", True)] * 2


def test_what_is_not_prepared_is_told(tmp_path: Path) -> None:
    work = Work(tmp_path, CORPORA)
    assert work.facts(NEWS, bigrams=False) is None
    with pytest.raises(EvaluationError, match=r"20newsgroups is not prepared.*`parabit reproduce` prepares it"):
        work.data(RUN)


def test_runs_can_be_made_where_arrays_are_all_there_is(
    work: Work, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(work.folder), *["--corpus", "20newsgroups", "--job", "tf-idf", "--seed", "1", "--device", "cpu"]]
    environment = {**os.environ, "PARABIT_DATA": "/nowhere"}
    command = [sys.executable, "-m", "parabit.paper.work", *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("20newsgroups/tf-idf-1.json ")
    kept = work.kept(RUN._replace(seed=1))
    assert kept is not None
    assert str(kept["results"]["vectors"]["map"]) in made.stdout
    monkeypatch.setattr("sys.argv", ["work", *arguments])
    module.main()  # what is finished is not run again
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--job", "bm26"), "no job 'bm26'; there are binary-pv-dbow-128-words, "),
        (("--corpus", "news"), "no collection 'news'; there are 20newsgroups, reuters21578, arxiv, enwiki, rcv1, wiki"),
        (("--corpus", "rcv1", "--job", "bm25"), "rcv1 is not prepared"),
    ],
)
def test_what_is_not_there_is_told_in_a_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["work", str(tmp_path), *arguments])
    with pytest.raises(EvaluationError, match=words):
        module.main()
