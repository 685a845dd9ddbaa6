"""From finished runs to the paper's tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, NamedTuple

from parabit.paper.corpora import PaperCorpus
from parabit.paper.published import COLLECTIONS, TABLE_1, TABLE_2, TABLE_3, TABLE_4
from parabit.paper.report import Cell, Group, Row, Table

METRICS = {"MAP": "map", "NDCG@10": "ndcg@10"}
_WIKIPEDIA = COLLECTIONS[2]


class Finished(NamedTuple):
    """The results of finished runs, by collection and job; one for each seed."""

    corpora: Sequence[PaperCorpus]
    results: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]

    def scores(self, corpus: str, job: str, part: str) -> list[Mapping[str, Any]]:
        """The scores of a part of a job's results, of each seed."""
        return [result[part] for result in self.results.get((corpus, job), ()) if part in result]

    def cell(
        self,
        table: str,
        corpus: str,
        job: str,
        part: str,
        metric: str,
        paper: float | None = None,
        note: str = "",
        also: str = "",
    ) -> Cell:
        """The mean over seeds, beside the paper's figure; `also` is another collection that its run needs."""
        values = [scores[metric] for scores in self.scores(corpus, job, part) if metric in scores]
        return Cell(
            paper=paper,
            mean=round(fmean(values), 4) if values else None,
            spread=round(stdev(values), 4) if len(values) > 1 else None,
            seeds=len(values),
            note=note,
            command=f"parabit reproduce {table} --corpus {corpus}{f' --corpus {also}' if also else ''} --job {job}",
        )


def table_1(finished: Finished) -> Table:
    """Table 1: all networks."""
    return _networks(finished, "table1", "Table 1. Information retrieval results", "")


def table_1_headers(finished: Finished) -> Table:
    """Table 1 with the headers of posts kept."""
    about = (
        " The paper does not say whether posts have their headers; the size of its vocabulary says that they have. A "
        "header names the newsgroup, and brings names, hosts and numbers that occur in few posts."
    )
    return _networks(finished, "headers", "Table 1 with headers kept", about)


def _networks(finished: Finished, name: str, title: str, about: str) -> Table:
    rows = []
    for (model, size, bigrams), published in TABLE_1.items():
        job = _job(model, size, bigrams)
        cells = [
            finished.cell(name, corpus.name, job, _part(model), metric, published[_column(corpus)][place])
            for corpus in finished.corpora
            for place, metric in enumerate(METRICS.values())
        ]
        rows.append(Row((str(size), model, "yes" if bigrams else "no"), tuple(cells)))
    return _told(
        Table(
            name,
            title,
            "Trained on the training documents; test documents query each other. Binary codes are ranked by Hamming "
            f"distance, real-valued ones by cosine.{about}",
            ("Code size", "Model", "With bigrams"),
            groups(finished.corpora, tuple(METRICS)),
            tuple(rows),
            (),
        ),
        "With bigrams, seven in ten of the features of 20 Newsgroups occur once. Such a feature soon knows its "
        "document's code by heart and holds it where it is; slower words helped and did not make up for it. For the "
        "real-valued networks more rounds of inference raise NDCG@10 and lower MAP by about as much.",
    )


def table_2(finished: Finished) -> Table:
    """Table 2: separate hashing of real-valued vectors."""
    job = "pv-dbow-32-bigrams"
    rows = [
        Row(
            (method,),
            tuple(
                finished.cell("table2", corpus.name, job, part, metric, TABLE_2[method][_column(corpus)][place])
                for corpus in finished.corpora
                for place, metric in enumerate(METRICS.values())
            ),
        )
        for method, part in zip(TABLE_2, ("hyperplanes", "itq"), strict=True)
    ]
    rows.append(
        Row(
            ("Binary PV-DBOW (as in Table 1)",),
            tuple(
                finished.cell(
                    "table2",
                    corpus.name,
                    f"binary-{job}",
                    "codes",
                    metric,
                    TABLE_1["Binary PV-DBOW", 32, True][_column(corpus)][place],
                )
                for corpus in finished.corpora
                for place, metric in enumerate(METRICS.values())
            ),
        )
    )
    return _told(
        Table(
            "table2",
            "Table 2. 32-bit codes made by a separate hashing algorithm",
            "32-dimensional PV-DBOW vectors, trained with bigrams, made into codes afterwards; below them codes that "
            "the network learned itself.",
            ("Hashing algorithm",),
            groups(finished.corpora, tuple(METRICS)),
            tuple(rows),
            (),
        ),
        "The codes inherit what the vectors have, see Table 1.",
    )


def table_3(finished: Finished) -> Table:
    """Table 3: a network trained on Wikipedia, asked about other collections."""
    trained = [corpus for corpus in finished.corpora if corpus.collection == _WIKIPEDIA]
    targets = [corpus for corpus in finished.corpora if corpus.collection != _WIKIPEDIA]
    rows = []
    for target in targets:
        transferred, own = TABLE_3[target.collection], TABLE_1["Binary PV-DBOW", 128, True][_column(target)]
        cells = [
            finished.cell(
                "table3",
                corpus.name,
                "transfer",
                target.name,
                metric,
                *_beside(target, transferred[place], compared=corpus.stands_for is None),
                also=target.name,
            )
            for corpus in trained
            for place, metric in enumerate(METRICS.values())
        ]
        cells += [
            finished.cell(
                "table3", target.name, "binary-pv-dbow-128-bigrams", "codes", metric, *_beside(target, own[place])
            )
            for place, metric in enumerate(METRICS.values())
        ]
        name = target.title if target.stands_for is None else f"{target.title} (stands in for {target.stands_for})"
        rows.append(Row((name,), tuple(cells)))
    groups = [Group(f"Trained on {corpus.title}", corpus.stands_for, tuple(METRICS)) for corpus in trained]
    own_group = Group("Trained on its own documents", None, tuple(METRICS))
    return _told(
        Table(
            "table3",
            "Table 3. Codes of a network trained on an unrelated corpus",
            "128-bit Binary PV-DBOW with bigrams, trained on Wikipedia text and asked about test documents of other "
            "collections without any training there; beside it the same network trained on each collection's own "
            "documents.",
            ("Test documents",),
            (*groups, own_group),
            tuple(rows),
            (),
        ),
        "",
    )


_FILTERED = (
    "NDCG@10 when binary codes select the documents within a Hamming radius of the query and 300-dimensional real "
    "vectors rank them. A: both from one Real-Binary PV-DBOW; B: codes of Binary PV-DBOW, vectors of PV-DBOW. All with "
    "bigrams. "
)


def table_4(finished: Finished) -> Table:
    """Table 4: codes select, real vectors rank."""
    rows = []
    for (bits, radius), published in TABLE_4.items():
        cells = []
        for corpus in finished.corpora:
            for job, figure in zip((f"real-binary-{bits}", "separate"), published[_column(corpus)], strict=True):
                cells.append(_filtered(finished, corpus, job, bits, radius, "ndcg@10", figure))
        rows.append(Row((str(bits), str(radius)), tuple(cells)))
    table = Table(
        "table4",
        "Table 4. Retrieval with Real-Binary PV-DBOW",
        f"{_FILTERED}The paper does not say what the best order is where fewer than ten are retrieved. Here it is that "
        "of the retrieved documents, so that the list alone is judged; queries that retrieve nothing are left out. The "
        "next table judges what is missing too.",
        ("Code size", "Radius"),
        groups(finished.corpora, ("A", "B")),
        tuple(rows),
        (),
    )
    return _told(table, "With bigrams the short codes are weaker than with words, see Table 1.")


def table_4_strict(finished: Finished) -> Table:
    """Table 4 with stricter figures, which the paper does not have."""
    metrics = {"cut": "cut_ndcg@10", "strict": "strict_ndcg@10"}
    rows = [
        Row(
            (str(bits), str(radius)),
            tuple(
                _filtered(finished, corpus, job, bits, radius, metric)
                for corpus in finished.corpora
                for metric in metrics.values()
                for job in (f"real-binary-{bits}", "separate")
            ),
        )
        for bits, radius in TABLE_4
    ]
    return Table(
        "table4-strict",
        "Table 4, judged more strictly",
        f"{_FILTERED}Cut: the best order is that of the whole collection, cut after as many documents as were "
        "retrieved. Strict: it is that of the whole collection, and a query that retrieves nothing counts as 0: what "
        "someone sees who wants ten documents.",
        ("Code size", "Radius"),
        groups(finished.corpora, tuple(f"{variant}, {metric}" for metric in metrics for variant in "AB"), False),
        tuple(rows),
        (),
    )


def _filtered(
    finished: Finished,
    corpus: PaperCorpus,
    job: str,
    bits: int,
    radius: int,
    metric: str,
    paper: float | None = None,
) -> Cell:
    """A cell of Table 4, with how much was retrieved."""
    part = f"radius-{bits}-{radius}"
    found = finished.scores(corpus.name, job, part)
    note = ""
    if found:
        retrieved, empty = (fmean(scores[name] for scores in found) for name in ("retrieved", "empty"))
        note = f"{retrieved:.0f} documents retrieved, {empty:.0f} queries retrieved nothing"
    return finished.cell("table4", corpus.name, job, part, metric, paper, note)


def _told(table: Table, why: str) -> Table:
    """The table with sentences on where it is below the paper, and why."""
    below = [
        f"{group.title}, {_described(table, row)}, {metric}: {cell.mean:.3f} against {cell.paper:.2f}"
        for row, group, metric, cell in table.cells()
        if not group.stands_for and cell.standing == "below"
    ]
    if not below:
        return table
    sentences = (f"Below the paper's figure: {'; '.join(below)}.", why)
    return replace(table, below=tuple(sentence for sentence in sentences if sentence))


def _beside(target: PaperCorpus, figure: float, compared: bool = True) -> tuple[float | None, str]:
    """The paper's figure, and a note.

    Here a row is a collection: in a column that is compared with the paper, a stand-in has the figure as a note alone.
    """
    if target.stands_for is None or not compared:
        return figure, ""
    return None, f"On {target.stands_for} the paper has {figure:.2f}."


def _described(table: Table, row: Row) -> str:
    """What a row is about, in words."""
    answers = {"yes": "with bigrams", "no": "without bigrams"}
    parts = []
    for head, label in zip(table.label_heads, row.labels, strict=True):
        parts.append(f"{head.lower()} {label}" if label.isdigit() else answers.get(label, label))
    return ", ".join(parts)


def groups(corpora: Iterable[PaperCorpus], metrics: tuple[str, ...], compared: bool = True) -> tuple[Group, ...]:
    """The collections of a table; where it is not compared with the paper, none stands for another."""
    return tuple(Group(corpus.title, corpus.stands_for if compared else None, metrics) for corpus in corpora)


def _column(corpus: PaperCorpus) -> int:
    return COLLECTIONS.index(corpus.collection)


def _part(model: str) -> str:
    return "codes" if model.startswith("Binary") else "vectors"


def _job(model: str, size: int, bigrams: bool) -> str:
    """The job of a network of Table 1.

    Example:
        >>> _job("Binary PV-DBOW", 32, True), _job("PV-DM", 128, False)
        ('binary-pv-dbow-32-bigrams', 'pv-dm-128')
    """
    name = f"{model.lower().replace(' ', '-')}-{size}"
    if name.endswith(f"dm-{size}"):
        return name
    return f"{name}-{'bigrams' if bigrams else 'words'}"
