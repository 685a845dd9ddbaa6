import numpy as np

from parabit.index.results import Found, Keys, join, merge

TWO = Found(np.array([0, 2, 3]), np.array([4, 0, 7]), np.array([0, 3, 1], dtype=np.int32))


def as_lists(found: Found) -> tuple[list[int], list[int], list[int]]:
    return found.offsets.tolist(), found.rows.tolist(), found.distances.tolist()


def test_parts_of_results() -> None:
    assert (TWO.of(0).rows.tolist(), TWO.counts.tolist(), TWO.queries.tolist()) == ([4, 0], [2, 1], [0, 0, 1])
    assert as_lists(TWO.keep(TWO.distances < 3)) == ([0, 1, 2], [4, 7], [0, 1])
    assert as_lists(TWO.of_queries(np.array([False, True]))) == ([0, 1], [7], [1])
    assert as_lists(TWO.first(1)) == ([0, 1, 2], [4, 7], [0, 1])
    assert TWO.first(None) is TWO


def test_results_of_some_queries_are_replaced() -> None:
    one = Found(np.array([0, 2]), np.array([5, 6]), np.array([1, 1], dtype=np.int32))
    assert as_lists(TWO.replace(np.array([1]), one)) == ([0, 2, 4], [4, 0, 5, 6], [0, 3, 1, 1])
    assert as_lists(TWO.replace(np.array([0]), one)) == ([0, 2, 3], [5, 6, 7], [1, 1, 1])
    assert as_lists(TWO.replace(np.array([0]), Found.nothing(1))) == ([0, 0, 1], [7], [1])


def test_keys_hold_large_rows_and_long_codes() -> None:
    keys = Keys(rows=1 << 33, bits=1024)
    rows = np.array([(1 << 33) - 1, 0, 5])
    packed = keys.pack(np.array([3, 0, 3]), np.array([1024, 7, 0]), rows)
    found = keys.found(np.sort(packed), queries=5)
    assert as_lists(found) == ([0, 1, 1, 1, 3, 3], [0, 5, (1 << 33) - 1], [7, 0, 1024])


def test_parts_with_gaps_are_joined_and_merged() -> None:
    one = Found(np.array([0, 0, 2]), np.array([1, 0]), np.array([0, 4], dtype=np.int32))
    assert join([]).offsets.tolist() == [0]
    assert join([one, Found.nothing(2)]).offsets.tolist() == [0, 0, 2, 2, 2]
    both = merge([one, one], starts=[0, 10], bits=8, most=3)
    assert as_lists(both) == ([0, 0, 3], [1, 11, 0], [0, 0, 4])
