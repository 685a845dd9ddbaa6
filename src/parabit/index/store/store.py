"""The store: the durable home of an index, opened in milliseconds whatever its size."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.errors import IndexFolderError
from parabit.index.store.arrays import packed
from parabit.index.store.compaction import fill_from, fill_with, remove_generation, write_generation
from parabit.index.store.generation import Derive, GenerationWriter, documents_of
from parabit.index.store.ids import id_bytes, need_distinct
from parabit.index.store.lock import LOCK, WriterLock
from parabit.index.store.manifest import (
    is_index,
    model_folder,
    next_generation,
    read_manifest,
    remove_leftovers,
    write_manifest,
)
from parabit.index.store.schema import Arrays, Batch, Id, Kind, Schema
from parabit.index.store.segment import Segment
from parabit.index.store.snapshot import DELETED, State, open_state
from parabit.storage import copy_folder, whole_folder

SaveModel = Callable[[Path], None]


class Store:
    """Codes, ids, fields and extra arrays of documents in a folder; one process writes it, any number read it.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp()) / "news.index"
        >>> codes = np.array([[1], [2]], dtype=np.uint8)
        >>> Store.create(folder, bits=8, batches=[Batch(["a", "b"], codes, [{"text": "hubble"}, {"year": 1993}])])
        >>> with Store.open(folder, write=True) as store:
        ...     store.delete(["a"])
        ...     store.append(Batch([7], codes[:1], [{"year": 1993}]))
        ...     store.documents, store.rows_of(["a", "b", 7]).tolist(), store.tail.matching("year", 1993).tolist()
        (2, [-1, 1, 2], [True])
        >>> Store.open(folder).fields_of(np.array([1, 2]))
        [{'year': 1993}, {'year': 1993}]
    """

    def __init__(self, folder: Path, state: State, lock: WriterLock | None) -> None:
        self.folder = folder
        self._state: State | None = state
        self._lock = lock

    @staticmethod
    def create(
        folder: Path | str,
        bits: int,
        batches: Iterable[Batch],
        fingerprint: str = "",
        meta: Mapping[str, Any] | None = None,
        extra: Mapping[str, Kind] | None = None,
        derive: Derive | None = None,
        save_model: SaveModel | None = None,
        overwrite: bool = False,
    ) -> None:
        """Make an index of documents, in constant memory; under its name it is whole or not there.

        Rows are in the order of the documents. `fingerprint` is that of the model, `meta` whatever the caller wants to
        find again, as JSON. `derive` makes a back end's arrays of all codes. `save_model` writes the model to the
        folder that it is given. With `overwrite` an index of that name is replaced, in one step, and nothing but an
        index.
        """
        check_codes(np.zeros((1, -(-bits // 8) or 1), dtype=np.uint8), bits)
        schema, fill = Schema(bits, extra or {}), fill_with(batches)
        _write(Path(folder), schema, fill, derive, fingerprint, meta or {}, save_model, overwrite)

    @classmethod
    def open(cls, folder: Path | str, write: bool = False) -> Self:
        """Open an index, in a time that does not depend on its size but on that of its log.

        Small files are checked whole, and all others for their size and their first block; `verify` checks all. A
        folder below 64 MB is checked whole here.
        """
        folder = Path(folder)
        if not write:
            return cls(folder, open_state(folder, write=False), None)
        read_manifest(folder)  # a folder that is none of ours should not get a lock file
        lock = WriterLock(folder)
        try:
            state = open_state(folder, write=True)
            state.log.cut()
            remove_leftovers(folder, state.manifest.generation, state.manifest.fingerprint)
        except BaseException:
            lock.close()
            raise
        return cls(folder, state, lock)

    def close(self) -> None:
        """Give the right to write back. Arrays that were taken from the store stay valid."""
        if self._state is not None:
            self._state.log.close()
            self._state = None
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def state(self) -> State:
        """The state now. One that was kept can still be read after `refresh` and `compact`, its rows unchanged."""
        if self._state is None:
            raise IndexFolderError(f"{self.folder} was closed", hint="open it again")
        return self._state

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return self.state.manifest.bits

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that made the codes."""
        return self.state.manifest.fingerprint

    @property
    def model_folder(self) -> Path:
        """Where that model is, if it was kept."""
        return model_folder(self.folder, self.fingerprint)

    @property
    def meta(self) -> dict[str, Any]:
        """What the caller wanted to find again."""
        return self.state.manifest.meta

    @property
    def extra(self) -> dict[str, Kind]:
        """The extra arrays, by name."""
        return self.state.manifest.extra

    @property
    def generation(self) -> int:
        """How often the index was written whole."""
        return self.state.manifest.generation

    @property
    def documents(self) -> int:
        """How many documents there are; deleted ones do not count."""
        return self.state.documents

    @property
    def log_bytes(self) -> int:
        """How much `compact` would merge, which is what opening has to read."""
        return self.state.log.size

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return self.state.field_names

    @property
    def segments(self) -> tuple[Segment, Segment]:
        """The base and the tail as they are at one moment."""
        return self.state.segments

    @property
    def base(self) -> Segment:
        """The documents of the generation, memory-mapped, rows from 0."""
        return self.segments[0]

    @property
    def tail(self) -> Segment:
        """The documents added since, in memory; their rows follow on those of the base."""
        return self.segments[1]

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none."""
        return self.state.rows_of(ids)

    def ids_of(self, rows: NDArray[np.int64]) -> list[Id]:
        """The ids in some rows."""
        return self.state.ids_of(rows)

    def fields_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The fields, text among them, of the documents in some rows; nothing else is read."""
        return self.state.fields_of(rows)

    def append(self, batch: Batch) -> None:
        """Add documents with new ids; all of them are on the disk when this returns, or none is."""
        self._need_writer()
        arrays = documents_of(batch, self.state.schema, self.state.last_serial + 1)
        there = self._rows_of(batch.ids) >= 0
        if there.any():
            identity = batch.ids[int(np.argmax(there))]
            raise IndexFolderError(f"the id {identity!r} is in the index already", hint="update it, or give a new id")
        self._log(np.zeros(0, dtype=np.int64), arrays if len(batch.ids) else {})

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete documents; all of them are gone when this returns, or none is."""
        self._need_writer()
        self._log(self._known(ids), {})

    def update(self, batch: Batch) -> None:
        """Replace the documents that have these ids, in one step: nobody finds both or neither."""
        self._need_writer()
        arrays = documents_of(batch, self.state.schema, self.state.last_serial + 1)
        self._log(self._known(batch.ids), arrays if len(batch.ids) else {})

    def put(self, batch: Batch, gone: Sequence[Id] = ()) -> int:
        """Add documents, in the place of those that have their ids; delete others. One step; how many were replaced."""
        self._need_writer()
        arrays = documents_of(batch, self.state.schema, self.state.last_serial + 1)
        rows = self._rows_of([*batch.ids, *gone])
        self._log(rows[rows >= 0], arrays if len(batch.ids) else {})
        return int((rows[: len(batch.ids)] >= 0).sum())

    def compact(self, derive: Derive | None = None, meta: Mapping[str, Any] | None = None) -> None:
        """Write the documents that are alive as a new generation, in the order of their rows, with an empty log.

        Everything is verified on the way. `derive` makes a back end's arrays of the new codes; without it there are
        none. Rows get new numbers; whoever has the old generation open keeps it until `refresh`.
        """
        self._need_writer()
        state, number = self.state, self.generation + 1
        manifest = write_generation(
            self.folder,
            number,
            state.schema,
            fill_from(state),
            derive,
            self.fingerprint,
            self.meta if meta is None else meta,
            state.last_serial,
        )
        try:
            write_manifest(self.folder, manifest)
            self._state = open_state(self.folder, write=True)
        except BaseException:
            if read_manifest(self.folder).token == state.manifest.token:
                remove_generation(self.folder, number)
            else:  # the new one counts already, so nothing may go to the old log any more
                state.log.close()
                self.close()
            raise
        state.log.close()
        remove_leftovers(self.folder, number, self.fingerprint)

    def save(
        self,
        folder: Path | str,
        derive: Derive | None = None,
        meta: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the documents that are alive to another folder, as `compact` writes them to this one."""
        fill, last_serial = fill_from(self.state), self.state.last_serial
        kept = self.meta if meta is None else meta
        model = self.model_folder
        save = partial(copy_folder, model) if model.is_dir() else None
        _write(Path(folder), self.state.schema, fill, derive, self.fingerprint, kept, save, overwrite, last_serial)

    def refresh(self) -> bool:
        """Move on to what another process has written since, and tell if there was anything; a writer knows it all."""
        state = self.state
        if self._lock is not None:
            return False
        if read_manifest(self.folder).token == state.manifest.token:
            return state.catch_up()
        self._state = open_state(self.folder, write=False)
        state.log.close()
        return True

    def verify(self) -> None:
        """Read every byte and raise if one is not what was written; the log was checked when it was read."""
        self.state.base.arrays.verify()

    def _need_writer(self) -> None:
        if self._state is not None and self._lock is None:
            raise IndexFolderError(f"{self.folder} is open for reading", hint="open it with write=True")

    def _rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        need_distinct([id_bytes(identity) for identity in ids])
        return self.rows_of(ids)

    def _known(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        rows = self._rows_of(ids)
        if (rows < 0).any():
            identity = ids[int(np.argmax(rows < 0))]
            raise IndexFolderError(f"there is no document with the id {identity!r}", hint="nothing was changed")
        return rows

    def _log(self, deleted: NDArray[np.int64], arrays: Arrays) -> None:
        if not len(deleted) and not arrays:
            return
        record = {DELETED: deleted, **arrays}
        self.state.log.append(packed(record))
        self.state.apply(record)


def _write(
    folder: Path,
    schema: Schema,
    fill: Callable[[GenerationWriter], None],
    derive: Derive | None,
    fingerprint: str,
    meta: Mapping[str, Any],
    save_model: SaveModel | None,
    overwrite: bool,
    last_serial: int | None = None,
) -> None:
    if overwrite and is_index(folder):
        # As a new generation, not as a new folder: the step from the old to the new is then one, whenever a kill comes.
        with WriterLock(folder):
            number, place = next_generation(folder), model_folder(folder, fingerprint)
            if save_model and not place.exists():
                save_model(place)
            manifest = write_generation(folder, number, schema, fill, derive, fingerprint, meta, last_serial)
            write_manifest(folder, manifest)
            remove_leftovers(folder, number, fingerprint)
        return
    with whole_folder(folder, is_index if overwrite else None, durable=True) as new:
        (new / LOCK).touch()
        if save_model:
            save_model(model_folder(new, fingerprint))
        write_manifest(new, write_generation(new, 1, schema, fill, derive, fingerprint, meta, last_serial))
