"""A tiny reproduction from end to end, and what is kept of it."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import numpy as np
import pytest

from made_up_collections import lay_out
from parabit.paper import experiments, jobs, report
from parabit.paper.corpora import paper_corpora
from parabit.paper.experiments import EXPERIMENTS, JOBS, QUICK_EPOCHS, Run, runs_of
from parabit.paper.report import reproduce
from parabit.paper.results import Figures, Store

CORPORA = NEWS, _, REUTERS, WIKIPEDIA = paper_corpora(["enwiki"])
NETWORKS = ("real-binary-28", "closed-form-24", "binary-pv-dbow-128-bigrams", "separate")
PEERS = ("semantic-hashing-32", "lsa-32", "doc2vec-32", "tf-idf", "bm25", "sentences")
# One job of each kind; those of real collections take hours.
KINDS = ("pv-dbow-32-bigrams", "binary-pv-dbow-32-bigrams", "closed-form-32")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Table 2 of made-up collections, reproduced."""
    data, made = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("report")
    lay_out(data, "20newsgroups", "reuters21578", "enwiki")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARABIT_DATA", str(data))
        for kind in QUICK_EPOCHS:
            patch.setitem(QUICK_EPOCHS, kind, 1)
        reproduce("table2", made, "parabit reproduce table2 --quick", quick=True, device="cpu")
        yield made


def test_every_figure_has_a_row_and_every_run_says_what_made_it(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    assert {(line["corpus"], line["job"]) for line in lines} == {
        (corpus, job) for corpus in ("20newsgroups", "reuters21578") for job in KINDS
    }
    for line in lines:
        assert {"code", "device", "torch", "seconds", "data", "date"} <= line.keys()
    assert {row["run"] for row in rows} == {line["id"] for line in lines}
    assert all(0 <= row["value"] <= 1 for row in rows if row["metric"] in ("map", "ndcg@10"))
    itq = [row for row in rows if row["part"] == "itq" and row["metric"] == "map"]
    assert len(itq) == 2
    page = (folder / "report.html").read_text()
    assert all(f'"{name}"' in page for name in ("claims", "table2", "collections"))
    assert "--corpus 20newsgroups --job pv-dbow-32-bigrams --quick" in page


def test_a_finished_run_is_kept_and_an_older_method_is_stale(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "perform", lambda *_: pytest.fail("it ran again"))
    assert reproduce("table2", folder, "", quick=True, device="cpu")["runs"] == 6
    monkeypatch.setitem(experiments.VERSIONS, "network", 2)
    outcome = reproduce("table2", folder, "", quick=True, only_report=True)
    assert outcome["stale"] == 4  # of two networks on two collections; the closed form is not one
    assert "†" in (folder / "report.html").read_text()
    monkeypatch.undo()
    assert reproduce("table2", folder, "", quick=True, only_report=True)["stale"] == 0


def test_a_line_that_was_cut_off_is_ignored_and_written_again(tmp_path: Path) -> None:
    store, run = Store(tmp_path), Run(JOBS["tf-idf"], NEWS, 0)
    about = {
        "id": run.id,
        "corpus": NEWS.name,
        "job": "tf-idf",
        "seed": 0,
        "quick": False,
        "data": "",
    }
    store.keep(about, [("vectors", "map", 0.5)])
    store.runs.write_text(store.runs.read_text()[:-9])
    assert store.missing([run]) == [run]
    store.keep(about, [("vectors", "map", 0.25)])
    assert store.missing([run]) == []
    assert Figures(tmp_path, [NEWS]).cells[NEWS.name, "tf-idf", "vectors", "map"].value == 0.25


def test_all_networks_and_peers_can_be_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to score, on the arrays that were prepared: Table 4, the pictures, the hashing papers' protocol."""
    library = SimpleNamespace(
        SentenceTransformer=lambda model: SimpleNamespace(encode=lambda texts: np.eye(len(texts)))
    )
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    copy = copytree(folder, tmp_path / "copy")  # other tests count its runs
    store, news = Store(copy), replace(NEWS, most_trained=2000, most_tested=600)
    parts, pictures = {}, {}
    for name in (*NETWORKS, *PEERS):
        run = Run(JOBS[name], news, 0, quick=True)
        store.prepare(run, [news])
        about, rows, pictures[name] = jobs.perform(run, store.data(run), "cpu")
        store.keep(about, rows, pictures[name])
        parts[name] = {part for part, _, _ in rows}
        if name == "binary-pv-dbow-128-bigrams":
            assert "training_precision@100" in {metric for _, metric, _ in rows}
    assert parts["real-binary-28"] >= {"codes", "vectors", "28 bits, radius 1"}
    assert parts["separate"] >= {"28 bits, radius 2", "24 bits, radius 3", "vectors"}
    assert parts["closed-form-24"] == {"24 bits, radius 2", "24 bits, radius 3"}
    assert [parts[name] for name in PEERS] == [
        {"codes"},
        {"vectors", "hyperplanes", "itq"},
        *[{"vectors"}] * 4,
    ]
    assert [name for name, picture in pictures.items() if picture] == ["binary-pv-dbow-128-bigrams"]
    reproduce("figures", copy, "", quick=True, only_report=True)
    drawn = {path.name for path in (copy / "figures").iterdir()}
    assert drawn >= {
        "tsne-20newsgroups.png",
        "curves-20newsgroups-128.svg",
        "real-binary-20newsgroups.svg",
    }


def test_runs_are_each_once_and_transfer_is_from_wikipedia_only() -> None:
    everything = runs_of(tuple(EXPERIMENTS), CORPORA, seeds=2)
    assert len(everything) == len({run.id for run in everything})
    assert {run.corpus.name for run in everything if run.job.name == "transfer"} == {"enwiki"}
    assert {run.seed for run in everything if run.job.name == "bm25"} == {0}
    assert {run.corpus.name for run in everything if run.job.name.startswith("window")} == {
        "20newsgroups"
    }
