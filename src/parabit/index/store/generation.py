"""A generation: all documents of an index at some time, as `.npy` files that are written once and never changed.

The manifest has a checksum of each file. Ids, and fields as JSON, lie one after the other in a file of bytes, and a
file of offsets says where each begins. Two tables, sorted by 64-bit keys, find rows by their ids and their fields.
"""

import mmap
import secrets
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.code_search import Searcher, build_arrays
from parabit.index.store import schema
from parabit.index.store.log import new_log
from parabit.index.store.manifest import (
    REMEDY,
    Form,
    Manifest,
    next_generation,
    remove_leftovers,
    write_manifest,
)
from parabit.index.store.schema import CODES, IDS, RECORDS, Batch, Columns, hashes, same_id
from parabit.progress import Report
from parabit.storage import ArrayWriter, array_header, sync

if TYPE_CHECKING:
    from parabit.index.store.snapshot import Snapshot

FIELDS = "fields"  # the table of values to find and of numbers to compare
OFFSETS = ".offsets"  # the array NAME.offsets says where each string of NAME begins, and where the last one ends
KEYS, ROWS, VALUES = ".keys", ".rows", ".values"  # the arrays of a table, sorted by keys
DERIVED = "derived."  # prefix of the arrays that a back end built
_TABLES = {
    IDS: np.dtype([(KEYS, "<u8"), (ROWS, "<i8")]),
    FIELDS: np.dtype([(KEYS, "<u8"), (ROWS, "<i8"), (VALUES, "<f8")]),
}
_COPIED = 1 << 13  # documents at a time
_SMALL = 64 << 20  # bytes that are checked at opening, in about 20 ms

Recode = Callable[
    [NDArray[np.int64]], dict[str, NDArray[Any]]
]  # from rows to other codes and extra arrays
SaveModel = Callable[[Path], None]


class Generation:
    """The documents of a generation, memory-mapped: opened at once whatever their size.

    Opening checks that every file has the size and the header that were written, and every byte of a small generation.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.documents, self._folder, self._forms = (
            manifest.documents,
            folder / manifest.folder,
            manifest.arrays,
        )
        self.arrays = {
            name: _mapped(self._folder, name, form) for name, form in manifest.arrays.items()
        }
        self.size = sum(array.nbytes for array in self.arrays.values())
        if self.size <= _SMALL:
            self.verify()
        derived = {
            name[len(DERIVED) :]: self.arrays[name]
            for name in self.arrays
            if name.startswith(DERIVED)
        }
        self.searcher = Searcher(
            self.arrays[CODES], manifest.bits, derived
        )  # keeps the back ends it has opened

    def verify(self) -> None:
        """Raise unless every byte is what was written."""
        for name, (_, _, checksum) in self._forms.items():
            if zlib.crc32(self.arrays[name].data) != checksum:
                raise IndexFolderError(f"{self._folder / name}.npy is damaged", hint=REMEDY)

    def strings(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        """The ids or the records in some rows."""
        content, offsets = self.arrays[name].data, self.arrays[name + OFFSETS]
        starts, stops = offsets[rows], offsets[rows + 1]
        if (starts > stops).any() or stops.max(initial=0) > len(content):
            raise IndexFolderError(f"{self._folder / name}{OFFSETS}.npy is damaged", hint=REMEDY)
        return [
            bytes(content[start:stop])
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]

    def rows_of(self, ids: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each id; -1 if there is none."""
        keys, wanted = self.arrays[IDS + KEYS], hashes(ids)
        starts, stops = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
        rows = np.full(len(ids), -1, dtype=np.int64)
        # Other ids may have the same hash, so the ids themselves must be compared; nearly always it is one.
        for more in range(int((stops - starts).max(initial=0))):
            left = np.flatnonzero((rows < 0) & (starts + more < stops))
            suspects = self.arrays[IDS + ROWS][starts[left] + more]
            for place, row, found in zip(
                left.tolist(), suspects, self.strings(IDS, suspects), strict=True
            ):
                if found == ids[place]:
                    rows[place] = row
        return rows

    def find(self, key: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows that have a key of their fields, and their numbers."""
        keys, wanted = self.arrays[FIELDS + KEYS], np.uint64(key)
        here = slice(np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right"))
        return self.arrays[FIELDS + ROWS][here], self.arrays[FIELDS + VALUES][here]


def _mapped(folder: Path, name: str, form: Form) -> NDArray[Any]:
    path, dtype, shape = folder / f"{name}.npy", np.dtype(form[0]), tuple(form[1])
    header = array_header(dtype, shape)
    wanted = len(header) + dtype.itemsize * prod(shape)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size != wanted:
            raise IndexFolderError(
                f"{path} is damaged: it has {size} bytes instead of {wanted}", hint=REMEDY
            )
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if content[: len(header)] != header:
        raise IndexFolderError(
            f"{path} is damaged: its header is not the one that was written", hint=REMEDY
        )
    return np.frombuffer(content, np.uint8)[len(header) :].view(dtype).reshape(shape)


def write_generation(
    folder: Path,
    manifest: Manifest,
    documents: "Iterable[Batch] | Snapshot",
    report: Report,
    save_model: SaveModel | None = None,
    recode: Recode | None = None,
) -> None:
    """Write a generation, an empty log and perhaps a model, then the manifest that makes them the index; then clear up.

    The documents of a snapshot keep their codes, unless `recode` gives them others.
    Memory grows with the documents by what finds them (16 bytes per id, 24 per label and number) and by what the
    back end needs to be built; texts and codes are not held.
    """
    manifest = replace(manifest, generation=next_generation(folder), token=secrets.token_hex(8))
    try:
        if (
            save_model is not None
        ):  # to a new folder, as the one of an old generation may be damaged
            manifest = replace(manifest, model=f"model-{manifest.generation}")
            save_model(folder / manifest.model)
        with ExitStack() as stack:
            writer = GenerationWriter(folder / manifest.folder, manifest, stack)
            if isinstance(documents, Iterable):
                for batch in documents:
                    writer.add(
                        schema.columns_of(batch, manifest.bits, manifest.dim, 1 + writer.documents)
                    )
            else:
                writer.copy(documents, recode)
            manifest = writer.finish(report)
        new_log(folder / manifest.log, manifest.token)
        sync(folder)
        write_manifest(folder, manifest)
    finally:
        with suppress(IndexFolderError):  # a new folder without a manifest is removed as a whole
            remove_leftovers(folder)


class GenerationWriter:
    """Writes the arrays and tables of a generation; all is on the disk after `finish`."""

    def __init__(self, folder: Path, manifest: Manifest, stack: ExitStack) -> None:
        self._folder, self._manifest, self._stack = folder, manifest, stack
        self._writers: dict[str, ArrayWriter] = {}
        self._tables = {name: [np.empty(0, kind)] for name, kind in _TABLES.items()}
        self._field_names: dict[str, None] = {}
        self._last_serial = 0  # that a document was given, if some are copied
        folder.mkdir()
        for name, kind in manifest.kinds.items():
            self._open(name, kind)
        for name in (IDS, RECORDS):
            self._open(name, np.dtype("u1"))
            self._open(name + OFFSETS, np.dtype("<i8")).append(np.zeros(1))

    @property
    def documents(self) -> int:
        return self._writers[CODES].length

    def add(self, columns: Columns, found: int = 0) -> None:
        """Add documents, and what finds them; the tables have the first `found` of them already."""
        first, ids = self.documents + found, columns.ids[found:]
        table = np.empty(len(ids), _TABLES[IDS])
        table[KEYS], table[ROWS] = hashes(ids), np.arange(first, first + len(ids))
        self._tables[IDS].append(table)
        entries = []
        for row, record in enumerate(columns.records[found:], first):
            fields = schema.fields_in(record)
            entries += [(key, row, number) for key, number in schema.entries_of(fields)]
            self._field_names.update(dict.fromkeys(fields))
        self._tables[FIELDS].append(np.array(entries, _TABLES[FIELDS]))
        for name, array in columns.arrays.items():
            self._writers[name].append(array)
        for name, strings in ((IDS, columns.ids), (RECORDS, columns.records)):
            ends = np.cumsum([len(written) for written in strings], dtype=np.int64)
            self._writers[name + OFFSETS].append(self._writers[name].length + ends)
            self._writers[name].append(np.frombuffer(b"".join(strings), dtype=np.uint8))

    def copy(self, snapshot: "Snapshot", recode: Recode | None) -> None:
        """Add the documents of a snapshot, in their order and with their serial numbers."""
        base, alive = snapshot.base, snapshot.select(())
        base.verify()  # a flipped byte must not get a new checksum
        self._field_names, self._last_serial = (
            dict.fromkeys(snapshot.manifest.field_names),
            snapshot.last_serial,
        )
        places = np.cumsum(alive) - 1  # the new rows
        for name, kind in _TABLES.items():
            kept = alive[base.arrays[name + ROWS]]
            table = np.empty(np.count_nonzero(kept), kind)
            for part in kind.names or ():
                table[part] = base.arrays[name + part][kept]
            table[ROWS] = places[table[ROWS]]
            self._tables[name].append(table)
        for rows in snapshot.blocks(_COPIED):
            columns = snapshot.columns(rows)
            if recode is not None:
                columns.arrays.update(recode(rows))
            self.add(columns, found=int(np.searchsorted(rows, base.documents)))

    def finish(self, report: Report) -> Manifest:
        """Write the tables and a back end's arrays; returns the manifest with all that it says of the documents."""
        manifest = self._manifest
        self._stack.close()
        for name in _TABLES:
            self._write_table(name)
        backend = manifest.meta.get("backend", "flat")
        for name, array in build_arrays(
            backend, self._mapped(CODES), manifest.bits, report
        ).items():
            self._open(DERIVED + name, np.dtype((array.dtype, array.shape[1:]))).append(array)
        self._stack.close()
        for path in (*self._folder.iterdir(), self._folder):
            sync(path)
        return replace(
            manifest,
            documents=self.documents,
            last_serial=max(self._last_serial, self.documents),
            field_names=list(self._field_names),
            arrays={name: self._form(name) for name in self._writers},
        )

    def _write_table(self, name: str) -> None:
        """Write a table, sorted by its keys; entries of one key stay in the order they came in."""
        table = np.concatenate(self._tables.pop(name))
        order = np.argsort(table[KEYS], kind="stable")
        for part in table.dtype.names or ():
            self._open(name + part, table[part].dtype).append(table[part][order])
        if name == IDS:
            self._need_unique(table[KEYS][order], table[ROWS][order])

    def _need_unique(self, keys: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        """Raise if two documents have one id: they are beside each other in the table, as their keys are equal."""
        ids, offsets = self._mapped(IDS), self._mapped(IDS + OFFSETS)
        for place in np.flatnonzero(keys[1:] == keys[:-1]).tolist():
            one, other = (
                ids[offsets[row] : offsets[row + 1]].tobytes() for row in rows[place : place + 2]
            )
            if one == other:
                raise same_id(schema.id_of(one), rows[place], rows[place + 1])

    def _mapped(self, name: str) -> NDArray[Any]:
        return _mapped(self._folder, name, self._form(name))

    def _form(self, name: str) -> Form:
        writer = self._writers[name]
        return writer.dtype.str, [writer.length, *writer.row], writer.checksum

    def _open(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        writer = self._writers[name] = ArrayWriter(
            self._folder / f"{name}.npy", kind.base, kind.shape
        )
        self._stack.enter_context(writer)
        return writer
