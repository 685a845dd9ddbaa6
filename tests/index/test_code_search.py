"""Searching allowed rows is searching an index of those rows alone."""

import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parabit.codes import hamming
from parabit.index import search
from parabit.index.backends import BACKENDS
from parabit.index.results import Keys
from parabit.index.search import find


@pytest.mark.parametrize("name", BACKENDS)
@given(
    share=st.sampled_from([0.0, 0.01, 0.3, 0.97, 1.0]),
    clustered=st.booleans(),
    k=st.integers(1, 40),
    radius=st.integers(0, 20),
    scanned=st.sampled_from([0, 4096]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_only_allowed_rows_are_found(
    name: str, share: float, clustered: bool, k: int, radius: int, scanned: int, seed: int
) -> None:
    codes, queries = oracle.made_up(300, 32, seed), oracle.made_up(4, 32, seed + 1)
    allowed = np.random.default_rng(seed).random(300) < share
    if clustered:  # what is near the query is not allowed
        allowed &= hamming(queries[:1], codes)[0] > 9
    backend, rows = BACKENDS[name](codes, 32), np.flatnonzero(allowed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SCANNED", scanned)
        for most, within in ((k, None), (None, radius), (k, radius)):
            among = oracle.search(codes[rows], queries, most, within)
            expected = [[(int(rows[row]), distance) for row, distance in hits] for hits in among]
            assert oracle.pairs(find(backend, queries, most, within, allowed)) == expected


def test_keys_hold_large_rows_and_long_codes() -> None:
    keys = Keys(rows=1 << 33, bits=1024)
    rows = np.array([(1 << 33) - 1, 0, 5])
    packed = keys.pack(np.array([3, 0, 3]), np.array([1024, 7, 0]), rows)
    found = keys.found(np.sort(packed), queries=5)
    assert oracle.pairs(found) == [[(0, 7)], [], [], [(5, 0), ((1 << 33) - 1, 1024)], []]
