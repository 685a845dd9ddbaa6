"""Groups and ragged rows are what plain Python makes of them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parabit.networks.grouping import Groups, as_tensor, group, ragged, steady_matmul, sum_rows

IDS = st.lists(st.integers(0, 6), max_size=30)


def same_as_plain(found: Groups, ids: list[int]) -> bool:
    distinct = sorted(set(ids))
    order = sorted(range(len(ids)), key=ids.__getitem__)  # stable: equal ids stay in their order
    ascending = [ids[place] for place in order]
    return (
        found.ids.tolist() == distinct
        and found.of.tolist() == [distinct.index(one) for one in ids]
        and found.order.tolist() == order
        and found.starts.tolist() == [ascending.index(one) for one in distinct]
    )


@given(ids=IDS)
def test_equal_ids_are_put_together(ids: list[int]) -> None:
    assert same_as_plain(group(torch.tensor(ids, dtype=torch.int64)), ids)
    assert same_as_plain(group(torch.tensor(ids, dtype=torch.int32)), ids)


@given(rows=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 6)), max_size=12))
def test_ragged_rows_come_one_after_the_other(rows: list[tuple[int, int]]) -> None:
    starts = torch.tensor([start for start, _ in rows], dtype=torch.int64)
    lengths = torch.tensor([length for _, length in rows], dtype=torch.int64)
    plain = [place for start, length in rows for place in range(start, start + length)]
    assert ragged(starts, lengths).tolist() == plain


@given(
    bags=st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), max_size=6),
        min_size=1,
        max_size=8,
    )
)
def test_rows_are_summed_as_a_sparse_matrix_times_a_dense_one(
    bags: list[list[tuple[int, int]]],
) -> None:
    table = (
        np.random.default_rng(3).integers(-9, 10, size=(5, 3)).astype(np.float64)
    )  # whole: sums are exact
    entries = [entry for bag in bags for entry in bag]
    places = torch.tensor([place for place, _ in entries], dtype=torch.int64)
    weights = torch.tensor([weight for _, weight in entries], dtype=torch.float64)
    lengths = torch.tensor([len(bag) for bag in bags])
    starts = torch.cumsum(lengths, 0) - lengths
    matrix, ones = np.zeros((len(bags), 5)), np.zeros((len(bags), 5))
    for row, bag in enumerate(bags):
        for place, weight in bag:
            matrix[row, place] += weight
            ones[row, place] += 1
    assert (
        sum_rows(torch.from_numpy(table), places, starts, weights).tolist()
        == (matrix @ table).tolist()
    )
    assert sum_rows(torch.from_numpy(table), places, starts).tolist() == (ones @ table).tolist()


def test_a_bags_sum_is_the_same_to_the_bit_whatever_bags_stand_beside_it() -> None:
    rng = torch.Generator().manual_seed(2)
    table, weights = torch.randn(200, 33, generator=rng), torch.rand(5000, generator=rng)
    places = torch.randint(200, (5000,), generator=rng)
    starts = torch.cat(
        [
            torch.zeros(1, dtype=torch.int64),
            torch.randperm(4999, generator=rng)[:199].sort().values + 1,
        ]
    )
    together = sum_rows(table, places, starts, weights)
    for row, (start, stop) in enumerate(
        zip(starts.tolist(), [*starts[1:].tolist(), 5000], strict=True)
    ):
        alone = sum_rows(
            table, places[start:stop], torch.zeros(1, dtype=torch.int64), weights[start:stop]
        )
        assert torch.equal(alone[0], together[row])


# Libraries choose how to add by the numbers of columns and of terms, and within a product by where a row stands.
@pytest.mark.parametrize(
    "width", [1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 17, 29, 33, 65, 129, 301, 1024]
)
def test_a_row_of_a_steady_product_is_the_same_to_the_bit_whatever_rows_stand_beside_it(
    width: int,
) -> None:
    rng = torch.Generator().manual_seed(4)
    differ = []
    for depth in (1, 7, 17, 50, 128, 301):
        rows, matrix = (
            torch.randn(600, depth, generator=rng),
            torch.randn(depth, width, generator=rng),
        )
        for form in (matrix, matrix.T.contiguous().T):
            together = steady_matmul(rows, form)
            np.testing.assert_allclose(
                together, rows.double() @ matrix.double(), rtol=1e-3, atol=1e-3
            )
            for count in (0, 1, 2, 255, 256, 257, 513):
                chosen = torch.randperm(600, generator=rng)[:count]
                if not torch.equal(steady_matmul(rows[chosen], form), together[chosen]):
                    differ.append((depth, count))
    assert differ == []


def test_arrays_that_may_not_be_written_become_tensors_without_a_warning() -> None:
    array = np.arange(3, dtype=np.int32)
    array.flags.writeable = False
    assert as_tensor(array, torch.device("cpu")).tolist() == [0, 1, 2]
