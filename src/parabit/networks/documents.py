"""A corpus as the plain arrays that training reads."""

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.ragged import row_offsets

if TYPE_CHECKING:  # training on arrays alone, as `parabit reproduce` does on a GPU machine, needs no polars
    from parabit.text import BatchBags, Vocabulary


@dataclass(frozen=True)
class Documents:
    """Documents as word ids in order (for dm) and as counts (for dbow).

    Example:
        >>> documents = Documents.of_counts(np.array([0, 2, 1]), np.array([1, 1, 3]), np.array([0, 2, 3]))
        >>> len(documents)
        2
    """

    features: NDArray[np.int32]  # (entries,) the distinct words and bigrams of each document
    counts: NDArray[np.int32]  # (entries,)
    feature_offsets: NDArray[np.int64]  # (documents + 1,)
    tokens: NDArray[np.int32]  # (tokens,)
    token_offsets: NDArray[np.int64]  # (documents + 1,)

    @classmethod
    def of_counts(cls, features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any]) -> "Documents":
        """Documents without the order of their words."""
        return cls(features, counts, offsets, np.zeros(0, dtype=np.int32), np.zeros(len(offsets), dtype=np.int64))

    @classmethod
    def of_bags(cls, bags: "BatchBags") -> "Documents":
        """Documents as the text stage gives them."""
        features, tokens = row_offsets(bags.feature_lengths), row_offsets(bags.token_lengths)
        return cls(bags.features, bags.counts, features, bags.tokens, tokens)

    def __len__(self) -> int:
        return len(self.feature_offsets) - 1

    @property
    def fingerprint(self) -> str:
        """A digest of what is trained on."""
        digest = blake2b(digest_size=16)
        for array in (self.features, self.counts, self.feature_offsets, self.tokens, self.token_offsets):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class WordStatistics:
    """How frequent the words and bigrams are in the corpus."""

    counts: NDArray[np.int64]  # (vocabulary,) occurrences
    document_frequencies: NDArray[np.int64]  # (vocabulary,)
    documents: int

    @classmethod
    def of(cls, vocabulary: "Vocabulary") -> "WordStatistics":
        """The statistics of a vocabulary."""
        return cls(vocabulary.counts, vocabulary.document_frequencies, vocabulary.documents)
