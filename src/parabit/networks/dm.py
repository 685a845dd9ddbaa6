"""Distributed memory: a document's code and the words around a position predict the word that stands there.

The hidden layer is the document's part beside one part for each context word, so a logit is a sum over parts. A part's
share of the logits is the same wherever its document or context word recurs, and is computed once for each of them:
what is left to do for every position is the softmax itself.
"""

from typing import NamedTuple

import torch
from torch import Generator, Tensor

from parabit.networks.grouping import Groups, group, steady_matmul, sum_rows
from parabit.networks.network import Gradients, Network
from parabit.networks.softmax import Candidates, expect


class PositionBatch(NamedTuple):
    """Some positions of documents: the words to predict, what stands around them, the softmax's candidates."""

    touched: Groups  # of (positions + candidates,) word ids
    documents: Groups  # of (positions,) document ids
    contexts: tuple[Groups, ...]  # for each slot of the window, of (positions,) word ids
    correction: Tensor  # (candidates,)


def dm_gradients(
    network: Network,
    embedded: Tensor,
    batch: PositionBatch,
    dropout: float = 0.0,
    epoch: int = 0,
    rng: Generator | None = None,
) -> Gradients:
    """The gradients of a batch of positions; `embedded` has a row for each document of the batch.

    For each part the formulas are those of the bag of words, with the words that follow it as the bag.
    """
    touched, positions = batch.touched, len(batch.documents.of)
    of_targets, of_candidates = touched.of[:positions], touched.of[positions:]
    words = network.words.index_select(0, touched.ids)  # (touched, hidden)
    columns = torch.split(words, network.shape.parts, dim=1)
    is_target = (touched.order < positions).to(words.dtype)

    parts = [batch.documents, *batch.contexts]
    layers = [network.embed(embedded, dropout, epoch, rng)]
    layers += [network.embed_context(context.ids, dropout, epoch, rng) for context in batch.contexts]
    sampled = [column.index_select(0, of_candidates) for column in columns]  # (candidates, units of the part)
    logits = batch.correction.expand(positions, -1).clone()  # (positions, candidates)
    for part, layer, candidates in zip(parts, layers, sampled, strict=True):
        logits += (layer.hidden @ candidates.T).index_select(0, part.of)
    expected = expect(logits, torch.ones_like(logits[:, 0]))

    loss = expected.log_denominator.sum()
    word_gradients, hidden_gradients = [], []
    for part, layer, column, candidates in zip(parts, layers, columns, sampled, strict=True):
        of_part = sum_rows(expected.words, part.order, part.starts)  # (groups, candidates)
        own = sum_rows(column.contiguous(), of_targets[part.order], part.starts)  # (groups, units)
        hidden_gradients.append(torch.addmm(own, of_part, candidates, beta=-1))
        # Candidates are no targets; they stand in the order with weight 0 and any group.
        groups = torch.nn.functional.pad(part.of, (0, len(of_candidates)))
        gradient = sum_rows(layer.hidden, groups[touched.order], touched.starts, is_target).neg_()
        word_gradients.append(gradient.index_add_(0, of_candidates, of_part.T @ layer.hidden))
        loss = loss - torch.dot(layer.hidden.flatten(), own.flatten())

    slots = zip(layers[1:], hidden_gradients[1:], strict=True)
    of_contexts = torch.cat([network.backward_context(layer, gradient) for layer, gradient in slots])
    context_rows = batch.contexts[0].ids
    if len(batch.contexts) > 1:  # a word may stand in several slots; grouping makes a GPU wait
        contexts = group(torch.cat([context.ids for context in batch.contexts]))
        context_rows, of_contexts = contexts.ids, sum_rows(of_contexts, contexts.order, contexts.starts)
    return Gradients(
        loss=loss,
        weight=logits.new_full((), positions),
        embedding=network.backward(layers[0], hidden_gradients[0])[0],
        rows=touched.ids,
        current=words,
        words=torch.cat(word_gradients, dim=1),
        context_rows=context_rows,
        context=of_contexts,
    )


class PositionChunk(NamedTuple):
    """As many positions as are worked on at once."""

    documents: Tensor  # (positions,) the document of each, as a row of the batch
    starts: Tensor  # (pieces,) the first position of each piece of a document
    contexts: tuple[Groups, ...]  # for each slot, of (positions,) word ids
    hidden: tuple[Tensor, ...]  # for each slot, (groups, word_dim) the activations


class WantedPositions(NamedTuple):
    """What inference needs of documents when the words' weights no longer change.

    Documents are taken in pieces of bounded length: memory is bounded, and a document's sums are taken in the same
    order whatever other documents are in the batch.
    """

    own: Tensor  # (documents, code + 1) the sum of its targets' rows
    own_rest: Tensor  # (documents,) the share of its targets' logits that the document has no part in
    starts: Tensor  # (documents,) the first piece of each
    chunks: list[PositionChunk]


def wanted_positions(
    network: Network, targets: Tensor, contexts: list[Tensor], lengths: Tensor, piece: int = 1024, chunk: int = 8192
) -> WantedPositions:
    """Prepare the positions of some documents, which stand one after the other, for all rounds of inference."""
    pieces = torch.div(lengths + piece - 1, piece, rounding_mode="floor")  # (documents,)
    piece_documents = torch.repeat_interleave(pieces)
    within = (
        torch.arange(len(piece_documents), device=targets.device) - (torch.cumsum(pieces, 0) - pieces)[piece_documents]
    )
    piece_lengths = torch.clamp(lengths[piece_documents] - within * piece, max=piece)
    ends = torch.cumsum(piece_lengths, 0)
    # Cut where a piece ends, after at most `chunk` positions.
    chunk_of = torch.div(ends - 1, chunk, rounding_mode="floor")
    counts = torch.bincount(chunk_of).tolist() if len(ends) else []

    rows = group(targets)
    table = network.words.index_select(0, rows.ids)  # (distinct targets, hidden)
    code, *columns = torch.split(table, network.shape.parts, dim=1)
    rest = torch.zeros(len(targets), device=table.device, dtype=table.dtype)
    chunks, first_piece, first = [], 0, 0
    for count in counts:
        if not count:
            continue
        mine = slice(first_piece, first_piece + count)
        last = int(ends[mine][-1])
        groups = tuple(group(context[first:last]) for context in contexts)
        hidden = tuple(network.embed_context(slot.ids).hidden for slot in groups)
        for slot, activations, column in zip(groups, hidden, columns, strict=True):
            wanted = column.index_select(0, rows.of[first:last])
            rest[first:last] += (activations.index_select(0, slot.of) * wanted).sum(1)
        chunks.append(
            PositionChunk(
                documents=torch.repeat_interleave(piece_documents[mine], piece_lengths[mine]),
                starts=ends[mine] - piece_lengths[mine] - first,
                contexts=groups,
                hidden=hidden,
            )
        )
        first_piece, first = first_piece + count, last
    starts = torch.cumsum(lengths, 0) - lengths
    every = torch.arange(len(targets), device=targets.device)
    return WantedPositions(
        own=sum_rows(code.contiguous(), rows.of, starts),
        own_rest=sum_rows(rest[:, None], every, starts).squeeze(1),
        starts=torch.cumsum(pieces, 0) - pieces,
        chunks=chunks,
    )


def dm_embedding_gradient(
    network: Network, embedded: Tensor, wanted: WantedPositions, candidates: Candidates
) -> tuple[Tensor, Tensor]:
    """The loss of each document, and its gradient with respect to the document embedding alone."""
    layer = network.embed(embedded)
    code, *slots = torch.split(network.words.index_select(0, candidates.ids), network.shape.parts, dim=1)
    by_document = steady_matmul(layer.hidden, code.T) + candidates.correction
    sums = []  # of each piece: (candidates + 1,), the last is that of the log denominators
    for chunk in wanted.chunks:
        logits = by_document.index_select(0, chunk.documents)  # (positions, candidates)
        for context, activations, slot in zip(chunk.contexts, chunk.hidden, slots, strict=True):
            logits += steady_matmul(activations, slot.T).index_select(0, context.of)
        expected = expect(logits, torch.ones_like(logits[:, 0]))
        positions = torch.cat([expected.words, expected.log_denominator[:, None]], dim=1)
        sums.append(sum_rows(positions, torch.arange(len(positions), device=logits.device), chunk.starts))
    pieces = torch.cat(sums) if sums else by_document.new_zeros(0, len(candidates.ids) + 1)
    every = torch.arange(len(pieces), device=pieces.device)
    of_document = sum_rows(pieces, every, wanted.starts)  # (documents, candidates + 1)
    losses = of_document[:, -1] - (layer.hidden * wanted.own).sum(1) - wanted.own_rest
    gradient, _ = network.backward(layer, steady_matmul(of_document[:, :-1], code) - wanted.own)
    return losses, gradient
