"""From finished runs to the paper's figures."""

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np

from parabit.paper.jobs import PICTURED, SIZES
from parabit.paper.report import Curve, CurveFigure, Family, PointsFigure
from parabit.paper.tables import Finished

_FEWEST_POINTS = 4  # that t-SNE lays out
_CURVES: tuple[tuple[str, Family, str, str], ...] = (
    ("PV-DBOW, bigrams", "real", "pv-dbow-{size}-bigrams", "vectors"),
    ("PV-DM", "real", "pv-dm-{size}", "vectors"),
    ("Binary PV-DBOW, words", "binary", "binary-pv-dbow-{size}-words", "codes"),
    ("Binary PV-DBOW, bigrams", "binary", "binary-pv-dbow-{size}-bigrams", "codes"),
    ("Binary PV-DM", "binary", "binary-pv-dm-{size}", "codes"),
    ("parabit, default", "binary", "default-{size}", "codes"),
    ("Semantic hashing", "baseline", "semantic-hashing-{size}", "codes"),
)


def precision_recall_figures(finished: Finished) -> list[CurveFigure]:
    """The precision-recall curves of all networks, with semantic hashing run live."""
    figures = []
    for corpus in finished.corpora:
        for size in SIZES:
            wanted = [(label, family, corpus.name, job.format(size=size), part) for label, family, job, part in _CURVES]
            figures += _figure(
                finished,
                f"precision-recall-{corpus.name}-{size}",
                f"{_named(corpus)}, {size}-dimensional codes",
                "Cosine similarity for real-valued codes, Hamming distance for binary ones. Semantic hashing was "
                "trained here, on the 2,000 most frequent words.",
                wanted,
            )
    return figures


def transfer_figures(finished: Finished) -> list[CurveFigure]:
    """The curves of a network trained on Wikipedia beside those of networks trained on each collection."""
    figures = []
    trained = [corpus for corpus in finished.corpora if corpus.collection == "English Wikipedia"]
    for target in finished.corpora:
        if target in trained:
            continue
        wanted: list[tuple[str, Family, str, str, str]] = [
            ("trained on its own documents", "binary", target.name, PICTURED, "codes"),
        ]
        wanted += [
            (f"trained on {corpus.title}", "baseline", corpus.name, "transfer", target.name) for corpus in trained
        ]
        figures += _figure(
            finished,
            f"transfer-{target.name}",
            f"{_named(target)}: transfer",
            "128-bit Binary PV-DBOW with bigrams, trained on the collection's own documents and on other text.",
            wanted,
        )
    return figures


def real_binary_figures(finished: Finished) -> list[CurveFigure]:
    """The code and the real vector of Real-Binary PV-DBOW, beside a PV-DBOW of the same size."""
    figures = []
    for corpus in finished.corpora:
        wanted: list[tuple[str, Family, str, str, str]] = [
            ("PV-DBOW, 300 dimensions", "baseline", corpus.name, "separate", "vectors"),
            ("Real-Binary PV-DBOW, 300 dimensions", "real", corpus.name, "real-binary-28", "vectors"),
            ("Real-Binary PV-DBOW, 28 bits", "binary", corpus.name, "real-binary-28", "codes"),
        ]
        figures += _figure(
            finished,
            f"real-binary-{corpus.name}",
            f"{_named(corpus)}: Real-Binary PV-DBOW",
            "What one network with bigrams learns as a 28-bit code and as a 300-dimensional vector.",
            wanted,
        )
    return figures


def picture_figures(finished: Finished) -> list[PointsFigure]:
    """t-SNE pictures of 128-bit codes by Hamming distance."""
    from parabit.index.map import embed_codes

    figures = []
    for corpus in finished.corpora:
        for picture in finished.scores(corpus.name, PICTURED, "picture")[:1]:
            if len(picture["labels"]) < _FEWEST_POINTS:
                continue
            codes = np.frombuffer(base64.b64decode(picture["codes"]), dtype=np.uint8).reshape(-1, picture["bytes"])
            points = embed_codes(codes)
            figures.append(
                PointsFigure(
                    f"tsne-{corpus.name}",
                    f"{_named(corpus)}: 128-bit codes",
                    "t-SNE of codes that Binary PV-DBOW with bigrams inferred for test documents, by Hamming distance.",
                    tuple(points[:, 0].round(3).tolist()),
                    tuple(points[:, 1].round(3).tolist()),
                    tuple(picture["labels"]),
                )
            )
    return figures


def _figure(
    finished: Finished,
    name: str,
    title: str,
    caption: str,
    wanted: Iterable[tuple[str, Family, str, str, str]],
) -> list[CurveFigure]:
    """A figure of the curves that there are, if there is one."""
    curves = []
    for label, family, corpus, job, part in wanted:
        scores = finished.scores(corpus, job, part)
        if scores:
            curves.append(Curve(label, family, _mean(scores, "recall"), _mean(scores, "precision")))
    return [CurveFigure(name, title, caption, tuple(curves))] if curves else []


def _mean(scores: Iterable[Any], name: str) -> tuple[float, ...]:
    """Over seeds, after each number of documents retrieved."""
    return tuple(np.mean([score[name] for score in scores], axis=0).round(5).tolist())


def _named(corpus: Any) -> str:
    return corpus.title if corpus.stands_for is None else f"{corpus.title} (stands in for {corpus.stands_for})"
