"""What rankings score, and what cannot be scored."""

import re
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from enumeration import cosines, expected_scores, figures, filtered_slowly
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from sklearn.metrics.pairwise import cosine_similarity

from parabit.choices import RELEVANCE
from parabit.codes import hamming, pack
from parabit.corpus import Document, as_corpus
from parabit.errors import CodesError, EvaluationError
from parabit.evaluation import (
    HammingRanking,
    Relevance,
    ScoreRanking,
    Scores,
    cosine_ranking,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    evaluate_vectors,
    relevance,
    scoring,
)
from parabit.parallel import ordered_map

CODES = np.array([[0], [1], [3], [255]], dtype=np.uint8)
LABELS = ["orbit", "orbit", "goal", "goal"]
BOTH: list[Callable[..., Scores]] = [evaluate_codes, evaluate_vectors]

Bits = NDArray[np.uint8]
Sets = list[set[str]]

kinds = st.sampled_from(list(RELEVANCE))
label_sets = st.sets(st.sampled_from(["orbit", "goal", "verse", "crude"]), max_size=3)


def bits_of(count: int | st.SearchStrategy[int], width: int) -> st.SearchStrategy[Bits]:
    counts = st.just(count) if isinstance(count, int) else count
    return arrays(np.uint8, st.tuples(counts, st.just(width)), elements=st.integers(0, 1))


@st.composite
def few_documents(draw: st.DrawFn, width: int | None = None, least: int = 2) -> tuple[Bits, Sets]:
    """Bits and labels of so few documents that every order can be listed, two of them alike in a label."""
    bits = draw(
        bits_of(st.integers(least, 6), width or draw(st.integers(1, 5) | st.integers(60, 200)))
    )
    labels = [draw(label_sets) for _ in bits]
    labels[0].add("orbit")
    labels[-1].add("orbit")
    return bits, labels


def judged(labels: Sets, kind: str, searched: Sets | None = None) -> NDArray[np.float64]:
    return np.asarray(Relevance(labels, kind, searched).of(slice(0, len(labels))).toarray())


def many_documents(
    seed: int, count: int = 300, bits: int = 32
) -> tuple[NDArray[np.float64], NDArray[np.int64], Sets]:
    """Vectors, many of them the same, with one label each and with several or none."""
    rng = np.random.default_rng(seed)
    vectors, labels = rng.standard_normal((count, bits)), rng.integers(0, 7, count)
    third = count // 3
    vectors[:third] = vectors[third : 2 * third]  # among different labels
    vectors[: third // 2] *= rng.uniform(0.01, 100, (third // 2, 1))
    vectors[-10:] = 0
    several = [
        set(rng.choice(list("abcdefgh"), rng.integers(0, 4), replace=False).tolist())
        for _ in range(count)
    ]
    return vectors, labels, several


@given(few_documents(), st.integers(1, 8), kinds, st.booleans(), st.data())
def test_scores_are_the_mean_over_every_order_inside_the_ties(
    documents: tuple[Bits, Sets], k: int, kind: str, sparse: bool, data: st.DataObject
) -> None:
    bits, labels = documents
    others, other_labels = data.draw(few_documents(bits.shape[1], least=1))
    form = csr_array if sparse else np.asarray
    close = partial(pytest.approx, rel=1e-12, abs=1e-15)
    for itself, found, found_labels in (
        (True, bits, labels),
        (False, others, other_labels),
    ):  # a collection of others
        relevance = judged(labels, kind, None if itself else found_labels)
        codes, searched = pack(bits), pack(found)
        expected = expected_scores(
            -hamming(codes, searched).astype(np.float64), relevance, k, itself=itself
        )
        scores = evaluate_codes(
            codes, labels, k, kind, None if itself else (searched, found_labels)
        )
        assert figures(scores) == close(figures(expected))
        expected = expected_scores(cosines(bits, found), relevance, k, itself=itself)
        scores = evaluate_vectors(
            form(bits), labels, k, kind, None if itself else (form(found), found_labels)
        )
        assert figures(scores) == close(figures(expected))


@pytest.mark.parametrize("kind", RELEVANCE)
def test_precision_is_taken_at_the_depth_that_is_asked_for(kind: str) -> None:
    vectors, _, labels = many_documents(11, 50)
    ranking, relevance = HammingRanking(pack(vectors > 0)), Relevance(labels, kind)
    scores = evaluate(ranking, relevance, depth=49)
    for rank, precision in zip(scores.curve.retrieved, scores.curve.precision, strict=True):
        assert evaluate(ranking, relevance, depth=rank).precision == precision
    assert evaluate(ranking, relevance, depth=98).precision == pytest.approx(
        scores.precision / 2
    )  # 49 are empty


def test_a_long_curve_is_taken_at_ever_fewer_ranks_from_the_first_to_the_last() -> None:
    vectors, labels, _ = many_documents(1)
    curve = evaluate_vectors(vectors, labels).curve
    steps = np.diff(curve.retrieved)
    assert (curve.retrieved[0], curve.retrieved[-1]) == (1, 299)
    assert len(curve.retrieved) <= 60
    assert (steps > 0).all()
    assert steps[-1] > steps[0]
    assert curve.recall[-1] == pytest.approx(1)


@pytest.mark.parametrize("bits", [8, 32, 128])
def test_the_order_of_storage_cannot_change_a_score(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "_BLOCK", 3000)  # so that a query comes into another block
    vectors, labels, several = many_documents(bits, bits=bits)
    codes, order = pack(vectors > 0), np.random.default_rng(bits).permutation(300)
    reordered = [several[document] for document in order]
    # With one label each, to the last digit.
    assert evaluate_codes(codes, labels) == evaluate_codes(codes[order], labels[order])
    assert evaluate_vectors(vectors, labels) == evaluate_vectors(vectors[order], labels[order])
    given_as: list[NDArray[Any]] = [codes, vectors]
    for kind in RELEVANCE:
        for score, rows in zip(BOTH, given_as, strict=True):
            there, here = (
                score(rows[order], reordered, relevance=kind),
                score(rows, several, relevance=kind),
            )
            assert figures(there) == pytest.approx(figures(here), rel=1e-14)
    filtered = evaluate_filtered(codes[order], vectors[order], labels[order], bits // 4)
    assert filtered == evaluate_filtered(codes, vectors, labels, bits // 4)


@pytest.mark.parametrize("kind", RELEVANCE)
def test_scores_are_the_same_block_by_block(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    vectors, labels = (
        rng.standard_normal((90, 20)),
        [[number] for number in rng.integers(0, 60, 90).tolist()],
    )
    for document in range(30):  # these have much to find, others little or nothing
        labels[document] += [-1, -2]
    codes = pack(vectors > 0)

    def scores() -> tuple[Any, ...]:
        return (
            evaluate_codes(codes, labels, relevance=kind),
            evaluate_vectors(vectors, labels, relevance=kind),
            evaluate_codes(codes[:40], labels[:40], relevance=kind, searched=(codes, labels)),
            evaluate_filtered(codes, vectors, labels, 8, relevance=kind),
        )

    whole = scores()
    assert whole[0].skipped > 5  # so that some blocks have none to score
    for pairs in (1, 200, 1000):
        monkeypatch.setattr(scoring, "_BLOCK", pairs)
        assert scores() == whole


@pytest.mark.parametrize("kind", RELEVANCE)
def test_a_perfect_ranking_scores_1_and_never_more(kind: str) -> None:
    labels = np.repeat(np.arange(30), 40)
    rng = np.random.default_rng(8)
    vectors = np.eye(30)[labels] + rng.uniform(0, 1e-3, (1200, 30))
    codes = pack(np.eye(30, dtype=np.bool_)[labels])
    filtered = evaluate_filtered(codes, vectors, labels, radius=1, relevance=kind)
    for scores in (
        evaluate_vectors(vectors, labels, relevance=kind),
        evaluate_codes(codes, labels, relevance=kind),
    ):
        assert (scores.queries, scores.skipped) == (1200, 0)
        assert scores.precision == pytest.approx(39 / 100)
        for perfect in (
            scores.map,
            scores.ndcg,
            scores.curve.recall[-1],
            filtered.ndcg,
            filtered.strict_ndcg,
        ):
            assert perfect == pytest.approx(1, rel=1e-12)
            assert perfect <= 1


@given(few_documents(), st.integers(0, 5), st.integers(1, 8), kinds, st.data())
def test_filtered_scores_are_those_of_a_slow_search(
    documents: tuple[Bits, Sets], radius: int, k: int, kind: str, data: st.DataObject
) -> None:
    bits, labels = documents
    vectors = data.draw(bits_of(len(bits), 3))
    expected = filtered_slowly(bits, cosines(vectors, vectors), judged(labels, kind), radius, k)
    for form in (np.asarray, csr_array):
        scores = evaluate_filtered(pack(bits), form(vectors), labels, radius, k, kind)
        assert scores == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("score", ["codes", "vectors", "filtered"])
def test_no_matrix_of_all_pairs_is_ever_held(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, labels, several = many_documents(10, 3000, 16)
    codes = pack(vectors > 0)
    monkeypatch.setattr(
        scoring, "ordered_map", partial(ordered_map, threads=1)
    )  # each core would hold a block
    work: dict[str, Callable[[], Any]] = {
        "codes": lambda: evaluate_codes(codes, several, relevance="overlap"),
        "vectors": lambda: evaluate_vectors(vectors, labels),
        "filtered": lambda: evaluate_filtered(codes, vectors, labels, radius=4),
    }
    tracemalloc.start()
    try:
        work[score]()
        assert tracemalloc.get_traced_memory()[1] < 3000**2 * 4 / 3
    finally:
        tracemalloc.stop()


def test_values_that_a_sparse_array_stores_in_parts_are_their_sum() -> None:
    parts = csr_array(
        (np.array([3.0, -1.0, 0.0, 1.0]), np.array([0, 0, 1, 1]), np.array([0, 2, 4])), (2, 2)
    )
    ranking = cosine_ranking(parts, np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert ranking.scores(slice(0, 2)).tolist() == [[1, 0], [0, 1]]
    assert parts.nnz == 4  # what was given is as it was


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint8, np.bool_])
def test_cosines_are_those_of_scikit_learn_for_vectors_in_every_form_and_numbers_of_any_kind(
    dtype: type,
) -> None:
    rng = np.random.default_rng(4)
    vectors: NDArray[Any] = (
        9 * np.abs(rng.standard_normal((60, 12))) * rng.integers(0, 2, (60, 12))
    ).astype(dtype)
    vectors[:12] = 0
    expected = pytest.approx(cosine_similarity(vectors.astype(np.float64))[10:15], abs=1e-14)
    forms = (csr_array, csc_array, coo_array, csr_matrix)
    for form in (np.asarray, *(() if dtype == np.float16 else forms)):  # scipy has no float16
        given = form(vectors)
        for ranking in (
            cosine_ranking(given),
            cosine_ranking(given, vectors),
            cosine_ranking(vectors, given),
        ):
            assert ranking.scores(slice(10, 15)) == expected


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("length", [1e-38, 1e38])
def test_only_the_direction_of_a_vector_counts(form: Callable[[Any], Any], length: float) -> None:
    vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [0.0, 1.0]])
    expected = evaluate(cosine_ranking(vectors), Relevance(LABELS))
    vectors[2] *= length
    assert evaluate(cosine_ranking(form(vectors)), Relevance(LABELS)) == expected


def test_what_is_ranked_stays_as_it_was() -> None:
    vectors, _, labels = many_documents(6, 60)
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
        return evaluate(
            ranking, Relevance(["goal"], searched=["goal", "orbit", "orbit", "orbit"])
        ).map

    assert score(0.1) == pytest.approx(1 / 4)
    assert score(0.5) == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert score(5.0) == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


ONE_LABEL = "labels must be integers or strings, one or several per document; found "


def evaluate_scores(scores: Any) -> object:
    return evaluate(ScoreRanking(lambda _: np.array(scores), 4, 4, itself=True), Relevance(LABELS))


def labelled_of(*labels: tuple[str, ...], least: int = 1) -> object:
    return relevance.labelled(
        as_corpus([Document("a", "text", mine) for mine in labels]), "news.jsonl", least
    )


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: evaluate_codes(CODES, LABELS, k=0), "k must be at least 1, found 0"),
    (lambda: relevance.label_sets([0.5, 1.0]), ONE_LABEL + "0.5; give one label or a list"),
    (lambda: relevance.label_sets("orbit"), ONE_LABEL + "str of shape ()"),
    (
        lambda: relevance.label_sets(np.zeros((4, 2), dtype=np.int64)),
        ONE_LABEL + "ndarray of shape (4, 2)",
    ),
    (lambda: Relevance(LABELS, "cosine"), "no relevance 'cosine'; there are shared and overlap"),
    (
        lambda: cosine_ranking(np.where(np.eye(4), np.nan, 1)),
        "vectors or scores that are not finite",
    ),
    (
        lambda: cosine_ranking(csr_array(np.where(np.eye(4), np.inf, 1))),
        "vectors or scores that are not finite",
    ),
    (
        lambda: cosine_ranking(np.zeros(4)),
        "rows of a 2-d array of numbers, found float64 of shape (4,)",
    ),
    (
        lambda: cosine_ranking(np.ones((2, 3)), np.ones((2, 5))),
        "vectors of 3 numbers cannot be compared with",
    ),
    (lambda: evaluate_scores(np.full((4, 4), np.nan)), "vectors or scores that are not finite"),
    (lambda: evaluate_scores(np.zeros((3, 4))), "(queries, documents), here (4, 4), found (3, 4)"),
    (
        lambda: HammingRanking(CODES, np.zeros((4, 2), np.uint8)),
        "codes of 1 bytes cannot be compared with codes of 2",
    ),
    (
        lambda: evaluate_codes(CODES, LABELS[:3]),
        "4 documents but 3 labels; give one for each document",
    ),
    (lambda: evaluate_codes(CODES, [1, 2, 3, 4]), "no two documents share a label"),
    (lambda: evaluate_codes(CODES[:1], LABELS[:1]), "too few: 1 queries for 1 documents"),
    (
        lambda: evaluate(HammingRanking(CODES), Relevance(LABELS), depth=0),
        "k must be at least 1, found 0",
    ),
    (
        lambda: evaluate_codes(CODES, LABELS, searched=(CODES, LABELS[:3])),
        "4 documents to search but 3 labels",
    ),
    (
        lambda: evaluate(HammingRanking(CODES, CODES), Relevance(LABELS)),
        "codes and labels; give both, or neither",
    ),
    (
        lambda: evaluate_filtered(CODES, CODES[:3], LABELS, radius=1),
        "4 codes but 3 vectors; give both",
    ),
    (labelled_of, "news.jsonl has no documents"),
    (lambda: labelled_of((), ()), "no document of news.jsonl has a label"),
    (
        lambda: labelled_of(("a", "a"), ("b",), least=2),
        "no label of news.jsonl has 2 documents; the most frequent has 1",
    ),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_cannot_be_scored_is_explained(call: Callable[[], object], words: str) -> None:
    with pytest.raises((EvaluationError, CodesError), match=re.escape(words)):
        call()
