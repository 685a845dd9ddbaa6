"""Distributed bag of words: a document's code predicts all its words, so one step trains the whole document."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from parabit.networks.grouping import Groups, as_tensor, group_each, ragged, steady_matmul, sum_rows
from parabit.networks.network import Candidates, Gradients, Network, WordSampler, expect
from parabit.text.bags import Bags


class BagBatch(NamedTuple):
    """The words of some documents, and the candidates of their softmax.

    `touched` groups the words of all documents, one document after the other, followed by the candidates, so that
    each row of the word matrix is read and written once. In the order of `touched`, candidates have weight 0 and
    an arbitrary document: they are not to be predicted.
    """

    touched: Groups  # of (entries + candidates,) word ids
    counts: Tensor  # (entries,) how often each is to be predicted
    starts: Tensor  # (documents,) the first entry of each
    totals: Tensor  # (documents,) the sum of its counts
    ordered_documents: Tensor  # (entries + candidates,) in the order of `touched`, the document of each
    ordered_counts: Tensor  # (entries + candidates,)
    correction: Tensor  # (candidates,)


def dbow_gradients(
    network: Network,
    embedded: Tensor,
    batch: BagBatch,
    dropout: float = 0.0,
    rng: Generator | None = None,
) -> Gradients:
    """The gradients of a batch of documents.

    With counts c (documents x words, sparse), N their sums and P the softmax of h U:
    dL/dh = N P U - c U and dL/dU = (N P)' h - c' h.
    """
    touched, entries = batch.touched, len(batch.counts)
    of_entries, of_candidates = touched.of[:entries], touched.of[entries:]
    words = network.words.index_select(0, touched.ids)  # (touched, hidden)
    sampled = words.index_select(0, of_candidates)  # (candidates, hidden)
    layer = network.embed(embedded, dropout, rng)
    hidden = layer.hidden  # (documents, hidden)

    expected = expect(torch.addmm(batch.correction, hidden, sampled.T), batch.totals)  # (documents, candidates)
    own = sum_rows(words, of_entries, batch.starts, batch.counts)  # (documents, hidden): c U
    embedding, projection = network.backward(layer, torch.addmm(own, expected.words, sampled, beta=-1))
    gradient = sum_rows(hidden, batch.ordered_documents, touched.starts, batch.ordered_counts).neg_()
    gradient.index_add_(0, of_candidates, expected.words.T @ hidden)  # (touched, hidden)
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
    """What inference needs of documents, summed once: the softmax weights no longer change."""

    own: Tensor  # (documents, hidden): c U
    totals: Tensor  # (documents,)


def dbow_embedding_gradient(network: Network, embedded: Tensor, wanted: WantedWords, candidates: Candidates) -> Tensor:
    """The gradient with respect to the document embeddings alone: (documents, dim)."""
    layer = network.embed(embedded)
    sampled = network.words.index_select(0, candidates.ids)  # (candidates, hidden)
    expected = expect(steady_matmul(layer.hidden, sampled.T) + candidates.correction, wanted.totals)
    return network.backward(layer, steady_matmul(expected.words, sampled) - wanted.own)[0]


class BagTable:
    """The bags of a corpus, from which batches of whole documents are taken."""

    gradients = staticmethod(dbow_gradients)
    embedding_gradient = staticmethod(dbow_embedding_gradient)

    def __init__(self, documents: Bags, device: torch.device) -> None:
        self.device = device
        self._features = as_tensor(documents.features, device)
        self._counts = as_tensor(documents.counts, device)
        offsets = as_tensor(documents.feature_offsets, device)
        self._starts, self.lengths = offsets[:-1], offsets.diff()

    def plan(self, documents: Tensor, size: int) -> list[Tensor]:
        """The steps of an epoch: batches of so many documents, in the order given."""
        return list(torch.split(documents, size))

    def share(self, batch: BagBatch) -> float:
        """How much of its documents a batch holds: all."""
        return 1.0

    def prepare(self, steps: Sequence[Tensor], sampler: WordSampler, rng: Generator) -> list[tuple[Tensor, BagBatch]]:
        """For each of some steps its documents, and everything it needs of them; all steps with one sort."""
        sizes = [len(documents) for documents in steps]
        words, counts, owners, starts, totals = self._select(torch.cat(list(steps)))
        bounds = functional.pad(starts, (0, 1), value=len(words))
        first = torch.tensor([0, *sizes], device=self.device).cumsum(0)  # (steps + 1,) the first document of each
        entries = bounds[first].diff()  # (steps,)
        drawn = sampler.draw_each(len(steps), rng)
        # The candidates of a step stand behind its documents' words.
        step = torch.repeat_interleave(entries, output_size=len(words))  # (entries,)
        places = torch.arange(len(words), device=self.device) + step * sampler.size
        total = len(words) + len(steps) * sampler.size
        all_candidates = torch.arange(len(steps) * sampler.size, device=self.device).view(len(steps), -1)
        all_words = words.new_empty(total)
        all_words[places] = words
        all_words[bounds[first[1:], None] + all_candidates] = torch.stack([c.ids for c in drawn]).to(words.dtype)
        all_counts = counts.new_zeros(total)
        all_counts[places] = counts
        all_owners = owners.new_zeros(total)
        all_owners[places] = owners - first[step]
        starts = starts - torch.repeat_interleave(
            bounds[first[:-1]], torch.tensor(sizes, device=self.device), output_size=len(starts)
        )
        lengths = entries.tolist()
        touched, ordered = group_each(all_words, [length + sampler.size for length in lengths], all_owners, all_counts)
        parts = zip(
            touched,
            torch.split(counts, lengths),
            torch.split(starts, sizes),
            torch.split(totals, sizes),
            *zip(*ordered, strict=True),
            [candidates.correction for candidates in drawn],
            strict=True,
        )
        return [(documents, BagBatch(*part)) for documents, part in zip(steps, parts, strict=True)]

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
