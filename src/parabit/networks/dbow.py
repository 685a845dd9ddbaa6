"""Distributed bag of words: a document's code predicts all its words, so one step trains the whole document."""

from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from parabit.networks.grouping import Groups, as_tensor, group, ragged, steady_matmul, sum_rows
from parabit.networks.network import Candidates, Gradients, Network, expect
from parabit.text.bags import Bags


class BagBatch(NamedTuple):
    """The words of some documents, one after the other, then the candidates of their softmax.

    They are grouped so that each row of the word matrix is read and written once.
    """

    touched: Groups  # of (entries + candidates,) word ids
    counts: Tensor  # (entries + candidates,) how often each is to be predicted: candidates never
    owners: Tensor  # (entries + candidates,) the document of each, a row of the batch; any of them for candidates
    starts: Tensor  # (documents,) the first entry of each
    totals: Tensor  # (documents,) the sum of its counts
    correction: Tensor  # (candidates,)
    share: float = 1.0  # how much of each of its documents the batch holds

    def gradients(
        self, network: Network, embedded: Tensor, dropout: float = 0.0, rng: Generator | None = None
    ) -> Gradients:
        """The gradients of a batch of documents.

        With counts c (documents x words, sparse), N their sums and P the softmax of h U:
        dL/dh = N P U - c U and dL/dU = (N P)' h - c' h.
        """
        touched, entries = self.touched, len(self.touched.of) - len(self.correction)
        of_entries, of_candidates = touched.of[:entries], touched.of[entries:]
        words = network.words.index_select(0, touched.ids)  # (touched, hidden)
        sampled = words.index_select(0, of_candidates)  # (candidates, hidden)
        layer = network.embed(embedded, dropout, rng)
        hidden = layer.hidden  # (documents, hidden)

        logits = torch.addmm(self.correction, hidden, sampled.T)  # (documents, candidates)
        log_denominator, expected = expect(logits, self.totals)
        own = sum_rows(
            words, of_entries, self.starts, self.counts[:entries]
        )  # (documents, hidden): c U
        embedding, projection = layer.backward(torch.addmm(own, expected, sampled, beta=-1))
        gradient = sum_rows(
            hidden, self.owners[touched.order], touched.starts, self.counts[touched.order]
        ).neg_()
        gradient.index_add_(0, of_candidates, expected.T @ hidden)  # (touched, hidden)
        shared: dict[str, tuple[Tensor, Tensor | None]] = {"words": (gradient, touched.ids)}
        return Gradients(
            loss=torch.dot(self.totals, log_denominator)
            - torch.dot(hidden.flatten(), own.flatten()),
            weight=self.totals.sum(),
            embedding=embedding,
            shared=shared if projection is None else shared | {"projection": (projection, None)},
        )


class WantedWords(NamedTuple):
    """What inference needs of documents, summed once: the softmax weights no longer change."""

    own: Tensor  # (documents, hidden): c U
    totals: Tensor  # (documents,)

    def gradient(self, network: Network, embedded: Tensor, candidates: Candidates) -> Tensor:
        """The gradient with respect to the document embeddings alone: (documents, dim)."""
        layer = network.embed(embedded)
        sampled = network.words.index_select(0, candidates.ids)  # (candidates, hidden)
        _, expected = expect(
            steady_matmul(layer.hidden, sampled.T) + candidates.correction, self.totals
        )
        return layer.backward(steady_matmul(expected, sampled) - self.own)[0]


class BagTable:
    """The bags of a corpus, from which batches of whole documents are taken."""

    def __init__(self, documents: Bags, device: torch.device) -> None:
        self.device = device
        self._features = as_tensor(documents.features, device)
        self._counts = as_tensor(documents.counts, device)
        offsets = as_tensor(documents.feature_offsets, device)
        self._starts, self.lengths = offsets[:-1], offsets.diff()

    def plan(self, documents: Tensor, size: int) -> list[Tensor]:
        """The steps of an epoch: batches of so many documents, in the order given."""
        return list(torch.split(documents, size))

    def prepare(self, documents: Tensor, candidates: Candidates) -> tuple[Tensor, BagBatch]:
        """The documents of a step, and everything it needs of them."""
        words, counts, owners, starts, totals = self._select(documents)
        padding = (
            0,
            len(candidates.ids),
        )  # candidates are not to be predicted: no count, and an arbitrary owner
        return documents, BagBatch(
            touched=group(torch.cat([words, candidates.ids.to(words.dtype)])),
            counts=functional.pad(counts, padding),
            owners=functional.pad(owners, padding),
            starts=starts,
            totals=totals,
            correction=candidates.correction,
        )

    def _select(self, documents: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The bags of some documents: of each entry word, count and document; of each document start and total."""
        lengths = self.lengths[documents]
        places = ragged(self._starts[documents], lengths)
        counts = self._counts[places].float()
        owners = torch.repeat_interleave(lengths, output_size=len(places))
        totals = torch.segment_reduce(counts, "sum", lengths=lengths)
        return self._features[places], counts, owners, torch.cumsum(lengths, 0) - lengths, totals

    def wanted(self, network: Network, documents: Tensor, rows: int) -> WantedWords:
        """What inference needs of some documents, padded to this many rows with the first of them.

        Not with empty documents: vectors of other lengths are rounded differently at their ends.
        """
        padded = torch.cat([documents, documents[:1].expand(rows - len(documents))])
        words, counts, _, starts, totals = self._select(padded)
        return WantedWords(sum_rows(network.words, words.long(), starts, counts), totals)
