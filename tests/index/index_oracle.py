"""Codes to search, and what a plain scan in numpy finds among them."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from parabit.codes import hamming, pack
from parabit.index.results import Found


def made_up(
    count: int, bits: int, seed: int = 0, flips: float = 0.1, clusters: int = 12
) -> NDArray[np.uint8]:
    """Codes in clusters, with many that are equal: like those of documents, and hard on ties."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).random((clusters, bits)) < 0.4
    drawn = centres[rng.integers(0, clusters, count)] ^ (rng.random((count, bits)) < flips)
    codes = pack(drawn)
    again = rng.random(count) < 0.2
    codes[again] = codes[rng.integers(0, max(1, count), again.sum())]
    return codes


def search(
    codes: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    most: int | None = None,
    radius: int | None = None,
) -> list[list[tuple[int, int]]]:
    """Rows and distances of each query's nearest codes: by distance, then by row."""
    hits = []
    for away in hamming(queries, codes):
        order = np.argsort(away, kind="stable")
        inside = [
            (int(row), int(away[row])) for row in order if radius is None or away[row] <= radius
        ]
        hits.append(inside[:most])
    return hits


def pairs(found: Found) -> list[list[tuple[int, int]]]:
    """What was found, in the same form."""
    hits = list(zip(found.rows.tolist(), found.distances.tolist(), strict=True))
    return [hits[start:stop] for start, stop in pairwise(found.offsets.tolist())]
