"""From queries to ranked hits: candidates by code and by words, and their scores.

- hamming: the share of equal bits;
- asymmetric: the cosine of the query's activations and the document's bits as signs, so that a bit of which the query
  is sure counts more;
- cosine: that of real vectors;
- words: BM25 of stemmed words;
- hybrid: BM25 divided by the query's best BM25, plus .4 times the asymmetric score. Words find names, codes meaning.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.budget import check_time
from parabit.index.query import Parsed, WordQuery, word_query
from parabit.index.results import Found, Rows, Scores, join
from parabit.parallel import ordered_map

if TYPE_CHECKING:  # an engine has its own of these, with the same methods
    from parabit.index.store import Snapshot
    from parabit.index.word_index import RowWords

NEEDS = {
    "cosine": "vectors",
    "words": "words",
    "hybrid": "words",
}  # what an index must keep for a rank
# How much the code counts beside the words, chosen on three collections with real queries and on documents as queries
# (`benchmarks/queries.py --weights`): .25, .4 and .5 differ by less than .003 in the mean NDCG@10 of real queries, and
# of documents as queries .4 is the best of these or within .001 of it.
CODE_WEIGHT = 0.4
CANDIDATES = 200  # the best by words, and as many by code, that get both scores
_RANKED = (
    1000  # the nearest that are ranked by more than their distance, if words are not looked at
)
_FEW = 8  # queries that are answered without threads
_SIGNS = (
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
)  # (256, 8)


class Request(NamedTuple):
    """What is asked of a search, checked."""

    k: int | None  # hits at most
    radius: int | None  # bits
    rank: str
    backend: str = "auto"

    @property
    def nearest(self) -> int | None:
        """How many of the nearest by code are candidates; None for all inside the radius."""
        if self.rank == "hamming":
            return self.k
        if self.radius is not None:
            return None
        return max(CANDIDATES if self.rank == "hybrid" else _RANKED, self.k or 0)


@dataclass
class Query:
    """What is known of a query; of a code alone there is no text, and nothing that comes from it."""

    filter: Any  # by fields: a mask of rows or None for all, or what an engine takes
    parsed: Parsed = field(default_factory=Parsed)
    notes: list[str] = field(default_factory=list)  # what was done with its fields
    code: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))  # (bytes,)
    known: bool = True  # whether the model knows a word of it; if not, the code means nothing
    activations: Scores = field(
        default_factory=lambda: np.zeros(0, np.float32)
    )  # (bits,) before they are rounded
    vector: Scores = field(
        default_factory=lambda: np.zeros(0, np.float32)
    )  # (dim,) to compare with stored vectors
    own: int = -1  # the row of the document that the query is; it is not found
    words: WordQuery | None = None  # what is searched for in the words of documents

    def __post_init__(self) -> None:
        self.narrow = (
            self.filter
        )  # by fields, and by the words that documents must have or not have

    @property
    def text(self) -> str:
        """The words that describe what is looked for, corrected if they were looked up."""
        return self.parsed.text if self.words is None else self.words.text

    def look_up(self, words: "RowWords") -> None:
        """Find out what to search for in the words of documents, and what it may find by its words, too."""
        self.words = word_query(self.parsed, words)
        if self.words.must or self.words.without or self.words.any_of:
            self.narrow, possible = words.restricted(self.words, self.filter)
            if not possible:
                self.words = replace(self.words, must=(), any_of=(), is_relaxed=True)
                self.narrow, _ = words.restricted(self.words, self.filter)


class Ranked(NamedTuple):
    """The hits of a query, the best first, and what their scores are made of."""

    rows: Rows
    distances: NDArray[np.int32]
    scores: Scores
    by_words: Scores  # the part of each score that comes from words

    def at(self, which: Rows | slice) -> "Ranked":
        return Ranked(
            self.rows[which], self.distances[which], self.scores[which], self.by_words[which]
        )


def retrieve(
    documents: "Snapshot", queries: list[Query], request: Request, words: "RowWords | None"
) -> list[Ranked]:
    """The hits of each query."""

    def rank(query: Query, near: Ranked) -> Ranked:
        check_time()
        if query.parsed.lists:  # in the order in which they were added
            rows = documents.first(request.k or 0 if request.radius is None else 0, query.narrow)
            zeros = np.zeros(len(rows), np.float32)
            return Ranked(rows, zeros.astype(np.int32), zeros, zeros)
        if request.rank in ("words", "hybrid"):
            assert words is not None
            return _rank_by_words(documents, query, request, near, words)
        return near if request.rank == "hamming" else _rank_by_code(documents, query, request, near)

    near = _nearest(documents, queries, request)
    if len(queries) <= _FEW or request.rank == "hamming":
        return list(map(rank, queries, near))
    return list(ordered_map(lambda pair: rank(*pair), zip(queries, near, strict=True)))


def _nearest(documents: "Snapshot", queries: Sequence[Query], request: Request) -> list[Ranked]:
    """The nearest by code: without the document that a query is, and nothing for a query of which no word is known."""
    found, most = Found.nothing(len(queries)), request.nearest
    if request.rank != "words" or request.radius is not None:
        own, known = (
            np.array([one.own for one in queries]),
            np.array([one.known for one in queries], dtype=np.bool_),
        )
        asked = most if most is None or (own < 0).all() else most + 1
        # Queries with the same filter are answered together; most have none of their own.
        parts = []
        for _, group in groupby(queries, key=lambda one: id(one.narrow)):
            some = list(group)
            codes = np.stack([one.code for one in some])
            parts.append(
                documents.find(codes, asked, request.radius, some[0].narrow, request.backend)
            )
        found = join(parts)
        if not known.all() or (own >= 0).any():
            found = found.keep((found.rows != own[found.queries]) & known[found.queries]).first(
                most
            )
    scores = (1 - found.distances / documents.bits).astype(np.float32)
    near = Ranked(found.rows, found.distances, scores, np.zeros_like(scores))
    return [near.at(slice(start, stop)) for start, stop in pairwise(found.offsets.tolist())]


def _rank_by_code(documents: "Snapshot", query: Query, request: Request, near: Ranked) -> Ranked:
    if not len(near.rows):
        return near
    if request.rank == "cosine":
        stored = unit(documents.vectors(near.rows).astype(np.float32))
        scores = np.einsum("ij,j->i", stored, unit(query.vector[None])[0])
    else:
        scores = asymmetric(query.activations, documents.codes(near.rows))
    order = np.argsort(-scores, kind="stable")[: request.k]  # equal scores stay nearest first
    return near.at(order)._replace(scores=scores[order])


def _rank_by_words(
    documents: "Snapshot", query: Query, request: Request, near: Ranked, words: "RowWords"
) -> Ranked:
    """The best by BM25 and the nearest by code, with both scores added up; of rank words, the best by BM25 alone."""
    assert query.words is not None
    asked, k, own = query.words, request.k, query.own
    if own >= 0:  # a document is no quotation of another
        asked = replace(asked, quotation=())
    if request.radius is not None:  # only what is near may be found
        rows, bm25, bound = near.rows, words.scores(asked, near.rows), 0.0
        unquoted = words.scores(replace(asked, quotation=()), rows) if asked.quotation else bm25
        highest = float(unquoted.max(initial=0))
        if request.rank == "words":
            rows, bm25 = rows[bm25 > 0], bm25[bm25 > 0]
        others = rows[:0]
    else:
        assert k is not None
        # The bound is the highest BM25 that other documents may have.
        rows, bm25, bound, highest = words.best(
            asked, max(CANDIDATES, k + (own >= 0)), query.filter
        )
        there = set(rows.tolist())  # a set is faster than numpy for a few hundred
        others = np.array([row for row in near.rows.tolist() if row not in there], dtype=np.int64)
    best = np.float32(max(highest, 1e-9) if request.rank == "hybrid" else 1.0)
    rows, bm25 = rows[rows != own], bm25[rows != own]
    matching, rows = len(rows), np.concatenate([rows, others])
    if not len(rows):
        return near.at(slice(0))
    by_words = np.concatenate([bm25 / best, np.zeros(len(others), np.float32)])
    scores = by_words.copy()
    if request.rank == "hybrid" and query.known:
        scores = by_words + np.float32(CODE_WEIGHT) * asymmetric(
            query.activations, documents.codes(rows)
        )
    if bound and len(others):
        # Only those that may be among the k best are looked up in the word index: this is most of a query's time.
        least = _least(scores[:matching], k) - 1e-5
        may = matching + np.flatnonzero(scores[matching:] + bound / best >= least)
        by_words[may] = words.scores(asked, rows[may]) / best
        scores[may] += by_words[may]
    kept = np.flatnonzero(scores >= _least(scores, k))
    distances = np.bitwise_count(documents.codes(rows[kept]) ^ query.code).sum(
        axis=1, dtype=np.int32
    )
    order = np.lexsort((rows[kept], distances, -scores[kept]))[:k]
    kept = kept[order]
    return Ranked(rows[kept], distances[order], scores[kept], by_words[kept])


def _least(scores: Scores, k: int | None) -> float:
    """The k-th highest score."""
    return (
        -math.inf
        if k is None or len(scores) <= k
        else float(np.partition(scores, len(scores) - k)[-k])
    )


def asymmetric(activations: NDArray[np.float32], codes: NDArray[np.uint8]) -> Scores:
    """The cosine of each code's signs and a query's activations, (bits,)."""
    bits, width = len(activations), codes.shape[1]
    length = math.sqrt(float(activations @ activations) * bits) or 1.0
    padded = np.zeros(8 * width, dtype=np.float32)  # bits that fill the last byte count for nothing
    padded[:bits] = activations / np.float32(length)
    # What each value of each byte adds to a score: one look-up for 8 bits. A score does not depend on the other codes.
    tables = padded.reshape(width, 8) @ _SIGNS.T  # (bytes, 256)
    scores: Scores = tables.ravel().take(codes + np.arange(0, 256 * width, 256)).sum(axis=1)
    return scores


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Rows of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
