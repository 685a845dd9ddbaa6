"""The softmax over words: exact, or with sampled words for the sum over the vocabulary."""

import math
from typing import NamedTuple

import torch
from torch import Generator, Tensor


class Candidates(NamedTuple):
    """The words that the softmax's denominator is taken over."""

    ids: Tensor  # (candidates,) word ids
    correction: Tensor  # (candidates,) added to each logit, so that the sum estimates that of the whole vocabulary

    def to(self, device: torch.device) -> "Candidates":
        """The same on a device."""
        return Candidates(self.ids.to(device), self.correction.to(device))


class WordSampler:
    """Draws the words that stand for the vocabulary, each with a probability that grows with its frequency.

    One sample serves a whole batch, and a word drawn with probability q has -log(samples * q) added to its logit: then
    the sum of the exponentials is, on the average, the softmax's denominator, and its gradient is the importance
    sampling of Cho et al. (2015). With no `samples` the whole vocabulary is taken and nothing is estimated.

    Example:
        >>> sampler = WordSampler(torch.tensor([8.0, 1.0, 1.0]), samples=2)
        >>> sampler.draw(torch.Generator().manual_seed(1)).ids.shape
        torch.Size([2])
        >>> WordSampler(torch.tensor([8.0, 1.0, 1.0]), samples=0).draw(torch.Generator()).ids.tolist()
        [0, 1, 2]
    """

    def __init__(self, frequencies: Tensor, samples: int, power: float = 1.0) -> None:
        self.samples = samples
        self.size = samples or len(frequencies)  # of a draw
        self.device = frequencies.device
        weights = frequencies.double() ** power
        self._bounds = torch.cumsum(weights, 0)
        self._bounds /= self._bounds[-1].clone()
        dtype = frequencies.dtype
        if not samples:
            self._all = Candidates(
                torch.arange(len(frequencies), device=frequencies.device), torch.zeros_like(frequencies)
            )
        else:
            self._correction = -(torch.log(weights / weights.sum()) + math.log(samples)).to(dtype)

    def draw(self, rng: Generator) -> Candidates:
        """The candidates of one step."""
        return self.draw_each(1, rng)[0]

    def draw_each(self, steps: int, rng: Generator) -> list[Candidates]:
        """The candidates of several steps."""
        if not self.samples:
            return [self._all] * steps
        uniform = torch.rand(steps, self.samples, generator=rng, dtype=torch.float64, device=self._bounds.device)
        # In order, the search walks through memory once, and so do the rows that are read after it.
        ids = torch.searchsorted(self._bounds, uniform.sort().values).clamp_(max=len(self._bounds) - 1)
        return [Candidates(*drawn) for drawn in zip(ids, self._correction[ids], strict=True)]


class Expected(NamedTuple):
    """What a softmax expects of the words to come."""

    log_denominator: Tensor  # (contexts,)
    words: Tensor  # (contexts, candidates): probability times the number of words to predict


def expect(logits: Tensor, totals: Tensor) -> Expected:
    """The softmax of corrected logits, times the number (or weight) of words that each context predicts.

    Minus the logarithm of the probability of a word is log_denominator - logit; summed over the words of a context its
    gradient with respect to a candidate's logit is `words`, less the word's own count.
    """
    log_probabilities = torch.log_softmax(logits, 1)
    log_denominator = logits[:, 0] - log_probabilities[:, 0]
    return Expected(log_denominator, log_probabilities.exp_().mul_(totals[:, None]))
