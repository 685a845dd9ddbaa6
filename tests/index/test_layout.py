import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from parabit.codes import pack
from parabit.errors import CodesError
from parabit.index.map import embed_codes


def two_clusters(each: int, bits: int = 64, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Codes around two centres, a tenth of the bits flipped; in turn, so that storage order says nothing."""
    rng = np.random.default_rng(seed)
    cluster = np.tile([0, 1], each)
    centres = rng.integers(0, 2, (2, bits)).astype(bool)
    return pack(centres[cluster] ^ (rng.random((2 * each, bits)) < 0.1)), cluster


def test_two_clusters_of_codes_are_two_clusters_of_points() -> None:
    codes, cluster = two_clusters(40)
    points = embed_codes(codes)
    centres = np.stack([points[cluster == which].mean(axis=0) for which in (0, 1)])
    apart = np.linalg.norm(centres[0] - centres[1])
    widest = max(np.linalg.norm(points[cluster == which] - centres[which], axis=1).max() for which in (0, 1))
    assert apart > 2 * widest


def test_the_same_seed_gives_the_same_points_and_another_seed_others() -> None:
    codes, _ = two_clusters(20)
    points = embed_codes(codes, seed=3)
    assert np.array_equal(points, embed_codes(codes, seed=3))
    assert not np.array_equal(points, embed_codes(codes, seed=4))


def test_few_documents_and_those_that_all_have_one_code_are_laid_out_too() -> None:
    for codes in (*(two_clusters(16)[0][:count] for count in (4, 5, 7, 31)), np.zeros((12, 4), dtype=np.uint8)):
        points = embed_codes(codes)
        assert points.shape == (len(codes), 2)
        assert points.dtype == np.float64
        assert np.isfinite(points).all()


def test_what_cannot_be_laid_out_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in (0, 1, 3):
        with pytest.raises(CodesError, match="4 documents or more"):
            embed_codes(np.zeros((count, 4), dtype=np.uint8))
    with pytest.raises(CodesError, match="uint8"):
        embed_codes(np.zeros((9, 32), dtype=np.int64))
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(CodesError, match=r"openTSNE is not installed.*parabit\[plot\]"):
        embed_codes(two_clusters(4)[0])
