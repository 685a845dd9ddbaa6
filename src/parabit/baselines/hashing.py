"""Bits from real vectors without a network: random hyperplanes, and a learned rotation."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from parabit.baselines.inputs import check_fitted, check_size, check_vectors
from parabit.codes import pack
from parabit.errors import BaselineError
from parabit.model.rotation import quantizing_rotation


class RandomHyperplanes:
    """One bit per random hyperplane: on which side of it a vector lies.

    Two vectors differ in a bit with probability angle / pi (M. Charikar, "Similarity estimation techniques from
    rounding algorithms", STOC 2002). Nothing is learned; `fit` only sees how many dimensions there are. There may be
    more bits than dimensions: every further bit improves the estimate of the angle. Sparse vectors work too.

    Example:
        >>> from parabit.codes import hamming
        >>> vectors = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]])
        >>> codes = RandomHyperplanes(bits=16).fit(vectors).transform(vectors)
        >>> hamming(codes[:1], codes)
        array([[ 0,  0, 16]], dtype=int32)
    """

    planes_: NDArray[np.float64]  # (dim, bits)

    def __init__(self, bits: int, seed: int = 0) -> None:
        self.bits = bits
        self.seed = seed

    def fit(self, vectors: NDArray[Any] | csr_array) -> Self:
        """Draw hyperplanes for vectors of this many dimensions."""
        check_size("bits", self.bits)
        rows = _rows(vectors)
        self.planes_ = np.random.default_rng(self.seed).standard_normal((rows.shape[1], self.bits))
        return self

    def transform(self, vectors: NDArray[Any] | csr_array) -> NDArray[np.uint8]:
        """The packed codes of vectors."""
        check_fitted(self, "planes_")
        return pack(_rows(vectors, len(self.planes_)) @ self.planes_ > 0)


class IterativeQuantization:
    """Principal components, rotated so that rounding them to signs loses little.

    Vectors are centred and projected to as many principal components as there are bits (Y. Gong and S. Lazebnik,
    "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011).

    After `fit`, `errors_` has the squared error per vector after each round.

    Example:
        >>> vectors = np.random.default_rng(0).standard_normal((200, 12))
        >>> quantization = IterativeQuantization(bits=8).fit(vectors)
        >>> bool(quantization.errors_[-1] < quantization.errors_[0])
        True
        >>> quantization.transform(vectors[:3]).shape
        (3, 1)
    """

    mean_: NDArray[np.float64]  # (dim,)
    components_: NDArray[np.float64]  # (dim, bits) orthonormal columns
    rotation_: NDArray[np.float64]  # (bits, bits)
    errors_: NDArray[np.float64]  # (rounds,)

    def __init__(self, bits: int, seed: int = 0, rounds: int = 50) -> None:
        self.bits = bits
        self.seed = seed
        self.rounds = rounds

    def fit(self, vectors: NDArray[Any]) -> Self:
        """Learn the components and the rotation of training vectors."""
        rows = check_vectors(vectors)
        check_size("rounds", self.rounds)
        check_size("bits", self.bits, most=rows.shape[1], of="dimensions of the vectors")
        self.mean_ = rows.mean(axis=0)
        centred = rows - self.mean_
        _, directions = np.linalg.eigh(centred.T @ centred)  # by ascending variance
        self.components_ = directions[:, ::-1][:, : self.bits]
        projected = centred @ self.components_  # (documents, bits)
        self.rotation_, self.errors_ = quantizing_rotation(projected, seed=self.seed, rounds=self.rounds)
        return self

    def transform(self, vectors: NDArray[Any]) -> NDArray[np.uint8]:
        """The packed codes of vectors."""
        check_fitted(self, "rotation_")
        rows = check_vectors(vectors, len(self.mean_))
        return pack((rows - self.mean_) @ (self.components_ @ self.rotation_) > 0)


def _rows(vectors: Any, dim: int | None = None) -> Any:
    """Dense vectors, or sparse ones as they are."""
    sparse = bool(issparse(vectors))
    if not sparse:
        return check_vectors(vectors, dim)
    if dim is not None and vectors.shape[1] != dim:
        raise BaselineError(
            f"the vectors have {vectors.shape[1]} dimensions, and the baseline was fitted on {dim}",
            hint="compute both in the same way",
        )
    return vectors
