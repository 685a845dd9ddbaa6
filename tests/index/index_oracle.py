"""Codes to search, and what a plain scan in numpy finds among them."""

import numpy as np
from numpy.typing import NDArray

from parabit.codes import hamming, pack


def made_up(count: int, bits: int, seed: int = 0, flips: float = 0.1, clusters: int = 12) -> NDArray[np.uint8]:
    """Codes in clusters, with many that are equal: like those of documents, and hard on ties."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).random((clusters, bits)) < 0.4
    drawn = centres[rng.integers(0, clusters, count)] ^ (rng.random((count, bits)) < flips)
    codes = pack(drawn)
    again = rng.random(count) < 0.2
    codes[again] = codes[rng.integers(0, max(1, count), again.sum())]
    return codes


def nearest(codes: NDArray[np.uint8], queries: NDArray[np.uint8], k: int) -> tuple[list[list[int]], list[list[int]]]:
    """Rows and distances of the k nearest: by distance, then by row; -1 fills up."""
    rows, distances = [], []
    for away in hamming(queries, codes):
        order = np.argsort(away, kind="stable")[:k]
        rows.append(order.tolist() + [-1] * (k - len(order)))
        distances.append(away[order].tolist() + [-1] * (k - len(order)))
    return rows, distances


def within(codes: NDArray[np.uint8], queries: NDArray[np.uint8], radius: int) -> list[list[tuple[int, int]]]:
    """Rows and distances of all codes inside the radius, for each query."""
    found = []
    for away in hamming(queries, codes):
        order = np.argsort(away, kind="stable")
        found.append([(int(row), int(away[row])) for row in order if away[row] <= radius])
    return found
