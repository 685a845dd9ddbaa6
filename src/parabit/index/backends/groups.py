"""An order of codes in which near ones lie near: in groups, by k-means."""

from itertools import pairwise

import faiss
import numpy as np
from numpy.typing import NDArray

_GROUP = 1000  # codes in a group, about
_MOST = 128  # groups a level
_SAMPLED = 64  # codes a centre is learned from
_ROUNDS = 4
_AT_A_TIME = 1 << 18


def group(codes: NDArray[np.uint8], seed: int = 0) -> NDArray[np.int64]:
    """All rows, one group after the other, and in a group in their order.

    In two levels, groups of groups, so that each code is compared with few centres. The same codes and seed give the
    same groups.

    Example:
        >>> codes = np.array([[0], [255], [1], [254]], dtype=np.uint8)
        >>> group(codes)  # so few are one group
        array([0, 1, 2, 3])
    """
    rng = np.random.default_rng(seed)
    count = int(min(_MOST, max(1.0, np.sqrt(len(codes) / _GROUP))))
    large = _one_level(codes, count, rng)
    rows = np.argsort(large.astype(np.uint16), kind="stable")
    for start, stop in pairwise(np.searchsorted(large[rows], np.arange(count + 1))):
        members = rows[start:stop]
        if not len(members):
            continue
        # Large groups get more parts, so that all parts are about as large.
        parts = int(np.clip(round(len(members) / len(codes) * count * count), 1, len(members)))
        small = _one_level(codes[members], parts, rng)
        rows[start:stop] = members[np.argsort(small.astype(np.uint16), kind="stable")]
    return rows


def _one_level(codes: NDArray[np.uint8], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The nearest of `count` centres of each code."""
    if count <= 1:
        return np.zeros(len(codes), dtype=np.int64)
    sample = codes[np.sort(rng.choice(len(codes), min(len(codes), count * _SAMPLED), replace=False))]
    bits = np.unpackbits(sample, axis=1).astype(np.float32)
    centres = sample[np.sort(rng.choice(len(sample), count, replace=False))]
    for _ in range(_ROUNDS):
        nearest = _nearest(sample, centres)
        members = nearest == np.arange(count)[:, None]  # (count, sample)
        sizes = members.sum(axis=1, keepdims=True)
        # The centre of codes is what most of them say of each bit.
        voted = np.packbits(2 * (members.astype(np.float32) @ bits) > sizes, axis=1)
        centres = np.where(sizes > 0, voted, centres)
    return _nearest(codes, centres)


def _nearest(codes: NDArray[np.uint8], centres: NDArray[np.uint8]) -> NDArray[np.int64]:
    found = [
        faiss.knn_hamming(np.ascontiguousarray(codes[start : start + _AT_A_TIME]), centres, 1)[1][:, 0]
        for start in range(0, len(codes), _AT_A_TIME)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
