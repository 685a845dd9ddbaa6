import index_oracle as oracle
import numpy as np

from parabit.index.backends import Flat, Lists
from parabit.index.backends.groups import group


def test_the_recall_told_is_what_new_queries_get() -> None:
    codes = oracle.made_up(30_000, 64, flips=0.08, clusters=400)
    queries = oracle.made_up(300, 64, seed=8, flips=0.08, clusters=400)
    lists = Lists.build(codes, 64, recall=0.8)
    worst = Flat(codes, 64).nearest(queries, 10).distances[:, -1:]
    found = lists.nearest(queries, 10)
    recall = ((found.rows >= 0) & (found.distances <= worst)).mean()
    assert lists.recall >= 0.8
    assert abs(recall - lists.recall) < 0.1


def test_reading_all_lists_is_exact() -> None:
    codes = oracle.made_up(5000, 64, flips=0.2)
    queries = oracle.made_up(9, 64, seed=8)
    lists = Lists.build(codes, 64, recall=2.0)  # out of reach
    assert lists.probes == len(lists.arrays["centres"])
    assert lists.recall == 1.0
    # Which of those that are equally near come last is left open.
    _, distances = oracle.nearest(codes, queries, 10)
    assert lists.nearest(queries, 10).distances.tolist() == distances
    found = lists.within(queries, 9)
    assert [found.of(query).tolist() for query in range(9)] == [
        [row for row, _ in hits] for hits in oracle.within(codes, queries, 9)
    ]


def test_hits_come_nearest_first_and_lowest_row_first() -> None:
    codes = oracle.made_up(5000, 32)
    found = Lists.build(codes, 32).nearest(codes[:20], 30)
    order = found.distances.astype(np.int64) * len(codes) + found.rows
    assert (np.diff(order, axis=1) > 0).all()
    assert np.array_equal(found.distances, np.take_along_axis(oracle.hamming(codes[:20], codes), found.rows, axis=1))


def test_groups_hold_every_row_once() -> None:
    for count in (0, 1, 5, 4100):
        codes = oracle.made_up(count, 64)
        groups = group(codes)
        assert np.sort(groups.rows).tolist() == list(range(count))
        assert groups.offsets[0] == 0
        assert groups.offsets[-1] == count
        assert len(groups.offsets) == len(groups.centres) + 1
