"""What a search answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.corpus import Document, title_of
from parabit.errors import IndexFolderError
from parabit.index.passages import READ, Piece, passage
from parabit.index.query import Queries, WordQuery, matching_tokens, word_query
from parabit.index.ranking import Ranked
from parabit.index.store import Id, Snapshot
from parabit.index.word_index import RowWords
from parabit.text import Tokenizer


class Why(NamedTuple):
    """What a hit's score is made of."""

    words: dict[str, float]  # the words of the query that it has, with their share of the score
    code: float  # the share that comes from its code
    distance: int  # in how many bits the codes differ
    bits: int  # of how many


@dataclass(frozen=True)
class Hit:
    """A document that was found."""

    id: Id
    score: float  # higher is better
    distance: int  # Hamming
    title: str  # or the first line of the text
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them
    _hits: "Hits" = field(repr=False, compare=False)
    _query: int = field(repr=False, compare=False)
    _place: int = field(repr=False, compare=False)

    @cached_property
    def snippet(self) -> list[Piece]:
        """The passage of the text with most words of the query, in pieces; the words are marked."""
        words = self._hits.matching(self._query, self.text[:READ])
        return passage(self._hits._tokenizer, self.text, words)

    @cached_property
    def why(self) -> Why:
        """Which words matched, and how near the code is."""
        return self._hits.why(self._query)[self._place]


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
        asked: Queries,
        snapshot: Snapshot,
        words: Callable[[], RowWords] | None,  # opens the word index, if there is one
        tokenizer: Tokenizer | None,
    ) -> None:
        self._found, self._scores, self._by_words = ranked
        self._asked, self._snapshot, self._open_words = asked, snapshot, words
        self._tokenizer = tokenizer or Tokenizer()
        self._whys: dict[int, list[Why]] = {}
        self.codes, self.known = asked.codes, asked.known.copy()
        for number, one in enumerate(asked.allowed):
            by_words = asked.words is not None and asked.words[number].finds
            self.known[number] |= by_words or one.listed

    def __len__(self) -> int:
        """How many queries were asked."""
        return len(self._found.offsets) - 1

    def __iter__(self) -> Iterator[list[Hit]]:
        return (self[query] for query in range(len(self)))

    def __getitem__(self, query: int) -> list[Hit]:
        query = range(len(self))[query]
        here = self._of(query)
        distances, scores = self._found.distances[here].tolist(), self._scores[here].tolist()
        stored = self._snapshot.fields_of(self._found.rows[here])
        hits = []
        for place, (id, fields) in enumerate(zip(self.ids[query], stored, strict=True)):
            text = fields.pop("text", "")
            title = title_of(Document(str(id), text, fields=fields)) or str(id)
            hits.append(Hit(id, scores[place], distances[place], title, text, fields, self, query, place))
        return hits

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
    def rows(self) -> list[NDArray[np.int64]]:
        """Their rows, as they are until the index is compacted."""
        return [self._found.rows[self._of(query)] for query in range(len(self))]

    @property
    def notes(self) -> list[list[str]]:
        """What was done with each query, in words."""
        return [self._word_query(query).notes for query in range(len(self))]

    def words(self, query: int) -> list[str]:
        """The words that were searched for, as the index has them; none of a code."""
        return list(self._word_query(query).words)

    def unknown(self, query: int) -> list[str]:
        """The words of a query that no document has."""
        return list(self._word_query(query).unknown)

    def corrected(self, query: int) -> dict[str, str]:
        """The words of a query that no document has, each with the one that was searched for instead."""
        return dict(self._word_query(query).corrected)

    def matching(self, query: int, text: str) -> set[str]:
        """The words of a text that match the query, as they are written there."""
        return set() if self._words is None else matching_tokens(self._word_query(query), self._words, text)

    def why(self, query: int) -> list[Why]:
        """What the scores of a query's hits are made of: the share of each word, and of the code."""
        query = range(len(self))[query]
        if query not in self._whys:
            here = self._of(query)
            by_words, distances = self._by_words[here], self._found.distances[here].tolist()
            code = np.round((self._scores[here] - by_words).astype(np.float64), 4).tolist()
            shares = self._shares(query, self._found.rows[here], by_words)
            each = zip(shares, code, distances, strict=True)
            self._whys[query] = [Why(words, part, distance, self._snapshot.bits) for words, part, distance in each]
        return self._whys[query]

    def _shares(self, query: int, rows: NDArray[np.int64], by_words: NDArray[np.float32]) -> list[dict[str, float]]:
        """The share of each word in the scores of some rows, the highest first."""
        if self._words is None or not by_words.any():
            return [{} for _ in rows]
        asked = self._word_query(query)
        weights = {**dict.fromkeys((word for words in asked.any_of for word in words), 1.0), **asked.words}
        alone = {word: self._words.scores(WordQuery("", {word: weight}), rows) for word, weight in weights.items()}
        totals = np.maximum(sum(alone.values(), np.zeros(len(rows))), 1e-9)
        shares = []
        for place, (score, total) in enumerate(zip(by_words, totals, strict=True)):
            found = {word: round(float(score * own[place] / total), 4) for word, own in alone.items() if own[place]}
            shares.append(dict(sorted(found.items(), key=lambda item: -item[1])))
        return shares

    def codes_of(self, query: int) -> NDArray[np.uint8]:
        """The codes of a query's hits: (hits, bytes)."""
        rows = self._found.rows[self._of(range(len(self))[query])]
        return self._snapshot.codes(rows) if len(rows) else self.codes[:0]

    @cached_property
    def _words(self) -> RowWords | None:
        try:
            return None if self._open_words is None else self._open_words()
        except IndexFolderError:  # it was not needed for the search
            return None

    @cached_property
    def _word_queries(self) -> Sequence[WordQuery]:
        """Ranks by code need these only to show which words match."""
        if self._asked.words is not None:
            return self._asked.words
        words = self._words
        if words is None or self._asked.parsed is None:
            return [WordQuery("")] * len(self)
        return [word_query(one, words, words.nearest_word) for one in self._asked.parsed]

    def _word_query(self, query: int) -> WordQuery:
        return self._word_queries[range(len(self))[query]]

    def _of(self, query: int) -> slice:
        return slice(int(self._found.offsets[query]), int(self._found.offsets[query + 1]))
