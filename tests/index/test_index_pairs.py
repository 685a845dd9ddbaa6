"""Near duplicates of a whole index are what a comparison of all with all finds."""

import index_oracle as oracle
import numpy as np
import pytest
from numpy.typing import NDArray

from parabit.codes import hamming
from parabit.index import Index, pairing
from parabit.index.store import Id

Pair = tuple[Id, Id, int]


def brute_force(codes: dict[Id, NDArray[np.uint8]], radius: int) -> set[Pair]:
    ids, rows = list(codes), np.array(list(codes.values()))
    away = hamming(rows, rows)
    return {
        (ids[one], ids[other], int(away[one, other]))
        for one, other in zip(*np.nonzero(away <= radius), strict=True)
        if one < other
    }


def pairs_of(index: Index, radius: int, backend: str = "auto") -> list[Pair]:
    return [
        pair
        for some in index.pairs(radius, backend=backend)
        for pair in zip(some.first, some.second, some.distances.tolist(), strict=True)
    ]


@pytest.mark.parametrize("at_once", [11, 1024])
@pytest.mark.parametrize(
    ("bits", "backend"), [(12, "flat"), (28, "tables"), (28, "multi"), (128, "multi"), (128, "auto")]
)
def test_each_near_pair_comes_once(bits: int, backend: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_AT_ONCE", at_once)
    codes = oracle.made_up(150, bits, flips=0.04)
    expected: dict[Id, NDArray[np.uint8]] = dict(enumerate(codes[:110]))
    with Index.of_codes(codes[:110], bits, backend=backend) as index:
        index.add_codes(codes[110:], [f"new{row}" for row in range(110, 150)])
        expected |= {f"new{row}": codes[row] for row in range(110, 150)}
        gone: list[Id] = [0, 5, 6, 50, 109, "new110", "new149"]
        index.delete(gone)
        for identity in gone:
            del expected[identity]
        index.update_codes(codes[:1], [7])  # which is then the last
        del expected[7]
        expected[7] = codes[0]
        for radius in (0, 2, bits // 5, bits):
            found = pairs_of(index, radius, backend)
            assert len(found) == len(set(found))
            assert set(found) == brute_force(expected, radius)
        index.compact()
        assert set(pairs_of(index, 2, backend)) == brute_force(expected, 2)


def test_pairs_come_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_AT_ONCE", 10)
    codes = np.repeat(np.arange(20, dtype=np.uint8), 2)[:, None]  # each twice
    index = Index.of_codes(codes, 8)
    blocks = list(index.pairs(0))
    assert [len(block.first) for block in blocks] == [5, 5, 5, 5]
    assert [first for block in blocks for first in block.first] == list(range(0, 40, 2))


def test_what_changes_meanwhile_does_not_change_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "_AT_ONCE", 10)
    codes = np.zeros((30, 2), dtype=np.uint8)
    index = Index.of_codes(codes, 16)
    index.add_codes(codes[:5], ["a", "b", "c", "d", "e"])
    pairs = index.pairs(0)
    count = len(next(pairs).first)
    index.delete([3, "b"])
    index.add_codes(codes[:9], list(range(100, 109)))
    index.compact()
    assert count + sum(len(block.first) for block in pairs) == 35 * 34 // 2


def test_one_document_has_no_pair() -> None:
    assert list(Index.of_codes(np.zeros((1, 2), dtype=np.uint8), 16).pairs(16)) == []
