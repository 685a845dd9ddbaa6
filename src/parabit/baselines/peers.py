"""What parabit's codes are compared with: hyperplanes, ITQ, TF-IDF, BM25, LSA and Doc2Vec.

Counts of words are sparse matrices (documents, words), vectors dense arrays (documents, dim).
"""

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_scalar
from sklearn.utils.extmath import randomized_svd

from parabit.codes import pack
from parabit.errors import BaselineError, need
from parabit.model.closed_form import quantizing_rotation, unit
from parabit.parallel import cores
from parabit.text.bags import inverse_frequencies, tf_idf_rows

if TYPE_CHECKING:
    from parabit.text import Bags


@dataclass(eq=False)
class RandomHyperplanes:
    """One bit per random hyperplane: on which side of it a vector lies.

    Two vectors differ in a bit with probability angle / pi (M. Charikar, "Similarity estimation techniques from
    rounding algorithms", STOC 2002). Nothing is learned; `fit` only sees how many dimensions there are.

    Example:
        >>> from parabit.codes import hamming
        >>> vectors = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]])
        >>> codes = RandomHyperplanes(bits=16).fit(vectors).transform(vectors)
        >>> hamming(codes[:1], codes)
        array([[ 0,  0, 16]], dtype=int32)
    """

    bits: int
    seed: int = 0

    def fit(self, vectors: NDArray[Any]) -> Self:
        """Draw hyperplanes for vectors of this many dimensions."""
        dim = vectors.shape[1]
        self.mean_ = np.zeros(dim)
        self.planes_ = np.random.default_rng(self.seed).standard_normal((dim, self.bits))
        return self

    def transform(self, vectors: NDArray[Any]) -> NDArray[np.uint8]:
        """The packed codes of vectors."""
        return pack((vectors - self.mean_) @ self.planes_ > 0)


class IterativeQuantization(RandomHyperplanes):
    """As many principal components as bits, rotated so that rounding them to signs loses little.

    (Y. Gong and S. Lazebnik, "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011.)
    """

    def fit(self, vectors: NDArray[Any]) -> Self:
        """Learn the components and the rotation of training vectors."""
        check_scalar(self.bits, "bits", Integral, min_val=1, max_val=vectors.shape[1])
        self.mean_ = vectors.mean(axis=0, dtype=np.float64)  # (dim,)
        centred = vectors - self.mean_
        _, directions = np.linalg.eigh(centred.T @ centred)  # by ascending variance
        components = directions[:, ::-1][:, : self.bits]  # (dim, bits) orthonormal columns
        self.planes_ = components @ quantizing_rotation(centred @ components, seed=self.seed)
        return self


@dataclass(eq=False)
class TfIdf:
    """Documents as weighted words, rows of length 1: the product of two rows is their cosine.

    A word that occurs c times in a document and in d of the n training documents has the weight
    (1 + log c) log((n + 1) / d), and weight 0 if no training document has it.

    Example:
        >>> counts = csr_array([[2, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> rows = TfIdf().fit(counts).transform(counts)
        >>> np.round((rows[[0]] @ rows.T).toarray(), 2)
        array([[1.  , 0.39, 0.51]], dtype=float32)
    """

    def fit(self, counts: csr_array) -> Self:
        """Take the words' weights from the counts of training documents."""
        self.idf_ = inverse_frequencies(
            np.bincount(counts.indices, minlength=counts.shape[1]), counts.shape[0]
        )
        return self

    def transform(self, counts: csr_array) -> csr_array:
        """Weighted rows of length 1; a document without weighted words stays zero."""
        return tf_idf_rows(counts.astype(np.float32), self.idf_)


@dataclass(eq=False)
class BM25:
    """BM25 in the form of Lucene, by the library bm25s.

    A query's score of a document is the sum over the query's words, each as often as it occurs there, of
    log(1 + (n - d + 1/2) / (d + 1/2)) · c / (c + k1 (1 - b + b length / mean length)).
    (S. Robertson and H. Zaragoza, "The probabilistic relevance framework: BM25 and beyond", 2009.)

    Example:
        >>> documents = csr_array([[2, 1, 0], [1, 0, 1], [0, 1, 0]])
        >>> BM25().fit(documents).scores(csr_array([[0, 0, 1]])).round(2)
        array([[0.  , 0.39, 0.  ]], dtype=float32)
    """

    k1: float = 1.5
    b: float = 0.75

    def fit(self, counts: csr_array) -> Self:
        """Index the documents to search."""
        library = need("bm25s", "baselines", BaselineError)
        # bm25s reads documents as lists of word ids, each as often as it occurs.
        tokens = np.repeat(counts.indices, counts.data.astype(np.int64))
        lengths = counts.sum(axis=1).astype(np.int64)
        documents = [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]
        index = library.BM25(k1=self.k1, b=self.b, method="lucene")
        ids = {word: word for word in range(counts.shape[1])}
        index.index((documents, ids), create_empty_token=False, show_progress=False)
        # What a query word adds to the score of a document. Read as rows, its columns are the transposed matrix.
        parts = (index.scores["data"], index.scores["indices"], index.scores["indptr"])
        self.weights_ = csr_array(parts, shape=counts.shape[::-1])  # (words, documents)
        return self

    def scores(self, queries: csr_array) -> NDArray[np.float32]:
        """The score of each indexed document for each query, (queries, documents)."""
        return np.asarray((queries.astype(np.float32) @ self.weights_).toarray())


@dataclass(eq=False)
class LSA:
    """TF-IDF rows in the space of their first singular vectors, at length 1.

    (S. Deerwester et al., "Indexing by latent semantic analysis", JASIS 1990.) Codes of IterativeQuantization are
    better with vectors of the same length, and with as many dimensions as bits.

    Example:
        >>> counts = csr_array([[3, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 1]])
        >>> vectors = LSA(dim=2).fit(counts).transform(counts)
        >>> np.round(np.abs(vectors[:1] @ vectors.T), 2)
        array([[1., 1., 0.]], dtype=float32)
    """

    dim: int
    seed: int = 0

    def fit(self, counts: csr_array) -> Self:
        """Learn the words' weights and the singular vectors of training documents."""
        self.weighting_ = TfIdf().fit(counts)
        weighted = self.weighting_.transform(counts)
        check_scalar(self.dim, "dim", Integral, min_val=1, max_val=min(weighted.shape))
        _, _, vectors = randomized_svd(weighted, self.dim, random_state=self.seed)
        self.words_ = np.ascontiguousarray(vectors.T, dtype=np.float32)  # (words, dim)
        return self

    def transform(self, counts: csr_array) -> NDArray[np.float32]:
        """The documents as rows of length 1, (documents, dim); one that has nothing in this space stays zero."""
        return unit(self.weighting_.transform(counts) @ self.words_)


@dataclass(eq=False)
class Doc2Vec:
    """Real-valued PV-DBOW with 5 negative samples by gensim, on the words that parabit trains on.

    (Q. Le and T. Mikolov, "Distributed representations of sentences and documents", ICML 2014.) gensim reads at most
    10,000 words of a document. With one worker the same seed gives the same vectors in one process; gensim's starting
    point is a hash that differs between Python processes unless PYTHONHASHSEED is set.
    """

    dim: int
    epochs: int = 20
    seed: int = 0
    workers: int | None = None
    sample: float = 0.0  # frequent words are dropped; 1e-4 is faster and better on most collections

    def fit(self, documents: "Bags") -> Self:
        """Train on documents; their words must be in order, though DBOW ignores it."""
        gensim = need("gensim.models.doc2vec", "baselines", BaselineError)
        tagged = [
            gensim.TaggedDocument(text, [number]) for number, text in enumerate(_texts(documents))
        ]
        sizes = {"vector_size": self.dim, "epochs": self.epochs, "negative": 5, "min_count": 1}
        self.model_ = gensim.Doc2Vec(
            tagged,
            dm=0,
            **sizes,
            sample=self.sample,
            seed=self.seed,
            workers=self.workers or cores(),
        )
        return self

    def transform(self, documents: "Bags") -> NDArray[np.float32]:
        """Infer the vectors of documents, (documents, dim); one without known words is zero."""
        vectors = np.zeros((len(documents), self.dim), dtype=np.float32)
        for number, text in enumerate(_texts(documents)):
            if words := [word for word in text if word in self.model_.wv.key_to_index]:
                self.model_.random.seed(
                    self.seed
                )  # otherwise it would continue from the previous document
                vectors[number] = self.model_.infer_vector(words)
        return vectors


def _texts(documents: "Bags") -> list[list[str]]:
    """The words of each document; gensim knows words as strings."""
    words = documents.tokens.astype(str).tolist()
    return [words[start:end] for start, end in pairwise(documents.token_offsets.tolist())]
