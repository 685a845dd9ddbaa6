"""The fast encoder of a trained network: a linear map from a document's words to what training found for it."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from parabit.linear_encoder import LinearEncoder
from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.semantics import SparseRows, sample, weigh
from parabit.progress import Progress, Report, silent

_LEARNED_FROM = 65_536  # documents
_RIDGE, _ROUNDS = 0.3, 8  # of the words' own map, and how often it is improved
_BLOCK, _TINY = 4096, 1e-20
_SMALL_RIDGE = 1e-3  # of the map that goes through the network's words, beside its mean square
_THROUGH, _THROUGH_LONG = 0.75, 0.1  # how much that one counts, with short documents and with long ones
_ROUNDING = 1e-8  # of the mean square of what is not centred: rows that differ by less are alike
_LEAST_FOUND = 1e-3  # of the deviation that is wanted


def distill(
    documents: Documents,
    statistics: WordStatistics,
    words: Tensor,
    embeddings: Tensor,
    seed: int = 0,
    report: Report = silent,
) -> LinearEncoder:
    """Learn to tell documents' embeddings from their TF-IDF rows X.

    Two maps are learned and their results added, at the same scale. One has a free row for each word: ridge
    regression, whose normal equations conjugate gradients solve. It follows the training documents closely, and knows
    little of rare words. The other goes through the network's word matrix U, X U M, so that only a small matrix M is
    learned: it knows of rare words what the network knows. Their errors on new documents differ, so the sum is better
    than either.
    """
    device = words.device
    lengths = np.diff(documents.feature_offsets)
    chosen = sample(np.flatnonzero(lengths > 0), _LEARNED_FROM, seed)
    matrix = weigh(documents, statistics, chosen, least=1)
    rows, transposed = SparseRows.of(matrix, device), SparseRows.of(matrix.T.tocsr(), device)
    wanted = embeddings[torch.from_numpy(chosen).to(embeddings.device)].to(device)
    mean = wanted.mean(0)
    wanted = wanted - mean
    scale = float(wanted.std(correction=0))

    def told(number: int) -> None:
        report(Progress("fast encoder", number, "rounds", number / _ROUNDS))

    free = _ridge(rows, transposed, wanted, told)
    through = rows @ words
    centre = through.mean(0)
    small = _least_squares(through, centre, wanted)
    share = _THROUGH + (_THROUGH_LONG - _THROUGH) * documents.eloquence
    free *= (1 - share) * _scaled(scale, rows @ free)
    small *= share * _scaled(scale, (through - centre) @ small)
    encoder = free + words @ small
    # New documents are told with less certainty than those learned from, so the mean counts less too.
    offset = mean / 2 - centre @ small
    return LinearEncoder(
        encoder.half().numpy(force=True),
        offset.numpy(force=True),
        statistics.document_frequencies,
        statistics.documents,
    )


def _ridge(rows: SparseRows, transposed: SparseRows, wanted: Tensor, told: Callable[[int], None]) -> Tensor:
    """The map W with the least |X W - Y|^2 + a |W|^2, nearly: conjugate gradients, each column for itself.

    What is as large as the map is changed where it lies: pages of new memory would cost more than the products.
    """
    residual = transposed @ wanted
    found, direction = torch.zeros_like(residual), residual.clone()
    square = _squares(residual)
    length = square  # of the direction, squared; a residual is orthogonal to the direction before
    for number in range(_ROUNDS):
        ahead = rows @ direction
        step = square / (_squares(ahead) + _RIDGE * length).clamp(min=_TINY)
        found.addcmul_(direction, step)
        residual.addcmul_(transposed @ ahead, -step).addcmul_(direction, -_RIDGE * step)
        square, before = _squares(residual), square
        share = square / before.clamp(min=_TINY)
        direction.mul_(share).add_(residual)
        length = square + share**2 * length
        told(number + 1)
    return found


def _squares(matrix: Tensor) -> Tensor:
    """The sum of squares of each column; a block of rows after the other, each in the cache."""
    return torch.stack([(block * block).sum(0) for block in torch.split(matrix, _BLOCK)]).sum(0)


def _least_squares(rows: Tensor, centre: Tensor, wanted: Tensor) -> Tensor:
    """The small map of centred rows with the least squared error, with a little ridge."""
    whole = float((rows * rows).sum() / rows.shape[1])
    rows = rows - centre
    square = (rows.T @ rows).double()
    # Rows that are all alike differ by rounding errors, of which nothing is to be learned.
    ridge = _SMALL_RIDGE * square.diagonal().mean().clamp(min=max(_ROUNDING * whole, 1e-12))
    eye = torch.eye(len(square), dtype=square.dtype, device=square.device)
    found: Tensor = torch.linalg.solve(square + ridge * eye, (rows.T @ wanted).double()).float()
    return found


def _scaled(scale: float, found: Tensor) -> float:
    """What brings results to the wanted scale; where next to nothing is found, it stays next to nothing."""
    return scale / max(float(found.std(correction=0)), _LEAST_FOUND * scale, 1e-12)
