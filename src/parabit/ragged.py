"""Rows of different lengths, stored one after the other."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def row_offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each row begins, and where the last one ends: (rows + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def paired_products(
    queries: csr_array,
    pairs: NDArray[np.integer],
    columns: NDArray[np.integer],
    weights: NDArray[np.floating],
    offsets: NDArray[np.int64],
) -> NDArray[np.float32]:
    """The product of each query's row with each of its own documents' rows: (documents,).

    Query i has the documents from pairs[i] up to pairs[i + 1]; document j has the columns and weights from offsets[j]
    up to offsets[j + 1].
    """
    shared = np.empty(len(columns), dtype=np.float32)
    spread = np.zeros(queries.shape[1], dtype=np.float32)
    for number, (start, end) in enumerate(pairwise(offsets[pairs].tolist())):
        own = slice(queries.indptr[number], queries.indptr[number + 1])
        spread[queries.indices[own]] = queries.data[own]
        np.take(spread, columns[start:end], out=shared[start:end], mode="clip")  # else it goes through a copy
        spread[queries.indices[own]] = 0
    shared *= weights
    products = np.zeros(len(offsets) - 1, dtype=np.float32)
    whole = np.diff(offsets) > 0  # reduceat has no empty sums
    if whole.any():
        products[whole] = np.add.reduceat(shared, offsets[:-1][whole])
    return products
