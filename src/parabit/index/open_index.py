"""An index that is open: its store, its model, its words, and what they say about the documents."""

import secrets
import shutil
import weakref
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from parabit.choices import RANKS
from parabit.corpus import Corpus, Texts, as_corpus
from parabit.errors import IndexFolderError, ParabitError
from parabit.index.documents import (
    Kept,
    Stored,
    Written,
    batches_of,
    check_ids,
    ids_of_written,
    says_what_stays,
    stored_with,
)
from parabit.index.filters import Where, conditions
from parabit.index.map import Map, draw
from parabit.index.overview import Field, fields_in_use, newest, typical_phrases
from parabit.index.store import MAP, VECTORS, Batch, Id, Kind, Store, backend_of
from parabit.index.word_index import WordIndex
from parabit.model import TextEncoder, load_model, save_model
from parabit.progress import Report, silent
from parabit.storage import whole_file

if TYPE_CHECKING:
    from parabit.model import ParagraphVectors


class Engine(Protocol):
    """Keeps documents elsewhere than in a folder; what it opens again offers what `Store` and `Snapshot` offer."""

    def create(self, folder: Path | str, bits: int, batches: Iterable[Batch], *arguments: Any, **options: Any) -> None:
        """Make an index, as `Store.create` does."""


class OpenIndex:
    """What `Index` builds on: opening and closing, what the index is, its files, and writing documents."""

    left_out = 0  # documents that were to be added and have nothing to be found by

    def __init__(self, store: Store, model: TextEncoder | None = None, scratch: Path | None = None) -> None:
        self._store, self._model = store, model
        self._words = WordIndex(store)
        # Without a folder of its own the index is gone when nobody has it any more.
        self._remove = None if scratch is None else weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        if model is not None and model.fingerprint != store.fingerprint:
            store.close()
            raise IndexFolderError(
                f"{store.folder} was made with another model", hint="give the model it was made with, or build it again"
            )

    @classmethod
    def _create(
        cls,
        folder: Path | str | None,
        bits: int,
        batches: Iterable[Batch],
        kinds: Mapping[str, Kind],
        meta: Mapping[str, Any],
        report: Report,
        model: TextEncoder | None,
        overwrite: bool,
        engine: Engine | None,
    ) -> Self:
        scratch = None
        if folder is None:
            if engine is not None:
                raise IndexFolderError("an index that an engine keeps needs a folder for its model", hint="give one")
            scratch = Path(mkdtemp(prefix="parabit-"))
            folder = scratch / "index"
        try:
            (engine or Store).create(
                folder,
                bits,
                batches,
                fingerprint="" if model is None else model.fingerprint,
                meta=meta,
                extra=kinds,
                save_model=None if model is None else lambda place: save_model(model, place),
                overwrite=overwrite,
                report=report,
            )
            index = cls(open_store(folder, write=True), model, scratch)
            index._words.open(report)
            return index
        except BaseException:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)
            raise

    @classmethod
    def open(
        cls,
        folder: Path | str,
        write: bool = False,
        model: "ParagraphVectors | TextEncoder | None" = None,
        report: Report = silent,
    ) -> Self:
        """Open an index, in milliseconds; its model is read when a text is first searched for, or taken from here.

        One process at a time may open it with `write`; any number read it, and `refresh` shows them what was written.
        If its word index is behind or damaged, as after a crash, it is brought up to date.
        """
        index = cls(open_store(folder, write), None if model is None else encoder_of(model))
        if write:
            try:
                index._words.open(report)
            except BaseException:
                index.close()
                raise
        return index

    def close(self) -> None:
        """Give back the right to write; an index without a folder is gone."""
        try:
            self._words.close()
        finally:
            self._store.close()
            if self._remove is not None:
                self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def save(self, folder: Path | str, overwrite: bool = False, report: Report = silent) -> None:
        """Write the index to a folder, compacted; this one stays where it is. Over itself, it is compacted in place."""
        if overwrite and Path(folder).resolve() == self.folder.resolve():
            self.compact(report)
            return
        meta = with_own_words(self._store.meta)
        memory = meta.get("corpus")
        if memory is not None:
            meta["corpus"] = {**memory, "index": None}  # the files do not move with it
        self._store.save(folder, overwrite, report, meta)
        if memory is not None and (self.folder / memory["files"]).is_file():
            with whole_file(Path(folder) / memory["files"], durable=True) as partial:
                shutil.copyfile(self.folder / memory["files"], partial)
        if self.has_words:
            type(self).open(folder, write=True, report=report).close()

    # What it is

    @property
    def folder(self) -> Path:
        """Where the index is kept."""
        return self._store.folder

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._store.bits

    def __len__(self) -> int:
        return self._store.snapshot().documents

    def __repr__(self) -> str:
        return f"<Index {str(self.folder)!r}: {len(self):,} documents, {self.bits} bits>"

    @property
    def model(self) -> TextEncoder:
        """The model that encodes documents and queries."""
        if self._model is None:
            self._model = self._kept_model()
        return self._model

    def _kept_model(self) -> TextEncoder:
        folder = self._store.model_folder
        if not self._store.fingerprint:
            raise IndexFolderError("this index was made of codes and knows no texts", hint="search it with codes")
        try:
            model = load_model(folder)
        except ParabitError as problem:
            if self.refresh():
                raise IndexFolderError(
                    f"{self.folder} has changed: another index was written over it", hint="search again"
                ) from problem
            raise
        if model.fingerprint != self._store.fingerprint:
            raise IndexFolderError(f"{folder} is not the model of the index", hint="restore it from a copy")
        return model

    @property
    def has_words(self) -> bool:
        """Whether texts can be found by their words."""
        return self._words.about is not None

    @property
    def best_rank(self) -> str:
        """The rank that finds most for a text, of those that this index can do."""
        return "hybrid" if self.has_words else "asymmetric"

    @property
    def ranks(self) -> tuple[str, ...]:
        """The ranks that this index can do for a text, or for a code if it knows no texts."""
        if not self.knows_texts:
            return ("hamming",)
        missing = {"cosine"} if VECTORS not in self._store.extra else set()
        return tuple(rank for rank in RANKS if rank not in missing | (set() if self.has_words else {"words", "hybrid"}))

    @property
    def fields(self) -> list[str]:
        """The names of the fields that documents have, but for their text."""
        return [name for name in self._store.snapshot().field_names if name != "text"]

    @property
    def knows_texts(self) -> bool:
        """Whether it has a model, so that texts can be searched for."""
        return bool(self._store.fingerprint)

    @property
    def keeps_text(self) -> bool:
        """Whether the texts of the documents were kept."""
        return bool(self._store.meta["text"])

    def stored(self, ids: Sequence[Id]) -> list[Stored]:
        """The documents with these ids, as they are kept: id, code, text and fields."""
        return stored_with(self._store.snapshot(), ids)

    def field_types(self, most: int = 500) -> list[Field]:
        """The fields of the documents with their types, and the values or the range that each has."""
        return fields_in_use(self._store.snapshot(), most)

    def newest(self, count: int, dated: str | None = None) -> list[Stored]:
        """The newest documents, by a field of dates or by when they were added."""
        snapshot = self._store.snapshot()
        return stored_with(snapshot, snapshot.ids_of(newest(snapshot, count, dated)))

    def phrases(self, count: int = 6) -> list[str]:
        """Phrases that are typical of the documents and make good queries."""
        snapshot = self._store.snapshot()
        return typical_phrases([fields.get("text", "") for fields in snapshot.fields_of(snapshot.sample(3000))], count)

    def has(self, ids: Sequence[Id]) -> NDArray[np.bool_]:
        """Whether there is a document with each of these ids."""
        return self._store.snapshot().rows_of(ids) >= 0

    def ids_of(self, written: Sequence[str]) -> list[Id]:
        """Ids as people write them: 7 is the string, or else the number if a document has that."""
        return ids_of_written(self._store.snapshot(), written)

    def ids_where(self, where: Where) -> list[Id]:
        """The ids of all documents that meet some conditions, as in `search`."""
        view = self._store.snapshot()
        return view.ids_of(view.first(view.documents, view.select(conditions(where))))

    def info(self) -> dict[str, Any]:
        """What the index is and what it keeps."""
        about = self._store.about()
        words = self._words.about
        about["language"] = words and words["language"]
        about["keeps"] = sorted([*about["keeps"], *(["words"] if words else [])])
        about["words_bytes"] = self._words.size
        return about

    def compact(self, report: Report = silent) -> None:
        """Merge what was added and deleted; opening and searching are then as fast as if it had been built so."""
        self._store.compact(report)

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""
        made_with, words = self._store.fingerprint, self._words.about
        changed = self._store.refresh()
        if self._store.fingerprint != made_with:  # another index was written over this one
            self._model = None
        self._words.refresh(words)
        return changed

    def verify(self) -> None:
        """Read every byte, of the model and the words too, and raise if one is not what was written."""
        self._store.verify()
        if self._store.fingerprint:
            self._kept_model()
        if (words := self._words.open()) is not None:
            words.verify()

    # The map

    def map(self) -> Map | None:
        """The map that was drawn of the index, unless too much has changed since."""
        kept = Map.load(self.folder / MAP)
        return None if kept is None or kept.is_worn(self._store.snapshot()) else kept

    def draw_map(self, report: Report = silent) -> Map:
        """Draw the map of the documents, which takes a minute or two for 20,000 points."""
        return draw(self._store.snapshot(), report)

    def keep_map(self, drawn: Map) -> None:
        """Keep a map in the folder, for those who look at the index; it is no part of it and may be removed."""
        drawn.save(self.folder / MAP)

    # Writing

    def _write(self, documents: Texts, report: Report, new: bool = False) -> Written:
        """Encode documents and put them in the index, batch by batch."""
        from parabit.index.corpus_files import note_below  # here: it needs polars, and a search does not

        corpus, store, model = as_corpus(documents), self._store, self.model
        files = note_below(corpus, store.meta.get("corpus"), self.folder)
        corpus = files or corpus
        check_ids(corpus, self._need_new if new else None, report)
        if files is not None:
            files.note(self.folder, sure=False)
        kept = Kept(self.keeps_text, self.has_words, VECTORS in store.extra)
        written = Written()
        with says_what_stays(written):
            for batch in batches_of(model, corpus, kept, report):
                gone = [id for id, there in zip(kept.without, self.has(kept.without), strict=True) if there]
                replaced = self._put(batch, gone)
                written.replaced += replaced
                written.added += len(batch.ids) - replaced
                written.removed += len(gone)
                written.left_out = kept.left_out
            self._words.commit()
        if files is not None:
            files.note(self.folder, sure=True)
        self.left_out = written.left_out
        return written

    def _put(self, batch: Batch, gone: Sequence[Id]) -> int:
        old, first = self._words.serials_of([*batch.ids, *gone]), self._words.next_serial
        replaced = self._store.put(batch, gone)
        self._words.change(old, first, batch.fields or ())
        return replaced

    def _need_new(self, ids: Sequence[Id]) -> None:
        there = self.has(ids)
        if there.any():
            raise IndexFolderError(
                f"the id {ids[int(np.argmax(there))]!r} is in the index already",
                hint="nothing was changed; replace it with --update, or give a new id",
            )


def open_store(folder: Path | str, write: bool) -> Store:
    """The store of an index: its folder, or what the engine that the manifest names has opened."""
    backend = backend_of(Path(folder))
    if not backend:
        return Store.open(folder, write)
    try:
        engine = import_module(f"parabit.engines.{backend}")
    except ModuleNotFoundError as problem:
        raise IndexFolderError(
            f"{folder} is kept by {backend}, which is unknown here", hint="upgrade parabit"
        ) from problem
    store: Store = engine.open_store(folder, write)
    return store


def encoder_of(model: "ParagraphVectors | TextEncoder") -> TextEncoder:
    """What encodes texts, of a model in either form."""
    if isinstance(model, TextEncoder):
        return model
    from sklearn.utils.validation import check_is_fitted  # who has an estimator has it imported already

    check_is_fitted(model, "encoder_")
    encoder: TextEncoder = model.encoder_
    return encoder


def learned_from(corpus: Corpus, report: Report) -> TextEncoder:
    """A model of 128 bits, learned from documents by the closed form."""
    from parabit.model import ParagraphVectors

    encoder: TextEncoder = ParagraphVectors().fit(corpus, report=report).encoder_
    return encoder


def with_own_words(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What an index that is made wants to find again; a folder for its words that no other index has had."""
    words = meta["words"] and {**meta["words"], "folder": f"words-{secrets.token_hex(4)}"}
    return {**meta, "words": words}
