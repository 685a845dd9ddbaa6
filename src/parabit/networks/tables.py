"""What training and inference read of a corpus, as a recipe asks for it."""

import torch

from parabit.networks import WordSampler
from parabit.networks.bags import BagTable
from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.inference import Table
from parabit.networks.positions import PositionTable
from parabit.networks.recipe import Recipe
from parabit.networks.shape import Shape


def make_table(
    documents: Documents, statistics: WordStatistics, shape: Shape, recipe: Recipe, device: torch.device
) -> Table:
    """The documents' words on a device: as bags, or in their order."""
    if shape.architecture == "dm":
        return PositionTable(documents, len(statistics.counts), shape, recipe, device)
    return BagTable(documents, torch.from_numpy(statistics.weights(recipe.idf_power)).to(device), recipe)


def make_sampler(
    statistics: WordStatistics, recipe: Recipe, device: torch.device, samples: int | None = None
) -> WordSampler:
    """Draws as many words as the recipe says, or as many as asked for.

    On the CPU it draws the same words whatever device they are for.
    """
    frequencies = torch.from_numpy(statistics.frequencies(recipe.idf_power)).to(device)
    return WordSampler(frequencies, recipe.samples if samples is None else samples, recipe.sampling_power)
