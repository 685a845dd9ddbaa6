"""Metrics of a ranking, as expected values over all orders inside a tie.

Codes of 32 bits have 33 distances for thousands of documents, so the order inside a distance would decide the score.
All orders are taken as equally likely, in closed form, after F. McSherry and M. Najork, "Computing information
retrieval performance measures efficiently in the presence of tied scores", ECIR 2008; the formulas for graded
relevance are derived below.

Relevance is 0 or 1, or a fraction if it is graded. The precision of the first k documents is their mean relevance, and
their recall is their share of all relevance; with 0 and 1 these are the usual definitions.
"""

from itertools import pairwise
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


class Ties(NamedTuple):
    """The ties of each query's ranking, best first: at least all that have a relevant document, as others gain nothing.

    Empty ties are allowed, and fill short rows.
    """

    starts: NDArray[np.int64]  # (queries, ties) documents ranked before the tie
    sizes: NDArray[np.int64]  # (queries, ties) documents in it
    gains: NDArray[np.float64]  # (queries, ties) the sum of their relevance
    squares: NDArray[np.float64]  # (queries, ties) the sum of its squares


class Curve(NamedTuple):
    """Precision and recall of the first documents, means over queries."""

    retrieved: tuple[int, ...]  # how many documents are taken
    recall: tuple[float, ...]
    precision: tuple[float, ...]


def average_precision(ties: Ties) -> NDArray[np.float64]:
    """Expected average precision, (queries,), of queries that have a relevant document.

    Average precision is the sum over ranks k of (precision of the first k) · (relevance of the k-th), divided by the
    sum of all relevance. With binary relevance that is the mean, over a query's relevant documents, of the share of
    relevant ones among those ranked up to it.

    Take a tie of n documents with relevance of sum G and sum of squares Q, after N documents with relevance of sum R.
    In an order drawn at random, its i-th document has the expected relevance G/n and squared relevance Q/n, and its
    product with that of another place of the tie is expected to be (G² - Q)/(n(n - 1)). So the expected product of the
    precision at this place and its relevance is

        (R G/n + Q/n + (i - 1)(G² - Q)/(n(n - 1))) / (N + i).

    Let S = 1/(N + 1) + … + 1/(N + n), a difference of two harmonic numbers. As (i - 1)/(N + i) = 1 - (N + 1)/(N + i),
    the sum over i = 1 … n is

        (R G + Q) S/n + (G² - Q)/(n(n - 1)) · (n - (N + 1) S),

    and the expected average precision is the sum of it over all ties, divided by all relevance. For n = 1 the second
    term is 0.
    """
    starts, sizes, gains, squares = ties
    ends, gained = starts + sizes, gains.cumsum(axis=1)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, ends.max(initial=0) + 1))])
    inverse_ranks = harmonic[ends] - harmonic[starts]  # S
    n = np.maximum(sizes, 1)
    products = ((gained - gains) * gains + squares) * inverse_ranks / n
    pairs = (gains**2 - squares) / (n * np.maximum(sizes - 1, 1))
    products += pairs * (sizes - (starts + 1) * inverse_ranks)
    return np.asarray(total(products) / gained[:, -1])


def discounted_gain(ties: Ties, k: int) -> NDArray[np.float64]:
    """Expected discounted cumulative gain of the first k documents, (queries,).

    It is the sum of relevance / log2(1 + rank), and NDCG its share of the highest that any order has (K. Järvelin and
    J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002). Each place of a tie is expected to
    gain the mean of the tie.
    """
    ends = ties.starts + ties.sizes
    k = min(k, int(ends.max(initial=0)))
    discounts = _discounts(k)
    weights = discounts[np.minimum(ends, k)] - discounts[np.minimum(ties.starts, k)]
    return total(ties.gains / np.maximum(ties.sizes, 1) * weights)


def highest_discounted_gain(gains: csr_array, k: int) -> NDArray[np.float64]:
    """The discounted cumulative gain of the first k in the best order, (queries,); of some rows of relevance."""
    top = np.zeros((gains.shape[0], min(k, gains.shape[1])))
    for row, (start, end) in enumerate(pairwise(gains.indptr.tolist())):
        best = np.sort(gains.data[start:end])[::-1][:k]
        top[row, : len(best)] = best
    return total(top * np.diff(_discounts(top.shape[1])))


def found(ties: Ties, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much relevance the first documents are expected to have, after each of some ranks: (queries, ranks)."""
    ends, gained = ties.starts + ties.sizes, ties.gains.cumsum(axis=1)
    last = ends[:, -1:]
    wanted = np.minimum(ranks, last)  # nothing is gained after the last tie
    # One search over all queries: each query's ranks are lifted above those of the query before.
    lift = (int(last.max(initial=0)) + 1) * np.arange(len(ends))[:, None]
    place = np.searchsorted((ends + lift).ravel(), (wanted + lift).ravel()).reshape(wanted.shape)
    sizes, gains = ties.sizes.ravel()[place], ties.gains.ravel()[place]
    missing = np.minimum(
        ends.ravel()[place] - wanted, sizes
    )  # documents of the tie that come after the rank
    return np.asarray(gained.ravel()[place] - gains * (missing / np.maximum(sizes, 1)))


def ranked(similarities: NDArray[np.float64], gains: csr_array, tolerance: float = 0.0) -> Ties:
    """The ties of rankings by similarity, highest first; neighbours no further apart than the tolerance are tied.

    Documents of similarity -inf are not ranked: they come last, and must not be relevant.
    """
    # Values alone are sorted, faster than documents would be; the relevant ones, few as a rule, are then looked up.
    ascending = np.sort(-similarities, axis=1)
    queries, documents = ascending.shape
    begins = np.ones(ascending.shape, dtype=np.bool_)
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # inf - inf is no difference, and a large one may be inf
        np.greater(ascending[:, 1:] - ascending[:, :-1], tolerance, out=begins[:, 1:])
    places = np.empty(
        len(gains.data), dtype=np.int64
    )  # of the relevant documents, one query's after another's
    for query, (start, end) in enumerate(pairwise(gains.indptr.tolist())):
        values = -similarities[query, gains.indices[start:end]]
        places[start:end] = documents * query + np.searchsorted(ascending[query], values)
    borders = np.append(np.flatnonzero(begins), begins.size)
    summed, squares = sums((begins.cumsum() - 1)[places], gains.data, len(borders) - 1)
    # A query may have as many ties as documents; those with a relevant one, as a rule far fewer, are kept.
    kept = np.flatnonzero(summed)
    counts = np.bincount(borders[kept] // documents, minlength=queries)  # ties of each query
    filled = np.arange(max(1, counts.max(initial=0))) < counts[:, None]  # (queries, ties)

    def rows(values: NDArray[Any], filling: int = 0) -> NDArray[Any]:
        result = np.full(filled.shape, filling, dtype=values.dtype)
        result[filled] = values
        return result

    starts, sizes = borders[kept] % documents, np.diff(borders)[kept]
    return Ties(rows(starts, documents), rows(sizes), rows(summed[kept]), rows(squares[kept]))


def sums(
    ties: NDArray[np.int64], gains: NDArray[np.float64], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The relevance of documents, and its squares, summed over the tie that each is in: (count,) both."""
    summed, squares = (np.bincount(ties, weights, count) for weights in (gains, gains * gains))
    return summed.astype(np.float64, copy=False), squares.astype(
        np.float64, copy=False
    )  # of nothing, it sums integers


def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sums of rows, added from left to right: zeros that fill a row change no digit, as they can with `sum`."""
    return values.cumsum(axis=1)[:, -1]


def mean(values: NDArray[np.float64]) -> float:
    """The mean of scores, each at most 1."""
    # The exact sum, rounded once: with relevance of 0 and 1 the mean is the same to the last digit in any order
    # that documents are stored. Rounding inside a value may put it slightly above 1.
    return min(1.0, fsum(values.tolist()) / len(values))


def _discounts(k: int) -> NDArray[np.float64]:
    """The sums of 1 / log2(1 + rank) over the first 0, 1, … k ranks."""
    return np.asarray(np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))]))
