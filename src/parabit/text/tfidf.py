"""TF-IDF: how much each word tells of a document. Needs no torch."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def inverse_frequencies(document_frequencies: NDArray[Any], documents: int, least: int = 1) -> NDArray[np.float32]:
    """The idf of each word, log((n + 1) / df); 0 for words of fewer than `least` documents.

    Example:
        >>> inverse_frequencies(np.array([9, 1]), documents=9).astype(float).round(2).tolist()
        [0.11, 2.3]
    """
    idf = np.log((documents + 1) / np.maximum(document_frequencies, 1))
    return np.where(document_frequencies < least, 0.0, idf).astype(np.float32)


def tf_idf_rows(
    features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any], idf: NDArray[np.float32]
) -> csr_array:
    """Documents as sparse rows of length 1, a word's weight being (1 + log count) idf; without words, zeros.

    Example:
        >>> features, counts, offsets = np.array([0, 1, 1]), np.array([1, 1, 3]), np.array([0, 2, 3])
        >>> rows = tf_idf_rows(features, counts, offsets, np.array([3.0, 4.0], dtype=np.float32))
        >>> rows.toarray().astype(float).round(2).tolist()
        [[0.6, 0.8], [0.0, 1.0]]
    """
    weights = (1 + np.log(counts)).astype(np.float32) * idf[features]
    rows = csr_array((weights, features, offsets), shape=(len(offsets) - 1, len(idf)))
    norms = np.sqrt(rows.multiply(rows).sum(axis=1))
    rows.data /= np.repeat(np.maximum(norms, 1e-12), np.diff(rows.indptr)).astype(np.float32)
    return rows
