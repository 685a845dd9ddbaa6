"""The semantic hashing autoencoder: words to bits, and from the bits back to the words."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit
from torch import Generator, Tensor
from torch.nn import functional

from parabit.codes import pack
from parabit.errors import BaselineError
from parabit.networks.grouping import steady_matmul
from parabit.networks.network import normal_like, uniform_like
from parabit.networks.training import choose_device, generator
from parabit.progress import Progress, Report, silent
from parabit.text.bags import inverse_frequencies, tf_idf_rows

_BATCH = 16, 128  # documents per step, at least and at most
_STEPS = 64  # per epoch; a small corpus has smaller batches, because a few large steps would not be enough
_ENCODED_AT_ONCE = 4096  # documents
_INPUT_LENGTH = 10.0  # of a document's input; with length 1 its words would hardly affect the first layer
_LENGTH_EXPONENT = 0.5


class _Layer(NamedTuple):
    weights: Tensor  # (from, to)
    bias: Tensor  # (to,)


class SemanticHashing:
    """The deep autoencoder of R. Salakhutdinov and G. Hinton, "Semantic hashing", IJAR 2009.

    As there: the input is the most frequent words, 2,000 of them; two layers of 500 units lead to the bits, and two of
    the same sizes from the bits to a softmax that gives the document's words; Gaussian noise on the input of the code
    layer forces activations near 0 and 1. A bit is its activation without noise, rounded.

    Unlike there, no layer is pretrained as a Boltzmann machine: Adam trains the whole network from a random
    start, and the noise is different at each step. The rest was chosen by the codes of held-out training posts of 20
    Newsgroups: units of hidden layers are tanh, a logistic unit centred at 0; the input is the TF-IDF row, and words
    weigh by their idf in the cross entropy too; a document's cross entropy is divided by the square root of its weight;
    most of the input's words are hidden at each step (`word_dropout`), and some hidden units (`dropout`); the noise
    grows from 0 to a standard deviation of `noise`. More words make better codes, 10,000 much better ones.

    The same seed gives the same codes on the CPU, with the same number of threads. A document that has none of the
    words gets the code of an input of zeros.

    Example:
        >>> counts = csr_array([[3, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1]] * 8)
        >>> model = SemanticHashing(bits=8, hidden=(20,), epochs=30, device="cpu").fit(counts)
        >>> model.transform(counts).shape
        (32, 1)
    """

    _columns = 0  # of the counts that it was fitted on
    words_: NDArray[np.int64]  # the columns that are read
    idf_: NDArray[np.float32]  # of these
    encoder_: list[_Layer]

    def __init__(
        self,
        bits: int,
        seed: int = 0,
        words: int = 2000,
        hidden: Sequence[int] = (500, 500),
        noise: float = 8.0,
        word_dropout: float = 0.8,
        dropout: float = 0.2,
        epochs: int = 40,
        rate: float = 1e-3,
        device: str = "auto",
    ) -> None:
        self.bits = bits
        self.seed = seed
        self.words = words
        self.hidden = hidden
        self.noise = noise
        self.word_dropout = word_dropout
        self.dropout = dropout
        self.epochs = epochs
        self.rate = rate
        self.device = device

    def fit(self, counts: csr_array, report: Report = silent) -> Self:
        """Train the autoencoder on the counts of training documents."""
        shares = self.word_dropout, self.dropout
        least = min(self.bits, self.words, self.epochs, *self.hidden)
        if least < 1 or self.noise < 0 or self.rate <= 0 or not all(0 <= share < 1 for share in shares):
            given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
            raise BaselineError(
                f"training is not possible with {given}",
                hint="sizes must be at least 1, the rate above 0, noise at least 0, and each dropout from 0 to below 1",
            )
        device, rows = choose_device(self.device), csr_array(counts)
        occurrences = np.bincount(rows.indices, weights=rows.data, minlength=rows.shape[1])
        most_frequent = np.argsort(-occurrences, kind="stable")[: self.words]
        self._columns = rows.shape[1]
        self.words_ = most_frequent[occurrences[most_frequent] > 0]
        if not len(self.words_):
            raise BaselineError(f"there is nothing to fit on: no word in {rows.shape[0]} documents", hint="give some")
        rows = self._rows(rows)
        self.idf_ = inverse_frequencies(np.bincount(rows.indices, minlength=rows.shape[1]), rows.shape[0])
        rows = rows[np.diff(rows.indptr) > 0]  # the others have no known words
        inputs, weights = self._weighted(rows), rows.data * self.idf_[rows.indices]
        wanted = csr_array((weights, rows.indices, rows.indptr), shape=rows.shape)

        rng = generator(self.seed, "semantic hashing", device=device)
        sizes = [len(self.words_), *self.hidden, self.bits]
        encoder, decoder = _layers(sizes, rng), _layers(sizes[::-1], rng)
        share = wanted.sum(axis=0) / wanted.sum()
        decoder[-1] = decoder[-1]._replace(bias=_tensor(np.log(share), device))
        self._train(encoder, decoder, inputs, wanted, rng, report)
        self.encoder_ = [_Layer(layer.weights.detach(), layer.bias.detach()) for layer in encoder]
        return self

    def transform(self, counts: csr_array) -> NDArray[np.uint8]:
        """The packed codes of documents."""
        return pack(self.activations(counts) > 0.5)

    def activations(self, counts: csr_array) -> NDArray[np.float32]:
        """What the bits are rounded from, 0 to 1: (documents, bits)."""
        if counts.shape[1] != self._columns:
            raise BaselineError(
                f"the documents count {counts.shape[1]} words, and the baseline was fitted on {self._columns}",
                hint="fit it first, and count both with the same vocabulary",
            )
        rows = self._weighted(self._rows(counts))
        found = np.empty((rows.shape[0], self.bits), dtype=np.float32)
        for start in range(0, len(found), _ENCODED_AT_ONCE):
            block = slice(start, start + _ENCODED_AT_ONCE)
            layer = _INPUT_LENGTH * _tensor(rows[block].toarray(), self.encoder_[0].weights.device)
            for weights, bias in self.encoder_[:-1]:
                layer = torch.tanh(steady_matmul(layer, weights) + bias)
            weights, bias = self.encoder_[-1]
            # Not torch's sigmoid: on some processors it uses another exponential for the last few numbers.
            found[block] = expit((steady_matmul(layer, weights) + bias).cpu().numpy())
        return found

    def _train(
        self,
        encoder: list[_Layer],
        decoder: list[_Layer],
        inputs: csr_array,
        wanted: csr_array,
        rng: Generator,
        report: Report,
    ) -> None:
        parameters = [tensor.requires_grad_() for layer in (*encoder, *decoder) for tensor in layer]
        adam = torch.optim.Adam(parameters, lr=self.rate, fused=True)
        weights = wanted.sum(axis=1) ** -_LENGTH_EXPONENT
        weights /= (weights * wanted.sum(axis=1)).mean()  # so that the rate means the same for any corpus
        documents, device = inputs.shape[0], rng.device
        size = int(np.clip(documents // _STEPS, *_BATCH))
        steps = self.epochs * math.ceil(documents / size)
        step = 0
        for epoch in range(self.epochs):
            order = torch.randperm(documents, generator=generator(self.seed, "order", epoch)).numpy()
            loss = torch.zeros((), device=device)
            for start in range(0, documents, size):
                batch = order[start : start + size]
                done = step / steps
                adam.param_groups[0]["lr"] = self.rate * (1 + math.cos(math.pi * done)) / 2

                layer = _INPUT_LENGTH * _dropped(_tensor(inputs[batch].toarray(), device), self.word_dropout, rng)
                code = _forward(layer, encoder, self.dropout, rng)  # (batch, bits)
                activation = torch.sigmoid(code + done * self.noise * normal_like(code, rng))
                logits = _forward(activation, decoder, self.dropout, rng)  # (batch, words)
                entropies = -(_tensor(wanted[batch].toarray(), device) * functional.log_softmax(logits, dim=1)).sum(1)
                objective = torch.dot(_tensor(weights[batch], device), entropies)
                adam.zero_grad()
                torch.autograd.backward(objective / len(batch))
                adam.step()
                loss += objective.detach()
                step += 1
            note = f"loss {loss.item() / documents:.3f}"
            report(Progress("training semantic hashing", epoch + 1, "epochs", (epoch + 1) / self.epochs, note))

    def _rows(self, counts: csr_array) -> csr_array:
        """The counts of the words that are read, each once per row."""
        rows = csr_array(counts)[:, self.words_]
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return rows

    def _weighted(self, rows: csr_array) -> csr_array:
        return tf_idf_rows(rows.indices, rows.data.astype(np.float32), rows.indptr, self.idf_)


def _layers(sizes: Sequence[int], rng: Generator) -> list[_Layer]:
    """Random layers from size to size, scaled so that activations neither grow nor shrink at first."""
    layers = []
    for before, after in pairwise(sizes):
        weights = torch.empty(before, after, device=rng.device)
        torch.nn.init.xavier_uniform_(weights, generator=rng)
        layers.append(_Layer(weights, torch.zeros(after, device=rng.device)))
    return layers


def _forward(layer: Tensor, layers: list[_Layer], dropout: float, rng: Generator) -> Tensor:
    """The last layer before its nonlinearity, with dropout in the hidden ones."""
    for weights, bias in layers[:-1]:
        layer = _dropped(torch.tanh(torch.addmm(bias, layer, weights)), dropout, rng)
    return torch.addmm(layers[-1].bias, layer, layers[-1].weights)


def _dropped(layer: Tensor, share: float, rng: Generator) -> Tensor:
    """Set a random share of the units to zero and scale up the others."""
    return layer * ((uniform_like(layer, rng) >= share) / (1 - share)) if share else layer


def _tensor(array: NDArray[np.floating], device: torch.device) -> Tensor:
    return torch.from_numpy(array.astype(np.float32, copy=False)).to(device)
