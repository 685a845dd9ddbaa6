"""The nearest documents of each document by TF-IDF cosine: a sparse product, block by block."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.training.documents import Documents, WordStatistics

_BLOCK = 256  # documents
_LOOKED_THROUGH = 32_768  # documents


def nearest_documents(
    documents: Documents,
    statistics: WordStatistics,
    allowed: NDArray[np.int64],
    count: int,
    seed: int = 0,
    report: Report = silent,
) -> NDArray[np.int32]:
    """The ids of the nearest of the allowed documents for each allowed one: (documents, count).

    Of more documents than can be compared, a random part is looked through, the same for all: any document on the same
    subject serves as a neighbour, and the work then grows with the documents, not with their square.

    Where there are fewer, and for documents that are not allowed, the document's own id fills the row.

    Example:
        >>> words, counts, offsets = np.array([0, 1, 0, 1, 2]), np.ones(5, dtype=np.int32), np.array([0, 2, 4, 5])
        >>> documents = Documents.of_counts(words, counts, offsets)
        >>> statistics = WordStatistics(np.array([2, 2, 1]), np.array([2, 2, 1]), documents=3)
        >>> nearest_documents(documents, statistics, np.arange(3), 1).tolist()
        [[1], [0], [2]]
    """
    candidates = allowed
    if len(allowed) > _LOOKED_THROUGH:
        candidates = np.sort(np.random.default_rng([seed, 3]).choice(allowed, _LOOKED_THROUGH, replace=False))
    transposed = _tf_idf(documents, statistics, candidates).T.tocsr()
    found = np.repeat(np.arange(len(documents), dtype=np.int32)[:, None], count, axis=1)

    def block(start: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        mine = allowed[start : start + _BLOCK]
        itself = np.searchsorted(candidates, mine)  # where a document stands among the candidates, if it does
        similar = _tf_idf(documents, statistics, mine) @ transposed
        return mine, _largest(similar, np.where(candidates[itself % len(candidates)] == mine, itself, -1), count)

    done = 0
    for mine, places in ordered_map(block, range(0, len(allowed), _BLOCK)):
        found[mine] = np.where(places < 0, mine[:, None], candidates[places])
        done += len(mine)
        report(Progress("finding neighbours", done, "documents", done / len(allowed)))
    return found


def _tf_idf(documents: Documents, statistics: WordStatistics, chosen: NDArray[np.int64]) -> csr_array:
    """Some documents as rows of length 1."""
    mine = documents.take(chosen)
    idf = np.log((statistics.documents + 1) / np.maximum(statistics.document_frequencies[mine.features], 1))
    # A word of a single document makes no two documents alike.
    idf[statistics.document_frequencies[mine.features] < 2] = 0
    weights = ((1 + np.log(mine.counts)) * idf).astype(np.float32)
    shape = (len(mine), len(statistics.counts))
    matrix = csr_array((weights, mine.features, mine.feature_offsets.astype(np.int32)), shape=shape)
    norms = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    matrix.data = matrix.data / np.repeat(np.maximum(norms, 1e-12), np.diff(matrix.indptr))
    matrix.eliminate_zeros()
    return matrix


def _largest(similar: csr_array, itself: NDArray[np.int64], count: int) -> NDArray[np.int32]:
    """The columns of the largest values of each row, that of the document itself left out; -1 where there are fewer."""
    found = np.full((similar.shape[0], count), -1, dtype=np.int32)
    for row in range(similar.shape[0]):
        mine = slice(similar.indptr[row], similar.indptr[row + 1])
        columns, values = similar.indices[mine], similar.data[mine]
        values[columns == itself[row]] = 0
        if len(values) > count:
            largest = np.argpartition(values, -count)[-count:]
            columns, values = columns[largest], values[largest]
        columns = np.sort(columns[values > 0])
        found[row, : len(columns)] = columns
    return found
