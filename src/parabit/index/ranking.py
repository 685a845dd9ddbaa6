"""Scores of the documents that a search found, by more than their distance."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from parabit.choices import RANKS
from parabit.errors import CodesError
from parabit.index.found import Found
from parabit.index.view import Rows
from parabit.model.neighbours import paired_products
from parabit.parallel import ordered_map

# What each reads of the documents that were found.
READS: dict[str, tuple[str, ...]] = {
    "hamming": (),
    "asymmetric": ("codes",),
    "cosine": ("vectors",),
    "tfidf": ("words",),
    "hybrid": ("codes", "words"),
}
# How much the codes count beside the words in a hybrid score. Chosen on held-out training documents of seven
# collections, with 128 and 32 bits; anything from 0.5 to 1.5 is within .003 of it in NDCG@10.
_OF_CODES = 0.75
_AT_ONCE = 1 << 16  # hits


class Queries(NamedTuple):
    """What is known of queries; of codes alone there is nothing else."""

    codes: NDArray[np.uint8]  # (queries, bytes)
    known: NDArray[np.bool_]  # (queries,) whether the model knows a word of it
    activations: NDArray[np.float32] | None = None  # (queries, bits) what their bits were rounded from
    vectors: NDArray[np.float32] | None = None  # (queries, dim) to compare with stored vectors
    words: csr_array | None = None  # (queries, vocabulary) TF-IDF rows

    def part(self, first: int, last: int) -> "Queries":
        """Some of them, one after the other."""
        activations = None if self.activations is None else self.activations[first:last]
        vectors = None if self.vectors is None else self.vectors[first:last]
        words = None if self.words is None else self.words[first:last]
        return Queries(self.codes[first:last], self.known[first:last], activations, vectors, words)


def need_for(rank: str, queries: Queries, has_vectors: bool, has_words: bool) -> None:
    """Raise CodesError unless these queries can be ranked so, in an index that keeps vectors or words or not.

    Example:
        >>> need_for("hybrid", Queries(np.zeros((1, 2), np.uint8), np.ones(1, np.bool_)), False, True)
        Traceback (most recent call last):
        parabit.errors.CodesError: rank hybrid needs the text of the query, and codes were given; give texts
    """
    if rank not in RANKS:
        raise CodesError(f"no rank {rank!r}", hint=f"there are {', '.join(RANKS)}")
    if rank in ("tfidf", "hybrid") and not has_words:
        raise CodesError(
            f"rank {rank} needs words, which this index does not keep",
            hint="build it with words, or choose another rank",
        )
    if rank == "cosine":
        if not has_vectors:
            raise CodesError(
                "rank cosine needs vectors, which this index does not keep",
                hint="build it with vectors, or choose another rank",
            )
        if queries.vectors is None:
            raise CodesError(
                "rank cosine needs the vectors of the queries", hint="give texts, or query_vectors of the same model"
            )
    text_is_needed = rank in ("asymmetric", "hybrid") and queries.activations is None
    if text_is_needed or (rank in ("tfidf", "hybrid") and queries.words is None):
        raise CodesError(f"rank {rank} needs the text of the query, and codes were given", hint="give texts")


def best_rank(has_words: bool) -> str:
    """The rank that finds most for a text, by the measurements in benchmarks/.

    Example:
        >>> best_rank(has_words=True), best_rank(has_words=False)
        ('hybrid', 'asymmetric')
    """
    return "hybrid" if has_words else "asymmetric"


def score(rank: str, queries: Queries, found: Found, rows: Rows, bits: int) -> NDArray[np.float32]:
    """The score of each hit, higher is better: (hits,).

    - hamming: the share of equal bits;
    - asymmetric: the cosine of the query's activations and the document's bits as signs, so that a bit of which the
      query is sure counts more;
    - cosine: that of real vectors;
    - tfidf: the cosine of the words' TF-IDF weights;
    - hybrid: the last and the asymmetric score together. One knows names and rare words, the other meaning.
    """
    if rank == "hamming":
        return (1 - found.distances / bits).astype(np.float32)
    if not len(found.rows):  # of an index without documents there is nothing to read
        return np.zeros(0, dtype=np.float32)

    def part(block: tuple[int, int]) -> NDArray[np.float32]:
        first, last = block
        here = slice(found.offsets[first], found.offsets[last])
        offsets = found.offsets[first : last + 1] - found.offsets[first]
        mine = Found(offsets, found.rows[here], found.distances[here])
        return _SCORES[rank](queries.part(first, last), mine, rows, bits)

    blocks = _blocks(found.offsets)
    if len(blocks) == 1:  # which is not worth threads
        return part(blocks[0])
    return np.concatenate([np.zeros(0, dtype=np.float32), *ordered_map(part, blocks)])


def ranked(found: Found, scores: NDArray[np.float32], most: int | None) -> tuple[Found, NDArray[np.float32]]:
    """The hits of each query by their scores, the highest first; equal ones stay nearest first. At most so many.

    Example:
        >>> found = Found(np.array([0, 3]), np.array([7, 8, 9]), np.array([1, 2, 2], dtype=np.int32))
        >>> best, scores = ranked(found, np.array([0.2, 0.5, 0.2], dtype=np.float32), most=2)
        >>> best.rows.tolist(), scores.tolist()
        ([8, 7], [0.5, 0.20000000298023224])
    """
    order = np.lexsort((-scores, found.queries))  # stable: of equal ones the first stays first
    found = Found(found.offsets, found.rows[order], found.distances[order])
    scores = scores[order]
    if most is None:
        return found, scores
    kept = np.arange(len(scores)) - np.repeat(found.offsets[:-1], found.counts) < most
    return found.keep(kept), scores[kept]


def _asymmetric(queries: Queries, found: Found, rows: Rows, bits: int) -> NDArray[np.float32]:
    assert queries.activations is not None
    asked = unit(queries.activations) / np.float32(np.sqrt(bits))
    tables = _byte_tables(asked)
    scores = np.zeros(len(found.rows), dtype=np.float32)
    # One look-up for 8 bits, byte by byte: a fifth of the time that unpacked signs and their products take.
    of_query = found.queries * 256
    for table, column in zip(tables, rows.codes(found.rows).T, strict=True):
        scores += table.ravel()[of_query + column]
    return scores


def _byte_tables(activations: NDArray[np.float32]) -> NDArray[np.float32]:
    """What each value of each byte of a code adds to its score, (bytes, queries, 256).

    Sums are made bit by bit, so that they are the same for a query alone and in a batch.
    """
    count, bits = activations.shape
    width = -(-bits // 8)
    padded = np.zeros((count, width * 8), dtype=np.float32)  # bits that fill the last byte count for nothing
    padded[:, :bits] = activations
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1  # (256, 8)
    tables = np.zeros((width, count, 256), dtype=np.float32)
    for bit in range(8):
        tables += padded[:, bit::8].T[:, :, None] * signs[:, bit]
    return tables


def _cosine(queries: Queries, found: Found, rows: Rows, bits: int) -> NDArray[np.float32]:
    assert queries.vectors is not None
    stored = unit(rows.vectors(found.rows).astype(np.float32))
    return _row_products(stored, unit(queries.vectors)[found.queries])


def _tfidf(queries: Queries, found: Found, rows: Rows, bits: int) -> NDArray[np.float32]:
    words, offsets = rows.words(found.rows)
    assert queries.words is not None
    weights = words["weight"].astype(np.float32)
    return paired_products(queries.words, found.offsets, words["feature"].astype(np.int64), weights, offsets)


def _hybrid(queries: Queries, found: Found, rows: Rows, bits: int) -> NDArray[np.float32]:
    return _tfidf(queries, found, rows, bits) + np.float32(_OF_CODES) * _asymmetric(queries, found, rows, bits)


_SCORES = {"asymmetric": _asymmetric, "cosine": _cosine, "tfidf": _tfidf, "hybrid": _hybrid}


def _row_products(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    products: NDArray[np.float32] = np.einsum("ij,ij->i", a, b)
    return products


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows of length 1; zeros stay zeros.

    Example:
        >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def _blocks(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Queries in blocks of a bounded number of hits, or of one query."""
    blocks, first = [], 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _AT_ONCE, side="right")) - 1)
        blocks.append((first, last))
        first = last
    return blocks
