"""What a search answers."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.codes import unpack
from parabit.index.ranking import Queries
from parabit.index.results import Found
from parabit.index.store import Id
from parabit.index.view import View
from parabit.text import Vocabulary


class Hit(NamedTuple):
    """A document that was found."""

    id: Id
    distance: int  # Hamming
    score: float  # higher is better
    text: str
    fields: Mapping[str, Any]  # the others that were stored, labels among them


class Hits:
    """The documents that were found for each of some queries, the best first.

    `hits[i]` are those of query i with their text and fields, which are read when they are asked for. `known[i]` is
    False where the model knows no word of query i: it then has no hits, as any would be arbitrary. `codes` are the
    queries', and `notes` say in words what this search does not promise; there are none where it is exact.
    """

    def __init__(
        self,
        found: Found,
        scores: NDArray[np.float32],
        asked: Queries,
        view: View,
        vocabulary: Vocabulary | None = None,  # that the queries' words are of
        notes: tuple[str, ...] = (),
    ) -> None:
        self._found, self._scores, self._view, self.notes = found, scores, view, notes
        self._words, self._vocabulary = asked.words, vocabulary
        self.known, self.codes = asked.known, asked.codes

    def __len__(self) -> int:
        """How many queries were asked."""
        return len(self._found.offsets) - 1

    def __iter__(self) -> Iterator[list[Hit]]:
        return (self[query] for query in range(len(self)))

    def __getitem__(self, query: int) -> list[Hit]:
        here = self._of(range(len(self))[query])
        distances, scores = self._found.distances[here].tolist(), self._scores[here].tolist()
        stored = self._view.fields_of(self._found.rows[here])
        ids = self.ids[query]
        return [
            Hit(id, distance, score, fields.pop("text", ""), fields)
            for id, distance, score, fields in zip(ids, distances, scores, stored, strict=True)
        ]

    @cached_property
    def ids(self) -> list[list[Id]]:
        """The ids of each query's hits."""
        ids = self._view.ids_of(self._found.rows)
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
        """Their rows, as they are until the index is compacted; on a server, numbers that mean something here alone."""
        return [self._found.rows[self._of(query)] for query in range(len(self))]

    def words(self, query: int, most: int = 24) -> list[str]:
        """The words of a text that tell most of it, by their TF-IDF weights; none of a code.

        Example:
            >>> from parabit import Index, ParagraphVectors
            >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired it.", "Goalies like ice."]
            >>> index = Index.build(ParagraphVectors(bits=16).fit(texts * 6), texts)
            >>> index.search(["a repaired telescope"]).words(0)
            ['telescope', 'repaired']
        """
        return self._all_words[query][:most]

    @cached_property
    def _all_words(self) -> list[list[str]]:
        """The words of all queries, as looking names up costs the same for one and for many."""
        if self._words is None or self._vocabulary is None:
            return [[] for _ in range(len(self))]
        offsets, features, weights = self._words.indptr, self._words.indices, self._words.data
        names = self._vocabulary.names.gather(features).to_list()
        words = []
        for first, last in pairwise(offsets.tolist()):
            order = first + np.lexsort((features[first:last], -weights[first:last]))
            words.append(list(dict.fromkeys(word for place in order for word in names[place].split(" "))))
        return words

    def codes_of(self, query: int) -> NDArray[np.uint8]:
        """The codes of a query's hits: (hits, bytes)."""
        rows = self._found.rows[self._of(range(len(self))[query])]
        if not len(rows):
            return self.codes[:0]
        return self._view.codes(rows)

    def differing(self, query: int) -> NDArray[np.bool_]:
        """Which bits of each hit differ from the query's: (hits, bits)."""
        return unpack(self.codes_of(query) ^ self.codes[query], self._view.bits).astype(np.bool_)

    def _of(self, query: int) -> slice:
        return slice(int(self._found.offsets[query]), int(self._found.offsets[query + 1]))
