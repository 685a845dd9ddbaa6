import numpy as np
import pytest
from counted import count_ids
from numpy.typing import NDArray

from parabit.progress import Progress
from parabit.training.neighbours import nearest_documents


def cosines(documents: list[list[int]], vocabulary: int) -> NDArray[np.float64]:
    """The TF-IDF cosine of every two documents, written out plainly; no document is like itself."""
    counts = np.stack([np.bincount(document, minlength=vocabulary) for document in documents])
    frequencies = (counts > 0).sum(0)
    idf = np.where(frequencies >= 2, np.log((len(documents) + 1) / np.maximum(frequencies, 1)), 0.0)
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0.0) * idf
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = weights / np.where(norms > 0, norms, 1)
    alike = unit @ unit.T
    np.fill_diagonal(alike, 0.0)
    return alike


def some_documents(number: int, vocabulary: int, longest: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, vocabulary + 1)
    return [
        rng.choice(vocabulary, rng.integers(0, longest), p=frequencies / frequencies.sum()).tolist()
        for _ in range(number)
    ]


@pytest.mark.parametrize(
    ("number", "vocabulary", "longest", "wanted"),
    [(600, 300, 20, 20), (300, 2000, 4, 5), (40, 10, 30, 60), (2, 5, 9, 1)],
)
def test_the_neighbours_are_those_of_a_dense_cosine(number: int, vocabulary: int, longest: int, wanted: int) -> None:
    documents = some_documents(number, vocabulary, longest, seed=number)
    alike = cosines(documents, vocabulary)
    found = nearest_documents(*count_ids(documents, vocabulary), np.arange(number), wanted)
    assert found.shape == (number, wanted)
    for document, row in enumerate(found):
        others = row[row != document]
        possible = np.count_nonzero(alike[document] > 1e-9)
        # A document is its own neighbour only where too few others are like it at all.
        assert len(others) == len(set(others.tolist())) == min(wanted, possible)
        nearest = np.sort(alike[document])[::-1][: len(others)]
        np.testing.assert_allclose(np.sort(alike[document, others])[::-1], nearest, atol=1e-5)


def test_only_allowed_documents_have_neighbours_and_are_some() -> None:
    documents = some_documents(400, 100, 20, seed=1)
    allowed = np.sort(np.random.default_rng(2).choice(400, 300, replace=False))
    alike = cosines(documents, 100)[np.ix_(allowed, allowed)]
    found = nearest_documents(*count_ids(documents, 100), allowed, 10)
    for row, document in enumerate(allowed):
        others = found[document][found[document] != document]
        assert set(others.tolist()) <= set(allowed.tolist())
        of_allowed = np.searchsorted(allowed, others)
        nearest = np.sort(alike[row])[::-1][: len(others)]
        np.testing.assert_allclose(np.sort(alike[row, of_allowed])[::-1], nearest, atol=1e-5)
    for document in set(range(400)) - set(allowed.tolist()):
        assert (found[document] == document).all()


def test_of_more_documents_than_can_be_compared_the_same_part_is_looked_through_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parabit.training.neighbours._LOOKED_THROUGH", 50)
    documents = some_documents(400, 60, 20, seed=5)
    alike = cosines(documents, 60)
    allowed = np.arange(10, 400)
    found, again, other = (nearest_documents(*count_ids(documents, 60), allowed, 4, seed) for seed in (1, 1, 2))
    assert (found == again).all()
    assert (found != other).any()
    own = np.arange(400)[:, None]
    part = np.unique(found[found != own])
    assert len(part) <= 50
    assert set(part.tolist()) <= set(allowed.tolist())
    for document in allowed:
        others = found[document][found[document] != document]
        candidates = part[part != document]
        nearest = np.sort(alike[document, candidates])[::-1][: len(others)]
        np.testing.assert_allclose(np.sort(alike[document, others])[::-1], nearest, atol=1e-5)


def test_a_word_of_one_document_makes_nothing_alike_and_an_equal_document_is_nearest() -> None:
    documents = [[0, 1, 2], [3, 3, 4], [5], [3, 3, 4], [1, 6, 3], []]
    found = nearest_documents(*count_ids(documents, 7), np.arange(6), 1)
    assert found[:, 0].tolist() == [4, 3, 2, 1, 0, 5]


def test_progress_ends_when_all_are_done() -> None:
    told: list[Progress] = []
    nearest_documents(*count_ids(some_documents(600, 50, 9, seed=3), 50), np.arange(600), 3, report=told.append)
    assert [(state.done, state.unit) for state in told] == [(256, "documents"), (512, "documents"), (600, "documents")]
    assert told[-1].share == 1
