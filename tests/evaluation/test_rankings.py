from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from parabit.evaluation import Relevance, ScoreRanking, cosine_ranking, evaluate

LABELS = ["orbit", "orbit", "goal", "goal"]


def many(seed: int, count: int = 60, width: int = 12) -> tuple[NDArray[np.float64], list[set[int]]]:
    """Vectors, half of their values and some of them altogether zero, and labels: none, one or several each."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((count, width)) * (rng.random((count, width)) < 0.5)
    vectors[:3] = 0
    vectors[3:12] = vectors[20:29] * rng.uniform(0.1, 10, (9, 1))  # ties
    return vectors, [set(rng.choice(6, rng.integers(0, 4), replace=False).tolist()) for _ in range(count)]


def test_values_that_a_sparse_array_stores_in_parts_are_their_sum() -> None:
    parts = sparse.csr_array((np.array([3.0, -1.0, 0.0, 1.0]), np.array([0, 0, 1, 1]), np.array([0, 2, 4])), (2, 2))
    ranking = cosine_ranking(parts, np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert ranking.scores(slice(0, 2)).tolist() == [[1, 0], [0, 1]]
    assert parts.nnz == 4  # what was given is as it was


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint8, np.bool_])
def test_cosines_are_those_of_scikit_learn_for_vectors_in_every_form_and_numbers_of_any_kind(dtype: type) -> None:
    vectors: NDArray[Any] = (9 * np.abs(many(4)[0])).astype(dtype)
    expected = pytest.approx(cosine_similarity(vectors.astype(np.float64))[10:15], abs=1e-14)
    forms = (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix)
    for form in (np.asarray, *(() if dtype == np.float16 else forms)):  # scipy has no float16
        given = form(vectors)
        for ranking in (cosine_ranking(given), cosine_ranking(given, vectors), cosine_ranking(vectors, given)):
            assert ranking.scores(slice(10, 15)) == expected


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("length", [1e-38, 1e38])
def test_only_the_direction_of_a_vector_counts(form: Callable[[Any], Any], length: float) -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    expected = evaluate(cosine_ranking(vectors), Relevance(LABELS))
    vectors[2] *= length
    assert evaluate(cosine_ranking(form(vectors)), Relevance(LABELS)) == expected


def test_what_is_ranked_stays_as_it_was() -> None:
    vectors, labels = many(6)
    kept, scores = vectors.copy(), vectors @ vectors.T
    stored = scores.copy()
    evaluate(cosine_ranking(vectors), Relevance(labels))
    evaluate(ScoreRanking(lambda block: scores[block], 60, 60, itself=True), Relevance(labels))
    assert (vectors == kept).all()
    assert (scores == stored).all()


def test_a_query_never_finds_itself_however_it_scores() -> None:
    # Each is by far its own best, or worst; without itself, the two of a label find each other first.
    scores = np.array([[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]])
    for own in (-9, 1, 2, 99):
        np.fill_diagonal(scores, own)
        ranking = ScoreRanking(lambda block: scores[block], 4, 4, itself=True)
        found = evaluate(ranking, Relevance(LABELS))
        assert (found.map, found.ndcg, found.curve.recall) == (1, 1, (1, 1, 1))


def test_scores_no_further_apart_than_the_tolerance_are_tied() -> None:
    scores = np.array([[0.0, 0.4, 0.8, 2.0]])  # the first three, one by one

    def score(tolerance: float) -> float:
        ranking = ScoreRanking(lambda block: scores[block], 1, 4, itself=False, tolerance=tolerance)
        return evaluate(ranking, Relevance(["goal"], searched=["goal", "orbit", "orbit", "orbit"])).map

    assert score(0.1) == pytest.approx(1 / 4)
    assert score(0.5) == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert score(5.0) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
