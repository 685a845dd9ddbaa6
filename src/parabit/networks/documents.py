"""A corpus as the plain arrays that training reads, in memory or mapped from disk."""

import warnings
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parabit.ragged import row_entries

_SHORT, _LONG = 120, 170  # distinct words


@dataclass(frozen=True)
class Documents:
    """Documents as word ids in order and as counts; the arrays of a bags folder.

    `predicted` says which tokens are to be predicted, where it is not all of them.

    Example:
        >>> documents = Documents.of_counts(np.array([0, 2, 1]), np.array([1, 1, 3]), np.array([0, 2, 3]))
        >>> len(documents)
        2
    """

    features: NDArray[np.int32]  # (entries,) distinct words and bigrams a document
    counts: NDArray[np.int32]  # (entries,)
    feature_offsets: NDArray[np.int64]  # (documents + 1,)
    tokens: NDArray[np.int32]  # (tokens,)
    token_offsets: NDArray[np.int64]  # (documents + 1,)
    predicted: NDArray[np.bool_] | None = None  # (tokens,)

    @classmethod
    def of_counts(cls, features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any]) -> "Documents":
        """Documents without the order of their words."""
        nothing = np.zeros(0, dtype=np.int32)
        return cls(features, counts, offsets, nothing, np.zeros(len(offsets), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.feature_offsets) - 1

    def take(self, chosen: NDArray[np.int64]) -> "Documents":
        """Some of the documents, in memory."""
        entries, feature_offsets = row_entries(self.feature_offsets, chosen)
        tokens, token_offsets = row_entries(self.token_offsets, chosen)
        return Documents(
            self.features[entries], self.counts[entries], feature_offsets, self.tokens[tokens], token_offsets
        )

    @property
    def eloquence(self) -> float:
        """How far documents speak for themselves: 0 with up to 120 distinct words on the average, 1 from 170 on.

        What a short document is about is told better together with its neighbours; a long one says it all itself.

        Example:
            >>> Documents.of_counts(np.arange(145), np.ones(145), np.array([0, 145])).eloquence
            0.5
        """
        words = len(self.features) / max(len(self), 1)
        return min(max((words - _SHORT) / (_LONG - _SHORT), 0.0), 1.0)

    @property
    def fingerprint(self) -> str:
        """A digest of what is trained on."""
        digest = blake2b(digest_size=16)
        for array in (self.features, self.counts, self.feature_offsets, self.tokens, self.token_offsets):
            for start in range(0, len(array), 1 << 22):  # piece by piece: the arrays may be larger than memory
                digest.update(np.ascontiguousarray(array[start : start + (1 << 22)]).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class WordStatistics:
    """How frequent the words and bigrams are in the corpus."""

    counts: NDArray[np.int64]  # (vocabulary,)
    document_frequencies: NDArray[np.int64]  # (vocabulary,)
    documents: int

    def weights(self, idf_power: float) -> NDArray[np.float32]:
        """What a word's count is multiplied with: how much it tells of a document."""
        if not idf_power:
            return np.ones(len(self.counts), dtype=np.float32)
        idf = np.log((self.documents + 1) / np.maximum(self.document_frequencies, 1))
        return (idf**idf_power).astype(np.float32)

    def frequencies(self, idf_power: float) -> NDArray[np.float32]:
        """How often words are to be predicted, each occurrence by its weight."""
        return self.counts.astype(np.float32) * self.weights(idf_power)


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array as a tensor; on the CPU they share memory."""
    with warnings.catch_warnings():
        # Arrays mapped from disk are not to be written, and nobody does.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array).to(device)
