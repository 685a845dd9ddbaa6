"""The store of an index on Milvus: a folder with the model and a manifest, and a collection with the documents."""

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np

from parabit.engines.milvus.client import TOKEN, Entities, Server
from parabit.engines.milvus.documents import SERIAL, entity_of, id_of_key, key_of
from parabit.engines.milvus.snapshot import MilvusSnapshot, MilvusWords
from parabit.errors import IndexFolderError
from parabit.index.store import VECTORS, Batch, Id, Kind, Store
from parabit.index.store.lock import LOCK, WriterLock
from parabit.index.store.manifest import bytes_in, is_index, read_sealed, write_sealed
from parabit.index.store.schema import CODES, EXTRA, TEXT, Schema, need_distinct
from parabit.index.word_index import searchable
from parabit.index.words import Stems
from parabit.progress import Progress, Report, silent
from parabit.storage import copy_folder, need_room_for_folder, whole_folder

FORMAT = 1
BACKEND = "milvus"
_MODEL = "model-1"
_READ = 500  # documents that are read at a time


@dataclass(frozen=True)
class Milvus:
    """Where Milvus keeps an index: the address of a server of version 2.5 or later, or a file such as `news.db`.

    A token or USER:PASSWORD is read from the environment variable PARABIT_MILVUS_TOKEN.
    """

    uri: str
    collection: str = ""  # a new name if none is given

    def checked(self) -> "Milvus":
        """The same, a file with its full path; an IndexFolderError says what makes no sense."""
        if "://" not in self.uri and self.uri.endswith(".db"):
            return replace(self, uri=str(Path(self.uri).resolve()))
        if not re.fullmatch(r"https?://[^/@\s]+(:\d+)?(/.*)?", self.uri):
            raise IndexFolderError(
                f"{self.uri!r} is not the address of a Milvus server",
                hint=f"give a password in the environment variable {TOKEN}"  # the folder would show it to everybody
                if "@" in self.uri
                else "give one such as http://localhost:19530, or a file such as news.db",
            )
        return self

    def create(
        self,
        folder: Path | str,
        bits: int,
        batches: Iterable[Batch],
        fingerprint: str = "",
        meta: Mapping[str, Any] | None = None,
        extra: Mapping[str, Kind] | None = None,
        save_model: Callable[[Path], None] | None = None,
        overwrite: bool = False,
        report: Report = silent,
    ) -> None:
        """Make an index there, as `Store.create` does in a folder; the folder is there when all documents are in."""
        folder, old = Path(folder), None
        need_room_for_folder(folder, is_index if overwrite else None)
        if overwrite and is_index(folder):
            WriterLock(folder).close()  # an error if somebody writes it
            with suppress(IndexFolderError):
                old = Manifest.read(folder)
        # A name that says whose it is, and that no other has.
        name = self.collection or f"parabit_{re.sub(r'[^A-Za-z0-9]+', '_', folder.name)[:80]}_{token_hex(4)}"
        place, dim = replace(self.checked(), collection=name), extra[VECTORS].width if extra else None
        made = f"parabit index {token_hex(8)}"
        manifest = Manifest(place, made, bits, fingerprint, dict(meta or {}), dim, [])
        with closing(Server(place.uri)) as server:
            try:
                manifest.entities(server).create(bool(manifest.meta["words"]), dim is not None, made)
                names = _fill(manifest, server, batches)
                with whole_folder(folder, is_index if overwrite else None, durable=True) as new:
                    (new / LOCK).touch()
                    if save_model:
                        save_model(new / _MODEL)
                    manifest._replace(field_names=names).write(new)
            except BaseException:
                with suppress(IndexFolderError):  # what went wrong first is what is said
                    manifest.entities(server).drop(made)
                raise
        if old is not None:
            with suppress(IndexFolderError), closing(Server(old.place.uri)) as server:
                old.entities(server).drop(old.description)


class Manifest(NamedTuple):
    """What the folder says: where the documents are, and what made them."""

    place: Milvus
    description: str  # of the collection; no two are the same
    bits: int
    fingerprint: str
    meta: dict[str, Any]
    dim: int | None  # of the vectors, if they are kept
    field_names: list[str]

    def write(self, folder: Path) -> None:
        """Have the folder say it, in one step."""
        write_sealed(folder, FORMAT, {"backend": BACKEND, **self._asdict(), "place": asdict(self.place)})

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """What a folder says; anything wrong with it is an IndexFolderError."""
        content = read_sealed(folder, FORMAT, "backend")
        known = {name: content[name] for name in cls._fields}
        return cls(**{**known, "place": Milvus(**content["place"]).checked()})

    @property
    def extra(self) -> dict[str, Kind]:
        """What is kept beside codes and fields."""
        return {} if self.dim is None else {VECTORS: Kind("<f2", self.dim)}

    def entities(self, server: Server) -> Entities:
        """The documents."""
        return Entities(server, self.place.collection, self.bits)

    def entities_of(self, batch: Batch, first: int) -> list[dict[str, Any]]:
        """A batch as entities, numbered from `first`; an error says what does not fit."""
        arrays = Schema(self.bits, self.extra).arrays_of(batch, first)
        fields: Sequence[Mapping[str, Any]] = batch.fields or [{}] * len(batch.ids)
        words = nothing = list[Any]([None] * len(batch.ids))
        if self.meta["words"]:
            stems = self.stems()
            words = [stems.analyzer.analyze(text) for text in stems.tokenizer.spaced([*map(searchable, fields)])]
        documents = zip(batch.ids, arrays[CODES], fields, words, arrays.get(EXTRA + VECTORS, nothing), strict=True)
        return [entity_of(identity, first + place, *rest) for place, (identity, *rest) in enumerate(documents)]

    def stems(self) -> Stems:
        """What cuts texts into words."""
        return Stems(self.meta["words"]["language"], self.meta["words"]["fold_accents"])


class MilvusStore:
    """The documents of an index in a collection of Milvus, as `parabit.index.store.Store` keeps them in a folder.

    One process at a time writes, through one folder. `documents` and `field_names` are as of the latest `refresh`.
    """

    keeps_words = True

    def __init__(self, folder: Path | str, write: bool = False) -> None:
        self.folder = Path(folder)
        self._manifest = manifest = Manifest.read(self.folder)
        self.bits, self.fingerprint, self.meta = manifest.bits, manifest.fingerprint, manifest.meta
        self.extra, self.field_names, self.model_folder = manifest.extra, manifest.field_names, self.folder / _MODEL
        with ExitStack() as stack:
            self._lock = stack.enter_context(WriterLock(self.folder)) if write else None
            self._server = stack.enter_context(closing(Server(manifest.place.uri)))
            if self.entities().description() != manifest.description:
                raise IndexFolderError(
                    f"Milvus at {manifest.place.uri} has no collection {manifest.place.collection!r} of {folder}",
                    hint="it was dropped, or is on another server; build the index again",
                )
            self._server.ask("load_collection", manifest.place.collection)
            self.documents, self._newest = self.entities().count(), _now()
            self._see_newer()  # written by a machine whose clock is ahead of ours
            stack.pop_all()

    def close(self) -> None:
        """End the connection and give back the right to write."""
        self._server.close()
        if self._lock is not None:
            self._lock.close()

    def entities(self) -> Entities:
        """The documents as Milvus has them now."""
        return self._manifest.entities(self._server)

    def snapshot(self) -> MilvusSnapshot:
        """The documents as they are now."""
        return MilvusSnapshot(self)

    def words(self, snapshot: MilvusSnapshot) -> MilvusWords:
        """The words of a snapshot's documents, which Milvus keeps with them."""
        return MilvusWords(snapshot, self._manifest.stems())

    def put(self, batch: Batch | None, delete: Sequence[Id] = ()) -> int:
        """Add documents, in place of those that have their ids, and delete others; returns how many were replaced.

        Milvus has it all when this returns. It takes several requests, so others may see half of it, and a kill may
        leave half. Ids to delete that no document has are ignored.
        """
        if self._lock is None:
            raise IndexFolderError(f"{self.folder} is open for reading", hint="open it with write=True")
        ids = [] if batch is None else list(batch.ids)
        need_distinct([*ids, *delete])
        first = max(_now(), self._newest + 1)
        # All of them, so that what does not fit is known before the first is written.
        entities = [] if batch is None else self._manifest.entities_of(batch, first)
        self._newest = first + len(ids)
        self._keep_names(() if batch is None else batch.fields or ())
        there = self.snapshot().rows_of(ids) >= 0
        # To Milvus whatever may replace something is a deletion, too, so new documents are kept apart.
        for old in (False, True):
            self.entities().write([entities[place] for place in np.flatnonzero(there == old)], new=not old)
        self.entities().delete([key_of(identity) for identity in delete])
        self.documents = self.entities().count()
        return int(there.sum())

    def change_meta(self, **changes: Any) -> None:
        """Change what the caller wants to find again."""
        self.meta = {**self.meta, **changes}
        self._manifest = self._manifest._replace(meta=self.meta)
        self._manifest.write(self.folder)

    def compact(self, report: Report = silent) -> None:
        """Have the server merge its files, without what was deleted."""
        self._server.ask("flush", self._manifest.place.collection)
        if not self._server.is_file:
            self._server.ask("compact", self._manifest.place.collection)

    def save(self, folder: Path | str, overwrite: bool, report: Report, meta: Mapping[str, Any]) -> None:
        """Write all documents to another folder, as an embedded index."""
        model = partial(copy_folder, self.model_folder) if self.model_folder.is_dir() else None
        documents = self._batches(report)
        Store.create(folder, self.bits, documents, self.fingerprint, meta, self.extra, model, overwrite, report)

    def refresh(self) -> bool:
        """See what others have written; returns whether there was anything. A writer knows it all."""
        if self._lock is not None:
            return False
        manifest, before = Manifest.read(self.folder), (self.documents, self.field_names)
        if manifest.description != self._manifest.description:  # another index was written over this one
            self._server.close()
            self.__dict__.update(MilvusStore(self.folder).__dict__)
            return True
        self._manifest, self.documents, self.field_names = manifest, self.entities().count(), manifest.field_names
        return self._see_newer() or before != (self.documents, self.field_names)

    def verify(self) -> None:
        """Read every document; that its bytes are those that were written is Milvus' to check."""
        deque(self._batches(silent), maxlen=0)

    def about(self) -> dict[str, Any]:
        """What the index is and what it keeps; for JSON."""
        return {
            "folder": str(self.folder),
            "documents": self.documents,
            "bits": self.bits,
            "bytes_a_code": -(-self.bits // 8),
            "bytes_a_document": {},  # only the server knows
            "bytes": bytes_in(self.folder),
            "model_bytes": bytes_in(self.model_folder),
            "backends": ["flat"],
            "keeps": sorted([*self.extra, *([TEXT] if self.meta["text"] else [])]),
            "fields": [name for name in self.field_names if name != TEXT],
            "fingerprint": self.fingerprint,
            "to_merge": {"added": 0, "deleted": 0, "bytes": 0},
            "engine": {"name": BACKEND, "version": self._server.version, **asdict(self._manifest.place)},
        }

    def _keep_names(self, fields: Iterable[Mapping[str, Any]]) -> None:
        names = dict.fromkeys([*self.field_names, *(name for some in fields for name in some)])
        if len(names) > len(self.field_names):
            self.field_names = list(names)
            self._manifest = self._manifest._replace(field_names=self.field_names)
            self._manifest.write(self.folder)

    def _see_newer(self) -> bool:
        """Whether there are documents that came after all that were seen."""
        newer = [int(rows[-1]) for rows in self.entities().walk(f"{SERIAL} > {self._newest}")]
        self._newest = max([self._newest, *newer])
        return bool(newer)

    def _batches(self, report: Report) -> Iterator[Batch]:
        snapshot, done = self.snapshot(), 0
        for rows in snapshot.blocks(_READ):
            fields, codes = snapshot.fields_of(rows), snapshot.codes(rows)
            extra = {VECTORS: snapshot.vectors(rows)} if self.extra else {}
            if not all(fields) and (snapshot.rows_of(snapshot.ids_of(rows)) != rows).any():
                raise IndexFolderError("documents were changed meanwhile", hint="try again when nobody writes")
            yield Batch(snapshot.ids_of(rows), codes, fields, extra)
            done += len(rows)
            report(Progress("reading", done, "documents", min(1.0, done / max(self.documents, done))))


def _fill(manifest: Manifest, server: Server, batches: Iterable[Batch]) -> list[str]:
    """Write the documents of a new index; returns the names of their fields."""
    seen, names = set[int](), dict[str, None]()
    first = _now()
    for batch in batches:
        again = manifest.entities(server).with_keys([key_of(one) for one in batch.ids if hash(one) in seen])
        seen.update(map(hash, batch.ids))
        need_distinct([*batch.ids, *map(id_of_key, again)])
        manifest.entities(server).write(manifest.entities_of(batch, first), new=True)
        first += len(batch.ids)
        names.update(dict.fromkeys(name for some in batch.fields or () for name in some))
    server.ask("flush", manifest.place.collection)
    return list(names)


def _now() -> int:
    """The serial number of a document that comes now: microseconds."""
    return time.time_ns() // 1000
