"""What documents are about before a network is trained: latent semantic analysis of their TF-IDF weights.

(S. Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990.) The neighbours of documents are looked for
in this space, and their embeddings start in it.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from parabit.networks import sum_rows
from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.seeds import generator
from parabit.rotation import quantizing_rotation
from parabit.weighting import inverse_frequencies, tf_idf_rows

_FITTED = 32_768  # documents: more do not change the directions of a collection much
_PROJECTED_AT_ONCE = 4096  # documents
_OVERSAMPLING, _ROUNDS = 16, 4  # of the randomized singular value decomposition
_TURNS = 20  # rounds of the rotation's search: more gain nothing before training
_NOTHING = 1e-4  # of a document of length 1: with less in the space it has only rounding error there
_ALIKE = 1e-4  # deviation of vectors of length 1: below it there is only the rounding of half floats
_SMALLEST = 1e-5  # singular value, beside the largest: below it there is only rounding error


class SparseRows(NamedTuple):
    """A sparse matrix on a device, to be multiplied with dense ones: its entries, one row after the other."""

    columns: Tensor  # (entries,)
    starts: Tensor  # (rows,)
    values: Tensor  # (entries,)

    @classmethod
    def of(cls, matrix: csr_array, device: torch.device) -> "SparseRows":
        """A matrix on the device."""
        return cls(
            torch.from_numpy(matrix.indices.astype(np.int64)).to(device),
            torch.from_numpy(matrix.indptr[:-1].astype(np.int64)).to(device),
            torch.from_numpy(matrix.data).to(device),
        )

    def __matmul__(self, dense: Tensor) -> Tensor:
        return sum_rows(dense, self.columns, self.starts, self.values)


def weigh(documents: Documents, statistics: WordStatistics, chosen: NDArray[np.int64], least: int = 2) -> csr_array:
    """Some documents as TF-IDF rows; a word of a single document makes no two documents alike."""
    mine = documents.take(chosen)
    idf = inverse_frequencies(statistics.document_frequencies, statistics.documents, least)
    return tf_idf_rows(mine.features, mine.counts, mine.feature_offsets, idf)


def sample(documents: NDArray[np.int64], most: int, seed: int) -> NDArray[np.int64]:
    """The documents, or a random part of so many, in their order."""
    if len(documents) <= most:
        return documents
    return np.sort(np.random.default_rng([seed, 3]).choice(documents, most, replace=False))


class OfDocuments:
    """Rows of some documents, found by the documents' numbers.

    Example:
        >>> rows = OfDocuments(np.array([3, 5, 9]), torch.tensor([30.0, 50.0, 90.0]))
        >>> rows[torch.tensor([9, 3])].tolist()
        [90.0, 30.0]
    """

    def __init__(self, documents: NDArray[np.int64], values: Tensor) -> None:
        self.values = values  # (documents, ...)
        self._first = int(documents[0]) if len(documents) else 0
        in_a_row = len(documents) and int(documents[-1]) - self._first == len(documents) - 1
        self.device = values.device
        self._numbers = None if in_a_row else torch.from_numpy(documents).to(values.device)

    def __getitem__(self, documents: Tensor) -> Tensor:
        if self._numbers is None:
            return self.values[documents - self._first if self._first else documents]
        return self.values[torch.searchsorted(self._numbers, documents)]


def semantic_vectors(
    documents: Documents,
    statistics: WordStatistics,
    fitted: NDArray[np.int64],
    chosen: NDArray[np.int64],
    dim: int,
    seed: int,
    device: torch.device,
) -> OfDocuments:
    """Documents in the space of the first singular vectors of those that are fitted, those that are chosen,
    as (dim,) half floats.

    Rows have length 1, or 0 for a document that has nothing there. Where there are fewer singular vectors than asked
    for, the last columns are zero.

    Example:
        >>> words, counts, offsets = np.array([0, 1, 0, 1, 2]), np.ones(5, dtype=np.int32), np.array([0, 2, 4, 5])
        >>> documents = Documents.of_counts(words, counts, offsets)
        >>> statistics = WordStatistics(np.array([2, 2, 2]), np.array([2, 2, 2]), documents=3)
        >>> vectors = semantic_vectors(documents, statistics, np.arange(3), np.arange(3), 2, 0, torch.device("cpu"))
        >>> vectors = vectors.values.float()
        >>> (vectors @ vectors.T).abs().round().tolist()
        [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    directions = _directions(weigh(documents, statistics, sample(fitted, _FITTED, seed)), dim, seed, device)
    found = torch.zeros(len(chosen), dim, dtype=torch.float16, device=device)
    if not directions.shape[1]:  # no two documents have a word in common
        return OfDocuments(chosen, found)
    for first in range(0, len(chosen), _PROJECTED_AT_ONCE):
        mine = chosen[first : first + _PROJECTED_AT_ONCE]
        projected = SparseRows.of(weigh(documents, statistics, mine), device) @ directions
        projected[projected.norm(dim=1) < _NOTHING] = 0
        found[first : first + len(mine), : directions.shape[1]] = torch.nn.functional.normalize(projected).half()
    return OfDocuments(chosen, found)


def _directions(rows: csr_array, dim: int, seed: int, device: torch.device) -> Tensor:
    """The words in the space of the first singular vectors: (words, at most dim).

    A randomized decomposition (N. Halko et al., "Finding structure with randomness", SIAM Review 2011) that
    orthogonalizes on the side of the documents alone, of which there are never too many.
    """
    here, transposed = SparseRows.of(rows, device), SparseRows.of(rows.T.tocsr(), device)
    size = min(dim + _OVERSAMPLING, *rows.shape)
    rng = generator(seed, "semantics", device=torch.device("cpu"))
    basis = torch.randn(len(rows.indptr) - 1, size, generator=rng).to(device)
    for _ in range(_ROUNDS):
        basis = here @ (transposed @ _orthogonal(basis))
    projected = transposed @ _orthogonal(basis)  # (words, size)
    squares, directions = torch.linalg.eigh((projected.T @ projected).double().cpu())  # ascending
    wanted = squares > squares[-1].clamp(min=1e-12) * _SMALLEST**2
    scaled = directions[:, wanted] / squares[wanted].sqrt()
    found: Tensor = projected @ scaled.flip(1)[:, :dim].float().to(device)
    return found


def _orthogonal(basis: Tensor) -> Tensor:
    """A basis of the same space; in rows, as sparse products read it: in columns they take six times as long."""
    found: Tensor = torch.linalg.qr(basis)[0].contiguous()
    return found


def smoothed(vectors: OfDocuments, documents: Tensor, neighbours: OfDocuments | None, share: float) -> Tensor:
    """The vectors of some documents moved towards the mean of their neighbours', at length 1: (documents, dim)."""
    own = torch.nn.functional.normalize(vectors[documents].float())
    if neighbours is None:
        return own
    others = torch.nn.functional.normalize(vectors[neighbours[documents].long()].float(), dim=2)
    return torch.nn.functional.normalize((1 - share) * own + share * others.mean(1))


class Quantization(NamedTuple):
    """Turns vectors so that their signs lose little; the mean comes to zero and the deviation to 1."""

    mean: Tensor  # (dim,)
    turn: Tensor  # (dim, dim)

    @classmethod
    def of(cls, vectors: Tensor, seed: int) -> "Quantization":
        """That of some vectors."""
        mean = vectors.mean(0)
        centred = (vectors - mean).numpy(force=True)
        rotation, _ = quantizing_rotation(centred, seed, _TURNS)
        deviation = max(float(np.sqrt((centred.astype(np.float64) ** 2).mean())), _ALIKE)
        return cls(mean, torch.from_numpy((rotation / deviation).astype(np.float32)).to(vectors.device))

    def __call__(self, vectors: Tensor) -> Tensor:
        """The vectors turned."""
        return (vectors - self.mean) @ self.turn
