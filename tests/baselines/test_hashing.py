from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from parabit.baselines import IterativeQuantization, RandomHyperplanes
from parabit.codes import hamming, unpack

HASHINGS: list[Callable[[int], RandomHyperplanes | IterativeQuantization]] = [RandomHyperplanes, IterativeQuantization]


@pytest.fixture
def vectors() -> NDArray[np.float64]:
    """Vectors in clusters, of 20 dimensions that are not alike."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((10, 20)) * np.linspace(3, 0.3, 20) + 2
    return centres[rng.integers(10, size=400)] + 0.3 * rng.standard_normal((400, 20))


@pytest.mark.parametrize("angle", [0.1, 0.5, 1.0, np.pi / 2, 3.0])
def test_hyperplanes_part_two_vectors_as_often_as_their_angle_says(angle: float) -> None:
    pair = np.array([[1.0, 0.0], [7 * np.cos(angle), 7 * np.sin(angle)]])
    bits = 20_000
    codes = RandomHyperplanes(bits, seed=3).fit(pair).transform(pair)
    share = angle / np.pi
    spread = np.sqrt(share * (1 - share) / bits)
    assert abs(hamming(codes[:1], codes[1:])[0, 0] / bits - share) < 4 * spread


def test_hyperplanes_take_sparse_vectors_as_they_take_dense_ones(vectors: NDArray[np.float64]) -> None:
    vectors[vectors < 1] = 0
    hyperplanes = RandomHyperplanes(32).fit(vectors)
    assert (hyperplanes.transform(csr_array(vectors)) == hyperplanes.transform(vectors)).all()
    assert (RandomHyperplanes(32).fit(csr_array(vectors)).planes_ == hyperplanes.planes_).all()
    with pytest.raises(ValueError, match="X has 3 features, but RandomHyperplanes is expecting 20"):
        hyperplanes.transform(csr_array((2, 3)))


@pytest.mark.parametrize("bits", [5, 12, 20])
def test_the_rotation_is_orthogonal_and_the_error_never_grows(bits: int, vectors: NDArray[np.float64]) -> None:
    found = IterativeQuantization(bits).fit(vectors)
    np.testing.assert_allclose(found.rotation_ @ found.rotation_.T, np.eye(bits), atol=1e-12)
    np.testing.assert_allclose(found.components_.T @ found.components_, np.eye(bits), atol=1e-12)
    assert len(found.errors_) == 50
    assert (np.diff(found.errors_) <= 1e-9).all()


def test_the_error_is_lower_than_that_of_random_rotations(vectors: NDArray[np.float64]) -> None:
    found = IterativeQuantization(12).fit(vectors)
    projected = (vectors - vectors.mean(axis=0)) @ found.components_
    rng = np.random.default_rng(0)
    for _ in range(20):
        rotated = projected @ np.linalg.qr(rng.standard_normal((12, 12)))[0]
        assert ((np.where(rotated > 0, 1, -1) - rotated) ** 2).sum() / len(vectors) > found.errors_[-1]


def test_the_components_are_those_of_the_largest_variance(vectors: NDArray[np.float64]) -> None:
    found = IterativeQuantization(6).fit(vectors)
    variances = ((vectors - vectors.mean(axis=0)) @ found.components_).var(axis=0)
    spectrum = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2 / len(vectors)
    np.testing.assert_allclose(variances, spectrum[:6])


def test_codes_are_the_signs_of_the_rotated_components(vectors: NDArray[np.float64]) -> None:
    found = IterativeQuantization(12).fit(vectors)
    rotated = (vectors - vectors.mean(axis=0)) @ found.components_ @ found.rotation_
    assert (unpack(found.transform(vectors), 12) == (rotated > 0)).all()


@pytest.mark.parametrize("hashing", HASHINGS)
def test_a_seed_gives_the_same_codes_and_another_seed_others(
    hashing: Callable[..., RandomHyperplanes | IterativeQuantization], vectors: NDArray[np.float64]
) -> None:
    first, again, other = (hashing(16, seed=seed).fit(vectors).transform(vectors) for seed in (1, 1, 2))
    assert first.shape == (400, 2)
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("hashing", HASHINGS)
def test_what_cannot_be_hashed_is_refused(
    hashing: Callable[[int], RandomHyperplanes | IterativeQuantization], vectors: NDArray[np.float64]
) -> None:
    with pytest.raises(ValueError, match="bits == 0, must be >= 1"):
        hashing(0).fit(vectors)
    with pytest.raises(NotFittedError):
        hashing(8).transform(vectors)
    with pytest.raises(ValueError, match="X has 19 features"):
        hashing(8).fit(vectors).transform(vectors[:, :19])
    for wrong in (vectors[:0], vectors[0], np.where(vectors > 0, vectors, np.nan)):
        with pytest.raises(ValueError, match="0 sample|1D array|NaN"):
            hashing(8).fit(wrong)


def test_more_bits_than_dimensions_cannot_be_rotated(vectors: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="bits == 21, must be <= 20"):
        IterativeQuantization(21).fit(vectors)
    with pytest.raises(TypeError, match="[Ss]parse"):
        IterativeQuantization(4).fit(csr_array(vectors))  # type: ignore[arg-type]


@pytest.mark.parametrize("hashing", HASHINGS)
def test_no_vectors_have_no_codes(
    hashing: Callable[[int], RandomHyperplanes | IterativeQuantization], vectors: NDArray[np.float64]
) -> None:
    assert hashing(12).fit(vectors).transform(vectors[:0]).shape == (0, 2)
