"""The five networks of the paper as one: embed, project, binarize, predict words with a softmax."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import functional

from parabit.networks.config import STOCHASTIC, Recipe, Shape
from parabit.networks.grouping import as_tensor, steady_matmul


@dataclass(frozen=True)
class Binarization:
    """How a sigmoid layer is made binary: the methods that the paper tried, in the order of METHODS.

    They are those of Krizhevsky and Hinton 2011 (the paper's choice), Salakhutdinov and Hinton 2009, and the stochastic
    bits of Bengio et al. 2013 with their two biased gradient estimators; docs/models.md describes them.
    """

    method: str = "rounding"
    noise: float = 1.0  # standard deviation
    slope: float = (
        1.0  # of the sigmoid, which annealing makes steeper from epoch to epoch (Chung et al. 2016)
    )

    @classmethod
    def of(cls, recipe: Recipe, epoch: int | None = None) -> "Binarization":
        """The binarization of an epoch of training; of the last one, which inference uses, if none is given."""
        grown = recipe.epochs - 1 if epoch is None else epoch
        return cls(recipe.binarization, recipe.noise, 1.0 + recipe.slope_growth * grown)

    def __call__(self, layer: Tensor, rng: Generator | None = None) -> tuple[Tensor, Tensor | None]:
        """The activation of a layer, and the derivative that backpropagation uses for it, None if it is 1 everywhere.

        Without `rng`, as in inference, nothing is random.
        """
        if self.method != "noise":
            layer = self.slope * layer
        elif rng is not None:
            layer = layer + self.noise * torch.empty_like(layer).normal_(generator=rng)
        soft = torch.sigmoid(layer)
        derivative = self.slope * torch.addcmul(soft, soft, soft, value=-1)
        if self.method == "noise":
            return soft, derivative
        drawn = rng is not None and self.method in STOCHASTIC
        bits = soft > torch.empty_like(soft).uniform_(generator=rng) if drawn else layer > 0
        return bits.to(layer.dtype), None if self.method == "straight-through" else derivative


class Layer(NamedTuple):
    """A batch after embedding, projection and binarization, with what the backward pass needs."""

    hidden: Tensor  # (batch, units) what the softmax sees
    gate: Tensor | None  # (batch, code) the derivative of the activation
    projection: Tensor | None  # (dim, code)
    kept: Tensor  # (batch, dim) the embedding after dropout
    mask: Tensor | None  # (batch, dim) what dropout multiplied it by

    def backward(self, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """From the gradient of the hidden units to those of the embedding and of the projection."""
        units = (self.kept if self.projection is None else self.projection).shape[1]
        gradient = gradient[:, :units]  # the constant unit, if there is one, does not change
        if self.gate is not None:
            gradient = gradient * self.gate
        of_projection = None
        if self.projection is not None:
            of_projection = self.kept.T @ gradient
            gradient = steady_matmul(gradient, self.projection.T)
        return gradient if self.mask is None else gradient * self.mask, of_projection


class Gradients(NamedTuple):
    """The loss of a batch and its gradients."""

    loss: Tensor  # () minus the log likelihood of the batch's words
    weight: Tensor  # () the number of these words
    embedding: Tensor  # (documents, dim)
    # Of the network's tensors, by name: (rows, columns), and which rows the batch touched, each once; None is all.
    shared: dict[str, tuple[Tensor, Tensor | None]]


@dataclass
class Network:
    """The parameters that all documents share."""

    shape: Shape
    binarization: Binarization
    words: (
        Tensor  # (vocabulary, hidden) softmax weights; the bias is the weight of the constant unit
    )
    projection: Tensor | None = None  # (dim, bits)
    context: Tensor | None = (
        None  # (vocabulary + 1, word_dim); the last row is what is beyond a document's ends
    )

    @classmethod
    def start(cls, shape: Shape, recipe: Recipe, frequencies: Tensor, rng: Generator) -> "Network":
        """A network before training: it knows how frequent words are, and nothing else.

        Softmax weights start at zero, so that the first thing a word learns is which documents it occurs in.
        """
        tensors = {
            name: frequencies.new_zeros(size)
            for name, size in shape.tensors(len(frequencies)).items()
        }
        tensors["words"][:, shape.code] = torch.log(frequencies / frequencies.sum())
        if shape.projected:
            tensors["projection"].normal_(generator=rng).div_(math.sqrt(shape.dim))
        if shape.slots:
            tensors["context"].normal_(generator=rng).mul_(recipe.embedding_start)
        return cls(shape, Binarization.of(recipe), **tensors)

    @classmethod
    def of_arrays(
        cls,
        arrays: Mapping[str, NDArray[np.float32]],
        shape: Shape,
        recipe: Recipe,
        device: torch.device,
    ) -> "Network":
        """The network of a saved model."""
        return cls(
            shape,
            Binarization.of(recipe),
            **{name: as_tensor(array, device) for name, array in arrays.items()},
        )

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name."""
        named = {"words": self.words, "projection": self.projection, "context": self.context}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def embed(self, documents: Tensor, dropout: float = 0.0, rng: Generator | None = None) -> Layer:
        """The document's part of the hidden layer, with the constant unit: (documents, code + 1)."""
        layer = self._forward(documents, self.projection, dropout, rng)
        return layer._replace(hidden=functional.pad(layer.hidden, (0, 1), value=1.0))

    def embed_context(
        self, words: Tensor, dropout: float = 0.0, rng: Generator | None = None
    ) -> Layer:
        """A context word's part of the hidden layer: (words, word_dim)."""
        assert self.context is not None
        return self._forward(self.context.index_select(0, words), None, dropout, rng)

    def _forward(
        self, embedded: Tensor, projection: Tensor | None, dropout: float, rng: Generator | None
    ) -> Layer:
        mask = None
        if dropout and rng is not None:
            kept = torch.empty_like(embedded).uniform_(generator=rng) >= dropout
            mask = kept.to(embedded.dtype) / (1 - dropout)
            embedded = embedded * mask
        layer = embedded if projection is None else steady_matmul(embedded, projection)
        hidden, gate = (layer, None) if self.shape.bits is None else self.binarization(layer, rng)
        return Layer(hidden, gate, projection, embedded, mask)


class Candidates(NamedTuple):
    """The words that the softmax's denominator is summed over in one step."""

    ids: Tensor  # (candidates,) word ids
    correction: Tensor  # (candidates,) added to each logit, so that the sum estimates that of the whole vocabulary


class WordSampler:
    """Draws the words that stand for the vocabulary, each with a probability that grows with its frequency.

    A word drawn with probability q has -log(samples * q) added to its logit: then the sum of the exponentials is, on
    average, the softmax's denominator, and its gradient is the importance sampling of Cho et al. (2015). With
    `samples=0` the whole vocabulary is used. Words of frequency 0 are never drawn.
    """

    def __init__(self, frequencies: Tensor, samples: int, power: float = 1.0) -> None:
        self.samples = samples
        self._all = frequencies.nonzero().squeeze(1)
        self.device = frequencies.device
        weights = frequencies.double() ** power
        self._bounds = torch.cumsum(weights, 0)
        self._bounds /= self._bounds[-1].clone()
        self._correction = torch.zeros_like(frequencies)
        if samples:
            self._correction = -(torch.log(weights / weights.sum()) + math.log(samples)).to(
                frequencies.dtype
            )

    def draw(self, rng: Generator) -> Candidates:
        """The candidates of one step."""
        return self.draw_each(1, rng)[0]

    def draw_each(self, steps: int, rng: Generator) -> list[Candidates]:
        """The candidates of several steps."""
        if not self.samples:
            return [Candidates(self._all, self._correction[self._all])] * steps
        uniform = torch.rand(
            steps, self.samples, generator=rng, dtype=torch.float64, device=self.device
        )
        # Sorted, the search walks through memory once, and so do the rows that are read after it.
        ids = torch.searchsorted(self._bounds, uniform.sort().values).clamp_(
            max=len(self._bounds) - 1
        )
        return list(map(Candidates, ids, self._correction[ids]))


def expect(logits: Tensor, totals: Tensor) -> tuple[Tensor, Tensor]:
    """The log denominators of a softmax, and its probabilities times the number of words that each context predicts.

    The loss of a word is log denominator - logit; the gradient of a context's loss with respect to a candidate's logit
    is the second part minus the candidate's count.
    """
    log_probabilities = torch.log_softmax(logits, 1)  # (contexts, candidates)
    log_denominator = logits[:, 0] - log_probabilities[:, 0]  # (contexts,)
    return log_denominator, log_probabilities.exp_().mul_(totals[:, None])
