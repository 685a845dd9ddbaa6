"""Bags: documents as arrays of word and bigram ids, and their TF-IDF weights. Needs no polars and no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from parabit.text.vocabulary import Vocabulary

FEW = 32  # texts, such as queries, that are answered without threads and other machinery


def row_offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where each row begins, and where the last one ends: (rows + 1,)."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


@dataclass(frozen=True)
class Bags:
    """Documents as counts of their words and bigrams, and as word ids in the order of the text.

    Example:
        >>> bags = Bags.of_counts(np.array([0, 2, 1]), np.array([1, 1, 3]), np.array([0, 2, 3]))
        >>> len(bags), bags.matrix(3).toarray().tolist()
        (2, [[1, 0, 1], [0, 3, 0]])
    """

    features: NDArray[np.int32]  # (entries,) the distinct words and bigrams of each document, ascending
    counts: NDArray[np.int32]  # (entries,) how often each occurs
    feature_offsets: NDArray[np.int64]  # (documents + 1,)
    tokens: NDArray[np.int32]  # (known tokens,) word ids in the order of the text
    token_offsets: NDArray[np.int64]  # (documents + 1,)

    @classmethod
    def of_counts(cls, features: NDArray[Any], counts: NDArray[Any], offsets: NDArray[Any]) -> "Bags":
        """Bags without the order of the words."""
        return cls(features, counts, offsets, np.zeros(0, dtype=np.int32), np.zeros(len(offsets), dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence["Bags"]) -> "Bags":
        """Several bags as one."""
        return cls(
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.counts for part in parts]),
            row_offsets(np.concatenate([part.feature_lengths for part in parts])),
            np.concatenate([part.tokens for part in parts]),
            row_offsets(np.concatenate([part.token_lengths for part in parts])),
        )

    def __len__(self) -> int:
        return len(self.feature_offsets) - 1

    @property
    def feature_lengths(self) -> NDArray[np.int64]:
        """(documents,) distinct words and bigrams."""
        return np.diff(self.feature_offsets)

    @property
    def token_lengths(self) -> NDArray[np.int64]:
        """(documents,) known tokens."""
        return np.diff(self.token_offsets)

    def matrix(self, vocabulary: int) -> "csr_array":
        """The counts as a sparse matrix: (documents, vocabulary)."""
        from scipy.sparse import csr_array  # here: it takes half a second to import, and a search needs none

        return csr_array((self.counts, self.features, self.feature_offsets), shape=(len(self), vocabulary))

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the bags."""
        digest = blake2b(digest_size=16)
        for array in (self.features, self.counts, self.feature_offsets, self.tokens, self.token_offsets):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def make_bags(texts: Sequence[str], vocabulary: "Vocabulary") -> Bags:
    """Turn texts into bags; stop words and words that the vocabulary does not have are left out."""
    return bags_of_ids(*vocabulary.ids_of(texts), vocabulary)


def bags_of_ids(ids: NDArray[np.int32], lengths: NDArray[np.int64], vocabulary: "Vocabulary") -> Bags:
    """Bags of documents given as word ids, -1 for unknown words: those of all documents, and how many each has."""
    size, documents = len(vocabulary), len(lengths)
    document = np.repeat(np.arange(documents), lengths)  # (tokens,)
    known = ids >= 0
    known_ids, of_document = (ids, document) if known.all() else (ids[known], document[known])
    # One number for document and feature, so that one sort of plain integers counts both.
    keys = [of_document * size + known_ids]
    if len(vocabulary.bigrams):
        pairs, starts = pair_keys(ids, lengths, len(vocabulary.words))
        bigrams = vocabulary.bigram_ids(pairs)
        keys.append((document[:-1][starts] * size + bigrams)[bigrams >= 0])
    entries, counts = run_lengths(np.sort(np.concatenate(keys)))
    firsts = np.arange(documents + 1) * size  # the number of each document's feature 0
    offsets = np.searchsorted(entries, firsts).astype(np.int64)
    return Bags(
        features=(entries - np.repeat(firsts[:-1], np.diff(offsets))).astype(np.int32),
        counts=counts.astype(np.int32),
        feature_offsets=offsets,
        tokens=known_ids,
        token_offsets=row_offsets(np.bincount(of_document, minlength=documents)),
    )


def pair_keys(
    ids: NDArray[np.int32], lengths: NDArray[np.int64], words: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The bigrams in a stream of word ids, as numbers `first * words + second`, and which places they start at.

    Two words are a bigram if they stand side by side in one document and are both known (not -1).
    """
    starts = (ids[:-1] >= 0) & (ids[1:] >= 0)
    ends = np.cumsum(lengths)[:-1]  # the last token of a document has no neighbour
    inside = ends[(ends > 0) & (ends < len(ids))]
    starts[inside - 1] = False
    return ids[:-1][starts].astype(np.int64) * words + ids[1:][starts], starts


def run_lengths(ordered: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct numbers of an ordered array and how often each occurs."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    return ordered[starts], np.diff(np.append(starts, len(ordered)))


def inverse_frequencies(document_frequencies: NDArray[Any], documents: int) -> NDArray[np.float32]:
    """The idf of each word, log((n + 1) / df)."""
    idf: NDArray[np.float64] = np.log((documents + 1) / np.maximum(document_frequencies, 1))
    return np.where(document_frequencies < 1, 0.0, idf).astype(np.float32)


def tf_idf_weights(
    features: NDArray[Any], counts: NDArray[Any], rows: NDArray[Any], documents: int, idf: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The weight of each entry, (1 + log count) idf, scaled so that each document has length 1.

    `rows` is the document of each entry. A document's weights do not depend on the others.
    """
    weights = (1 + np.log(counts)) * idf[features]
    lengths = np.sqrt(np.bincount(rows, weights * weights, documents))
    return np.asarray((weights / np.maximum(lengths, 1e-12)[rows]).astype(np.float32))


def tf_idf_rows(counts: "csr_array", idf: NDArray[np.float32]) -> "csr_array":
    """Counts as rows of length 1, (documents, words); a document without words stays zero."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    weights = tf_idf_weights(counts.indices, counts.data, rows, counts.shape[0], idf)
    return csr_array((weights, counts.indices, counts.indptr), shape=counts.shape)
