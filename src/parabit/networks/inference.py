"""Embeddings of documents when the network no longer changes: AdaGrad on each document's own embedding."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from parabit.networks import Candidates, Gradients, Network, WordSampler
from parabit.networks.adagrad import AdaGrad
from parabit.networks.group import ALONE, Group
from parabit.networks.recipe import Recipe
from parabit.networks.seeds import generator

# Always so many documents at once, filled up where there are fewer: libraries choose how to add by the number of rows,
# and a document's code must not depend on what stands beside it.
BATCH = 256


class Table(Protocol):
    """The words of a corpus, as bags or as positions."""

    device: torch.device

    def __len__(self) -> int: ...

    def sizes(self) -> Tensor:
        """(documents,) how much there is to predict."""

    def totals(self, documents: Tensor) -> Tensor:
        """(documents,) the weight of what they say."""

    def plan(self, documents: Tensor, seed: int, epoch: int, group: Group = ALONE) -> list[Tensor]:
        """A worker's part of the steps of an epoch."""

    def prepare(
        self, steps: Sequence[Tensor], sampler: WordSampler, rng: Generator, candidates_rng: Generator | None = None
    ) -> list[tuple[Tensor, Any]]:
        """For each of some steps its documents, and all that it needs of them.

        Candidates are drawn with a generator of their own where there is one.
        """

    def gradients(self, network: Network, embedded: Tensor, batch: Any, epoch: int, rng: Generator | None) -> Gradients:
        """The gradients of a prepared step."""

    def wanted(self, network: Network, documents: Tensor, rows: int) -> Any:
        """What inference needs of some documents, filled up to so many with others, whose results nobody takes."""

    def embedding_gradient(
        self, network: Network, embedded: Tensor, wanted: Any, candidates: Candidates
    ) -> tuple[Tensor, Tensor]:
        """The loss of each document and its gradient with respect to the embedding."""


class Inference:
    """Infers embeddings: from zero, by a fixed number of AdaGrad steps, with the same sampled words for every document.

    A document without known words stays at zero, so its code is zero. The table of the documents must be on the
    network's device; the sampler may be anywhere, and on the CPU draws the same for all devices.
    """

    def __init__(self, network: Network, sampler: WordSampler, recipe: Recipe, seed: int) -> None:
        self._network = network
        self._recipe = recipe
        device = network.words.device
        self._rounds = [
            sampler.draw(generator(seed, "inference", number, device=sampler.device)).to(device)
            for number in range(recipe.inference_rounds)
        ]

    def embed(self, table: Table, documents: Tensor) -> Tensor:
        """The embeddings of at most BATCH documents: (documents, dim)."""
        return self._descend(table, table.wanted(self._network, documents, BATCH))[: len(documents)]

    def embed_all(self, table: Table, documents: Tensor) -> Iterator[Tensor]:
        """The embeddings of any number of documents, batch by batch."""
        for batch in torch.split(documents, BATCH):
            yield self.embed(table, batch)

    def losses(self, table: Table, embedded: Tensor, documents: Tensor, candidates: Candidates) -> Tensor:
        """How well embeddings predict what at most BATCH documents say: (documents,) minus log likelihood."""
        wanted = table.wanted(self._network, documents, BATCH)
        filled = torch.nn.functional.pad(embedded, (0, 0, 0, BATCH - len(embedded)))
        return table.embedding_gradient(self._network, filled, wanted, candidates)[0][: len(documents)]

    def _descend(self, table: Table, wanted: Any) -> Tensor:
        rate = self._recipe.inference_rate or self._recipe.document_rate
        words = self._network.words
        embedded = torch.zeros(BATCH, self._network.shape.dim, device=words.device, dtype=words.dtype)
        adagrad = AdaGrad(embedded, torch.full_like(embedded, self._recipe.accumulator_start))
        for candidates in self._rounds:
            _, gradient = table.embedding_gradient(self._network, embedded, wanted, candidates)
            adagrad.step(gradient, rate)
        return embedded
