"""From a real-valued layer to bits in training: the ways that the paper tried.

Each gives what the softmax sees and, elementwise, what its gradient is multiplied with on the way back.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from parabit.networks.recipe import STOCHASTIC, Recipe


class Activation(NamedTuple):
    """A layer's output and the derivative that stands for it."""

    hidden: Tensor  # (batch, units)
    gate: Tensor | None  # (batch, units); None where it is 1 everywhere


@dataclass(frozen=True)
class Binarization:
    """How a sigmoid layer is made binary.

    - `rounding`: bits in the forward pass, the gradient of the sigmoid in the backward pass (Krizhevsky and Hinton
      2011). The paper's choice.
    - `noise`: Gaussian noise before the sigmoid drives activations to its ends (Salakhutdinov and Hinton 2009);
      `noise` is its standard deviation.
    - `straight-through` and `straight-through-sigmoid`: stochastic bits with the two biased gradient estimators of
      Bengio et al. 2013, without and with the derivative of the sigmoid. With these, slope annealing (Chung et al.
      2016) makes the sigmoid steeper by `slope_growth` each epoch.

    Example:
        >>> activation = Binarization()(torch.tensor([[-2.0, 0.5]]))
        >>> activation.hidden.tolist(), activation.gate.shape
        ([[0.0, 1.0]], torch.Size([1, 2]))
    """

    method: str = "rounding"
    noise: float = 1.0
    slope_growth: float = 0.0

    @classmethod
    def of(cls, recipe: Recipe) -> "Binarization":
        """The binarization of a recipe."""
        return cls(recipe.binarization, recipe.noise, recipe.slope_growth)

    def __call__(self, layer: Tensor, epoch: int = 0, rng: Generator | None = None) -> Activation:
        """The activation of a layer; without `rng`, as in inference, chance plays no part."""
        if self.method == "noise":
            soft = torch.sigmoid(layer if rng is None else layer + self.noise * normal_like(layer, rng))
            return Activation(soft, _derivative(soft))
        slope = 1.0 + self.slope_growth * epoch
        soft = torch.sigmoid(layer if slope == 1 else slope * layer)
        if rng is not None and self.method in STOCHASTIC:
            bits = (soft > uniform_like(layer, rng)).to(layer.dtype)
        else:
            bits = (layer > 0).to(layer.dtype)
        if self.method == "straight-through":
            return Activation(bits, None)
        return Activation(bits, _derivative(soft) if slope == 1 else slope * _derivative(soft))


def _derivative(soft: Tensor) -> Tensor:
    """Of the sigmoid, from its value."""
    return torch.addcmul(soft, soft, soft, value=-1)


def uniform_like(layer: Tensor, rng: Generator) -> Tensor:
    """Uniform random numbers of a tensor's shape."""
    return torch.rand(layer.shape, generator=rng, dtype=layer.dtype, device=layer.device)


def normal_like(layer: Tensor, rng: Generator) -> Tensor:
    """Normal random numbers of a tensor's shape."""
    return torch.randn(layer.shape, generator=rng, dtype=layer.dtype, device=layer.device)
