"""How documents are ordered for queries: by Hamming distance, by cosine, or by scores of any other kind."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from parabit.codes import hamming, unpack
from parabit.errors import EvaluationError
from parabit.evaluation.metrics import Ties, ranked, sums

# Cosines no further apart count as equal: the same vector at another place in the matrix, or scaled, is about 1e-15 off
# by rounding alone, while a million different cosines lie about 1e-6 apart.
TOLERANCE = 1e-12
_SINGLE_TOLERANCE = 1e-5  # of sums in single precision


class HammingRanking:
    """Packed codes by Hamming distance; without `searched`, they query each other and none finds itself."""

    def __init__(self, codes: NDArray[np.uint8], searched: NDArray[np.uint8] | None = None) -> None:
        self._codes, self._searched = codes, codes if searched is None else searched
        hamming(
            self._codes[:0], self._searched[:0]
        )  # refuses what is not codes of one length now, not halfway
        self.queries, self.documents, self.itself = (
            len(codes),
            len(self._searched),
            searched is None,
        )

    def distances(self, block: slice) -> NDArray[np.int32]:
        """The distances of some queries, (queries, documents)."""
        return hamming(self._codes[block], self._searched)

    def ties(self, block: slice, gains: csr_array) -> Ties:
        """The rankings of some queries as ties, with the documents' relevance: (queries, documents)."""
        distances = self.distances(block)
        shape = (len(distances), 8 * self._codes.shape[1] + 1)
        rows = np.arange(shape[0])
        sizes = np.bincount(
            (distances + shape[1] * rows[:, None]).ravel(), minlength=shape[0] * shape[1]
        )
        sizes = sizes.reshape(shape)
        if self.itself:
            sizes[:, 0] -= 1
        relevant = np.repeat(rows, np.diff(gains.indptr)), gains.indices
        summed, squares = sums(distances[relevant] + shape[1] * relevant[0], gains.data, sizes.size)
        return Ties(
            sizes.cumsum(axis=1) - sizes, sizes, summed.reshape(shape), squares.reshape(shape)
        )


class ScoreRanking:
    """Documents by a score, the highest first: `scores` gives those of some queries, (queries, documents)."""

    def __init__(
        self,
        scores: Callable[[slice], NDArray[Any]],
        queries: int,
        documents: int,
        itself: bool,
        tolerance: float = 0,
    ) -> None:
        self._scores, self._tolerance = scores, tolerance
        self.queries, self.documents, self.itself = queries, documents, itself

    def scores(self, block: slice) -> NDArray[np.float64]:
        """The scores of some queries, (queries, documents), in an array that the caller may change."""
        scores = np.array(self._scores(block), dtype=np.float64)
        expected = (block.stop - block.start, self.documents)
        if scores.shape != expected:
            problem = f"the scores of a block must be (queries, documents), here {expected}, found {scores.shape}"
            raise EvaluationError(problem)
        _need_finite(scores)
        return scores

    def ties(self, block: slice, gains: csr_array) -> Ties:
        scores = self.scores(block)
        if self.itself:  # a query goes last, where it is never relevant, and takes no place from another document
            rows = np.arange(len(scores))
            scores[rows, rows + block.start] = -np.inf
        return ranked(scores, gains, self._tolerance)


Ranking = HammingRanking | ScoreRanking


def asymmetric_ranking(
    activations: NDArray[np.floating], codes: NDArray[np.uint8], itself: bool = True
) -> ScoreRanking:
    """Packed codes by how well they fit queries' real activations; `itself` says that the queries are the documents.

    A score is the sum of the activations with the signs of the code's bits: a bit with a large activation counts more
    than an uncertain one. Activations are scaled to length 1, so that scores that differ only by rounding are equal.
    """
    queries = unit(activations).astype(np.float32)
    signs = unpack(codes, queries.shape[1]).astype(np.float32) * 2 - 1  # (documents, bits)
    return ScoreRanking(
        lambda block: queries[block] @ signs.T, len(queries), len(codes), itself, _SINGLE_TOLERANCE
    )


def cosine_ranking(vectors: Any, searched: Any = None) -> ScoreRanking:
    """Vectors, dense or sparse, by cosine similarity; a zero vector has similarity 0 to all.

    Without `searched`, they query each other.
    """
    queries: Any = unit(vectors)
    documents: Any = queries if searched is None else unit(searched)
    if queries.shape[1] != documents.shape[1]:
        problem = f"vectors of {queries.shape[1]} numbers cannot be compared with vectors of {documents.shape[1]}"
        raise EvaluationError(problem, hint="use the same model for both")
    # Sparse products need this form; converted once, not for every block.
    transposed = documents.T if isinstance(documents, np.ndarray) else documents.T.tocsr()

    def scores(block: slice) -> Any:
        product = queries[block] @ transposed
        return product if isinstance(product, np.ndarray) else product.toarray()

    return ScoreRanking(scores, queries.shape[0], documents.shape[0], searched is None, TOLERANCE)


def unit(vectors: Any) -> Any:
    """The vectors at length 1, in double precision; zero vectors stay zero."""
    sparse = bool(issparse(vectors))
    rows: Any = csr_array(vectors) if sparse else np.asarray(vectors)
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "fiub":
        problem = f"vectors must be rows of a 2-d array of numbers, found {rows.dtype} of shape {rows.shape}"
        raise EvaluationError(problem, hint="give one for each document")
    rows = rows.astype(np.float64)
    if sparse:
        rows.sum_duplicates()
    _need_finite(rows.data if sparse else rows)
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)) if sparse else np.linalg.norm(rows, axis=1)
    lengths[lengths == 0] = 1
    if sparse:
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
    else:
        rows /= lengths[:, None]
    return rows


def _need_finite(values: NDArray[Any]) -> None:
    if not np.isfinite(values).all():
        raise EvaluationError(
            "there are vectors or scores that are not finite", hint="check how they were made"
        )
