"""From queries to hits: what is looked for in an index, by codes and by words."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.corpus import as_corpus
from parabit.index.documents import rows_with
from parabit.index.filters import Condition, Where, conditions
from parabit.index.hits import Hits
from parabit.index.query import (
    Allowed,
    Parsed,
    Queries,
    check_query_codes,
    checked,
    matching_tokens,
    with_vectors,
    word_query,
)
from parabit.index.ranking import Request, need_for, parsed_queries, retrieve, with_words
from parabit.index.search import check_backend
from parabit.index.store import Id, Snapshot
from parabit.index.word_index import searchable

if TYPE_CHECKING:
    from parabit.index.index import Index

How: TypeAlias = tuple[int | None, int | None, str | None, int | None, str]  # k, radius, rank, candidates, back end


def search(index: "Index", queries: Any, where: Where | None, vectors: NDArray[np.floating] | None, how: How) -> Hits:
    """The hits of texts or codes; see `Index.search`."""
    by_text = not isinstance(queries, np.ndarray)
    request = _request(index, by_text, how)
    snapshot = _snapshot(index, by_text)  # before the queries are read, which may take as long as they like
    filters = conditions(where)
    if by_text:
        texts = [queries] if isinstance(queries, str) else [document.text for document in as_corpus(queries)]
        asked = _encoded(index, *parsed_queries(snapshot, index.fields, texts, filters))
    else:
        check_query_codes(queries, index.bits)
        asked = _of_codes(queries, _alike(snapshot, filters, len(queries)))
    if vectors is not None:
        asked = with_vectors(asked, vectors, index._store.dim or None)
    return _find(index, snapshot, asked, request)


def like(index: "Index", ids: Id | Sequence[Id], where: Where | None, how: How) -> Hits:
    """The hits of documents that are in the index; see `Index.like`."""
    by_text = index.keeps_text and index.knows_texts
    request = _request(index, by_text, how)
    snapshot = _snapshot(index, by_text)
    rows = rows_with(snapshot, [ids] if isinstance(ids, str | int) else ids)
    allowed = _alike(snapshot, conditions(where), len(rows))
    if by_text:
        asked = _encoded(index, [Parsed(searchable(fields)) for fields in snapshot.fields_of(rows)], allowed)
    else:
        asked = _of_codes(snapshot.codes(rows), allowed)
    return _find(index, snapshot, asked._replace(own=rows), request)


def matching(index: "Index", query: str, text: str) -> set[str]:
    """The words of a text that match a query, as they are written there; none if the index keeps no words."""
    if not index.has_words:
        return set()
    snapshot = index.snapshot()
    words, [[one], _] = index._words.of(snapshot), parsed_queries(snapshot, index.fields, [query], ())
    return matching_tokens(word_query(one, words), words, text)


def _request(index: "Index", by_text: bool, how: How) -> Request:
    k, radius, rank, candidates, backend = how
    check_backend(backend)
    k = 10 if k is None and radius is None else None if k is None else checked("k", k, 1)
    radius = None if radius is None else checked("radius", radius, 0)
    return Request(k, radius, rank or (index.best_rank if by_text else "hamming"), candidates, backend)


def _snapshot(index: "Index", by_text: bool) -> Snapshot:
    """The documents as they are now; for texts the model comes first, as loading it may show a newer index."""
    _ = index.model if by_text else None
    return index.snapshot()


def _alike(snapshot: Snapshot, filters: Sequence[Condition], queries: int) -> list[Allowed]:
    only = snapshot.select(filters) if filters else None
    return [Allowed(only, only)] * queries


def _encoded(index: "Index", parsed: Sequence[Parsed], allowed: Sequence[Allowed]) -> Queries:
    codes, activations, vectors, known = index.model.infer([one.text for one in parsed])
    assert codes is not None
    return Queries(codes, known, allowed, parsed, activations, vectors)


def _of_codes(codes: NDArray[np.uint8], allowed: Sequence[Allowed]) -> Queries:
    return Queries(codes, np.ones(len(codes), dtype=np.bool_), allowed)


def _find(index: "Index", snapshot: Snapshot, queries: Queries, request: Request) -> Hits:
    need_for(request.rank, queries, index._store.dim > 0, index.has_words)
    parsed, words, searched = queries.parsed, None, None
    if parsed is not None and index.has_words:
        words = partial(index._words.of, snapshot)
        if request.rank in ("hybrid", "words") or any(one.restricts for one in parsed):
            searched = words()
            queries = with_words(queries, searched)
    ranked = retrieve(snapshot, queries, request, searched)
    tokenizer = None if parsed is None else index.model.vocabulary.tokenizer  # codes are searched without the model
    return Hits(ranked, queries, snapshot, words, tokenizer)
