"""The ways that a search takes for large inputs, taken with small ones."""

import index_oracle as oracle
import numpy as np
import pytest

from parabit.index.backends import Flat, Multi, Tables, flat, hashing, multi
from parabit.index.backends.groups import group


@pytest.mark.parametrize(
    ("constant", "value"), [("_WORTH_THREADS", 1), ("_HEAP", 3), ("_COUNTING_BYTES", 1), ("_HITS_AT_A_TIME", 20)]
)
def test_every_way_to_scan_finds_the_same(constant: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = oracle.made_up(800, 100)
    queries = oracle.made_up(30, 100, seed=2)
    monkeypatch.setattr(flat, constant, value)
    if constant == "_COUNTING_BYTES":
        monkeypatch.setattr(flat, "_HEAP", 3)
    for some in (queries[:1], queries):
        found = Flat(codes, 100).nearest(some, 25)
        assert (found.rows.tolist(), found.distances.tolist()) == oracle.nearest(codes, some, 25)
        inside = Flat(codes, 100).within(some, 25)
        for query, hits in enumerate(oracle.within(codes, some, 25)):
            assert inside.of(query).tolist() == [row for row, _ in hits]


@pytest.mark.parametrize("piece", [1, 7, 100])
def test_candidates_measured_in_pieces_are_the_same(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = oracle.made_up(800, 28, flips=0.02)
    queries = oracle.made_up(9, 28, seed=2)
    monkeypatch.setattr(hashing, "_AT_A_TIME", piece)
    monkeypatch.setattr(multi, "_LOOKED_UP", piece)
    monkeypatch.setattr(hashing, "scan_cost", lambda *_: float("inf"))
    for backend in (Tables, Multi):
        found = backend.build(codes, 28).nearest(queries, 15)
        assert (found.rows.tolist(), found.distances.tolist()) == oracle.nearest(codes, queries, 15)


def test_groups_hold_every_row_once() -> None:
    for count in (0, 1, 5, 4100):
        assert np.sort(group(oracle.made_up(count, 64))).tolist() == list(range(count))
