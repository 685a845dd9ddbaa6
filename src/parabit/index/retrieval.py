"""From queries to hits: how `Index.search` and `Index.like` find documents, and what they answer."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.corpus import as_corpus
from parabit.errors import CodesError, IndexFolderError
from parabit.index.code_search import check_backend
from parabit.index.documents import Stored, rows_with, stored_in
from parabit.index.filters import Condition, Where, conditions
from parabit.index.passages import READ, Piece, passage
from parabit.index.query import Parsed, Queries, WordQuery, matching_tokens, word_query
from parabit.index.ranking import Ranked, Request, need_for, parsed_queries, retrieve, with_words
from parabit.index.store import Id, Snapshot
from parabit.index.word_index import RowWords, searchable
from parabit.text import Tokenizer

if TYPE_CHECKING:
    from parabit.index.index import Index


def search(
    index: "Index", queries: Any, where: Where | None, vectors: NDArray[np.floating] | None, request: Request
) -> "Hits":
    """The hits of texts or codes; see `Index.search`."""
    by_text = not isinstance(queries, np.ndarray)
    request, snapshot = _start(index, request, by_text)  # before the queries are read, which may take its time
    filters = conditions(where)
    if by_text:
        texts = [queries] if isinstance(queries, str) else [document.text for document in as_corpus(queries)]
        asked = _encoded(index, *parsed_queries(snapshot, index.fields, texts, filters))
    else:
        if queries.ndim != 2:
            raise CodesError(
                f"codes to search with must be rows of a 2-d array, found shape {queries.shape}",
                hint="give a single code as `code[None]`",
            )
        check_codes(queries, index.bits)
        asked = _of_codes(queries, _filter(snapshot, filters))
    if vectors is not None:
        vectors, dim = np.asarray(vectors, dtype=np.float32), index._store.manifest.dim
        if dim and vectors.shape != (len(asked.codes), dim):
            raise CodesError(
                f"query_vectors must be of shape {(len(asked.codes), dim)}, found {vectors.shape}",
                hint="give a vector for each query, of the model that made the stored ones",
            )
        if not np.isfinite(vectors).all():
            raise CodesError("query_vectors have numbers that are not finite", hint="leave out what has no vector")
        asked = asked._replace(vectors=vectors)
    return _find(index, snapshot, asked, request)


def like(index: "Index", ids: Id | Sequence[Id], where: Where | None, request: Request) -> "Hits":
    """The hits of documents that are in the index; see `Index.like`."""
    by_text = index.keeps_text and index.knows_texts
    request, snapshot = _start(index, request, by_text)
    rows = rows_with(snapshot, [ids] if isinstance(ids, str | int) else ids)
    only = _filter(snapshot, conditions(where))
    if by_text:
        asked = _encoded(index, [Parsed(searchable(fields)) for fields in snapshot.fields_of(rows)], [only] * len(rows))
    else:
        asked = _of_codes(snapshot.codes(rows), only)
    return _find(index, snapshot, asked._replace(own=rows), request)


def matching(index: "Index", query: str, text: str) -> set[str]:
    """The words of a text that match a query, as they are written there; none if the index keeps no words."""
    if not index.has_words:
        return set()
    snapshot = index.snapshot()
    words, [[one], _] = index._words.of(snapshot), parsed_queries(snapshot, index.fields, [query], ())
    return matching_tokens(word_query(one, words), words, text)


def _start(index: "Index", request: Request, by_text: bool) -> tuple[Request, Snapshot]:
    """A request, checked and complete, and the documents as they are now."""
    check_backend(request.backend)
    k = 10 if request.k is None and request.radius is None else _whole("k", request.k, 1)
    radius = _whole("radius", request.radius, 0)
    request = request._replace(k=k, radius=radius, rank=request.rank or (index.best_rank if by_text else "hamming"))
    _ = index.model if by_text else None  # first, as loading it may show a newer index
    return request, index.snapshot()


def _whole(name: str, value: object, least: int) -> int | None:
    """The k or the radius of a search, checked."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise CodesError(f"{name} must be a whole number, found {value!r}", hint="give it as an int")
    if value < least:
        hint = "ask for at least one hit" if least else "0 finds equal codes"
        raise CodesError(f"{name} must be {least} or more, found {value}", hint=hint)
    return int(value)  # as faiss takes no others


def _filter(snapshot: Snapshot, where: Sequence[Condition]) -> Any:
    return snapshot.select(where) if where else None


def _encoded(index: "Index", parsed: Sequence[Parsed], filters: Sequence[Any]) -> Queries:
    codes, activations, vectors, known = index.model.infer([one.text for one in parsed])
    assert codes is not None
    return Queries(codes, known, filters, filters, parsed, activations, vectors)


def _of_codes(codes: NDArray[np.uint8], only: Any) -> Queries:
    filters = [only] * len(codes)
    return Queries(codes, np.ones(len(codes), dtype=np.bool_), filters, filters)


def _find(index: "Index", snapshot: Snapshot, queries: Queries, request: Request) -> "Hits":
    need_for(request.rank, queries, index._store.manifest.dim > 0, index.has_words)
    parsed, words, searched = queries.parsed, None, None
    if parsed is not None and index.has_words:
        words = partial(index._words.of, snapshot)
        # Some restrict by words what is near by code, too.
        if request.rank in ("hybrid", "words") or any(one.must or one.without or one.prefixes for one in parsed):
            searched = words()
            queries = with_words(queries, searched)
    ranked = retrieve(snapshot, queries, request, searched)
    tokenizer = None if parsed is None else index.model.vocabulary.tokenizer  # codes are searched without the model
    return Hits(ranked, queries, snapshot, words, tokenizer)


class Why(NamedTuple):
    """What a hit's score is made of."""

    words: dict[str, float]  # the words of the query that it has, with their share of the score
    code: float  # the share that comes from its code
    distance: int  # in how many bits the codes differ
    bits: int  # of how many


@dataclass(frozen=True)
class Hit(Stored):
    """A document that was found."""

    score: float  # higher is better
    distance: int  # Hamming
    _hits: "Hits" = field(repr=False, compare=False)
    _query: int = field(repr=False, compare=False)
    _place: int = field(repr=False, compare=False)

    @cached_property
    def snippet(self) -> list[Piece]:
        """The passage of the text with most words of the query, in pieces; the words are marked."""
        words = self._hits.matching(self._query, self.text[:READ])
        return passage(self._hits._tokenizer, self.text, words)

    @property
    def why(self) -> Why:
        """Which words matched, and how near the code is."""
        return self._hits._whys(self._query)[self._place]


class Hits:
    """The documents that were found for each of some queries, the best first.

    `hits[i]` are those of query i with their text and fields, which are read when they are asked for. `known[i]` is
    False if neither the model nor any document knows a word of query i: it then has no hits, as any would be arbitrary.
    `codes` are the queries', and `notes[i]` say in words what was done with query i: words that were corrected, words
    that no document has.
    """

    def __init__(
        self,
        ranked: Ranked,
        queries: Queries,
        snapshot: Snapshot,
        words: Callable[[], RowWords] | None,  # opens the word index, if there is one
        tokenizer: Tokenizer | None,
    ) -> None:
        self._found, self._scores, self._by_words = ranked
        self._queries, self._snapshot, self._open_words = queries, snapshot, words
        self._tokenizer = tokenizer or Tokenizer()
        self._whys = cache(self._shares)  # of a query's hits together, if they are asked for
        self.codes, self.known = queries.codes, queries.known | np.array(queries.listed, dtype=np.bool_)
        if queries.words is not None:
            self.known |= np.array([one.finds for one in queries.words], dtype=np.bool_)

    def __len__(self) -> int:
        """How many queries were asked."""
        return len(self._found.offsets) - 1

    def __iter__(self) -> Iterator[list[Hit]]:
        return (self[query] for query in range(len(self)))

    def __getitem__(self, query: int) -> list[Hit]:
        query = range(len(self))[query]
        here = self._of(query)
        stored = stored_in(self._snapshot, self._found.rows[here])
        each = zip(stored, self._scores[here].tolist(), self._found.distances[here].tolist(), strict=True)
        return [
            Hit(one.id, one.code, one.text, one.fields, score, distance, self, query, place)
            for place, (one, score, distance) in enumerate(each)
        ]

    @cached_property
    def ids(self) -> list[list[Id]]:
        """The ids of each query's hits."""
        ids = self._snapshot.ids_of(self._found.rows)
        return [ids[self._of(query)] for query in range(len(self))]

    @property
    def distances(self) -> list[NDArray[np.int32]]:
        """Their Hamming distances."""
        return [self._found.distances[self._of(query)] for query in range(len(self))]

    @property
    def scores(self) -> list[NDArray[np.float32]]:
        """Their scores, higher is better."""
        return [self._scores[self._of(query)] for query in range(len(self))]

    @property
    def notes(self) -> list[list[str]]:
        """What was done with each query, in words."""
        return [one.notes for one in self.word_queries]

    @cached_property
    def word_queries(self) -> Sequence[WordQuery]:
        """What was searched for in the words of documents: `words`, and which were `corrected` or are `unknown`."""
        if self._queries.words is not None:
            return self._queries.words
        words = self._words  # ranks by code need them only to show which words match
        if words is None or self._queries.parsed is None:
            return [WordQuery()] * len(self)
        return [word_query(one, words) for one in self._queries.parsed]

    def matching(self, query: int, text: str) -> set[str]:
        """The words of a text that match the query, as they are written there."""
        return set() if self._words is None else matching_tokens(self.word_queries[query], self._words, text)

    @cached_property
    def _words(self) -> RowWords | None:
        try:
            return None if self._open_words is None else self._open_words()
        except IndexFolderError:  # it was not needed for the search
            return None

    def _shares(self, query: int) -> list[Why]:
        """What the scores of a query's hits are made of: the share of each word, the highest first, and of the code."""
        here = self._of(query)
        rows, by_words, alone = self._found.rows[here], self._by_words[here], dict[str, NDArray[np.float32]]()
        if self._words is not None and by_words.any():
            asked = self.word_queries[query]
            weights = {**dict.fromkeys((word for words in asked.any_of for word in words), 1.0), **asked.words}
            alone = {word: self._words.scores(WordQuery({word: weight}), rows) for word, weight in weights.items()}
        totals = np.maximum(sum(alone.values(), np.zeros(len(rows))), 1e-9)
        code = np.round((self._scores[here] - by_words).astype(np.float64), 4).tolist()
        whys = []
        for place, distance in enumerate(self._found.distances[here].tolist()):
            score, total = by_words[place], totals[place]
            found = {word: round(float(score * own[place] / total), 4) for word, own in alone.items() if own[place]}
            words = dict(sorted(found.items(), key=lambda item: -item[1]))
            whys.append(Why(words, code[place], distance, self._snapshot.bits))
        return whys

    def _of(self, query: int) -> slice:
        return slice(int(self._found.offsets[query]), int(self._found.offsets[query + 1]))
