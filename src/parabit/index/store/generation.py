"""Writing a generation: all documents of an index at some time, as files that are written once and never changed."""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parabit.errors import IndexFolderError
from parabit.index.search import Derive
from parabit.index.store.arrays import KEYS, ROWS, VALUES, CheckedWriter, TableWriter
from parabit.index.store.log import new_log
from parabit.index.store.manifest import Manifest, generation_folder, log_file, remove
from parabit.index.store.schema import (
    CODES,
    IDS,
    OFFSETS,
    Arrays,
    Batch,
    Layout,
    Ragged,
    Schema,
    hashes,
    id_bytes,
    id_of,
    keys_of,
    number_key,
    numbers_of,
    strings,
)
from parabit.index.store.snapshot import DERIVED, FIELDS, NUMBERS, Snapshot
from parabit.storage import sync

_ROWS = 1 << 13  # documents that are copied at a time
_AT_ONCE = 1 << 20  # elements of a long array that are handled at a time


Recode = Callable[[NDArray[np.int64]], Arrays]  # from rows to other codes and extra arrays


def write_generation(
    folder: Path,
    manifest: Manifest,
    documents: Iterable[Batch] | Snapshot,
    derive: Derive,
    recode: Recode | None = None,
) -> Manifest:
    """Write a generation and an empty log; they count once the manifest that this returns is written.

    The documents of a snapshot keep their codes, unless `recode` gives them others.
    Memory grows with the documents by what finds them (about 16 bytes per id, label and number) and by what `derive`
    takes, which makes a back end's arrays of all codes; texts and codes are not held.
    """
    number, token = manifest.generation, secrets.token_hex(8)
    try:
        with GenerationWriter(generation_folder(folder, number), Schema(manifest.bits, manifest.extra)) as writer:
            if isinstance(documents, Snapshot):
                writer.copy(documents, recode)
            else:
                for batch in documents:
                    writer.add(batch)
            written = writer.finish(derive)
        new_log(log_file(folder, number), token)
        sync(folder)
    except BaseException:
        remove_generation(folder, number)
        raise
    serial = max(manifest.last_serial, writer.documents)
    return replace(manifest, token=token, documents=writer.documents, last_serial=serial, **written)


def remove_generation(folder: Path, number: int) -> None:
    """Remove a generation that does not count."""
    remove(generation_folder(folder, number))
    remove(log_file(folder, number))


class GenerationWriter:
    """Writes a generation; it is complete and on the disk after `finish`."""

    def __init__(self, folder: Path, schema: Schema) -> None:
        self._folder = folder
        self._schema = schema
        self._offsets = [name for name in schema.layouts if name.endswith(OFFSETS)]
        self._names: dict[str, None] = {}
        self._writers: dict[str, CheckedWriter] = {}
        self._tables = {
            IDS: TableWriter({ROWS: np.int64}),
            FIELDS: TableWriter({ROWS: np.int64}),
            NUMBERS: TableWriter({ROWS: np.int64, VALUES: np.float64}),
        }
        self._stack = ExitStack()

    def __enter__(self) -> "GenerationWriter":
        self._folder.mkdir()
        for name, layout in self._schema.layouts.items():
            self._open(name, layout)
        for name in self._offsets:
            self._writers[name].append(np.zeros(1))
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
        """Add documents."""
        first = self.documents
        arrays = self._schema.arrays_of(batch, 1 + first)
        self._append(arrays)
        self._index([id_bytes(identity) for identity in batch.ids], batch.fields or [], first)

    def copy(self, snapshot: Snapshot, recode: Recode | None = None) -> None:
        """Add the documents of a snapshot, in their order and with their serial numbers."""
        base, alive = snapshot.base, snapshot.alive
        base.arrays.verify()  # a flipped byte must not get a new checksum
        self._names = dict.fromkeys(snapshot.manifest.field_names)
        places = None if alive is None else np.cumsum(alive) - 1  # the new rows
        for name, table in ((IDS, base.ids), (FIELDS, base.fields), (NUMBERS, base.numbers)):
            for start in range(0, len(table.keys), _AT_ONCE):
                keys, rows, *values = (part[start : start + _AT_ONCE] for part in (table.keys, *table.columns))
                if alive is not None and places is not None:
                    kept = alive[rows]
                    keys, rows, values = keys[kept], places[rows[kept]], [part[kept] for part in values]
                self._tables[name].add(keys, rows, *values)
        for rows in snapshot.blocks(_ROWS):
            first = self.documents
            arrays = snapshot.arrays(rows) | (recode(rows) if recode else {})
            self._append(arrays)
            if rows[-1] >= base.documents:  # what finds the others was copied
                added = np.flatnonzero(rows >= base.documents)
                ids = strings(Ragged(arrays[IDS], arrays[IDS + OFFSETS]), added)
                self._index(ids, snapshot.fields_of(rows[added]), first + int(added[0]))

    def finish(self, derive: Derive) -> dict[str, Any]:
        """Write the tables and a back end's arrays; returns what the manifest says of them."""
        for name, table in self._tables.items():
            table.finish({part: self._open(name + part, layout) for part, layout in table.layouts.items()})
        self._stack.close()
        arrays = {name: self._load(name) for name in (CODES, IDS, IDS + OFFSETS, IDS + KEYS, IDS + ROWS)}
        _need_unique(arrays)
        for name, array in derive(arrays[CODES]).items():
            writer = self._open(DERIVED + name, Layout(array.dtype, array.shape[1:]))
            for start in range(0, len(array), _AT_ONCE):
                writer.append(array[start : start + _AT_ONCE])
        self._stack.close()
        sync(self._folder)
        return {
            "field_names": list(self._names),
            "arrays": {name: writer.form for name, writer in self._writers.items()},
        }

    def _append(self, arrays: Arrays) -> None:
        for name in self._offsets:
            self._writers[name].append(arrays[name][1:] + self._writers[name.removesuffix(OFFSETS)].length)
        for name in self._schema.layouts.keys() - self._offsets:
            self._writers[name].append(arrays[name])

    def _index(self, ids: Sequence[bytes], fields: Sequence[Mapping[str, Any]], first: int) -> None:
        """Make documents found by their ids and fields, from a row on."""
        self._tables[IDS].add(hashes(ids), np.arange(first, first + len(ids)))
        keys = [(key, row) for row, some in enumerate(fields, first) for key in keys_of(some)]
        self._tables[FIELDS].add(*_columns(keys, np.uint64, np.int64))
        numbers = [(number_key(name), row, n) for row, some in enumerate(fields, first) for name, n in numbers_of(some)]
        self._tables[NUMBERS].add(*_columns(numbers, np.uint64, np.int64, np.float64))
        for some in fields:
            self._names.update(dict.fromkeys(some))

    def _open(self, name: str, layout: Layout) -> CheckedWriter:
        self._writers[name] = CheckedWriter(self._folder / f"{name}.npy", layout)
        self._stack.enter_context(self._writers[name])
        return self._writers[name]

    def _load(self, name: str) -> NDArray[Any]:
        # An empty array cannot be mapped.
        array: NDArray[Any] = np.load(
            self._folder / f"{name}.npy", mmap_mode="r" if self._writers[name].length else None
        )
        return array


def _columns(entries: Sequence[tuple[Any, ...]], *types: DTypeLike) -> list[NDArray[Any]]:
    columns = zip(*entries, strict=True) if entries else [()] * len(types)
    return [np.array(column, dtype=dtype) for column, dtype in zip(columns, types, strict=True)]


def _need_unique(arrays: Mapping[str, NDArray[Any]]) -> None:
    ids = Ragged(arrays[IDS], arrays[IDS + OFFSETS])
    for place in _repeated(arrays[IDS + KEYS]):
        rows = arrays[IDS + ROWS][place : place + 2]
        one, other = strings(ids, rows)
        if one == other:
            raise IndexFolderError(
                f"two documents have the id {id_of(one)!r}: numbers {rows[0]} and {rows[1]}, from 0",
                hint="choose another field with --id-field; --id-field '' names records by path and line",
            )


def _repeated(keys: NDArray[np.uint64]) -> Iterator[int]:
    """Places whose key is that of the next one too."""
    for start in range(0, len(keys), _AT_ONCE):
        piece = keys[start : start + _AT_ONCE + 1]
        yield from (start + np.flatnonzero(piece[1:] == piece[:-1])).tolist()
