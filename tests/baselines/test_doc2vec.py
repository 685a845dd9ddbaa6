import sys

import numpy as np
import pytest
from made_up import Made, make_counts
from sklearn.exceptions import NotFittedError

from parabit.baselines import Doc2Vec
from parabit.errors import BaselineError
from parabit.evaluation import evaluate_vectors
from parabit.progress import Progress
from parabit.text import Bags


def in_order(made: Made, order: bool = True, rows: list[int] | None = None) -> Bags:
    """Counts as documents, or some of them, whose words stand in some order."""
    matrix = made.counts if rows is None else made.counts[rows]
    features, counts = matrix.indices.astype(np.int32), matrix.data.astype(np.int32)
    offsets = matrix.indptr.astype(np.int64)
    if not order:
        return Bags.of_counts(features, counts, offsets)
    lengths = matrix.sum(axis=1)
    return Bags(features, counts, offsets, np.repeat(features, counts), np.concatenate([[0], lengths.cumsum()]))


def test_new_documents_of_a_topic_are_near_and_a_vector_is_the_same_at_each_call() -> None:
    pytest.importorskip("gensim")
    train, new = make_counts(250, topics=3, seed=1), make_counts(100, topics=3, seed=2)
    model = Doc2Vec(dim=12, epochs=30, workers=1).fit(in_order(train))
    documents = in_order(new)
    told: list[Progress] = []
    vectors = model.transform(documents, report=told.append)
    assert vectors.shape == (100, 12)
    assert vectors.dtype == np.float32
    assert evaluate_vectors(vectors, new.labels).map > 0.9
    assert told == [Progress("inferring", 100, "documents", 1.0)]
    assert (model.transform(documents) == vectors).all()
    assert (model.transform(in_order(new, rows=[40, 7])) == vectors[[40, 7]]).all()
    again = Doc2Vec(dim=12, epochs=30, workers=1).fit(in_order(train))
    assert (again.transform(in_order(new, rows=[0, 1, 2, 3, 4])) == vectors[:5]).all()


def test_a_document_without_known_words_is_zero() -> None:
    pytest.importorskip("gensim")
    made = make_counts(20)
    model = Doc2Vec(dim=4, epochs=1, workers=1).fit(in_order(made))
    strange = Bags.of_counts(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(3, np.int64))
    unknown = Bags(*([np.array([999], np.int32)] * 2), np.array([0, 1]), np.array([999], np.int32), np.array([0, 1]))
    assert (model.transform(strange) == np.zeros((2, 4))).all()
    assert (model.transform(unknown) == np.zeros((1, 4))).all()


def test_bad_inputs_are_told_in_words() -> None:
    pytest.importorskip("gensim")
    made = make_counts(20)
    with pytest.raises(ValueError, match="dim == 0, must be >= 1"):
        Doc2Vec(dim=0).fit(in_order(made))
    with pytest.raises(NotFittedError):
        Doc2Vec(dim=4).transform(in_order(made))
    with pytest.raises(BaselineError, match="the documents have counts, but not the order of their words"):
        Doc2Vec(dim=4).fit(in_order(made, order=False))
    with pytest.raises(BaselineError, match="there is nothing to fit on: 0 documents without words"):
        Doc2Vec(dim=4).fit(in_order(made, rows=[]))


def test_without_gensim_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models.doc2vec", None)
    with pytest.raises(BaselineError, match=r"gensim is not installed; pip install 'parabit\[baselines\]'"):
        Doc2Vec(dim=4).fit(in_order(make_counts(5)))
