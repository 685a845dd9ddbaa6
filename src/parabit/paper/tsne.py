"""Documents as points in the plane, by the Hamming distances of their codes: the paper's t-SNE figure."""

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes, hamming
from parabit.errors import EvaluationError
from parabit.extras import need

_PERPLEXITY = 30.0  # t-SNE's usual one
_BLOCK = 1 << 22  # pairs of documents at a time: some 50 MB with their order


def embed_codes(codes: NDArray[np.uint8], seed: int = 0) -> NDArray[np.float64]:
    """A point for each code, (codes, 2), by t-SNE over exact Hamming neighbours; the same for the same seed.

    The perplexity is 30, and lower where there are fewer than 91 codes.

    Reference: L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", JMLR 2008, as openTSNE computes it.

    Example:
        >>> codes = np.array([[0], [1], [2], [3], [252], [253], [254], [255]], dtype=np.uint8)
        >>> embed_codes(codes).shape
        (8, 2)
    """
    check_codes(codes)
    if codes.ndim != 2 or len(codes) < 4:
        raise EvaluationError(
            f"t-SNE lays out 4 documents or more, found codes of shape {codes.shape}", hint="give more documents"
        )
    tsne = need("openTSNE", "plot", EvaluationError)
    # With three times as many neighbours as the perplexity, those left out would weigh next to nothing.
    perplexity = min(_PERPLEXITY, (len(codes) - 1) / 3)
    neighbours, distances = _neighbours(codes, round(3 * perplexity))
    affinities = tsne.affinity.PerplexityBasedNN(
        knn_index=tsne.nearest_neighbors.PrecomputedNeighbors(neighbours, distances), perplexity=perplexity, n_jobs=1
    )
    # One thread: with more, the order of sums, and with it the picture, would change from run to run.
    layout = tsne.TSNE(perplexity=perplexity, random_state=seed, n_jobs=1)
    return np.array(layout.fit(affinities=affinities, initialization=_start(codes, seed)), dtype=np.float64)


def _neighbours(codes: NDArray[np.uint8], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest other codes of each, and how far they are, both (codes, count); of equally near ones the first."""
    neighbours = np.empty((len(codes), count), dtype=np.int64)
    distances = np.empty((len(codes), count), dtype=np.float64)
    rows = max(1, _BLOCK // len(codes))
    for start in range(0, len(codes), rows):
        block = slice(start, start + rows)
        apart = hamming(codes[block], codes)  # (block, codes)
        apart[np.arange(len(apart)), np.arange(start, start + len(apart))] = np.iinfo(np.int32).max  # itself: last
        neighbours[block] = np.argsort(apart, axis=1, kind="stable")[:, :count]
        distances[block] = np.take_along_axis(apart, neighbours[block], axis=1)
    return neighbours, distances


def _start(codes: NDArray[np.uint8], seed: int) -> NDArray[np.float64]:
    """Where the points begin, (codes, 2): two principal components of the bits, so that far apart begins far apart."""
    bits = np.unpackbits(codes, axis=1).astype(np.float64)  # (codes, bits)
    left, values, _ = np.linalg.svd(bits - bits.mean(axis=0), full_matrices=False)
    start = left[:, :2] * values[:2]
    spread = start[:, 0].std()
    if spread > 0:
        start *= 1e-4 / spread
    # Points with the same code must not begin at the same place, where nothing could move them apart.
    return np.ascontiguousarray(start + np.random.default_rng(seed).normal(0, 1e-6, start.shape))
