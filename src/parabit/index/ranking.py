"""Scores of the documents that a search found, by codes, vectors and words.

- hamming: the share of equal bits;
- asymmetric: the cosine of the query's activations and the document's bits as signs, so that a bit of which the query
  is sure counts more;
- cosine: that of real vectors;
- words: BM25 of stemmed words;
- hybrid: BM25 divided by the query's best BM25, plus .4 times the asymmetric score. Words find names, codes meaning.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS
from parabit.codes import hamming
from parabit.errors import CodesError
from parabit.index.query import Queries, WordQuery
from parabit.index.results import Found, join
from parabit.parallel import ordered_map

# How much the code counts beside the words, chosen on three collections with real queries and on documents as queries:
# `benchmarks/queries.py --weights`. From .25 to .5 the mean NDCG@10 of real queries differs by less than .002, and .75
# is .009 below the best.
CODE_WEIGHT = 0.4
CANDIDATES = 200  # the best by words, and as many by code, that get both scores
_AT_ONCE = 1 << 14  # hits that are scored together, so that two threads share a batch of queries
_FEW = 8  # queries that are answered without threads

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


class Documents(Protocol):
    """What ranking reads of documents, by their rows."""

    bits: int

    def codes(self, rows: Rows) -> NDArray[np.uint8]: ...
    def vectors(self, rows: Rows) -> NDArray[np.float16]: ...


class WordSearch(Protocol):
    """The word index of the documents, by their rows."""

    def best(self, query: WordQuery, count: int) -> tuple[Rows, Scores]:
        """The documents with the highest BM25."""

    def scores(self, query: WordQuery, rows: Rows) -> Scores:
        """BM25 of the documents in some rows; 0 if they have none of the words."""

    def matching(self, query: WordQuery, rows: Rows) -> NDArray[np.bool_]:
        """Which of some rows have what the query asks for, and not what it excludes."""


class Ranked(NamedTuple):
    """Hits, the best first, and what their scores are made of."""

    found: Found
    scores: Scores
    by_words: Scores | None = None  # the part of each score that comes from words

    def first(self, most: int | None, but: Rows | None = None) -> "Ranked":
        """At most so many hits of each query; `but` is a row for each query that is not one of them."""
        kept = np.ones(len(self.scores), np.bool_) if but is None else self.found.rows != but[self.found.queries]
        ranked = self._keep(kept)
        if most is None:
            return ranked
        starts = np.repeat(ranked.found.offsets[:-1], ranked.found.counts)
        return ranked._keep(np.arange(len(ranked.scores)) - starts < most)

    def _keep(self, kept: NDArray[np.bool_]) -> "Ranked":
        by_words = None if self.by_words is None else self.by_words[kept]
        return Ranked(self.found.keep(kept), self.scores[kept], by_words)


def join_ranked(parts: Sequence[Ranked]) -> Ranked:
    """The hits of one query after the other."""
    return Ranked(
        join([part.found for part in parts]),
        np.concatenate([np.zeros(0, np.float32), *(part.scores for part in parts)]),
        np.concatenate([np.zeros(0, np.float32), *(part.by_words for part in parts if part.by_words is not None)])
        if all(part.by_words is not None for part in parts)
        else None,
    )


def need_for(rank: str, queries: Queries, has_vectors: bool, has_words: bool) -> None:
    """Raise CodesError unless these queries can be ranked so, in an index that keeps vectors or words or not."""
    if rank not in RANKS:
        raise CodesError(f"no rank {rank!r}", hint=f"there are {', '.join(RANKS)}")
    if rank in ("words", "hybrid") and not has_words:
        raise CodesError(
            f"rank {rank} needs words, which this index does not keep",
            hint="build it with words, or choose another rank",
        )
    if rank == "cosine" and not has_vectors:
        raise CodesError(
            "rank cosine needs vectors, which this index does not keep",
            hint="build it with vectors, or choose another rank",
        )
    if rank == "cosine" and queries.vectors is None:
        raise CodesError(
            "rank cosine needs the vectors of the queries", hint="give texts, or query_vectors of the same model"
        )
    if rank in ("asymmetric", "words", "hybrid") and queries.activations is None:
        raise CodesError(f"rank {rank} needs the text of the query, and codes were given", hint="give texts")


def rank_by_code(rank: str, queries: Queries, found: Found, documents: Documents, most: int | None) -> Ranked:
    """What was found by code, in the order of a rank that does not look at words."""
    bits = documents.bits
    if rank == "hamming":
        return Ranked(found, (1 - found.distances / bits).astype(np.float32))
    if not len(found.rows):
        return Ranked(found, np.zeros(0, dtype=np.float32))

    def part(block: tuple[int, int]) -> Scores:
        first, last = block
        here = slice(found.offsets[first], found.offsets[last])
        of_query = np.repeat(np.arange(last - first), found.counts[first:last])
        asked = queries.part(first, last)
        if rank == "cosine":
            assert asked.vectors is not None
            stored = unit(documents.vectors(found.rows[here]).astype(np.float32))
            products: Scores = np.einsum("ij,ij->i", stored, unit(asked.vectors)[of_query])
            return products
        assert asked.activations is not None
        return asymmetric(asked.activations, documents.codes(found.rows[here]), of_query, bits)

    blocks = _blocks(found.offsets)
    scores = np.concatenate([part(blocks[0])] if len(blocks) == 1 else list(ordered_map(part, blocks)))
    order = np.lexsort((-scores, found.queries))  # stable: equal scores stay nearest first
    found, scores = Found(found.offsets, found.rows[order], found.distances[order]), scores[order]
    return Ranked(found, scores).first(most)


def rank_by_words(
    rank: str, queries: Queries, near: Found | None, documents: Documents, words: WordSearch, most: int | None
) -> Ranked:
    """The best by BM25 and the nearest by code, with both scores added up; of rank words, the best by BM25 alone.

    `near` was found by code for the same queries. If it is all that may be found, as within a radius, `most` is None.
    """
    assert queries.words is not None
    asked = queries.words

    def one(number: int) -> Ranked:
        by_code = np.zeros(0, dtype=np.int64) if near is None else near.of(number)
        return _rank_one(rank, queries.part(number, number + 1), asked[number], by_code, documents, words, most)

    numbers = range(len(asked))
    parts = [one(number) for number in numbers] if len(numbers) <= _FEW else list(ordered_map(one, numbers))
    return join_ranked(parts)


def _rank_one(
    rank: str, query: Queries, asked: WordQuery, near: Rows, documents: Documents, words: WordSearch, most: int | None
) -> Ranked:
    within = most is None  # only what is near may be found
    count = 0 if within else max(CANDIDATES, most or 0)
    rows, bm25 = words.best(asked, count)
    if within and rank == "words":
        bm25 = words.scores(asked, near)
        rows, bm25 = near[bm25 > 0], bm25[bm25 > 0]
    if rank == "hybrid":
        if asked.restricts and len(near):
            near = near[words.matching(asked, near)]
        there = set(rows.tolist())  # faster than numpy for a few hundred
        rest = np.array([row for row in near.tolist() if row not in there], dtype=np.int64)
        rows, bm25 = np.concatenate([rows, rest]), np.concatenate([bm25, words.scores(asked, rest)])
    codes = documents.codes(rows) if len(rows) else query.codes[:0]
    distances = hamming(query.codes, codes)[0].astype(np.int32) if len(rows) else np.zeros(0, np.int32)
    scores = by_words = bm25
    if rank == "hybrid":
        by_words = scores = bm25 / max(float(bm25.max(initial=0)), 1e-9)
        if query.known[0] and query.activations is not None:
            of_query = np.zeros(len(rows), dtype=np.int64)
            scores = by_words + np.float32(CODE_WEIGHT) * asymmetric(query.activations, codes, of_query, documents.bits)
    order = np.lexsort((rows, distances, -scores))[:most]
    found = Found(np.array([0, len(order)]), rows[order], distances[order])
    return Ranked(found, scores[order], by_words[order])


def asymmetric(activations: NDArray[np.float32], codes: NDArray[np.uint8], of_query: Rows, bits: int) -> Scores:
    """The cosine of each code's signs and the activations of its query."""
    tables = _byte_tables(unit(activations) / np.float32(np.sqrt(bits)))
    scores = np.zeros(len(codes), dtype=np.float32)
    # One look-up for 8 bits, byte by byte: a fifth of the time that unpacked signs and their products take.
    of_query = of_query * 256
    for table, column in zip(tables, codes.T, strict=True):
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


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows of length 1; zeros stay zeros."""
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
