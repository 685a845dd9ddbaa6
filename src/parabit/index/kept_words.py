"""The words of an index's documents: searched by row, and the word index kept up to date with the store."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.query import WordQuery
from parabit.index.store import Id, Snapshot, Store
from parabit.index.words import Words
from parabit.progress import Progress, Report, silent

_AT_ONCE = 4096  # documents that are read together
_COMMIT_DOCUMENTS, _COMMIT_SECONDS = 1000, 1.0  # after which new words are committed, for others to see
_PATIENCE = 40  # looks at a word index that is being written, 0.05 s apart


class RowWords:
    """The words of a snapshot's documents, which are known by their rows here; `allowed` says which may be found."""

    def __init__(self, words: Words, snapshot: Snapshot, allowed: NDArray[np.bool_] | None = None) -> None:
        self._words, self._snapshot = words, snapshot
        self._allowed = None if allowed is None else snapshot.serials[allowed].astype(np.int64)
        self.tokenizer, self.stemmed = words.tokenizer, words.stemmed
        self.frequency, self.starting_with = words.frequency, words.starting_with
        self.documents = words.documents

    def among(self, allowed: NDArray[np.bool_]) -> "RowWords":
        """The same, for a filter."""
        return RowWords(self._words, self._snapshot, allowed)

    def best(self, query: WordQuery, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows with the highest BM25."""
        found = self._words.best(query, count, self._allowed)
        rows = self._snapshot.rows_of_serials(found.serials)
        there = rows >= 0  # others were written or deleted since the snapshot was taken
        return rows[there], found.scores[there]

    def scores(self, query: WordQuery, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """BM25 of some rows; 0 if they have none of the words."""
        serials = self._serials(rows)
        found = self._words.scores(query, serials)
        scores = np.zeros(len(rows), dtype=np.float32)
        order = np.argsort(serials)
        scores[order[np.searchsorted(serials[order], found.serials)]] = found.scores
        return scores

    def matching(self, query: WordQuery, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some rows have what the query asks for, and not what it excludes."""
        return np.isin(self._serials(rows), self._words.matching(query, self._serials(rows)))

    def nearest_word(self, stem: str) -> str | None:
        """The word nearest to one that no document has."""
        return self._words.nearest_word(stem, self._texts)

    def _serials(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        serials: NDArray[np.int64] = self._snapshot.serials[rows].astype(np.int64)
        return serials

    def _texts(self, serials: NDArray[np.int64]) -> list[str]:
        rows = self._snapshot.rows_of_serials(serials)
        return [searchable(fields) for fields in self._snapshot.fields_of(rows[rows >= 0])]


class KeptWords:
    """The word index of a store: opened when it is first needed, and brought up to date by whoever may write.

    What is written counts at once in this process, and for others when it is committed, within a second. What a crash
    loses of it is caught up on opening.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._words: Words | None = None
        self._committed, self._pending = time.monotonic(), 0

    @property
    def about(self) -> dict[str, Any] | None:
        """How the index keeps words; None if it keeps none."""
        about: dict[str, Any] | None = self._store.meta["words"]
        return about

    @property
    def size(self) -> int:
        """The bytes that the word index takes."""
        folder = self.about and self.about.get("folder")
        return sum(path.stat().st_size for path in (self._store.folder / folder).glob("*")) if folder else 0

    def of(self, snapshot: Snapshot) -> RowWords:
        """The words of a snapshot's documents."""
        words, store = self.open(), cast(Any, self._store)  # an engine searches words itself
        return RowWords(words, snapshot) if words is not None else store.words(snapshot)

    def open(self, report: Report = silent) -> Words | None:
        """The word index, as up to date as this process can make it; None if there is none beside the store."""
        about = self.about
        if about is None or self._store.keeps_words or self._words is not None:
            self._commit()
            return self._words
        folder = self._store.folder / about["folder"]
        words = None
        with suppress(IndexFolderError):
            words = Words.open(folder)
            if self._is_current(words):
                self._words = words
                return words
        try:
            with self._store.writing():  # a reader borrows the right to write, if nobody has it
                if self.about != about:
                    raise IndexFolderError("another index was written over it meanwhile", hint="search again")
                snapshot = self._store.snapshot()
                try:
                    words = Words.open(folder)
                    catch_up(words, snapshot, report)
                except IndexFolderError:  # there is none yet, or it is damaged
                    words = Words.create(folder, about["language"], about["fold_accents"])
                    catch_up(words, snapshot, report)
        except IndexFolderError as problem:
            words = words or self._open_beside_a_writer(about)
            if words is None:
                raise IndexFolderError(
                    f"the words of {self._store.folder} cannot be searched: {problem.problem}",
                    hint="try again later, or search with rank asymmetric",
                ) from problem
        self._words = words
        return words

    def serials_of(self, ids: Sequence[Id]) -> list[int]:
        """The serial numbers of documents that are about to go; none if no word index is open."""
        if self._words is None:
            return []
        snapshot = self._store.snapshot()
        rows = snapshot.rows_of(ids)
        serials: list[int] = snapshot.serials[rows[rows >= 0]].tolist()
        return serials

    @property
    def next_serial(self) -> int:
        """The serial number that the next document gets; 0 if no word index is open."""
        return 0 if self._words is None else self._store.snapshot().last_serial + 1

    def change(self, gone: Sequence[int], first: int = 0, fields: Sequence[Mapping[str, Any]] = ()) -> None:
        """Delete documents by serial number, and add others with serial numbers from `first` on."""
        if self._words is None:
            return
        self._words.delete(gone)
        self._words.add(range(first, first + len(fields)), [searchable(one) for one in fields])
        self._pending += len(gone) + len(fields)
        if self._pending >= _COMMIT_DOCUMENTS or time.monotonic() - self._committed > _COMMIT_SECONDS:
            self._commit()
            self._committed, self._pending = time.monotonic(), 0

    def refresh(self, before: Mapping[str, Any] | None) -> None:
        """See what another process has written; `before` is how words were kept until then."""
        if self.about != before:
            self._words = None
        elif self._words is not None and not self._words.pending and not self._is_current(self._words):
            self._words.reload()  # which may come later than the documents themselves
            if not self._is_current(self._words):
                self._words = None  # whoever wrote may have been killed: the next search sees to it

    def close(self) -> None:
        """Commit what was written."""
        try:
            self._commit()
        finally:
            self._words = None

    def _commit(self) -> None:
        words, self._words = self._words, None  # if it fails, the next search catches up
        if words is not None:
            words.commit()
        self._words = words

    def _open_beside_a_writer(self, about: Mapping[str, Any]) -> Words | None:
        """The word index that another process commits at this moment, so that its files do not fit yet."""
        for _ in range(_PATIENCE):
            if self.about != about:
                return None
            with suppress(IndexFolderError):
                return Words.open(self._store.folder / about["folder"])
            time.sleep(0.05)
        return None

    def _is_current(self, words: Words) -> bool:
        # Of an update that was lost, the new document is missing and the old one is still there: their number is right.
        snapshot = self._store.snapshot()
        alive = snapshot.serials if snapshot.alive is None else snapshot.serials[snapshot.alive]
        return words.documents == len(alive) and words.last_serial == (int(alive[-1]) if len(alive) else 0)


def catch_up(words: Words, snapshot: Snapshot, report: Report = silent) -> None:
    """Have a word index hold just the documents of a snapshot; for the one who holds the lock."""
    alive = snapshot.serials if snapshot.alive is None else snapshot.serials[snapshot.alive]
    alive = alive.astype(np.int64)
    missing = alive[np.searchsorted(alive, words.last_serial, side="right") :]
    if words.documents + len(missing) != len(alive):  # something was deleted, and its deletion lost in a crash
        known = words.serials()
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
