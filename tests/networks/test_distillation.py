from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from counted import count, count_ids
from numpy.typing import NDArray

from parabit.codes import hamming, pack
from parabit.linear_encoder import LinearEncoder
from parabit.networks import Documents, Trained, WordStatistics, distill, train
from parabit.networks.distillation import _THROUGH, _least_squares, _ridge
from parabit.networks.recipe import preset
from parabit.networks.semantics import SparseRows, weigh
from parabit.networks.shape import Shape, choose_shape
from parabit.progress import Progress
from topics import Topics

CPU = torch.device("cpu")
LEARNED, NEW = 200, 100
NETWORKS: dict[str, tuple[Shape, dict[str, Any]]] = {
    "Binary PV-DBOW": (choose_shape(32), {"preset": "default", "warm_up": 1}),
    "Real-Binary PV-DBOW": (choose_shape(32, dim=40), {"preset": "default", "warm_up": 1}),
    "PV-DBOW": (choose_shape(None, dim=24), {"preset": "default", "warm_up": 1}),
    "Binary PV-DBOW, paper": (choose_shape(32), {"preset": "paper", "batch_size": 32}),
    "Binary PV-DM": (choose_shape(32, architecture="dm"), {"preset": "paper", "batch_size": 1000}),
    "PV-DM": (choose_shape(None, dim=24, architecture="dm"), {"preset": "paper", "batch_size": 1000}),
}

Corpus = tuple[Documents, WordStatistics]


@pytest.fixture(scope="module")
def corpus(topics: Topics) -> Corpus:
    """The first part of the texts are learned from; the others are as if new."""
    documents, _ = count(topics.texts)
    features = documents.features[: documents.feature_offsets[LEARNED]]
    tokens = documents.tokens[: documents.token_offsets[LEARNED]]
    words = int(documents.features.max()) + 1
    statistics = WordStatistics(
        np.bincount(tokens, minlength=words), np.bincount(features, minlength=words), documents=LEARNED
    )
    return documents, statistics


@pytest.fixture(scope="module", params=NETWORKS)
def trained(request: pytest.FixtureRequest, corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    shape, changes = NETWORKS[request.param]
    documents, statistics = corpus
    learning = {"epochs": 6, "samples": 0, "word_accumulator_start": 1e-4} | changes
    recipe = preset(learning.pop("preset"), shape, **learning)
    scratch: Path = tmp_path_factory.mktemp("scratch")
    return train(documents.take(np.arange(LEARNED)), statistics, shape, recipe, scratch, device="cpu")


@pytest.fixture(scope="module")
def encoder(trained: Trained, corpus: Corpus) -> LinearEncoder:
    documents, statistics = corpus
    return distill(documents.take(np.arange(LEARNED)), statistics, trained.network.words, trained.embeddings)


def embed(encoder: LinearEncoder, documents: Documents) -> NDArray[np.float32]:
    return encoder.embed(documents.features, documents.counts, documents.feature_offsets)


def signs(trained: Trained, embedded: NDArray[np.float32]) -> NDArray[np.bool_]:
    projection = trained.network.projection
    return (embedded if projection is None else embedded @ projection.numpy()) > 0


def test_the_signs_of_documents_learned_from_are_mostly_those_that_training_found(
    trained: Trained, encoder: LinearEncoder, corpus: Corpus
) -> None:
    found = signs(trained, embed(encoder, corpus[0])[:LEARNED])
    expected = signs(trained, trained.embeddings.numpy())
    agreement = (found == expected).mean()
    shuffled = (found == np.roll(expected, 1, axis=0)).mean()  # what another document's signs would give
    assert agreement > 0.9
    assert agreement > shuffled + 0.1


def test_new_documents_are_near_those_of_their_topic(
    trained: Trained, encoder: LinearEncoder, corpus: Corpus, topics: Topics
) -> None:
    new = pack(signs(trained, embed(encoder, corpus[0])[LEARNED:]))
    distances = hamming(new, pack(signs(trained, trained.embeddings.numpy())))
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :10]
    labels = np.array(topics.labels)
    assert (labels[nearest] == labels[LEARNED:, None]).mean() > 0.85  # of four topics


def test_embeddings_are_about_as_large_as_those_that_training_found(
    trained: Trained, encoder: LinearEncoder, corpus: Corpus
) -> None:
    found, expected = embed(encoder, corpus[0])[:LEARNED], trained.embeddings.numpy()
    assert 0.7 < (found - found.mean(0)).std() / (expected - expected.mean(0)).std() < 1.1


def test_it_is_kept_in_half_floats_with_the_statistics_of_the_corpus(
    trained: Trained, encoder: LinearEncoder, corpus: Corpus
) -> None:
    statistics = corpus[1]
    dim = trained.embeddings.shape[1]
    assert (encoder.matrix.shape, encoder.matrix.dtype) == ((len(statistics.counts), dim), np.float16)
    assert (encoder.offset.shape, encoder.offset.dtype) == ((dim,), np.float32)
    assert np.isfinite(encoder.matrix).all()
    assert (encoder.document_frequencies == statistics.document_frequencies).all()
    assert encoder.documents == LEARNED


def made_up(seed: int = 0) -> tuple[Documents, WordStatistics, torch.Tensor, torch.Tensor]:
    """40 documents of random words, and random words and embeddings of a network."""
    rng = np.random.default_rng(seed)
    documents, statistics = count_ids([rng.integers(0, 60, 12).tolist() for _ in range(40)], 60)
    words, embeddings = rng.standard_normal((60, 7)), rng.standard_normal((40, 5)) + 1
    return documents, statistics, torch.from_numpy(words).float(), torch.from_numpy(embeddings).float()


def test_the_ridge_regression_comes_to_the_direct_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.networks.distillation._ROUNDS", 30)
    documents, statistics, _, wanted = made_up()
    matrix = weigh(documents, statistics, np.arange(40), least=1)
    rows, transposed = SparseRows.of(matrix, CPU), SparseRows.of(matrix.T.tocsr(), CPU)
    told: list[int] = []
    found = _ridge(rows, transposed, wanted, told.append)
    dense = matrix.toarray().astype(np.float64)
    expected = np.linalg.solve(dense.T @ dense + 0.3 * np.eye(60), dense.T @ wanted.double().numpy())
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-3)
    assert told == list(range(1, 31))


def test_conjugate_gradients_that_have_arrived_stay_where_they_are() -> None:
    documents, statistics = count_ids([[0], [1]], 2)
    matrix = weigh(documents, statistics, np.arange(2), least=1)
    rows, transposed = SparseRows.of(matrix, CPU), SparseRows.of(matrix.T.tocsr(), CPU)
    wanted = torch.tensor([[2.6, 0.0], [-1.3, 0.0]])  # solved by the first round, and before it
    np.testing.assert_allclose(_ridge(rows, transposed, wanted, lambda _: None), [[2.0, 0], [-1.0, 0]], atol=1e-5)


def test_the_small_map_is_nearly_that_of_least_squares() -> None:
    rng = np.random.default_rng(2)
    rows, wanted = rng.standard_normal((50, 6)) + 3, rng.standard_normal((50, 4))
    centre = rows.mean(0)
    found = _least_squares(*(torch.from_numpy(array).float() for array in (rows, centre, wanted)))
    expected = np.linalg.lstsq(rows - centre, wanted)[0]
    np.testing.assert_allclose(found.numpy(), expected, atol=2e-3)


def test_the_encoder_is_a_share_of_each_map_at_the_scale_that_is_wanted() -> None:
    documents, statistics, words, embeddings = made_up()
    dense = weigh(documents, statistics, np.arange(40), least=1).toarray().astype(np.float64)
    target = embeddings.double().numpy()
    mean, scale = target.mean(0), (target - target.mean(0)).std()
    free = dense @ np.linalg.solve(dense.T @ dense + 0.3 * np.eye(60), dense.T @ (target - mean))
    through = dense @ words.double().numpy()
    through -= through.mean(0)
    small = through @ np.linalg.lstsq(through, target - mean)[0]
    expected = scale * ((1 - _THROUGH) * free / free.std() + _THROUGH * small / small.std()) + mean / 2
    found = embed(distill(documents, statistics, words, embeddings), documents)
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_documents_without_words_are_not_learned_from_and_are_zero() -> None:
    documents, statistics, words, embeddings = made_up()
    # One document without words, with an embedding that would change everything.
    more = Documents.of_counts(
        documents.features,
        documents.counts,
        np.concatenate([documents.feature_offsets, documents.feature_offsets[-1:]]),
    )
    without = distill(documents, statistics, words, embeddings)
    found = distill(more, statistics, words, torch.cat([embeddings, torch.full((1, 5), 1e6)]))
    assert (found.matrix == without.matrix).all()
    assert (found.offset == without.offset).all()
    assert not embed(found, more)[-1].any()
    assert embed(found, more)[:-1].all()


def test_of_many_documents_a_random_part_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    documents, statistics, words, embeddings = made_up()
    monkeypatch.setattr("parabit.networks.distillation._LEARNED_FROM", 25)
    one, again, other = (distill(documents, statistics, words, embeddings, seed) for seed in (1, 1, 2))
    assert (one.matrix == again.matrix).all()
    assert (one.matrix != other.matrix).any()


def test_documents_that_are_all_alike_get_the_mean_of_their_embeddings_and_no_rounding_error() -> None:
    rng = np.random.default_rng(4)
    documents, statistics = count_ids([[0, 1, 1, 2]] * 9, 3)
    words = torch.from_numpy(rng.standard_normal((3, 4))).float()
    embeddings = torch.from_numpy(rng.standard_normal((9, 6)) + 2).float()
    found = embed(distill(documents, statistics, words, embeddings), documents)
    np.testing.assert_allclose(found, np.tile(embeddings.mean(0) / 2, (9, 1)), atol=0.01)


def test_embeddings_that_are_all_alike_are_given_back_by_half() -> None:
    documents, statistics, words, _ = made_up()
    for value in (0.0, 3.0):
        found = embed(distill(documents, statistics, words, torch.full((40, 5), value)), documents)
        np.testing.assert_allclose(found, np.full((40, 5), value / 2), atol=1e-3)


def test_progress_ends_with_the_last_round() -> None:
    told: list[Progress] = []
    distill(*made_up(), report=told.append)
    assert told[-1].share == 1
    assert {progress.stage for progress in told} == {"fast encoder"}
