"""Where documents lie by their words (latent semantic analysis), which are nearest, and how they move towards those."""

from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from parabit.parallel import ordered_map

Matrix = NDArray[np.float32]

NEIGHBOURS = 10
_CANDIDATES = 3 * NEIGHBOURS
_BLOCK, _WORDS_BLOCK = 2048, 128  # documents whose candidates are found, and compared by words, at a time
_STEPS = 8  # of diffusion
_POWER_STEPS, _OVERSAMPLING = 3, 10  # of the LSA


def unit(rows: Matrix) -> Matrix:
    """Rows scaled to length 1; a row of zeros stays as it is."""
    scaled: Matrix = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return scaled


def lsa(rows: csr_array, columns: csr_array, size: int, rng: np.random.Generator) -> Matrix:
    """The documents on the leading singular directions of their rows X, as X V = U S: (documents, size).

    A randomized decomposition (Halko, Martinsson and Tropp 2011) on the side of the documents: a random basis is
    multiplied by X X' a few times, which makes it span the leading directions. `columns` is X transposed.
    """
    size = min(size, *rows.shape)
    wide = min(size + _OVERSAMPLING, *rows.shape)
    basis = rng.standard_normal((rows.shape[0], wide), dtype=np.float32)
    for _ in range(_POWER_STEPS):
        basis = _orthogonal(rows @ (columns @ basis))  # (documents, wide)
    basis, _ = np.linalg.qr(basis)
    image = columns @ basis  # (words, wide)
    squares, directions = np.linalg.eigh((image.T @ image).astype(np.float64))
    strongest = directions[:, ::-1][:, :size] * np.sqrt(np.maximum(squares[::-1][:size], 0))
    placed: Matrix = basis @ strongest.astype(np.float32)
    return placed


def _orthogonal(basis: Matrix) -> Matrix:
    """A basis of the same space, orthonormal up to rounding: six times faster than QR, and close enough on the way."""
    squares, directions = np.linalg.eigh((basis.T @ basis).astype(np.float64))
    scales = 1 / np.sqrt(np.maximum(squares, 1e-10 * squares[-1]) + 1e-30)
    orthogonal: Matrix = basis @ (directions * scales).astype(np.float32)
    return orthogonal


def nearest(vectors: Matrix, rows: csr_array, count: int = NEIGHBOURS) -> NDArray[np.int64]:
    """The nearest other documents of each, by the cosine of their vectors plus that of their words: (documents, count).

    Candidates are the nearest by vectors alone, three times as many as wanted. `rows` have length 1.
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
    """The products of documents' rows with those of some others: (own, others of each). No row may be empty."""
    entries = rows[others.ravel()]
    shared = np.empty(len(entries.data), dtype=np.float32)  # the document's weight of each word of the others
    spread = np.zeros(rows.shape[1], dtype=np.float32)
    for document, (start, end) in zip(own, pairwise(entries.indptr[:: others.shape[1]].tolist()), strict=True):
        mine = slice(rows.indptr[document], rows.indptr[document + 1])
        spread[rows.indices[mine]] = rows.data[mine]
        np.take(spread, entries.indices[start:end], out=shared[start:end], mode="clip")  # else it goes through a copy
        spread[rows.indices[mine]] = 0
    shared *= entries.data
    products: Matrix = np.add.reduceat(shared, entries.indptr[:-1])
    return products.reshape(others.shape)


def diffuse(vectors: Matrix, neighbours: NDArray[np.int64], share: float) -> Matrix:
    """Vectors moved towards those of their neighbours: Y = (1 - share) Z + share A Y, a few steps from Z on.

    A joins each document with its neighbours, in both directions, and is normalised by their degrees.
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
