"""Mean average precision and NDCG as expected values over all orders inside a tie.

Codes of 32 bits have 33 distances for thousands of documents, so the order inside a distance would decide the score.
All orders are taken as equally likely, in closed form, after F. McSherry and M. Najork, "Computing information
retrieval performance measures efficiently in the presence of tied scores", ECIR 2008.
"""

from collections.abc import Iterable, Iterator
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parabit.codes import check_codes, hamming
from parabit.errors import EvaluationError

# Query-document pairs at a time: some 10 MB with all that is computed from them.
_BLOCK = 1 << 17

# Cosines no further apart are equal: the same vector at another place in the matrix, or at another length, gives one
# that is some 1e-15 off by rounding alone, while a million different cosines lie some 1e-6 apart.
_TOLERANCE = 1e-12

_ONE_EACH = "give one for each document"


class Scores(NamedTuple):
    map: float  # mean average precision
    ndcg: float  # at the k that was asked for
    queries: int  # that the two are means over
    skipped: int  # queries without any relevant document, left out


class _Ties(NamedTuple):
    """The documents of each query's ranking by ties, best first. Empty ties are allowed, and fill short rows."""

    sizes: NDArray[np.int64]  # (queries, ties) documents
    gains: NDArray[np.float64]  # (queries, ties) sum of their relevance; with binary relevance, the relevant documents


def evaluate_codes(codes: NDArray[np.uint8], labels: ArrayLike, bits: int | None = None, k: int = 10) -> Scores:
    """MAP and NDCG@k when each document queries all others by Hamming distance; those of its label are relevant.

    `bits` is checked against the codes where it is given; it does not change the scores.

    Example:
        >>> codes = np.array([[0b0000], [0b0001], [0b1111], [0b1110]], dtype=np.uint8)
        >>> evaluate_codes(codes, ["space", "space", "hockey", "hockey"])
        Scores(map=1.0, ndcg=1.0, queries=4, skipped=0)
    """
    check_codes(codes, bits)
    classes = _classes(labels, codes)
    distances = 8 * codes.shape[1] + 1

    def blocks() -> Iterator[_Ties]:
        for queries in _blocks(len(codes)):
            # A number for each pair: its query, then its distance, then whether it is relevant.
            relevant = classes[queries, None] == classes  # (block, documents)
            pairs = 2 * hamming(codes[queries], codes) + relevant
            pairs = pairs + 2 * distances * np.arange(len(pairs))[:, None]
            counts = np.bincount(pairs.ravel(), minlength=2 * distances * len(pairs)).reshape(-1, distances, 2)
            counts[:, 0, 1] -= 1  # the query itself
            yield _Ties(counts.sum(axis=2), counts[:, :, 1].astype(np.float64))

    return _score(blocks(), k)


def evaluate_vectors(vectors: NDArray[Any], labels: ArrayLike, k: int = 10) -> Scores:
    """MAP and NDCG@k when each document queries all others by cosine similarity; those of its label are relevant.

    A zero vector has similarity 0 to all.

    Example:
        >>> vectors = np.array([[2.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
        >>> evaluate_vectors(vectors, ["space", "space", "hockey", "hockey"])
        Scores(map=1.0, ndcg=1.0, queries=4, skipped=0)
    """
    unit = _unit(vectors)
    classes = _classes(labels, unit)

    def blocks() -> Iterator[_Ties]:
        for queries in _blocks(len(unit)):
            similarities = unit[queries] @ unit.T  # (block, documents)
            relevant = classes[queries, None] == classes
            # The query itself goes last and counts as not relevant there, which adds nothing to either metric.
            itself = np.arange(len(similarities)), np.arange(queries.start, queries.start + len(similarities))
            similarities[itself], relevant[itself] = -np.inf, False
            yield _ties(similarities, relevant.astype(np.float64), _TOLERANCE)

    return _score(blocks(), k)


def mean_average_precision(similarities: ArrayLike, relevance: ArrayLike) -> float:
    """The mean over queries of the expected average precision, from two arrays (queries, documents).

    A document is relevant where its relevance is above 0; documents of equal similarity are tied. Average precision is
    the mean, over a query's relevant documents, of the share of relevant documents among those ranked up to it. Queries
    without a relevant document are left out.

    Example:
        >>> mean_average_precision([[0.9, 0.5, 0.1]], [[1, 0, 1]])  # (1/1 + 2/3) / 2
        0.8333333333333333
        >>> mean_average_precision([[0.5, 0.5]], [[1, 0]])  # first or second, with the same chance
        0.75
    """
    scores, gains = _answered(similarities, relevance)
    return _mean(_average_precision(_ties(scores, (gains > 0).astype(np.float64))))


def ndcg(similarities: ArrayLike, relevance: ArrayLike, k: int = 10) -> float:
    """The mean over queries of the expected NDCG at k, from two arrays (queries, documents).

    DCG is the sum of relevance / log2(1 + rank) over the first k documents, NDCG its share of the highest DCG that any
    order has (K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002). Relevance
    is binary, or any gain from 0 up; documents of equal similarity are tied. Queries without a relevant document are
    left out.

    Example:
        >>> f"{ndcg([[0.9, 0.5, 0.1]], [[0, 0, 1]], k=3):.3f}"  # 1 / log2(4)
        '0.500'
    """
    scores, gains = _answered(similarities, relevance)
    # No order is better than that by relevance itself.
    return _mean(_dcg(_ties(scores, gains), k) / _dcg(_ties(gains, gains), k))


def _score(blocks: Iterable[_Ties], k: int) -> Scores:
    """Both metrics over all blocks of queries, for binary relevance."""
    precisions: list[NDArray[np.float64]] = []
    ndcgs: list[NDArray[np.float64]] = []
    skipped = 0
    for ties in blocks:
        answered = ties.gains.any(axis=1)
        skipped += int((~answered).sum())
        ties = _Ties(ties.sizes[answered], ties.gains[answered])
        relevant = ties.gains.sum(axis=1, keepdims=True)
        precisions.append(_average_precision(ties))
        ndcgs.append(_dcg(ties, k) / _dcg(_Ties(relevant.astype(np.int64), relevant), k))
    precision, gain = np.concatenate(precisions), np.concatenate(ndcgs)
    if not len(precision):
        raise EvaluationError("no two documents share a label, so no query can find another", hint="check the labels")
    return Scores(_mean(precision), _mean(gain), len(precision), skipped)


def _average_precision(ties: _Ties) -> NDArray[np.float64]:
    """Expected average precision, (queries,), for binary relevance and queries with a relevant document.

    Take a tie of n documents, r of them relevant, after N documents with R relevant. In an order drawn at random, its
    i-th document is relevant with probability r/n. Given that it is, the i - 1 documents before it in the tie are drawn
    from the n - 1 others, r - 1 of them relevant, so that the expected precision there is

        (R + 1 + (i - 1)(r - 1)/(n - 1)) / (N + i).

    Let S = 1/(N + 1) + … + 1/(N + n), a difference of two harmonic numbers. As (i - 1)/(N + i) = 1 - (N + 1)/(N + i),
    the sum over i = 1 … n, each weighted by r/n, is

        r/n · ((R + 1) S + (r - 1)/(n - 1) · (n - (N + 1) S)),

    and the expected average precision is the sum of it over all ties, divided by the number of relevant documents. For
    n = 1 the second term is 0.
    """
    sizes, relevant = ties
    ends, found = sizes.cumsum(axis=1), relevant.cumsum(axis=1)
    starts = ends - sizes
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, ends.max(initial=0) + 1))])
    inverse_ranks = harmonic[ends] - harmonic[starts]  # S
    precisions = (found - relevant + 1) * inverse_ranks
    precisions += (relevant - 1) / np.maximum(sizes - 1, 1) * (sizes - (starts + 1) * inverse_ranks)
    shares = relevant / np.maximum(sizes, 1)
    expected: NDArray[np.float64] = (shares * precisions).sum(axis=1) / found[:, -1]
    return expected


def _dcg(ties: _Ties, k: int) -> NDArray[np.float64]:
    """Expected discounted cumulative gain of the first k documents, (queries,).

    Each place of a tie is expected to gain the mean of the tie.
    """
    if k < 1:
        raise EvaluationError(f"NDCG needs 1 document or more, found k={k}", hint="the paper takes k=10")
    ends = ties.sizes.cumsum(axis=1)
    starts = ends - ties.sizes
    k = min(k, int(ends.max(initial=0)))
    discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))])  # of the first 0, 1, … k places
    weights = discounts[np.minimum(ends, k)] - discounts[np.minimum(starts, k)]
    expected: NDArray[np.float64] = (ties.gains / np.maximum(ties.sizes, 1) * weights).sum(axis=1)
    return expected


def _ties(similarities: NDArray[np.float64], gains: NDArray[np.float64], tolerance: float = 0.0) -> _Ties:
    """The ties of rankings by similarity, highest first; neighbours no further apart than the tolerance are tied."""
    order = np.argsort(-similarities, axis=1)
    ranked = np.take_along_axis(similarities, order, axis=1)
    ties = np.zeros(ranked.shape, dtype=np.int64)
    np.cumsum(ranked[:, :-1] - ranked[:, 1:] > tolerance, axis=1, out=ties[:, 1:])
    ties += ranked.shape[1] * np.arange(len(ranked))[:, None]
    sizes = np.bincount(ties.ravel(), minlength=ties.size)
    sums = np.bincount(ties.ravel(), weights=np.take_along_axis(gains, order, axis=1).ravel(), minlength=ties.size)
    return _Ties(sizes.reshape(ties.shape), sums.reshape(ties.shape).astype(np.float64, copy=False))


def _mean(values: NDArray[np.float64]) -> float:
    # The exact sum, rounded once: the mean is the same to the last digit in whatever order documents are stored.
    # Rounding inside a value may put it a trifle above 1, where no mean can be.
    return min(1.0, fsum(values.tolist()) / len(values))


def _blocks(documents: int) -> Iterator[slice]:
    rows = max(1, _BLOCK // documents)
    return (slice(start, start + rows) for start in range(0, documents, rows))


def _unit(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """The vectors at length 1; zero vectors stay zero."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.shape[1] == 0 or vectors.dtype.kind not in "fiub":
        found = f"{vectors.dtype} of shape {vectors.shape}"
        raise EvaluationError(f"vectors must be rows of a 2-d array of numbers, found {found}", hint=_ONE_EACH)
    if not np.isfinite(vectors).all():
        broken = int((~np.isfinite(vectors).all(axis=1)).argmax())
        raise EvaluationError(f"vector {broken} has values that are not finite", hint="check how it was made")
    # By the largest value first, or squares of very large and very small values would leave the range of floats.
    scaled = vectors.astype(np.float64)
    largest = np.abs(scaled).max(axis=1, keepdims=True)
    scaled /= np.where(largest > 0, largest, 1)
    scaled /= np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1)
    return scaled


def _classes(labels: ArrayLike, documents: NDArray[Any]) -> NDArray[np.int64]:
    """The labels as numbers from 0, checked against the documents that they belong to."""
    given = np.asarray(labels)
    if given.dtype.kind == "O" and all(isinstance(label, str) for label in given.ravel()):
        given = given.astype(np.str_)
    if given.ndim != 1 or given.dtype.kind not in "biuUST":
        found = f"{given.dtype} of shape {given.shape}"
        raise EvaluationError(f"labels must be a row of integers or strings, found {found}", hint=_ONE_EACH)
    if documents.ndim != 2:
        raise EvaluationError(f"codes must be rows of a 2-d array, found shape {documents.shape}", hint=_ONE_EACH)
    if len(given) != len(documents):
        raise EvaluationError(f"there are {len(documents)} documents but {len(given)} labels", hint=_ONE_EACH)
    if len(given) < 2:
        raise EvaluationError(f"documents query each other, found {len(given)}", hint="give two or more")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _answered(similarities: ArrayLike, relevance: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both as arrays, of the queries that have a relevant document."""
    scores, gains = np.asarray(similarities, dtype=np.float64), np.asarray(relevance, dtype=np.float64)
    if scores.ndim != 2 or scores.shape != gains.shape:
        raise EvaluationError(
            f"similarities and relevance must be (queries, documents) both, found {scores.shape} and {gains.shape}",
            hint="give a single query as a row",
        )
    if not (np.isfinite(scores).all() and np.isfinite(gains).all() and (gains >= 0).all()):
        raise EvaluationError(
            "there are similarities or relevances that are not finite, or relevances below 0",
            hint="check how they were made",
        )
    answered = gains.any(axis=1)
    if not answered.any():
        raise EvaluationError("no query has a relevant document", hint="check how relevance was made")
    return scores[answered], gains[answered]
