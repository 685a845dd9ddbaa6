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
Filter = Any  # which documents may be found: of a folder a mask of rows or None for all, of an engine what it takes


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


class Allowed(NamedTuple):
    """Which documents a query may find."""

    where: Filter = None  # by its fields
    near: Filter = None  # by its fields and by the words that it must have or not have
    listed: bool = False  # all of these, as the query describes nothing


class Ranked(NamedTuple):
    """Hits, the best first, and what their scores are made of."""

    found: Found
    scores: Scores
    by_words: Scores | None = None  # the part of each score that comes from words


def parsed_queries(
    view: "Snapshot", fields: Sequence[str], texts: Sequence[str], where: Sequence[Condition]
) -> tuple[list[Parsed], list[Allowed]]:
    """Queries of the search box taken apart, and what each may find by its fields."""
    given, only = [], view.select(where) if where else None
    allowed = [Allowed(only, only)] * len(texts)
    for number, text in enumerate(texts):
        one = parse(text, fields if ":" in text else ())
        if one.fields:
            try:
                own = conditions([f"{name}={value}" for name, value in one.fields])
                mask = view.select((*where, *own))
                allowed[number] = Allowed(mask, mask)
            except QueryError:  # no document can match a field in this form, so these are words
                one = one.without_fields()
        if one.lists:
            allowed[number] = allowed[number]._replace(listed=True)
        given.append(one)
    return given, allowed


def need_for(rank: str, queries: Queries, has_vectors: bool, has_words: bool) -> None:
    """Raise CodesError unless these queries can be ranked so, in an index that keeps vectors or words or not."""
    if rank not in RANKS:
        raise CodesError(f"no rank {rank!r}", hint=f"there are {', '.join(RANKS)}")
    for needed, what, has in (
        (("words", "hybrid"), "words", has_words),
        (("cosine",), "vectors", has_vectors),
    ):
        if rank in needed and not has:
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


def with_words(
    queries: Queries, given: Sequence[Parsed], words: "RowWords", allowed: Sequence[Allowed]
) -> tuple[Queries, list[Allowed]]:
    """Queries with what is searched for in the words of documents, and what each may find by its words, too."""
    found, narrowed = [], list(allowed)
    for number, one in enumerate(given):
        query = word_query(one, words, words.nearest_word)
        if query.restricts:
            where = allowed[number].where
            near, possible = words.restricted(query, where)
            if not possible:
                query = query.relaxed()
                near, _ = words.restricted(query, where)
            narrowed[number] = allowed[number]._replace(near=near)
        found.append(query)
    return queries._replace(words=found), narrowed


def retrieve(
    documents: "Snapshot",
    queries: Queries,
    request: Request,
    allowed: Sequence[Allowed],
    words: "RowWords | None" = None,
    but: Rows | None = None,
) -> Ranked:
    """The hits of each query; `but` is a row for each query that is not to be found."""
    count = len(queries.codes)
    # Queries with the same filter are answered together; most have none of their own.
    alike = all(one is allowed[0] for one in allowed)
    groups = [slice(0, count)] if alike else [slice(number, number + 1) for number in range(count)]
    near = Found.nothing(count)
    if request.rank != "words" or request.radius is not None:
        near = join([_near(documents, queries, request, allowed, group, but) for group in groups])
    if request.rank == "hamming" and not any(one.listed for one in allowed):
        return Ranked(near, (1 - near.distances / documents.bits).astype(np.float32))

    def rank(number: int) -> Ranked:
        here = slice(int(near.offsets[number]), int(near.offsets[number + 1]))
        rows, distances = near.rows[here], near.distances[here]
        own = -1 if but is None else int(but[number])
        if allowed[number].listed:
            return _list(documents, request, allowed[number].near)
        if request.rank in ("words", "hybrid"):
            assert words is not None
            return _rank_by_words(documents, queries, number, request, rows, words, allowed[number].where, own)
        return _rank_by_code(documents, queries, number, request, rows, distances)

    parts = list(map(rank, range(count)) if count <= _FEW else ordered_map(rank, range(count)))
    if len(parts) == 1:
        return parts[0]
    both = all(part.by_words is not None for part in parts) and parts
    return Ranked(
        join([part.found for part in parts]),
        np.concatenate([np.zeros(0, np.float32), *(part.scores for part in parts)]),
        np.concatenate([part.by_words for part in parts if part.by_words is not None]) if both else None,
    )


def _near(
    documents: "Snapshot",
    queries: Queries,
    request: Request,
    allowed: Sequence[Allowed],
    group: slice,
    but: Rows | None,
) -> Found:
    """The nearest by code: without the document that a query is, and nothing for a query of which no word is known."""
    codes, known, most = queries.codes[group], queries.known[group], request.nearest
    if not len(codes):
        return Found.nothing(0)
    asked = most if most is None or but is None else most + 1
    found = documents.find(codes, asked, request.radius, allowed[group.start].near, request.backend)
    if but is not None:
        found = found.keep(found.rows != but[group][found.queries]).first(most)
    return found if known.all() else found.keep(known[found.queries])


def _list(documents: "Snapshot", request: Request, allowed: Filter) -> Ranked:
    """Documents in the order in which they were added, for a query that only says which are let through."""
    rows = np.zeros(0, np.int64) if request.radius is not None else documents.first(request.k or 0, allowed)
    nothing = np.zeros(len(rows), np.float32)
    return Ranked(Found(np.array([0, len(rows)]), rows, np.zeros(len(rows), np.int32)), nothing, nothing)


def _rank_by_code(
    documents: "Snapshot", queries: Queries, number: int, request: Request, rows: Rows, distances: NDArray[np.int32]
) -> Ranked:
    if request.rank == "hamming":
        scores = (1 - distances / documents.bits).astype(np.float32)
    elif not len(rows):
        scores = np.zeros(0, np.float32)
    elif request.rank == "cosine":
        assert queries.vectors is not None
        stored = unit(documents.vectors(rows).astype(np.float32))
        scores = np.einsum("ij,j->i", stored, unit(queries.vectors[number : number + 1])[0])
    else:
        assert queries.activations is not None
        scores = asymmetric(queries.activations[number], documents.codes(rows))
    order = np.argsort(-scores, kind="stable")[: request.k]  # equal scores stay nearest first
    return Ranked(Found(np.array([0, len(order)]), rows[order], distances[order]), scores[order])


def _rank_by_words(
    documents: "Snapshot",
    queries: Queries,
    number: int,
    request: Request,
    near: Rows,
    words: "RowWords",
    allowed: Filter,
    but: int,
) -> Ranked:
    """The best by BM25 and the nearest by code, with both scores added up; of rank words, the best by BM25 alone."""
    assert queries.words is not None
    asked, k = queries.words[number], request.k
    if but >= 0:  # a document is no quotation of another
        asked = replace(asked, quotation=())
    bound = 0.0  # the highest BM25 that a document without a score may have
    if request.radius is not None:  # only what is near may be found
        rows, bm25, rest = near, words.scores(asked, near), near[:0]
        if request.rank == "words":
            rows, bm25 = rows[bm25 > 0], bm25[bm25 > 0]
    else:
        assert k is not None
        rows, bm25, bound = words.best(asked, max(CANDIDATES, k + (but >= 0)), allowed)
        there = set(rows.tolist())  # faster than numpy for a few hundred
        rest = np.array([row for row in near.tolist() if row not in there], dtype=np.int64)
    best = max(float(bm25.max(initial=0)), 1e-9)
    by_words = bm25
    of_code, rest_of_code = np.zeros(len(rows), np.float32), np.zeros(len(rest), np.float32)
    if request.rank == "hybrid":
        by_words = bm25 / np.float32(best)
        if queries.known[number] and queries.activations is not None and len(rows) + len(rest):
            both = documents.codes(np.concatenate([rows, rest]))
            code = np.float32(CODE_WEIGHT) * asymmetric(queries.activations[number], both)
            of_code, rest_of_code = code[: len(rows)], code[len(rows) :]
    if but >= 0:
        others = rows != but
        rows, by_words, of_code = rows[others], by_words[others], of_code[others]
    scores = by_words + of_code
    if len(rest):
        # Only those that may be among the k best are looked up in the word index: this is most of a query's time.
        if k is not None and len(scores) >= k:
            may = bound / best + rest_of_code >= np.partition(scores, len(scores) - k)[len(scores) - k] - 1e-5
            rest, rest_of_code = rest[may], rest_of_code[may]
        more = words.scores(asked, rest) / np.float32(best) if bound else np.zeros(len(rest), np.float32)
        rows = np.concatenate([rows, rest])
        by_words, scores = np.concatenate([by_words, more]), np.concatenate([scores, more + rest_of_code])
    if k is not None and len(scores) > k:
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        rows, by_words, scores = rows[kept], by_words[kept], scores[kept]
    codes = documents.codes(rows) if len(rows) else queries.codes[:0]
    distances = np.bitwise_count(codes ^ queries.codes[number]).sum(axis=1, dtype=np.int32)
    order = np.lexsort((rows, distances, -scores))[:k]
    return Ranked(Found(np.array([0, len(order)]), rows[order], distances[order]), scores[order], by_words[order])


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
