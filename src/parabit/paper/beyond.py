"""From finished runs to what the paper does not have: the closed form beside its peers."""

from collections.abc import Iterable
from dataclasses import replace

from parabit.paper.corpora import LONGEST
from parabit.paper.jobs import SIZES
from parabit.paper.report import Cell, Group, Row, Table
from parabit.paper.tables import METRICS, Finished, groups

_OURS = "parabit, default"
_DOC2VEC = "gensim Doc2Vec, 128 floats"
_CLOSED_FORM = (
    "parabit's default is the closed form, its own, derived from the likelihood that the paper's networks learn by "
    "gradient descent."
)


def table_peers(finished: Finished) -> Table:
    """Beyond the paper: the closed form beside what a user would try instead."""
    methods: list[tuple[str, str, str]] = []
    for size in SIZES:
        methods += [
            (f"parabit, default, {size} bits", f"default-{size}", "codes"),
            (f"the same with real-valued queries, {size} bits", f"default-{size}", "asymmetric"),
            (f"Binary PV-DBOW, the paper's network, {size} bits", f"binary-pv-dbow-{size}-words", "codes"),
            (f"LSA + iterative quantization, {size} bits", f"lsa-{size}", "itq"),
            (f"LSA + random hyperplanes, {size} bits", f"lsa-{size}", "hyperplanes"),
            (f"Semantic hashing autoencoder, {size} bits", f"semantic-hashing-{size}", "codes"),
            (f"the same with 10,000 words, {size} bits", f"wide-semantic-hashing-{size}", "codes"),
            (f"LSA, {size} floats", f"lsa-{size}", "vectors"),
            (f"gensim Doc2Vec, {size} floats", f"doc2vec-{size}", "vectors"),
        ]
    methods += [("TF-IDF, cosine", "tf-idf", "vectors"), ("BM25", "bm25", "vectors")]
    methods.append(("all-MiniLM-L6-v2, 384 floats, pretrained", "sentences", "vectors"))
    # Not everybody has the pretrained one, and the quick version leaves out what takes longest.
    ran = {job for _, job in finished.results}
    optional = ("sentences", *(f"wide-semantic-hashing-{size}" for size in SIZES))
    methods = [method for method in methods if method[1] in ran or method[1] not in optional]
    metrics = {**METRICS, "P@100": "training_precision@100"}
    rows = []
    for title, job, part in methods:
        cells: list[Cell | None] = []
        for corpus in finished.corpora:
            for metric in metrics.values():
                cell = finished.cell("peers", corpus.name, job, part, metric)
                of_codes = part not in ("vectors", "asymmetric")  # as the protocol is
                cells.append(cell if of_codes or metric != metrics["P@100"] else None)
        rows.append(Row((title,), tuple(cells)))
    return Table(
        "peers",
        "Beyond the paper: the closed form and its peers",
        f"{_CLOSED_FORM} The same words, training and test documents and protocol for all. P@100 is the hashing "
        "literature's protocol: test documents (2,000 of them if there are more) query the training documents, "
        "precision of the first 100.",
        ("Method",),
        groups(finished.corpora, tuple(metrics), compared=False),
        tuple(rows),
        (),
    )


def table_everywhere(finished: Finished) -> Table:
    """The closed form on collections of all kinds."""
    methods = (
        (_OURS, "default-{size}", "codes"),
        (f"{_OURS}, real-valued queries", "default-{size}", "asymmetric"),
        ("LSA + iterative quantization", "lsa-{size}", "itq"),
        (_DOC2VEC, "doc2vec-{size}", "vectors"),
    )
    rows = []
    for corpus in finished.corpora:
        for title, job, part in methods:
            cells = [
                # Gensim's floats are run with the larger size alone: 32 bits are not set beside 32 floats.
                finished.cell("everywhere", corpus.name, job.format(size=size), part, metric)
                if (title, size) != (_DOC2VEC, 32)
                else None
                for size in SIZES
                for metric in METRICS.values()
            ]
            rows.append(Row((corpus.title, title), tuple(cells)))
    table = Table(
        "everywhere",
        "Beyond the paper: the closed form on collections of all kinds",
        f"{_CLOSED_FORM} Codes of 128 and 32 bits, the paper's protocol: test documents query each other. The "
        "collections that the paper does not have are documentation of the installed Python packages, titles alone, "
        f"and the longest {LONGEST:,} articles of the Wikipedia sample.",
        ("Collection", "Method"),
        tuple(Group(f"{size} bits", None, tuple(METRICS)) for size in SIZES),
        tuple(rows),
        (),
    )
    return replace(table, below=tuple(_outdone(table)))


def _outdone(table: Table) -> Iterable[str]:
    """Where a peer is above the closed form, in words."""
    cells = {(row.labels, place): cell for row in table.rows for place, cell in enumerate(row.cells)}
    names = [f"{metric} with {group.title}" for group in table.groups for metric in group.metrics]
    for peer in ("LSA + iterative quantization", _DOC2VEC):
        found = []
        for (labels, place), cell in cells.items():
            ours = cells.get(((labels[0], _OURS), place))
            if labels[1] != peer or not ours or not cell or ours.mean is None or cell.mean is None:
                continue
            if ours.mean < cell.mean:
                found.append(f"{labels[0]}, {names[place]}: {ours.mean:.3f} against {cell.mean:.3f}")
        if found:
            yield f"Below {peer}: {'; '.join(found)}."
