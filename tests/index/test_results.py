import numpy as np
import pytest

from parabit import ParabitError
from parabit.index.results import Found, Keys, join, merge


def test_keys_hold_large_rows_and_long_codes() -> None:
    keys = Keys(rows=1 << 33, bits=1024)
    rows = np.array([(1 << 33) - 1, 0, 5])
    packed = keys.pack(np.array([3, 0, 3]), np.array([1024, 7, 0]), rows)
    found = keys.found(np.sort(packed), queries=5)
    assert found.offsets.tolist() == [0, 1, 1, 1, 3, 3]
    assert found.rows.tolist() == [0, 5, (1 << 33) - 1]
    assert found.distances.tolist() == [7, 0, 1024]
    assert keys.most_queries == 1 << (63 - 33 - 11)


def test_parts_with_gaps_are_joined_and_merged() -> None:
    one = Found(np.array([0, 0, 2]), np.array([1, 0]), np.array([0, 4], dtype=np.int32))
    assert join([]).offsets.tolist() == [0]
    assert join([one, Found.nothing(2)]).offsets.tolist() == [0, 0, 2, 2, 2]
    both = merge([one, one], starts=[0, 10], bits=8, most=3)
    assert both.rows.tolist() == [1, 11, 0]
    assert both.counts.tolist() == [0, 3]
    with pytest.raises(ParabitError, match="of the same queries"):
        merge([one, Found.nothing(3)], starts=[0, 10], bits=8)
