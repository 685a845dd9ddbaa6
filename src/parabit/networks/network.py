"""The five networks of the paper as one: embed, project, binarize, predict words with a softmax."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from parabit.networks.config import STOCHASTIC, Recipe, Shape
from parabit.networks.grouping import steady_matmul


class Activation(NamedTuple):
    """The output of a layer, and the derivative that backpropagation uses for it."""

    hidden: Tensor  # (batch, units)
    gate: Tensor | None  # (batch, units); None where it is 1 everywhere


@dataclass(frozen=True)
class Binarization:
    """How a sigmoid layer is made binary: the methods that the paper tried.

    - `rounding`: bits in the forward pass, the gradient of the sigmoid in the backward pass (Krizhevsky and Hinton
      2011). The paper's choice.
    - `noise`: Gaussian noise before the sigmoid drives activations to 0 and 1 (Salakhutdinov and Hinton 2009);
      `noise` is its standard deviation.
    - `straight-through` and `straight-through-sigmoid`: stochastic bits with the two biased gradient estimators of
      Bengio et al. 2013, without and with the derivative of the sigmoid. With these, slope annealing (Chung et al.
      2016) makes the sigmoid steeper from epoch to epoch: `slope` is that of one of them.
    """

    method: str = "rounding"
    noise: float = 1.0
    slope: float = 1.0

    @classmethod
    def of(cls, recipe: Recipe, epoch: int | None = None) -> "Binarization":
        """The binarization of an epoch of training; of the last one, which inference uses, if none is given."""
        grown = recipe.epochs - 1 if epoch is None else epoch
        return cls(recipe.binarization, recipe.noise, 1.0 + recipe.slope_growth * grown)

    def __call__(self, layer: Tensor, rng: Generator | None = None) -> Activation:
        """The activation of a layer; without `rng`, as in inference, nothing is random."""
        if self.method == "noise":
            soft = torch.sigmoid(layer if rng is None else layer + self.noise * normal_like(layer, rng))
            return Activation(soft, _derivative(soft))
        soft = torch.sigmoid(self.slope * layer)
        if rng is not None and self.method in STOCHASTIC:
            bits = (soft > uniform_like(layer, rng)).to(layer.dtype)
        else:
            bits = (layer > 0).to(layer.dtype)
        if self.method == "straight-through":
            return Activation(bits, None)
        return Activation(bits, self.slope * _derivative(soft))


def _derivative(soft: Tensor) -> Tensor:
    """Of the sigmoid, from its value."""
    return torch.addcmul(soft, soft, soft, value=-1)


def uniform_like(layer: Tensor, rng: Generator) -> Tensor:
    """Uniform random numbers in a tensor's shape."""
    return torch.rand(layer.shape, generator=rng, dtype=layer.dtype, device=layer.device)


def normal_like(layer: Tensor, rng: Generator) -> Tensor:
    """Normal random numbers in a tensor's shape."""
    return torch.randn(layer.shape, generator=rng, dtype=layer.dtype, device=layer.device)


class Layer(NamedTuple):
    """A batch after embedding, projection and binarization, with what the backward pass needs."""

    kept: Tensor  # (batch, dim) the embedding after dropout
    mask: Tensor | None  # (batch, dim) what dropout multiplied it by
    gate: Tensor | None  # (batch, code) the derivative of the activation
    hidden: Tensor  # (batch, units) what the softmax sees


class Gradients(NamedTuple):
    """The loss of a batch and its gradients; for words and contexts, only the rows that the batch touched."""

    loss: Tensor  # () minus the log likelihood of the batch's words
    weight: Tensor  # () the number of these words
    embedding: Tensor  # (documents, dim)
    rows: Tensor  # (touched,) word ids, each once
    current: Tensor  # (touched, hidden) the softmax weights of these words, as read before the step
    words: Tensor  # (touched, hidden)
    projection: Tensor | None = None  # (dim, bits)
    context_rows: Tensor | None = None  # (contexts,) word ids, each once
    context: Tensor | None = None  # (contexts, word_dim)


@dataclass
class Network:
    """The parameters that all documents share."""

    shape: Shape
    binarization: Binarization
    words: Tensor  # (vocabulary, hidden) softmax weights; the bias is the weight of the constant unit
    projection: Tensor | None = None  # (dim, bits)
    context: Tensor | None = (
        None  # (vocabulary + 1, word_dim); the last row stands for what is beyond a document's ends
    )

    @classmethod
    def start(
        cls, shape: Shape, binarization: Binarization, frequencies: Tensor, scale: float, rng: Generator
    ) -> "Network":
        """A network before training: it knows how frequent words are, and nothing else.

        Softmax weights start at zero, so that the first thing a word learns is which documents it occurs in.
        """
        shapes = shape.tensors(len(frequencies))
        words = frequencies.new_zeros(shapes["words"])
        words[:, shape.code] = torch.log(frequencies / frequencies.sum())
        network = cls(shape, binarization, words)
        if shape.projected:
            projection = frequencies.new_empty(shapes["projection"])
            network.projection = normal_like(projection, rng) / math.sqrt(shape.dim)
        if shape.slots:
            context = frequencies.new_empty(shapes["context"])
            network.context = normal_like(context, rng) * scale
        return network

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name."""
        named = {"words": self.words, "projection": self.projection, "context": self.context}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def embed(self, documents: Tensor, dropout: float = 0.0, rng: Generator | None = None) -> Layer:
        """The document's part of the hidden layer, with the constant unit: (documents, code + 1)."""
        layer = self._forward(documents, self.projection, dropout, rng)
        return layer._replace(hidden=functional.pad(layer.hidden, (0, 1), value=1.0))

    def embed_context(self, words: Tensor, dropout: float = 0.0, rng: Generator | None = None) -> Layer:
        """A context word's part of the hidden layer: (words, word_dim)."""
        assert self.context is not None
        return self._forward(self.context.index_select(0, words), None, dropout, rng)

    def _forward(self, embedded: Tensor, projection: Tensor | None, dropout: float, rng: Generator | None) -> Layer:
        mask = None
        if dropout and rng is not None:
            mask = (uniform_like(embedded, rng) >= dropout).to(embedded.dtype) / (1 - dropout)
        kept = embedded if mask is None else embedded * mask
        layer = kept if projection is None else steady_matmul(kept, projection)
        real = self.shape.bits is None
        activation = Activation(layer, None) if real else self.binarization(layer, rng)
        return Layer(kept, mask, activation.gate, activation.hidden)

    def backward(self, layer: Layer, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        """From the gradient of the document's hidden units to those of the embedding and of the projection."""
        gradient = gradient[:, :-1]  # the constant unit does not change
        if layer.gate is not None:
            gradient = gradient * layer.gate
        if self.projection is None:
            return _masked(gradient, layer), None
        return _masked(steady_matmul(gradient, self.projection.T), layer), layer.kept.T @ gradient

    def backward_context(self, layer: Layer, gradient: Tensor) -> Tensor:
        """From the gradient of a context word's hidden units to that of its embedding."""
        return _masked(gradient if layer.gate is None else gradient * layer.gate, layer)


def _masked(gradient: Tensor, layer: Layer) -> Tensor:
    return gradient if layer.mask is None else gradient * layer.mask


class Candidates(NamedTuple):
    """The words that the softmax's denominator is summed over."""

    ids: Tensor  # (candidates,) word ids
    correction: Tensor  # (candidates,) added to each logit, so that the sum estimates that of the whole vocabulary

    def to(self, device: torch.device) -> "Candidates":
        """The same on a device."""
        return Candidates(self.ids.to(device), self.correction.to(device))


class WordSampler:
    """Draws the words that stand for the vocabulary, each with a probability that grows with its frequency.

    One sample serves a whole batch, and a word drawn with probability q has -log(samples * q) added to its logit: then
    the sum of the exponentials is, on average, the softmax's denominator, and its gradient is the importance
    sampling of Cho et al. (2015). With `samples=0` the whole vocabulary is used and nothing is estimated. Words of
    frequency 0 are never drawn.
    """

    def __init__(self, frequencies: Tensor, samples: int, power: float = 1.0) -> None:
        self.samples = samples
        self._all = frequencies.nonzero().squeeze(1)
        self.size = samples or len(self._all)  # of one draw
        self.device = frequencies.device
        weights = frequencies.double() ** power
        self._bounds = torch.cumsum(weights, 0)
        self._bounds /= self._bounds[-1].clone()
        self._correction = torch.zeros_like(frequencies)
        if samples:
            self._correction = -(torch.log(weights / weights.sum()) + math.log(samples)).to(frequencies.dtype)

    def draw(self, rng: Generator) -> Candidates:
        """The candidates of one step."""
        return self.draw_each(1, rng)[0]

    def draw_each(self, steps: int, rng: Generator) -> list[Candidates]:
        """The candidates of several steps."""
        if not self.samples:
            return [Candidates(self._all, self._correction[self._all])] * steps
        uniform = torch.rand(steps, self.samples, generator=rng, dtype=torch.float64, device=self.device)
        # Sorted, the search walks through memory once, and so do the rows that are read after it.
        ids = torch.searchsorted(self._bounds, uniform.sort().values).clamp_(max=len(self._bounds) - 1)
        return [Candidates(*drawn) for drawn in zip(ids, self._correction[ids], strict=True)]


class Expected(NamedTuple):
    """What a softmax expects of the words to predict."""

    log_denominator: Tensor  # (contexts,)
    words: Tensor  # (contexts, candidates): probability times the number of words to predict


def expect(logits: Tensor, totals: Tensor) -> Expected:
    """The softmax of corrected logits, times the number of words that each context predicts.

    Minus the logarithm of the probability of a word is log_denominator - logit; summed over the words of a context its
    gradient with respect to a candidate's logit is `words`, minus the word's own count.
    """
    log_probabilities = torch.log_softmax(logits, 1)  # (contexts, candidates)
    log_denominator = logits[:, 0] - log_probabilities[:, 0]
    return Expected(log_denominator, log_probabilities.exp_().mul_(totals[:, None]))
