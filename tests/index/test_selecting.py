"""Searching selected rows is searching an index of those rows alone."""

import index_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parabit import ParabitError
from parabit.index import search
from parabit.index.backends import BACKENDS, Flat
from parabit.index.search import Selection


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
def test_only_selected_rows_are_found(
    name: str, share: float, clustered: bool, k: int, radius: int, scanned: int, seed: int
) -> None:
    codes, queries = oracle.made_up(300, 32, seed), oracle.made_up(4, 32, seed + 1)
    mask = np.random.default_rng(seed).random(300) < share
    if clustered:  # what is near the query is not selected
        mask &= oracle.hamming(queries[:1], codes)[0] > 9
    backend = BACKENDS[name].build(codes, 32)
    rows = np.flatnonzero(mask)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_SCANNED", scanned)
        found = search.nearest(backend, queries, k, mask)
        inside = search.within(backend, queries, radius, selection=mask)
        some = search.within(backend, queries, radius, most=k, selection=mask)
    if not len(rows):
        assert (found.rows == -1).all()
        assert not len(inside.rows)
        assert not len(some.rows)
        return
    expected, distances = oracle.nearest(codes[rows], queries, k)
    assert found.rows.tolist() == [[int(rows[row]) if row >= 0 else -1 for row in hits] for hits in expected]
    assert found.distances.tolist() == distances
    all_inside = [[int(rows[row]) for row, _ in hits] for hits in oracle.within(codes[rows], queries, radius)]
    assert [inside.of(query).tolist() for query in range(4)] == all_inside
    assert [some.of(query).tolist() for query in range(4)] == [hits[:k] for hits in all_inside]


def test_without_a_selection_all_are_found() -> None:
    codes = oracle.made_up(100, 32)
    flat = Flat(codes, 32)
    assert search.nearest(flat, codes[:2], 5).rows.tolist() == flat.nearest(codes[:2], 5).rows.tolist()
    assert search.within(flat, codes[:2], 5, 9).rows.tolist() == flat.within(codes[:2], 5, 9).rows.tolist()


def test_a_selection_that_does_not_fit_is_told() -> None:
    flat = Flat(oracle.made_up(100, 32), 32)
    with pytest.raises(ParabitError, match="the selection is of 99 rows, but there are 100 codes"):
        search.nearest(flat, flat.codes[:1], 1, np.ones(99, dtype=np.bool_))
    with pytest.raises(ParabitError, match="one bool a row, found int64"):
        Selection(np.array([3, 5]))
