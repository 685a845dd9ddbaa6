"""From the long table to the report's tables: a table says which corpus, job and part each of its cells shows."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from parabit.paper.corpora import PaperCorpus
from parabit.paper.experiments import EXPERIMENTS, JOBS, RADII, SIZES, Run
from parabit.paper.published import TRANSFER, published
from parabit.paper.runs import Store

_ROUNDING = 0.005  # the paper gives two decimals: what is nearer counts as equal
METRICS = {"map": "MAP", "ndcg@10": "NDCG@10"}
_KEY = ["corpus", "job", "part", "metric"]

Place = tuple[str, str, str]  # corpus, job, part
Line = tuple[tuple[str, ...], str, str]  # labels, job, part


class Cell(NamedTuple):
    """A figure of ours, the mean over seeds, and the paper's for the same collection."""

    value: float
    spread: float | None  # standard deviation over seeds; None with one seed
    seeds: int
    stale: bool  # an older version of the method, or other parameters or data
    paper: float | None  # also where a stand-in cannot be compared with it
    standing: str  # above, equal, below, or empty
    command: str


class Table(NamedTuple):
    """A table of the report; each row has labels, its cells, and whether it is parabit's own."""

    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    groups: list[str]  # the titles of columns, each with all metrics
    metrics: dict[str, str]
    rows: list[tuple[tuple[str, ...], list[Cell | None], bool]]


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
        self._cells = self._aggregate(store.results) if self.runs else {}

    def _aggregate(self, results: Path) -> dict[tuple[str, ...], Cell]:
        rows = pl.read_ndjson(results, infer_schema_length=None)
        runs = pl.DataFrame(self.runs).select(run="id", stale="stale")
        theirs = pl.DataFrame(list(published()), infer_schema_length=None)
        theirs.columns = ["table", "collection", *_KEY[1:], "paper"]
        compared = [corpus.name for corpus in self.corpora if not corpus.stand_in]
        collections = {corpus.name: corpus.collection for corpus in self.corpora}
        difference = pl.col("value") - pl.col("paper")
        standing = (
            pl.when(difference.abs() < _ROUNDING)
            .then(pl.lit("equal"))
            .when(difference > 0)
            .then(pl.lit("above"))
            .otherwise(pl.lit("below"))
        )
        # A run that was repeated left its old rows in the file.
        table = (
            rows.join(runs, on="run")
            .unique(["run", *_KEY, "seed"], keep="last")
            .group_by(_KEY)
            .agg(pl.mean("value"), pl.std("value").alias("spread"), pl.len().alias("seeds"), pl.any("stale"))
            .with_columns(collection=pl.col("corpus").replace_strict(collections))
            .join(theirs, on=["collection", *_KEY[1:]], how="left")
            .with_columns(
                standing=pl.when(pl.col("corpus").is_in(compared), pl.col("paper").is_not_null()).then(standing)
            )
        )
        cells = {}
        for row in table.iter_rows(named=True):
            what = next(name for name, experiment in EXPERIMENTS.items() if row["job"] in experiment.jobs)
            command = f"parabit reproduce {what} --corpus {row['corpus']} --job {row['job']}{' --quick' * self.quick}"
            figures = {name: row[name] for name in ("value", "spread", "seeds", "stale", "paper")}
            cells[tuple(row[name] for name in _KEY)] = Cell(**figures, standing=row["standing"] or "", command=command)
        return cells

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
        found = [(key, cell) for key, cell in self._cells.items() if key[0] == corpus and cell.standing == "below"]
        return sorted((", ".join(key[1:]), cell) for key, cell in found)


def tables(figures: Figures) -> list[Table]:
    """All tables of the report that have a figure."""
    shown = {line["corpus"] for line in figures.runs}
    paper = [corpus for corpus in figures.corpora if corpus.group in ("paper", "headers") and corpus.name in shown]
    own = [corpus for corpus in paper if corpus.group == "paper"]
    first = [corpus for corpus in own if corpus.name == "20newsgroups"]

    def table(
        name: str,
        title: str,
        caption: str,
        heads: Sequence[str],
        lines: Iterable[Line],
        corpora: Sequence[PaperCorpus] = paper,
        metrics: dict[str, str] = METRICS,
    ) -> Table:
        """A table with the same lines for each collection."""
        places = [(labels, [(corpus.name, job, part) for corpus in corpora]) for labels, job, part in lines]
        titles = [_title(corpus) for corpus in corpora]
        return Table(name, title, caption, tuple(heads), titles, metrics, _rows(figures, places, metrics))

    made = [
        table(
            "table1",
            "Table 1",
            "Test documents query each other, by cosine for real-valued vectors and Hamming distance for codes.",
            ("Size", "Model", "Bigrams"),
            _lines_1(),
        ),
        table(
            "table2",
            "Table 2",
            "32-bit codes made of 32-dimensional PV-DBOW vectors with bigrams by a separate algorithm.",
            ("Codes of 32 bits",),
            [
                (("Random hyperplanes on PV-DBOW",), "pv-dbow-32-bigrams", "hyperplanes"),
                (("Iterative quantization of PV-DBOW",), "pv-dbow-32-bigrams", "itq"),
                (("Binary PV-DBOW, as in Table 1",), "binary-pv-dbow-32-bigrams", "codes"),
                (("closed form",), "closed-form-32", "codes"),
            ],
        ),
        _table_3(figures, own),
        table(
            "table4",
            "Table 4",
            "Codes select the documents within a Hamming radius of the query, real-valued vectors rank them: 300 "
            "numbers, for the closed form as many as bits. NDCG@10 is that of the list alone, over queries that "
            "retrieved anything; strict counts what was not retrieved as lost; retrieved is the mean number of "
            "documents, empty the number of queries that retrieved none. The paper does not say which it used.",
            ("Bits", "Radius", "Model"),
            _lines_4(),
            paper,
            {"ndcg@10": "NDCG@10", "strict_ndcg@10": "strict", "retrieved": "retrieved", "empty": "empty"},
        ),
        table(
            "peers",
            "Beside the paper: peers",
            "Not in the paper: the same words and documents for all, except MiniLM, which reads the texts themselves.",
            ("Method",),
            _lines_of_peers(),
            own,
        ),
        table(
            "hashing",
            "Beside the paper: the protocol of the hashing papers",
            "Test documents (2,000 of them if there are more) query the training documents: precision of the first "
            "100.",
            ("Method",),
            [line for size in SIZES for line in _codes(size)],
            own,
            {"training_precision@100": "P@100"},
        ),
        table(
            "variants",
            "Binarizations and contexts",
            "What the paper says that it tried without giving figures; 128 bits, words.",
            ("Model", "Variant"),
            [
                (("Binary PV-DBOW", "rounding, the paper's choice"), "binary-pv-dbow-128-words", "codes"),
                *(
                    (("Binary PV-DBOW", method), f"binarization-{method}", "codes")
                    for method in ("noise", "straight-through", "straight-through-sigmoid", "annealed")
                ),
                (("Binary PV-DM", "one word before, the paper's choice"), "binary-pv-dm-128", "codes"),
                (("Binary PV-DM", "one word before and one after"), "window-1-two-sided", "codes"),
                (("Binary PV-DM", "three words before"), "window-3", "codes"),
            ],
            first,
        ),
    ]
    return [table for table in made if table.rows]


def _rows(
    figures: Figures, places: Iterable[tuple[tuple[str, ...], list[Place]]], metrics: Iterable[str]
) -> list[tuple[tuple[str, ...], list[Cell | None], bool]]:
    """The rows that have a figure."""
    rows = []
    for labels, of_row in places:
        cells = [figures.get(*place, metric) for place in of_row for metric in metrics]
        if any(cells):
            rows.append((labels, cells, of_row[0][1].startswith("closed-form")))
    return rows


def _title(corpus: PaperCorpus) -> str:
    return f"{corpus.title} (stands in for {corpus.collection})" if corpus.stand_in else corpus.title


def _lines_1() -> Iterator[Line]:
    for size in SIZES:
        for kind in ("PV-DBOW", "Binary PV-DBOW"):
            name, part = kind.lower().replace(" ", "-"), "codes" if kind.startswith("Binary") else "vectors"
            for bigrams, shown in (("words", "no"), ("bigrams", "yes")):
                yield (str(size), kind, shown), f"{name}-{size}-{bigrams}", part
        yield (str(size), "PV-DM", "–"), f"pv-dm-{size}", "vectors"
        yield (str(size), "Binary PV-DM", "–"), f"binary-pv-dm-{size}", "codes"
        yield (str(size), "closed form, codes", "no"), f"closed-form-{size}", "codes"
        yield (str(size), "closed form, floats", "no"), f"closed-form-{size}", "vectors"


def _table_3(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    wikipedia = [corpus for corpus in corpora if corpus.collection == "English Wikipedia"]
    places: list[tuple[tuple[str, ...], list[Place]]] = []
    for target in (corpus for corpus in corpora if corpus not in wikipedia):
        for label, transfer, own in (
            ("Binary PV-DBOW, bigrams", "transfer", "binary-pv-dbow-128-bigrams"),
            ("closed form", "closed-form-transfer", "closed-form-128"),
        ):
            there = [(corpus.name, transfer, target.name) for corpus in wikipedia]
            places.append(((_title(target), label), [*there, (target.name, own, "codes")]))
    rows = _rows(figures, places, METRICS)
    for labels, cells, ours in rows:
        shown = {} if ours else next((p for name, p in TRANSFER.items() if name in labels[0]), {})
        for number, metric in enumerate(METRICS) if wikipedia else ():
            cells[number] = cells[number] and cells[number]._replace(paper=shown.get(metric))  # type: ignore[union-attr]
    groups = [*(f"Trained on {corpus.title}" for corpus in wikipedia), "Trained on its own documents"]
    caption = "128-bit codes of test documents by a model that was trained on another collection."
    return Table("table3", "Table 3", caption, ("Test documents", "Model"), groups, METRICS, rows)


def _lines_4() -> Iterator[Line]:
    for bits, radii in RADII.items():
        for radius in radii:
            for label, job in (
                ("A: Real-Binary PV-DBOW", f"real-binary-{bits}"),
                ("B: Binary PV-DBOW and PV-DBOW", "separate"),
                ("closed form, code and its floats", f"closed-form-{bits}"),
            ):
                yield (str(bits), str(radius), label), job, f"{bits} bits, radius {radius}"


def _codes(size: int) -> list[Line]:
    """The methods that give codes of a size."""
    return [
        ((f"closed form, {size} bits",), f"closed-form-{size}", "codes"),
        ((f"Binary PV-DBOW, {size} bits",), f"binary-pv-dbow-{size}-words", "codes"),
        ((f"semantic hashing autoencoder, {size} bits",), f"semantic-hashing-{size}", "codes"),
        ((f"LSA + iterative quantization, {size} bits",), f"lsa-{size}", "itq"),
    ]


def _lines_of_peers() -> Iterator[Line]:
    for size in SIZES:
        yield from _codes(size)
        yield (f"LSA + random hyperplanes, {size} bits",), f"lsa-{size}", "hyperplanes"
        yield (f"closed form, {size} floats",), f"closed-form-{size}", "vectors"
        yield (f"LSA, {size} floats",), f"lsa-{size}", "vectors"
        yield (f"gensim Doc2Vec, {size} floats",), f"doc2vec-{size}", "vectors"
    yield ("TF-IDF, cosine",), "tf-idf", "vectors"
    yield ("BM25",), "bm25", "vectors"
    yield ("all-MiniLM-L6-v2, 384 floats, pretrained",), "sentences", "vectors"
