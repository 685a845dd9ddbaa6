"""Counts of words about made-up topics."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.text import Bags


class Made(NamedTuple):
    counts: csr_array  # (documents, words)
    labels: NDArray[np.int64]  # (documents,) the topic of each


def make_counts(documents: int, topics: int = 4, seed: int = 0, words: int = 40) -> Made:
    """Documents of 30 words; half of them belong to the document's topic, the others to all topics."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(topics, size=documents)
    of_topic = rng.integers(words, size=(documents, 15)) + words * labels[:, None]
    of_all = rng.integers(words, size=(documents, 15)) + words * topics
    dense = np.stack(
        [np.bincount(row, minlength=words * (topics + 1)) for row in np.hstack([of_topic, of_all])]
    )
    return Made(csr_array(dense), labels)


def as_bags(counts: csr_array) -> Bags:
    """Counts as documents, whose words stand in some order."""
    features, times = counts.indices.astype(np.int32), counts.data.astype(np.int32)
    offsets = counts.indptr.astype(np.int64)
    token_offsets = np.concatenate([[0], counts.sum(axis=1).cumsum()])
    return Bags(features, times, offsets, np.repeat(features, times), token_offsets)
