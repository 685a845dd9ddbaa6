"""Codes as points in the plane, by their Hamming distances: t-SNE, as in the paper's figure."""

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes, unpack
from parabit.errors import CodesError, need
from parabit.index.backends import Flat
from parabit.progress import Progress, Report, silent

_PERPLEXITY = 30.0  # t-SNE's usual one
_ROUNDS = (250, 500)  # with attraction exaggerated, and without: t-SNE's usual ones
_TOLD_EVERY = 25  # rounds


def embed_codes(codes: NDArray[np.uint8], seed: int = 0, report: Report = silent) -> NDArray[np.float64]:
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
        raise CodesError(
            f"t-SNE lays out 4 documents or more, found codes of shape {codes.shape}", hint="give more documents"
        )
    tsne = need("openTSNE", "plot", CodesError)
    # With three times as many neighbours as the perplexity, those left out would weigh next to nothing.
    perplexity = min(_PERPLEXITY, (len(codes) - 1) / 3)
    neighbours, distances = _neighbours(codes, round(3 * perplexity))
    affinities = tsne.affinity.PerplexityBasedNN(
        knn_index=tsne.nearest_neighbors.PrecomputedNeighbors(neighbours, distances), perplexity=perplexity, n_jobs=1
    )
    # One thread: with more, the order of sums, and with it the picture, would change from run to run.
    layout = tsne.TSNE(
        perplexity=perplexity,
        early_exaggeration_iter=_ROUNDS[0],
        n_iter=_ROUNDS[1],
        random_state=seed,
        n_jobs=1,
        callbacks=_Teller(report),
        callbacks_every_iters=_TOLD_EVERY,
    )
    return np.array(layout.fit(affinities=affinities, initialization=_start(codes, seed)), dtype=np.float64)


class _Teller:
    """Tells how far a layout is; openTSNE counts its two stages each from 0."""

    def __init__(self, report: Report) -> None:
        self._report, self._done = report, 0

    def __call__(self, iteration: int, error: float, embedding: object) -> None:
        self._done += _TOLD_EVERY
        note = f"divergence {error:.2f}"
        self._report(Progress("drawing the map", self._done, "rounds", min(1.0, self._done / sum(_ROUNDS)), note))


def _neighbours(codes: NDArray[np.uint8], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest other codes of each, and how far they are, both (codes, count); of equally near ones the first."""
    nearest = Flat(codes, codes.shape[1] * 8).search(codes, count + 1)
    rows, distances = (array.reshape(-1, count + 1) for array in (nearest.rows, nearest.distances))
    others = rows != np.arange(len(codes))[:, None]
    others[others.all(axis=1), -1] = False  # it is one of more equal codes than were asked for
    return rows[others].reshape(-1, count), distances[others].reshape(-1, count).astype(np.float64)


def _start(codes: NDArray[np.uint8], seed: int) -> NDArray[np.float64]:
    """Where the points begin, (codes, 2): two principal components of the bits, so that far apart begins far apart."""
    bits = unpack(codes, codes.shape[1] * 8).astype(np.float64)  # (codes, bits)
    left, values, _ = np.linalg.svd(bits - bits.mean(axis=0), full_matrices=False)
    start = left[:, :2] * values[:2]
    spread = start[:, 0].std()
    if spread > 0:
        start *= 1e-4 / spread
    # Points with the same code must not begin at the same place, where nothing could move them apart.
    return np.ascontiguousarray(start + np.random.default_rng(seed).normal(0, 1e-6, start.shape))
