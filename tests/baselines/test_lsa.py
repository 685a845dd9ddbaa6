import numpy as np
import pytest
from made_up import make_counts
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from parabit.baselines import LSA, IterativeQuantization, TfIdf
from parabit.evaluation import evaluate_codes, evaluate_vectors


def test_new_documents_of_a_topic_are_near() -> None:
    train, new = make_counts(400, seed=1), make_counts(150, seed=2)
    model = LSA(dim=4).fit(train.counts)
    vectors = model.transform(new.counts)
    alike = vectors @ vectors.T
    same = new.labels[:, None] == new.labels
    assert alike[same].mean() > 0.9
    assert evaluate_vectors(vectors, new.labels).map > 0.99
    codes = IterativeQuantization(4).fit(model.transform(train.counts)).transform(vectors)
    assert evaluate_codes(codes, new.labels).map > 0.9


def test_the_vectors_are_those_of_a_full_decomposition() -> None:
    counts = make_counts(80, seed=3).counts
    weighted = TfIdf().fit(counts).transform(counts).toarray()
    left, values, _ = np.linalg.svd(weighted, full_matrices=False)
    wanted = left[:, :4] * values[:4]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    vectors = LSA(dim=4).fit(counts).transform(counts)
    assert vectors.dtype == np.float32
    # Directions may point either way; products do not depend on it.
    np.testing.assert_allclose(vectors @ vectors.T, wanted @ wanted.T, atol=1e-3)


def test_a_vector_does_not_depend_on_the_batch_and_a_seed_gives_the_same() -> None:
    counts = make_counts(100, seed=4).counts
    model, again = LSA(dim=8, seed=2).fit(counts), LSA(dim=8, seed=2).fit(counts)
    together = model.transform(counts)
    assert (together == again.transform(counts)).all()
    assert (model.transform(counts[[17, 3]]) == together[[17, 3]]).all()


def test_a_document_without_known_words_is_zero() -> None:
    counts = make_counts(50).counts
    vectors = LSA(dim=3).fit(counts).transform(csr_array((2, counts.shape[1])))
    assert (vectors == 0).all()


def test_bad_inputs_are_refused() -> None:
    counts = make_counts(50).counts
    for dim in (0, 51):
        with pytest.raises(ValueError, match=f"dim == {dim}, must be"):
            LSA(dim=dim).fit(counts)
    with pytest.raises(NotFittedError):
        LSA(dim=3).transform(counts)
    with pytest.raises(ValueError, match="X has 7 features"):
        LSA(dim=3).fit(counts).transform(counts[:, :7])
