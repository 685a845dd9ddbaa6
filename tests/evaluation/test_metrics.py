from functools import partial
from typing import Any

import enumeration
import ir_measures
import numpy as np
import pytest
from enumeration import expected
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from parabit.evaluation.metrics import (
    average_precision,
    discounted_gain,
    highest_discounted_gain,
    ranked,
)

Row = tuple[list[float], list[float]]  # similarities and relevance of the documents to a query


def mean_average_precision(similarities: Any, relevance: Any) -> float:
    return float(
        average_precision(
            ranked(np.array(similarities), csr_array(np.array(relevance) * 1.0))
        ).mean()
    )


def ndcg(similarities: Any, relevance: Any, k: int) -> float:
    gains = csr_array(np.array(relevance) * 1.0)
    return float(
        (
            discounted_gain(ranked(np.array(similarities), gains), k)
            / highest_discounted_gain(gains, k)
        ).mean()
    )


binary = st.sampled_from([0.0, 1.0])
by_degrees = st.one_of(binary, st.sampled_from([1 / 4, 1 / 3, 1 / 2, 2 / 3]), st.floats(1e-3, 1))


def few_documents(relevance: st.SearchStrategy[float]) -> st.SearchStrategy[Row]:
    """So few, and so often tied, that every order can be listed."""
    documents = st.lists(st.tuples(st.integers(-2, 2), relevance), min_size=1, max_size=6)
    rows = documents.map(
        lambda row: ([float(similarity) for similarity, _ in row], [gain for _, gain in row])
    )
    return rows.filter(lambda row: any(row[1]))


@settings(max_examples=200)
@given(st.one_of(few_documents(binary), few_documents(by_degrees)), st.integers(1, 9))
def test_metrics_are_the_mean_over_every_order_inside_the_ties(row: Row, k: int) -> None:
    similarities, gains = [row[0]], [row[1]]
    close = partial(pytest.approx, rel=1e-12, abs=1e-15)
    assert mean_average_precision(similarities, gains) == close(
        expected(enumeration.average_precision, *row)
    )
    assert ndcg(similarities, gains, k) == close(expected(partial(enumeration.ndcg, k=k), *row))


@pytest.mark.parametrize("k", [1, 5, 20, 100])
def test_the_metrics_are_those_of_trec_eval_without_ties(k: int) -> None:
    rng = np.random.default_rng(k)
    relevance = rng.integers(0, 4, (20, 60))
    relevance[:, rng.random(60) < 0.7] = 0
    similarities = rng.permuted(np.tile(np.arange(60.0), (20, 1)), axis=1)  # no ties
    judged = [
        ir_measures.Qrel(str(query), str(one), int(grade))
        for (query, one), grade in np.ndenumerate(relevance)
    ]
    run = [
        ir_measures.ScoredDoc(str(query), str(one), score)
        for (query, one), score in np.ndenumerate(similarities)
    ]
    average, gain = ir_measures.AP, ir_measures.nDCG @ k
    theirs = ir_measures.calc_aggregate(
        [average, gain], judged, run
    )  # gain is the grade, its discount log2
    assert mean_average_precision(similarities, relevance > 0) == pytest.approx(
        theirs[average], rel=1e-12
    )
    assert ndcg(similarities, relevance, k) == pytest.approx(theirs[gain], rel=1e-12)


def test_similarities_may_be_as_large_as_a_number_can_be() -> None:
    assert mean_average_precision(
        [[1.7e308, 5e-324, 0, -1.7e308]], [[0, 1, 0, 1]]
    ) == pytest.approx(1 / 2)
