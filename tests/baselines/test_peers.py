import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from made_up import as_bags, make_counts
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.baselines.peers import (
    BM25,
    LSA,
    Doc2Vec,
    IterativeQuantization,
    RandomHyperplanes,
    TfIdf,
)
from parabit.baselines.semantic_hashing import SemanticHashing
from parabit.codes import hamming, unpack
from parabit.errors import BaselineError
from parabit.evaluation import evaluate_codes, evaluate_vectors
from parabit.text import Bags

Hashing = Callable[..., RandomHyperplanes]


@pytest.fixture
def vectors() -> NDArray[np.float64]:
    """Vectors in clusters, of 20 dimensions that are not alike."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((10, 20)) * np.linspace(3, 0.3, 20) + 2
    return centres[rng.integers(10, size=400)] + 0.3 * rng.standard_normal((400, 20))


@pytest.mark.parametrize("angle", [0.1, 1.0, 3.0])
def test_hyperplanes_part_two_vectors_as_often_as_their_angle_says(angle: float) -> None:
    pair = np.array([[1.0, 0.0], [7 * np.cos(angle), 7 * np.sin(angle)]])
    bits, share = 20_000, angle / np.pi
    codes = RandomHyperplanes(bits, seed=3).fit(pair).transform(pair)
    spread = np.sqrt(share * (1 - share) / bits)
    assert abs(hamming(codes[:1], codes[1:])[0, 0] / bits - share) < 4 * spread


def test_itq_rotates_the_components_of_largest_variance_so_that_signs_lose_little(
    vectors: NDArray[np.float64],
) -> None:
    found = IterativeQuantization(12).fit(vectors)
    projected = (vectors - vectors.mean(axis=0)) @ found.planes_
    spectrum = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2 / len(vectors)
    np.testing.assert_allclose(projected.var(axis=0).sum(), spectrum[:12].sum())
    assert (unpack(found.transform(vectors), 12) == (projected > 0)).all()
    rng = np.random.default_rng(0)
    for _ in range(20):
        rotated = projected @ np.linalg.qr(rng.standard_normal((12, 12)))[0]
        assert ((np.sign(rotated) - rotated) ** 2).sum() > (
            (np.sign(projected) - projected) ** 2
        ).sum()


@pytest.mark.parametrize("hashing", [RandomHyperplanes, IterativeQuantization])
def test_a_seed_gives_the_same_codes_and_another_seed_others(
    hashing: Hashing, vectors: NDArray[np.float64]
) -> None:
    first, again, other = (
        hashing(16, seed=seed).fit(vectors).transform(vectors) for seed in (1, 1, 2)
    )
    assert first.shape == (400, 2)
    assert (first == again).all()
    assert (first != other).any()
    assert hashing(12).fit(vectors).transform(vectors[:0]).shape == (0, 2)


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (2.0, 1.0), (0.0, 0.0)])
def test_bm25_is_the_formula(k1: float, b: float) -> None:
    rng = np.random.default_rng(8)
    documents, queries = rng.poisson(0.4, (40, 30)), rng.poisson(0.2, (12, 30))
    documents[:, 4], documents[7], queries[3] = (
        0,
        0,
        0,
    )  # a word nobody has, an empty document, an empty query
    queries[0, 4] = 2
    frequencies = (documents > 0).sum(axis=0)
    idf = np.log(1 + (40 - frequencies + 0.5) / (frequencies + 0.5))
    lengths = documents.sum(axis=1)
    damping = k1 * (1 - b + b * lengths / lengths.mean())
    weights = idf * documents / np.maximum(documents + damping[:, None], 1e-9)  # (documents, words)
    given = csr_array(documents)
    found = BM25(k1, b).fit(given).scores(csr_array(queries))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, queries @ weights.T, rtol=1e-5, atol=1e-6)
    assert (given.toarray() == documents).all()  # what was given is left as it is


def test_lsa_puts_new_documents_of_a_topic_near_and_its_codes_too() -> None:
    train, new = make_counts(400, seed=1), make_counts(150, seed=2)
    model = LSA(dim=4).fit(train.counts)
    vectors = model.transform(new.counts)
    assert evaluate_vectors(vectors, new.labels).map > 0.99
    codes = IterativeQuantization(4).fit(model.transform(train.counts)).transform(vectors)
    assert evaluate_codes(codes, new.labels).map > 0.9
    assert (
        model.transform(csr_array((2, new.counts.shape[1]))) == 0
    ).all()  # documents without known words


def test_lsa_vectors_are_those_of_a_full_decomposition_alone_and_in_a_batch() -> None:
    counts = make_counts(80, seed=3).counts
    left, values, _ = np.linalg.svd(
        TfIdf().fit(counts).transform(counts).toarray(), full_matrices=False
    )
    wanted = left[:, :4] * values[:4]
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    model = LSA(dim=4).fit(counts)
    vectors = model.transform(counts)
    # Directions may point either way; products do not depend on it.
    np.testing.assert_allclose(vectors @ vectors.T, wanted @ wanted.T, atol=1e-3)
    assert (LSA(dim=4).fit(counts).transform(counts) == vectors).all()
    assert (model.transform(counts[[17, 3]]) == vectors[[17, 3]]).all()


def test_doc2vec_puts_new_documents_of_a_topic_near_and_gives_the_same_vector_at_each_call() -> (
    None
):
    pytest.importorskip("gensim")
    train, new = make_counts(250, topics=3, seed=1), make_counts(100, topics=3, seed=2)
    model = Doc2Vec(dim=12, epochs=30, workers=1).fit(as_bags(train.counts))
    vectors = model.transform(as_bags(new.counts))
    assert evaluate_vectors(vectors, new.labels).map > 0.9
    assert (model.transform(as_bags(new.counts[[40, 7]])) == vectors[[40, 7]]).all()
    again = Doc2Vec(dim=12, epochs=30, workers=1).fit(as_bags(train.counts))
    assert (again.transform(as_bags(new.counts[:5])) == vectors[:5]).all()
    number, offsets = np.array([999], np.int32), np.array([0, 1])
    unknown = Bags(number, number, offsets, number, offsets)
    assert (model.transform(unknown) == np.zeros((1, 12))).all()


MADE = make_counts(20).counts
VECTORS = np.random.default_rng(0).standard_normal((30, 20))
SMALL: dict[str, Any] = {"hidden": (4,), "epochs": 1, "device": "cpu"}

WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: IterativeQuantization(21).fit(VECTORS), ValueError, "bits == 21, must be <= 20"),
    (lambda: LSA(21).fit(MADE), ValueError, "dim == 21, must be <= 20"),
    (lambda: SemanticHashing(8).transform(MADE), BaselineError, "it was fitted on 0; fit it first"),
    (
        lambda: SemanticHashing(8, **SMALL).fit(MADE).transform(MADE[:, :9]),
        BaselineError,
        "counts of 9 words, but",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), WRONG)
def test_wrong_input_is_explained(
    call: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=re.escape(words)):
        call()


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("bm25s", BM25().fit),
        ("gensim.models.doc2vec", lambda counts: Doc2Vec(dim=4).fit(as_bags(counts))),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    library: str, call: Callable[[csr_array], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    package = library.partition(".")[0]
    remedy = "run pip install '.[baselines]' in a copy of the repository"
    missing = f"{package} is not installed; {remedy}"
    with pytest.raises(BaselineError, match=re.escape(missing)):
        call(MADE)
