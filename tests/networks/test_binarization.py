import pytest
import torch

from parabit.networks.config import METHODS, choose_shape, paper_recipe
from parabit.networks.network import Binarization

LAYER = torch.tensor([[-3.0, -0.2, 0.0, 0.2, 3.0]], dtype=torch.float64)
BITS = [[0.0, 0.0, 0.0, 1.0, 1.0]]
STOCHASTIC = ("straight-through", "straight-through-sigmoid")


def derivative(layer: torch.Tensor, slope: float = 1.0) -> torch.Tensor:
    """Of the sigmoid with a slope, as autograd finds it."""
    leaf = layer.clone().requires_grad_()
    torch.sigmoid(slope * leaf).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rounding_gives_bits_and_the_gradient_of_the_sigmoid() -> None:
    for rng in (None, seeded()):  # chance has no part in it
        hidden, gate = Binarization("rounding")(LAYER, rng=rng)
        assert hidden.tolist() == BITS
        torch.testing.assert_close(gate, derivative(LAYER))


def test_noise_stands_before_the_sigmoid() -> None:
    drawn = torch.randn(LAYER.shape, generator=seeded(), dtype=torch.float64)
    hidden, gate = Binarization("noise", noise=2.0)(LAYER, rng=seeded())
    torch.testing.assert_close(hidden, torch.sigmoid(LAYER + 2 * drawn))
    torch.testing.assert_close(gate, derivative(LAYER + 2 * drawn))


def test_no_noise_is_the_sigmoid_itself() -> None:
    for activation in (Binarization("noise", noise=0.0)(LAYER, rng=seeded()), Binarization("noise", noise=2.0)(LAYER)):
        torch.testing.assert_close(activation.hidden, torch.sigmoid(LAYER))
        torch.testing.assert_close(activation.gate, derivative(LAYER))


@pytest.mark.parametrize("method", STOCHASTIC)
def test_a_stochastic_bit_is_set_as_often_as_the_sigmoid_says(method: str) -> None:
    draws = 20_000
    hidden, _ = Binarization(method)(LAYER.expand(draws, -1), rng=seeded())
    assert set(hidden.unique().tolist()) == {0.0, 1.0}
    probability = torch.sigmoid(LAYER[0])
    deviation = torch.sqrt(probability * (1 - probability) / draws)
    assert ((hidden.mean(0) - probability).abs() < 5 * deviation).all()


def test_the_two_straight_through_gradients_are_without_and_with_the_sigmoids() -> None:
    for rng in (None, seeded()):
        assert Binarization("straight-through")(LAYER, rng=rng).gate is None
        torch.testing.assert_close(Binarization("straight-through-sigmoid")(LAYER, rng=rng).gate, derivative(LAYER))


@pytest.mark.parametrize("epoch", [0, 1, 4])
def test_the_slope_grows_with_the_epochs(epoch: int) -> None:
    slope = 1 + 0.5 * epoch
    recipe = paper_recipe(choose_shape(8), binarization="straight-through-sigmoid", slope_growth=0.5)
    layer = LAYER.expand(20_000, -1)
    hidden, gate = Binarization.of(recipe, epoch)(layer, seeded())
    probability = torch.sigmoid(slope * LAYER[0])
    deviation = torch.sqrt(probability * (1 - probability) / len(layer))
    assert ((hidden.mean(0) - probability).abs() < 5 * deviation).all()
    torch.testing.assert_close(gate, derivative(layer, slope))
    plain = Binarization("straight-through", slope=slope)(layer, seeded())
    assert torch.equal(plain.hidden, hidden)
    assert plain.gate is None


@pytest.mark.parametrize("method", METHODS)
def test_without_a_generator_chance_plays_no_part(method: str) -> None:
    binarization = Binarization(method, noise=2.0, slope=2.5 if method in STOCHASTIC else 1.0)
    before = torch.get_rng_state()
    first, second = binarization(LAYER), binarization(LAYER)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.hidden, second.hidden)
    assert ((first.hidden > 0.5).to(LAYER.dtype)).tolist() == BITS  # zero itself is no set bit


@pytest.mark.parametrize("method", ["noise", *STOCHASTIC])
def test_the_same_generator_gives_the_same_bits_and_another_gives_others(method: str) -> None:
    layer = torch.zeros(10, 10)
    one, same, other = (Binarization(method)(layer, rng=seeded(seed)).hidden for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_recipe_says_which_binarization() -> None:
    recipe = paper_recipe(choose_shape(8), binarization="straight-through", noise=0.5, slope_growth=0.25, epochs=5)
    assert Binarization.of(recipe, epoch=1) == Binarization("straight-through", noise=0.5, slope=1.25)
    assert Binarization.of(recipe) == Binarization("straight-through", noise=0.5, slope=2.0)  # of the last epoch
