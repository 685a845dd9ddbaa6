"""The graph of nearest documents, and how documents move towards their neighbours in it."""

import faiss
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from parabit.model.lsa import Matrix, unit
from parabit.parallel import ordered_map
from parabit.ragged import paired_products

NEIGHBOURS = 10
_CANDIDATES = 3 * NEIGHBOURS
_BLOCK, _WORDS_BLOCK = 2048, 128  # documents whose candidates are found, and compared by words, at a time
_STEPS = 8  # of diffusion


def nearest(vectors: Matrix, rows: csr_array, count: int = NEIGHBOURS) -> NDArray[np.int64]:
    """The nearest other documents of each, by the cosine of their vectors plus that of their words: (documents, count).

    Candidates are the nearest by vectors alone, three times as many as wanted. `rows` have length 1.

    Example:
        >>> vectors = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], dtype=np.float32)
        >>> nearest(vectors, csr_array(np.eye(4, dtype=np.float32)), count=1).ravel().tolist()
        [1, 0, 3, 2]
    """
    vectors = np.ascontiguousarray(unit(vectors), dtype=np.float32)
    documents = len(vectors)
    count = min(count, documents - 1)
    candidates = min(_CANDIDATES, documents - 1)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def find(start: int) -> NDArray[np.int64]:
        faiss.omp_set_num_threads(1)  # of this thread: blocks run side by side, each on one core
        own = np.arange(start, min(start + _BLOCK, documents))
        cosines, found = index.search(vectors[own], candidates + 1)  # (block, candidates + 1)
        # A document is its own nearest, unless it has copies; one candidate goes in any case.
        cosines[found == own[:, None]] = -np.inf
        for part in range(0, len(own), _WORDS_BLOCK):
            here = slice(part, part + _WORDS_BLOCK)
            cosines[here] += _word_cosines(rows, own[here], found[here])
        best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(found, best, axis=1)

    return np.concatenate(list(ordered_map(find, range(0, documents, _BLOCK))))


def _word_cosines(rows: csr_array, own: NDArray[np.int64], others: NDArray[np.int64]) -> Matrix:
    """The products of documents' rows with those of some others: (own, others of each)."""
    entries, pairs = rows[others.ravel()], np.arange(len(own) + 1) * others.shape[1]
    products = paired_products(rows[own], pairs, entries.indices, entries.data, entries.indptr.astype(np.int64))
    return products.reshape(others.shape)


def diffuse(vectors: Matrix, neighbours: NDArray[np.int64], share: float) -> Matrix:
    """Vectors moved towards those of their neighbours: Y = (1 - share) Z + share A Y, a few steps from Z on.

    A joins each document with its neighbours, in both directions, and is normalised by their degrees.

    Example:
        >>> vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
        >>> diffuse(vectors, np.array([[1], [0], [1]]), share=0.5).shape
        (3, 2)
    """
    documents, count = neighbours.shape
    one_way = csr_array(
        (np.ones(neighbours.size, dtype=np.float32), neighbours.ravel(), np.arange(documents + 1) * count),
        shape=(documents, documents),
    )
    both = one_way.maximum(one_way.T)
    scale = diags_array(1 / np.sqrt(np.maximum(both.sum(axis=1), 1)).astype(np.float32))
    adjacency = (scale @ both @ scale).tocsr()
    moved = vectors
    for _ in range(_STEPS):
        moved = np.asarray((1 - share) * vectors + share * (adjacency @ moved), dtype=np.float32)
    return unit(moved)
