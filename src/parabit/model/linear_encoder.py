"""The fast encoder: a document's embedding as one sparse product. Needs no torch."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.text.tfidf import inverse_frequencies, tf_idf_rows


@dataclass(frozen=True)
class LinearEncoder:
    """Embeddings of documents as a linear function of their TF-IDF weights, learned from a trained network.

    What a document gets depends on the document alone: its row of the product is added up word by word.

    Example:
        >>> matrix = np.array([[1.0, -1.0], [-1.0, 1.0]], dtype=np.float16)
        >>> encoder = LinearEncoder(matrix, np.zeros(2, dtype=np.float32), np.array([2, 1]), documents=3)
        >>> embedded = encoder.embed(np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([0, 1, 3]))
        >>> embedded.astype(float).round(2).tolist()
        [[1.0, -1.0], [-0.45, 0.45]]
    """

    matrix: NDArray[np.float16]  # (words, dim); half floats, as it is kept
    offset: NDArray[np.float32]  # (dim,)
    document_frequencies: NDArray[np.int64]  # (words,)
    documents: int  # that these are of

    def __post_init__(self) -> None:
        idf = inverse_frequencies(self.document_frequencies, self.documents)
        object.__setattr__(self, "_idf", idf)
        object.__setattr__(self, "_matrix", self.matrix.astype(np.float32))

    def embed(self, features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any]) -> NDArray[np.float32]:
        """The embeddings of documents: (documents, dim); one without known words stays at zero."""
        rows = tf_idf_rows(features, counts, offsets, self._idf)  # type: ignore[attr-defined]
        embedded: NDArray[np.float32] = rows @ self._matrix  # type: ignore[attr-defined]
        embedded += self.offset
        embedded[np.diff(offsets) == 0] = 0
        return embedded


def steady_product(rows: NDArray[np.float32], matrix: NDArray[np.float32], block: int = 4096) -> NDArray[np.float32]:
    """A matrix product whose every row is the same, bit for bit, whatever rows stand beside it.

    Products of dense matrices add in an order that depends on how many rows there are and where a row stands among
    them; that of a sparse matrix adds up one row after the other.

    Example:
        >>> steady_product(np.ones((3, 2), dtype=np.float32), np.eye(2, dtype=np.float32)).shape
        (3, 2)
    """
    count, dim = rows.shape
    product = np.empty((count, matrix.shape[1]), dtype=np.float32)
    for first in range(0, count, block):
        part = rows[first : first + block]
        columns = np.tile(np.arange(dim, dtype=np.int32), len(part))
        starts = np.arange(len(part) + 1, dtype=np.int32) * dim
        product[first : first + block] = csr_array((part.ravel(), columns, starts), shape=part.shape) @ matrix
    return product
