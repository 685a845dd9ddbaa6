"""Running the experiments again: what is run, what is kept, and what is reported."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_results import results_of

from made_up_collections import POSTS, lay_out
from parabit.errors import EvaluationError, ParabitError
from parabit.networks import config
from parabit.networks.config import Recipe
from parabit.paper import reproduce as module
from parabit.paper import runs
from parabit.paper.corpora import Prepared
from parabit.paper.html import render
from parabit.paper.jobs import JOBS, PICTURED, QUICK_EPOCHS, Run
from parabit.paper.report import Figure, Report
from parabit.paper.reproduce import EXPERIMENTS, Plan, reproduce
from parabit.paper.work import Work
from parabit.progress import Progress

COMMAND = "parabit reproduce something"
TRAINED, TESTED = 40, 30
Performed = list[tuple[str, str, int]]


@pytest.fixture(scope="module", autouse=True)
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Made-up collections, and a quick version that is done in a moment."""
    folder = tmp_path_factory.mktemp("data")
    lay_out(folder, "20newsgroups", "reuters21578", "enwiki", "arxiv")

    def hasty(full: Callable[..., Recipe], *shape: Any) -> Recipe:
        return replace(full(*shape), inference_rounds=3, samples=32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARABIT_DATA", str(folder))
        patch.setattr(config, "_paper_values", partial(hasty, config._paper_values))
        patch.setattr(module, "_QUICK_TRAINED", TRAINED)
        patch.setattr(module, "_QUICK_TESTED", TESTED)
        for architecture in QUICK_EPOCHS:
            patch.setitem(QUICK_EPOCHS, architecture, 1)
        yield


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> Performed:
    """Which runs were made, as collection, job and seed."""
    made: Performed = []
    real = runs.perform

    def count(run: Run, data: Prepared, *rest: Any) -> dict[str, Any]:
        made.append((run.corpus.name, run.job.name, run.seed))
        return real(run, data, *rest)

    monkeypatch.setattr(runs, "perform", count)
    return made


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> Performed:
    """The same, with results that are made up and figures that are only sketched: both take a while."""
    made: Performed = []

    def sketch(figure: Figure, folder: Path) -> None:
        (folder / f"{figure.name}.svg").write_text('<svg viewBox="0 0 1 1"></svg>')

    def pretend(run: Run, data: Prepared, *_: Any) -> dict[str, Any]:
        made.append((run.corpus.name, run.job.name, run.seed))
        others = [name for name in data.tests if name != run.corpus.name]
        return {
            "job": run.job.name,
            "corpus": run.corpus.name,
            "identity": run.identity(data.fingerprint),
            "device": "cpu",
            "seconds": 1.5,
            "results": results_of(run.job, others, np.random.default_rng(len(made))),
        }

    monkeypatch.setattr(runs, "perform", pretend)
    monkeypatch.setattr("parabit.paper.plots.draw", sketch)
    return made


def read(folder: Path) -> Report:
    return Report.from_json(json.loads((folder / "report.json").read_text()))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_written_whole_and_running_again_runs_nothing_and_changes_nothing(
    tmp_path: Path, performed: Performed
) -> None:
    plan = Plan("table2", quick=True, corpora=("20newsgroups", "reuters21578"), device="cpu")
    told = reproduce(plan, tmp_path / "report", COMMAND)
    assert set(performed) == {
        (corpus, job, 0)
        for corpus in ("20newsgroups", "reuters21578")
        for job in ("pv-dbow-32-bigrams", "binary-pv-dbow-32-bigrams")
    }
    assert len(performed) == len(told.runs) == 4
    before = contents(tmp_path / "report")
    assert {"report.html", "report.json", "work/.gitignore"} <= before.keys()
    assert read(tmp_path / "report") == told
    assert before["report.html"].decode() == render(told, {})
    [table] = told.tables
    assert table.name == "table2"
    assert all(cell.mean is not None for *_, cell in table.cells())
    performed.clear()
    assert reproduce(plan, tmp_path / "report", COMMAND) == told
    assert performed == []
    assert contents(tmp_path / "report") == before


def test_the_report_says_how_it_was_made(tmp_path: Path, pretended: Performed) -> None:
    told = reproduce(Plan("table4", quick=True, device="cpu"), tmp_path, COMMAND)
    assert (told.command, told.quick, told.seeds) == (COMMAND, True, (0,))
    assert told.seconds == 1.5 * len(pretended)
    assert told.machine["trained on"] == "cpu"
    assert told.generated <= datetime.now(UTC).date().isoformat()
    parameters = [name for name, _ in told.parameters]
    assert parameters == ["real-binary-28", "real-binary-24", "separate", "separate", "separate"]
    assert all(values["epochs"] == 1 and values["bigrams"] for _, values in told.parameters)
    remarks = " ".join(told.remarks)
    assert f"of each collection {TRAINED} training and {TESTED} test documents" in remarks
    assert "Reuters-21578 stands in for RCV1; Wikipedia sample stands in for English Wikipedia" in remarks
    facts = {corpus.name: corpus for corpus in told.corpora}
    assert facts["20newsgroups"].training_documents == TRAINED
    assert facts["20newsgroups"].test_documents == TESTED
    assert (facts["20newsgroups"].queries, facts["20newsgroups"].skipped) == (38, 2)
    assert facts["reuters21578"].unlabelled == 8
    assert facts["enwiki"].features is not None
    assert all(facts_of.features >= (facts_of.words or 0) for facts_of in facts.values() if facts_of.features)
    for record in told.runs:
        assert record.keys() == {"job", "corpus", "device", "seconds", "seed", "data", "results"}
        assert all("recall" not in scores for scores in record["results"].values())


def test_headers_are_kept_in_a_table_of_their_own(tmp_path: Path, pretended: Performed) -> None:
    told = reproduce(Plan("headers", quick=True), tmp_path, COMMAND)
    assert {corpus for corpus, *_ in pretended} == {"20newsgroups-raw"}
    assert {job for _, job, _ in pretended} == set(EXPERIMENTS["table1"].jobs)
    [table] = told.tables
    assert [group.title for group in table.groups] == ["20 Newsgroups, headers kept"]
    assert table.counts().stand_in == 0  # they are the paper's own posts
    assert [cell.paper for *_, cell in table.cells()][:2] == [0.40, 0.75]
    assert [facts.name for facts in told.corpora] == ["20newsgroups-raw"]
    assert all("parabit reproduce headers --corpus 20newsgroups-raw" in cell.command for *_, cell in table.cells())


def test_the_whole_has_the_headers_too_and_the_quick_version_does_not() -> None:
    assert EXPERIMENTS["headers"] in Plan().experiments
    assert EXPERIMENTS["headers"] not in Plan(quick=True).experiments


def test_all_is_every_table_and_figure_once_and_its_commands_say_quick(tmp_path: Path, pretended: Performed) -> None:
    told = reproduce(Plan(quick=True), tmp_path, COMMAND)
    assert [table.name for table in told.tables] == ["table1", "table2", "table3", "table4", "table4-strict", "peers"]
    assert len(pretended) == len(set(pretended))
    # One is for those who have a pretrained model, and two take longest.
    left_out = {"sentences", "wide-semantic-hashing-128", "wide-semantic-hashing-32"}
    assert {job for _, job, _ in pretended} == JOBS.keys() - left_out
    peers = [row.labels[0] for row in told.tables[-1].rows]
    assert not [label for label in peers if "10,000 words" in label or "pretrained" in label]
    assert {corpus for corpus, *_ in pretended} == {"20newsgroups", "reuters21578", "enwiki"}  # arXiv is not quick
    figures = [figure.name for figure in told.figures]
    assert len(figures) == len(set(figures)) == 3 * 2 + 2 + 3 + 3
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == set(figures)
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == len(figures)
    for table in told.tables:
        for *_, cell in table.cells():
            assert cell.command.endswith(" --quick")
            assert cell.mean is not None
        assert all("the quick version sees fewer documents" in sentence for sentence in table.below)
    assert len(told.tables[0].below) == 1


def test_the_whole_version_takes_all_documents_and_seeds_and_its_tables_say_why(
    tmp_path: Path, pretended: Performed
) -> None:
    plan = Plan("table1", seeds=2, corpora=("20newsgroups",), jobs=("binary-pv-dbow-32-words", "pv-dm-32"))
    told = reproduce(plan, tmp_path, COMMAND)
    assert len(pretended) == 4
    assert told.seeds == (0, 1)
    [table] = told.tables
    seeds = {cell.seeds for *_, cell in table.cells() if cell.mean is not None}
    assert seeds == {2}
    assert told.counts().missing == 2 * 10
    assert not any(cell.command.endswith("--quick") for *_, cell in table.cells())
    [facts] = told.corpora
    assert (facts.training_documents, facts.test_documents) == tuple(POSTS.values())
    assert (facts.note, facts.features) == ("", None)
    recipe = dict(told.parameters)["pv-dm-32"]
    assert recipe["epochs"] == config.paper_recipe(JOBS["pv-dm-32"].networks[0].shape).epochs


def test_the_quick_version_leaves_the_runs_of_the_whole_alone(tmp_path: Path, pretended: Performed) -> None:
    plan = Plan("table1", seeds=1, corpora=("20newsgroups",), jobs=("pv-dm-32",))
    whole = reproduce(plan, tmp_path, COMMAND)
    reproduce(replace(plan, quick=True), tmp_path, COMMAND)
    assert len(pretended) == 2
    assert reproduce(plan, tmp_path, COMMAND) == whole
    assert len(pretended) == 2


def test_what_was_interrupted_keeps_what_is_finished_and_goes_on(
    tmp_path: Path, pretended: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("table2", quick=True, corpora=("20newsgroups", "reuters21578"))
    pretend = runs.perform

    def stop_after_two(run: Run, *rest: Any) -> dict[str, Any]:
        if len(pretended) == 2:
            raise KeyboardInterrupt
        return pretend(run, *rest)

    monkeypatch.setattr(runs, "perform", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path, COMMAND)
    assert not (tmp_path / "report.json").exists()
    first = list(pretended)
    part = reproduce(replace(plan, only_report=True), tmp_path, COMMAND)
    assert len(part.runs) == 2
    monkeypatch.setattr(runs, "perform", pretend)
    told = reproduce(plan, tmp_path, COMMAND)
    assert len(pretended) == len(told.runs) == 4
    assert set(first).isdisjoint(pretended[2:])


def test_only_the_report_runs_and_prepares_nothing(
    tmp_path: Path, pretended: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("table2", quick=True, only_report=True)
    with pytest.raises(EvaluationError, match=r"no run is finished.*leave out --only-report"):
        reproduce(plan, tmp_path / "nothing", COMMAND)
    assert not (tmp_path / "nothing").exists()
    reproduce(Plan("table2", quick=True, corpora=("20newsgroups",)), tmp_path / "some", COMMAND)
    made = len(pretended)
    monkeypatch.setattr("parabit.paper.work.prepare", lambda *_: pytest.fail("it prepared"))
    told = reproduce(plan, tmp_path / "some", COMMAND)
    assert len(pretended) == made
    assert [facts.name for facts in told.corpora] == ["20newsgroups"]
    [table] = told.tables
    run = {group.title for _, group, _, cell in table.cells() if cell.mean is not None}
    assert run == {"20 Newsgroups"}
    assert [group.title for group in table.groups] == ["20 Newsgroups", "Reuters-21578", "Wikipedia sample"]


def test_a_result_of_other_data_is_not_reported(tmp_path: Path, pretended: Performed) -> None:
    plan = Plan("table2", quick=True, corpora=("20newsgroups",))
    reproduce(plan, tmp_path, COMMAND)
    for path in (tmp_path / "work" / "runs").rglob("*.json"):
        result = json.loads(path.read_text())
        result["identity"]["data"] = "something else"
        path.write_text(json.dumps(result))
    with pytest.raises(EvaluationError, match="no run is finished"):
        reproduce(replace(plan, only_report=True), tmp_path, COMMAND)
    assert len(reproduce(plan, tmp_path, COMMAND).runs) == 2
    assert len(pretended) == 4


def test_transfer_alone_is_reported_with_the_collections_that_it_is_asked_about(
    tmp_path: Path, pretended: Performed
) -> None:
    plan = Plan("table3", quick=True, jobs=("transfer",))
    told = reproduce(plan, tmp_path, COMMAND)
    assert pretended == [("enwiki", "transfer", 0)]
    [table] = told.tables
    for _, group, _, cell in table.cells():
        assert (cell.mean is not None) == (group.title == "Trained on Wikipedia sample")
    assert [facts.name for facts in told.corpora] == ["enwiki"]
    # Which collections are named changes nothing of what is run.
    again = reproduce(replace(plan, corpora=("enwiki", "20newsgroups")), tmp_path, COMMAND)
    assert len(pretended) == 1
    assert [row.labels for row in again.tables[0].rows] == [("20 Newsgroups",)]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (
            Plan("table9"),
            r"no experiment 'table9'; there are table1, headers, table2, .*, figures, peers, everywhere, all",
        ),
        (
            Plan("table2", jobs=("pv-dbow-33",)),
            "no job 'pv-dbow-33' in table2; there are pv-dbow-32-bigrams, binary-pv",
        ),
        (Plan("table2", jobs=("bm25",)), "no job 'bm25' in table2; there are pv-dbow-32-bigrams, "),
        (Plan(jobs=("bm26",)), "no job 'bm26' in all; there are binary-pv-dbow-128-words, "),
        (Plan(corpora=("rcv1",)), "no collection 'rcv1' here; there are 20newsgroups, reuters21578, arxiv, enwiki"),
        (
            Plan("table3", corpora=("20newsgroups",), jobs=("transfer",)),
            "there is nothing to run; transfer is a job of",
        ),
        (Plan("table1", quick=True, corpora=("20newsgroups",), device="tpu"), "no device 'tpu'"),
    ],
)
def test_what_there_is_not_is_told_with_what_there_is(
    plan: Plan, words: str, tmp_path: Path, pretended: Performed
) -> None:
    with pytest.raises(ParabitError, match=words) as told:
        reproduce(plan, tmp_path / "report", COMMAND)
    assert "\n" not in str(told.value)
    assert pretended == []
    assert not (tmp_path / "report" / "report.html").exists()


@pytest.mark.parametrize(
    ("library", "plan", "words"),
    [
        ("matplotlib", Plan("table1"), r"matplotlib is not installed; pip install 'parabit\[plot\]'"),
        ("openTSNE", Plan("figures"), r"openTSNE is not installed; pip install 'parabit\[plot\]'"),
        ("gensim", Plan("peers", quick=True), r"gensim is not installed; pip install 'parabit\[baselines\]'"),
        ("bm25s", Plan("peers", quick=True), r"bm25s is not installed; pip install 'parabit\[baselines\]'"),
    ],
)
def test_a_missing_library_is_told_before_anything_is_run(
    library: str, plan: Plan, words: str, tmp_path: Path, pretended: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ParabitError, match=words):
        reproduce(replace(plan, corpora=("20newsgroups",)), tmp_path, COMMAND)
    assert pretended == []


def test_a_library_is_not_missed_where_its_runs_are_finished(
    tmp_path: Path, pretended: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("peers", quick=True, corpora=("20newsgroups",), jobs=("bm25", "doc2vec-32"))
    pytest.importorskip("gensim")
    told = reproduce(plan, tmp_path, COMMAND)
    for library in ("gensim", "bm25s"):
        for name in [name for name in sys.modules if name.partition(".")[0] == library]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)
    assert reproduce(plan, tmp_path, COMMAND) == told
    assert len(pretended) == 2


def test_the_papers_collections_are_used_where_their_data_is(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    monkeypatch.setattr(Work, "prepare", lambda self, corpus, bigrams, report: used.append(corpus.name))
    for name in ("rcv1/19960820.zip", "wikipedia/enwiki-20160405-pages-articles.xml.bz2"):
        (data / name).parent.mkdir()
        (data / name).write_bytes(b"")
    with pytest.raises(EvaluationError, match="20newsgroups is not prepared"):
        reproduce(Plan("table2"), tmp_path, COMMAND)
    assert used == ["20newsgroups", "rcv1", "wikipedia"]


def test_progress_names_what_is_run_and_ends(tmp_path: Path, pretended: Performed) -> None:
    told: list[Progress] = []
    plan = Plan("table3", quick=True, corpora=("20newsgroups",))
    reproduce(plan, tmp_path, COMMAND, told.append)
    runs_told = [state for state in told if state.stage == "runs"]
    assert runs_told[0].note == f"20 Newsgroups, {PICTURED}"
    assert [state.share for state in runs_told] == [0.0, 1.0]
    assert [state.note for state in told if state.stage == "drawing"] == ["transfer-20newsgroups"]


def test_a_picture_is_made_of_a_run(tmp_path: Path, performed: Performed) -> None:
    """The way of a t-SNE picture, from training on."""
    plan = Plan("figures", quick=True, corpora=("20newsgroups",), jobs=(PICTURED,), device="cpu")
    told = reproduce(plan, tmp_path, COMMAND)
    assert performed == [("20newsgroups", PICTURED, 0)]
    assert [figure.name for figure in told.figures] == [
        "precision-recall-20newsgroups-128",
        "transfer-20newsgroups",
        "tsne-20newsgroups",
    ]
    assert told.tables == ()
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {f"{figure.name}.{kind}" for figure in told.figures for kind in ("svg", "png")}
    assert (tmp_path / "report.html").read_text().count("<svg") == 3


def test_nothing_of_an_interrupted_report_is_half_written(
    tmp_path: Path, pretended: Performed, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan("table2", quick=True, corpora=("20newsgroups",))
    reproduce(plan, tmp_path, COMMAND)
    before = contents(tmp_path)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("parabit.paper.html.render", stop)
    with pytest.raises(KeyboardInterrupt):
        reproduce(plan, tmp_path, "another command")
    assert contents(tmp_path) == before


def test_every_experiment_makes_something_of_its_jobs() -> None:
    assert [name for name, experiment in EXPERIMENTS.items() if not (experiment.tables or experiment.figures)] == []


def test_a_folder_that_cannot_be_made_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("mine")
    with pytest.raises(OSError, match="Not a directory"):
        reproduce(Plan("table1", quick=True, corpora=("20newsgroups",)), tmp_path / "report", COMMAND)
    assert os.listdir(tmp_path) == ["report"]  # noqa: PTH208
