"""Ragged rows and groups of equal ids, as flat tensors."""

from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

_ROWS, _FEWEST_COLUMNS = 256, 16  # of a product


class Groups(NamedTuple):
    """Which of some ids are equal."""

    ids: Tensor  # (groups,) each id once, ascending
    of: Tensor  # (members,) the group of each
    order: Tensor  # (members,) the members, group by group, each group in their own order
    starts: Tensor  # (groups,) where each group begins in `order`


def group(ids: Tensor) -> Groups:
    """Put equal ids together: [7, 3, 7] has ids [3, 7], of [1, 0, 1], order [1, 0, 2] and starts [0, 1]."""
    ascending, order = torch.sort(ids, stable=True)
    distinct, of_ascending, sizes = torch.unique_consecutive(
        ascending, return_inverse=True, return_counts=True
    )
    of = torch.empty_like(order)
    of[order] = of_ascending
    return Groups(distinct.long(), of, order, torch.cumsum(sizes, 0) - sizes)


def ragged(starts: Tensor, lengths: Tensor) -> Tensor:
    """The places of all entries of some rows: starts [10, 4] with lengths [3, 1] give [10, 11, 12, 4]."""
    before = torch.cumsum(lengths, 0) - lengths
    total = int(lengths.sum())
    shifts = torch.repeat_interleave(starts - before, lengths, output_size=total)
    return shifts + torch.arange(total, device=starts.device)


def sum_rows(
    table: Tensor, places: Tensor, starts: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Sum rows of a table over stretches of `places`, each with its weight: a sparse matrix times a dense one.

    Each sum is taken in the order of its places whatever the threads, so it is the same in every call.
    """
    sums: Tensor = functional.embedding_bag(
        places, table, starts, mode="sum", per_sample_weights=weights
    )
    return sums


def steady_matmul(rows: Tensor, matrix: Tensor) -> Tensor:
    """A matrix product whose every row is the same, bit for bit, whatever rows stand beside it.

    Libraries choose the order of additions by the number of rows and columns, and with few columns by the place of the
    row too. So every product has as many rows, and never few columns.
    """
    columns, padding = matrix.shape[1], -len(rows) % _ROWS
    if columns < _FEWEST_COLUMNS:
        matrix = functional.pad(matrix, (0, _FEWEST_COLUMNS - columns))
    if padding:
        rows = functional.pad(rows, (0, 0, 0, padding))
    product = torch.cat([part @ matrix for part in torch.split(rows, _ROWS)])
    return product[: len(product) - padding, :columns]


def as_tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array on a device; on the CPU they share memory, unless the array is read-only, which torch warns about."""
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)
