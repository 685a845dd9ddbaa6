"""The nearest documents of each document: found in the semantic space, chosen by what they share in words too."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.networks.documents import Documents, WordStatistics
from parabit.networks.semantics import OfDocuments, sample, weigh
from parabit.progress import Progress, Report, silent
from parabit.ragged import paired_products, row_entries

_BLOCK = 256  # documents
_LOOKED_THROUGH = 32_768  # documents
_CONSIDERED = 3  # times as many as are wanted


def nearest_documents(
    documents: Documents,
    statistics: WordStatistics,
    vectors: OfDocuments,
    allowed: NDArray[np.int64],
    wanted: NDArray[np.int64],
    count: int,
    seed: int = 0,
    report: Report = silent,
) -> NDArray[np.int32]:
    """The ids of the nearest of the allowed documents for each wanted one: (wanted, count).

    Vectors are needed of the wanted documents and of those that `looked_through` names.

    Near is what has a high sum of two cosines: of semantic vectors, which know that different words can mean the same,
    and of TF-IDF rows, which know names and terms. The second is asked only of those that are nearest by the first.

    Of more documents than can be compared, a random part is looked through, the same for all: any document on the same
    subject serves as a neighbour, and the work then grows with the documents, not with their square.

    Where there are fewer, and for documents that are not allowed, the document's own id fills the row.

    Example:
        >>> words, counts, offsets = np.array([0, 1, 0, 1, 2]), np.ones(5, dtype=np.int32), np.array([0, 2, 4, 5])
        >>> documents = Documents.of_counts(words, counts, offsets)
        >>> statistics = WordStatistics(np.array([2, 2, 1]), np.array([2, 2, 1]), documents=3)
        >>> every, vectors = np.arange(3), torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
        >>> nearest_documents(documents, statistics, OfDocuments(every, vectors), every, every, 1).tolist()
        [[1], [0], [2]]
    """
    candidates = looked_through(allowed, seed)
    looked = vectors[torch.from_numpy(candidates).to(vectors.device)].float().T.contiguous()
    rows = weigh(documents, statistics, candidates)
    found = np.repeat(wanted.astype(np.int32)[:, None], count, axis=1)
    asking = np.flatnonzero(np.isin(wanted, allowed, assume_unique=True))
    for start in range(0, len(asking), _BLOCK):
        places_of = asking[start : start + _BLOCK]
        mine = wanted[places_of]
        cosines = vectors[torch.from_numpy(mine).to(vectors.device)].float() @ looked
        itself = np.searchsorted(candidates, mine)  # where a document stands among the candidates, if it does
        there = np.flatnonzero(candidates[itself % len(candidates)] == mine)
        cosines[torch.from_numpy(there), torch.from_numpy(itself[there])] = -torch.inf
        near = cosines.topk(min(_CONSIDERED * count, len(candidates)), dim=1)
        places, values = near.indices.numpy(force=True), near.values.numpy(force=True)
        values = values + _shared_words(weigh(documents, statistics, mine), rows, places)
        best = np.argsort(-values, axis=1, kind="stable")[:, :count]
        chosen = np.where(np.take_along_axis(values, best, axis=1) > 0, np.take_along_axis(places, best, axis=1), -1)
        found[places_of, : chosen.shape[1]] = np.where(chosen < 0, mine[:, None], candidates[chosen])
        report(Progress("finding neighbours", start + len(mine), "documents", (start + len(mine)) / len(asking)))
    return found


def looked_through(allowed: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The documents that neighbours are looked for among.

    Example:
        >>> looked_through(np.arange(3), seed=0)
        array([0, 1, 2])
    """
    return sample(allowed, _LOOKED_THROUGH, seed)


def _shared_words(mine: csr_array, rows: csr_array, places: NDArray[np.int64]) -> NDArray[np.float32]:
    """The products of each of some rows with some others: (rows, others)."""
    entries, offsets = row_entries(rows.indptr, places.ravel())
    pairs = np.arange(len(places) + 1) * places.shape[1]
    return paired_products(mine, pairs, rows.indices[entries], rows.data[entries], offsets).reshape(places.shape)
