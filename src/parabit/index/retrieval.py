"""From queries to hits: how `Index.search` and `Index.like` find documents, and what they answer."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.budget import LONGEST_QUERY, check_time
from parabit.choices import RANKS
from parabit.codes import check_codes
from parabit.corpus import as_corpus
from parabit.errors import (
    CodesError,
    IndexFolderError,
    OverwrittenError,
    QueryError,
    WordsMissingError,
)
from parabit.index.code_search import check_backend
from parabit.index.documents import Stored, rows_with, stored_in
from parabit.index.filters import Where, conditions
from parabit.index.query import Parsed, WordQuery, matching_tokens, parse, word_query
from parabit.index.ranking import NEEDS, Query, Ranked, Request, retrieve
from parabit.index.results import Rows
from parabit.index.store import Id, Snapshot
from parabit.index.word_index import RowWords, searchable
from parabit.model import TextEncoder
from parabit.text import Tokenizer

if TYPE_CHECKING:
    from parabit.index.index import Index

_READ = 20_000  # characters of a text that a passage is looked for in
# Hits whose texts are in memory at the same time, if they are read one after the other.
_READ_TOGETHER = 16


_TRIES = 3  # searches of an index that others are written over


def search(index: "Index", queries: Any, where: Where | None, request: Request) -> "Hits":
    """The hits of texts or codes; see `Index.search`."""
    return _again_if_overwritten(index, lambda: _search(index, queries, where, request))


def _search(index: "Index", queries: Any, where: Where | None, request: Request) -> "Hits":
    by_text = not isinstance(queries, np.ndarray)
    search = _start(index, request, by_text)  # before the queries are read
    snapshot = search.snapshot
    if by_text:
        given = as_corpus([queries] if isinstance(queries, str) else queries)
        texts = [document.text for document in given]
        asked = _queries(snapshot, texts, where)
    else:
        if queries.ndim != 2:
            problem = (
                f"codes to search with must be rows of a 2-d array, found shape {queries.shape}"
            )
            raise CodesError(problem, hint="give a single code as `code[None]`")
        check_codes(queries, index.bits)
        filter = _filter(snapshot, where)
        asked = [Query(filter, code=code) for code in queries]
    return _find(index, search, asked)


def like(index: "Index", ids: Id | Sequence[Id], where: Where | None, request: Request) -> "Hits":
    """The hits of documents that are in the index; see `Index.like`."""
    return _again_if_overwritten(index, lambda: _like(index, ids, where, request))


def _like(index: "Index", ids: Id | Sequence[Id], where: Where | None, request: Request) -> "Hits":
    by_text = index.keeps_text and index.knows_texts
    search = _start(index, request, by_text)
    snapshot = search.snapshot
    rows = rows_with(snapshot, [ids] if isinstance(ids, str | int) else ids)
    filter = _filter(snapshot, where)
    if by_text:
        asked = [Query(filter, Parsed(text)) for text in _beginnings(snapshot, rows)]
    else:
        asked = [Query(filter, code=code) for code in snapshot.codes(rows)]
    for query, row in zip(asked, rows.tolist(), strict=True):
        query.own = row
    return _find(index, search, asked)


def _again_if_overwritten(index: "Index", run: Callable[[], "Hits"]) -> "Hits":
    """The hits of a search, which begins again if another thread meets an index written over this
    one.
    """
    for _ in range(_TRIES - 1):
        with suppress(OverwrittenError):
            return run()
        with index._store.changing:  # the thread that changes it is done then
            index.refresh()
    return run()


def _beginnings(snapshot: Snapshot, rows: Rows) -> Iterator[str]:
    """What describes the documents in some rows: of long ones the beginning, as far as a query is
    looked at.
    """
    for start in range(0, len(rows), _READ_TOGETHER):
        check_time()
        for fields in snapshot.fields_of(rows[start : start + _READ_TOGETHER]):
            yield searchable(fields)[: LONGEST_QUERY + 1]  # one more, which says that it was cut


def matching(index: "Index", query: str, text: str) -> set[str]:
    """The words of a text that match a query, as they are written there; none if the index keeps no
    words.
    """
    if not index.has_words:
        return set()
    snapshot = index.snapshot()
    words, [asked] = index._words.of(snapshot), _queries(snapshot, [query], None)
    return matching_tokens(word_query(asked.parsed, words), words, text)


class _Search(NamedTuple):
    """What a search works on: all of it belongs to one moment of the index."""

    request: Request  # checked and complete
    snapshot: Snapshot
    model: TextEncoder | None  # None if codes are searched for
    may_do_without_words: bool  # as the user has not asked for a rank that needs them


def _start(index: "Index", request: Request, by_text: bool) -> _Search:
    """Check a request, and take the documents and the model as they are now."""
    model = index.model if by_text else None  # first, as loading it may show a newer index
    check_backend(request.backend)
    k = 10 if request.k is None and request.radius is None else _whole("k", request.k, 1)
    radius = _whole("radius", request.radius, 0)
    rank = request.rank or (index.best_rank if by_text else "hamming")
    if rank not in RANKS:
        raise CodesError(f"no rank {rank!r}", hint=f"there are {', '.join(RANKS)}")
    needed = NEEDS.get(rank)
    if needed and needed not in index.keeps:
        problem = f"rank {rank} needs {needed}, which this index does not keep"
        raise CodesError(problem, hint=f"build it with {needed}, or choose another rank")
    if rank != "hamming" and not by_text:
        raise CodesError(
            f"rank {rank} needs the text of the query, and codes were given", hint="give texts"
        )
    snapshot = index.snapshot()
    if model is not None and model.fingerprint != snapshot.manifest.fingerprint:
        raise OverwrittenError(f"{index.folder} was given another model", hint="search again")
    complete = request._replace(k=k, radius=radius, rank=rank)
    return _Search(complete, snapshot, model, may_do_without_words=not request.rank)


def _whole(name: str, value: object, least: int) -> int | None:
    """The k or the radius of a search, checked."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise CodesError(
            f"{name} must be a whole number, found {value!r}", hint="give it as an int"
        )
    if value < least:
        hint = "ask for at least one hit" if least else "0 finds equal codes"
        raise CodesError(f"{name} must be {least} or more, found {value}", hint=hint)
    return int(value)  # as faiss takes no others


def _filter(snapshot: Snapshot, where: Where | None) -> Any:
    wanted = conditions(where)
    return snapshot.select(wanted) if wanted else None


def _queries(snapshot: Snapshot, texts: Sequence[str], where: Where | None) -> list[Query]:
    """Queries of the search box taken apart, each with a filter by its fields."""
    shared, queries = _filter(snapshot, where), []
    none_meets = shared is not None and not len(snapshot.first(1, shared))
    for text in texts:
        parsed, filter, notes = (
            parse(text, snapshot.field_names if ":" in text else ()),
            shared,
            list[str](),
        )
        if parsed.fields:
            written, own = [f"{name}={value}" for name, value in parsed.fields], None
            with suppress(QueryError):  # no document can match a field in this form
                own = _filter(snapshot, written)
            if own is not None and len(snapshot.first(1, own)):
                filter = (
                    own
                    if shared is None
                    else snapshot.select((*conditions(where), *conditions(written)))
                )
            else:  # these are words
                notes.append(
                    f"no document has {' and '.join(written)}; field:value needs the whole value"
                )
                words = " ".join([parsed.text, *(value for _, value in parsed.fields)]).strip()
                parsed = replace(parsed, text=words, fields=())
        if none_meets:
            notes.append("no document meets the conditions; = and != compare whole values")
        queries.append(Query(filter, parsed, notes))
    return queries


def _find(index: "Index", search: _Search, queries: list[Query]) -> "Hits":
    request, snapshot, model = search.request, search.snapshot, search.model
    # Codes are searched without the model.
    tokenizer = Tokenizer() if model is None else model.vocabulary.tokenizer
    open_words = None
    if model is not None and index.has_words:
        open_words = cache(lambda: index._words.of(snapshot))
    words = None
    parsed = [query.parsed for query in queries]
    # By words what is near by code is restricted, too.
    restricts = any(one.must or one.without or one.prefixes for one in parsed)
    if open_words and (restricts or request.rank in ("words", "hybrid")):
        try:
            words = open_words()
        except WordsMissingError as problem:
            if restricts or not search.may_do_without_words:
                raise
            open_words = None
            request = request._replace(rank="asymmetric")
            for query in queries:
                query.notes.append(f"{problem.problem}; documents are ranked by code alone")
        else:
            for query in queries:
                check_time()
                query.look_up(words)
    if model is not None:
        encoded = model.infer([query.text for query in queries])
        for query, code, activations, vector, known in zip(queries, *encoded, strict=True):  # type: ignore[arg-type]
            query.code = code
            query.activations = activations
            query.vector = vector
            query.known = bool(known)
    ranked = retrieve(snapshot, queries, request, words)
    return Hits(queries, ranked, request.rank, snapshot, open_words, tokenizer)


class Piece(NamedTuple):
    """A stretch of a text."""

    text: str
    mark: bool  # whether it is a word of the query


class Why(NamedTuple):
    """What a hit's score is made of."""

    words: dict[
        str, float
    ]  # the words of the query that it has, as written there, with their share of the score
    code: float  # the share that comes from its code
    distance: int | None  # in how many bits the codes differ; None if the query has no code
    bits: int  # of how many


@dataclass(frozen=True)
class Hit(Stored):
    """A document that was found."""

    score: float  # higher is better
    distance: int | None  # Hamming; None if the query has no code
    _hits: "Hits" = field(repr=False, compare=False)
    _query: int = field(repr=False, compare=False)
    _place: int = field(repr=False, compare=False)

    @cached_property
    def snippet(self) -> list[Piece]:
        """The passage of the text with most words of the query, in pieces; the words are marked."""
        words = self._hits.matching(self._query, self.text[:_READ])
        return passage(self._hits._tokenizer, self.text, words)

    @property
    def why(self) -> Why:
        """Which words matched, and how near the code is."""
        return self._hits._whys(self._query)[self._place]


class Hits:
    """The documents that were found for each of some queries, the best first.

    `hits[i]` are those of query i with their text and fields, which are read when they are asked
    for. `known[i]` is False if neither the model nor any document knows a word of query i: it then
    has no hits, as any would be arbitrary. `encoded[i]` is False if the model knows none, so that
    the query has no code to compare, and its hits no distance. `texts` are the queries without
    operators and corrected, `codes` theirs, `rank` is what they were ranked by, and `notes[i]` say
    in words what was done with query i: words that were corrected, words that no document has.
    `distances[i]` are the Hamming distances of its hits, `scores[i]` their scores, higher is
    better.
    """

    def __init__(
        self,
        queries: Sequence[Query],
        ranked: Sequence[Ranked],
        rank: str,
        snapshot: Snapshot,
        words: Callable[[], RowWords] | None,  # opens the word index, if there is one
        tokenizer: Tokenizer,
    ) -> None:
        self._queries, self._ranked, self.rank, self._snapshot = queries, ranked, rank, snapshot
        self._open_words, self._tokenizer = words, tokenizer
        self._whys = cache(self._shares)  # of a query's hits together, if they are asked for
        self.texts = [one.text for one in queries]
        self.distances, self.scores = (
            [one.distances for one in ranked],
            [one.scores for one in ranked],
        )
        codes = np.array([one.code for one in queries], dtype=np.uint8)
        self.codes = codes.reshape(len(queries), -(-snapshot.bits // 8))
        self.encoded = np.array([one.known for one in queries], dtype=np.bool_)
        known = [
            one.known or one.parsed.lists or (one.words is not None and one.words.finds)
            for one in queries
        ]
        self.known = np.array(known, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self._ranked)

    def __iter__(self) -> Iterator[list[Hit]]:
        return (self[query] for query in range(len(self)))

    def __getitem__(self, query: int) -> list[Hit]:
        return list(self.each(query))

    def each(self, query: int) -> Iterator[Hit]:
        """The hits of a query, the best first, read a few at a time: a hundred texts may not fit
        into memory.

        Parameters:
            query: The position of the query.

        Example:
            >>> from parabit import Index
            >>> hits = Index.of_codes(np.array([[0], [1]], dtype=np.uint8), bits=8).like([0])
            >>> [hit.id for hit in hits.each(0)]
            [1]
        """
        query = range(len(self))[query]
        ranked = self._ranked[query]
        scores = ranked.scores.tolist()
        distances = self._distances(query)
        for start in range(0, len(scores), _READ_TOGETHER):
            check_time()
            rows = ranked.rows[start : start + _READ_TOGETHER]
            for place, stored in enumerate(stored_in(self._snapshot, rows), start):
                yield Hit(
                    stored.id,
                    stored.code,
                    stored.text,
                    stored.fields,
                    scores[place],
                    distances[place],
                    self,
                    query,
                    place,
                )

    @cached_property
    def ids(self) -> list[list[Id]]:
        """The ids of each query's hits."""
        rows = np.concatenate([np.zeros(0, np.int64), *(ranked.rows for ranked in self._ranked)])
        ids = iter(
            self._snapshot.ids_of(rows)
        )  # of all queries at once, as an engine is asked over the network
        return [list(islice(ids, len(ranked.rows))) for ranked in self._ranked]

    @property
    def notes(self) -> list[list[str]]:
        """What was done with each query, in words."""
        nothing = ["nothing that can be searched for is in the query"]
        each = zip(self._queries, self.word_queries, self.known, strict=True)
        return [
            [*one.notes, *words.notes] or ([] if known else nothing) for one, words, known in each
        ]

    @cached_property
    def word_queries(self) -> Sequence[WordQuery]:
        """What was searched for in the words of documents: `words`, and which were `corrected` or
        are `unknown`.
        """
        if self._words is None:
            return [WordQuery() for _ in self._queries]
        # Ranks by code need them only to show which words match.
        return [
            one.words or word_query(one.parsed, self._words, correct=False) for one in self._queries
        ]

    def matching(self, query: int, text: str) -> set[str]:
        """The words of a text that match the query, as they are written there."""
        return (
            set()
            if self._words is None
            else matching_tokens(self.word_queries[query], self._words, text)
        )

    @cached_property
    def _words(self) -> RowWords | None:
        try:
            return None if self._open_words is None else self._open_words()
        except IndexFolderError:  # it was not needed for the search
            return None

    def _distances(self, query: int) -> list[int | None]:
        distances = self._ranked[query].distances.tolist()
        return distances if self.encoded[query] else [None] * len(distances)

    def _shares(self, query: int) -> list[Why]:
        """What the scores of a query's hits are made of: the share of each word, the highest first,
        and of the code.
        """
        (rows, _, scores, by_words), alone = self._ranked[query], dict[str, NDArray[np.float32]]()
        if self._words is not None and by_words.any():
            asked = self.word_queries[query]
            weights = (
                dict.fromkeys(chain.from_iterable(asked.any_of), 1.0) | asked.words | asked.rest
            )
            for word, weight in weights.items():
                check_time()
                own = self._words.scores(WordQuery(words={word: weight}), rows)
                name = asked.written[word]
                alone[name] = alone.get(name, np.float32(0)) + own
        totals = np.maximum(sum(alone.values(), np.zeros(len(rows))), 1e-9)
        code = np.round((scores - by_words).astype(np.float64), 4).tolist()
        whys = []
        for place, distance in enumerate(self._distances(query)):
            score, total = by_words[place], totals[place]
            found = {
                word: round(float(score * own[place] / total), 4)
                for word, own in alone.items()
                if own[place]
            }
            words = dict(sorted(found.items(), key=lambda item: -item[1]))
            whys.append(Why(words, code[place], distance, self._snapshot.bits))
        return whys


def marked(tokenizer: Tokenizer, text: str, words: Collection[str]) -> list[Piece]:
    """A whole text in pieces, with the words marked."""
    return _pieces(text, tokenizer.places(text, words), 0, len(text))


def passage(
    tokenizer: Tokenizer, text: str, words: Collection[str], length: int = 300
) -> list[Piece]:
    """The passage of a text that has most different words of the query, some `length` characters
    long.
    """
    text = text[:_READ]
    spans = tokenizer.places(text, words)
    start = _best_start(text, spans, length) if len(text) > length else 0
    end = min(len(text), start + length)
    if start:  # to the next space, if there is one near
        start = max(start, text.find(" ", start, start + 30) + 1)
    if end < len(text) and (space := text.rfind(" ", end - 30, end)) >= 0:
        end = max(start, space)
    pieces = _pieces(
        text, [span for span in spans if start <= span[0] and span[1] <= end], start, end
    )
    before, after = (
        [Piece("… ", False)] if start else [],
        [Piece("…", False)] if end < len(text) else [],
    )
    return [*before, *pieces, *after]


def _best_start(text: str, spans: Sequence[tuple[int, int]], length: int) -> int:
    """Where the stretch with most different words begins, and of these the one with most words, and
    the first.
    """
    best, start, first = (0, 0), 0, 0
    words = [text[slice(*span)].lower() for span in spans]
    for last, (_, end) in enumerate(spans):
        while spans[first][0] < end - length:
            first += 1
        inside = words[first : last + 1]
        if (found := (len({*inside}), len(inside))) > best:
            # In the middle, with what comes before it and after.
            best, start = found, max(0, (spans[first][0] + end - length) // 2)
    return min(start, max(0, len(text) - length))


def _pieces(text: str, spans: Sequence[tuple[int, int]], start: int, end: int) -> list[Piece]:
    pieces, place = [], start
    for first, last in spans:
        if first > place:
            pieces.append(Piece(text[place:first], False))
        pieces.append(Piece(text[first:last], True))
        place = last
    return [*pieces, Piece(text[place:end], False)] if place < end else pieces
