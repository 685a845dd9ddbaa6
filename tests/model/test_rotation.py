import numpy as np
import pytest
from numpy.typing import NDArray

from parabit.model.closed_form import quantizing_rotation


def some_vectors(dim: int = 12) -> NDArray[np.float64]:
    """Centred vectors in clusters."""
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((10, dim)) * np.linspace(3, 0.3, dim)
    vectors: NDArray[np.float64] = centres[rng.integers(10, size=300)] + 0.3 * rng.standard_normal((300, dim))
    vectors -= vectors.mean(0)
    return vectors


@pytest.mark.parametrize("dim", [1, 2, 12])
@pytest.mark.parametrize(("dtype", "precision"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_it_is_orthogonal_and_no_round_makes_the_error_larger(dim: int, dtype: type, precision: float) -> None:
    rotation, errors = quantizing_rotation(some_vectors(dim).astype(dtype))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(dim), atol=precision)
    assert errors.shape == (50,)
    assert (np.diff(errors) <= precision * errors[0]).all()


def test_the_error_is_that_of_the_signs_before_the_last_rotation() -> None:
    vectors = some_vectors()
    before, _ = quantizing_rotation(vectors, seed=3, rounds=4)
    after, errors = quantizing_rotation(vectors, seed=3, rounds=5)
    signs = np.where(vectors @ before > 0, 1, -1)
    assert errors[-1] == pytest.approx(((signs - vectors @ after) ** 2).sum(axis=1).mean())


def test_rotated_corners_of_a_cube_are_rotated_back() -> None:
    corners = np.where(np.random.default_rng(1).random((200, 4)) < 0.5, -1.0, 1.0)
    turn, _ = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))
    errors = [quantizing_rotation(corners @ turn, seed=seed)[1][-1] for seed in range(4)]
    assert min(errors) == pytest.approx(0, abs=1e-12)


def test_with_fewer_bits_than_dimensions_every_bit_mixes_all_of_them() -> None:
    rotation, errors = quantizing_rotation(some_vectors(), bits=5)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(5), atol=1e-12)
    assert (np.abs(rotation) > 1e-6).all()
    assert (np.diff(errors) <= 1e-12 * errors[0]).all()


def test_a_seed_gives_the_same_rotation_and_another_seed_another() -> None:
    first, again, other = (quantizing_rotation(some_vectors(), seed=seed)[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
