"""The nearest documents of each document by TF-IDF cosine: a sparse product, block by block."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.parallel import ordered_map
from parabit.progress import Progress, Report, silent
from parabit.training.documents import Documents, WordStatistics

_BLOCK = 256  # documents


def nearest_documents(
    documents: Documents, statistics: WordStatistics, allowed: NDArray[np.int64], count: int, report: Report = silent
) -> NDArray[np.int32]:
    """The ids of the nearest of the allowed documents for each allowed one: (documents, count).

    Where there are fewer, and for documents that are not allowed, the document's own id fills the row.

    Example:
        >>> words, counts, offsets = np.array([0, 1, 0, 1, 2]), np.ones(5, dtype=np.int32), np.array([0, 2, 4, 5])
        >>> documents = Documents.of_counts(words, counts, offsets)
        >>> statistics = WordStatistics(np.array([2, 2, 1]), np.array([2, 2, 1]), documents=3)
        >>> nearest_documents(documents, statistics, np.arange(3), 1).tolist()
        [[1], [0], [2]]
    """
    matrix = _tf_idf(documents, statistics, allowed)
    transposed = matrix.T.tocsr()
    found = np.repeat(np.arange(len(documents), dtype=np.int32)[:, None], count, axis=1)

    def block(start: int) -> tuple[int, NDArray[np.int32]]:
        similar = matrix[start : start + _BLOCK] @ transposed
        return start, _largest(similar, start, count)

    for start, rows in ordered_map(block, range(0, len(allowed), _BLOCK)):
        mine = allowed[start : start + _BLOCK]
        found[mine] = np.where(rows < 0, mine[:, None], allowed[rows])
        done = start + len(mine)
        report(Progress("finding neighbours", done, "documents", done / len(allowed)))
    return found


def _tf_idf(documents: Documents, statistics: WordStatistics, allowed: NDArray[np.int64]) -> csr_array:
    shape = (len(documents), len(statistics.counts))
    counts = csr_array((documents.counts, documents.features, documents.feature_offsets), shape=shape)[allowed]
    weights = (1 + np.log(counts.data)) * statistics.weights(1.0)[counts.indices]
    # A word of a single document makes no two documents alike.
    weights[statistics.document_frequencies[counts.indices] < 2] = 0
    matrix = csr_array((weights.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)
    norms = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    matrix.data = matrix.data / np.repeat(np.maximum(norms, 1e-12), np.diff(matrix.indptr))
    matrix.eliminate_zeros()
    return matrix


def _largest(similar: csr_array, start: int, count: int) -> NDArray[np.int32]:
    """The columns of the largest values of each row, itself left out; -1 where there are fewer."""
    found = np.full((similar.shape[0], count), -1, dtype=np.int32)
    for row in range(similar.shape[0]):
        mine = slice(similar.indptr[row], similar.indptr[row + 1])
        columns, values = similar.indices[mine], similar.data[mine]
        values[columns == start + row] = 0
        if len(values) > count:
            largest = np.argpartition(values, -count)[-count:]
            columns, values = columns[largest], values[largest]
        columns = np.sort(columns[values > 0])
        found[row, : len(columns)] = columns
    return found
