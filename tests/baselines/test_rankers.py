import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import make_counts
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer

from parabit.baselines import BM25, TfIdf
from parabit.errors import BaselineError
from parabit.evaluation import mean_average_precision


def bm25(documents: NDArray[np.int64], queries: NDArray[np.int64], k1: float, b: float) -> NDArray[np.float64]:
    """The formula, written out plainly."""
    lengths, frequencies = documents.sum(axis=1), (documents > 0).sum(axis=0)
    scores = np.zeros((len(queries), len(documents)))
    for query, words in enumerate(queries):
        for document, counts in enumerate(documents):
            for word in np.flatnonzero(words):
                idf = np.log(1 + (len(documents) - frequencies[word] + 0.5) / (frequencies[word] + 0.5))
                saturation = counts[word] + k1 * (1 - b + b * lengths[document] / lengths.mean())
                if counts[word]:
                    scores[query, document] += words[word] * idf * counts[word] / saturation
    return scores


def test_weights_are_scikit_learns_with_the_same_idf() -> None:
    counts, new = make_counts(300, seed=1).counts, make_counts(20, seed=2).counts
    mine = TfIdf().fit(counts)
    theirs = TfidfTransformer(sublinear_tf=True, smooth_idf=False).fit(counts)
    # scikit-learn adds 1 to log(n / d), so that a word of all documents keeps some weight; ours is log((n + 1) / d).
    np.testing.assert_allclose(mine.idf_, theirs.idf_ - 1 + np.log(301 / 300), rtol=1e-4)
    theirs.idf_ = mine.idf_.astype(np.float64)
    np.testing.assert_allclose(mine.transform(new).toarray(), theirs.transform(new).toarray(), atol=1e-6)


def test_a_word_that_no_training_document_has_weighs_nothing_and_a_rare_one_most() -> None:
    model = TfIdf().fit(csr_array([[1, 1, 0, 3], [0, 1, 0, 1], [0, 1, 0, 0]]))
    np.testing.assert_allclose(model.idf_, [np.log(4), np.log(4 / 3), 0, np.log(2)], rtol=1e-6)
    rows = model.transform(csr_array([[0, 0, 5, 0], [1, 0, 5, 0]]))
    np.testing.assert_allclose(rows.toarray(), [[0, 0, 0, 0], [1, 0, 0, 0]])


@given(st.lists(st.lists(st.integers(0, 5), min_size=6, max_size=6), min_size=2, max_size=8))
def test_rows_have_length_one_however_the_counts_are_stored(rows: list[list[int]]) -> None:
    dense = np.array(rows)
    dense[0, 0] = 1
    whole = csr_array(dense)
    model = TfIdf().fit(whole)
    found = model.transform(whole).toarray()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), (dense * model.idf_).any(axis=1), atol=1e-5)
    # Each count in two halves.
    halves = np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr
    np.testing.assert_allclose(found, model.transform(csr_array(halves, shape=dense.shape)).toarray(), atol=1e-6)


@pytest.mark.parametrize("ranker", [TfIdf, BM25])
def test_what_was_given_is_left_as_it_is(ranker: type[TfIdf | BM25]) -> None:
    counts = csr_array((np.array([1.0, 0.0, 2.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    before = [array.copy() for array in (counts.data, counts.indices, counts.indptr)]
    fitted = ranker().fit(counts)
    if isinstance(fitted, TfIdf):
        fitted.transform(counts)
    else:
        fitted.scores(counts)
    for array, was in zip((counts.data, counts.indices, counts.indptr), before, strict=True):
        assert (array == was).all()


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 1.0), (0.0, 0.0)])
def test_bm25_is_the_formula(k1: float, b: float) -> None:
    rng = np.random.default_rng(8)
    documents, queries = rng.poisson(0.4, (40, 30)), rng.poisson(0.2, (12, 30))
    documents[:, 4], documents[7], queries[3] = 0, 0, 0  # a word nobody has, an empty document, an empty query
    queries[0, 4] = 2
    found = BM25(k1, b).fit(csr_array(documents)).scores(csr_array(queries))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, bm25(documents, queries, k1, b), rtol=1e-5, atol=1e-6)


def test_bm25_scores_block_by_block_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_counts(60, seed=6)
    model = BM25().fit(made.counts)
    at_once = model.scores(made.counts)
    monkeypatch.setattr("parabit.baselines.peers._BLOCK", 100)
    assert (model.scores(made.counts) == at_once).all()
    relevant = made.labels[:, None] == made.labels
    assert mean_average_precision(at_once, relevant) > 0.8


def test_without_bm25s_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(BaselineError, match=r"bm25s is not installed; pip install 'parabit\[baselines\]'"):
        BM25().fit(make_counts(5).counts)


@pytest.mark.parametrize("ranker", [TfIdf, BM25])
def test_bad_inputs_are_refused(ranker: type[TfIdf | BM25]) -> None:
    counts = make_counts(5).counts

    def use(fitted: TfIdf | BM25, documents: csr_array) -> object:
        return fitted.transform(documents) if isinstance(fitted, TfIdf) else fitted.scores(documents)

    with pytest.raises(NotFittedError):
        use(ranker(), counts)
    with pytest.raises(BaselineError, match="nothing to fit on: no word in 3 documents"):
        ranker().fit(csr_array((3, 4)))
    with pytest.raises(ValueError, match="X has 9 features"):
        use(ranker().fit(counts), counts[:, :9])
    with pytest.raises(ValueError, match="Negative values"):
        ranker().fit(-counts)
