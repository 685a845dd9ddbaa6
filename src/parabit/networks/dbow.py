"""Distributed bag of words: a document's code predicts all its words, so one step trains the whole document."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from parabit.networks.grouping import Groups, steady_matmul, sum_rows
from parabit.networks.network import Gradients, Network
from parabit.networks.softmax import Candidates, expect


class BagBatch(NamedTuple):
    """The words of some documents, and the candidates of their softmax.

    `touched` groups the words of all documents, one document after the other, and after them the candidates, so that
    each row of the word matrix is read and written once. In the order of `touched`, candidates stand with weight 0 and
    any document: they are not to be predicted.
    """

    touched: Groups  # of (entries + candidates,) word ids
    weights: Tensor  # (entries,) how much each counts
    starts: Tensor  # (documents,) the first entry of each
    totals: Tensor  # (documents,) the sum of its weights
    ordered_documents: Tensor  # (entries + candidates,) in the order of `touched`, the document of each
    ordered_weights: Tensor  # (entries + candidates,)
    correction: Tensor  # (candidates,)


def dbow_gradients(
    network: Network,
    embedded: Tensor,
    batch: BagBatch,
    dropout: float = 0.0,
    epoch: int = 0,
    rng: Generator | None = None,
) -> Gradients:
    """The gradients of a batch of documents.

    With counts c (documents x words, sparse), N their sums and P the softmax of h U:
    dL/dh = N P U - c U and dL/dU = (N P)' h - c' h.
    """
    touched, entries = batch.touched, len(batch.weights)
    of_entries, of_candidates = touched.of[:entries], touched.of[entries:]
    words = network.words.index_select(0, touched.ids)  # (touched, hidden)
    sampled = words.index_select(0, of_candidates)  # (candidates, hidden)
    layer = network.embed(embedded, dropout, epoch, rng)
    hidden = layer.hidden  # (documents, hidden)

    expected = expect(torch.addmm(batch.correction, hidden, sampled.T), batch.totals)
    own = sum_rows(words, of_entries, batch.starts, batch.weights)  # (documents, hidden): c U
    embedding, projection = network.backward(layer, torch.addmm(own, expected.words, sampled, beta=-1))
    gradient = sum_rows(hidden, batch.ordered_documents, touched.starts, batch.ordered_weights).neg_()
    gradient.index_add_(0, of_candidates, expected.words.T @ hidden)
    return Gradients(
        loss=torch.dot(batch.totals, expected.log_denominator) - torch.dot(hidden.flatten(), own.flatten()),
        weight=batch.totals.sum(),
        embedding=embedding,
        rows=touched.ids,
        current=words,
        words=gradient,
        projection=projection,
    )


class WantedWords(NamedTuple):
    """What inference needs of documents when the words' weights no longer change."""

    own: Tensor  # (documents, hidden): c U
    totals: Tensor  # (documents,)


def wanted_words(network: Network, words: Tensor, weights: Tensor, starts: Tensor, totals: Tensor) -> WantedWords:
    """Take the sums over documents' words once for all rounds."""
    return WantedWords(sum_rows(network.words, words, starts, weights), totals)


def dbow_embedding_gradient(
    network: Network, embedded: Tensor, wanted: WantedWords, candidates: Candidates
) -> tuple[Tensor, Tensor]:
    """The loss of each document, and its gradient with respect to the document embedding alone."""
    layer = network.embed(embedded)
    sampled = network.words.index_select(0, candidates.ids)
    expected = expect(steady_matmul(layer.hidden, sampled.T) + candidates.correction, wanted.totals)
    losses = wanted.totals * expected.log_denominator - (layer.hidden * wanted.own).sum(1)
    gradient, _ = network.backward(layer, steady_matmul(expected.words, sampled) - wanted.own)
    return losses, gradient
