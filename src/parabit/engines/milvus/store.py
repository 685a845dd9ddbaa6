"""The store of an index on Milvus: a folder with the model and a manifest, and a collection with the documents."""

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np

from parabit.engines.milvus.client import (
    SERIAL,
    TOKEN,
    Entities,
    Server,
    entity_of,
    id_of_key,
    key_of,
)
from parabit.engines.milvus.snapshot import MilvusSnapshot, MilvusWords
from parabit.errors import IndexFolderError
from parabit.index.store import Batch, Engine, Id, Store
from parabit.index.store.generation import Complete, SaveModel
from parabit.index.store.manifest import (
    LOCK,
    Manifest,
    home_of,
    is_at_home,
    is_index,
    read_manifest,
    write_manifest,
    writer_lock,
)
from parabit.index.store.schema import CODES, VECTORS, columns_of, need_distinct
from parabit.index.store.store import BaseStore
from parabit.index.word_index import searchable
from parabit.index.words import Stems
from parabit.progress import Progress, Report, silent
from parabit.storage import need_room, whole_folder

_READ = 500  # documents that are read at a time


class Milvus:
    """Where Milvus keeps an index: the address of a server of version 2.5 or later, or a file such as `news.db`.

    A token or USER:PASSWORD is read from the environment variable PARABIT_MILVUS_TOKEN.
    """

    def __init__(self, uri: str) -> None:
        if "://" not in uri and uri.endswith(".db"):
            uri = str(Path(uri).resolve())
        elif not re.fullmatch(r"https?://[^/@\s]+(:\d+)?(/.*)?", uri):
            hint = "give one such as http://localhost:19530, or a file such as news.db"
            if "@" in uri:  # the folder would show a password to everybody
                hint = f"give a password in the environment variable {TOKEN}"
            raise IndexFolderError(f"{uri!r} is not the address of a Milvus server", hint=hint)
        self.uri = uri

    def create(
        self,
        folder: Path,
        manifest: Manifest,
        documents: Iterable[Batch],
        save_model: SaveModel | None = None,
        overwrite: bool = False,
        report: Report = silent,
        complete: Complete | None = None,
    ) -> None:
        """Make an index there, as `Store.create` does in a folder; the folder is there when all documents are in."""
        old = None
        need_room(folder, folder=True, replaces=is_index if overwrite else None)
        if overwrite and is_index(folder):
            with writer_lock(folder), suppress(IndexFolderError):  # an error if somebody writes it
                old = read_manifest(folder)
                if not is_at_home(old, folder):  # a stranger's index must not name what is dropped
                    old = None
        # A name that says whose it is, and that no other has.
        name = f"parabit_{re.sub(r'[^A-Za-z0-9]+', '_', folder.name)[:80]}_{token_hex(4)}"
        engine = Engine("milvus", self.uri, name)
        model = "" if save_model is None else "model-1"
        token = token_hex(8)
        manifest = replace(manifest, engine=engine, token=token, lineage=token, model=model)
        with closing(Server(self.uri)) as server:
            entities = Entities(server, manifest)
            try:
                entities.create()
                names = _fill(entities, documents)
                with whole_folder(folder, is_index if overwrite else None) as new:
                    (new / LOCK).touch()
                    if save_model is not None:
                        save_model(new / manifest.model)
                    manifest = replace(
                        manifest, field_names=tuple(names), home=home_of(new, folder)
                    )
                    if complete is not None:
                        manifest = complete(new, manifest)
                    write_manifest(new, manifest)
            except BaseException:
                with suppress(IndexFolderError):  # what went wrong first is what is said
                    entities.drop()
                raise
        if old is not None and old.engine is not None:
            with suppress(IndexFolderError), closing(Server(old.engine.uri)) as server:
                Entities(server, old).drop()


class MilvusStore(BaseStore):
    """The documents of an index in a collection of Milvus, as `parabit.index.store.Store` keeps them in a folder.

    One process at a time writes, through one folder. `documents` is as of the latest `refresh`.
    """

    keeps_words = True

    def __init__(self, folder: Path | str, write: bool = False) -> None:
        super().__init__(folder, write)
        uri, collection = self.engine.uri, self.engine.collection
        with self._held:
            if not is_at_home(self.manifest, self.folder):
                raise IndexFolderError(
                    f"{folder} was moved or copied, or somebody else made it; it says that its documents are on "
                    f"{uri}, and nothing was sent there",
                    hint=f"if that is right, say so: parabit info {folder} --trust",
                )
            self._server = self._held.enter_context(closing(Server(uri)))
            if not self.entities().is_there():
                raise IndexFolderError(
                    f"Milvus at {uri} has no collection {collection!r} of {folder}",
                    hint="it was dropped, or is on another server; build the index again",
                )
            self._server.ask("load_collection", collection)
            self.documents, self._newest = self.entities().count(), _now()
            self._see_newer()  # written by a machine whose clock is ahead of ours
            self._held = self._held.pop_all()

    @property
    def engine(self) -> Engine:
        """Where the documents are."""
        engine = self.manifest.engine
        assert engine is not None
        return engine

    def entities(self) -> Entities:
        """The documents as Milvus has them now."""
        return Entities(self._server, self.manifest)

    def snapshot(self) -> MilvusSnapshot:
        return MilvusSnapshot(self.entities(), self.documents)

    def words(self, snapshot: MilvusSnapshot) -> MilvusWords:
        return MilvusWords(snapshot)

    def put(self, batch: Batch | None, delete: Sequence[Id] = ()) -> int:
        """Add documents, in place of those that have their ids, and delete others; returns how many were replaced.

        Milvus has it all when this returns. It takes several requests, so others may see half of it, and a kill may
        leave half. Ids to delete that no document has are ignored.
        """
        self.need_writer()
        ids = [] if batch is None else list(batch.ids)
        need_distinct([*ids, *delete])
        first = max(_now(), self._newest + 1)
        # All of them, so that what does not fit is known before the first is written.
        entities = [] if batch is None else _entities(self.manifest, batch, first)
        self._newest = first + len(ids)
        names = tuple(_with_names(self.manifest.field_names, batch))
        if len(names) > len(self.manifest.field_names):
            self.change_manifest(field_names=names)
        there = self.snapshot().rows_of(ids) >= 0
        # To Milvus whatever may replace something is a deletion, too, so new documents are kept apart.
        for old in (False, True):
            self.entities().write(
                [entities[place] for place in np.flatnonzero(there == old)], new=not old
            )
        self.entities().delete([key_of(identity) for identity in delete])
        self.documents = self.entities().count()
        return int(there.sum())

    def compact(self, report: Report = silent) -> None:
        """Have the server merge its files, without what was deleted."""
        self._server.ask("flush", self.engine.collection)
        if not self._server.is_file:
            self._server.ask("compact", self.engine.collection)

    def save(
        self,
        folder: Path,
        manifest: Manifest,
        overwrite: bool = False,
        report: Report = silent,
        complete: Complete | None = None,
    ) -> None:
        """Write all documents to another folder, as an embedded index."""
        batches, model = self._batches(report), self.model_saver()
        Store.create(folder, manifest, batches, model, overwrite, report, complete)

    def refresh(self) -> bool:
        if self.writes:
            return False
        manifest, before = read_manifest(self.folder), (self.documents, self.manifest.field_names)
        if manifest.token != self.manifest.token:  # another index was written over this one
            self.close()
            self.__dict__.update(MilvusStore(self.folder).__dict__)
            return True
        self.manifest, self.documents = manifest, self.entities().count()
        return self._see_newer() or before != (self.documents, manifest.field_names)

    def verify(self) -> None:
        """Read every document; that its bytes are those that were written is Milvus' to check."""
        deque(self._batches(silent), maxlen=0)

    def about(self) -> dict[str, Any]:
        engine = {**asdict(self.engine), "version": self._server.version}
        return {**super().about(), "engine": engine}

    def _see_newer(self) -> bool:
        """Whether there are documents that came after all that were seen."""
        newer = [int(rows[-1]) for rows in self.entities().walk(f"{SERIAL} > {self._newest}")]
        self._newest = max([self._newest, *newer])
        return bool(newer)

    def _batches(self, report: Report) -> Iterator[Batch]:
        snapshot, done = self.snapshot(), 0
        for rows in snapshot.blocks(_READ):
            fields, codes = snapshot.fields_of(rows), snapshot.codes(rows)
            vectors = snapshot.vectors(rows) if self.manifest.dim else None
            if not all(fields) and (snapshot.rows_of(snapshot.ids_of(rows)) != rows).any():
                raise IndexFolderError(
                    "documents were changed meanwhile", hint="try again when nobody writes"
                )
            yield Batch(snapshot.ids_of(rows), codes, fields, vectors)
            done += len(rows)
            report(
                Progress("reading", done, "documents", min(1.0, done / max(self.documents, done)))
            )


def _entities(manifest: Manifest, batch: Batch, first: int) -> list[dict[str, Any]]:
    """A batch as entities, numbered from `first`; an error says what does not fit."""
    _, records, arrays = columns_of(batch, manifest.bits, manifest.dim, first)
    words = nothing = list[Any]([None] * len(batch.ids))
    if manifest.words is not None:
        stems = Stems(manifest.words.language, manifest.words.fold_accents)
        texts = [searchable(fields) for fields in batch.fields or ()]
        words = [stems.analyzer.analyze(text) for text in stems.tokenizer.spaced(texts)]
    documents = zip(
        batch.ids, arrays[CODES], records, words, arrays.get(VECTORS, nothing), strict=True
    )
    return [
        entity_of(identity, serial, *rest)
        for serial, (identity, *rest) in enumerate(documents, first)
    ]


def _fill(entities: Entities, batches: Iterable[Batch]) -> list[str]:
    """Write the documents of a new index; returns the names of their fields."""
    seen, names, first = set[int](), list[str](), _now()
    for batch in batches:
        again = entities.with_keys([key_of(one) for one in batch.ids if hash(one) in seen])
        seen.update(map(hash, batch.ids))
        need_distinct([*batch.ids, *map(id_of_key, again)])
        entities.write(_entities(entities.manifest, batch, first), new=True)
        first += len(batch.ids)
        names = _with_names(names, batch)
    entities.server.ask("flush", entities.name)
    return names


def _with_names(names: Iterable[str], batch: Batch | None) -> list[str]:
    """Names of fields, and those of a batch."""
    more = batch.fields or () if batch else ()
    return list(dict.fromkeys([*names, *(name for fields in more for name in fields)]))


def _now() -> int:
    """The serial number of a document that comes now: microseconds."""
    return time.time_ns() // 1000
