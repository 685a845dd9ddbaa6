"""Latent semantic analysis, the classic baseline."""

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.baselines.inputs import check_counts, check_fitted, check_size
from parabit.baselines.rankers import TfIdf


class LSA:
    """TF-IDF rows in the space of their first singular vectors, at length 1.

    (S. Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990.) The length does not change a cosine, but
    quantization treats vectors of the same length alike: on held-out training posts of 20 Newsgroups, codes of
    IterativeQuantization gain .01 in MAP and in NDCG@10. As many dimensions as bits gave the best codes.

    Example:
        >>> counts = csr_array([[3, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1], [0, 0, 2, 1], [0, 0, 1, 3]])
        >>> vectors = LSA(dim=2).fit(counts).transform(counts)
        >>> np.round(np.abs(vectors @ vectors.T), 2)
        array([[1., 1., 0., 0., 0.],
               [1., 1., 0., 0., 0.],
               [0., 0., 1., 1., 1.],
               [0., 0., 1., 1., 1.],
               [0., 0., 1., 1., 1.]], dtype=float32)

        Codes of these vectors:

        >>> from parabit.baselines import IterativeQuantization
        >>> IterativeQuantization(bits=2).fit(vectors).transform(vectors).shape
        (5, 1)
    """

    weighting_: TfIdf
    words_: NDArray[np.float32]  # (words, dim) the right singular vectors

    def __init__(self, dim: int, seed: int = 0) -> None:
        self.dim = dim
        self.seed = seed

    def fit(self, counts: csr_array) -> Self:
        """Learn the words' weights and the singular vectors of training documents."""
        from sklearn.utils.extmath import randomized_svd

        rows = check_counts(counts)
        check_size("dim", self.dim, most=min(rows.shape), of="documents or words, whichever are fewer")
        self.weighting_ = TfIdf().fit(rows)
        weighted = self.weighting_.transform(rows)
        _, _, vectors = randomized_svd(weighted, self.dim, random_state=self.seed)
        self.words_ = np.ascontiguousarray(vectors.T, dtype=np.float32)
        return self

    def transform(self, counts: csr_array) -> NDArray[np.float32]:
        """The documents as rows of length 1, (documents, dim); one that has nothing in this space stays zero."""
        check_fitted(self, "words_")
        projected: NDArray[np.float32] = self.weighting_.transform(counts) @ self.words_
        norms = np.linalg.norm(projected, axis=1, keepdims=True)
        return (projected / np.where(norms > 0, norms, 1)).astype(np.float32, copy=False)
