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


def tf_idf_weights(
    features: NDArray[Any], counts: NDArray[Any], rows: NDArray[Any], documents: int, idf: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The weight of each entry, (1 + log count) idf, scaled so that each document has length 1.

    `rows` is the document of each entry. A document's weights do not depend on the others.

    Example:
        >>> features, counts, rows = np.array([0, 1, 1]), np.array([1, 1, 3]), np.array([0, 0, 1])
        >>> tf_idf_weights(features, counts, rows, 2, np.array([3.0, 4.0], dtype=np.float32)).round(2).tolist()
        [0.6000000238418579, 0.800000011920929, 1.0]
    """
    weights = (1 + np.log(counts)) * idf[features]
    lengths = np.sqrt(np.bincount(rows, weights * weights, documents))
    scaled: NDArray[np.float32] = (weights / np.maximum(lengths, 1e-12)[rows]).astype(np.float32)
    return scaled


def tf_idf_rows(
    features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any], idf: NDArray[np.float32]
) -> csr_array:
    """Documents as sparse rows of length 1; without words, zeros.

    Example:
        >>> features, counts, offsets = np.array([0, 1, 1]), np.array([1, 1, 3]), np.array([0, 2, 3])
        >>> rows = tf_idf_rows(features, counts, offsets, np.array([3.0, 4.0], dtype=np.float32))
        >>> rows.toarray().astype(float).round(2).tolist()
        [[0.6, 0.8], [0.0, 1.0]]
    """
    documents = len(offsets) - 1
    weights = tf_idf_weights(features, counts, np.repeat(np.arange(documents), np.diff(offsets)), documents, idf)
    if offsets[-1] < np.iinfo(np.int32).max:  # half the memory, and faster products
        features, offsets = features.astype(np.int32, copy=False), offsets.astype(np.int32)
    return csr_array((weights, features, offsets), shape=(documents, len(idf)))
