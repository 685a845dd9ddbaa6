import math

import pytest
import torch

from parabit.networks.network import WordSampler, expect

FREQUENCIES = torch.tensor([500.0, 1.0, 40.0, 40.0, 7.0, 200.0, 3.0, 90.0], dtype=torch.float64)
LOGITS = torch.tensor([0.5, 3.0, -1.0, 2.0, 0.0, -2.0, 4.0, 1.0], dtype=torch.float64)


def seeded(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def probabilities(power: float) -> torch.Tensor:
    weights = FREQUENCIES**power
    return weights / weights.sum()


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
def test_words_are_drawn_with_their_frequency_to_a_power(power: float) -> None:
    draws = 200_000
    drawn = WordSampler(FREQUENCIES, draws, power).draw(seeded()).ids
    shares = torch.bincount(drawn, minlength=len(FREQUENCIES)) / draws
    q = probabilities(power)
    assert ((shares - q).abs() < 5 * torch.sqrt(q * (1 - q) / draws)).all()


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("samples", [1, 5, 300])
def test_a_word_is_corrected_by_how_often_it_is_expected(samples: int, power: float) -> None:
    candidates = WordSampler(FREQUENCIES, samples, power).draw(seeded())
    assert len(candidates.ids) == samples
    torch.testing.assert_close(candidates.correction, -torch.log(samples * probabilities(power)[candidates.ids]))


def test_the_whole_vocabulary_is_taken_where_no_samples_are_and_the_softmax_is_exact() -> None:
    sampler = WordSampler(FREQUENCIES, samples=0, power=0.75)
    candidates = sampler.draw(seeded())
    assert sampler.size == len(FREQUENCIES)
    assert candidates.ids.tolist() == list(range(len(FREQUENCIES)))
    assert not candidates.correction.any()
    expected = expect((LOGITS[candidates.ids] + candidates.correction)[None], torch.tensor([3.0], dtype=torch.float64))
    torch.testing.assert_close(expected.log_denominator, torch.logsumexp(LOGITS, 0)[None])
    torch.testing.assert_close(expected.words[0], 3 * torch.softmax(LOGITS, 0))


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_sampled_denominator_is_the_true_one_on_the_average(power: float) -> None:
    sampler, rng = WordSampler(FREQUENCIES, 64, power), seeded()
    totals = torch.ones(1, dtype=torch.float64)
    estimates = []
    for _ in range(3000):
        ids, correction = sampler.draw(rng)
        estimates.append(expect((LOGITS[ids] + correction)[None], totals).log_denominator.exp())
    found = torch.cat(estimates)
    standard_error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - LOGITS.exp().sum()) < 5 * standard_error


def test_draws_are_in_order_and_follow_the_generator() -> None:
    sampler = WordSampler(FREQUENCIES, 500)
    one, same, other = (sampler.draw(seeded(seed)).ids for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(one, one.sort().values)


def test_a_word_that_never_occurs_is_never_drawn() -> None:
    drawn = WordSampler(torch.tensor([0.0, 2.0, 0.0, 1.0, 0.0]), 10_000).draw(seeded()).ids
    assert set(drawn.tolist()) == {1, 3}


def test_single_precision_draws_as_double_does() -> None:
    single, double = (
        WordSampler(frequencies, 1000).draw(seeded()) for frequencies in (FREQUENCIES.float(), FREQUENCIES)
    )
    assert torch.equal(single.ids, double.ids)
    assert single.correction.dtype == torch.float32


def test_as_many_words_are_expected_as_there_are_to_predict() -> None:
    logits = torch.randn(4, 9, generator=seeded(), dtype=torch.float64)
    totals = torch.tensor([0.0, 1.0, 2.5, 1000.0], dtype=torch.float64)
    expected = expect(logits, totals)
    torch.testing.assert_close(expected.words.sum(1), totals)
    torch.testing.assert_close(expected.log_denominator, torch.logsumexp(logits, 1))


def test_large_logits_do_not_overflow() -> None:
    expected = expect(torch.tensor([[1000.0, -1000.0], [-5000.0, -5000.0]]), torch.ones(2))
    assert expected.words.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert expected.log_denominator.tolist() == pytest.approx([1000.0, -5000.0 + math.log(2)])
