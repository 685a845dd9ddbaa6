"""The state of an index that is open: a generation, what the log says since, and the rows of both."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.arrays import unpacked
from parabit.index.store.fields import fields_in
from parabit.index.store.generation import DERIVED, Generation
from parabit.index.store.ids import id_bytes, id_of
from parabit.index.store.log import Log
from parabit.index.store.manifest import Manifest, generation_folder, log_file, read_manifest
from parabit.index.store.schema import IDS, RECORDS, SERIALS, Arrays, Id, Schema
from parabit.index.store.segment import Segment
from parabit.index.store.tail import Marks, Tail

DELETED = "deleted"  # the rows that a record of the log deletes
_SMALL = 64 << 20  # bytes that are all checked at opening, in some 20 ms


class State:
    """One generation and its log. Rows keep their numbers as long as it lasts, so hits can be read from it later."""

    def __init__(self, folder: Path, manifest: Manifest, write: bool) -> None:
        self.manifest = manifest
        self.schema = Schema(manifest.bits, manifest.extra)
        place = generation_folder(folder, manifest.generation)
        self.log = Log(log_file(folder, manifest.generation), manifest.token, write)
        try:
            self.base = Generation(place, manifest.documents, manifest.arrays, manifest.checksum)
            if self.base.arrays.size <= _SMALL:
                self.base.arrays.verify()
            self.marks = Marks(manifest.documents)
            self.tail = Tail(self.schema)
            self._applying = Lock()  # threads that search must not see half a record
            self.catch_up()
        except BaseException:
            self.log.close()
            raise

    def catch_up(self) -> bool:
        """Do what the log says since it was last read; whether it said anything."""
        records = self.log.read()
        for record in records:
            self.apply(unpacked(record))
        return bool(records)

    def apply(self, record: Arrays) -> None:
        """Do what a record of the log says."""
        arrays = dict(record)
        deleted = arrays.pop(DELETED)
        with self._applying:
            self.marks.kill(deleted[deleted < self.base.documents])
            self.tail.kill(deleted[deleted >= self.base.documents] - self.base.documents)
            if arrays:
                self.tail.extend(arrays)

    @property
    def documents(self) -> int:
        return self.rows - self.marks.dead - self.tail.marks.dead

    @property
    def rows(self) -> int:
        return self.base.documents + self.tail.documents

    @property
    def last_serial(self) -> int:
        """The highest serial number that a document was given."""
        added = self.tail[SERIALS]
        return int(added[-1]) if len(added) else self.manifest.last_serial

    @property
    def segments(self) -> tuple[Segment, Segment]:
        """The generation's documents and those that came after, as they are now."""
        arrays, size = self.base.arrays, self.base.documents
        derived = {name: arrays[DERIVED + name] for name in arrays.names(DERIVED)}
        kinds = self.manifest.extra
        with self._applying:
            alive = self.tail.marks.alive
            base = Segment(0, size, self.marks.alive, derived, kinds, arrays.__getitem__, self.base.fields.rows_of)
            added = self.tail.documents
            tail = Segment(size, added, alive, {}, kinds, self.tail.__getitem__, self.tail.rows_with)
        return base, tail

    @property
    def field_names(self) -> list[str]:
        return list(dict.fromkeys([*self.manifest.field_names, *self.tail.field_names]))

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none."""
        written = [id_bytes(identity) for identity in ids]
        rows = self.tail.rows_of(written)
        rows[rows >= 0] += self.base.documents
        rest = np.flatnonzero(rows < 0)
        if len(rest):
            found = self.base.rows_of([written[place] for place in rest.tolist()])
            found[found >= 0] = np.where(self.marks.has(found[found >= 0]), found[found >= 0], -1)
            rows[rest] = found
        return rows

    def ids_of(self, rows: NDArray[np.int64]) -> list[Id]:
        """The ids in some rows."""
        return [id_of(written) for written in self._read(IDS, rows)]

    def fields_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The fields, text among them, of the documents in some rows."""
        return [fields_in(record) for record in self._read(RECORDS, rows)]

    def _read(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (rows.min() < 0 or rows.max() >= self.rows):
            wrong = rows[(rows < 0) | (rows >= self.rows)][0]
            raise IndexFolderError(f"there is no row {wrong}, only 0 to {self.rows - 1}", hint="ask for rows of hits")
        in_base = rows < self.base.documents
        parts = (
            iter(self.base.read(name, rows[in_base])),
            iter(self.tail.read(name, rows[~in_base] - self.base.documents)),
        )
        return [next(parts[0] if here else parts[1]) for here in in_base.tolist()]


def open_state(folder: Path, write: bool) -> State:
    """Open what the manifest names; a writer may put another generation in its place at any moment."""
    while True:
        manifest = read_manifest(folder)
        try:
            return State(folder, manifest, write)
        except FileNotFoundError as problem:
            if read_manifest(folder).token == manifest.token:
                raise IndexFolderError(
                    f"{problem.filename} is missing", hint="restore it from a copy, or build the index anew"
                ) from problem
