"""From the long table to the report's tables: a layout says which job and part each row shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from parabit.paper.corpora import PaperCorpus
from parabit.paper.experiments import EXPERIMENTS, JOBS, TABLES, Layout, Row, Run, runs_on
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
            target = known[part].collection if part in known else part  # of transfer
            paper = theirs.get((known[corpus].collection, job, target, metric))
            # Nor is transfer compared: the paper trained on all of Wikipedia.
            compared = paper is not None and not known[corpus].stand_in and job != "transfer"
            what = next(name for name, jobs in EXPERIMENTS.items() if job in jobs)
            command = f"parabit reproduce {what} --corpus {corpus} --job {job}{' --quick' * self.quick}"
            standing = _standing(value - paper) if compared else ""
            yield (corpus, job, part, metric), Cell(value, spread, seeds, stale, paper, standing, command)

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
    rows: list[tuple[Row, list[Cell | None], bool]]


def tables(figures: Figures) -> list[Table]:
    """All tables of the report that have a figure."""
    made = []
    for name, layout in TABLES.items():
        corpora = [corpus for corpus in figures.shown if runs_on(layout.experiment, corpus)]
        columns = [corpus.heading for corpus in corpora]
        places = [(labels, [(corpus.name, job, part) for corpus in corpora]) for *labels, job, part in layout.rows]
        if name == "table3":
            columns, places = _transfer(layout.rows, corpora)
        rows = []
        for labels, row in places:
            cells = [figures.get(*place, metric) for place in row for metric in layout.metrics]
            if any(cells):
                rows.append((tuple(labels), cells, row[0][1].startswith("closed-form")))
        if rows:
            made.append(Table(name, layout, columns, rows))
    return made


def _transfer(
    models: list[Row], corpora: list[PaperCorpus]
) -> tuple[list[str], list[tuple[list[str], list[tuple[str, str, str]]]]]:
    """Columns and places of Table 3: models trained on Wikipedia, and on the collection's own documents."""
    wikipedia = [corpus for corpus in corpora if corpus.collection == "English Wikipedia"]
    columns = [*(f"Trained on {corpus.title}" for corpus in wikipedia), "Trained on its own documents"]
    places = [
        (
            [target.heading, label],
            [*((corpus.name, transfer, target.name) for corpus in wikipedia), (target.name, own, "codes")],
        )
        for target in corpora
        if target not in wikipedia
        for label, transfer, own in models
    ]
    return columns, places
