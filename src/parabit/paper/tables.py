"""From the long table to the report's tables: a layout says which job and part each row shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from parabit.paper.corpora import PaperCorpus
from parabit.paper.experiments import EXPERIMENTS, JOBS, TABLES, Layout, Run, runs_on
from parabit.paper.published import published
from parabit.paper.runs import Store

_ROUNDING = 0.005  # the paper gives two decimals: what is nearer counts as equal
_KEY = ["corpus", "job", "part", "metric"]


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
        self._cells = dict(self._aggregate(store.results)) if self.runs else {}

    def _aggregate(self, results: Path) -> Iterator[tuple[tuple[str, ...], Cell]]:
        runs = pl.DataFrame(self.runs).select(run="id", stale="stale")
        means = (
            pl.read_ndjson(results, infer_schema_length=None)
            .join(runs, on="run")
            .unique(["run", *_KEY, "seed"], keep="last")  # a run that was repeated left its old rows in the file
            .group_by(_KEY)
            .agg(pl.mean("value"), pl.std("value").alias("spread"), pl.len().alias("seeds"), pl.any("stale"))
        )
        theirs, known = published(), {corpus.name: corpus for corpus in self.corpora}
        columns = (*_KEY, "value", "spread", "seeds", "stale")
        for corpus, job, part, metric, value, spread, seeds, stale in means.select(columns).rows():
            what = next(name for name, jobs in EXPERIMENTS.items() if job in jobs)
            command = f"parabit reproduce {what} --corpus {corpus} --job {job}{' --quick' * self.quick}"
            # What is tested by transfer is the part.
            key = (part, job, "codes", metric) if part in known else (corpus, job, part, metric)
            paper = theirs.get((known[key[0]].collection, *key[1:]))
            # Nor is transfer compared: the paper trained on all of Wikipedia.
            compared = paper is not None and not known[corpus].stand_in and job != "transfer"
            standing = _standing(value - paper) if compared else ""
            yield key, Cell(value, spread, seeds, stale, paper, standing, command)

    def get(self, corpus: str, job: str, part: str, metric: str) -> Cell | None:
        """A cell, or None if there is no such run."""
        return self._cells.get((corpus, job, part, metric))

    def value(self, corpus: str, job: str, part: str = "codes", metric: str = "map") -> float | None:
        """The value of a cell."""
        cell = self.get(corpus, job, part, metric)
        return None if cell is None else cell.value

    def compared(self, corpus: str) -> dict[str, int]:
        """How many distinct figures of a collection are above, equal to and below the paper's."""
        standings = [cell.standing for key, cell in self._cells.items() if key[0] == corpus]
        return {standing: standings.count(standing) for standing in ("above", "equal", "below")}

    def below(self, corpus: str) -> list[tuple[str, Cell]]:
        """The figures that are below the paper's, each with its name."""
        cells = [(key, cell) for key, cell in self._cells.items() if key[0] == corpus and cell.standing == "below"]
        return sorted((", ".join(key[1:]), cell) for key, cell in cells)


def _standing(difference: float) -> str:
    return "equal" if abs(difference) < _ROUNDING else "above" if difference > 0 else "below"


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
            cells = [figures.get(corpus.name, job, part, metric) for corpus in corpora for metric in layout.metrics]
            if any(cells):
                rows.append((labels, cells, job.startswith("closed-form")))
        if rows:
            made.append(Table(name, layout, [corpus.heading for corpus in corpora], rows))
    return made
