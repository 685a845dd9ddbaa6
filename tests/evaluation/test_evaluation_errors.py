import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from parabit.corpus import Document, as_corpus
from parabit.errors import CodesError, EvaluationError
from parabit.evaluation import (
    HammingRanking,
    Relevance,
    ScoreRanking,
    cosine_ranking,
    evaluate,
    evaluate_codes,
    evaluate_filtered,
    mean_average_precision,
    ndcg,
)
from parabit.evaluation.relevance import label_sets, labelled

CODES = np.array([[0], [1], [3], [255]], dtype=np.uint8)
LABELS = ["orbit", "orbit", "goal", "goal"]
ONE_LABEL = "labels must be integers or strings, one or several per document; found "


def evaluate_scores(scores: Any) -> object:
    return evaluate(ScoreRanking(lambda _: np.array(scores), 4, 4, itself=True), Relevance(LABELS))


def labelled_of(*labels: tuple[str, ...], least: int = 1) -> object:
    return labelled(as_corpus([Document("a", "text", mine) for mine in labels]), "news.jsonl", least)


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: mean_average_precision([[np.nan, 1.0]], [[0, 1]]), "not finite"),
    (lambda: ndcg([[1, 2]], [[-1, 1]]), "relevances below 0"),
    (lambda: ndcg([[1, 2]], [[1, 0, 0]]), "found (1, 2) and (1, 3)"),
    (lambda: ndcg([[0, 0]], [[0, 0]]), "no query has a relevant document"),
    (lambda: mean_average_precision([[1, 2]], [[3, 1]]), "at most 1 for precision, found 3; divide by the highest"),
    (lambda: ndcg([[1, 2]], [[0, 1]], k=0), "k must be at least 1, found 0"),
    (lambda: label_sets([0.5, 1.0]), ONE_LABEL + "0.5; give one label or a list"),
    (lambda: label_sets("orbit"), ONE_LABEL + "str of shape ()"),
    (lambda: label_sets(np.zeros((4, 2), dtype=np.int64)), ONE_LABEL + "ndarray of shape (4, 2)"),
    (lambda: Relevance(LABELS, "cosine"), "no relevance 'cosine'; there are shared and overlap"),
    (lambda: cosine_ranking(np.where(np.eye(4), np.nan, 1)), "vectors or scores that are not finite"),
    (lambda: cosine_ranking(csr_array(np.where(np.eye(4), np.inf, 1))), "vectors or scores that are not finite"),
    (lambda: cosine_ranking(np.zeros(4)), "rows of a 2-d array of numbers, found float64 of shape (4,)"),
    (lambda: cosine_ranking(np.ones((2, 3)), np.ones((2, 5))), "vectors of 3 numbers cannot be compared with"),
    (lambda: evaluate_scores(np.full((4, 4), np.nan)), "vectors or scores that are not finite"),
    (lambda: evaluate_scores(np.zeros((3, 4))), "(queries, documents), here (4, 4), found (3, 4)"),
    (lambda: HammingRanking(CODES, np.zeros((4, 2), np.uint8)), "codes of 1 bytes cannot be compared with codes of 2"),
    (lambda: evaluate_codes(CODES, LABELS[:3]), "4 documents but 3 labels; give one for each document"),
    (lambda: evaluate_codes(CODES, [1, 2, 3, 4]), "no two documents share a label"),
    (lambda: evaluate_codes(CODES[:1], LABELS[:1]), "too few: 1 queries for 1 documents"),
    (lambda: evaluate(HammingRanking(CODES), Relevance(LABELS), depth=0), "k must be at least 1, found 0"),
    (lambda: evaluate_codes(CODES, LABELS, searched=(CODES, LABELS[:3])), "4 documents to search but 3 labels"),
    (lambda: evaluate(HammingRanking(CODES, CODES), Relevance(LABELS)), "codes and labels; give both, or neither"),
    (lambda: evaluate_filtered(CODES, CODES[:3], LABELS, radius=1), "4 codes but 3 vectors; give both"),
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
