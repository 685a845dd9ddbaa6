"""Where documents begin: what each is about, which others are near it, and an embedding made of both."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from parabit.networks.bags import BagTable
from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.neighbours import looked_through, nearest_documents
from parabit.networks.recipe import Recipe
from parabit.networks.seeds import generator
from parabit.networks.semantics import OfDocuments, Quantization, sample, semantic_vectors, smoothed
from parabit.networks.shape import Shape
from parabit.progress import Report

_PROJECTED_AT_ONCE = 4096  # documents
_TURNED = 4096  # documents by which their turn is found
_SEMANTIC_DIM = 128  # at least, so that neighbours are told apart
_NOWHERE = 0.01  # from the mean of all documents, whose deviation is 1
_DOCUMENTS_A_NEIGHBOUR, _FEWEST_NEIGHBOURS = 200, 5
_LONG_WARM_UP = 0.85  # of the epochs, where documents are long
_LESS_OF_NEIGHBOURS = 0.9  # where they are long, too


@dataclass(frozen=True)
class Surroundings:
    """What a worker's documents are about, and the neighbours of each."""

    vectors: OfDocuments  # (dim,) of each, and of those that their turn is found by
    neighbours: OfDocuments | None
    turned: NDArray[np.int64]  # documents of all workers, by which the turn is found
    share: float  # of the neighbours in where a document begins

    @classmethod
    def of(
        cls,
        documents: Documents,
        statistics: WordStatistics,
        shape: Shape,
        recipe: Recipe,
        trained: NDArray[np.int64],
        own: tuple[int, int],
        seed: int,
        device: torch.device,
        report: Report,
    ) -> "Surroundings":
        """Look around: `trained` are the documents of all workers that are trained on, `own` the first and the last.

        Directions, candidates and the turn come from samples of all documents, the same for every worker, so that all
        see one space and nothing need be sent.
        """
        dim = max(shape.dim, _SEMANTIC_DIM)
        turned = sample(trained, _TURNED, seed)
        wanted = np.union1d(np.arange(*own), turned)
        known = np.union1d(wanted, looked_through(trained, seed)) if recipe.neighbours else wanted
        vectors = semantic_vectors(documents, statistics, trained, known, dim, seed, device)
        # A subject of a small collection has few documents, and long documents need few neighbours.
        count = min(recipe.neighbours, max(_FEWEST_NEIGHBOURS, len(trained) // _DOCUMENTS_A_NEIGHBOUR))
        count -= round(documents.eloquence * max(count - _FEWEST_NEIGHBOURS, 0))
        neighbours = None
        if count:
            nearest = nearest_documents(documents, statistics, vectors, trained, wanted, count, seed, report)
            neighbours = OfDocuments(wanted, torch.from_numpy(nearest).to(device))
        vectors = OfDocuments(known, vectors.values[:, : shape.dim])
        return cls(
            vectors, neighbours, turned, recipe.neighbour_weight * (1 - _LESS_OF_NEIGHBOURS * documents.eloquence)
        )


def warm_up_of(documents: Documents, recipe: Recipe) -> int:
    """For how many epochs words learn alone.

    Long documents start at what they are about, and need little correction.
    """
    warm_up = min(recipe.warm_up, recipe.epochs // 2)
    if recipe.start != "lsa" or not recipe.warm_up:
        return warm_up
    return warm_up + round(documents.eloquence * max(int(_LONG_WARM_UP * recipe.epochs) - warm_up, 0))


def start_at_random(embeddings: Tensor, recipe: Recipe, seed: int, name: tuple[int, ...]) -> None:
    """Begin anywhere."""
    rng = generator(seed, "documents", *name, device=embeddings.device)
    embeddings.normal_(0, recipe.embedding_start, generator=rng)


def start_at_words(embeddings: Tensor, table: BagTable, recipe: Recipe, vocabulary: int, seed: int, first: int) -> None:
    """Begin at the sum of the words' random directions: alike documents begin with alike codes."""
    directions = torch.empty(vocabulary, embeddings.shape[1], device=table.device)
    directions.normal_(generator=generator(seed, "directions", device=table.device))
    length = recipe.embedding_start * math.sqrt(embeddings.shape[1])
    for rows in torch.split(torch.arange(len(embeddings), device=table.device), _PROJECTED_AT_ONCE):
        projected = torch.nn.functional.normalize(table.project(directions, rows + first)) * length
        embeddings[rows.to(embeddings.device)] = projected.to(embeddings.device)


def start_at_subjects(
    embeddings: Tensor,
    table: BagTable,
    around: Surroundings,
    recipe: Recipe,
    seed: int,
    first: int,
    name: tuple[int, ...],
) -> None:
    """Begin at semantic vectors, moved towards the neighbours', and turned so that signs lose little.

    Some documents at a time: all of them may be more than memory holds.
    """
    sizes, rng = table.sizes(), generator(seed, "documents", *name, device=table.device)

    def moved(documents: Tensor) -> Tensor:
        return smoothed(around.vectors, documents, around.neighbours, around.share)

    turn = Quantization.of(moved(torch.from_numpy(around.turned).to(table.device)), seed)
    for rows in torch.split(torch.arange(len(embeddings), device=table.device), _PROJECTED_AT_ONCE):
        documents = rows + first
        mine = moved(documents)
        start = turn(mine)
        # What has no words in common with others, or the same with all, begins at random: at zero no bit would
        # ever change, and at one place all of it would have one code.
        lost = (mine == 0).all(1) | (start.norm(dim=1) < _NOWHERE)
        start = torch.where(lost[:, None], torch.empty_like(start).normal_(generator=rng), start)
        start[sizes[documents] == 0] = 0
        embeddings[rows.to(embeddings.device)] = (start * recipe.embedding_start).to(embeddings.device)
