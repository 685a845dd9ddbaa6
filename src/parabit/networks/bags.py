"""Batches of whole documents, for the bag of words."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from parabit.networks import (
    BagBatch,
    Candidates,
    Gradients,
    Network,
    WantedWords,
    WordSampler,
    dbow_embedding_gradient,
    dbow_gradients,
    group_each,
    ragged,
    sum_rows,
    wanted_words,
)
from parabit.networks.documents import Documents, on_device
from parabit.networks.group import ALONE, Group
from parabit.networks.recipe import Recipe
from parabit.networks.seeds import generator
from parabit.networks.semantics import OfDocuments

_SMALLEST_BATCH = 32


class SelectedBags(NamedTuple):
    """The weighted words of some documents."""

    words: Tensor  # (entries,) ids, one document after the other
    weights: Tensor  # (entries,)
    owners: Tensor  # (entries,) the document of each, as a row of the batch
    starts: Tensor  # (documents,) the first entry of each
    totals: Tensor  # (documents,) the sum of its weights


class BagTable:
    """The bags of a corpus, from which batches are taken."""

    def __init__(self, documents: Documents, word_weights: Tensor, recipe: Recipe) -> None:
        self.device = word_weights.device
        self._features = on_device(documents.features, self.device)
        self._counts = on_device(documents.counts, self.device)
        offsets = on_device(documents.feature_offsets, self.device)
        self._starts, self._lengths = offsets[:-1], offsets.diff()
        self._word_weights = word_weights
        self._recipe = recipe
        self.neighbours: OfDocuments | None = None  # (neighbours,) ids of each

    def __len__(self) -> int:
        return len(self._lengths)

    def sizes(self) -> Tensor:
        """(documents,) how much there is to predict."""
        return self._lengths

    def totals(self, documents: Tensor) -> Tensor:
        """(documents,) the weight of what they say."""
        return self.select(documents).totals

    def plan(self, documents: Tensor, seed: int, epoch: int, group: Group = ALONE) -> list[Tensor]:
        """The steps of an epoch: all documents that have words, in a random order, in this worker's part of batches."""
        documents = documents[self._lengths[documents] > 0]
        order = torch.randperm(len(documents), generator=generator(seed, "order", epoch, *group.name)).to(self.device)
        size = self._recipe.batch_size
        if self._recipe.fewest_steps:
            size = min(size, max(_SMALLEST_BATCH, group.size * len(documents) // self._recipe.fewest_steps))
        return list(torch.split(documents[order], max(1, size // group.size)))

    def prepare(
        self, steps: Sequence[Tensor], sampler: WordSampler, rng: Generator, candidates_rng: Generator | None = None
    ) -> list[tuple[Tensor, BagBatch]]:
        """For each of some steps its documents, and all that it needs of them."""
        sizes = [len(documents) for documents in steps]
        bags = self.select(torch.cat(list(steps)), rng)
        bounds = torch.nn.functional.pad(bags.starts, (0, 1), value=len(bags.words))
        first = torch.tensor([0, *sizes], device=self.device).cumsum(0)  # the first document of each step
        entries = bounds[first].diff()  # (steps,)
        lengths = [entry + sampler.size for entry in entries.tolist()]
        drawn = sampler.draw_each(len(steps), candidates_rng or rng)
        # The candidates of a step stand behind its documents' words.
        step = torch.repeat_interleave(entries, output_size=len(bags.words))
        places = torch.arange(len(bags.words), device=self.device) + step * sampler.size
        total = len(bags.words) + len(steps) * sampler.size
        words = bags.words.new_empty(total)
        words[places] = bags.words
        candidate_places = bounds[first[1:], None] + torch.arange(len(steps) * sampler.size, device=self.device).view(
            len(steps), -1
        )
        words[candidate_places] = torch.stack([candidates.ids for candidates in drawn]).to(words.dtype)
        weights = bags.weights.new_zeros(total)
        weights[places] = bags.weights
        owners = bags.owners.new_zeros(total)
        owners[places] = bags.owners - first[step]
        starts = bags.starts - torch.repeat_interleave(
            bounds[first[:-1]], torch.tensor(sizes, device=self.device), output_size=len(bags.starts)
        )
        touched, ordered = group_each(words, lengths, owners, weights)
        batches = [
            BagBatch(groups, mine, begins, totals, by_word[0], by_word[1], candidates.correction)
            for groups, mine, begins, totals, by_word, candidates in zip(
                touched,
                torch.split(bags.weights, [length - sampler.size for length in lengths]),
                torch.split(starts, sizes),
                torch.split(bags.totals, sizes),
                ordered,
                drawn,
                strict=True,
            )
        ]
        return list(zip(steps, batches, strict=True))

    def select(self, documents: Tensor, rng: Generator | None = None) -> SelectedBags:
        """The bags of some documents; where neighbours are known and `rng` is given, each with one of its neighbours'.

        Divided by the length to a power, not by the length: a long document says more about its topic than a short
        one, but not in proportion.
        """
        rows, each = documents, 1
        if rng is not None and self.neighbours is not None:
            width = self.neighbours.values.shape[1]
            choice = torch.randint(width, (len(documents), 1), generator=rng, device=self.device)
            other = self.neighbours[documents].gather(1, choice).squeeze(1)
            rows, each = torch.stack([documents, other], dim=1).flatten(), 2
        lengths = self._lengths[rows]
        places = ragged(self._starts[rows], lengths)
        words = self._features[places]
        owners = torch.repeat_interleave(lengths, output_size=len(places))  # rows; a document and its neighbour
        weights = self._counts[places] * self._word_weights[words]
        if each == 2:
            share = self._recipe.neighbour_weight
            weights *= torch.tensor([1 - share, share], device=self.device)[owners % 2]
            owners = owners // 2
            lengths = lengths.view(-1, 2).sum(1)
        totals = torch.segment_reduce(weights, "sum", lengths=lengths)
        if self._recipe.length_exponent:
            scale = totals.clamp(min=1e-6) ** -self._recipe.length_exponent
            totals = totals * scale
            weights *= scale[owners]
        return SelectedBags(words, weights, owners, torch.cumsum(lengths, 0) - lengths, totals)

    def embedding_gradient(
        self, network: Network, embedded: Tensor, wanted: WantedWords, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The loss of each document and its gradient with respect to the embedding."""
        return dbow_embedding_gradient(network, embedded, wanted, candidates)

    def gradients(
        self, network: Network, embedded: Tensor, batch: BagBatch, epoch: int, rng: Generator | None
    ) -> Gradients:
        """The gradients of a prepared step."""
        return dbow_gradients(network, embedded, batch, self._recipe.dropout, epoch, rng)

    def project(self, directions: Tensor, documents: Tensor) -> Tensor:
        """Each document as the sum of its words' directions: (documents, dim)."""
        bags = self.select(documents)
        return sum_rows(directions, bags.words.long(), bags.starts, bags.weights)

    def wanted(self, network: Network, documents: Tensor, rows: int) -> WantedWords:
        """What inference needs of some documents, filled up to so many with the first of them.

        Not with documents that say nothing: vectors of other lengths are rounded otherwise at their ends.
        """
        bags = self.select(torch.cat([documents, documents[:1].expand(rows - len(documents))]))
        return wanted_words(network, bags.words.long(), bags.weights, bags.starts, bags.totals)
