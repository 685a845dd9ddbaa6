"""Distributed memory: a document's code and the words around a position predict the word that stands there.

The hidden layer is the document's part beside one part per context word, so a logit is a sum over parts. A part's
share of the logits is the same wherever its document or context word recurs, and is computed once for each of them:
only the softmax itself is computed for every position.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional

from parabit.networks.config import Shape
from parabit.networks.grouping import Groups, as_tensor, group, ragged, steady_matmul, sum_rows
from parabit.networks.network import Candidates, Gradients, Network, expect
from parabit.text.bags import Bags


class PositionBatch(NamedTuple):
    """Some positions of documents: the words to predict, the words around them, the softmax's candidates."""

    touched: Groups  # of (positions + candidates,) word ids
    documents: Groups  # of (positions,) document ids
    contexts: tuple[Groups, ...]  # for each slot of the window, of (positions,) word ids
    correction: Tensor  # (candidates,)
    share: Tensor  # (documents, 1) how much of each the batch holds

    def gradients(
        self, network: Network, embedded: Tensor, dropout: float = 0.0, rng: Generator | None = None
    ) -> Gradients:
        """The gradients of a batch of positions; `embedded` has one row per document of the batch.

        For each part the formulas are those of the bag of words, with the words that follow it as the bag.
        """
        touched, positions = self.touched, len(self.documents.of)
        of_targets, of_candidates = touched.of[:positions], touched.of[positions:]
        words = network.words.index_select(0, touched.ids)  # (touched, hidden)
        columns = torch.split(words, network.shape.parts, dim=1)
        is_target = (touched.order < positions).to(words.dtype)

        parts = [self.documents, *self.contexts]
        layers = [network.embed(embedded, dropout, rng)]
        layers += [network.embed_context(context.ids, dropout, rng) for context in self.contexts]
        sampled = [
            column.index_select(0, of_candidates) for column in columns
        ]  # (candidates, units of the part)
        logits = self.correction.expand(positions, -1).clone()  # (positions, candidates)
        for part, layer, candidates in zip(parts, layers, sampled, strict=True):
            logits += (layer.hidden @ candidates.T).index_select(0, part.of)
        log_denominator, expected = expect(logits, torch.ones_like(logits[:, 0]))

        loss = log_denominator.sum()
        word_gradients, hidden_gradients = [], []
        for part, layer, column, candidates in zip(parts, layers, columns, sampled, strict=True):
            of_part = sum_rows(expected, part.order, part.starts)  # (groups, candidates)
            own = sum_rows(
                column.contiguous(), of_targets[part.order], part.starts
            )  # (groups, units)
            hidden_gradients.append(torch.addmm(own, of_part, candidates, beta=-1))
            # Candidates are not targets: they have weight 0 and an arbitrary group.
            groups = functional.pad(part.of, (0, len(of_candidates)))
            gradient = sum_rows(
                layer.hidden, groups[touched.order], touched.starts, is_target
            ).neg_()
            word_gradients.append(gradient.index_add_(0, of_candidates, of_part.T @ layer.hidden))
            loss = loss - torch.dot(layer.hidden.flatten(), own.flatten())

        slots = zip(layers[1:], hidden_gradients[1:], strict=True)
        of_contexts = torch.cat([layer.backward(gradient)[0] for layer, gradient in slots])
        context_rows = self.contexts[0].ids
        if (
            len(self.contexts) > 1
        ):  # a word may stand in several slots; not otherwise, as grouping makes a GPU wait
            contexts = group(torch.cat([context.ids for context in self.contexts]))
            context_rows, of_contexts = (
                contexts.ids,
                sum_rows(of_contexts, contexts.order, contexts.starts),
            )
        return Gradients(
            loss=loss,
            weight=logits.new_full((), positions),
            embedding=layers[0].backward(hidden_gradients[0])[0],
            shared={
                "words": (torch.cat(word_gradients, dim=1), touched.ids),
                "context": (of_contexts, context_rows),
            },
        )


class PositionChunk(NamedTuple):
    """As many positions as inference works on at once."""

    documents: Tensor  # (positions,) the document of each, as a row of the batch
    starts: Tensor  # (pieces,) the first position of each piece of a document
    contexts: tuple[Groups, ...]  # for each slot, of (positions,) word ids
    hidden: tuple[Tensor, ...]  # for each slot, (groups, word_dim) the activations


class WantedPositions(NamedTuple):
    """What inference needs of documents, computed once: the softmax weights no longer change.

    Documents are taken in pieces of bounded length: memory is bounded, and a document's sums are taken in the same
    order whatever other documents are in the batch.
    """

    own: Tensor  # (documents, code + 1) the sum of its targets' rows
    starts: Tensor  # (documents,) the first piece of each
    chunks: list[PositionChunk]

    def gradient(self, network: Network, embedded: Tensor, candidates: Candidates) -> Tensor:
        """The gradient with respect to the document embeddings alone: (documents, dim)."""
        layer = network.embed(embedded)
        code, *slots = torch.split(
            network.words.index_select(0, candidates.ids), network.shape.parts, dim=1
        )
        by_document = (
            steady_matmul(layer.hidden, code.T) + candidates.correction
        )  # (documents, candidates)
        sums = [by_document.new_zeros(0, len(candidates.ids))]
        for chunk in self.chunks:
            logits = by_document.index_select(0, chunk.documents)  # (positions, candidates)
            for context, activations, slot in zip(chunk.contexts, chunk.hidden, slots, strict=True):
                logits += steady_matmul(activations, slot.T).index_select(0, context.of)
            _, expected = expect(logits, torch.ones_like(logits[:, 0]))
            sums.append(
                sum_rows(expected, torch.arange(len(expected), device=logits.device), chunk.starts)
            )
        pieces = torch.cat(sums)  # (pieces, candidates)
        of_document = sum_rows(pieces, torch.arange(len(pieces), device=pieces.device), self.starts)
        return layer.backward(steady_matmul(of_document, code) - self.own)[0]


class PositionTable:
    """The words of a corpus in order, from which batches of positions are taken."""

    def __init__(
        self, documents: Bags, vocabulary: int, shape: Shape, device: torch.device
    ) -> None:
        self.device = device
        self._tokens = as_tensor(documents.tokens, device)
        offsets = as_tensor(documents.token_offsets, device)
        self._starts, self.lengths = offsets[:-1], offsets.diff()
        self._outside = vocabulary  # the context row of what is beyond a document's ends
        self._slots = shape.slots

    def plan(self, documents: Tensor, size: int) -> list[Tensor]:
        """The steps of an epoch: all positions of the documents, in the order given, cut into batches of this size.

        A step is a tensor of its documents, each with its first and last position in the step: (documents, 3).
        """
        ends = torch.cumsum(self.lengths[documents], 0)
        total = int(ends[-1])
        cuts = torch.arange(0, total, size, device=self.device)
        firsts = torch.searchsorted(ends, cuts, right=True).tolist()
        lasts = torch.searchsorted(ends, torch.clamp(cuts + size, max=total)).tolist()
        steps = []
        for cut, first, last in zip(cuts.tolist(), firsts, lasts, strict=True):
            chosen = documents[first : last + 1]
            begins = ends[first : last + 1] - self.lengths[chosen]
            start = torch.clamp(cut - begins, min=0)
            stop = torch.minimum(self.lengths[chosen], cut + size - begins)
            steps.append(torch.stack([chosen, start, stop], dim=1))
        return steps

    def prepare(self, step: Tensor, candidates: Candidates) -> tuple[Tensor, PositionBatch]:
        """The documents of a step, and everything it needs of them."""
        documents, start, stop = step.unbind(1)
        places = ragged(self._starts[documents] + start, stop - start)  # (positions,)
        owners = torch.repeat_interleave(documents, stop - start, output_size=len(places))
        targets, own = self._tokens[places], group(owners)
        held = torch.bincount(own.of, minlength=len(own.ids))
        return own.ids, PositionBatch(
            touched=group(torch.cat([targets, candidates.ids.to(targets.dtype)])),
            documents=own,
            contexts=tuple(map(group, self._contexts(places, owners))),
            correction=candidates.correction,
            share=(held / self.lengths[own.ids])[:, None],
        )

    def wanted(
        self, network: Network, documents: Tensor, rows: int, piece: int = 1024, chunk: int = 8192
    ) -> WantedPositions:
        """What inference needs of some documents, padded to this many rows with empty documents."""
        lengths = self.lengths[documents]
        places = ragged(self._starts[documents], lengths)
        owners = torch.repeat_interleave(documents, lengths, output_size=len(places))
        targets, contexts = self._tokens[places], self._contexts(places, owners)

        lengths = functional.pad(lengths, (0, rows - len(documents)))
        pieces = (lengths + piece - 1) // piece  # (documents,)
        first_pieces = torch.cumsum(pieces, 0) - pieces
        piece_documents = torch.repeat_interleave(pieces)  # (pieces,)
        within = (
            torch.arange(len(piece_documents), device=self.device) - first_pieces[piece_documents]
        )
        piece_lengths = torch.clamp(lengths[piece_documents] - within * piece, max=piece)
        ends = torch.cumsum(piece_lengths, 0)
        # Pieces stay whole, so a chunk has at most `chunk + piece` positions.
        chunk_of = (ends - 1) // chunk
        parts = [
            torch.split(each, torch.bincount(chunk_of).tolist())
            for each in (piece_documents, piece_lengths)
        ]
        sizes = [int(chosen.sum()) for chosen in parts[1]]
        chunks = []
        for owners, chosen, *around in zip(
            *parts, *(torch.split(context, sizes) for context in contexts), strict=True
        ):
            slots = tuple(map(group, around))
            hidden = tuple(network.embed_context(slot.ids).hidden for slot in slots)
            starts = torch.cumsum(chosen, 0) - chosen
            chunks.append(
                PositionChunk(torch.repeat_interleave(owners, chosen), starts, slots, hidden)
            )
        distinct = group(targets)
        code = network.words[:, : network.shape.parts[0]].index_select(
            0, distinct.ids
        )  # (distinct targets, code + 1)
        return WantedPositions(
            sum_rows(code, distinct.of, torch.cumsum(lengths, 0) - lengths), first_pieces, chunks
        )

    def _contexts(self, places: Tensor, owners: Tensor) -> list[Tensor]:
        """For each slot of the window, the words that stand there: (positions,)."""
        starts, last = self._starts[owners], len(self._tokens) - 1
        ends = starts + self.lengths[owners]
        contexts = []
        for slot in self._slots:
            there = places + slot
            inside = (there >= starts) & (there < ends)
            contexts.append(self._tokens[there.clamp(0, last)].masked_fill_(~inside, self._outside))
        return contexts
