"""From the long table to the report's tables: a table says which job, part and metric each cell shows."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from parabit.paper.corpora import PaperCorpus
from parabit.paper.experiments import EXPERIMENTS, JOBS, RADII, SIZES, Run
from parabit.paper.published import published
from parabit.paper.runs import Store

_ROUNDING = 0.005  # the paper gives two decimals: what is nearer counts as equal
METRICS = {"map": "MAP", "ndcg@10": "NDCG@10"}
_KEY = ["corpus", "job", "part", "metric"]


class Key(NamedTuple):
    """Which figure a cell shows."""

    corpus: str
    job: str
    part: str
    metric: str


class Cell(NamedTuple):
    """A figure of ours, the mean over seeds, and the paper's for the same collection."""

    value: float
    spread: float | None  # standard deviation over seeds; None with one seed
    seeds: int
    stale: bool  # made by another version of the code, or with other parameters
    paper: float | None  # also where a stand-in cannot be compared with it
    standing: str  # above, equal, below, or empty
    command: str


class Row(NamedTuple):
    """A row of a table; a cell is None if there is no such run."""

    labels: tuple[str, ...]
    cells: tuple[Cell | None, ...]
    ours: bool = False  # parabit's own, not in the paper


class Table(NamedTuple):
    """A table of the report: the cells of a row are those of all groups, in order."""

    name: str
    title: str
    caption: str
    heads: tuple[str, ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]


class Figures:
    """The long table with the paper's figures beside ours.

    Example:
        >>> from parabit.paper.corpora import paper_corpora
        >>> Figures(Path("nowhere"), paper_corpora([])).get("20newsgroups", "tf-idf", "vectors", "map") is None
        True
    """

    def __init__(self, folder: Path, corpora: Sequence[PaperCorpus], quick: bool = False) -> None:
        self.corpora, self.quick, store = list(corpora), quick, Store(folder)
        lines = [line for line in store.finished().values() if line["quick"] == quick]
        known = {corpus.name: corpus for corpus in self.corpora}
        lines = [line for line in lines if line["corpus"] in known and line["job"] in JOBS]
        for line in lines:
            run = Run(JOBS[line["job"]], known[line["corpus"]], line["seed"], quick)
            line["stale"] = not store.is_current(run, line)
        self.runs = lines
        self._cells = self._aggregate(store, known) if lines else {}

    def _aggregate(self, store: Store, known: dict[str, PaperCorpus]) -> dict[Key, Cell]:
        rows = pl.read_ndjson(store.results, infer_schema_length=None)
        runs = pl.DataFrame(self.runs).select(run="id", stale="stale")
        theirs = pl.DataFrame(list(published()), orient="row", infer_schema_length=None)
        theirs.columns = ["table", "collection", *_KEY[1:], "paper"]
        named = pl.DataFrame(
            [(c.name, c.collection, not c.stand_in and c.group != "beyond") for c in known.values()],
            schema=["corpus", "collection", "same"],
            orient="row",
        )
        # A run that was repeated left its old rows in the file, with the same or another id.
        rows = rows.join(runs, on="run").unique(["run", *_KEY, "seed"], keep="last")
        table = (
            rows.group_by(_KEY)
            .agg(pl.col("value").mean(), pl.col("value").std().alias("spread"), pl.len().alias("n"), pl.any("stale"))
            .join(named, on="corpus")
            .join(theirs, on=["collection", *_KEY[1:]], how="left")
        )
        return {Key(*(row[name] for name in _KEY)): self._cell(row) for row in table.iter_rows(named=True)}

    def _cell(self, row: dict[str, object]) -> Cell:
        value, paper = float(str(row["value"])), row["paper"]
        standing = ""
        if paper is not None and row["same"]:
            difference = value - float(str(paper))
            near = abs(difference) < _ROUNDING
            standing = "equal" if near else "above" if difference > 0 else "below"
        spread = None if row["spread"] is None else float(str(row["spread"]))
        what = next(name for name, experiment in EXPERIMENTS.items() if row["job"] in experiment.jobs)
        command = f"parabit reproduce {what} --corpus {row['corpus']} --job {row['job']}{' --quick' * self.quick}"
        shown = None if paper is None else float(str(paper))
        return Cell(value, spread, int(str(row["n"])), bool(row["stale"]), shown, standing, command)

    def get(self, corpus: str, job: str, part: str, metric: str) -> Cell | None:
        """A cell, or None if there is no such run."""
        return self._cells.get(Key(corpus, job, part, metric))

    def value(self, corpus: str, job: str, part: str = "codes", metric: str = "map") -> float | None:
        """The value of a cell."""
        cell = self.get(corpus, job, part, metric)
        return None if cell is None else cell.value

    def compared(self, corpus: str) -> dict[str, int]:
        """How the distinct figures of a collection of the paper stand beside the paper's: each is counted once."""
        standings = [cell.standing for key, cell in self._cells.items() if key.corpus == corpus]
        return {standing: standings.count(standing) for standing in ("above", "equal", "below")}

    def below(self, corpus: str) -> list[tuple[Key, Cell]]:
        """The figures that are below the paper's."""
        return [(key, cell) for key, cell in self._cells.items() if key.corpus == corpus and cell.standing == "below"]


def tables(figures: Figures) -> list[Table]:
    """All tables of the report that have a figure."""
    shown = {line["corpus"] for line in figures.runs}
    paper = [corpus for corpus in figures.corpora if corpus.group in ("paper", "headers") and corpus.name in shown]
    made = [_table_1(figures, paper), _table_2(figures, paper), _table_3(figures, paper), _table_4(figures, paper)]
    own = [corpus for corpus in paper if corpus.group == "paper"]
    made += [_peers(figures, own), _hashing(figures, own), _variants(figures, own)]
    return [table for table in made if any(cell for row in table.rows for cell in row.cells)]


def _table(
    figures: Figures,
    name: str,
    title: str,
    caption: str,
    heads: Sequence[str],
    lines: Iterable[tuple[tuple[str, ...], str, str]],
    corpora: Sequence[PaperCorpus],
    metrics: dict[str, str] = METRICS,
) -> Table:
    """A table with a column per collection and metric; lines are labels, job and part."""
    keys = [(corpus.name, metric) for corpus in corpora for metric in metrics]
    rows = [
        Row(labels, tuple(figures.get(corpus, job, part, metric) for corpus, metric in keys), _is_ours(job))
        for labels, job, part in lines
    ]
    groups = tuple((_title(corpus), tuple(metrics.values())) for corpus in corpora)
    rows = [row for row in rows if any(row.cells)]
    return Table(name, title, caption, tuple(heads), groups, tuple(rows))


def _is_ours(job: str) -> bool:
    return job.startswith("closed-form")


def _title(corpus: PaperCorpus) -> str:
    return f"{corpus.title} (stands in for {corpus.collection})" if corpus.stand_in else corpus.title


def _table_1(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = []
    for size in SIZES:
        for kind in ("PV-DBOW", "Binary PV-DBOW"):
            name, part = kind.lower().replace(" ", "-"), "codes" if kind.startswith("Binary") else "vectors"
            for bigrams in ("words", "bigrams"):
                said = "yes" if bigrams == "bigrams" else "no"
                lines.append(((str(size), kind, said), f"{name}-{size}-{bigrams}", part))
        lines.append(((str(size), "PV-DM", "–"), f"pv-dm-{size}", "vectors"))
        lines.append(((str(size), "Binary PV-DM", "–"), f"binary-pv-dm-{size}", "codes"))
        lines.append(((str(size), "closed form, codes", "no"), f"closed-form-{size}", "codes"))
        lines.append(((str(size), "closed form, floats", "no"), f"closed-form-{size}", "vectors"))
    caption = "Test documents query each other, by cosine for real-valued vectors and Hamming distance for codes."
    return _table(figures, "table1", "Table 1", caption, ("Size", "Model", "Bigrams"), lines, corpora)


def _table_2(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = [
        (("Random hyperplanes on PV-DBOW",), "pv-dbow-32-bigrams", "hyperplanes"),
        (("Iterative quantization of PV-DBOW",), "pv-dbow-32-bigrams", "itq"),
        (("Binary PV-DBOW, as in Table 1",), "binary-pv-dbow-32-bigrams", "codes"),
        (("closed form",), "closed-form-32", "codes"),
    ]
    caption = "32-bit codes made of 32-dimensional PV-DBOW vectors with bigrams by a separate algorithm."
    return _table(figures, "table2", "Table 2", caption, ("Codes of 32 bits",), lines, corpora)


def _table_3(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    wikipedia = [corpus for corpus in corpora if corpus.collection == "English Wikipedia"]
    targets = [corpus for corpus in corpora if corpus.group == "paper" and corpus not in wikipedia]
    rows = []
    papers = {(p.collection, p.metric): p.value for p in published() if p.table == "table3"}
    for target in targets:
        for label, transfer, own in (
            ("Binary PV-DBOW, bigrams", "transfer", "binary-pv-dbow-128-bigrams"),
            ("closed form", "closed-form-transfer", "closed-form-128"),
        ):
            cells: list[Cell | None] = []
            for corpus in wikipedia:
                for metric in METRICS:
                    cell = figures.get(corpus.name, transfer, target.name, metric)
                    # Not compared: the paper trained on all of Wikipedia.
                    paper = papers[target.collection, metric] if transfer == "transfer" else None
                    cells.append(cell and cell._replace(paper=paper, standing=""))
            cells += [figures.get(target.name, own, "codes", metric) for metric in METRICS]
            rows.append(Row((_title(target), label), tuple(cells), _is_ours(transfer)))
    groups = [(f"Trained on {corpus.title}", tuple(METRICS.values())) for corpus in wikipedia]
    groups.append(("Trained on its own documents", tuple(METRICS.values())))
    caption = "128-bit codes of test documents by a model that was trained on another collection."
    return Table("table3", "Table 3", caption, ("Test documents", "Model"), tuple(groups), tuple(rows))


def _table_4(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = []
    for bits, radii in RADII.items():
        for radius in radii:
            part = f"{bits} bits, radius {radius}"
            for label, job in (
                ("A: Real-Binary PV-DBOW", f"real-binary-{bits}"),
                ("B: Binary PV-DBOW and PV-DBOW", "separate"),
                ("closed form, code and its floats", f"closed-form-{bits}"),
            ):
                lines.append(((str(bits), str(radius), label), job, part))
    metrics = {"ndcg@10": "NDCG@10", "strict_ndcg@10": "strict", "retrieved": "retrieved"}
    caption = (
        "Codes select the documents within a Hamming radius of the query, real-valued vectors rank them: 300 numbers, "
        "for the closed form as many as bits. NDCG@10 is that of the list alone, over queries that retrieved anything; "
        "strict counts what was not retrieved as lost; retrieved is the mean number of documents. The paper does not "
        "say which it used."
    )
    return _table(figures, "table4", "Table 4", caption, ("Bits", "Radius", "Model"), lines, corpora, metrics)


def _codes(size: int) -> list[tuple[tuple[str, ...], str, str]]:
    """The methods that give codes of a size: what each is called, its job, and the part of it."""
    return [
        ((f"closed form, {size} bits",), f"closed-form-{size}", "codes"),
        ((f"Binary PV-DBOW, {size} bits",), f"binary-pv-dbow-{size}-words", "codes"),
        ((f"semantic hashing autoencoder, {size} bits",), f"semantic-hashing-{size}", "codes"),
        ((f"LSA + iterative quantization, {size} bits",), f"lsa-{size}", "itq"),
    ]


def _peers(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = []
    for size in SIZES:
        lines += [
            *_codes(size),
            ((f"LSA + random hyperplanes, {size} bits",), f"lsa-{size}", "hyperplanes"),
            ((f"closed form, {size} floats",), f"closed-form-{size}", "vectors"),
            ((f"LSA, {size} floats",), f"lsa-{size}", "vectors"),
            ((f"gensim Doc2Vec, {size} floats",), f"doc2vec-{size}", "vectors"),
        ]
    lines += [(("TF-IDF, cosine",), "tf-idf", "vectors"), (("BM25",), "bm25", "vectors")]
    lines.append((("all-MiniLM-L6-v2, 384 floats, pretrained",), "sentences", "vectors"))
    caption = "Not in the paper: the same words and documents for all, except MiniLM, which reads the texts themselves."
    return _table(figures, "peers", "Beside the paper: peers", caption, ("Method",), lines, corpora)


def _hashing(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = [line for size in SIZES for line in _codes(size)]
    caption = (
        "Test documents (2,000 of them if there are more) query the training documents: precision of the first 100."
    )
    metric = {"training_precision@100": "P@100"}
    title = "Beside the paper: the protocol of the hashing papers"
    return _table(figures, "hashing", title, caption, ("Method",), lines, corpora, metric)


def _variants(figures: Figures, corpora: Sequence[PaperCorpus]) -> Table:
    lines = [(("Binary PV-DBOW", "rounding, the paper's choice"), "binary-pv-dbow-128-words", "codes")]
    methods = ("noise", "straight-through", "straight-through-sigmoid", "annealed")
    lines += [(("Binary PV-DBOW", method), f"binarization-{method}", "codes") for method in methods]
    lines.append((("Binary PV-DM", "one word before, the paper's choice"), "binary-pv-dm-128", "codes"))
    lines.append((("Binary PV-DM", "one word before and one after"), "window-1-two-sided", "codes"))
    lines.append((("Binary PV-DM", "three words before"), "window-3", "codes"))
    caption = "What the paper says that it tried without giving figures; 128 bits, words."
    first = [corpus for corpus in corpora if corpus.name == "20newsgroups"]
    return _table(figures, "variants", "Binarizations and contexts", caption, ("Model", "Variant"), lines, first)
