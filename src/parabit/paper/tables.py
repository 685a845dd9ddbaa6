"""From the long table to the report: tables and claims, with the paper's figures beside ours.

A layout says which job and part each row shows; figures of the paper have the names of ours.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from parabit.paper.corpora import COLLECTIONS, PAPER, PaperCorpus
from parabit.paper.experiments import EXPERIMENTS, JOBS, TABLES, Layout, Run, runs_on
from parabit.paper.runs import Store

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"
_ROUNDING = 0.005  # the paper gives two decimals: what is nearer counts as equal
_KEY = ["corpus", "job", "part", "metric"]
PUBLISHED = {
    (collection, *name.split("/"), metric): value
    for metric, figures in PAPER["figures"].items()
    for name, values in figures.items()
    for collection, value in zip(COLLECTIONS, values, strict=False)  # transfer has one fewer
}


class Cell(NamedTuple):
    """A figure of ours, the mean over seeds, and the paper's for the same collection."""

    value: float
    spread: float | None  # standard deviation over seeds; None with one seed
    seeds: int
    stale: bool  # an older version of the method, or other parameters or data
    paper: float | None  # also where a stand-in cannot be compared with it
    standing: str  # above, equal, below, or empty
    command: str


class Figures:
    """The long table with the paper's figures beside ours."""

    def __init__(self, folder: Path, corpora: Sequence[PaperCorpus], quick: bool = False) -> None:
        self.corpora, self.quick, store = list(corpora), quick, Store(folder)
        known = {corpus.name: corpus for corpus in corpora}
        self.runs = []
        for line in store.finished().values():
            if line["quick"] == quick and line["corpus"] in known and line["job"] in JOBS:
                run = Run(JOBS[line["job"]], known[line["corpus"]], line["seed"], quick)
                self.runs.append(line | {"stale": not store.is_current(run, line)})
        performed = {line["corpus"] for line in self.runs}
        self.shown = [corpus for corpus in self.corpora if corpus.name in performed]
        # By corpus, job, part and metric.
        self.cells = dict(self._aggregate(store.results, known)) if self.runs else {}

    def _aggregate(self, results: Path, known: dict[str, PaperCorpus]) -> Iterator[tuple[tuple[str, ...], Cell]]:
        runs = pl.DataFrame(self.runs).select(run="id", stale="stale")
        means = (
            pl.read_ndjson(results, infer_schema_length=None)
            .join(runs, on="run")
            .unique(["run", *_KEY, "seed"], keep="last")  # a run that was repeated left its old rows in the file
            .group_by(_KEY)
            .agg(pl.mean("value"), pl.std("value").alias("spread"), pl.len().alias("seeds"), pl.any("stale"))
        )
        for corpus, job, part, metric, value, spread, seeds, stale in means.rows():
            what = next(name for name, jobs in EXPERIMENTS.items() if job in jobs)
            command = f"parabit reproduce {what} --corpus {corpus} --job {job}{' --quick' * self.quick}"
            # What is tested by transfer is the part.
            key = (part, job, "codes", metric) if part in known else (corpus, job, part, metric)
            paper = PUBLISHED.get((known[key[0]].collection, *key[1:]))
            standing = ""
            # Nor is transfer compared: the paper trained on all of Wikipedia.
            if paper is not None and not known[corpus].stand_in and job != "transfer":
                standing = "equal" if abs(value - paper) < _ROUNDING else "above" if value > paper else "below"
            yield key, Cell(value, spread, seeds, stale, paper, standing, command)

    def value(self, *key: str) -> float | None:
        """The value of a cell, or None if there is no such run."""
        return self.cells[key].value if key in self.cells else None

    def compared(self, corpus: str) -> dict[str, list[tuple[str, Cell]]]:
        """The distinct figures of a collection that are above, equal to and below the paper's, each with its name."""
        named = sorted((", ".join(key[1:]), cell) for key, cell in self.cells.items() if key[0] == corpus)
        return {
            standing: [one for one in named if one[1].standing == standing] for standing in ("above", "equal", "below")
        }


class Table(NamedTuple):
    """A table of the report; each row has labels, its cells, and whether it is parabit's own."""

    name: str
    layout: Layout
    columns: list[str]  # their titles, each over all metrics
    rows: list[tuple[list[str], list[Cell | None], bool]]


def tables(figures: Figures) -> list[Table]:
    """All tables of the report that have a figure."""
    made = []
    for name, layout in TABLES.items():
        corpora = [corpus for corpus in figures.shown if runs_on(layout.experiment, corpus)]
        if name == "table3":  # of other collections than Wikipedia
            corpora = [corpus for corpus in corpora if not corpus.wikipedia]
        rows = []
        for *labels, job, part in layout.rows:
            cells = [figures.cells.get((corpus.name, job, part, name)) for corpus in corpora for name in layout.metrics]
            if any(cells):
                rows.append((labels, cells, job.startswith("closed-form")))
        if rows:
            made.append(Table(name, layout, [corpus.heading for corpus in corpora], rows))
    return made


class Claim(NamedTuple):
    """A claim of the paper, with our figures and a verdict."""

    text: str
    verdict: str
    figures: str


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order: one holds if it does in every comparison."""
    judged = []
    for claim in PAPER["claims"]:
        metric, margin, share = claim.get("metric", "map"), claim.get("margin", 0.0), claim.get("share", 1.0)
        compared = []
        for corpus in figures.shown:
            for name, *pair in [] if corpus.headers else claim["pairs"]:
                places = (figure.partition("/") for figure in pair)
                first, second = (figures.value(corpus.name, job, part or "codes", metric) for job, _, part in places)
                if first is not None and second is not None:
                    compared.append((", ".join(filter(None, (corpus.title, name))), first, share * second))
        true = [first - second > margin for _, first, second in compared]
        verdict = UNTESTED if not true else HOLDS if all(true) else PARTLY if any(true) else FAILS
        shown = "; ".join(f"{name}: {first:.3f} and {second:.3f}" for name, first, second in compared).replace(
            " 0.", " ."
        )
        judged.append(Claim(claim["text"], verdict, shown or "no such runs"))
    return judged
