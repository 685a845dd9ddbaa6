import pytest
import torch

from parabit.networks.training import AdaGrad

START, RATE = 0.01, 0.3


def gradients(steps: int = 6) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(2)
    return [torch.randn(7, 3, generator=rng, dtype=torch.float64) for _ in range(steps)]


def a_table() -> AdaGrad:
    values = torch.randn(7, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return AdaGrad(values, torch.full_like(values, START))


def theirs(values: torch.Tensor, steps: list[torch.Tensor]) -> torch.Tensor:
    """Where torch's own AdaGrad goes."""
    parameter = torch.nn.Parameter(values.clone())
    optimizer = torch.optim.Adagrad([parameter], lr=RATE, initial_accumulator_value=START, eps=0.0)
    for gradient in steps:
        parameter.grad = gradient.clone()
        optimizer.step()
    return parameter.detach()


def test_on_a_whole_table_it_is_torchs() -> None:
    table = a_table()
    expected = theirs(table.values, gradients())
    for gradient in gradients():
        table.step(gradient, RATE)
    torch.testing.assert_close(table.values, expected)


@pytest.mark.parametrize("read_before", [False, True])
def test_on_some_rows_it_is_torchs_with_no_gradient_elsewhere(read_before: bool) -> None:
    table, rng = a_table(), torch.Generator().manual_seed(3)
    chosen = [torch.randperm(7, generator=rng)[:size] for size in (3, 1, 7, 0, 2, 4)]
    dense = [torch.zeros_like(gradient) for gradient in gradients()]
    for target, gradient, rows in zip(dense, gradients(), chosen, strict=True):
        target[rows] = gradient[rows]
    expected = theirs(table.values, dense)
    for gradient, rows in zip(gradients(), chosen, strict=True):
        table.step(gradient[rows], RATE, rows, table.values[rows] if read_before else None)
    torch.testing.assert_close(table.values, expected)


def test_rows_without_a_gradient_do_not_change_by_a_bit() -> None:
    table = a_table()
    values, squares = table.values.clone(), table.squares.clone()
    table.step(torch.ones(2, 3, dtype=torch.float64), RATE, rows=torch.tensor([5, 1]))
    others = torch.tensor([0, 2, 3, 4, 6])
    assert torch.equal(table.values[others], values[others])
    assert torch.equal(table.squares[others], squares[others])
    assert (table.values[[1, 5]] < values[[1, 5]]).all()
    torch.testing.assert_close(table.squares[[1, 5]], squares[[1, 5]] + 1)


def test_a_table_is_changed_in_its_place() -> None:
    table = a_table()
    values, squares = table.values, table.squares
    table.step(gradients()[0], RATE)
    table.step(gradients()[1], RATE, rows=torch.arange(7))
    assert table.values is values
    assert table.squares is squares
    torch.testing.assert_close(values, theirs(a_table().values, gradients()[:2]))
