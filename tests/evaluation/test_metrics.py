from itertools import groupby, permutations, product
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score

from parabit.codes import hamming, pack
from parabit.errors import CodesError, EvaluationError
from parabit.evaluation import Scores, evaluate_codes, evaluate_vectors, mean_average_precision, metrics, ndcg

CODES = np.array([[0], [1], [3], [255]], dtype=np.uint8)
LABELS = ["orbit", "orbit", "goal", "goal"]


def average_precision_of(ranking: list[int]) -> float:
    places = [place for place, relevant in enumerate(ranking, 1) if relevant]
    return sum(found / place for found, place in enumerate(places, 1)) / len(places)


def ndcg_of(ranking: list[int], k: int) -> float:
    gains, best = (
        sum(gain / log2(1 + place) for place, gain in enumerate(order[:k], 1))
        for order in (ranking, sorted(ranking, reverse=True))
    )
    return gains / best


def all_orders(similarities: list[float], relevance: list[int]) -> list[list[int]]:
    """Every ranking that leaves no document before a more similar one."""
    pairs = sorted(zip(similarities, relevance, strict=True), reverse=True)
    ties = [[gain for _, gain in tie] for _, tie in groupby(pairs, key=lambda pair: pair[0])]
    return [[gain for tie in order for gain in tie] for order in product(*(permutations(tie) for tie in ties))]


def expected_scores(similarities: NDArray[np.float64], labels: list[str], k: int) -> Scores:
    """By listing every order inside every tie."""
    precisions, ndcgs = [], []
    for query, label in enumerate(labels):
        others = [place for place in range(len(labels)) if place != query]
        orders = all_orders(
            [float(similarities[query, other]) for other in others], [labels[other] == label for other in others]
        )
        if any(orders[0]):
            precisions.append(np.mean([average_precision_of(order) for order in orders]))
            ndcgs.append(np.mean([ndcg_of(order, k) for order in orders]))
    return Scores(
        float(np.mean(precisions)), float(np.mean(ndcgs)), len(precisions), skipped=len(labels) - len(precisions)
    )


@st.composite
def few_documents(draw: st.DrawFn) -> tuple[NDArray[np.uint8], list[str]]:
    """Bits and labels of so few documents that every order can be listed, two of them of one label."""
    count = draw(st.integers(2, 6))
    bits = draw(arrays(np.uint8, (count, draw(st.integers(1, 5))), elements=st.integers(0, 1)))
    labels = draw(st.lists(st.sampled_from(["orbit", "goal", "verse"]), min_size=count - 1, max_size=count - 1))
    return bits, [*labels, labels[0]]


@given(few_documents(), st.integers(1, 8))
def test_codes_score_the_mean_over_every_order_inside_the_ties(
    documents: tuple[NDArray[np.uint8], list[str]], k: int
) -> None:
    bits, labels = documents
    codes = pack(bits)
    scores = evaluate_codes(codes, labels, bits.shape[1], k)
    assert scores == pytest.approx(expected_scores(-hamming(codes, codes).astype(np.float64), labels, k))


@given(few_documents(), st.integers(1, 8))
def test_vectors_score_the_mean_over_every_order_inside_the_ties(
    documents: tuple[NDArray[np.uint8], list[str]], k: int
) -> None:
    bits, labels = documents
    lengths = np.linalg.norm(bits, axis=1)
    cosines = np.round(bits.astype(float) @ bits.T / np.maximum(np.outer(lengths, lengths), 1), 9)
    assert evaluate_vectors(bits, labels, k) == pytest.approx(expected_scores(cosines, labels, k))


@given(st.data(), st.integers(1, 9))
def test_given_similarities_score_the_mean_over_every_order_inside_the_ties(data: st.DataObject, k: int) -> None:
    rows = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=1, max_size=6)
    similarities, relevance = zip(*data.draw(rows.filter(lambda row: any(gain for _, gain in row))), strict=True)
    orders = all_orders(list(similarities), list(relevance))
    assert mean_average_precision([similarities], [relevance]) == pytest.approx(
        np.mean([average_precision_of(order) for order in orders])
    )
    assert ndcg([similarities], [relevance], k) == pytest.approx(np.mean([ndcg_of(order, k) for order in orders]))


@pytest.mark.parametrize("k", [1, 10, 1000])
def test_ndcg_is_that_of_scikit_learn_with_ties_and_degrees_of_relevance(k: int) -> None:
    rng = np.random.default_rng(3)
    similarities, relevance = rng.integers(0, 12, (40, 200)), rng.integers(0, 4, (40, 200)) / 3
    assert ndcg(similarities, relevance, k) == pytest.approx(ndcg_score(relevance, similarities, k=k), rel=1e-12)


def test_average_precision_is_that_of_scikit_learn_without_ties() -> None:
    rng = np.random.default_rng(4)
    similarities, relevance = rng.standard_normal((30, 500)), rng.random((30, 500)) < 0.1
    expected = [average_precision_score(*pair) for pair in zip(relevance, similarities, strict=True)]
    assert mean_average_precision(similarities, relevance) == pytest.approx(np.mean(expected), rel=1e-12)


def test_large_ties_score_the_mean_over_orders_drawn_at_random() -> None:
    rng = np.random.default_rng(5)
    distances, relevant = rng.integers(0, 5, 400), rng.random(400) < 0.2
    drawn = [average_precision_of(relevant[np.lexsort([rng.random(400), distances])].tolist()) for _ in range(2000)]
    error = np.std(drawn) / np.sqrt(len(drawn))
    assert mean_average_precision([-distances], [relevant]) == pytest.approx(np.mean(drawn), abs=5 * error)


def test_when_all_are_tied_and_all_but_one_relevant_the_score_is_known() -> None:
    # The one irrelevant document stands at each of the three places with the same chance.
    codes = np.zeros((4, 2), dtype=np.uint8)
    expected = ((1 / 2 + 2 / 3) / 2 + (1 + 2 / 3) / 2 + 1) / 3
    scores = evaluate_codes(codes, [0, 0, 0, 1])
    assert scores.map == pytest.approx(expected)
    assert (scores.queries, scores.skipped) == (3, 1)


@pytest.mark.parametrize("bits", [8, 32, 128])
def test_the_order_of_storage_cannot_change_a_score(bits: int) -> None:
    rng = np.random.default_rng(bits)
    vectors, labels = rng.standard_normal((300, bits)), rng.integers(0, 7, 300)
    vectors[:120] = vectors[120:240]  # the same vectors among different labels
    vectors[:60] *= rng.uniform(0.01, 100, (60, 1))
    vectors[290:] = 0
    codes, order = pack(vectors > 0), rng.permutation(300)
    assert evaluate_codes(codes, labels) == evaluate_codes(codes[order], labels[order])
    assert evaluate_vectors(vectors, labels) == evaluate_vectors(vectors[order], labels[order])


def test_vectors_of_signs_score_as_their_codes_do() -> None:
    rng = np.random.default_rng(6)
    signs, labels = rng.choice([-1.0, 1.0], (200, 24)), rng.integers(0, 5, 200)
    assert evaluate_vectors(signs, labels) == pytest.approx(evaluate_codes(pack(signs > 0), labels, bits=24))


def test_scores_are_the_same_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    vectors, labels = rng.standard_normal((90, 20)), rng.integers(0, 60, 90)
    whole = evaluate_codes(pack(vectors > 0), labels), evaluate_vectors(vectors, labels)
    assert whole[0].skipped > 5  # so that some blocks have none to score
    for pairs in (1, 200, 1000):
        monkeypatch.setattr(metrics, "_BLOCK", pairs)
        assert (evaluate_codes(pack(vectors > 0), labels), evaluate_vectors(vectors, labels)) == whole


def test_queries_that_have_nothing_to_find_are_counted_and_left_out() -> None:
    alone = evaluate_codes(CODES[[0, 1, 3]], ["orbit", "orbit", "goal"])
    assert (alone.queries, alone.skipped) == (2, 1)
    assert alone == evaluate_vectors(np.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0]]), [5, 5, -1])
    similarities, relevance = [[0.9, 0.1], [0.9, 0.1]], [[0, 1], [0, 0]]
    assert mean_average_precision(similarities, relevance) == pytest.approx(1 / 2)
    assert ndcg(similarities, relevance) == pytest.approx(1 / log2(3))


def test_a_perfect_ranking_scores_1_and_never_more() -> None:
    labels = np.repeat(np.arange(30), 40)
    rng = np.random.default_rng(8)
    vectors = np.eye(30)[labels] + rng.uniform(0, 1e-3, (1200, 30))
    for scores in (evaluate_vectors(vectors, labels), evaluate_codes(pack(np.eye(30, dtype=np.bool_)[labels]), labels)):
        assert scores == pytest.approx((1, 1, 1200, 0), rel=1e-12)
        assert max(scores.map, scores.ndcg) <= 1


def test_a_zero_vector_is_like_nothing_and_unlike_nothing() -> None:
    vectors = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    # To the first, the zero vector comes before the opposite one; to the zero vector, the two others are tied.
    assert evaluate_vectors(vectors, ["orbit", "goal", "orbit"]).map == pytest.approx((1 + 3 / 4) / 2)


@pytest.mark.parametrize("length", [1e-320, 1e-200, 1e200, 1e308])
def test_only_the_direction_of_a_vector_counts(length: float) -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    expected = evaluate_vectors(vectors, LABELS)
    vectors[2] *= length
    assert evaluate_vectors(vectors, LABELS) == pytest.approx(expected)


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        [7, 7, -2, -2],
        np.array([True, True, False, False]),
        np.array(LABELS, dtype=object),
        np.array(LABELS, dtype="S"),
        np.array(LABELS, dtype=np.dtypes.StringDType()),
        np.array([2**63, 2**63, 5, 5], dtype=np.uint64),
    ],
)
def test_labels_may_be_integers_or_strings_of_any_kind(labels: list[str]) -> None:
    assert evaluate_codes(CODES, labels) == evaluate_codes(CODES, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (LABELS[:3], "4 documents but 3 labels; give one for each document"),
        ([0.5, 0.5, 1.0, 1.0], "integers or strings, found float64"),
        (["orbit", "orbit", None, None], "found object of shape"),
        ([[0, 0], [1, 1], [0, 1], [1, 0]], r"found int64 of shape \(4, 2\)"),
        ([1, 2, 3, 4], "no two documents share a label"),
    ],
)
def test_labels_that_do_not_serve_are_refused_in_words(labels: list[str], words: str) -> None:
    with pytest.raises(EvaluationError, match=words):
        evaluate_codes(CODES, labels)
    with pytest.raises(EvaluationError, match=words):
        evaluate_vectors(CODES, labels)


def test_documents_that_cannot_be_scored_are_refused_in_words() -> None:
    for count in (0, 1):
        for evaluate in (evaluate_codes, evaluate_vectors):
            with pytest.raises(EvaluationError, match=f"documents query each other, found {count}"):
                evaluate(CODES[:count], np.array(LABELS[:count], dtype=np.str_))
    with pytest.raises(CodesError, match="28 bits take 4 bytes, but the codes have 1"):
        evaluate_codes(CODES, LABELS, bits=28)
    with pytest.raises(EvaluationError, match=r"codes must be rows of a 2-d array, found shape \(4,\)"):
        evaluate_codes(CODES[:, 0], LABELS)
    with pytest.raises(EvaluationError, match="found k=0"):
        evaluate_codes(CODES, LABELS, k=0)
    for wrong in (CODES[:, 0], CODES[:, :0], CODES.astype(np.complex128), CODES.astype(np.str_)):
        with pytest.raises(EvaluationError, match="vectors must be rows of a 2-d array of numbers"):
            evaluate_vectors(wrong, LABELS)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(wrong: float) -> None:
    vectors = np.ones((4, 3))
    vectors[2, 1] = wrong
    with pytest.raises(EvaluationError, match="vector 2 has values that are not finite"):
        evaluate_vectors(vectors, LABELS)
    with pytest.raises(EvaluationError, match="not finite"):
        mean_average_precision([[wrong, 1.0]], [[0, 1]])
    with pytest.raises(EvaluationError, match="not finite"):
        ndcg([[1.0, 2.0]], [[wrong, 1]])


def test_similarities_and_relevance_must_belong_together() -> None:
    for metric in (mean_average_precision, ndcg):
        with pytest.raises(EvaluationError, match=r"found \(1, 2\) and \(1, 3\)"):
            metric([[1, 2]], [[1, 0, 0]])
        with pytest.raises(EvaluationError, match="give a single query as a row"):
            metric([1, 2], [1, 0])
        with pytest.raises(EvaluationError, match="relevances below 0"):
            metric([[1, 2]], [[-1, 1]])
        with pytest.raises(EvaluationError, match="no query has a relevant document"):
            metric([[1, 2]], [[0, 0]])
