"""AdaGrad on the rows of a table (Duchi et al. 2011)."""

import torch
from torch import Tensor


class AdaGrad:
    """A table of parameters, each with the sum of its squared gradients; only rows that have a gradient are touched.

    Example:
        >>> table = AdaGrad(torch.zeros(3, 1), squares=torch.zeros(3, 1))
        >>> table.step(torch.tensor([[4.0]]), rate=0.5, rows=torch.tensor([1]))
        >>> table.values.flatten().tolist()
        [0.0, -0.5, 0.0]
    """

    def __init__(self, values: Tensor, squares: Tensor) -> None:
        self.values = values
        self.squares = squares

    def step(self, gradient: Tensor, rate: float, rows: Tensor | None = None, current: Tensor | None = None) -> None:
        """Go against the gradient, of the whole table or of some rows, each at most once.

        `current` are these rows' values, where they have been read already.
        """
        gradient = gradient.to(self.values.device)
        if rows is None:
            self.squares.addcmul_(gradient, gradient)
            self.values.addcdiv_(gradient, self.squares.sqrt(), value=-rate)
            return
        rows = rows.to(self.values.device)
        squares = self.squares.index_select(0, rows).addcmul_(gradient, gradient)
        self.squares.index_copy_(0, rows, squares)
        before = self.values.index_select(0, rows) if current is None else current.to(self.values.device)
        self.values.index_copy_(0, rows, torch.addcdiv(before, gradient, squares.sqrt_(), value=-rate))
