"""The closed form: its steps against what they claim to compute, its results, and its edges."""

import warnings
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit import ParagraphVectors, parallel
from parabit.codes import hamming, unpack
from parabit.corpus import as_corpus
from parabit.model.closed_form import (
    _encoder,
    _ridge_weights,
    _small_ridge,
    _word_vectors,
    default_levels,
    diffuse,
    draw_sample,
    learn,
    learn_closed_form,
    learn_from_counts,
    lsa,
    nearest,
    quantizing_rotation,
    unit,
)
from topics import Topics, make_topics


def random_rows(documents: int = 60, words: int = 40, seed: int = 1) -> csr_array:
    """TF-IDF rows of length 1, about a fifth of the entries not zero."""
    rng = np.random.default_rng(seed)
    dense = rng.random((documents, words)) * (rng.random((documents, words)) < 0.2)
    dense[np.arange(documents), rng.integers(words, size=documents)] += 0.1
    return csr_array(unit(dense.astype(np.float32)))


def columns(rows: csr_array) -> csr_array:
    return rows.T.tocsr()


def test_lsa_spans_the_leading_singular_directions() -> None:
    rng = np.random.default_rng(2)
    dense = rng.random((60, 8)) @ rng.random((8, 40)) * 2.0 ** -np.arange(40) + 0.01 * rng.random(
        (60, 40)
    )
    rows = csr_array(unit(dense.astype(np.float32)))
    found = lsa(rows, columns(rows), 8, np.random.default_rng(0))
    left, singular, _ = np.linalg.svd(rows.toarray())
    exact = left[:, :8] * singular[:8]
    # Each direction has a sign of its own; products of documents do not depend on it.
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=1e-3)


def test_neighbours_are_the_nearest_by_vectors_and_words_together() -> None:
    rows = random_rows(25)
    vectors = unit(np.random.default_rng(3).standard_normal((25, 5)).astype(np.float32))
    scores = vectors @ vectors.T + (rows @ rows.T).toarray()
    np.fill_diagonal(scores, -np.inf)
    assert (nearest(vectors, rows) == np.argsort(-scores, axis=1)[:, :10]).all()


def test_a_document_is_no_neighbour_of_itself_among_its_copies() -> None:
    vectors, rows = np.ones((50, 3), np.float32), csr_array(np.ones((50, 1), np.float32))
    found = nearest(vectors, rows)
    assert found.shape == (50, 10)
    assert not (found == np.arange(50)[:, None]).any()


def test_diffusion_moves_documents_towards_their_neighbours() -> None:
    vectors = unit(np.random.default_rng(4).standard_normal((30, 6)).astype(np.float32))
    neighbours = nearest(vectors, csr_array(np.ones((30, 1), dtype=np.float32)))

    def alike(rows: np.ndarray) -> float:
        return float((rows[:, None] * rows[neighbours]).sum(axis=2).mean())

    assert (
        alike(diffuse(vectors, neighbours, 0.7))
        > alike(diffuse(vectors, neighbours, 0.3))
        > alike(vectors)
    )
    np.testing.assert_allclose(diffuse(vectors, neighbours, 0.0), vectors, atol=1e-6)


def centred_clusters(dim: int = 12) -> NDArray[np.float64]:
    """Centred vectors in clusters."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((10, dim)) * np.linspace(3, 0.3, dim)
    vectors: NDArray[np.float64] = centres[rng.integers(10, size=300)] + 0.3 * rng.standard_normal(
        (300, dim)
    )
    vectors -= vectors.mean(0)
    return vectors


@pytest.mark.parametrize(("dim", "bits"), [(1, 1), (2, 2), (12, 12), (12, 5)])
@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_rotations_are_orthogonal_and_no_round_adds_error(
    dim: int, bits: int, dtype: type, precision: float
) -> None:
    vectors: NDArray[Any] = centred_clusters(dim).astype(dtype)
    rotation = quantizing_rotation(vectors, bits)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(bits), atol=precision)
    assert (np.abs(rotation) > 1e-6).all()  # every bit mixes all dimensions
    errors = [
        error(vectors, quantizing_rotation(vectors, bits, rounds=rounds)) for rounds in range(51)
    ]
    assert errors[50] == error(vectors, rotation)  # 50 rounds, if nothing else is said
    assert (np.diff(errors) <= precision * errors[0]).all()


def error(vectors: NDArray[np.floating], rotation: NDArray[np.floating]) -> float:
    """How far vectors are from the signs that they are rounded to, rotated back."""
    signs = np.where(vectors @ rotation > 0, 1, -1)
    return float(((vectors - signs @ rotation.T) ** 2).sum(dtype=np.float64))


def test_rotated_corners_of_a_cube_are_rotated_back() -> None:
    corners = np.where(np.random.default_rng(1).random((200, 4)) < 0.5, -1.0, 1.0)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))
    rotated = corners @ turn
    errors = [error(rotated, quantizing_rotation(rotated, seed=seed)) for seed in range(4)]
    assert min(errors) == pytest.approx(0, abs=1e-12)


def test_word_vectors_are_log_odds_of_the_mean_code_shrunk_for_rare_words() -> None:
    rows = csr_array(np.array([[1, 0], [1, 0], [1, 0], [0, 1]], dtype=np.float32))
    targets = np.array([[1], [1], [-1], [-1]], dtype=np.float32)
    sums = np.array([3, 1])
    means = np.array([1, -1]) / (sums + np.median(sums))
    np.testing.assert_allclose(
        _word_vectors(columns(rows), targets)[:, 0], np.arctanh(means), rtol=1e-5
    )


def test_both_ridge_regressions_solve_their_normal_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "parabit.model.closed_form._DIRECT_ROUNDS", 8
    )  # as many as words: exact but for rounding
    rng, rows = np.random.default_rng(5), random_rows(20, 8)
    targets = rng.standard_normal((20, 3)).astype(np.float32)
    dense = rows.toarray().astype(np.float64)
    exact = np.linalg.solve(dense.T @ dense + np.eye(8), dense.T @ targets)
    np.testing.assert_allclose(
        columns(rows) @ _ridge_weights(rows, columns(rows), targets), exact, atol=1e-4
    )
    square = dense.T @ dense
    ridge = 0.01 * np.trace(square) / 8
    exact = np.linalg.solve(square + ridge * np.eye(8), dense.T @ targets)
    np.testing.assert_allclose(_small_ridge(dense.astype(np.float32), targets), exact, rtol=1e-3)


def test_the_encoder_is_centred_and_its_levels_have_the_same_scale() -> None:
    rows = random_rows(200, 60)
    rng = np.random.default_rng(6)
    targets = [
        rng.standard_normal((200, size)).astype(np.float32) * scale
        for size, scale in ((6, 1), (3, 100))
    ]
    matrix, offset = _encoder(rows, columns(rows), targets)
    activations = rows @ matrix + offset
    fine, coarse = activations[:, :6].std(), activations[:, 6:].std()
    assert 0.5 < fine / coarse < 2
    assert np.abs(activations.mean()) < 0.3 * fine


@given(st.integers(8, 1024))
def test_levels_add_up_and_get_shorter(size: int) -> None:
    levels = default_levels(size)
    assert sum(levels) == size
    assert all(finer > coarser >= 1 for finer, coarser in pairwise(levels))


@pytest.mark.parametrize("bits", [8, 16, 32, 128, 200])
def test_codes_of_one_topic_are_near_each_other_also_for_new_texts(
    topics: Topics, bits: int
) -> None:
    learned, fresh = topics.texts[:200], topics.texts[200:]
    codes = ParagraphVectors(bits).fit(learned).transform(fresh)
    same = np.equal.outer(topics.labels[200:], topics.labels[200:])
    distances = hamming(codes, codes) / bits
    assert distances[same].mean() < 0.5 * distances[~same].mean()


def test_a_level_is_a_code_of_its_own(topics: Topics) -> None:
    model = ParagraphVectors(64, levels=(40, 16, 8), output="bits").fit(topics.texts)
    assert model.levels_ == (40, 16, 8)
    bits, same = model.transform(topics.texts), np.equal.outer(topics.labels, topics.labels)
    for start, end in ((0, 40), (40, 56), (56, 64)):
        level = bits[:, start:end].astype(int)
        distances = np.abs(level[:, None] - level[None]).mean(axis=2)
        assert distances[same].mean() < 0.5 * distances[~same].mean()


def test_a_seed_gives_the_same_model_on_any_number_of_cores(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def learned(cores: int, seed: int) -> dict[str, np.ndarray]:
        monkeypatch.setattr(parallel._limits, "cores", cores, raising=False)
        texts = make_topics(2500).texts  # more than one block of documents
        return learn_closed_form(as_corpus(texts), 32, seed=seed).tensors

    one, two, other = learned(1, 7), learned(2, 7), learned(2, 8)
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    assert one["weights"].tobytes() != other["weights"].tobytes()


EDGES = {
    "one document": ["hubble space telescope"],
    "two documents": ["hubble telescope", "ice hockey"],
    "three with nothing in common": ["hubble telescope", "ice hockey", "linear algebra"],
    "twenty": [" ".join(text.split()[:5]) for text in make_topics(20).texts],
    "one word each": [text.split()[0] for text in make_topics(100).texts],
    "all equal": ["hubble space telescope"] * 40,
    "five words": [" ".join(words) for words in product(["aa", "bb", "cc", "dd", "ee"], repeat=3)],
    "long": [" ".join(make_topics(200, seed).texts) for seed in range(4)],
    "empty among others": ["", "hubble telescope", "...", "telescope in orbit", "ice hockey"] * 5,
    "many with words of their own": [f"{a}{b}{c}q" for a, b, c in product("abcdefghijk", repeat=3)],
}


@pytest.mark.parametrize("bits", [8, 128, 1024])
@pytest.mark.parametrize("texts", EDGES.values(), ids=EDGES)
def test_it_works_at_the_edges(texts: list[str], bits: int) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        encoder = learn_closed_form(as_corpus(texts), bits)
    few = sum(any(character.isalpha() for character in text) for text in texts) < bits
    assert [str(warning.message)[:15] for warning in warned] == ["fewer documents"] * few
    inferred = encoder.infer(texts)
    assert np.isfinite(inferred.vectors).all()
    assert inferred.codes is not None
    has_words = np.array([any(character.isalpha() for character in text) for text in texts])
    assert (inferred.codes.any(axis=1) | ~has_words | (bits == 8)).all()
    if (
        bits == 128 and len(set(texts)) < 30
    ):  # the codes tell documents apart where that is possible
        assert len({code.tobytes() for code in inferred.codes[has_words]}) == len(
            {t for t in texts if t.strip(".")}
        )


@pytest.mark.parametrize(
    ("bits", "dim", "shape"), [(None, 20, (0, 20)), (28, 300, (28, 300)), (16, None, (16, 16))]
)
def test_vectors_are_the_activations_before_rounding(
    topics: Topics, bits: int | None, dim: int | None, shape: tuple[int, int]
) -> None:
    encoder = learn_closed_form(as_corpus(topics.texts), bits, dim)
    codes, activations, vectors, _ = encoder.infer(topics.texts)
    assert vectors.shape == (300, shape[1])
    cosines = unit(vectors) @ unit(vectors).T
    same = np.equal.outer(topics.labels, topics.labels)
    assert cosines[same].mean() > cosines[~same].mean() + 0.5
    assert (codes is None) == (activations is None) == (bits is None)
    if bits is not None and codes is not None and activations is not None:
        assert activations.shape == (300, shape[0])
        assert (unpack(codes, bits) == (activations > 0)).all()


def test_words_of_a_single_document_are_dropped_from_many_documents_and_kept_in_few() -> None:
    for documents, kept in ((999, True), (1000, False)):
        counts = np.zeros((documents, 4), dtype=np.int32)
        counts[:, 0], counts[::2, 1], counts[5, 2], counts[::3, 3] = 1, 1, 3, 1
        words, _, tensors = learn_from_counts(csr_array(counts), [(8,)])
        assert words.tolist() == [True, True, kept, True]
        assert len(tensors["weights"]) == 3 + kept


def test_rows_without_words_change_nothing() -> None:
    rows = random_rows(30)
    with_empty = csr_array(np.concatenate([rows.toarray(), np.zeros((5, 40), np.float32)]))
    assert learn(rows, [(16,)])[0].tobytes() == learn(with_empty, [(16,)])[0].tobytes()


def test_a_sample_is_drawn_in_one_pass_in_order_and_with_equal_chances() -> None:
    texts = [str(number) for number in range(60)]
    chosen = np.zeros(60)
    for seed in range(400):
        sample, documents = draw_sample(as_corpus(texts), 15, seed)
        numbers = [int(text) for text in sample]
        assert (documents, len(numbers)) == (60, 15)
        assert numbers == sorted(numbers)
        chosen[numbers] += 1
    assert chosen.min() > 60  # 100 are expected, with a standard deviation of 9
    assert chosen.max() < 140
    assert draw_sample(as_corpus(texts), 15, 3) == draw_sample(as_corpus(texts), 15, 3)
    assert draw_sample(as_corpus(texts), None) == (texts, len(texts))


def test_a_sample_of_long_texts_is_bounded_by_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parabit.model.closed_form._SAMPLED_CHARACTERS", 1000)
    assert len(draw_sample(as_corpus(["x" * 100] * 500), 400)[0]) == 10
    assert len(draw_sample(as_corpus(["x" * 5000] * 3), 400)[0]) == 1


def test_a_model_of_a_sample_knows_the_sample(topics: Topics) -> None:
    encoder = learn_closed_form(as_corpus(topics.texts), 16, sample=100)
    assert encoder.config["training"]["documents"] == 300
    assert encoder.config["training"]["sampled"] == encoder.vocabulary.documents == 100
