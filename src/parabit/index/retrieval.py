"""From queries to ranked hits: filters, candidates by code and by words, and their scores."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from parabit.errors import QueryError
from parabit.index.filters import Condition, conditions, mask_of
from parabit.index.kept_words import RowWords
from parabit.index.query import Parsed, Queries, WordQuery, parse, word_query
from parabit.index.ranking import CANDIDATES, Ranked, join_ranked, rank_by_code, rank_by_words
from parabit.index.results import Found
from parabit.index.store import Snapshot

_RANKED = 1000  # the nearest that are ranked by more than their distance, if words are not looked at

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_] | None


@dataclass(frozen=True)
class Request:
    """What is asked of a search, checked."""

    k: int | None  # hits at most
    radius: int | None  # bits
    rank: str
    where: Sequence[Condition] = ()
    candidates: int | None = None  # of the nearest by code, that are ranked by more than their distance
    backend: str = "auto"


def parsed(text: str, snapshot: Snapshot) -> Parsed:
    """A query of the search box taken apart; `field:value` that no document can match for its form are plain words."""
    found = parse(text, [name for name in snapshot.field_names if name != "text"])
    try:
        mask_of(snapshot, _own_conditions(found))
    except QueryError:
        words = [found.text, *(f"{name} {value}" for name, value in found.fields)]
        return replace(found, text=" ".join(words), fields=())
    return found


def with_words(queries: Queries, given: Sequence[Parsed], words: RowWords) -> tuple[Queries, list[list[str]]]:
    """Queries with what is searched for in the words of documents, and what is to be said about it."""
    found: list[WordQuery] = []
    notes: list[list[str]] = []
    for one in given:
        query = word_query(one, words, words.nearest_word)
        said = [f"searched for {right} instead of {wrong}" for wrong, right in query.corrected.items()]
        if query.unknown:
            said.append(f"no document has {', '.join(query.unknown)}")
        if (query.must or query.any_of) and not len(words.best(query, 1)[0]):
            query = query.relaxed()
            said.append("no document has all that is required, so it was searched for as plain words")
        found.append(query)
        notes.append(said)
    return queries._replace(words=found), notes


def retrieve(
    snapshot: Snapshot,
    queries: Queries,
    request: Request,
    given: Sequence[Parsed] | None = None,
    words: RowWords | None = None,
    but: Rows | None = None,
) -> Ranked:
    """The hits of each query; `but` is a row for each query that is not to be found."""
    own = [_own_conditions(one) for one in given or ()]
    # Queries with the same filter are answered together; most have none of their own.
    alike = len(set(own)) < 2
    groups = [slice(0, len(queries.codes))] if alike else [slice(number, number + 1) for number in range(len(own))]
    parts = []
    for group in groups:
        where = (*request.where, *(own[group.start] if own else ()))
        allowed = mask_of(snapshot, where) if where else None
        some, excluded = queries.part(group.start, group.stop), None if but is None else but[group]
        parts.append(_retrieve_alike(snapshot, some, request, allowed, words, excluded))
    return parts[0] if len(parts) == 1 else join_ranked(parts)


def _retrieve_alike(
    snapshot: Snapshot, queries: Queries, request: Request, allowed: Mask, words: RowWords | None, but: Rows | None
) -> Ranked:
    """The hits of queries with the same filter."""
    k, radius, rank = request.k, request.radius, request.rank
    if rank not in ("hybrid", "words"):
        most = k if rank == "hamming" else _to_rank(request)
        return rank_by_code(rank, queries, _near(snapshot, queries, request, most, allowed, but), snapshot, k)
    assert words is not None
    among = words if allowed is None else words.among(allowed)
    if radius is not None:  # all that is near gets both scores
        near = _near(snapshot, queries, request, _to_rank(request), allowed, but)
        return rank_by_words(rank, queries, near, snapshot, among, None).first(k)
    assert k is not None
    by_code = None
    if rank == "hybrid":
        by_code = _near(snapshot, queries, request, max(request.candidates or CANDIDATES, k), allowed, but)
    ranked = rank_by_words(rank, queries, by_code, snapshot, among, k if but is None else k + 1)
    return ranked if but is None else ranked.first(k, but)


def _near(
    snapshot: Snapshot, queries: Queries, request: Request, most: int | None, allowed: Mask, but: Rows | None
) -> Found:
    """The nearest by code: without the document that a query is, and nothing for a query of which no word is known."""
    asked = most if most is None or but is None else most + 1
    found = snapshot.find(queries.codes, asked, request.radius, allowed, request.backend)
    if but is not None:
        found = found.keep(found.rows != but[found.queries]).first(most)
    return found if queries.known.all() else found.keep(queries.known[found.queries])


def _to_rank(request: Request) -> int | None:
    """How many of the nearest are ranked by more than their distance; None for all inside the radius."""
    most = request.candidates
    if most is None and request.radius is None:
        most = _RANKED
    return None if most is None else max(most, request.k or 0)


def _own_conditions(one: Parsed) -> tuple[Condition, ...]:
    return conditions([f"{name}={value}" for name, value in one.fields])
