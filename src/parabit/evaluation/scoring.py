"""All metrics of a ranking over all queries, block by block: the matrix of all distances is never in memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from parabit.errors import EvaluationError
from parabit.evaluation import metrics
from parabit.evaluation.metrics import Curve, Ties, highest_discounted_gain, mean
from parabit.evaluation.rankings import TOLERANCE, HammingRanking, Ranking, cosine_ranking
from parabit.evaluation.relevance import Labels, Relevance
from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent

# Query-document pairs at a time: about 10 MB with everything computed from them.
_BLOCK = 1 << 17

Searched = tuple[Any, Labels]  # a collection's codes or vectors, and its labels


class Scores(NamedTuple):
    """Means over queries; for ties, expected values."""

    map: float  # mean average precision
    ndcg: float  # at k
    precision: float  # of the first `depth` documents
    curve: Curve
    queries: int  # with a relevant document: the means are over these
    skipped: int  # queries without any relevant document


class FilteredScores(NamedTuple):
    """The scores of ranking by vectors inside a Hamming radius of the query."""

    ndcg: float  # of the list alone: the best order is that of the retrieved documents; 0 if none of them is relevant
    strict_ndcg: (
        float  # what was not retrieved is lost: the best order is that of the whole collection
    )
    retrieved: float  # documents, on average
    queries: int  # that had something to find and retrieved something: those of `ndcg`
    empty: int  # queries that had something to find and retrieved nothing; 0 in `strict_ndcg`
    skipped: int  # queries without any relevant document


def evaluate(
    ranking: Ranking, relevance: Relevance, k: int = 10, depth: int = 100, report: Report = silent
) -> Scores:
    """MAP, NDCG@k, precision@depth and the precision-recall curve of a ranking.

    The curve has points after 1, 2, 3, … documents, then at growing distances up to all.
    """
    _check(ranking, relevance, k, depth)
    points = np.geomspace(1, ranking.documents - ranking.itself, 60)
    ranks = np.unique(points.round().astype(np.int64))

    def score(block: slice) -> tuple[NDArray[np.float64], ...]:
        gains = relevance.of(block)
        has_answer = np.diff(gains.indptr) > 0
        kept: Any = (part[has_answer] for part in ranking.ties(block, gains))
        ties, gains = Ties(*kept), gains[has_answer]
        gained = metrics.found(ties, np.append(ranks, depth))
        return (
            metrics.average_precision(ties),
            metrics.discounted_gain(ties, k) / highest_discounted_gain(gains, k),
            gained[:, -1] / depth,
            gained[:, :-1] / metrics.total(ties.gains)[:, None],
            gained[:, :-1] / ranks,
        )

    precisions, ndcgs, firsts, recall, precision = _over_blocks(score, ranking, report)
    return Scores(
        mean(precisions),
        mean(ndcgs),
        mean(firsts),
        Curve(tuple(ranks.tolist()), tuple(map(mean, recall.T)), tuple(map(mean, precision.T))),
        len(precisions),
        ranking.queries - len(precisions),
    )


def evaluate_codes(
    codes: NDArray[np.uint8],
    labels: Labels,
    k: int = 10,
    relevance: str = "shared",
    searched: Searched | None = None,
) -> Scores:
    """The metrics of codes by Hamming distance, where documents query each other, or a `searched` collection.

    `relevance` is one of `parabit.choices.RELEVANCE`.

    Example:
        >>> codes = np.array([[0b0000], [0b0001], [0b1111], [0b1110]], dtype=np.uint8)
        >>> scores = evaluate_codes(codes, ["space", "space", "hockey", "hockey"])
        >>> scores.map, scores.ndcg, scores.queries
        (1.0, 1.0, 4)
    """
    others, other_labels = searched or (None, None)
    return evaluate(HammingRanking(codes, others), Relevance(labels, relevance, other_labels), k)


def evaluate_vectors(
    vectors: Any,
    labels: Labels,
    k: int = 10,
    relevance: str = "shared",
    searched: Searched | None = None,
) -> Scores:
    """The metrics of vectors, dense or sparse, by cosine; documents query each other, or a `searched` collection.

    A zero vector has similarity 0 to all.
    """
    others, other_labels = searched or (None, None)
    return evaluate(cosine_ranking(vectors, others), Relevance(labels, relevance, other_labels), k)


def evaluate_filtered(
    codes: NDArray[np.uint8],
    vectors: Any,
    labels: Labels,
    radius: int,
    k: int = 10,
    relevance: str = "shared",
) -> FilteredScores:
    """NDCG@k when codes select the documents within a Hamming radius of the query and cosines of vectors rank them.

    Documents query each other. The paper does not say what the best order is when fewer than k are retrieved; so there
    are two figures, see `FilteredScores`.

    Example:
        >>> codes = np.array([[0], [1], [1], [255]], dtype=np.uint8)
        >>> vectors = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.2]])
        >>> scores = evaluate_filtered(codes, vectors, ["space", "space", "hockey", "space"], radius=1)
        >>> scores.ndcg, round(scores.strict_ndcg, 3), scores.queries, scores.empty, scores.skipped
        (1.0, 0.409, 2, 1, 1)
    """
    by_code, by_vector = HammingRanking(codes), cosine_ranking(vectors)
    if by_code.queries != by_vector.queries:
        problem = f"there are {by_code.queries} codes but {by_vector.queries} vectors"
        raise EvaluationError(problem, hint="give both for each document")
    judged = Relevance(labels, relevance)
    _check(by_code, judged, k)

    def score(block: slice) -> tuple[NDArray[np.float64], ...]:
        # Documents outside the radius are not retrieved, and none finds itself.
        similarities = np.where(
            by_code.distances(block) <= radius, by_vector.scores(block), -np.inf
        )
        rows = np.arange(len(similarities))
        similarities[rows, rows + block.start] = -np.inf
        gains = judged.of(block)
        has_answer = np.diff(gains.indptr) > 0
        similarities, gains = similarities[has_answer], gains[has_answer]
        near = similarities > -np.inf
        inside = gains.copy()  # without the relevance of documents that were not retrieved
        inside.data = (
            inside.data
            * near[np.repeat(np.arange(len(near)), np.diff(gains.indptr)), gains.indices]
        )
        gained = metrics.discounted_gain(metrics.ranked(similarities, inside, TOLERANCE), k)
        of_list = highest_discounted_gain(inside, k)
        ndcgs = np.divide(gained, of_list, out=np.zeros_like(gained), where=of_list > 0)
        return (
            ndcgs,
            gained / highest_discounted_gain(gains, k),
            near.sum(axis=1).astype(np.float64),
        )

    ndcgs, strict, counts = _over_blocks(score, by_code)
    some = counts > 0
    return FilteredScores(
        ndcg=mean(ndcgs[some]) if some.any() else 0.0,
        strict_ndcg=mean(strict),
        retrieved=float(counts.mean()),
        queries=int(some.sum()),
        empty=int((~some).sum()),
        skipped=by_code.queries - len(ndcgs),
    )


def _over_blocks(
    score: Any, ranking: Ranking, report: Report = silent
) -> list[NDArray[np.float64]]:
    """Score queries block by block on all cores."""
    rows, queries = max(1, _BLOCK // ranking.documents), ranking.queries
    blocks = [slice(start, min(start + rows, queries)) for start in range(0, queries, rows)]
    parts = []
    # Every core has a block already; products on several cores each would wait for one another.
    with threadpool_limits(1, user_api="blas"):
        for block, part in zip(blocks, ordered_map(score, blocks), strict=True):
            report(Progress("scoring", block.stop, "queries", block.stop / queries))
            parts.append(part)
    scores = [np.concatenate(part) for part in zip(*parts, strict=True)]
    if not len(scores[0]):
        raise EvaluationError(
            "no two documents share a label, so no query can find another", hint="check the labels"
        )
    return scores


def _check(ranking: Ranking, relevance: Relevance, *depths: int) -> None:
    """Raise unless a ranking can be scored by a relevance, to these depths."""
    if min(depths) < 1:
        raise EvaluationError(
            f"k must be at least 1, found {min(depths)}", hint="the paper uses k=10"
        )
    if ranking.itself != relevance.itself:
        raise EvaluationError(
            "a searched collection needs codes and labels", hint="give both, or neither"
        )
    for what, count, labels in (
        ("documents", ranking.queries, relevance.queries),
        ("documents to search", ranking.documents, relevance.documents),
    ):
        if count != labels:
            raise EvaluationError(
                f"there are {count} {what} but {labels} labels", hint="give one for each document"
            )
    if min(ranking.queries, ranking.documents) < 1 + ranking.itself:
        problem = f"too few: {ranking.queries} queries for {ranking.documents} documents"
        raise EvaluationError(problem, hint="give more documents")
