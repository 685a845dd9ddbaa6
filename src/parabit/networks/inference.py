"""Embeddings of new documents with a trained network: AdaGrad on each document's own embedding, as in training."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parabit.networks.config import Recipe
from parabit.networks.grouping import as_tensor, steady_matmul
from parabit.networks.network import Candidates, Network
from parabit.networks.training import AdaGrad, Table, generator, make_sampler, make_table
from parabit.text.bags import Bags

# Always this many documents at once, padded if there are fewer: libraries choose the order of additions by the
# number of rows, and a document's code must not depend on the documents beside it.
_BATCH = 256


class NetworkEncoder:
    """Infers embeddings and bits; what a document gets depends on the document and the model alone.

    Embeddings start at zero and take a fixed number of steps, with the same sampled words for every document. One
    without a known word stays at zero, so its bits are zero.
    """

    def __init__(self, network: Network, counts: NDArray[np.int64], recipe: Recipe, seed: int) -> None:
        self.network, self.recipe = network, recipe
        self._counts = counts
        # Drawn on the CPU, so that they are the same on every device.
        frequencies = as_tensor(counts, torch.device("cpu")).float()
        sampler = make_sampler(frequencies, recipe)
        self._candidates = []
        for number in range(recipe.inference_rounds):
            drawn = sampler.draw(generator(seed, "inference", number))
            self._candidates.append(Candidates(*(part.to(network.words.device) for part in drawn)))

    def embed(self, documents: Bags) -> NDArray[np.float32]:
        """The embeddings of documents: (documents, dim)."""
        device = self.network.words.device
        table = make_table(documents, self._counts, self.network.shape, self.recipe, device)
        batches = torch.split(torch.arange(len(documents), device=device), _BATCH) if len(documents) else ()
        nothing = torch.zeros(0, self.network.shape.dim)
        return torch.cat([nothing, *(self._embed(table, batch).cpu() for batch in batches)]).numpy()

    def _embed(self, table: Table, batch: Tensor) -> Tensor:
        rate = self.recipe.inference_rate or self.recipe.document_rate
        wanted: Any = table.wanted(self.network, batch, _BATCH)
        embedded = torch.zeros(_BATCH, self.network.shape.dim, device=table.device)
        adagrad = AdaGrad(embedded, self.recipe.accumulator_start, self.recipe.row_rates)
        for candidates in self._candidates:
            gradient = table.embedding_gradient(self.network, embedded, wanted, candidates)
            adagrad.step(gradient + self.recipe.document_prior * embedded, rate)
        return embedded[: len(batch)]

    def activations(self, embedded: NDArray[np.float32]) -> NDArray[np.float32]:
        """The layer before the sigmoid, of embeddings: (documents, bits). A bit is on where it is above zero."""
        if self.network.projection is None:
            return embedded
        rows = torch.from_numpy(np.ascontiguousarray(embedded)).to(self.network.words.device)
        return steady_matmul(rows, self.network.projection).numpy(force=True)
