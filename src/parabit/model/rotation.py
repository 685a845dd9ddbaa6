"""The rotation of iterative quantization: after it, rounding to signs loses little."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def quantizing_rotation(
    vectors: NDArray[np.floating], bits: int | None = None, seed: Any = 0, rounds: int = 50
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The rotation of centred vectors after which rounding to signs loses little, and the squared error per vector.

    From a random rotation R on, two steps alternate: the signs B of the rotated vectors V R, and the rotation that
    brings V nearest to B, by the singular value decomposition of V' B. Neither can make the error |B - V R| larger
    (Y. Gong and S. Lazebnik, "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011; 50
    rounds are theirs). With fewer `bits` than dimensions R has orthonormal columns, and every bit mixes all dimensions.

    Example:
        >>> vectors = np.random.default_rng(0).standard_normal((200, 8))
        >>> rotation, errors = quantizing_rotation(vectors)
        >>> rotation.shape, bool(errors[-1] < errors[0])
        ((8, 8), True)
    """
    dim, one = vectors.shape[1], vectors.dtype.type(1)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, bits or dim)))
    rotation = rotation.astype(vectors.dtype, copy=False)
    squares = (vectors**2).sum(dtype=np.float64) + len(vectors) * rotation.shape[1]  # |V|^2 + |B|^2
    errors = []
    for _ in range(rounds):
        signs = np.where(vectors @ rotation > 0, one, -one)  # B
        left, products, right = np.linalg.svd(vectors.T @ signs, full_matrices=False)
        rotation = left @ right
        errors.append((squares - 2 * products.sum(dtype=np.float64)) / len(vectors))  # the sum is the trace of B' V R
    return rotation, np.array(errors)
