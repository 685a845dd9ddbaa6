"""The metrics by their definitions, over every order that the ties of a ranking allow: slow, and plain to check."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, permutations, product
from math import log2

import numpy as np
from numpy.typing import NDArray

from parabit.evaluation import FilteredScores, Scores
from parabit.evaluation.metrics import Curve

Metric = Callable[[list[float]], float]


def average_precision(order: list[float]) -> float:
    """The sum over ranks of precision times relevance, divided by all relevance."""
    return sum(precision(order, rank) * gain for rank, gain in enumerate(order, 1)) / sum(order)


def precision(order: list[float], k: int) -> float:
    return sum(order[:k]) / k


def recall(order: list[float], k: int) -> float:
    return sum(order[:k]) / sum(order)


def discounted_gain(order: list[float], k: int) -> float:
    return sum(gain / log2(1 + rank) for rank, gain in enumerate(order[:k], 1))


def ndcg(order: list[float], k: int) -> float:
    return discounted_gain(order, k) / discounted_gain(sorted(order, reverse=True), k)


def all_orders(similarities: Sequence[float], relevance: Sequence[float]) -> list[list[float]]:
    """The relevance of documents in every ranking that leaves none before a more similar one."""
    pairs = sorted(zip(similarities, relevance, strict=True), reverse=True)
    ties = [[gain for _, gain in tie] for _, tie in groupby(pairs, key=lambda pair: pair[0])]
    return [
        [gain for tie in order for gain in tie]
        for order in product(*(permutations(tie) for tie in ties))
    ]


def expected(metric: Metric, similarities: Sequence[float], relevance: Sequence[float]) -> float:
    """The mean of a metric over all orders."""
    return float(np.mean([metric(order) for order in all_orders(similarities, relevance)]))


def expected_scores(
    similarities: NDArray[np.float64],
    relevance: NDArray[np.float64],
    k: int,
    depth: int = 100,
    itself: bool = True,
) -> Scores:
    """Both arrays are (queries, documents); where the queries are the documents, none finds itself."""
    answered = []
    for query, (row, gains) in enumerate(
        zip(similarities.tolist(), relevance.tolist(), strict=True)
    ):
        if itself:
            del row[query], gains[query]
        if any(gains):
            answered.append(all_orders(row, gains))
    ranks = range(1, len(answered[0][0]) + 1)  # all of them, where they are few

    def mean(metric: Metric) -> float:
        return float(np.mean([np.mean([metric(order) for order in orders]) for orders in answered]))

    recalls, precisions = (
        tuple(mean(partial(metric, k=rank)) for rank in ranks) for metric in (recall, precision)
    )
    scores = mean(average_precision), mean(partial(ndcg, k=k)), mean(partial(precision, k=depth))
    curve = Curve(tuple(ranks), recalls, precisions)
    return Scores(*scores, curve, len(answered), len(similarities) - len(answered))


def filtered_slowly(
    bits: NDArray[np.uint8],
    similarities: NDArray[np.float64],
    relevance: NDArray[np.float64],
    radius: int,
    k: int,
) -> FilteredScores:
    """Query by query, over every order inside the ties of what is retrieved."""
    ndcgs, strict, counts, skipped = [], [], [], 0
    for query in range(len(bits)):
        others = [document for document in range(len(bits)) if document != query]
        best = sorted((float(relevance[query, other]) for other in others), reverse=True)
        if not any(best):
            skipped += 1
            continue
        near = [other for other in others if (bits[query] != bits[other]).sum() <= radius]
        orders = all_orders(
            [similarities[query, other] for other in near],
            [relevance[query, other] for other in near],
        )
        gain = float(np.mean([discounted_gain(order, k) for order in orders]))
        counts.append(len(near))
        strict.append(gain / discounted_gain(best, k))
        if near:
            of_list = discounted_gain(
                sorted((relevance[query, other] for other in near), reverse=True), k
            )
            ndcgs.append(gain / of_list if of_list else 0.0)
    return FilteredScores(
        ndcg=float(np.mean(ndcgs)) if ndcgs else 0.0,
        strict_ndcg=float(np.mean(strict)),
        retrieved=float(np.mean(counts)),
        queries=len(ndcgs),
        empty=len(counts) - len(ndcgs),
        skipped=skipped,
    )


def cosines(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Rounded, so that what is tied is equal."""
    lengths = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
    return np.asarray(np.round(a.astype(float) @ b.T / np.maximum(lengths, 1), 9))


def figures(scores: Scores) -> list[float]:
    """All numbers of some scores in a row, to compare with those of others."""
    curve = [*scores.curve.retrieved, *scores.curve.recall, *scores.curve.precision]
    return [scores.map, scores.ndcg, scores.precision, *curve, scores.queries, scores.skipped]
