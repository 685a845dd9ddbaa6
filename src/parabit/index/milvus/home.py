"""The home of an index on a Milvus server: the server keeps and searches the documents, a folder the model."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.about import bytes_in
from parabit.index.embedded import Embedded
from parabit.index.milvus.collection import Collection
from parabit.index.milvus.entities import NUMBER, Entity, entities_of, key_of
from parabit.index.milvus.manifest import Manifest, read_manifest
from parabit.index.milvus.server import Server
from parabit.index.milvus.view import Fetched
from parabit.index.reading import VECTORS, WORD, WORDS
from parabit.index.searching import derive_with
from parabit.index.store import Batch, Id, Kind, Ragged
from parabit.index.store.folder import model_folder
from parabit.index.store.ids import id_bytes, need_distinct
from parabit.index.store.lock import WriterLock
from parabit.index.store.schema import Schema
from parabit.progress import Progress, Report
from parabit.storage import copy_folder

_AT_ONCE = 500  # documents on their way to another index


class MilvusHome:
    """The documents of an index in a collection on a Milvus server.

    One process at a time writes, by way of one folder. What it was told is written, the server has; readers find it at
    once, as far as the consistency that was chosen goes. `documents` and `field_names` are as of the latest `refresh`.
    """

    def __init__(
        self, folder: Path, manifest: Manifest, collection: Collection, write: bool, lock: WriterLock | None = None
    ) -> None:
        self.folder = folder
        self._manifest, self._collection, self._writes, self._lock = manifest, collection, write, lock
        self._schema = Schema(manifest.bits, manifest.extra)
        self._documents: int | None = None
        self._names: list[str] | None = None
        self._newest = _now()
        self._has_written = False
        self._is_open = True

    @classmethod
    def open(cls, folder: Path | str, write: bool = False) -> "MilvusHome":
        """Open it; a server that does not answer, or a collection of another index, is told."""
        folder = Path(folder)
        manifest = read_manifest(folder)
        lock = WriterLock(folder) if write else None
        server = None
        try:
            server = Server(manifest.place.uri)
            collection = Collection(server, manifest.collection, manifest.place, manifest.bits)
            _check(folder, manifest, collection.about())
            collection.load()
            home = cls(folder, manifest, collection, write, lock)
            if write:
                home._see_all()
        except BaseException:
            if server is not None:
                server.close()
            if lock is not None:
                lock.close()
            raise
        return home

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self._manifest.bits

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that made the codes."""
        return self._manifest.fingerprint

    @property
    def model_folder(self) -> Path:
        """Where that model is, if it was kept."""
        return model_folder(self.folder, self.fingerprint)

    @property
    def meta(self) -> dict[str, Any]:
        """What the index wanted to find again."""
        return self._manifest.meta

    @property
    def extra(self) -> dict[str, Kind]:
        """What is kept beside codes and fields, by name."""
        return self._manifest.extra

    @property
    def documents(self) -> int:
        """How many documents there are."""
        if self._documents is None:
            self._documents = self._open.count(level=self._own_level)
        return self._documents

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return self._known_names(anew=False)

    def view(self) -> Fetched:
        """The documents as they are when they are asked for."""
        manifest = self._manifest
        return Fetched(self._open, manifest.place, self.bits, manifest.extra, lambda: self.documents, self._known_names)

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The number of each document; -1 where there is no such."""
        return self._rows(ids, self._own_level)

    def append(self, batch: Batch) -> None:
        """Add documents with new ids; the server has them when this returns."""
        there = self._checked_rows(batch.ids) >= 0
        if there.any():
            identity = batch.ids[int(np.argmax(there))]
            raise IndexFolderError(f"the id {identity!r} is in the index already", hint="update it, or give a new id")
        self.append_new(batch)

    def append_new(self, batch: Batch) -> None:
        """Add documents with ids that are known to be new, which is not checked."""
        self._need_writer()
        self._open.insert(self._entities(batch))

    def update(self, batch: Batch) -> None:
        """Replace the documents that have these ids."""
        self._need_all(batch.ids)
        self._open.replace(self._entities(batch))

    def put(self, batch: Batch, gone: Sequence[Id] = ()) -> int:
        """Add documents, in the place of those that have their ids; then delete others. How many were replaced."""
        there = self._checked_rows(batch.ids, gone) >= 0
        entities = self._entities(batch)
        # To Milvus what may replace others is a deletion too, even where there are none, and such files it compacts.
        self._open.insert([entity for entity, old in zip(entities, there, strict=True) if not old])
        replaced = [entity for entity, old in zip(entities, there, strict=True) if old]
        self._open.replace(replaced)
        self._open.delete([key_of(identity) for identity in gone])
        return len(replaced)

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete documents; where one is not there, none."""
        self._need_all(ids)
        self._documents, self._has_written = None, True
        self._open.delete([key_of(identity) for identity in ids])

    def merge(self, report: Report) -> None:
        """Have the server merge its files, without what was deleted."""
        self._need_writer()
        report(Progress("compacting", 0, "collections", None))
        self._open.compact()

    def copy_to(self, folder: Path | str, overwrite: bool, report: Report) -> None:
        """Write all documents to another folder, as an embedded index."""
        Embedded.create(
            folder,
            self.bits,
            self._batches(report),
            fingerprint=self.fingerprint,
            meta={**self.meta, "backend": "auto"},
            extra=self.extra,
            derive=derive_with("auto", self.bits, report),
            save_model=partial(copy_folder, self.model_folder) if self.model_folder.is_dir() else None,
            overwrite=overwrite,
        )

    def refresh(self) -> bool:
        """Count the documents anew; whether others have written. A writer knows it all."""
        if self._writes:
            return False
        if read_manifest(self.folder) != self._manifest:  # another index was written over this one
            self._become(MilvusHome.open(self.folder))
            return True
        self._open.describe()  # so that a collection that is gone is told
        before, names = self._documents, self._names
        self._documents, self._names = self._open.count(), None
        # Each change but a deletion has a number of its own, later than those before, as far as the clocks of those
        # who write agree with ours.
        newer = [number for block in self._open.walk(f"{NUMBER} > {self._newest}", "bounded") for number, _ in block]
        self._newest = max([self._newest, *newer])
        return bool(newer) or before != self._documents or (names is not None and names != self.field_names)

    def verify(self) -> None:
        """Read every document; that its bytes are those that were written is the server's to check."""
        view = self.view()
        for rows in view.blocks(_AT_ONCE):
            view.codes(rows)
            view.fields_of(rows)
            for name, read in ((WORDS, view.words), (VECTORS, view.vectors)):
                if name in self.extra:
                    read(rows)
            if (gone := view.gone(rows)).any():
                [identity] = view.ids_of(rows[gone][:1])
                raise IndexFolderError(
                    f"document {identity!r} cannot be read whole",
                    hint="if nobody has just changed it, add it again with --update",
                )
            view.forget()

    def about(self) -> dict[str, Any]:
        """What it is and what it keeps; for JSON."""
        place = self._manifest.place
        return {
            "folder": str(self.folder),
            "documents": self.documents,
            "bits": self.bits,
            "bytes_a_code": -(-self.bits // 8),
            "bytes_a_document": {},  # which the server alone knows
            "bytes": bytes_in(self.folder),
            "model_bytes": bytes_in(self.model_folder),
            "backends": [place.index],
            "keeps": sorted([*self.extra, *(["text"] if self.meta["text"] else [])]),
            "fields": [name for name in self.field_names if name != "text"],
            "fingerprint": self.fingerprint,
            "to_merge": {"added": 0, "deleted": 0, "bytes": 0},  # as above
            "recall": None,
            "milvus": {**asdict(place), "version": self._open.server.version, "fault": self._open.server.fault},
            "notes": list(self.view().notes("auto")),
        }

    def close(self) -> None:
        """End the connection and give back the right to write."""
        with ExitStack() as stack:
            if self._lock is not None:
                stack.callback(self._lock.close)
            if not self._is_open:
                return
            self._is_open = False
            stack.callback(self._collection.server.close)
            if self._has_written and not self._collection.server.reads_log:
                with suppress(IndexFolderError):  # it is in the log, as with any other server
                    self._collection.flush(patience=15)

    @property
    def _open(self) -> Collection:
        if not self._is_open:
            raise IndexFolderError(f"{self.folder} was closed", hint="open it again")
        return self._collection

    @property
    def _own_level(self) -> str | None:
        # Whoever writes has seen all that others wrote before, so that its own writes are what it has to wait for.
        return "session" if self._writes else None

    def _become(self, other: "MilvusHome") -> None:
        self._collection.server.close()
        self.__dict__.update(other.__dict__)

    def _see_all(self) -> None:
        """Wait until the server has caught up with what was written, and number what comes after all that is there."""
        self._documents = self._open.count(level="strong")
        while newer := next(iter(self._open.walk(f"{NUMBER} > {self._newest}", "strong")), None):
            self._newest = newer[-1][0]  # numbered by a clock that is ahead of ours

    def _known_names(self, anew: bool) -> list[str]:
        if self._names is None or anew:
            self._names = self._open.field_names()
        return self._names

    def _need_writer(self) -> None:
        if self._is_open and not self._writes:
            raise IndexFolderError(f"{self.folder} is open for reading", hint="open it with write=True")

    def _entities(self, batch: Batch) -> list[Entity]:
        """Documents that are about to be written; all of them, so that what cannot be kept is told before the first."""
        first = max(_now(), self._newest + 1)
        entities = list(entities_of(batch, self._schema, first))
        names = dict.fromkeys(name for fields in batch.fields or () for name in fields)
        if new := [name for name in names if name not in self.field_names]:
            self._names = [*self._known_names(anew=True), *new]
            self._open.set_field_names(self._names)
        self._newest = first + len(entities)
        self._documents, self._has_written = None, True
        return entities

    def _rows(self, ids: Sequence[Id], level: str | None) -> NDArray[np.int64]:
        keys = [key_of(identity) for identity in ids]
        found = self._open.read(list(dict.fromkeys(keys)), [NUMBER], level)
        return np.array([found[key][NUMBER] if key in found else -1 for key in keys], dtype=np.int64)

    def _checked_rows(self, ids: Sequence[Id], others: Sequence[Id] = ()) -> NDArray[np.int64]:
        self._need_writer()
        need_distinct([id_bytes(identity) for identity in (*ids, *others)])
        # Milvus' sessions begin with the first that is written.
        return self._rows(ids, self._own_level if self._has_written else "strong")

    def _need_all(self, ids: Sequence[Id]) -> None:
        rows = self._checked_rows(ids)
        if (rows < 0).any():
            identity = ids[int(np.argmax(rows < 0))]
            raise IndexFolderError(f"there is no document with the id {identity!r}", hint="nothing was changed")

    def _batches(self, report: Report) -> Iterator[Batch]:
        view, total, done = self.view(), self.documents, 0
        for rows in view.blocks(_AT_ONCE):
            fields = view.fields_of(rows)
            extra: dict[str, NDArray[Any] | Ragged] = {}
            if WORDS in self.extra:
                values, offsets = view.words(rows)
                extra[WORDS] = Ragged(values.astype(WORD), offsets)
            if VECTORS in self.extra:
                extra[VECTORS] = view.vectors(rows)
            codes, here = view.codes(rows), ~view.gone(rows)
            if not here.all():
                raise IndexFolderError("documents were changed meanwhile", hint="try again when nobody writes")
            yield Batch(view.ids_of(rows), codes, fields, extra)
            view.forget()
            done += len(rows)
            report(Progress("reading", done, "documents", min(1.0, done / max(total, done))))


def _now() -> int:
    """The number of a document that comes now: microseconds, as Milvus reckons with numbers up to 2^53 exactly."""
    return time.time_ns() // 1000


def _check(folder: Path, manifest: Manifest, about: Any) -> None:
    """Raise unless the collection is that of the index."""
    where = f"the collection {manifest.collection!r} at {manifest.place.uri}"
    if not about:
        raise IndexFolderError(f"{where} is not that of an index", hint="build the index anew, with another name")
    if about["parabit"] > manifest.about()["parabit"]:
        raise IndexFolderError(f"{where} was made by a newer version of parabit", hint="upgrade parabit")
    if about["fingerprint"] != manifest.fingerprint or about["bits"] != manifest.bits:
        raise IndexFolderError(
            f"{where} was made with another model than {folder}",
            hint="open the folder that it was made with, or build the index anew",
        )
