import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from parabit.model.linear_encoder import LinearEncoder, steady_product

WORDS, DIM = 50, 21
RNG = np.random.default_rng(1)
ENCODER = LinearEncoder(
    RNG.standard_normal((WORDS, DIM)).astype(np.float16),
    RNG.standard_normal(DIM).astype(np.float32),
    RNG.integers(1, 41, WORDS),
    documents=40,
)

Bag = dict[int, int]
BAGS = st.lists(st.dictionaries(st.integers(0, WORDS - 1), st.integers(1, 500), max_size=20), min_size=1, max_size=20)


def embed(bags: list[Bag]) -> NDArray[np.float32]:
    features = np.array([word for bag in bags for word in sorted(bag)], dtype=np.int32)
    counts = np.array([bag[word] for bag in bags for word in sorted(bag)], dtype=np.int32)
    return ENCODER.embed(features, counts, np.cumsum([0, *(len(bag) for bag in bags)]))


@given(bags=BAGS)
def test_an_embedding_is_the_weighted_mean_of_the_words_rows_and_the_offset(bags: list[Bag]) -> None:
    counts = np.zeros((len(bags), WORDS))
    for row, bag in zip(counts, bags, strict=True):
        row[list(bag)] = list(bag.values())
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * np.log(41 / ENCODER.document_frequencies)
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    expected = weights / np.where(norms > 0, norms, 1) @ ENCODER.matrix.astype(np.float64) + ENCODER.offset
    expected[norms[:, 0] == 0] = 0  # no words, not even the offset
    np.testing.assert_allclose(embed(bags), expected, atol=1e-5)


@settings(max_examples=60)
@given(bags=BAGS, data=st.data())
def test_a_documents_embedding_is_the_same_alone_in_any_batch_and_in_any_order(
    bags: list[Bag], data: st.DataObject
) -> None:
    together = embed(bags)
    for place, bag in enumerate(bags):
        assert embed([bag]).tobytes() == together[place].tobytes()
    chosen = data.draw(st.lists(st.integers(0, len(bags) - 1), max_size=30))
    assert embed([bags[place] for place in chosen]).tobytes() == together[chosen].tobytes()


def test_no_documents_have_no_embeddings() -> None:
    assert embed([]).shape == (0, DIM)


@pytest.mark.parametrize("columns", [1, 5, 8, 16, 28, 33, 128])
@pytest.mark.parametrize("dim", [1, 10, 300])
def test_a_row_of_a_steady_product_is_the_same_alone_and_among_any_others(dim: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    rows = rng.standard_normal((300, dim)).astype(np.float32)
    matrix = rng.standard_normal((dim, columns)).astype(np.float32)
    together = steady_product(rows, matrix)
    np.testing.assert_allclose(together, rows.astype(np.float64) @ matrix, atol=1e-4)
    for place in range(0, 300, 7):
        assert steady_product(rows[place : place + 1], matrix).tobytes() == together[place].tobytes()
    order = rng.permutation(300)
    assert steady_product(rows[order], matrix).tobytes() == together[order].tobytes()
    assert steady_product(rows[:100], matrix).tobytes() == together[:100].tobytes()
    assert steady_product(rows, matrix, block=64).tobytes() == together.tobytes()


def test_a_steady_product_takes_rows_and_matrices_as_they_lie_in_memory() -> None:
    rng = np.random.default_rng(3)
    rows, matrix = rng.standard_normal((9, 6)).astype(np.float32), rng.standard_normal((6, 4)).astype(np.float32)
    expected = steady_product(rows, matrix)
    assert steady_product(np.asfortranarray(rows), np.asfortranarray(matrix)).tobytes() == expected.tobytes()
    wide = np.repeat(rows, 2, axis=1)
    assert steady_product(wide[:, ::2], matrix).tobytes() == expected.tobytes()


def test_a_steady_product_of_no_rows_has_none() -> None:
    assert steady_product(np.zeros((0, 3), np.float32), np.zeros((3, 5), np.float32)).shape == (0, 5)
