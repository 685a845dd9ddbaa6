"""Exact encoding: a document's embedding by gradient inference, as in training, with the network's weights fixed."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from parabit.networks import (
    Binarization,
    Documents,
    Inference,
    Network,
    WordStatistics,
    choose_device,
    make_sampler,
    make_table,
    steady_matmul,
)
from parabit.networks.recipe import Recipe
from parabit.networks.shape import Shape
from parabit.text import BatchBags, Vocabulary


def statistics_of(vocabulary: Vocabulary) -> WordStatistics:
    """How frequent the words of a vocabulary are."""
    return WordStatistics(vocabulary.counts, vocabulary.document_frequencies, vocabulary.documents)


class ExactEncoder:
    """Infers embeddings with a trained network. What a document gets depends on the document and the model alone."""

    def __init__(self, network: Network, vocabulary: Vocabulary, recipe: Recipe, seed: int) -> None:
        self.network, self.recipe = network, recipe
        self._statistics = statistics_of(vocabulary)
        sampler = make_sampler(self._statistics, recipe, torch.device("cpu"))
        self._inference = Inference(network, sampler, recipe, seed)

    @classmethod
    def of_tensors(
        cls,
        tensors: dict[str, NDArray[np.float32]],
        shape: Shape,
        vocabulary: Vocabulary,
        recipe: Recipe,
        seed: int,
        device: str,
    ) -> "ExactEncoder":
        """The encoder of a saved model."""
        place = choose_device(device)
        parts = {name: torch.from_numpy(tensor).to(place) for name, tensor in tensors.items()}
        return cls(Network(shape, Binarization.of(recipe), **parts), vocabulary, recipe, seed)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """The network's parameters by name."""
        return {name: tensor.numpy(force=True) for name, tensor in self.network.tensors.items()}

    def embed(self, bags: BatchBags) -> NDArray[np.float32]:
        """The embeddings of some documents: (documents, dim)."""
        documents, device = _as_documents(bags), self.network.words.device
        table = make_table(documents, self._statistics, self.network.shape, self.recipe, device)
        embedded = list(self._inference.embed_all(table, torch.arange(len(documents), device=device)))
        nothing = np.zeros((0, self.network.shape.dim), dtype=np.float32)
        return torch.cat(embedded).numpy(force=True) if embedded else nothing

    def bits(self, embedded: NDArray[np.float32]) -> NDArray[np.bool_]:
        """The bits of embeddings: which units of the layer before the sigmoid are above zero."""
        if self.network.projection is None:
            return embedded > 0
        # The same number of rows at every product: see Inference.
        rows = torch.from_numpy(np.ascontiguousarray(embedded)).to(self.network.words.device)
        return (steady_matmul(rows, self.network.projection) > 0).numpy(force=True)


def _as_documents(bags: BatchBags) -> Documents:
    def offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])

    return Documents(
        bags.features, bags.counts, offsets(bags.feature_lengths), bags.tokens, offsets(bags.token_lengths)
    )
