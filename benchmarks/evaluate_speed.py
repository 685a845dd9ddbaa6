"""Seconds of an evaluation where 10,000 documents query each other, beside scikit-learn's metrics and beside a floor.

    python benchmarks/evaluate_speed.py [--documents 10000] [--rounds 3]

Codes of 128 bits and vectors of 128 numbers with one of 20 labels each, and the same codes with labels that overlap by
degrees; all made at random around the centres of 20 topics. An evaluation gives MAP, NDCG@10, precision@100 and the
precision-recall curve, as expected values over ties, on all cores. Its peer calls `average_precision_score` and
`ndcg_score` query by query, for 100 of the queries, and its time is scaled to all; it has no graded average precision,
so that with degrees of relevance it has NDCG alone to do. Its similarities and relevance are made before its clock
starts; ours within it. A ratio is taken within a round.

The floor is what cannot be left out, at the speed of a large copy and of a large product:

    codes    pairs * 16 bytes                        the other document's code read once
    vectors  pairs * (16 bytes + 256 products)       the similarity made, written once and read once
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score

from common import about, keep, options, run, seconds
from parabit.codes import pack
from parabit.evaluation import HammingRanking, Relevance, Scores, cosine_ranking, evaluate
from parabit.parallel import cores

BITS = 128
SAMPLE = 100  # queries of the peer


class Case(NamedTuple):
    """A way to rank and to judge the same documents."""

    similarities: Callable[[slice], NDArray[Any]]
    work: Callable[[], Scores]
    relevance: Relevance

    @property
    def graded(self) -> bool:
        return self.relevance.kind == "overlap"


def cases(documents: int) -> dict[str, Case]:
    """Documents around the centres of their topics."""
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 20, documents)
    vectors = rng.standard_normal((documents, BITS)) + 0.5 * rng.standard_normal((20, BITS))[topics]
    several = [
        {topic, *(20 + rng.integers(0, 80, rng.integers(0, 5))).tolist()}
        for topic in topics.tolist()
    ]
    by_code, by_cosine = HammingRanking(pack(vectors > 0)), cosine_ranking(vectors)
    shared, overlap = Relevance(topics), Relevance(several, "overlap")

    def closeness(block: slice) -> NDArray[Any]:
        return -by_code.distances(block)

    return {
        "codes": Case(closeness, lambda: evaluate(by_code, shared), shared),
        "codes, graded relevance": Case(closeness, lambda: evaluate(by_code, overlap), overlap),
        "vectors": Case(by_cosine.scores, lambda: evaluate(by_cosine, shared), shared),
    }


def without_itself(case: Case, queries: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The similarity and the relevance of all other documents to the first queries."""
    block, documents = slice(0, queries), case.relevance.documents
    others = ~np.eye(queries, documents, dtype=np.bool_)
    rows = case.similarities(block), case.relevance.of(block).toarray()
    similarities, relevance = (row[others].reshape(queries, documents - 1) for row in rows)
    return similarities, relevance


def peer(
    similarities: NDArray[Any], relevance: NDArray[np.float64], graded: bool
) -> tuple[float, float]:
    """The means of scikit-learn's average precision, where it has one, and NDCG@10."""
    precisions, gains = [], []
    for row, judged in zip(similarities, relevance, strict=True):
        if not graded:
            precisions.append(average_precision_score(judged, row))
        gains.append(ndcg_score(judged[None], row[None], k=10))
    return float(np.mean(precisions)) if precisions else np.nan, float(np.mean(gains))


def check() -> None:
    """Both agree on a collection small enough for the peer to score, except in average precision with ties."""
    for name, case in cases(300).items():
        scores, (precision, gain) = case.work(), peer(*without_itself(case, 300), case.graded)
        assert abs(scores.ndcg - gain) < 1e-9
        assert name != "vectors" or abs(scores.map - precision) < 1e-9


def bandwidth() -> float:
    """Bytes a second of a large copy, read and written."""
    source = np.ones(1 << 25)
    target = np.zeros_like(source)
    return 2 * source.nbytes / min(seconds(lambda: np.copyto(target, source)) for _ in range(5))


def product_rate() -> float:
    """Products and additions a second of a large matrix product."""
    matrix = np.ones((2048, 2048))
    return 2 * 2048**3 / min(seconds(lambda: matrix @ matrix) for _ in range(5))


def main() -> None:
    """Run the rounds, print the table, keep the result."""
    parser = options(__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    documents = 500 if given.small else given.documents

    check()
    pairs, bytes_a_second, products = documents**2, bandwidth(), product_rate()
    floors = {
        "codes": pairs * BITS / 8 / bytes_a_second,
        "vectors": pairs * (16 / bytes_a_second + 2 * BITS / products),
    }
    floors["codes, graded relevance"] = floors["codes"]
    rows = {}
    print(
        f"{documents:,} documents query each other, {BITS} bits or numbers, {given.rounds} rounds\n"
    )
    for name, case in cases(documents).items():
        own, theirs = [], []
        sample = without_itself(case, SAMPLE)
        for _ in range(given.rounds):
            own.append(seconds(case.work))
            theirs.append(seconds(partial(peer, *sample, case.graded)) * documents / SAMPLE)
        ratios = [other / one for one, other in zip(own, theirs, strict=True)]
        rows[name] = {
            "seconds": round(median(own), 2),
            "floor_seconds": round(floors[name], 3),
            "scikit_learn_seconds": round(median(theirs), 1),  # scaled
            "ratio": {
                "median": round(median(ratios), 1),
                "least": round(min(ratios), 1),
                "most": round(max(ratios), 1),
            },
        }
        row = rows[name]
        print(
            f"{name:25} {row['seconds']:7.2f} s, at least {row['floor_seconds']:.3f} s; scikit-learn "
            f"{row['scikit_learn_seconds']:7.1f} s, {row['ratio']['median']} times ({row['ratio']['least']} to "
            f"{row['ratio']['most']})"
        )
    keep(
        "evaluate_speed",
        {
            "documents": documents,
            "bits": BITS,
            "queries_of_scikit_learn": SAMPLE,
            "gigabytes_per_second": round(bytes_a_second / 1e9, 1),
            "gigaflop_per_second": round(products / 1e9, 1),
            "evaluations": rows,
            "run": about(
                "numpy",
                "scipy",
                "scikit-learn",
                threads={"parabit": cores(), "scikit-learn": 1},
                repetitions=given.rounds,
            ),
        },
        given.small,
    )


if __name__ == "__main__":
    run(main)
