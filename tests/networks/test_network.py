import math

import pytest
import torch

from parabit.networks.config import METHODS, choose_shape, paper_recipe
from parabit.networks.network import Binarization, WordSampler, expect

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


def test_noise_stands_before_the_sigmoid_and_without_noise_it_is_the_sigmoid() -> None:
    drawn = torch.randn(LAYER.shape, generator=seeded(), dtype=torch.float64)
    for noise, rng, layer in (
        (2.0, seeded(), LAYER + 2 * drawn),
        (0.0, seeded(), LAYER),
        (2.0, None, LAYER),
    ):
        hidden, gate = Binarization.of(
            paper_recipe(choose_shape(8), binarization="noise", noise=noise)
        )(LAYER, rng=rng)
        torch.testing.assert_close(hidden, torch.sigmoid(layer))
        torch.testing.assert_close(gate, derivative(layer))


@pytest.mark.parametrize("epoch", [0, 1, 4])
def test_the_slope_grows_with_the_epochs(epoch: int) -> None:
    slope = 1 + 0.5 * epoch
    recipe = paper_recipe(
        choose_shape(8), binarization="straight-through-sigmoid", slope_growth=0.5
    )
    layer = LAYER.expand(20_000, -1)
    hidden, gate = Binarization.of(recipe, epoch)(layer, seeded())
    assert set(hidden.unique().tolist()) == {0.0, 1.0}
    probability = torch.sigmoid(slope * LAYER[0])
    deviation = torch.sqrt(probability * (1 - probability) / len(layer))
    assert ((hidden.mean(0) - probability).abs() < 5 * deviation).all()
    torch.testing.assert_close(gate, derivative(layer, slope))
    plain, none = Binarization("straight-through", slope=slope)(layer, seeded())
    assert torch.equal(plain, hidden)
    assert none is None


@pytest.mark.parametrize("method", METHODS)
def test_without_a_generator_chance_plays_no_part(method: str) -> None:
    binarization = Binarization(method, noise=2.0, slope=2.5 if method in STOCHASTIC else 1.0)
    before = torch.get_rng_state()
    rng = seeded() if method == "rounding" else None  # which never draws
    (first, _), (second, _) = binarization(LAYER, rng), binarization(LAYER, rng)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, second)
    assert ((first > 0.5).to(LAYER.dtype)).tolist() == BITS  # zero itself is no set bit


FREQUENCIES = torch.tensor([500.0, 1.0, 40.0, 40.0, 7.0, 200.0, 3.0, 90.0], dtype=torch.float64)
LOGITS = torch.tensor([0.5, 3.0, -1.0, 2.0, 0.0, -2.0, 4.0, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_words_are_drawn_with_their_frequency_to_a_power(power: float) -> None:
    draws = 200_000
    drawn = WordSampler(FREQUENCIES, draws, power).draw(seeded()).ids
    shares = torch.bincount(drawn, minlength=len(FREQUENCIES)) / draws
    q = FREQUENCIES**power / (FREQUENCIES**power).sum()
    assert ((shares - q).abs() < 5 * torch.sqrt(q * (1 - q) / draws)).all()


def test_the_whole_vocabulary_is_taken_where_no_samples_are_and_the_softmax_is_exact() -> None:
    sampler = WordSampler(FREQUENCIES, samples=0, power=0.75)
    candidates = sampler.draw(seeded())
    assert candidates.ids.tolist() == list(range(len(FREQUENCIES)))
    assert not candidates.correction.any()
    totals = torch.tensor(
        [0.0, 1.0, 2.5, 1000.0], dtype=torch.float64
    )  # as many words are expected as there are
    log_denominator, expected = expect(
        (LOGITS[candidates.ids] + candidates.correction).expand(4, -1), totals
    )
    torch.testing.assert_close(log_denominator, torch.logsumexp(LOGITS, 0).expand(4))
    torch.testing.assert_close(expected, totals[:, None] * torch.softmax(LOGITS, 0))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_sampled_denominator_is_the_true_one_on_the_average(power: float) -> None:
    sampler, rng = WordSampler(FREQUENCIES, 64, power), seeded()
    totals = torch.ones(1, dtype=torch.float64)
    estimates = []
    for _ in range(3000):
        ids, correction = sampler.draw(rng)
        estimates.append(expect((LOGITS[ids] + correction)[None], totals)[0].exp())
    found = torch.cat(estimates)
    standard_error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - LOGITS.exp().sum()) < 5 * standard_error


def test_draws_are_in_order_and_follow_the_generator_in_both_precisions() -> None:
    sampler, single = WordSampler(FREQUENCIES, 500), WordSampler(FREQUENCIES.float(), 500)
    one, same, other = (sampler.draw(seeded(seed)).ids for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(one, one.sort().values)
    assert torch.equal(single.draw(seeded()).ids, one)
    assert single.draw(seeded()).correction.dtype == torch.float32


def test_a_word_that_never_occurs_is_never_drawn() -> None:
    drawn = WordSampler(torch.tensor([0.0, 2.0, 0.0, 1.0, 0.0]), 10_000).draw(seeded()).ids
    assert set(drawn.tolist()) == {1, 3}


def test_large_logits_do_not_overflow() -> None:
    log_denominator, expected = expect(
        torch.tensor([[1000.0, -1000.0], [-5000.0, -5000.0]]), torch.ones(2)
    )
    assert expected.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert log_denominator.tolist() == pytest.approx([1000.0, -5000.0 + math.log(2)])
