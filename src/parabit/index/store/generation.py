"""A generation: all documents of an index at some time, as files that are written once and never changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.arrays import CheckedWriter, Form, MappedArrays, write_checksums
from parabit.index.store.fields import keys_of, record_of
from parabit.index.store.ids import hashes, id_bytes, id_of, rows_in
from parabit.index.store.schema import (
    CODES,
    IDS,
    OFFSETS,
    RECORDS,
    SERIALS,
    Arrays,
    Batch,
    Layout,
    Ragged,
    Schema,
    joined,
    taken,
)
from parabit.index.store.table import HEADS, KEYS, ROWS, Table, TableWriter
from parabit.storage import sync

FIELDS = "fields"  # the table of fields' values
DERIVED = "derived."  # how the names of a back end's arrays begin
_AT_ONCE = 1 << 20  # elements of an array that is gone through piece by piece

# Makes a back end's arrays of the codes, which may be a memory map.
Derive: TypeAlias = Callable[[NDArray[np.uint8]], Mapping[str, NDArray[Any]]]


def documents_of(batch: Batch, schema: Schema, first_serial: int) -> Arrays:
    """A batch as the arrays that it is kept in, with serial numbers from one on; what cannot be kept is told."""
    arrays = schema.arrays_of(batch)
    fields = [{}] * len(batch.ids) if batch.fields is None else batch.fields
    if len(fields) != len(batch.ids):
        raise IndexFolderError(
            f"{len(batch.ids)} ids and fields of {len(fields)} documents", hint="give fields for each id"
        )
    ids = joined([id_bytes(identity) for identity in batch.ids])
    records = joined([record_of(some, identity) for some, identity in zip(fields, batch.ids, strict=True)])
    arrays |= {IDS: ids.values, IDS + OFFSETS: ids.offsets}
    arrays[SERIALS] = np.arange(first_serial, first_serial + len(batch.ids), dtype=np.uint64)
    return arrays | {RECORDS: records.values, RECORDS + OFFSETS: records.offsets}


class Written(NamedTuple):
    """What a manifest says of a generation."""

    documents: int
    field_names: list[str]
    forms: dict[str, Form]
    checksum: int


class GenerationWriter:
    """Writes a generation in constant memory; whole and on the disk after `finish`."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self._folder = folder
        self._schema = schema
        self._names: dict[str, None] = {}
        self._done: dict[str, CheckedWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "GenerationWriter":
        self._folder.mkdir()
        self._writers = {name: self._open(name, layout) for name, layout in self._schema.layouts.items()}
        for name in self._offsets:
            self._writers[name].append(np.zeros(1))
        self.ids, self.fields = TableWriter(self._folder, IDS), TableWriter(self._folder, FIELDS)
        self._stack.callback(self.ids.close)
        self._stack.callback(self.fields.close)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def documents(self) -> int:
        """How many there are so far."""
        return self._writers[CODES].length

    def add(self, batch: Batch) -> None:
        """Take documents."""
        first = self.documents
        arrays = documents_of(batch, self._schema, 1 + first)
        self.append(arrays)
        self.index(arrays, batch.fields or [], first)

    def append(self, arrays: Arrays) -> None:
        """Take documents as the arrays they are kept in; they are found by id and fields once `index` has them too."""
        for name in self._offsets:
            values = self._writers[name.removesuffix(OFFSETS)].length
            self._writers[name].append(arrays[name][1:] + values)
        for name in self._schema.layouts.keys() - self._offsets:
            self._writers[name].append(arrays[name])

    def index(self, arrays: Arrays, fields: Sequence[Mapping[str, Any]], first: int) -> None:
        """Have documents found by their ids and fields, from a row on."""
        ids = hashes(rows_in(Ragged(arrays[IDS], arrays[IDS + OFFSETS])))
        self.ids.add(ids, np.arange(first, first + len(ids)))
        keys = [list(keys_of(some)) for some in fields]
        rows = np.repeat(np.arange(first, first + len(keys)), [len(some) for some in keys])
        self.fields.add(np.array([key for some in keys for key in some], dtype=np.uint64), rows)
        for some in fields:
            self._names.update(dict.fromkeys(some))

    def name_fields(self, names: Sequence[str]) -> None:
        """Take note of names that documents have, which were not indexed here."""
        self._names.update(dict.fromkeys(names))

    def finish(self, derive: Derive | None) -> Written:
        """Write the tables, a back end's arrays and the checksums."""
        for name, table in ((IDS, self.ids), (FIELDS, self.fields)):
            types = {KEYS: np.uint64, ROWS: np.int64, HEADS: np.uint64}
            parts = [self._open(name + part, Layout(np.dtype(dtype))) for part, dtype in types.items()]
            table.finish(*parts)
        self._stack.close()
        arrays = {name: self._load(name) for name in (CODES, IDS, IDS + OFFSETS, IDS + KEYS, IDS + ROWS)}
        _need_unique(arrays)
        if derive is not None:
            for name, array in derive(arrays[CODES]).items():
                writer = self._open(DERIVED + name, Layout(array.dtype, array.shape[1:]))
                for start in range(0, len(array), _AT_ONCE):
                    writer.append(array[start : start + _AT_ONCE])
            self._stack.close()
        checksum = write_checksums(self._folder, self._done)
        sync(self._folder)
        forms = {name: writer.form for name, writer in self._done.items()}
        return Written(len(arrays[CODES]), list(self._names), forms, checksum)

    @property
    def _offsets(self) -> list[str]:
        return [name for name in self._schema.layouts if name.endswith(OFFSETS)]

    def _open(self, name: str, layout: Layout) -> CheckedWriter:
        self._done[name] = CheckedWriter(self._folder / f"{name}.npy", layout)
        self._stack.enter_context(self._done[name])
        return self._done[name]

    def _load(self, name: str) -> NDArray[Any]:
        array: NDArray[Any] = np.load(self._folder / f"{name}.npy", mmap_mode="r" if self._done[name].length else None)
        return array


class Generation:
    """The documents of a generation, mapped: their rows, and what finds them."""

    def __init__(self, folder: Path, documents: int, forms: Mapping[str, Form], checksum: int) -> None:
        self.documents = documents
        self.arrays = MappedArrays(folder, forms, checksum)
        self.ids, self.fields = Table(self.arrays, IDS), Table(self.arrays, FIELDS)

    def rows_of(self, ids: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none."""
        starts, stops = self.ids.bounds(hashes(ids))
        rows = np.full(len(ids), -1, dtype=np.int64)
        # Other ids may have the hash, so what was found must be looked at; nearly always it is one.
        for more in range(int((stops - starts).max(initial=0))):
            left = np.flatnonzero((rows < 0) & (starts + more < stops))
            suspects = self.ids.rows[starts[left] + more]
            for place, row, found in zip(left.tolist(), suspects, self.read(IDS, suspects), strict=True):
                if found == ids[place]:
                    rows[place] = row
        return rows

    def read(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        """Some rows of a ragged array of bytes, checked."""
        offsets = self.arrays[name + OFFSETS]
        self.arrays.need(name + OFFSETS, rows, rows + 2)
        self.arrays.need(name, offsets[rows], offsets[rows + 1])
        return rows_in(taken(Ragged(self.arrays[name], offsets), rows))


def _need_unique(arrays: Mapping[str, NDArray[Any]]) -> None:
    ids = Ragged(arrays[IDS], arrays[IDS + OFFSETS])
    for place in _repeated(arrays[IDS + KEYS]):
        rows = arrays[IDS + ROWS][place : place + 2]
        one, other = rows_in(taken(ids, rows))
        if one == other:
            raise IndexFolderError(
                f"two documents have the id {id_of(one)!r}: numbers {rows[0]} and {rows[1]}, from 0",
                hint="ids must be unique",
            )


def _repeated(keys: NDArray[np.uint64]) -> Iterator[int]:
    """Places whose key is that of the next one too."""
    for start in range(0, len(keys), _AT_ONCE):
        piece = keys[start : start + _AT_ONCE + 1]
        yield from (start + np.flatnonzero(piece[1:] == piece[:-1])).tolist()
