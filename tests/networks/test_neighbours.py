import numpy as np
import pytest
import torch
from counted import count_ids
from numpy.typing import NDArray
from torch import Tensor

from parabit.networks import Documents, WordStatistics, neighbours
from parabit.networks.semantics import OfDocuments
from parabit.progress import Progress, Report, silent


def nearest_documents(
    documents: Documents,
    statistics: WordStatistics,
    vectors: Tensor,
    allowed: NDArray[np.int64],
    count: int,
    seed: int = 0,
    report: Report = silent,
) -> NDArray[np.int32]:
    """The neighbours of all documents."""
    every = np.arange(len(documents))
    rows = OfDocuments(every, vectors)
    return neighbours.nearest_documents(documents, statistics, rows, allowed, every, count, seed, report)


def cosines(documents: list[list[int]], vocabulary: int) -> NDArray[np.float64]:
    """The TF-IDF cosine of every two documents, written out plainly."""
    counts = np.stack([np.bincount(document, minlength=vocabulary) for document in documents])
    frequencies = (counts > 0).sum(0)
    idf = np.where(frequencies >= 2, np.log((len(documents) + 1) / np.maximum(frequencies, 1)), 0.0)
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0.0) * idf
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = weights / np.where(norms > 0, norms, 1)
    return unit @ unit.T


def some_documents(number: int, vocabulary: int, longest: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    frequencies = 1 / np.arange(1, vocabulary + 1)
    return [
        rng.choice(vocabulary, rng.integers(0, longest), p=frequencies / frequencies.sum()).tolist()
        for _ in range(number)
    ]


def some_vectors(number: int, dim: int, seed: int, zeros: float = 0.1) -> Tensor:
    """Half floats of length 1, a share of them zero, as the semantic vectors are."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((number, dim))
    vectors[rng.random(number) < zeros] = 0
    return torch.nn.functional.normalize(torch.from_numpy(vectors)).half()


def scores(documents: list[list[int]], vocabulary: int, vectors: Tensor, wanted: int) -> NDArray[np.float64]:
    """The sums of both cosines; -inf for a document itself and what is not among the nearest by the first."""
    semantic = vectors.double().numpy() @ vectors.double().numpy().T
    np.fill_diagonal(semantic, -np.inf)
    last = np.sort(semantic, axis=1)[:, ::-1][:, : 3 * wanted][:, -1:]
    return np.where(semantic >= last, semantic + cosines(documents, vocabulary), -np.inf)


def check(row: NDArray[np.int32], document: int, near: NDArray[np.float64], wanted: int) -> None:
    """Whether these are the nearest, once each, the nearest first; a document fills up its own row."""
    others = row[row != document]
    possible = np.count_nonzero(near > 1e-6)
    assert len(others) == len(set(others.tolist())) == min(wanted, possible)
    assert (row[len(others) :] == document).all()
    np.testing.assert_allclose(near[others], np.sort(near)[::-1][: len(others)], atol=1e-5)


@pytest.mark.parametrize(
    ("number", "vocabulary", "longest", "wanted"),
    [(100, 300, 20, 20), (24, 2000, 4, 5), (40, 10, 30, 60), (2, 5, 9, 1), (600, 300, 20, 4), (300, 50, 9, 1)],
)
def test_the_neighbours_are_those_of_dense_cosines(number: int, vocabulary: int, longest: int, wanted: int) -> None:
    documents = some_documents(number, vocabulary, longest, seed=number)
    # To what is zero all are equally near by the first cosine, and which of them are considered is not said.
    vectors = some_vectors(number, 8, seed=number, zeros=0.1 if number <= 3 * wanted else 0)
    near = scores(documents, vocabulary, vectors, wanted)
    found = nearest_documents(*count_ids(documents, vocabulary), vectors, np.arange(number), wanted)
    assert found.shape == (number, wanted)
    for document, row in enumerate(found):
        check(row, document, near[document], wanted)


def test_only_allowed_documents_have_neighbours_and_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.networks.neighbours._CONSIDERED", 5)  # all of them
    documents, vectors = some_documents(60, 100, 20, seed=1), some_vectors(60, 8, seed=1)
    allowed = np.sort(np.random.default_rng(2).choice(60, 45, replace=False))
    near = scores(documents, 100, vectors, 60)
    forbidden = np.setdiff1d(np.arange(60), allowed)
    near[:, forbidden] = -np.inf
    found = nearest_documents(*count_ids(documents, 100), vectors, allowed, 10)
    for document in allowed:
        check(found[document], document, near[document], 10)
    assert (found[forbidden] == forbidden[:, None]).all()


def test_of_more_documents_than_can_be_compared_the_same_part_is_looked_through_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parabit.networks.neighbours._LOOKED_THROUGH", 50)
    monkeypatch.setattr("parabit.networks.neighbours._CONSIDERED", 5)  # all of them
    documents, vectors = some_documents(400, 60, 20, seed=5), some_vectors(400, 8, seed=5)
    near = scores(documents, 60, vectors, 400)
    allowed = np.arange(10, 400)
    counted = count_ids(documents, 60)
    found, again, other = (nearest_documents(*counted, vectors, allowed, 10, seed) for seed in (1, 1, 2))
    assert (found == again).all()
    assert (found != other).any()
    part = np.unique(found[found != np.arange(400)[:, None]])
    assert len(part) <= 50
    assert set(part.tolist()) <= set(allowed.tolist())
    near[:, np.setdiff1d(np.arange(400), part)] = -np.inf
    for document in allowed:
        check(found[document], document, near[document], 10)


def test_words_choose_among_those_of_the_same_meaning_and_meaning_where_no_word_is_shared() -> None:
    documents = [[0, 1], [2, 3], [0, 1], [2, 3], [0, 4], [4, 5]]
    same = torch.ones(6, 1)
    counted = count_ids(documents, 6)
    assert nearest_documents(*counted, same, np.arange(4), 1)[:4, 0].tolist() == [2, 3, 0, 1]
    apart = torch.nn.functional.one_hot(torch.tensor([0, 0, 1, 1, 2, 2])).float()
    apart[:4] *= 1.5  # meaning that weighs more than the same words
    assert nearest_documents(*counted, apart, np.arange(4), 1)[:4, 0].tolist() == [1, 0, 3, 2]


def test_a_word_of_one_document_makes_nothing_alike_and_an_equal_document_is_nearest() -> None:
    documents = [[0, 1, 2], [3, 3, 4], [5], [3, 3, 4], [1, 6, 3], []]
    found = nearest_documents(*count_ids(documents, 7), torch.zeros(6, 2), np.arange(6), 2)
    assert found[:, 0].tolist() == [4, 3, 2, 1, 0, 5]
    assert found[:, 1].tolist() == [0, 4, 2, 4, 3, 5]  # 4 has two words of others; 2 and 5 have none


def test_what_is_opposite_in_meaning_and_shares_no_word_is_no_neighbour() -> None:
    found = nearest_documents(*count_ids([[0], [1], [0, 1]], 2), torch.tensor([[1.0], [-1.0], [0.0]]), np.arange(2), 1)
    assert found[:, 0].tolist() == [0, 1, 2]


def test_progress_ends_when_all_are_done() -> None:
    told: list[Progress] = []
    counted = count_ids(some_documents(600, 50, 9, seed=3), 50)
    nearest_documents(*counted, some_vectors(600, 4, seed=3), np.arange(600), 3, report=told.append)
    assert [(state.done, state.unit) for state in told] == [(256, "documents"), (512, "documents"), (600, "documents")]
    assert told[-1].share == 1


def test_some_documents_have_the_neighbours_that_they_have_among_all() -> None:
    counted, vectors = count_ids(some_documents(90, 40, 9, seed=4), 40), some_vectors(90, 8, seed=4)
    allowed = np.arange(5, 85)
    everything = nearest_documents(*counted, vectors, allowed, 6)
    for wanted in (np.arange(20, 50), np.array([3, 7, 8, 60, 89])):
        known = np.union1d(wanted, allowed)
        rows = OfDocuments(known, vectors[known])
        found = neighbours.nearest_documents(*counted, rows, allowed, wanted, 6)
        assert (found == everything[wanted]).all()
