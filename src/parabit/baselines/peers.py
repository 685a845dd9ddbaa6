"""What parabit's codes are compared with: hyperplanes, ITQ, TF-IDF, BM25, LSA, Doc2Vec and sentence encoders.

Counts of words are sparse matrices (documents, words), vectors dense arrays (documents, dim).
"""

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils import check_scalar
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted, validate_data

from parabit.codes import pack
from parabit.errors import BaselineError, need
from parabit.model.closed_form import quantizing_rotation
from parabit.parallel import cores
from parabit.progress import Progress, Report, silent
from parabit.text.bags import inverse_frequencies, tf_idf_rows

if TYPE_CHECKING:
    from parabit.text import Bags

_BLOCK = 1 << 22  # scores at a time
_NEGATIVES = 5
_REPORTED_AFTER = 256  # documents inferred


class RandomHyperplanes(BaseEstimator):  # type: ignore[misc]
    """One bit per random hyperplane: on which side of it a vector lies.

    Two vectors differ in a bit with probability angle / pi (M. Charikar, "Similarity estimation techniques from
    rounding algorithms", STOC 2002). Nothing is learned; `fit` only sees how many dimensions there are. There may be
    more bits than dimensions: every further bit improves the estimate of the angle. Sparse vectors work too.

    Example:
        >>> from parabit.codes import hamming
        >>> vectors = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]])
        >>> codes = RandomHyperplanes(bits=16).fit(vectors).transform(vectors)
        >>> hamming(codes[:1], codes)
        array([[ 0,  0, 16]], dtype=int32)
    """

    planes_: NDArray[np.float64]  # (dim, bits)

    def __init__(self, bits: int, seed: int = 0) -> None:
        self.bits = bits
        self.seed = seed

    def fit(self, vectors: NDArray[Any] | csr_array) -> Self:
        """Draw hyperplanes for vectors of this many dimensions."""
        check_scalar(self.bits, "bits", Integral, min_val=1)
        rows = _checked(self, vectors, fitting=True, accept_sparse="csr")
        self.planes_ = np.random.default_rng(self.seed).standard_normal((rows.shape[1], self.bits))
        return self

    def transform(self, vectors: NDArray[Any] | csr_array) -> NDArray[np.uint8]:
        """The packed codes of vectors."""
        return pack(_checked(self, vectors, accept_sparse="csr") @ self.planes_ > 0)


class IterativeQuantization(BaseEstimator):  # type: ignore[misc]
    """Principal components, rotated so that rounding them to signs loses little.

    Vectors are centred and projected to as many principal components as there are bits (Y. Gong and S. Lazebnik,
    "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011).

    After `fit`, `errors_` has the squared error per vector after each round.

    Example:
        >>> vectors = np.random.default_rng(0).standard_normal((200, 12))
        >>> quantization = IterativeQuantization(bits=8).fit(vectors)
        >>> bool(quantization.errors_[-1] < quantization.errors_[0])
        True
        >>> quantization.transform(vectors[:3]).shape
        (3, 1)
    """

    mean_: NDArray[np.float64]  # (dim,)
    components_: NDArray[np.float64]  # (dim, bits) orthonormal columns
    rotation_: NDArray[np.float64]  # (bits, bits)
    errors_: NDArray[np.float64]  # (rounds,)

    def __init__(self, bits: int, seed: int = 0, rounds: int = 50) -> None:
        self.bits = bits
        self.seed = seed
        self.rounds = rounds

    def fit(self, vectors: NDArray[Any]) -> Self:
        """Learn the components and the rotation of training vectors."""
        rows = _checked(self, vectors, fitting=True)
        check_scalar(self.rounds, "rounds", Integral, min_val=1)
        check_scalar(self.bits, "bits", Integral, min_val=1, max_val=rows.shape[1])
        self.mean_ = rows.mean(axis=0)
        centred = rows - self.mean_
        _, directions = np.linalg.eigh(centred.T @ centred)  # by ascending variance
        self.components_ = directions[:, ::-1][:, : self.bits]
        projected = centred @ self.components_  # (documents, bits)
        self.rotation_, self.errors_ = quantizing_rotation(projected, seed=self.seed, rounds=self.rounds)
        return self

    def transform(self, vectors: NDArray[Any]) -> NDArray[np.uint8]:
        """The packed codes of vectors."""
        rows = _checked(self, vectors)
        return pack((rows - self.mean_) @ (self.components_ @ self.rotation_) > 0)


class TfIdf(BaseEstimator):  # type: ignore[misc]
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
        rows = _counts(self, counts, fitting=True)
        self.idf_ = inverse_frequencies(np.bincount(rows.indices, minlength=rows.shape[1]), rows.shape[0])
        return self

    def transform(self, counts: csr_array) -> csr_array:
        """Weighted rows of length 1; a document without weighted words stays zero."""
        rows = _counts(self, counts)
        weighted = tf_idf_rows(rows.indices, rows.data.astype(np.float32), rows.indptr, self.idf_)
        weighted.eliminate_zeros()
        return weighted


class BM25(BaseEstimator):  # type: ignore[misc]
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
        library = need("bm25s", "baselines", BaselineError)
        rows = _counts(self, counts, fitting=True)
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
        rows = _counts(self, queries).astype(np.float32)
        documents = self.weights_.shape[1]
        found = np.empty((rows.shape[0], documents), dtype=np.float32)
        step = max(1, _BLOCK // documents)
        for start in range(0, len(found), step):
            block = slice(start, start + step)
            found[block] = (rows[block] @ self.weights_).toarray()
        return found


class LSA(BaseEstimator):  # type: ignore[misc]
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
        self.weighting_ = TfIdf().fit(counts)
        weighted = self.weighting_.transform(counts)
        check_scalar(self.dim, "dim", Integral, min_val=1, max_val=min(weighted.shape))
        _, _, vectors = randomized_svd(weighted, self.dim, random_state=self.seed)
        self.words_ = np.ascontiguousarray(vectors.T, dtype=np.float32)
        return self

    def transform(self, counts: csr_array) -> NDArray[np.float32]:
        """The documents as rows of length 1, (documents, dim); one that has nothing in this space stays zero."""
        check_is_fitted(self)
        projected: NDArray[np.float32] = self.weighting_.transform(counts) @ self.words_
        norms = np.linalg.norm(projected, axis=1, keepdims=True)
        return (projected / np.where(norms > 0, norms, 1)).astype(np.float32, copy=False)


class Doc2Vec(BaseEstimator):  # type: ignore[misc]
    """Real-valued PV-DBOW with 5 negative samples by gensim, on the words that parabit trains on.

    (Q. Le and T. Mikolov, "Distributed representations of sentences and documents", ICML 2014.) gensim reads
    at most 10,000 words of a document. With one worker the same seed trains the same vectors; several workers
    overwrite each other's updates. Inference starts from the seed for each document, so that every call gives the same
    vector; but gensim's starting point is a hash that differs between Python processes unless PYTHONHASHSEED is set.

    Example:
        >>> Doc2Vec(dim=128).epochs  # .fit(documents), .transform(documents) with parabit.text.Bags
        20
    """

    model_: Any

    def __init__(self, dim: int, epochs: int = 20, seed: int = 0, workers: int | None = None) -> None:
        self.dim = dim
        self.epochs = epochs
        self.seed = seed
        self.workers = workers

    def fit(self, documents: "Bags") -> Self:
        """Train on documents; their words must be in order, though DBOW ignores it."""
        gensim = need("gensim.models.doc2vec", "baselines", BaselineError)
        check_scalar(self.dim, "dim", Integral, min_val=1)
        texts = _texts(documents)
        if not any(texts):
            raise BaselineError(f"there is nothing to fit on: {len(texts)} documents without words", hint="give some")
        self.model_ = gensim.Doc2Vec(
            [gensim.TaggedDocument(text, [number]) for number, text in enumerate(texts)],
            dm=0,
            vector_size=self.dim,
            epochs=self.epochs,
            negative=_NEGATIVES,
            min_count=1,
            sample=0,
            seed=self.seed,
            workers=self.workers or cores(),
        )
        return self

    def transform(self, documents: "Bags", report: Report = silent) -> NDArray[np.float32]:
        """Infer the vectors of documents, (documents, dim); one without known words is zero."""
        check_is_fitted(self)
        known, texts = self.model_.wv.key_to_index, _texts(documents)
        vectors = np.zeros((len(texts), self.dim), dtype=np.float32)
        for number, text in enumerate(texts):
            words = [word for word in text if word in known]
            if words:
                self.model_.random.seed(self.seed)  # otherwise it would continue from the previous document
                vectors[number] = self.model_.infer_vector(words)
            if (number + 1) % _REPORTED_AFTER == 0 or number + 1 == len(texts):
                report(Progress("inferring", number + 1, "documents", (number + 1) / len(texts)))
        return vectors


class SentenceEncoder:
    """A model of sentence-transformers (N. Reimers and I. Gurevych, "Sentence-BERT", EMNLP 2019).

    It reads texts, not counts, and only the beginning of long ones: all-MiniLM-L6-v2 its first 256 word pieces. The
    model is loaded at the first call, and downloaded if necessary. There is nothing to fit.

    Example:
        >>> SentenceEncoder().model  # .transform(texts) needs sentence-transformers
        'all-MiniLM-L6-v2'
    """

    def __init__(self, model: str = "all-MiniLM-L6-v2") -> None:
        self.model = model
        self._loaded: Any = None

    def transform(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts at length 1, (texts, dim)."""
        if isinstance(texts, str):
            raise BaselineError("texts must be a list of strings, found one string", hint="give it as [text]")
        if self._loaded is None:
            library = need("sentence_transformers", "sentences", BaselineError)
            try:
                self._loaded = library.SentenceTransformer(self.model)
            # It raises various errors for a missing model: OSError, ValueError, errors of the hub and of requests.
            except Exception as problem:
                reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
                raise BaselineError(
                    f"the model {self.model!r} cannot be loaded: {reason}",
                    hint="download it where the Hugging Face hub can be reached, or give the path of its folder",
                ) from problem
        vectors = self._loaded.encode(
            list(texts), convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)


def _checked(model: BaseEstimator, given: Any, fitting: bool = False, **options: Any) -> Any:
    """Rows of finite numbers, as many per row as the model was fitted on. Only fitting needs any rows."""
    if not fitting:
        check_is_fitted(model)
    options = {"dtype": np.float64, **options}
    return validate_data(model, given, reset=fitting, ensure_min_samples=int(fitting), **options)


def _counts(model: BaseEstimator, counts: csr_array, fitting: bool = False) -> csr_array:
    """The counts with each word once per row, in arrays that are not the caller's."""
    rows = csr_array(_checked(model, counts, fitting, accept_sparse="csr", dtype=None, ensure_non_negative=True)).copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if fitting and not rows.nnz:
        raise BaselineError(f"there is nothing to fit on: no word in {rows.shape[0]} documents", hint="give some")
    return rows


def _texts(documents: "Bags") -> list[list[str]]:
    """The words of each document; gensim knows words as strings."""
    if len(documents.features) and not len(documents.tokens):
        raise BaselineError(
            "the documents have counts, but not the order of their words",
            hint="Bags.of_counts omits it; give Bags with tokens",
        )
    words = documents.tokens.astype(str).tolist()
    return [words[start:end] for start, end in pairwise(documents.token_offsets.tolist())]
