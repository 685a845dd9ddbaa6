"""The words of an index's documents: searched by row, and the word index kept up to date with the store."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
import tantivy

from parabit.errors import IndexFolderError
from parabit.index.query import WordQuery
from parabit.index.results import Mask, Rows, Scores
from parabit.index.spelling import nearest_word
from parabit.index.store import Batch, Id, Snapshot, Store
from parabit.index.words import SERIAL, TEXT, Words
from parabit.progress import Progress, Report, silent

_AT_ONCE = 4096  # documents that are read together
_LOOKED_AT = 50  # documents in which the word nearest to a misspelt one is looked for
_COUNTED = 1000  # documents with two words next to each other
RANKED_AGAIN = 40  # of the best documents, that are ranked again by stop words and frequent ones
_FEW = 4096  # documents that are named one by one if a filter leaves no more
_NAMED = 64  # documents that are named one by one in a query: a set takes half a millisecond, however small
# What adds to the BM25 of single words, chosen with `benchmarks/queries.py --weights`. That a document has the whole
# query word for word says more than all else: it finds what somebody quotes, and other queries lose nothing.
QUOTATION_WEIGHT = 2.0
STOP_WEIGHT = 0.25
PREFIXED = 64  # words that `word*` stands for at most: the most frequent ones
_PATIENCE = 40  # looks at a word index that is being written, 0.05 s apart


class RowWords:
    """The words of a snapshot's documents, which are known by their rows here."""

    nearest_word = nearest_word

    def __init__(self, words: Words, snapshot: Snapshot) -> None:
        self._words, self._snapshot = words, snapshot
        self.tokenizer, self.stemmed, self.stems = words.tokenizer, words.stemmed, words.stems
        self.stop_words, self.documents = words.stop_words, words.documents

    def frequencies(self, stems: Iterable[str]) -> dict[str, int]:
        """How many documents have each word."""
        return {stem: int(self._words.searcher.doc_freq(TEXT, stem)) for stem in stems}

    def starting_with(self, prefix: str) -> list[str]:
        """The most frequent words that begin so."""
        found = sorted(
            self._words.searcher.terms_with_prefix(TEXT, prefix),
            key=lambda item: (-item[1], item[0]),
        )
        return [word for word, _ in found[:PREFIXED]]

    def best(
        self, query: WordQuery, count: int, allowed: Mask | None = None
    ) -> tuple[Rows, Scores, float, float]:
        """The rows with the highest BM25 that a filter lets through, the most that any other has, and the highest BM25
        before quotations are counted.
        """
        terms = self._terms(query)
        rows, scores, bound = self._best(terms, count, allowed)
        if terms is None or not len(rows):
            return rows, scores, bound, 0.0
        details = {**dict.fromkeys(query.stop_words, STOP_WEIGHT), **query.rest}
        if details:  # to look for them everywhere would take longer than all else
            scores[:RANKED_AGAIN] += self._sums(details, rows[:RANKED_AGAIN])
        highest = float(scores.max())
        if query.quotation:  # on its own, as one query for both would take three times as long
            quotation = self._term(query.quotation, QUOTATION_WEIGHT)
            quoting, higher, others = self._best(_both(quotation, terms), count, allowed)
            rest = ~np.isin(rows, quoting)
            rows, scores = (
                np.concatenate([quoting, rows[rest]]),
                np.concatenate([higher, scores[rest]]),
            )
            bound = max(bound, others)
        order = np.argsort(-scores, kind="stable")
        bound = max([bound, *scores[order[count : count + 1]].tolist()])
        return rows[order[:count]], scores[order[:count]], bound, highest

    def _best(
        self, query: tantivy.Query | None, count: int, allowed: Mask | None
    ) -> tuple[Rows, Scores, float]:
        if query is None or (allowed is not None and not allowed.any()):
            return np.zeros(0, np.int64), np.zeros(0, np.float32), 0.0
        more = count
        if allowed is not None:
            number = int(np.count_nonzero(allowed))
            if number <= _FEW:
                query, allowed = _both(self._some(np.flatnonzero(allowed)), query), None
            else:  # as many as should hold enough that are let through, and then twice as many
                more += count * self.documents // number
        while True:
            serials, scores = self._words.search(query, more)
            rows = self._snapshot.rows_of_serials(serials)
            there = rows >= 0  # others were written or deleted since the snapshot was taken
            if allowed is not None:
                there &= allowed[rows]
            if allowed is None or there.sum() >= count or len(rows) < more:
                break
            more *= 2
        return rows[there], scores[there], float(scores[-1]) if len(scores) == more else 0.0

    def scores(self, query: WordQuery, rows: Rows) -> Scores:
        """BM25 of some rows; 0 if they have none of the words."""
        terms = self._terms(query)
        if terms is not None and query.quotation:
            quotation = self._term(query.quotation, QUOTATION_WEIGHT)
            terms = tantivy.Query.boolean_query(
                [(tantivy.Occur.Must, terms), (tantivy.Occur.Should, quotation)]
            )
        return (
            np.zeros(len(rows), np.float32)
            if terms is None
            else self._scores(_both(self._some(rows), terms), rows)
        )

    def _sums(self, words: Mapping[str, float], rows: Rows) -> Scores:
        """What words add to the scores of a few rows; to look up one after the other is faster than any of them."""
        query = self._some(rows)
        for word, weight in words.items():
            parts = [
                (tantivy.Occur.Must, query),
                (tantivy.Occur.Should, self._term([word], weight)),
            ]
            query = tantivy.Query.boolean_query(parts)
        return self._scores(query, rows)

    def _scores(self, query: tantivy.Query, rows: Rows) -> Scores:
        """The scores of a query that finds some of the rows; 0 for those that it does not find."""
        scores, serials = np.zeros(len(rows), dtype=np.float32), self._snapshot.serials[rows]
        if len(rows):
            matching, found = self._words.search(query, len(rows))
            order = np.argsort(serials)
            scores[order[np.searchsorted(serials[order], matching)]] = found
        return scores

    def restricted(self, query: WordQuery, allowed: Mask | None) -> tuple[Mask, bool]:
        """A filter that also asks for what documents must have and must not, and whether any has what it must have."""
        mask = self._snapshot.select(())
        for part in self._required(query):
            mask &= self._having(part)
        possible = bool(mask.any())
        for words in query.without:
            mask &= ~self._having(self._term(words))
        return mask if allowed is None else mask & allowed, possible

    def together(self, pair: Sequence[str]) -> int:
        """How many documents have two words next to each other, counted up to 1,000."""
        stems = self.stemmed(pair)
        return (
            len(self._words.search(self._term(stems), _COUNTED)[0])
            if all(self.frequencies(stems).values())
            else 0
        )

    def texts_near(self, stem: str, edits: int) -> list[str]:
        """Some texts with a word that differs in so many letters."""
        fuzzy = tantivy.Query.fuzzy_term_query(self._words.schema, TEXT, stem, edits)
        rows = self._snapshot.rows_of_serials(self._words.search(fuzzy, _LOOKED_AT)[0])
        return list(map(searchable, self._snapshot.fields_of(rows[rows >= 0])))

    def _having(self, query: Any) -> Mask:
        mask = np.zeros(self._snapshot.rows, dtype=np.bool_)
        rows = self._snapshot.rows_of_serials(self._words.search(query, max(1, self.documents))[0])
        mask[rows[rows >= 0]] = True
        return mask

    def _terms(self, query: WordQuery) -> tantivy.Query | None:
        """The words of a query, and what documents must have and must not; None if no document can match it."""
        if not query.finds:
            return None
        clauses = [
            (tantivy.Occur.Should, self._term([stem], weight))
            for stem, weight in query.words.items()
        ]
        clauses += ((tantivy.Occur.Must, part) for part in self._required(query))
        clauses += ((tantivy.Occur.MustNot, self._term(words)) for words in query.without)
        return tantivy.Query.boolean_query(clauses)

    def _required(self, query: WordQuery) -> list[tantivy.Query]:
        alternatives = (_either([self._term([word]) for word in words]) for words in query.any_of)
        return [*map(self._term, query.must), *alternatives]

    def _some(self, rows: Rows) -> tantivy.Query:
        """A query for some rows, with scores of 0."""
        schema, numbers = self._words.schema, self._snapshot.serials[rows].tolist()
        if len(numbers) <= _NAMED:
            named = _either(
                [tantivy.Query.term_query(schema, SERIAL, serial) for serial in numbers]
            )
        else:
            named = tantivy.Query.term_set_query(schema, SERIAL, numbers)
        return tantivy.Query.const_score_query(named, 0.0)

    def _term(self, words: Sequence[str], boost: float = 1.0) -> tantivy.Query:
        """A query for a word or a phrase."""
        if len(words) > 1:
            term = tantivy.Query.phrase_query(self._words.schema, TEXT, list(words))
        else:
            term = tantivy.Query.term_query(self._words.schema, TEXT, words[0], "freq")
        return term if boost == 1.0 else tantivy.Query.boost_query(term, float(boost))


def _either(parts: list[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])


def _both(*parts: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])


class WordIndex:
    """The word index of a store: opened when it is first needed, and brought up to date by a process that may write.

    Words are committed at the end of each change of the index, so that others see them; what a crash loses is caught up
    on opening.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._words: Words | None = None

    @property
    def about(self) -> dict[str, Any] | None:
        """How the index keeps words; None if it keeps none."""
        about: dict[str, Any] | None = self._store.manifest.meta["words"]
        return about

    def of(self, snapshot: Snapshot) -> RowWords:
        """The words of a snapshot's documents."""
        words, store = self.open(), cast(Any, self._store)  # an engine searches words itself
        return RowWords(words, snapshot) if words is not None else store.words(snapshot)

    def open(self, report: Report = silent) -> Words | None:
        """The word index, as up to date as this process can make it; None if there is none beside the store."""
        about = self.about
        if about is None or self._store.keeps_words or self._words is not None:
            return self._words
        folder = self._store.folder / about["folder"]
        with suppress(IndexFolderError):
            words = Words.open(folder)
            if self._is_current(words):
                self._words = words
                return words
        try:
            with self._store.writing():  # a reader borrows the right to write, if nobody has it
                if self.about != about:
                    raise IndexFolderError(
                        "another index was written over it meanwhile", hint="search again"
                    )
                snapshot = self._store.snapshot()
                try:
                    words = Words.open(folder)
                    catch_up(words, snapshot, report)
                except IndexFolderError:  # there is none yet, or it is damaged
                    words = Words.create(folder, about["language"], about["fold_accents"])
                    catch_up(words, snapshot, report)
        except IndexFolderError as problem:
            words = self._open_beside_a_writer(about, problem)
        self._words = words
        return words

    def put(self, batch: Batch | None, gone: Sequence[Id]) -> int:
        """Write and delete documents and their words; how many documents were replaced."""
        words, before = self._words, self._store.snapshot()
        replaced = self._store.put(batch, gone)
        if words is not None:
            ids, fields = ([], ()) if batch is None else (batch.ids, batch.fields or ())
            rows = before.rows_of([*ids, *gone])
            words.delete(before.serials[rows[rows >= 0]].tolist())
            first = before.last_serial + 1
            words.add(range(first, first + len(fields)), [searchable(one) for one in fields])
        return replaced

    def refresh(self) -> None:
        """See what another process has written."""
        words, about = self._words, self.about
        if words is None or words.pending:
            return
        if about is None or words.folder.name != about["folder"]:
            self._words = None  # another index was written over this one
        elif not self._is_current(words):
            words.reload()  # which may come later than the documents themselves
            if not self._is_current(words):
                self._words = None  # the writer may have been killed; the next search catches up

    def close(self) -> None:
        """Commit what was written."""
        self.commit()
        self._words = None

    def commit(self) -> None:
        """Have what was written count for others, too."""
        if self._words is not None:
            try:
                self._words.commit()
            except BaseException:
                self._words = None  # the next search catches up
                raise

    def _open_beside_a_writer(self, about: Mapping[str, Any], problem: IndexFolderError) -> Words:
        """The word index that another process commits at this moment, so that its files do not fit yet."""
        for _ in range(_PATIENCE):
            if self.about != about:
                break
            with suppress(IndexFolderError):
                return Words.open(self._store.folder / about["folder"])
            time.sleep(0.05)
        why = f"the words of {self._store.folder} cannot be searched: {problem.problem}"
        raise IndexFolderError(
            why, hint="try again later, or search with rank asymmetric"
        ) from problem

    def _is_current(self, words: Words) -> bool:
        # Of an update that was lost, the new document is missing and the old one is still there: their number is right.
        snapshot = self._store.snapshot()
        alive = snapshot.serials if snapshot.alive is None else snapshot.serials[snapshot.alive]
        return words.documents == len(alive) and words.last_serial == (
            int(alive[-1]) if len(alive) else 0
        )


def catch_up(words: Words, snapshot: Snapshot, report: Report = silent) -> None:
    """Have a word index hold just the documents of a snapshot; the caller holds the lock."""
    alive = snapshot.serials if snapshot.alive is None else snapshot.serials[snapshot.alive]
    missing = alive[np.searchsorted(alive, words.last_serial, side="right") :]
    if words.documents + len(missing) != len(
        alive
    ):  # something was deleted, and its deletion lost in a crash
        known = np.sort(words.search(tantivy.Query.all_query(), max(1, words.documents))[0])
        words.delete(np.setdiff1d(known, alive, assume_unique=True).tolist())
        missing = np.setdiff1d(alive, known, assume_unique=True)
    for start in range(0, len(missing), _AT_ONCE):
        some = missing[start : start + _AT_ONCE]
        rows = snapshot.rows_of_serials(some)
        words.add(some.tolist(), [searchable(fields) for fields in snapshot.fields_of(rows)])
        done = start + len(some)
        report(Progress("indexing words", done, "documents", done / len(missing)))
    words.commit()


def searchable(fields: Mapping[str, Any]) -> str:
    """What the words of a document are taken from: its text, and its title if the text does not begin with it."""
    text, title = fields.get("text", ""), fields.get("title")
    return f"{title}\n{text}" if isinstance(title, str) and not text.startswith(title) else text
