"""The documents of an index on Milvus as one search sees them, by codes and by words."""

import math
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.engines.milvus import client
from parabit.engines.milvus.client import KEY, SERIAL, WINDOW, WORDS, Entities, Near, all_of, saying
from parabit.errors import CodesError, IndexFolderError
from parabit.index.filters import EQUAL, UNEQUAL, Condition, ids_among, need_field, no_numbers
from parabit.index.query import WordQuery
from parabit.index.results import Found, join
from parabit.index.spelling import begin_alike, nearest_form, plain_form, written_forms
from parabit.index.store import Id, Value
from parabit.index.word_index import PREFIXED, searchable
from parabit.index.words import Stems

_FIRST = 1024  # hits that are asked for at first, if all are wanted
_SPARE = 64  # hits beside twice as many as are wanted, for those that are as near as the last
_LOOKED_AT = 500  # documents in which words are looked for that begin in some way
_SHARES = (
    4  # a word of a query is repeated so often per unit of weight, and scores are divided by it
)
_SHOWN = 20  # documents in which the form of a corrected word is looked for
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"

Codes = NDArray[np.uint8]
Rows = NDArray[np.int64]
Scores = NDArray[np.float32]


class MilvusSnapshot:
    """The documents of a collection, by rows; a document's row is its serial number.

    It has the methods of `parabit.index.store.Snapshot`. Unlike documents in a folder these may change meanwhile: one
    that was deleted or replaced since has no fields.
    """

    def __init__(self, entities: Entities, documents: int) -> None:
        self.entities, self.manifest, self.documents = entities, entities.manifest, documents
        self.bits, self.field_names = self.manifest.bits, self.manifest.field_names

    def rows_of(self, ids: Sequence[Id]) -> Rows:
        keys = [client.key_of(identity) for identity in ids]
        rows = self.entities.with_keys(list(dict.fromkeys(keys)))
        return np.array([rows.get(key, -1) for key in keys], dtype=np.int64)

    def ids_of(self, rows: Rows) -> list[Id]:
        found = self.entities.in_rows(rows.tolist(), [KEY])
        if any(row not in found for row in rows.tolist()):
            raise IndexFolderError("a document was changed during the search", hint="search again")
        return [client.id_of_key(found[row][KEY]) for row in rows.tolist()]

    def fields_of(self, rows: Rows) -> list[dict[str, Any]]:
        """The fields, text among them, of the documents in some rows; none of one that was changed meanwhile."""
        found = self.entities.in_rows(rows.tolist(), client.RECORDS)
        return [
            client.fields_of_entity(found[row]) if row in found else {} for row in rows.tolist()
        ]

    def codes(self, rows: Rows) -> Codes:
        return self._arrays(rows, client.CODE, np.dtype(np.uint8), -(-self.bits // 8))

    def vectors(self, rows: Rows) -> NDArray[np.float16]:
        return self._arrays(rows, client.REAL, np.dtype("<f2"), self.manifest.dim)

    def count(self, field: str, value: Value) -> int:
        return self.entities.count(client.having(field, [value]))

    def select(self, conditions: Sequence[Condition]) -> str:
        """A filter for the documents that meet all conditions."""
        parts = []
        for condition in conditions:
            need_field(condition, self.field_names)
            field, operator, values = condition
            if operator not in (EQUAL, UNEQUAL):
                if not self.entities.some(client.comparing(field, ">=", -math.inf), [], 1):
                    raise no_numbers(field)
                parts.append(client.comparing(field, operator, values[0]))
                continue
            if field == "id":
                part = client.in_keys(map(client.key_of, ids_among(values)))
            else:
                part = client.having(field, values) if values else client.NOTHING
            parts.append(self.entities.opposite(part) if operator == UNEQUAL else part)
        return all_of(parts)

    def find(
        self,
        codes: Codes,
        most: int | None,
        radius: int | None,
        allowed: str | None = None,
        backend: str = "auto",
    ) -> Found:
        """As in a folder. Milvus cuts a list of hits anywhere among equally near ones, and after 16,384; if an answer
        may have been cut, the rest is asked for.
        """
        if backend not in ("auto", "flat"):
            raise CodesError(
                f"the index is on Milvus, which has no back end {backend}", hint="take auto or flat"
            )
        farthest = self.bits if radius is None else min(radius, self.bits)
        limit = _FIRST if most is None else min(WINDOW, 2 * most + _SPARE)
        parts = []
        for number, near in enumerate(self.entities.near(codes, limit, 0, farthest, allowed or "")):
            near = self._whole(near, codes[number : number + 1], most, farthest, allowed or "")
            order = np.lexsort((near.rows, near.scores))[:most]
            parts.append(
                Found(
                    np.array([0, len(order)]), near.rows[order], near.scores[order].astype(np.int32)
                )
            )
        return join(parts)

    def first(self, most: int, allowed: str | None) -> Rows:
        rows = (row for block in self.entities.walk(allowed or "") for row in block.tolist())
        return np.fromiter(islice(rows, most), dtype=np.int64)

    def sample(self, most: int) -> Rows:
        """The rows of all documents, ascending; of more than `most` one in so many, as they came in."""
        step = -(-max(1, self.documents) // most)
        every = f"{SERIAL} % {step} == 0" if step > 1 else ""
        return np.concatenate([np.zeros(0, np.int64), *self.entities.walk(every)])

    def blocks(self, size: int) -> Iterator[Rows]:
        for rows in self.entities.walk():
            yield from client.pieces(rows, size)

    def _whole(self, near: Near, code: Codes, most: int | None, farthest: int, filter: str) -> Near:
        if not near.cut or (
            most is not None and most < len(near.rows) and near.scores[most - 1] < near.scores[-1]
        ):
            return near
        # Those that are nearer than the last are all here; of those that are as near, or farther, some may be missing.
        distance = int(near.scores[-1])
        nearer = near.scores < distance
        parts = [Near(near.rows[nearer], near.scores[nearer])]
        while distance <= farthest and (
            most is None or sum(len(part.rows) for part in parts) < most
        ):
            highest = farthest if most is None else distance

            def ask(between: str, lowest: int = distance, highest: int = highest) -> Near:
                return next(
                    self.entities.near(code, WINDOW, lowest, highest, all_of([between, filter]))
                )

            parts += client.in_ranges(ask)
            distance = highest + 1
        return Near(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def _arrays(self, rows: Rows, name: str, dtype: np.dtype[Any], width: int) -> NDArray[Any]:
        """Codes or vectors, which are kept as texts; zeros for a document that was changed meanwhile."""
        found, none = self.entities.in_rows(rows.tolist(), [name]), bytes(width * dtype.itemsize)
        written = [b64decode(found[row][name]) if row in found else none for row in rows.tolist()]
        return np.frombuffer(b"".join(written), dtype).reshape(len(rows), width)


class MilvusWords(Stems):
    """The words of a snapshot's documents, searched by Milvus' BM25."""

    missing = 0  # Milvus indexes words as it stores documents

    def __init__(self, snapshot: MilvusSnapshot) -> None:
        settings = snapshot.manifest.words
        assert settings is not None
        super().__init__(settings.language, settings.fold_accents)
        self._snapshot, self._entities, self.documents = (
            snapshot,
            snapshot.entities,
            snapshot.documents,
        )

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """About how many documents have each word: 0 is sure."""
        found = self._entities.best(stems, 1) if stems else []
        # BM25 is the word's inverse document frequency, times up to 2.2 and often 1.5.
        return {
            stem: max(1, round(self.documents / np.exp(near.scores[0] / 1.5)))
            if len(near.rows)
            else 0
            for stem, near in zip(stems, found, strict=True)
        }

    def starting_with(self, prefix: str) -> list[str]:
        """The most frequent words that begin so, in some documents that have one."""
        found = self._entities.some(saying([prefix], end=""), [WORDS], _LOOKED_AT)
        counts = Counter(
            word for entity in found for word in {*entity[WORDS].split()} if word.startswith(prefix)
        )
        return [
            word
            for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:PREFIXED]
        ]

    def nearest_word(self, token: str) -> str | None:
        """What to search for instead of a word that no document has: the word without accents, or the most frequent one
        that begins alike and is a letter apart.
        """
        if plain := plain_form(self, token):
            return plain
        [stem] = self.stemmed([token])
        cuts = [(stem[:place], stem[place:]) for place in range(len(stem) + 1)]
        letters = dict.fromkeys(_LETTERS + stem)
        changed = {a + b[1:] for a, b in cuts if b} | {
            a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1
        }
        changed |= {
            a + letter + rest
            for a, b in cuts
            for letter in letters
            for rest in ([b, b[1:]] if b else [b])
        }
        near = self.frequencies(
            sorted(word for word in changed - {"", stem} if begin_alike(word, stem))
        )
        best = max(
            (word for word in near if near[word]), key=lambda word: (near[word], word), default=None
        )
        if best is None:
            return None
        rows = np.array(
            [entity[SERIAL] for entity in self._entities.some(saying([best]), [], _SHOWN)],
            dtype=np.int64,
        )
        written = written_forms(self, map(searchable, self._snapshot.fields_of(rows)))
        return nearest_form(written[best], token) if best in written else best

    def best(
        self, query: WordQuery, count: int, allowed: str | None = None
    ) -> tuple[Rows, Scores, float, float]:
        """The rows with the highest BM25 that a filter lets through, the most that any other has, and the highest."""
        text = _text(query)
        if not text:
            return np.zeros(0, np.int64), np.zeros(0, np.float32), 0.0, 0.0
        [near] = self._entities.best([text], min(count, WINDOW), self._filter(query, allowed))
        scores = (near.scores / _SHARES).astype(np.float32)
        return (
            near.rows,
            scores,
            float(scores[-1]) if near.cut else 0.0,
            float(scores.max(initial=0)),
        )

    def scores(self, query: WordQuery, rows: Rows) -> Scores:
        found: dict[int, float] = {}
        filter = self._filter(query, None)
        for some in client.pieces(rows.tolist(), WINDOW // 2) if (text := _text(query)) else ():
            [near] = self._entities.best([text], len(some), all_of([client.in_rows(some), filter]))
            found |= zip(near.rows.tolist(), near.scores.tolist(), strict=True)
        return np.array([found.get(row, 0.0) / _SHARES for row in rows.tolist()], dtype=np.float32)

    def restricted(self, query: WordQuery, allowed: str | None) -> tuple[str, bool]:
        required = _required(query)
        possible = not required or bool(self._entities.some(required, [], 1))
        return self._filter(query, allowed), possible

    def _filter(self, query: WordQuery, allowed: str | None) -> str:
        excluded = [self._entities.opposite(saying(words)) for words in query.without]
        return all_of([allowed or "", _required(query), *excluded])


def _required(query: WordQuery) -> str:
    """A filter for what documents must have."""
    any_of = (" or ".join(saying([word]) for word in words) for words in query.any_of)
    return all_of([*map(saying, query.must), *any_of])


def _text(query: WordQuery) -> str:
    """The words of a query, each as often as it counts."""
    counts = {word: max(1, round(_SHARES * weight)) for word, weight in query.words.items()}
    for words in (*query.must, *query.any_of):
        for word in words:
            counts[word] = counts.get(word, 0) + _SHARES
    return " ".join(word for word, count in counts.items() for _ in range(count))
