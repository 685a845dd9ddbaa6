"""Rankings by the words themselves: TF-IDF cosine and BM25. They need the whole bag of a document, not a code."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.baselines.inputs import check_counts, check_fitted
from parabit.errors import BaselineError, need
from parabit.text.bags import inverse_frequencies, tf_idf_rows

_BLOCK = 1 << 22  # scores at a time


class TfIdf:
    """Documents as weighted words, rows of length 1: the product of two rows is their cosine.

    A word that occurs c times in a document and in d of the n training documents has the weight
    (1 + log c) log((n + 1) / d). A word of no training document has weight 0. A word of a single training document
    keeps its weight: it makes no two of them similar, but two new documents may share it, and then it is informative.

    Example:
        >>> counts = csr_array([[2, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> rows = TfIdf().fit(counts).transform(counts)
        >>> np.round((rows @ rows.T).toarray(), 2)
        array([[1.  , 0.39, 0.51],
               [0.39, 1.  , 0.  ],
               [0.51, 0.  , 1.  ]], dtype=float32)
    """

    idf_: NDArray[np.float32]  # (words,)

    def fit(self, counts: csr_array) -> Self:
        """Take the words' weights from the counts of training documents."""
        rows = check_counts(counts)
        frequencies = np.bincount(rows.indices, minlength=rows.shape[1])
        self.idf_ = inverse_frequencies(frequencies, rows.shape[0])
        return self

    def transform(self, counts: csr_array) -> csr_array:
        """Weighted rows of length 1; a document without weighted words stays zero."""
        check_fitted(self, "idf_")
        rows = check_counts(counts, len(self.idf_))
        counted = rows.data.astype(np.float32)
        weighted = tf_idf_rows(
            rows.indices.copy(), counted, rows.indptr.copy(), self.idf_
        )  # the caller's are not changed
        weighted.eliminate_zeros()
        return weighted


class BM25:
    """BM25 in the form of Lucene, by the library bm25s.

    A query's score of a document is the sum over the query's words, each as often as it occurs there, of
    log(1 + (n - d + 1/2) / (d + 1/2)) · c / (c + k1 (1 - b + b length / mean length)).
    (S. Robertson and H. Zaragoza, "The probabilistic relevance framework: BM25 and beyond", 2009; X. H. Lù, "BM25S:
    orders of magnitude faster lexical search via eager sparse scoring", 2024.)

    Example:
        >>> documents = csr_array([[2, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> BM25().fit(documents).scores(csr_array([[0, 0, 1]])).round(2)
        array([[0.  , 0.39, 0.  ]], dtype=float32)
    """

    weights_: csr_array  # (words, documents) what a query word adds to the score of a document

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        self.k1 = k1
        self.b = b

    def fit(self, counts: csr_array) -> Self:
        """Index the documents to search."""
        if not self.k1 >= 0 or not 0 <= self.b <= 1:
            raise BaselineError(
                f"k1={self.k1} and b={self.b} are not valid for BM25", hint="k1 must be at least 0, b from 0 to 1"
            )
        library = need("bm25s", "baselines", BaselineError)
        rows = check_counts(counts)
        if (rows.data % 1).any():
            raise BaselineError("BM25 counts whole words, found fractions", hint="give the raw counts")
        # bm25s reads documents as lists of word ids, each as often as it occurs.
        tokens = np.repeat(rows.indices, rows.data.astype(np.int64))
        lengths = rows.sum(axis=1).astype(np.int64)
        documents = [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]
        index = library.BM25(k1=self.k1, b=self.b, method="lucene")
        ids = {word: word for word in range(rows.shape[1])}
        index.index((documents, ids), create_empty_token=False, show_progress=False)
        # Its columns are words; read as rows they are the transposed matrix.
        parts = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
        self.weights_ = csr_array(parts, shape=rows.shape[::-1])
        return self

    def scores(self, queries: csr_array) -> NDArray[np.float32]:
        """The score of each indexed document for each query, (queries, documents)."""
        check_fitted(self, "weights_")
        words, documents = self.weights_.shape
        rows = check_counts(queries, words).astype(np.float32)
        found = np.empty((rows.shape[0], documents), dtype=np.float32)
        step = max(1, _BLOCK // documents)
        for start in range(0, len(found), step):
            block = slice(start, start + step)
            found[block] = (rows[block] @ self.weights_).toarray()
        return found
