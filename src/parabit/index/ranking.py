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
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS
from parabit.errors import CodesError, QueryError
from parabit.index.filters import Condition, conditions
from parabit.index.query import Parsed, Queries, parse, word_query
from parabit.index.results import Found, join
from parabit.parallel import ordered_map

if TYPE_CHECKING:  # an engine has its own of these, with the same methods
    from parabit.index.store import Snapshot
    from parabit.index.word_index import RowWords

# How much the code counts beside the words, chosen on three collections with real queries and on documents as queries
# (`benchmarks/queries.py --weights`): .25, .4 and .5 differ by less than .003 in the mean NDCG@10 of real queries, and
# of documents as queries .4 is the best of these or within .001 of it.
CODE_WEIGHT = 0.4
CANDIDATES = 200  # the best by words, and as many by code, that get both scores
_RANKED = 1000  # the nearest that are ranked by more than their distance, if words are not looked at
_FEW = 8  # queries that are answered without threads
_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1  # (256, 8)

Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


class Request(NamedTuple):
    """What is asked of a search, checked."""

    k: int | None  # hits at most
    radius: int | None  # bits
    rank: str
    candidates: int | None = None  # of the nearest by code, that are ranked by more than their distance
    backend: str = "auto"

    @property
    def nearest(self) -> int | None:
        """How many of the nearest by code are candidates; None for all inside the radius."""
        if self.rank == "hamming":
            return self.k
        most = self.candidates
        if most is None and self.radius is None:
            most = CANDIDATES if self.rank == "hybrid" else _RANKED
        return None if most is None else max(most, self.k or 0)


class Ranked(NamedTuple):
    """Hits, the best first, and what their scores are made of."""

    found: Found
    scores: Scores
    by_words: Scores  # the part of each score that comes from words


def parsed_queries(
    snapshot: "Snapshot", fields: Sequence[str], texts: Sequence[str], where: Sequence[Condition]
) -> tuple[list[Parsed], list[Any]]:
    """Queries of the search box taken apart, and a filter for each by its fields."""
    given, filters = [], [snapshot.select(where) if where else None] * len(texts)
    for number, text in enumerate(texts):
        one = parse(text, fields if ":" in text else ())
        if one.fields:
            try:
                own = conditions([f"{name}={value}" for name, value in one.fields])
                filters[number] = snapshot.select((*where, *own))
            except QueryError:  # no document can match a field in this form, so these are words
                words = " ".join([one.text, *(f"{name} {value}" for name, value in one.fields)])
                one = replace(one, text=words.strip(), fields=())
        given.append(one)
    return given, filters


def need_for(rank: str, queries: Queries, has_vectors: bool, has_words: bool) -> None:
    """Raise CodesError unless these queries can be ranked so, in an index that keeps vectors or words or not."""
    if rank not in RANKS:
        raise CodesError(f"no rank {rank!r}", hint=f"there are {', '.join(RANKS)}")
    what, kept = ("vectors", has_vectors) if rank == "cosine" else ("words", has_words)
    if rank in ("cosine", "words", "hybrid") and not kept:
        raise CodesError(
            f"rank {rank} needs {what}, which this index does not keep",
            hint=f"build it with {what}, or choose another rank",
        )
    if rank == "cosine" and queries.vectors is None:
        raise CodesError(
            "rank cosine needs the vectors of the queries", hint="give texts, or query_vectors of the same model"
        )
    if rank in ("asymmetric", "words", "hybrid") and queries.activations is None:
        raise CodesError(f"rank {rank} needs the text of the query, and codes were given", hint="give texts")


def with_words(queries: Queries, words: "RowWords") -> Queries:
    """Queries with what is searched for in the words of documents, and what each may find by its words, too."""
    found, narrowed = [], list(queries.where)
    for number, one in enumerate(queries.parsed or ()):
        query = word_query(one, words)
        if query.must or query.without or query.any_of:
            narrowed[number], possible = words.restricted(query, queries.where[number])
            if not possible:
                query = replace(query, must=(), any_of=(), is_relaxed=True)
                narrowed[number], _ = words.restricted(query, queries.where[number])
        found.append(query)
    return queries._replace(words=found, near=narrowed)


def retrieve(documents: "Snapshot", queries: Queries, request: Request, words: "RowWords | None" = None) -> Ranked:
    """The hits of each query."""
    near, listed = Found.nothing(len(queries.codes)), queries.listed
    if request.rank != "words" or request.radius is not None:
        near = _near(documents, queries, request)
    if request.rank == "hamming" and not any(listed):
        return _by_distance(documents, near)

    def rank(number: int) -> Ranked:
        if listed[number]:  # in the order in which they were added
            most = request.k or 0 if request.radius is None else 0
            rows = documents.first(most, queries.near[number])
            return _ranked(rows, np.zeros(len(rows), np.int32), np.zeros(len(rows), np.float32))
        if words is not None and request.rank in ("words", "hybrid"):
            return _rank_by_words(documents, queries, number, request, near.of(number).rows, words)
        return _rank_by_code(documents, queries, number, request, near.of(number))

    numbers = range(len(queries.codes))
    parts = list(map(rank, numbers) if len(numbers) <= _FEW else ordered_map(rank, numbers))
    if len(parts) == 1:
        return parts[0]
    scores = [np.concatenate([np.zeros(0, np.float32), *(part[which] for part in parts)]) for which in (1, 2)]
    return Ranked(join([part.found for part in parts]), *scores)


def _near(documents: "Snapshot", queries: Queries, request: Request) -> Found:
    """The nearest by code: without the document that a query is, and nothing for a query of which no word is known."""
    most, own, filters = request.nearest, queries.own, queries.near
    asked = most if most is None or own is None else most + 1
    # Queries with the same filter are answered together; most have none of their own.
    size = len(queries.codes) if all(one is filters[0] for one in filters) else 1
    groups = ((queries.codes[start : start + size], filters[start]) for start in range(0, len(filters), size or 1))
    found = join([documents.find(codes, asked, request.radius, only, request.backend) for codes, only in groups])
    if own is not None:
        found = found.keep(found.rows != own[found.queries]).first(most)
    return found if queries.known.all() else found.keep(queries.known[found.queries])


def _ranked(rows: Rows, distances: NDArray[np.int32], scores: Scores, by_words: Scores | None = None) -> Ranked:
    """The hits of one query."""
    found = Found(np.array([0, len(rows)]), rows, distances)
    return Ranked(found, scores, np.zeros(len(rows), np.float32) if by_words is None else by_words)


def _by_distance(documents: "Snapshot", near: Found) -> Ranked:
    scores = (1 - near.distances / documents.bits).astype(np.float32)
    return Ranked(near, scores, np.zeros_like(scores))


def _rank_by_code(documents: "Snapshot", queries: Queries, number: int, request: Request, near: Found) -> Ranked:
    if request.rank == "hamming" or not len(near.rows):
        return _by_distance(documents, near)
    if request.rank == "cosine":
        assert queries.vectors is not None
        stored = unit(documents.vectors(near.rows).astype(np.float32))
        scores = np.einsum("ij,j->i", stored, unit(queries.vectors[number : number + 1])[0])
    else:
        assert queries.activations is not None
        scores = asymmetric(queries.activations[number], documents.codes(near.rows))
    order = np.argsort(-scores, kind="stable")[: request.k]  # equal scores stay nearest first
    return _ranked(near.rows[order], near.distances[order], scores[order])


def _rank_by_words(
    documents: "Snapshot", queries: Queries, number: int, request: Request, near: Rows, words: "RowWords"
) -> Ranked:
    """The best by BM25 and the nearest by code, with both scores added up; of rank words, the best by BM25 alone."""
    assert queries.words is not None
    asked, k, but = queries.words[number], request.k, -1
    if queries.own is not None:  # a document is no quotation of another
        asked, but = replace(asked, quotation=()), int(queries.own[number])
    if request.radius is not None:  # only what is near may be found
        rows, bm25, bound = near, words.scores(asked, near), 0.0
        unquoted = words.scores(replace(asked, quotation=()), near) if asked.quotation else bm25
        highest = float(unquoted.max(initial=0))
        if request.rank == "words":
            rows, bm25 = rows[bm25 > 0], bm25[bm25 > 0]
        near = near[:0]
    else:
        assert k is not None
        # The bound is the highest BM25 that other documents may have.
        rows, bm25, bound, highest = words.best(asked, max(CANDIDATES, k + (but >= 0)), queries.where[number])
    best = np.float32(max(highest, 1e-9) if request.rank == "hybrid" else 1.0)
    if but >= 0:
        rows, bm25 = rows[rows != but], bm25[rows != but]
    matching, there = len(rows), set(rows.tolist())  # a set is faster than numpy for a few hundred
    rows = np.concatenate([rows, np.array([row for row in near.tolist() if row not in there], dtype=np.int64)])
    by_words = np.concatenate([bm25 / best, np.zeros(len(rows) - matching, np.float32)])
    scores = by_words.copy()
    if request.rank == "hybrid" and queries.known[number] and queries.activations is not None and len(rows):
        scores = by_words + np.float32(CODE_WEIGHT) * asymmetric(queries.activations[number], documents.codes(rows))
    if bound and len(rows) > matching:
        # Only those that may be among the k best are looked up in the word index: this is most of a query's time.
        least = _least(scores[:matching], k) - 1e-5
        may = matching + np.flatnonzero(scores[matching:] + bound / best >= least)
        by_words[may] = words.scores(asked, rows[may]) / best
        scores[may] += by_words[may]
    kept = np.flatnonzero(scores >= _least(scores, k))
    codes = documents.codes(rows[kept]) if len(kept) else queries.codes[:0]
    distances = np.bitwise_count(codes ^ queries.codes[number]).sum(axis=1, dtype=np.int32)
    order = np.lexsort((rows[kept], distances, -scores[kept]))[:k]
    kept = kept[order]
    return _ranked(rows[kept], distances[order], scores[kept], by_words[kept])


def _least(scores: Scores, k: int | None) -> float:
    """The k-th highest score."""
    return -math.inf if k is None or len(scores) <= k else float(np.partition(scores, len(scores) - k)[-k])


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
