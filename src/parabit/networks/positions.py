"""Batches of positions, for distributed memory."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from parabit.networks import (
    Candidates,
    Gradients,
    Network,
    PositionBatch,
    WantedPositions,
    WordSampler,
    dm_embedding_gradient,
    dm_gradients,
    group_each,
    ragged,
    wanted_positions,
)
from parabit.networks.documents import Documents, on_device
from parabit.networks.group import ALONE, Group
from parabit.networks.recipe import Recipe
from parabit.networks.seeds import generator
from parabit.networks.shape import Shape


class PositionTable:
    """The words of a corpus in order, from which batches of positions are taken."""

    def __init__(
        self, documents: Documents, vocabulary: int, shape: Shape, recipe: Recipe, device: torch.device
    ) -> None:
        self.device = device
        self._tokens = on_device(documents.tokens, device)
        offsets = on_device(documents.token_offsets, device)
        self._starts, self._lengths = offsets[:-1], offsets.diff()
        self._predicted = None if documents.predicted is None else on_device(documents.predicted, device)
        self._outside = vocabulary  # the row of what stands beyond a document's ends
        self._slots = shape.slots
        self._recipe = recipe

    def __len__(self) -> int:
        return len(self._lengths)

    def sizes(self) -> Tensor:
        """(documents,) how much there is to predict."""
        return self._lengths

    def totals(self, documents: Tensor) -> Tensor:
        """(documents,) how many positions are predicted."""
        if self._predicted is None:
            return self._lengths[documents]
        before = torch.nn.functional.pad(torch.cumsum(self._predicted, 0), (1, 0))
        starts = self._starts[documents]
        return before[starts + self._lengths[documents]] - before[starts]

    def plan(self, documents: Tensor, seed: int, epoch: int, group: Group = ALONE) -> list[Tensor]:
        """The steps of an epoch: documents in a random order, all their positions in a row, cut into batches.

        A step is given as its documents, with the first and last position of each beside them: (documents, 3).
        """
        order = torch.randperm(len(documents), generator=generator(seed, "order", epoch, *group.name)).to(self.device)
        documents = documents[order]
        size = max(1, self._recipe.batch_size // group.size)
        ends = torch.cumsum(self._lengths[documents], 0)
        total = int(ends[-1])
        cuts = torch.arange(0, total, size, device=self.device)
        firsts = torch.searchsorted(ends, cuts, right=True).tolist()
        lasts = torch.searchsorted(ends, torch.clamp(cuts + size, max=total)).tolist()
        steps = []
        for cut, first, last in zip(cuts.tolist(), firsts, lasts, strict=True):
            mine = documents[first : last + 1]
            begins = ends[first : last + 1] - self._lengths[mine]
            start = torch.clamp(cut - begins, min=0)
            stop = torch.minimum(self._lengths[mine], cut + size - begins)
            steps.append(torch.stack([mine, start, stop], dim=1))
        return steps

    def prepare(
        self, steps: Sequence[Tensor], sampler: WordSampler, rng: Generator, candidates_rng: Generator | None = None
    ) -> list[tuple[Tensor, PositionBatch]]:
        """For each of some steps its documents, and all that it needs of them."""
        documents, start, stop = torch.cat(list(steps)).unbind(1)
        places = ragged(self._starts[documents] + start, stop - start)
        owners = torch.repeat_interleave(documents, stop - start, output_size=len(places))
        sizes = torch.stack([(step[:, 2] - step[:, 1]).sum() for step in steps]).tolist()
        targets = self._tokens[places]
        drawn = sampler.draw_each(len(steps), candidates_rng or rng)
        predicted = []
        for part, candidates in zip(torch.split(targets, sizes), drawn, strict=True):
            predicted += [part, candidates.ids.to(targets.dtype)]
        touched, _ = group_each(torch.cat(predicted), [size + sampler.size for size in sizes])
        contexts = [group_each(context, sizes)[0] for context in self._contexts(places, owners)]
        batches = zip(
            touched,
            group_each(owners, sizes)[0],
            zip(*contexts, strict=True),
            [candidates.correction for candidates in drawn],
            strict=True,
        )
        return [(batch.documents.ids, batch) for batch in (PositionBatch(*parts) for parts in batches)]

    def embedding_gradient(
        self, network: Network, embedded: Tensor, wanted: WantedPositions, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The loss of each document and its gradient with respect to the embedding."""
        return dm_embedding_gradient(network, embedded, wanted, candidates)

    def gradients(
        self, network: Network, embedded: Tensor, batch: PositionBatch, epoch: int, rng: Generator | None
    ) -> Gradients:
        """The gradients of a prepared step."""
        return dm_gradients(network, embedded, batch, self._recipe.dropout, epoch, rng)

    def wanted(self, network: Network, documents: Tensor, rows: int) -> WantedPositions:
        """What inference needs of some documents, filled up to so many with documents that say nothing."""
        lengths = self._lengths[documents]
        places = ragged(self._starts[documents], lengths)
        row_of = torch.repeat_interleave(lengths, output_size=len(places))
        if self._predicted is not None:
            kept = self._predicted[places]
            places, row_of = places[kept], row_of[kept]
            lengths = torch.bincount(row_of, minlength=len(documents))
        contexts = self._contexts(places, documents[row_of])
        filled = torch.nn.functional.pad(lengths, (0, rows - len(documents)))
        return wanted_positions(network, self._tokens[places], contexts, filled)

    def _contexts(self, places: Tensor, owners: Tensor) -> list[Tensor]:
        """For each slot of the window, the word that stands there."""
        starts, last = self._starts[owners], len(self._tokens) - 1
        ends = starts + self._lengths[owners]
        contexts = []
        for slot in self._slots:
            there = places + slot
            inside = (there >= starts) & (there < ends)
            contexts.append(self._tokens[there.clamp(0, last)].masked_fill_(~inside, self._outside))
        return contexts
