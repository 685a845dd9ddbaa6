"""The five networks of the paper as one: embed, project, make binary, predict words."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from parabit.networks.binarization import Activation, Binarization, normal_like, uniform_like
from parabit.networks.grouping import steady_matmul
from parabit.networks.shape import Shape


class Layer(NamedTuple):
    """A batch on its way through embedding, projection and binarization, with what the way back needs."""

    kept: Tensor  # (batch, dim) the embedding after dropout
    mask: Tensor | None  # (batch, dim) what dropout multiplied it with
    gate: Tensor | None  # (batch, code) the derivative of the activation
    hidden: Tensor  # (batch, units) what the softmax sees of it


class Gradients(NamedTuple):
    """The loss of a batch and its gradients; of words and contexts, only the rows that the batch touched."""

    loss: Tensor  # () minus the log likelihood of the batch's words, by their weights
    weight: Tensor  # () the sum of those weights
    embedding: Tensor  # (documents, dim)
    rows: Tensor  # (touched,) word ids, each once
    current: Tensor | None  # (touched, hidden) the words' weights as they are, where they are at hand
    words: Tensor  # (touched, hidden)
    projection: Tensor | None = None  # (dim, bits)
    context_rows: Tensor | None = None  # (contexts,) word ids, each once
    context: Tensor | None = None  # (contexts, word_dim)


@dataclass
class Network:
    """The parameters that all documents share."""

    shape: Shape
    binarization: Binarization
    words: Tensor  # (vocabulary, hidden) softmax weights, and the bias as that of the constant unit
    projection: Tensor | None = None  # (dim, bits)
    context: Tensor | None = None  # (vocabulary + 1, word_dim); the last is what stands beyond a document's ends

    @classmethod
    def start(
        cls, shape: Shape, binarization: Binarization, frequencies: Tensor, scale: float, rng: Generator
    ) -> "Network":
        """A network before training: it knows how frequent words are, and nothing else.

        Softmax weights start at zero, so that the first thing a word learns is which documents it stands in.
        """
        size, device, dtype = len(frequencies), frequencies.device, frequencies.dtype
        shapes = shape.tensors(size)
        words = torch.zeros(shapes["words"], device=device, dtype=dtype)
        words[:, shape.code] = torch.log(frequencies / frequencies.sum())
        network = cls(shape, binarization, words)
        if shape.projected:
            projection = torch.empty(shapes["projection"], device=device, dtype=dtype)
            network.projection = normal_like(projection, rng) / math.sqrt(shape.dim)
        if shape.slots:
            context = torch.empty(shapes["context"], device=device, dtype=dtype)
            network.context = normal_like(context, rng) * scale
        return network

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name."""
        named = {"words": self.words, "projection": self.projection, "context": self.context}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def embed(self, documents: Tensor, dropout: float = 0.0, epoch: int = 0, rng: Generator | None = None) -> Layer:
        """The document's part of the hidden layer, with the constant unit: (documents, code + 1)."""
        layer = self._forward(documents, self.projection, dropout, epoch, rng)
        return layer._replace(hidden=torch.nn.functional.pad(layer.hidden, (0, 1), value=1.0))

    def embed_context(self, words: Tensor, dropout: float = 0.0, epoch: int = 0, rng: Generator | None = None) -> Layer:
        """A context word's part of the hidden layer: (words, word_dim)."""
        assert self.context is not None
        return self._forward(self.context.index_select(0, words), None, dropout, epoch, rng)

    def _forward(
        self, embedded: Tensor, projection: Tensor | None, dropout: float, epoch: int, rng: Generator | None
    ) -> Layer:
        mask = None
        if dropout and rng is not None:
            mask = (uniform_like(embedded, rng) >= dropout).to(embedded.dtype) / (1 - dropout)
        kept = embedded if mask is None else embedded * mask
        layer = kept if projection is None else steady_matmul(kept, projection)
        real = self.shape.bits is None
        activation = Activation(layer, None) if real else self.binarization(layer, epoch, rng)
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
