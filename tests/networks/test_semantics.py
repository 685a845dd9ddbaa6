import numpy as np
import pytest
import torch
from counted import count, count_ids
from numpy.typing import NDArray
from torch import Tensor

from parabit.networks import Documents, WordStatistics
from parabit.networks.semantics import OfDocuments, Quantization, SparseRows, sample, semantic_vectors, smoothed, weigh
from topics import Topics

CPU = torch.device("cpu")

Corpus = tuple[Documents, WordStatistics]


@pytest.fixture(scope="module")
def corpus(topics: Topics) -> Corpus:
    """150 documents of a topic each, of some 200 words."""
    return count(topics.texts[:150])


def vectors_of(corpus: Corpus, dim: int, fitted: NDArray[np.int64] | None = None, seed: int = 0) -> Tensor:
    fitted = np.arange(len(corpus[0])) if fitted is None else fitted
    return semantic_vectors(*corpus, fitted, np.arange(len(corpus[0])), dim, seed, CPU).values.float()


def tf_idf(documents: Documents, statistics: WordStatistics) -> NDArray[np.float64]:
    """The documents' rows of length 1, written out plainly; a word of a single document weighs nothing."""
    counts = np.zeros((len(documents), len(statistics.counts)))
    owners = np.repeat(np.arange(len(documents)), np.diff(documents.feature_offsets))
    counts[owners, documents.features] = documents.counts
    frequencies = statistics.document_frequencies
    idf = np.log((statistics.documents + 1) / np.maximum(frequencies, 1)) * (frequencies >= 2)
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return unit(weights)


def unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 1e-9)


def projected(corpus: Corpus, dim: int, fitted: NDArray[np.int64]) -> NDArray[np.float64]:
    """All documents on the first right singular vectors of some of them, by numpy's decomposition."""
    rows = tf_idf(*corpus)
    _, _, right = np.linalg.svd(rows[fitted], full_matrices=False)
    return unit(rows @ right[:dim].T)


def columns_apart(found: Tensor, expected: NDArray[np.float64]) -> float:
    """How far two results are apart where each column may have the other sign."""
    mine = found.numpy().astype(np.float64)
    signs = np.sign((mine * expected).sum(0))
    return float(np.abs(mine * signs - expected).max())


def test_vectors_are_the_projections_on_the_first_singular_vectors(corpus: Corpus) -> None:
    # The topics' directions stand out, so that each column is one direction, up to its sign.
    everything = np.arange(150)
    assert columns_apart(vectors_of(corpus, 4), projected(corpus, 4, everything)) < 5e-3


@pytest.mark.parametrize("dim", [4, 150])
def test_the_cosines_of_vectors_are_those_of_a_full_decomposition(corpus: Corpus, dim: int) -> None:
    found, expected = vectors_of(corpus, dim), projected(corpus, dim, np.arange(150))
    np.testing.assert_allclose((found @ found.T).numpy(), expected @ expected.T, atol=5e-3)


def test_documents_that_were_not_fitted_are_projected_too(corpus: Corpus) -> None:
    fitted = np.arange(0, 150, 2)
    assert columns_apart(vectors_of(corpus, 4, fitted), projected(corpus, 4, fitted)) < 5e-3


def test_what_is_not_fitted_says_nothing_about_the_directions(corpus: Corpus) -> None:
    documents, statistics = corpus
    fitted = np.arange(100)
    others = Documents.of_counts(
        np.concatenate([documents.features[: documents.feature_offsets[100]], [3, 7]]).astype(np.int32),
        np.concatenate([documents.counts[: documents.feature_offsets[100]], [1, 5]]).astype(np.int32),
        np.concatenate([documents.feature_offsets[:101], documents.feature_offsets[100:101] + 2]),
    )
    assert torch.equal(vectors_of((others, statistics), 8, fitted)[:100], vectors_of(corpus, 8, fitted)[:100])


def test_rows_have_length_one(corpus: Corpus) -> None:
    np.testing.assert_allclose(vectors_of(corpus, 16).norm(dim=1), 1, atol=1e-3)


def test_with_fewer_documents_than_dimensions_the_last_columns_are_zero() -> None:
    corpus = count_ids([[0, 1], [1, 2], [0, 2, 2]], 3)
    found = vectors_of(corpus, 10)
    assert found.shape == (3, 10)
    assert not found[:, 3:].any()
    np.testing.assert_allclose((found @ found.T).numpy(), tf_idf(*corpus) @ tf_idf(*corpus).T, atol=2e-3)


def test_rounding_errors_make_no_directions(corpus: Corpus) -> None:
    documents, statistics = corpus
    repeated = documents.take(np.tile(np.arange(9), 6))
    found = vectors_of((repeated, statistics), 40)
    assert found[:, :9].abs().amax(0).min() > 0.05
    assert not found[:, 9:].any()


def test_documents_without_words_and_those_with_words_of_their_own_alone_are_zero() -> None:
    documents = [[0, 1], [], [0, 1], [2, 2], [0], []]
    found = vectors_of(count_ids(documents, 3), 4)
    assert found.any(dim=1).tolist() == [True, False, True, False, True, False]


def test_a_document_that_has_nothing_in_the_space_is_zero_and_not_some_rounding_error() -> None:
    documents = [[0, 1, 2]] * 10 + [[3, 4]] * 4 + [[5, 6]] * 2
    corpus = count_ids(documents, 7)
    assert vectors_of(corpus, 1).abs().round(decimals=3)[:, 0].tolist() == [1] * 10 + [0] * 6
    assert vectors_of(corpus, 2).norm(dim=1).round(decimals=3).tolist() == [1] * 14 + [0] * 2
    assert vectors_of(corpus, 9, np.arange(10)).norm(dim=1).round(decimals=3).tolist() == [1] * 10 + [0] * 6


def test_nothing_in_common_is_all_zero() -> None:
    assert not vectors_of(count_ids([[0], [1, 2]], 3), 3).any()


def test_the_same_seed_gives_the_same_vectors_and_another_seed_others(corpus: Corpus) -> None:
    one, again, other = (vectors_of(corpus, 20, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_of_more_documents_than_are_fitted_a_random_part_gives_the_directions(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parabit.networks.semantics._FITTED", 60)
    monkeypatch.setattr("parabit.networks.semantics._PROJECTED_AT_ONCE", 40)
    allowed = np.arange(10, 150)
    for seed in (1, 2):
        part = sample(allowed, 60, seed)
        assert columns_apart(vectors_of(corpus, 3, allowed, seed), projected(corpus, 3, part)) < 5e-3
    assert columns_apart(vectors_of(corpus, 3, allowed, 1), projected(corpus, 3, sample(allowed, 60, 2))) > 0.02


def test_a_sample_is_sorted_without_repetition_and_everything_where_there_is_no_more() -> None:
    documents = np.arange(5, 105)
    part = sample(documents, 30, seed=1)
    assert len(part) == 30
    assert (np.diff(part) > 0).all()
    assert set(part.tolist()) < set(documents.tolist())
    assert (part != sample(documents, 30, seed=2)).any()
    assert (sample(documents, 100, seed=1) == documents).all()


def test_weights_are_those_of_tf_idf(corpus: Corpus) -> None:
    chosen = np.array([3, 3, 140, 0])
    np.testing.assert_allclose(weigh(*corpus, chosen).toarray(), tf_idf(*corpus)[chosen], atol=1e-6)


def test_a_sparse_product_is_the_dense_one_with_rows_that_are_empty() -> None:
    corpus = count_ids([[], [0, 1], [], [0, 2], [0, 1, 2], []], 3)
    rows = weigh(*corpus, np.arange(6))
    dense = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))
    product = SparseRows.of(rows, CPU) @ dense
    np.testing.assert_allclose(product.numpy(), rows.toarray() @ dense.numpy(), atol=1e-6)


def test_smoothed_vectors_lie_between_their_own_place_and_the_mean_of_their_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 6))
    neighbours = rng.integers(30, size=(30, 4))
    expected = unit(0.7 * unit(rows) + 0.3 * unit(rows)[neighbours].mean(1))
    monkeypatch.setattr("parabit.networks.semantics._PROJECTED_AT_ONCE", 7)
    every = np.arange(len(rows))
    others = OfDocuments(every, torch.from_numpy(neighbours.astype(np.int32)))
    found = smoothed(OfDocuments(every, torch.from_numpy(rows)), torch.from_numpy(every), others, 0.3)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_what_has_no_neighbour_but_itself_is_left_where_it_is() -> None:
    rows = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    both = np.arange(2)
    itself = OfDocuments(both, torch.tensor([[0, 0], [1, 1]]))
    found = smoothed(OfDocuments(both, rows.half()), torch.arange(2), itself, 0.5)
    np.testing.assert_allclose(found.numpy(), [[0.6, 0.8], [0, 0]], atol=1e-6)


@pytest.fixture
def rows() -> Tensor:
    """Vectors that lie around a point far from zero."""
    rng = np.random.default_rng(2)
    return torch.from_numpy((rng.standard_normal((90, 5)) * [3, 2, 1, 1, 0.2] + 4).astype(np.float32))


def test_quantized_vectors_have_mean_zero_and_deviation_one_over_those_fitted(rows: Tensor) -> None:
    fitted = np.arange(20, 90)
    found = Quantization.of(rows[fitted], seed=1)(rows)[20:]
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-5)
    assert float(found.std(correction=0)) == pytest.approx(1, abs=1e-4)


def test_quantization_turns_and_keeps_distances_up_to_their_scale(rows: Tensor) -> None:
    before, after = torch.cdist(rows, rows), torch.cdist(*[Quantization.of(rows, seed=1)(rows)] * 2)
    scale = float(before.norm() / after.norm())
    np.testing.assert_allclose(after.numpy() * scale, before.numpy(), atol=0.02)


def test_signs_lose_less_after_quantization_than_before() -> None:
    corners = np.where(np.random.default_rng(3).random((200, 6)) < 0.5, -1.0, 1.0)
    turn = np.linalg.qr(np.random.default_rng(4).standard_normal((6, 6)))[0]
    turned = torch.from_numpy((corners @ turn).astype(np.float32))
    found = Quantization.of(turned, seed=0)(turned)

    def loss(vectors: Tensor) -> float:
        return float((vectors - vectors.sign()).square().mean())

    assert loss(found) < 0.5 * loss((turned - turned.mean(0)) / turned.std())


def test_vectors_that_are_all_alike_are_near_zero_and_not_some_rounding_error() -> None:
    rounding = torch.tensor([0.0, 1e-7, 2e-7, 0.0, -1e-7, 0.0])[:, None]
    alike = torch.full((6, 3), 0.5) + rounding
    assert Quantization.of(alike, seed=0)(alike).abs().max() < 0.01
