"""The words of an index's documents: searched by row, and the word index kept up to date with the
store.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

import numpy as np
import tantivy
from numpy.typing import NDArray

from parabit.budget import check_time
from parabit.errors import (
    IndexDamagedError,
    IndexFolderError,
    LockedError,
    OverwrittenError,
    WordsMissingError,
)
from parabit.index.query import WordQuery
from parabit.index.results import Mask, Rows, Scores
from parabit.index.spelling import nearest_word
from parabit.index.store import Batch, Id, Manifest, Snapshot, Store, WordSettings, open_snapshot
from parabit.index.store.manifest import remove_made
from parabit.index.words import SERIAL, TEXT, WordReader, Words
from parabit.progress import Progress, Report, silent

_AT_ONCE = 4096  # documents that are read together
_LOOKED_AT = 50  # documents in which the word nearest to a misspelt one is looked for
_READ_TOGETHER = 4  # of these, so that of texts of megabytes only the first are read
_COUNTED = 1000  # documents with two words next to each other
RANKED_AGAIN = 40  # of the best documents, that are ranked again by stop words and frequent ones
_FEW = 4096  # documents that are named one by one if a filter leaves no more
_NAMED = 64  # documents that are named one by one in a query: a set takes half a millisecond, however small
# What adds to the BM25 of single words, chosen with `benchmarks/queries.py --weights`. That a
# document has the whole query word for word says more than all else: it finds what somebody quotes,
# and other queries lose nothing.
QUOTATION_WEIGHT = 2.0
STOP_WEIGHT = 0.25
PREFIXED = 64  # words that `word*` stands for at most: the most frequent ones
_PATIENCE = 40  # looks at a word index that is being written, 0.05 s apart


class RowWords:
    """The words of a snapshot's documents, which are known by their rows here."""

    nearest_word = nearest_word

    def __init__(
        self, words: Words, reader: WordReader, snapshot: Snapshot, missing: int = 0
    ) -> None:
        self._schema, self._reader, self._snapshot = words.schema, reader, snapshot
        self.tokenizer, self.stemmed, self.stems = words.tokenizer, words.stemmed, words.stems
        self.stop_words, self.documents = words.stop_words, reader.documents
        self.missing = missing  # documents whose words are not indexed yet

    def frequencies(self, stems: Iterable[str]) -> dict[str, int]:
        """How many documents have each word."""
        return self._reader.frequencies(stems)

    def starting_with(self, prefix: str) -> list[str]:
        """The most frequent words that begin so."""
        words = self._reader.starting_with(prefix)
        words.sort(key=lambda item: (-item[1], item[0]))
        return [word for word, _ in words[:PREFIXED]]

    def best(
        self, query: WordQuery, count: int, allowed: Mask | None = None
    ) -> tuple[Rows, Scores, float, float]:
        """The rows with the highest BM25 that a filter lets through, the most that any other has,
        and the highest BM25 before quotations are counted.
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
            check_time()
            serials, scores = self._reader.search(query, more)
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
        """What words add to the scores of a few rows; to look up one after the other is faster than
        any of them.
        """
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
            matching, found = self._reader.search(query, len(rows))
            order = np.argsort(serials)
            scores[order[np.searchsorted(serials[order], matching)]] = found
        return scores

    def restricted(self, query: WordQuery, allowed: Mask | None) -> tuple[Mask, bool]:
        """A filter that also asks for what documents must have and must not, and whether any has
        what it must have.
        """
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
            len(self._reader.search(self._term(stems), _COUNTED)[0])
            if all(self.frequencies(stems).values())
            else 0
        )

    def texts_near(self, stem: str, edits: int) -> Iterator[str]:
        """Some texts with a word that differs in so many letters, read a few at a time as they are
        asked for.
        """
        fuzzy = tantivy.Query.fuzzy_term_query(self._schema, TEXT, stem, edits)
        rows = self._snapshot.rows_of_serials(self._reader.search(fuzzy, _LOOKED_AT)[0])
        rows = rows[rows >= 0]
        for start in range(0, len(rows), _READ_TOGETHER):
            some = rows[start : start + _READ_TOGETHER]
            yield from map(searchable, self._snapshot.fields_of(some))

    def _having(self, query: Any) -> Mask:
        check_time()
        mask = np.zeros(self._snapshot.rows, dtype=np.bool_)
        rows = self._snapshot.rows_of_serials(self._reader.search(query, max(1, self.documents))[0])
        mask[rows[rows >= 0]] = True
        return mask

    def _terms(self, query: WordQuery) -> tantivy.Query | None:
        """The words of a query, and what documents must have and must not; None if no document can
        match it.
        """
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
        schema, numbers = self._schema, self._snapshot.serials[rows].tolist()
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
            term = tantivy.Query.phrase_query(self._schema, TEXT, list(words))
        else:
            term = tantivy.Query.term_query(self._schema, TEXT, words[0], "freq")
        return term if boost == 1.0 else tantivy.Query.boost_query(term, float(boost))


def _either(parts: list[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, part) for part in parts])


def _both(*parts: tantivy.Query) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, part) for part in parts])


class WordIndex:
    """The word index of a store: opened when it is first needed, and brought up to date by a
    process that may write.

    Words are committed at the end of each change of the index, so that others see them; what a
    crash loses is caught up on opening. A process that may not write searches the words that are
    there, and its answers say how many documents are missing. Threads may share it: what changes it
    holds `store.changing`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._words: Words | None = None
        self._missing: tuple[WordReader, Snapshot, int] | None = (
            None  # the latest count, and of what
        )

    @property
    def settings(self) -> WordSettings | None:
        """How the index keeps words; None if it keeps none."""
        return self._store.manifest.words

    def of(self, snapshot: Snapshot) -> RowWords:
        """The words of a snapshot's documents."""
        words = self.open()
        if words is None:  # an engine searches words itself
            return cast(Any, self._store).words(snapshot)  # type: ignore[no-any-return]
        if words.lineage != snapshot.manifest.lineage:
            raise OverwrittenError(
                f"another index was written over {self._store.folder}", hint="search again"
            )
        reader = words.reader
        return RowWords(words, reader, snapshot, self._count_missing(reader, snapshot))

    def open(self, report: Report = silent) -> Words | None:
        """The word index, as up to date as this process can make it; None if there is none beside
        the store.
        """
        words = self._words
        if words is not None or self.settings is None or self._store.keeps_words:
            return words
        with self._store.changing:
            if self._words is None:
                self._words = self._open(self.settings, report)
            return self._words

    def _open(self, settings: WordSettings, report: Report) -> Words:
        folder = self._store.folder / settings.folder
        words = self._opened(folder)
        if words is not None and self._store.writes:
            words.remove_leftovers()
        if words is not None and self._is_current(words.reader):
            return words
        try:
            with self._store.writing():  # a reader borrows the right to write, if nobody has it
                if self.settings != settings:
                    problem = f"another index was written over {self._store.folder}"
                    raise OverwrittenError(problem, hint="search again")
                return self._caught_up(settings, report)
        except OverwrittenError:
            raise
        except (IndexFolderError, OSError) as problem:
            return self._open_as_it_is(settings, problem)

    def _caught_up(self, settings: WordSettings, report: Report) -> Words:
        """The word index, with all documents; the caller may write."""
        snapshot = self._store.snapshot()
        words = self._opened(self._store.folder / settings.folder)
        if words is not None:
            with suppress(IndexDamagedError):
                catch_up(words, snapshot, report)
                return words
        # A new one, in a new folder: if it cannot be written, the old one is still there.
        renewed = replace(settings, folder=new_folder_name())
        folder = self._store.folder / renewed.folder
        try:
            lineage = self._store.manifest.lineage
            words = Words.create(folder, renewed.language, renewed.fold_accents, lineage)
            catch_up(words, snapshot, report)
            self._store.change_manifest(words=renewed)
        except BaseException:
            remove_made(folder)
            raise
        remove_made(self._store.folder / settings.folder)
        return words

    def _open_as_it_is(self, settings: WordSettings, problem: Exception) -> Words:
        """The word index as it is, which another process may be committing at this moment."""
        for _ in range(_PATIENCE):
            if self.settings != settings:
                break
            words = self._opened(self._store.folder / settings.folder)
            if words is not None:
                return words
            if not isinstance(problem, LockedError):
                break
            time.sleep(0.05)
        words = self._opened(self._store.folder / settings.folder, by_links=True)
        if words is not None:
            return words
        reason = getattr(problem, "problem", None) or str(problem)
        why = f"the words of {self._store.folder} cannot be searched: {reason}"
        raise WordsMissingError(
            why, hint="search with rank asymmetric, or let somebody who may write search once"
        )

    def _opened(self, folder: Path, by_links: bool = False) -> Words | None:
        """The word index in a folder; None if there is none, or it is damaged or that of another
        index.
        """
        try:
            words = Words.open(folder, by_links)
        except IndexDamagedError:
            return None
        return words if words.lineage == self._store.manifest.lineage else None

    def put(self, batch: Batch | None, gone: Sequence[Id]) -> int:
        """Write and delete documents and their words; how many documents were replaced."""
        with self._store.changing:
            words, before = self._words, self._store.snapshot()
            replaced = self._store.put(batch, gone)
            if words is not None:
                ids = [] if batch is None else batch.ids
                fields = () if batch is None else batch.fields or ()
                rows = before.rows_of([*ids, *gone])
                first = before.last_serial + 1
                with self._forgotten_after_an_error():
                    words.delete(before.serials[rows[rows >= 0]].tolist())
                    words.add(
                        range(first, first + len(fields)), [searchable(one) for one in fields]
                    )
            return replaced

    def refresh(self) -> None:
        """See what another process has written."""
        if self._store.writes:  # a writer knows it all
            return
        with self._store.changing:
            words, settings = self._words, self.settings
            if words is None:
                return
            if settings is None or words.folder.name != settings.folder:
                self._words = None  # another index was written over this one
            elif not self._is_current(words.reader):
                with self._forgotten_after_an_error():
                    words.reload()  # which may come later than the documents themselves
                if not self._is_current(words.reader):
                    self._words = (
                        None  # the writer may have been killed; the next search catches up
                    )

    def close(self) -> None:
        """Commit what was written."""
        try:
            self.commit()
        finally:
            self._words = None

    def commit(self) -> None:
        """Have what was written count for others, too."""
        with self._store.changing:
            if self._words is not None:
                with self._forgotten_after_an_error():
                    self._words.commit()

    def verify(self) -> None:
        """Raise unless the words are those of the documents, every byte of them as it was written."""
        if self.settings is None or self._store.keeps_words:
            return
        words = self.open()
        assert words is not None
        words.verify()
        missing = self._count_missing(words.reader, self._store.snapshot())
        if missing:
            count = f"{missing:,} document{'s' if missing > 1 else ''}"
            raise WordsMissingError(
                f"the words of {count} are not indexed yet",
                hint="let somebody who may write search once",
            )

    @contextmanager
    def _forgotten_after_an_error(self) -> Iterator[None]:
        """Open the words again after an error: then they catch up."""
        try:
            yield
        except BaseException:
            self._words = None
            raise

    def _is_current(self, reader: WordReader) -> bool:
        # Of an update that was lost, the new document is missing and the old one is still there:
        # their number is right.
        alive = alive_serials(self._store.snapshot())
        last_serial = int(alive[-1]) if len(alive) else 0
        return reader.documents == len(alive) and reader.last_serial == last_serial

    def _count_missing(self, reader: WordReader, snapshot: Snapshot) -> int:
        """How many documents have no words in the word index."""
        if self._missing is not None:
            counted_reader, counted_snapshot, missing = self._missing
            if counted_reader is reader and counted_snapshot is snapshot:
                return missing
        alive = alive_serials(snapshot)
        last_serial = int(alive[-1]) if len(alive) else 0
        missing = 0
        if reader.documents != len(alive) or reader.last_serial != last_serial:
            has_words = np.isin(alive, reader.serials, assume_unique=True)
            missing = int(np.count_nonzero(~has_words))
        self._missing = reader, snapshot, missing
        return missing


def new_folder_name() -> str:
    """A name for the folder of a word index that no other has had."""
    return f"words-{token_hex(4)}"


def build_words(
    folder: Path, manifest: Manifest, language: str | None, fold_accents: bool, report: Report
) -> Manifest:
    """Make the word index of a generation that was just written; returns the manifest that names
    it.
    """
    settings = WordSettings(language, fold_accents, new_folder_name())
    words = Words.create(folder / settings.folder, language, fold_accents, manifest.lineage)
    catch_up(words, open_snapshot(folder, manifest), report)
    return replace(manifest, words=settings)


def alive_serials(snapshot: Snapshot) -> NDArray[np.int64]:
    """The serial numbers of the documents that were not deleted, ascending."""
    return snapshot.serials if snapshot.alive is None else snapshot.serials[snapshot.alive]


def catch_up(words: Words, snapshot: Snapshot, report: Report = silent) -> None:
    """Have a word index hold just the documents of a snapshot; the caller holds the lock."""
    alive = alive_serials(snapshot)
    reader = words.reader
    missing = alive[np.searchsorted(alive, reader.last_serial, side="right") :]
    # Something was deleted, and its deletion lost in a crash.
    if reader.documents + len(missing) != len(alive):
        words.delete(np.setdiff1d(reader.serials, alive, assume_unique=True).tolist())
        missing = np.setdiff1d(alive, reader.serials, assume_unique=True)
    done = 0
    for rows in snapshot.blocks_of(snapshot.rows_of_serials(missing), _AT_ONCE):
        texts = [searchable(fields) for fields in snapshot.fields_of(rows)]
        words.add(snapshot.serials[rows].tolist(), texts)
        done += len(rows)
        report(Progress("indexing words", done, "documents", done / len(missing)))
    words.commit()


def searchable(fields: Mapping[str, Any]) -> str:
    """What the words of a document are taken from: its text, and its title if the text does not
    begin with it.
    """
    text, title = fields.get("text", ""), fields.get("title")
    return f"{title}\n{text}" if isinstance(title, str) and not text.startswith(title) else text
