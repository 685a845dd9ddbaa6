"""The semantic hashing autoencoder: words to bits, and from the bits back to the words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

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
from parabit.networks.training import choose_device, generator
from parabit.text.bags import inverse_frequencies, tf_idf_rows

_BATCH = 16, 128  # documents per step, at least and at most
_STEPS = 64  # per epoch; a small corpus has smaller batches, because a few large steps would not be enough
_ENCODED_AT_ONCE = 4096  # documents
_INPUT_LENGTH = (
    10.0  # of a document's input; with length 1 its words would hardly affect the first layer
)

_Layers = list[tuple[Tensor, Tensor]]  # weights (from, to) and bias (to,) of each


@dataclass(eq=False)
class SemanticHashing:
    """The deep autoencoder of R. Salakhutdinov and G. Hinton, "Semantic hashing", IJAR 2009.

    As there: the input is the 2,000 most frequent words; two layers of 500 units lead to the bits, and two of the same
    sizes back to a softmax over the words; Gaussian noise on the input of the code layer forces activations near 0 and
    1. A bit is its activation without noise, rounded.

    Unlike there, Adam trains the whole network from a random start. The rest was chosen by the codes of held-out
    training posts of 20 Newsgroups: hidden units are tanh; words weigh by their idf, in the input and in the cross
    entropy, which is divided by the square root of a document's weight; most of the input's words (`word_dropout`) and
    some hidden units (`dropout`) are hidden at each step; the noise grows from 0 to a standard deviation of `noise`.

    The same seed gives the same codes on the CPU, with the same number of threads.
    """

    bits: int
    seed: int = 0
    words: int = 2000  # more make better codes, 10,000 much better ones
    hidden: Sequence[int] = (500, 500)
    noise: float = 8.0
    word_dropout: float = 0.8
    dropout: float = 0.2
    epochs: int = 40
    rate: float = 1e-3
    device: str = "auto"

    def fit(self, counts: csr_array) -> Self:
        """Train the autoencoder on the counts of training documents."""
        device, rows = choose_device(self.device), csr_array(counts)
        occurrences = np.bincount(rows.indices, weights=rows.data, minlength=rows.shape[1])
        most_frequent = np.argsort(-occurrences, kind="stable")[: self.words]
        self.columns_ = rows.shape[1]
        self.words_ = most_frequent[occurrences[most_frequent] > 0]  # the columns that are read
        if not len(self.words_):
            raise BaselineError(
                f"there is nothing to fit on: no word in {rows.shape[0]} documents",
                hint="give some",
            )
        rows = self._rows(rows)
        self.idf_ = inverse_frequencies(
            np.bincount(rows.indices, minlength=rows.shape[1]), rows.shape[0]
        )
        rows = rows[np.diff(rows.indptr) > 0]  # the others have no known words
        inputs = tf_idf_rows(rows.astype(np.float32), self.idf_)
        wanted = csr_array(
            (rows.data * self.idf_[rows.indices], rows.indices, rows.indptr), shape=rows.shape
        )
        rng = generator(self.seed, "semantic hashing", device=device)
        sizes = [len(self.words_), *self.hidden, self.bits]
        encoder, decoder = _layers(sizes, rng), _layers(sizes[::-1], rng)
        share = wanted.sum(axis=0) / wanted.sum()
        decoder[-1] = decoder[-1][0], _tensor(np.log(share), device)

        parameters = [tensor.requires_grad_() for layer in (*encoder, *decoder) for tensor in layer]
        adam = torch.optim.Adam(parameters, fused=True)
        weights = wanted.sum(axis=1) ** -0.5
        weights /= (
            weights * wanted.sum(axis=1)
        ).mean()  # so that the rate means the same for any corpus
        documents = inputs.shape[0]
        size = int(np.clip(documents // _STEPS, *_BATCH))
        steps = math.ceil(documents / size)
        for epoch in range(self.epochs):
            order = torch.randperm(
                documents, generator=generator(self.seed, "order", epoch)
            ).numpy()
            for step in range(steps):
                batch = order[step * size : (step + 1) * size]
                done = (epoch * steps + step) / (self.epochs * steps)
                adam.param_groups[0]["lr"] = self.rate * (1 + math.cos(math.pi * done)) / 2
                layer = _INPUT_LENGTH * _dropped(
                    _tensor(inputs[batch].toarray(), device), self.word_dropout, rng
                )
                code = _forward(layer, encoder, self.dropout, rng)  # (batch, bits)
                noise = torch.empty_like(code).normal_(generator=rng)
                activation = torch.sigmoid(code + done * self.noise * noise)
                logits = _forward(activation, decoder, self.dropout, rng)  # (batch, words)
                entropies = -(
                    _tensor(wanted[batch].toarray(), device) * functional.log_softmax(logits, dim=1)
                ).sum(1)
                objective = torch.dot(_tensor(weights[batch], device), entropies)
                adam.zero_grad()
                torch.autograd.backward(objective / len(batch))
                adam.step()
        self.encoder_ = [(weights.detach(), bias.detach()) for weights, bias in encoder]
        return self

    def transform(self, counts: csr_array) -> NDArray[np.uint8]:
        """The packed codes of documents."""
        return pack(self.activations(counts) > 0.5)

    def activations(self, counts: csr_array) -> NDArray[np.float32]:
        """What the bits are rounded from, 0 to 1: (documents, bits)."""
        fitted = getattr(self, "columns_", 0)
        if counts.shape[1] != fitted:
            hint = "fit it first, and count both with the same vocabulary"
            raise BaselineError(
                f"counts of {counts.shape[1]} words, but it was fitted on {fitted}", hint
            )
        rows = tf_idf_rows(self._rows(counts).astype(np.float32), self.idf_)
        found = np.empty((rows.shape[0], self.bits), dtype=np.float32)
        *hidden, (weights, bias) = self.encoder_
        for start in range(0, len(found), _ENCODED_AT_ONCE):
            block = slice(start, start + _ENCODED_AT_ONCE)
            layer = _INPUT_LENGTH * _tensor(rows[block].toarray(), weights.device)
            for inner, inner_bias in hidden:
                layer = torch.tanh(steady_matmul(layer, inner) + inner_bias)
            # Not torch's sigmoid: on some processors it uses another exponential for the last few numbers.
            found[block] = expit((steady_matmul(layer, weights) + bias).cpu().numpy())
        return found

    def _rows(self, counts: csr_array) -> csr_array:
        """The counts of the words that are read, each once per row."""
        rows = csr_array(counts)[:, self.words_]
        rows.sum_duplicates()
        return rows


def _layers(sizes: Sequence[int], rng: Generator) -> _Layers:
    """Random layers from size to size, scaled so that activations neither grow nor shrink at first."""
    layers = []
    for before, after in pairwise(sizes):
        weights = torch.empty(before, after, device=rng.device)
        torch.nn.init.xavier_uniform_(weights, generator=rng)
        layers.append((weights, torch.zeros(after, device=rng.device)))
    return layers


def _forward(layer: Tensor, layers: _Layers, dropout: float, rng: Generator) -> Tensor:
    """The last layer before its nonlinearity, with dropout in the hidden ones."""
    *hidden, (last, last_bias) = layers
    for weights, bias in hidden:
        layer = _dropped(torch.tanh(torch.addmm(bias, layer, weights)), dropout, rng)
    return torch.addmm(last_bias, layer, last)


def _dropped(layer: Tensor, share: float, rng: Generator) -> Tensor:
    """Set a random share of the units to zero and scale up the others."""
    return (
        layer * ((torch.empty_like(layer).uniform_(generator=rng) >= share) / (1 - share))
        if share
        else layer
    )


def _tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(array.astype(np.float32, copy=False)).to(device)
