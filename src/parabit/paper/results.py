"""Results: the files that runs leave, and the tables and claims of the report, with the paper's figures beside ours.

What came out is one long table, `results.jsonl`, with a row per (corpus, job, seed, part, metric, value); `runs.jsonl`
says with which code, on what device and in how many seconds each run was made. A run is finished when its line
is there, so an interrupted command continues where it stopped.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from parabit.paper.corpora import COLLECTIONS, PAPER, PaperCorpus, Prepared, prepare, read_prepared
from parabit.paper.experiments import EXPERIMENTS, JOBS, TABLES, Layout, Run, runs_on
from parabit.paper.jobs import Rows
from parabit.progress import Report, silent

HOLDS, PARTLY, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "cannot be tested here"
_ROUNDING = 0.005  # the paper gives two decimals: what is nearer counts as equal
_KEY = ["corpus", "job", "part", "metric"]
PUBLISHED = {
    (collection, *name.split("/"), metric): value
    for metric, figures in PAPER["figures"].items()
    for name, values in figures.items()
    for collection, value in zip(COLLECTIONS, values, strict=False)  # transfer has one fewer
}


class Store:
    """The folder of a report: the long table, what its runs were made with, and arrays to work with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results, self.runs = folder / "results.jsonl", folder / "runs.jsonl"
        self._read = lru_cache(maxsize=1)(read_prepared)

    def arrays(self, corpus: PaperCorpus, bigrams: bool) -> Path:
        size = "" if corpus.most_trained is None else f"-{corpus.most_trained}-{corpus.most_tested}"
        return (
            self.folder
            / "work"
            / "arrays"
            / f"{corpus.name}{size}"
            / ("bigrams.npz" if bigrams else "words.npz")
        )

    def picture(self, corpus: str, quick: bool) -> Path:
        """The codes of the t-SNE picture."""
        return self.folder / "work" / f"picture-{corpus}{'-quick' if quick else ''}.npz"

    def prepare(self, run: Run, corpora: Iterable[PaperCorpus], report: Report = silent) -> None:
        """Write the arrays of a run's collection, unless they are there; `corpora` are all those of the paper."""
        transfers = run.job.bigrams and run.corpus.wikipedia
        others = (
            [other for other in corpora if other.collection != run.corpus.collection]
            if transfers
            else []
        )
        facts = self.facts(run.corpus, run.job.bigrams)
        if facts is None or not {other.name for other in others} <= facts["tests"].keys():
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            (work / ".gitignore").write_text("*\n")
            prepare(
                self.arrays(run.corpus, run.job.bigrams),
                run.corpus,
                run.job.bigrams,
                others,
                report,
            )
            self._read.cache_clear()

    def facts(self, corpus: PaperCorpus, bigrams: bool) -> dict[str, Any] | None:
        """What is known of a collection; None if it is not prepared."""
        path = self.arrays(corpus, bigrams)
        if not path.exists():
            return None
        with np.load(path) as arrays:
            facts: dict[str, Any] = json.loads(str(arrays["facts"]))
        return facts

    def data(self, run: Run) -> Prepared:
        """The arrays of a run, which must be prepared."""
        return self._read(self.arrays(run.corpus, run.job.bigrams))

    def finished(self) -> dict[tuple[str, str, int, bool], dict[str, Any]]:
        """What each run was made with, the last one of each; a line that was cut off is ignored."""
        lines = []
        for line in self.runs.read_text().splitlines() if self.runs.exists() else ():
            try:
                lines.append(json.loads(line))
            except ValueError:  # written when the power went
                continue
        return {(line["corpus"], line["job"], line["seed"], line["quick"]): line for line in lines}

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Runs that are not finished, or were made by an older method, with other parameters or data."""
        kept = self.finished()
        return [run for run in runs if not self.is_current(run, kept.get(run.key))]

    def is_current(self, run: Run, line: dict[str, Any] | None) -> bool:
        facts = self.facts(run.corpus, run.job.bigrams)
        return (
            line is not None
            and line["id"] == run.id
            and (not facts or line["data"] == facts["fingerprint"])
        )

    def keep(
        self, about: dict[str, Any], rows: Rows, picture: dict[str, Any] | None = None
    ) -> None:
        """Write what came out: rows first, as their run counts only when its line is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        where = {name: about[name] for name in ("corpus", "job", "seed")}
        lines = [
            {**where, "part": p, "metric": m, "value": v, "run": about["id"]} for p, m, v in rows
        ]
        _append(self.results, lines)
        if picture:
            np.savez_compressed(self.picture(about["corpus"], about["quick"]), **picture)
        _append(self.runs, [about])


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    torn = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write("\n" * bool(torn) + "".join(json.dumps(line) + "\n" for line in lines))


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
        self.shown = [
            corpus
            for name, corpus in known.items()
            if any(line["corpus"] == name for line in self.runs)
        ]
        # By corpus, job, part and metric.
        self.cells = dict(self._aggregate(store.results, known)) if self.runs else {}

    def _aggregate(
        self, results: Path, known: dict[str, PaperCorpus]
    ) -> Iterator[tuple[tuple[str, ...], Cell]]:
        runs = pl.DataFrame(self.runs).select(run="id", stale="stale")
        means = (
            pl.read_ndjson(results, infer_schema_length=None)
            .join(runs, on="run")
            .unique(
                ["run", *_KEY, "seed"], keep="last"
            )  # a run that was repeated left its old rows in the file
            .sort(*_KEY, "seed")  # so that means are the same to the last digit each time
            .group_by(_KEY, maintain_order=True)
            .agg(
                pl.mean("value"),
                pl.std("value").alias("spread"),
                pl.len().alias("seeds"),
                pl.any("stale"),
            )
        )
        for corpus, job, part, metric, value, spread, seeds, stale in means.rows():
            what = next(name for name, jobs in EXPERIMENTS.items() if job in jobs)
            command = (
                f"parabit reproduce {what} --corpus {corpus} --job {job}{' --quick' * self.quick}"
            )
            # What is tested by transfer is the part.
            key = (part, job, "codes", metric) if part in known else (corpus, job, part, metric)
            paper = PUBLISHED.get((known[key[0]].collection, *key[1:]))
            standing = ""
            # Nor is transfer compared: the paper trained on all of Wikipedia.
            if paper is not None and not known[corpus].stand_in and job != "transfer":
                standing = (
                    "equal"
                    if abs(value - paper) < _ROUNDING
                    else "above"
                    if value > paper
                    else "below"
                )
            yield key, Cell(value, spread, seeds, stale, paper, standing, command)

    def compared(self, corpus: str) -> dict[str, list[tuple[str, Cell]]]:
        """The distinct figures of a collection that are above, equal to and below the paper's, each with its name."""
        named = sorted(
            (", ".join(key[1:]), cell) for key, cell in self.cells.items() if key[0] == corpus
        )
        return {
            of: [one for one in named if one[1].standing == of]
            for of in ("above", "equal", "below")
        }


class Table(NamedTuple):
    """A table of the report; each row has a label, its cells, and whether it is parabit's own."""

    name: str
    layout: Layout
    metrics: tuple[str, ...]  # at most two, or the table would be wider than a page
    columns: list[str]  # their titles, each over all metrics
    rows: list[tuple[str, list[Cell | None], bool]]


def tables(figures: Figures) -> list[Table]:
    """All tables of the report that have a figure; one with more than two metrics is several."""
    made = []
    for name, layout in TABLES.items():
        corpora = [corpus for corpus in figures.shown if runs_on(layout.experiment, corpus)]
        if name == "table3":  # of other collections than Wikipedia
            corpora = [corpus for corpus in corpora if not corpus.wikipedia]
        for metrics in (
            layout.metrics[start : start + 2] for start in range(0, len(layout.metrics), 2)
        ):
            rows = []
            for label, job, part in layout.rows:
                cells = [
                    figures.cells.get((corpus.name, job, part, of))
                    for corpus in corpora
                    for of in metrics
                ]
                if any(cells):
                    rows.append((label, cells, job.startswith("closed-form")))
            if rows:
                made.append(
                    Table(name, layout, metrics, [corpus.heading for corpus in corpora], rows)
                )
    return made


class Comparison(NamedTuple):
    """Two figures of a claim."""

    name: str  # the collection, and which pair if there are several
    first: Cell
    second: Cell
    share: float  # of the second that the first should reach

    @property
    def sign(self) -> str:
        """Whether the first is higher or lower; a difference within the spread over seeds is none."""
        difference = self.first.value - self.share * self.second.value
        spread = hypot(self.first.spread or 0.0, self.share * (self.second.spread or 0.0))
        return "≈" if abs(difference) <= spread else ">" if difference > 0 else "<"


class Claim(NamedTuple):
    """A claim of the paper, with our figures and a verdict."""

    text: str
    compared: list[Comparison]
    equal: bool  # whether it is enough that the first figure is not lower
    usually: bool  # whether more than half of the comparisons are enough

    @property
    def verdict(self) -> str:
        true, count = self.agree, len(self.compared)
        if not count:
            return UNTESTED
        return (
            HOLDS
            if true == count or (self.usually and 2 * true > count)
            else PARTLY
            if true
            else FAILS
        )

    @property
    def agree(self) -> int:
        """In how many comparisons it holds."""
        return sum(one.sign == ">" or (self.equal and one.sign == "≈") for one in self.compared)


def claims(figures: Figures) -> list[Claim]:
    """All claims that are checked, in the paper's order."""
    judged = []
    for claim in PAPER["claims"]:
        compared = []
        for corpus in figures.shown:
            for name, *pair in [] if corpus.headers else claim["pairs"]:
                places = (figure.partition("/") for figure in pair)
                keys = (
                    (corpus.name, job, part or "codes", claim.get("metric", "map"))
                    for job, _, part in places
                )
                first, second = map(figures.cells.get, keys)
                if first and second:
                    named = ", ".join(filter(None, (corpus.title, name)))
                    compared.append(Comparison(named, first, second, claim.get("share", 1.0)))
        judged.append(
            Claim(claim["text"], compared, claim.get("equal", False), claim.get("usually", False))
        )
    return judged
