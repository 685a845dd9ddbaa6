"""The index: documents by their codes and words, kept safely."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS, Keep
from parabit.codes import check_codes
from parabit.corpus import Corpus, Texts
from parabit.corpus.document import Tally
from parabit.errors import (
    IndexDamagedError,
    IndexFolderError,
    LockedError,
    ModelError,
    ParabitError,
    WordsMissingError,
)
from parabit.index import retrieval, writing
from parabit.index.code_search import check_backend
from parabit.index.corpus_files import read_files
from parabit.index.documents import Stored, StoredCorpus, batches_of_codes, rows_with, stored_in
from parabit.index.filters import Where, conditions
from parabit.index.ranking import NEEDS, Request
from parabit.index.retrain import retrain
from parabit.index.retrieval import Hits
from parabit.index.store import Id, Manifest, Snapshot, Store
from parabit.index.store.manifest import bytes_in, is_at_home, trust, writer_lock
from parabit.index.sync import Synced, sync
from parabit.index.word_index import WordIndex
from parabit.index.writing import Written, encoder_of, open_store
from parabit.model import TextEncoder
from parabit.progress import Report, silent
from parabit.text import Group, find_duplicates
from parabit.text.duplicates import SHARED

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors

_logger = getLogger(__name__)
_PATIENCE = 600  # times that a writer is waited for, a tenth of a second each


class Index:
    """Documents by their codes and words: search, ranking, changes and files that are safe to keep,
    in one place.

    Example:
        >>> from parabit import ParagraphVectors
        >>> texts = ["The telescope was repaired in orbit.", "Astronauts repaired the telescope.", "Goalies like ice."]
        >>> index = Index.build(texts, model=ParagraphVectors(bits=16).fit(texts * 6))
        >>> hits = index.search(["telescopes in orbit"], k=2)[0]
        >>> hits[0].title, sorted(hits[0].why.words)
        ('The telescope was repaired in orbit.', ['orbit', 'telescopes'])
        >>> index.delete(["2"])
        >>> len(index)
        2
    """

    left_out = 0  # documents that were to be added and have nothing to be found by
    skipped = Tally()  # those that could not be read or stored, each with its place and the reason

    def __init__(self, store: Store, model: TextEncoder | None = None) -> None:
        self._store, self._model, self._words = store, model, WordIndex(store)
        self._remove: Callable[[], Any] = lambda: None  # the folder, if it is a temporary one
        if model is not None and model.fingerprint != store.manifest.fingerprint:
            store.close()
            problem = f"{store.folder} was made with another model"
            raise IndexFolderError(
                problem, hint="give the model it was made with, or build it again"
            )

    @classmethod
    def build(
        cls,
        documents: Texts,
        folder: Path | str | None = None,
        *,
        model: "ParagraphVectors | TextEncoder | None" = None,
        text: bool = True,
        words: bool | None = None,
        language: str | None = "en",
        vectors: bool = False,
        backend: str = "auto",
        engine: Any = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Encode documents and index them, in a folder or, without one, for as long as the index
        lives.

        Without a `model`, one of 128 bits is learned from the documents. Fields and labels are
        always kept; `text` keeps what a hit shows. `words` makes the texts searchable by their
        words, stemmed by `language` (None does not stem); without it an index takes 16 bytes per
        document, and the ranks words and hybrid are missing. Words need the texts, so `text=False`
        leaves them out, too. `vectors` keeps what the rank cosine needs (2 bytes per dimension).
        `backend` is built beside the codes: `"auto"` takes the exact one that pays at this size. An
        `engine` of `parabit.engines` keeps and searches documents elsewhere, and the folder has the
        model. Documents with nothing to be found by are left out, and counted in `left_out`.
        Documents that cannot be stored are skipped, and named in `skipped`.
        """
        kept = {"text": text, "words": text if words is None else words, "vectors": vectors}
        for name, value in kept.items():
            if not isinstance(value, bool):
                hint = f"{name}=True keeps those of the model; Index.of_codes takes codes of others"
                raise ParabitError(f"{name} is of type {type(value).__name__}", hint)
        keeps = {name for name in kept if kept[name]}
        return writing.build(
            cls, documents, folder, model, keeps, language, backend, engine, overwrite, report
        )

    @classmethod
    def of_codes(
        cls,
        codes: NDArray[np.uint8],
        bits: int,
        folder: Path | str | None = None,
        *,
        ids: Sequence[Id] | None = None,
        fields: Sequence[Mapping[str, Any]] | None = None,
        backend: str = "auto",
        engine: Any = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> "Index":
        """Index codes from anywhere; ids are the positions if none are given. Queries are codes
        then, too.

        Example:
            >>> index = Index.of_codes(np.array([[0], [1], [7]], dtype=np.uint8), bits=8)
            >>> index.search(np.array([[3]], dtype=np.uint8), radius=1).ids
            [[1, 2]]
        """
        check_codes(codes, bits)
        check_backend(backend)
        manifest = Manifest(bits, backend=backend, keeps_text=False)
        batches = batches_of_codes(codes, ids, fields, at_once=1 << 16)
        return writing.create(cls, folder, None, manifest, batches, engine, overwrite, report)

    @classmethod
    def open(
        cls,
        folder: Path | str,
        write: bool = False,
        model: "ParagraphVectors | TextEncoder | None" = None,
        report: Report = silent,
    ) -> Self:
        """Open an index, in milliseconds; its model is read when a text is first searched for, or
        taken from here.

        One process at a time may open it with `write`; any number read it, and `refresh` shows them
        what was written. If its word index is behind or damaged, as after a crash, it is brought up
        to date.
        """
        index = cls(open_store(folder, write), None if model is None else encoder_of(model))
        if write:
            try:
                index._words.open(report)
            except WordsMissingError as problem:  # as on a full disk; documents can be deleted
                _logger.warning("%s", problem)
            except BaseException:
                index.close()
                raise
        return index

    @staticmethod
    def trust(folder: Path | str) -> None:
        """Agree to what an index says about places outside its folder: its files, or a server with
        its documents.

        This is not followed if an index was moved or copied, or if somebody else made it.
        """
        trust(Path(folder))

    def close(self) -> None:
        """Give back the right to write; an index without a folder is gone."""
        try:
            self._words.close()
        finally:
            self._store.close()
            self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def search(
        self,
        queries: Texts | NDArray[np.uint8],
        k: int | None = None,
        radius: int | None = None,
        rank: str | None = None,
        *,
        where: Where | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents that fit each query best, of texts or of codes.

        The k best (10 if neither is given), all within a Hamming `radius`, or the k best of these.
        By default a text is ranked by words and code together (`rank="hybrid"`), by code alone if
        the index keeps no words; see `parabit.index.ranking`. A text of one line may have
        operators: "a phrase", +must, -not, word*, field:value. `where` lets through the documents
        with a value, or a range of values, in a field, as in `where={"labels": "sci.space", "year":
        (1990, 1995)}`; see `parabit.index.filters`. `backend` overrides what `auto` chooses by
        measurements.
        """
        return retrieval.search(self, queries, where, Request(k, radius, rank or "", backend))

    def like(
        self,
        ids: Id | Sequence[Id],
        k: int | None = None,
        radius: int | None = None,
        rank: str | None = None,
        *,
        where: Where | None = None,
        backend: str = "auto",
    ) -> Hits:
        """The documents most like each of some that are in the index, which are not among their own
        hits.

        A document's text is the query if it was kept, else its code.
        """
        return retrieval.like(self, ids, where, Request(k, radius, rank or "", backend))

    def duplicates(
        self,
        keep: Keep = "first",
        *,
        shared: float = SHARED,
        date: str = "date",
        report: Report = silent,
    ) -> list[Group]:
        """Groups of near-duplicates: documents that share at least half of their words with the one
        that is kept.

        `keep` says which: the first in the index, the longest, or the newest by a field `date`.
        `shared` is the share of common words from which two documents are near-duplicates. A group
        is a document that is kept and its copies, each with the share of common words and the
        number of bits in which the codes differ.
        """
        if not self.keeps_text:
            problem = "near-duplicates are found by their texts, which this index does not keep"
            raise ParabitError(problem, hint="build it with them, or give the corpus")
        snapshot = self.snapshot()
        groups = find_duplicates(
            StoredCorpus(snapshot), keep, shared=shared, date=date, report=report
        )
        kept = snapshot.rows_of([group.kept for group in groups for _ in group.copies])
        copies = snapshot.rows_of([copy.id for group in groups for copy in group.copies])
        bits = iter(
            np.bitwise_count(snapshot.codes(kept) ^ snapshot.codes(copies))
            .sum(axis=1, dtype=int)
            .tolist()
        )
        return [
            one._replace(copies=tuple(copy._replace(bits=next(bits)) for copy in one.copies))
            for one in groups
        ]

    def add(self, documents: Texts, report: Report = silent) -> int:
        """Encode and add documents with new ids; how many were added. Those of a batch are all on
        the disk, or none.
        """
        return writing.write(self, documents, new=True, report=report).added

    def put(self, documents: Texts, report: Report = silent) -> Written:
        """Update the documents whose ids are there, and add the others; how many of each."""
        return writing.write(self, documents, new=False, report=report)

    def put_codes(
        self,
        codes: NDArray[np.uint8],
        ids: Sequence[Id],
        fields: Sequence[Mapping[str, Any]] | None = None,
    ) -> int:
        """Put codes from anywhere into an index that was made of codes, in one step; how many had
        known ids.
        """
        batches = batches_of_codes(codes, ids, fields, at_once=max(1, len(codes)))
        return sum(self._store.put(batch) for batch in batches)

    def delete(self, ids: Id | Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        ids = [ids] if isinstance(ids, str | int) else list(ids)
        rows_with(self.snapshot(), ids, hint="nothing was changed")
        self._words.put(None, ids)
        self._words.commit()

    def sync(
        self,
        corpus: Corpus | str | Path | Sequence[str | Path] | None = None,
        *,
        dry_run: bool = False,
        allow_empty: bool = False,
        report: Report = silent,
    ) -> Synced:
        """Bring the index up to date with the files it was made of, or with others, which it then
        remembers.

        Adds what is new, replaces what changed, deletes what is gone, and gives renamed documents
        their new ids. Files with the size and time that they had are not read. Documents that did
        not come from these files stay, as do those of files that cannot be read now. A corpus that
        is missing or empty is an error, unless `allow_empty`. `dry_run` only finds out what there
        is to do.
        """
        try:
            return sync(self, corpus, dry_run, allow_empty, report)
        finally:
            self._words.commit()

    def retrain(
        self,
        *,
        bits: int | None = None,
        sample: int | None = None,
        seed: int | None = None,
        report: Report = silent,
    ) -> None:
        """Learn a new model from the documents of the index, and encode them again.

        The model is learned as the old one was, unless `bits`, `sample` or `seed` are given. The
        index changes in one step when all is done: a reader sees the old one until `refresh`, and
        an interrupt leaves the old one.
        """
        self._model = retrain(self, bits, sample, seed, report)

    def compact(self, report: Report = silent) -> None:
        """Merge what was added and deleted; opening and searching are then as fast as if it had
        been built so.
        """
        self._store.compact(report)

    def save(self, folder: Path | str, overwrite: bool = False, report: Report = silent) -> None:
        """Write the index to a folder, compacted; this one stays where it is. Over itself, it is
        compacted in place.
        """
        if overwrite and Path(folder).resolve() == self.folder.resolve():
            self.compact(report)
        else:
            writing.save(self, Path(folder), overwrite, report)

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""
        changed = self._store.refresh()
        model = self._model
        if model is not None and model.fingerprint != self._store.manifest.fingerprint:
            self._model = None  # it was retrained, or another index was written over this one
        self._words.refresh()
        return changed

    def verify(self) -> None:
        """Read every byte, of the model and the words too, and raise if one is not what was
        written.

        What looks damaged while somebody writes is read again when nobody does.
        """
        try:
            self._verify()
        except (IndexDamagedError, ModelError, WordsMissingError, FileNotFoundError):
            with self._nobody_writing():
                self._words.commit()  # what another thread has written until now
                self.refresh()
                self._verify()

    def _verify(self) -> None:
        self._store.verify()
        if self.knows_texts:
            writing.kept_model(self._store)
        read_files(self.folder, self._store.manifest)
        self._words.verify()

    @contextmanager
    def _nobody_writing(self) -> Iterator[None]:
        """Wait until no other thread or process writes; who may not write cannot keep others from it."""
        with ExitStack() as held:
            held.enter_context(self._store.changing)
            if not self._store.writes:
                for _ in range(_PATIENCE):
                    try:
                        held.enter_context(writer_lock(self.folder))
                        break
                    except LockedError:
                        time.sleep(0.1)
                    except IndexFolderError:  # no permission
                        break
                else:
                    held.enter_context(writer_lock(self.folder))  # which says who writes
            yield

    @property
    def folder(self) -> Path:
        """Where the index is kept."""
        return self._store.folder

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._store.manifest.bits

    def __len__(self) -> int:
        return self.snapshot().documents

    def __repr__(self) -> str:
        return f"<Index {str(self.folder)!r}: {len(self):,} documents, {self.bits} bits>"

    @property
    def model(self) -> TextEncoder:
        """The model that encodes documents and queries."""
        while True:
            model = self._model  # which another thread may forget at any moment
            if model is not None:
                return model
            manifest = self._store.manifest
            try:
                self._model = writing.kept_model(self._store)
            except ParabitError:
                with self._store.changing:  # a thread that replaces it is done then
                    if not self.refresh() and self._store.manifest == manifest:
                        raise

    @property
    def knows_texts(self) -> bool:
        """Whether it has a model, so that texts can be searched for."""
        return bool(self._store.manifest.fingerprint)

    @property
    def keeps_text(self) -> bool:
        """Whether the texts of the documents were kept."""
        return self._store.manifest.keeps_text

    @property
    def has_words(self) -> bool:
        """Whether texts can be found by their words."""
        return self._words.settings is not None

    @property
    def keeps(self) -> list[str]:
        """What is kept of a document beside its code, its id and its fields: some of text, vectors
        and words.
        """
        kept = {
            "text": self.keeps_text,
            "vectors": self._store.manifest.dim > 0,
            "words": self.has_words,
        }
        return [name for name in kept if kept[name]]

    @property
    def best_rank(self) -> str:
        """The rank that finds most for a text, of those that this index can do."""
        return "hybrid" if self.has_words else "asymmetric"

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that this index can do for a text, or for a code if it knows no texts."""
        if not self.knows_texts:
            return ("hamming",)
        return tuple(rank for rank in RANKS if NEEDS.get(rank) in (None, *self.keeps))

    @property
    def fields(self) -> list[str]:
        """The names of the fields that documents have, but for their text."""
        return [name for name in self.snapshot().field_names if name != "text"]

    def info(self) -> dict[str, Any]:
        """What the index is and what it keeps."""
        manifest = self._store.manifest
        language, words_bytes = None, 0
        if manifest.words is not None:
            language = manifest.words.language
            if manifest.words.folder:
                words_bytes = bytes_in(self.folder / manifest.words.folder)
        return {
            **self._store.about(),
            "keeps": self.keeps,
            "language": language,
            "words_bytes": words_bytes,
            "corpus": None if manifest.corpus is None else list(manifest.corpus.paths),
            "trusted": is_at_home(manifest, self.folder),
        }

    def snapshot(self) -> Snapshot:
        """The documents as they are now; later changes are not seen."""
        return self._store.snapshot()

    def has(self, ids: Sequence[Id]) -> NDArray[np.bool_]:
        """Whether there is a document with each of these ids."""
        return self.snapshot().rows_of(ids) >= 0

    def stored(self, ids: Sequence[Id]) -> list[Stored]:
        """The documents with these ids, as they are kept: id, code, text and fields."""
        snapshot = self.snapshot()
        return stored_in(snapshot, rows_with(snapshot, ids))

    def ids_of(self, written: Sequence[str]) -> list[Id]:
        """Ids as people write them: 7 is the string, or else the number if a document has that."""
        numbers = [int(one) if re.fullmatch(r"-?[0-9]{1,4000}", one) else one for one in written]
        each = zip(
            written, numbers, self.has(written).tolist(), self.has(numbers).tolist(), strict=True
        )
        return [
            number if not is_string and is_number else one
            for one, number, is_string, is_number in each
        ]

    def ids_where(self, where: Where) -> list[Id]:
        """The ids of all documents that meet some conditions, as in `search`."""
        snapshot = self.snapshot()
        return snapshot.ids_of(
            snapshot.first(snapshot.documents, snapshot.select(conditions(where)))
        )
