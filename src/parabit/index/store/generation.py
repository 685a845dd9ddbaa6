"""A generation: all documents of an index at some time, as `.npy` files that are written once and
never changed.

The manifest has a checksum of each file. Ids, and fields as JSON, lie one after the other in a file
of bytes, and a file of offsets says where each begins. Two tables, sorted by 64-bit keys, find rows
by their ids and their fields.

The files may come from a stranger. Types and shapes are compared with what the manifest asks for
before anything is mapped, so that no library reads beyond an array; and numbers that lead from one
array into another are compared with its length where they are used.
"""

import mmap
import secrets
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexDamagedError, IndexFolderError
from parabit.index.code_search import BACKENDS, Searcher, build_arrays
from parabit.index.store import schema
from parabit.index.store.damage import damaged, need_folder, open_regular
from parabit.index.store.log import new_log
from parabit.index.store.manifest import (
    MANIFEST,
    Form,
    Manifest,
    home_of,
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

ANY_LENGTH = -1  # of an array whose length the manifest does not decide

Recode = Callable[
    [NDArray[np.int64]], dict[str, NDArray[Any]]
]  # from rows to other codes and extra arrays
SaveModel = Callable[[Path], None]
# Adds what else belongs to an index, such as its words, to the folder of a generation that is
# written but not yet named by a manifest; returns the manifest that names that, too.
Complete = Callable[[Path, Manifest], Manifest]
Shape: TypeAlias = tuple[int, ...]


class Generation:
    """The documents of a generation, memory-mapped: opened at once whatever their size.

    Opening checks that every file has the type, the size and the header that the manifest asks for,
    and every byte of a small generation.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.documents = manifest.documents
        self._folder = folder / manifest.folder
        self._forms = manifest.arrays
        need_folder(self._folder)
        _check_forms(manifest, self._folder)
        self._mapped: dict[str, _MappedFile] = {
            name: _MappedFile(self._folder / f"{name}.npy", form)
            for name, form in manifest.arrays.items()
        }
        self.arrays = {name: mapped.array for name, mapped in self._mapped.items()}
        self._lengths = [(mapped.length_now, mapped) for mapped in self._mapped.values()]
        self.size = sum(array.nbytes for array in self.arrays.values())
        if self.size <= _SMALL:
            self.verify()
        derived = {
            name.removeprefix(DERIVED): array
            for name, array in self.arrays.items()
            if name.startswith(DERIVED)
        }
        # It keeps the back ends that it has opened.
        self.searcher = Searcher(self.arrays[CODES], manifest.bits, derived)

    def verify(self) -> None:
        """Raise unless every byte is what was written."""
        self.check_lengths()
        for name, (_, _, checksum) in self._forms.items():
            if zlib.crc32(self.arrays[name].data) != checksum:
                raise self._damaged(name)
        for name in (IDS, RECORDS):
            offsets = self.arrays[name + OFFSETS]
            is_whole = offsets[0] == 0 and offsets[-1] == len(self.arrays[name])
            if not is_whole or (offsets[1:] < offsets[:-1]).any():
                raise self._damaged(name + OFFSETS)

    def check_lengths(self) -> None:
        """Raise if a file was cut off since it was mapped: to read what it lacks would end the
        process.
        """
        for length_now, mapped in self._lengths:
            if length_now() < mapped.length:
                raise damaged(mapped.path, "it was cut off while it was open")

    def strings(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        """The ids or the records in some rows."""
        content, offsets = self.arrays[name].data, self.arrays[name + OFFSETS]
        starts, stops = offsets[rows], offsets[rows + 1]
        outside = starts.min(initial=0) < 0 or stops.max(initial=0) > len(content)
        if outside or (starts > stops).any():
            raise self._damaged(name + OFFSETS)
        # Strings that overlap could take many times the memory of their file.
        if (stops - starts).sum() > len(content) and len(np.unique(rows)) == len(rows):
            raise self._damaged(name + OFFSETS)
        pairs = zip(starts.tolist(), stops.tolist(), strict=True)
        return [bytes(content[start:stop]) for start, stop in pairs]

    def rows_of(self, ids: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each id; -1 if there is none."""
        keys, wanted = self.arrays[IDS + KEYS], hashes(ids)
        starts = np.searchsorted(keys, wanted)
        stops = np.searchsorted(keys, wanted, side="right")
        rows = np.full(len(ids), -1, dtype=np.int64)
        # Other ids may have the same hash, so the ids themselves must be compared; nearly always it
        # is one.
        for more in range(int((stops - starts).max(initial=0))):
            missing = np.flatnonzero((rows < 0) & (starts + more < stops))
            suspects = self.arrays[IDS + ROWS][starts[missing] + more]
            self._check_rows(IDS + ROWS, suspects)
            stored = self.strings(IDS, suspects)
            for number, row, identity in zip(missing.tolist(), suspects, stored, strict=True):
                if identity == ids[number]:
                    rows[number] = row
        return rows

    def find(self, key: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows that have a key of their fields, and their numbers."""
        keys, wanted = self.arrays[FIELDS + KEYS], np.uint64(key)
        start = np.searchsorted(keys, wanted)
        stop = np.searchsorted(keys, wanted, side="right")
        rows = self.arrays[FIELDS + ROWS][start:stop]
        self._check_rows(FIELDS + ROWS, rows)
        return rows, self.arrays[FIELDS + VALUES][start:stop]

    def _check_rows(self, name: str, rows: NDArray[np.int64]) -> None:
        if len(rows) and (rows.min() < 0 or rows.max() >= self.documents):
            raise self._damaged(name)

    def _damaged(self, name: str) -> IndexDamagedError:
        return damaged(self._folder / f"{name}.npy")


class _MappedFile:
    """An array in a file, mapped into memory."""

    def __init__(self, path: Path, form: Form) -> None:
        self.path = path
        kind, shape = np.dtype(form[0]), tuple(form[1])
        header = array_header(kind, shape)
        self.length = len(header) + kind.itemsize * prod(shape)
        with open_regular(path) as file:
            length = file.seek(0, 2)
            if length != self.length:
                raise damaged(path, f"it has {length} bytes instead of {self.length}")
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.length_now = self._content.size  # asks the file system
        if self._content[: len(header)] != header:
            raise damaged(path, "its header is not the one that was written")
        content = np.frombuffer(self._content, np.uint8)[len(header) :]
        self.array: NDArray[Any] = content.view(kind).reshape(shape)


def _check_forms(manifest: Manifest, folder: Path) -> None:
    """Raise unless the arrays of a manifest are those that its documents must have, with the types
    and shapes.
    """
    expected = expected_forms(manifest)
    for name in expected.keys() | manifest.arrays.keys():
        form, wanted = manifest.arrays.get(name), expected.get(name)
        if form is None or wanted is None or not _fits(form, *wanted):
            raise damaged(folder.parent / MANIFEST, f"its array {name[:60]!r} does not fit")
    lengths = {tuple(manifest.arrays[FIELDS + column][1]) for column in (KEYS, ROWS, VALUES)}
    if len(lengths) > 1:
        raise damaged(folder.parent / MANIFEST, "a table has columns of two lengths")


def _fits(form: Form, kind: np.dtype[Any], shape: Shape) -> bool:
    if form[0] != kind.str or len(form[1]) != len(shape):
        return False
    lengths = zip(form[1], shape, strict=True)
    return all(wanted in (length, ANY_LENGTH) for length, wanted in lengths)


def expected_forms(manifest: Manifest) -> Mapping[str, tuple[np.dtype[Any], Shape]]:
    """The type and the shape of each array that the generation of a manifest has."""
    documents = manifest.documents
    forms: dict[str, tuple[np.dtype[Any], Shape]] = {}
    for name, kind in manifest.kinds.items():
        forms[name] = (kind.base, (documents, *kind.shape))
    for name in (IDS, RECORDS):
        forms[name] = (np.dtype("u1"), (ANY_LENGTH,))
        forms[name + OFFSETS] = (np.dtype("<i8"), (documents + 1,))
    for name, table in _TABLES.items():
        for column in table.names or ():
            forms[name + column] = (table[column], (documents if name == IDS else ANY_LENGTH,))
    for name, backend in BACKENDS.items():
        if any(array.startswith(f"{DERIVED}{name}.") for array in manifest.arrays):
            for array, form in backend.array_forms(documents, manifest.bits).items():
                forms[f"{DERIVED}{name}.{array}"] = form
    return forms


def write_generation(
    folder: Path,
    manifest: Manifest,
    documents: "Iterable[Batch] | Snapshot",
    report: Report,
    save_model: SaveModel | None = None,
    recode: Recode | None = None,
    complete: Complete | None = None,
    final_folder: Path | None = None,
) -> None:
    """Write a generation, an empty log and perhaps a model, then the manifest that makes them the
    index; then clear up.

    The documents of a snapshot keep their codes, unless `recode` gives them others. `complete` adds
    what else belongs to the index before the manifest is written: all of it becomes visible in that
    one step. `final_folder` is where a new index will lie, which is its home; without it this is
    another generation of the same index. Memory grows with the documents by what finds them (16
    bytes per id, 24 per label and number) and by what the back end needs to be built; texts and
    codes are not held.
    """
    token = secrets.token_hex(8)
    manifest = replace(
        manifest, generation=next_generation(folder, manifest.generation), token=token
    )
    if final_folder is not None:
        manifest = replace(manifest, home=home_of(folder, final_folder), lineage=token)
    try:
        # To a new folder, as the one of an old generation may be damaged.
        if save_model is not None:
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
        if complete is not None:
            manifest = complete(folder, manifest)
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
        """Write the tables and a back end's arrays; returns the manifest with all that it says of
        the documents.
        """
        manifest = self._manifest
        self._stack.close()
        for name in _TABLES:
            self._write_table(name)
        backend = manifest.backend
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
            field_names=tuple(self._field_names),
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
        """Raise if two documents have one id: they are beside each other in the table, as their
        keys are equal.
        """
        ids, offsets = self._mapped(IDS), self._mapped(IDS + OFFSETS)
        for place in np.flatnonzero(keys[1:] == keys[:-1]).tolist():
            one, other = (
                ids[offsets[row] : offsets[row + 1]].tobytes() for row in rows[place : place + 2]
            )
            if one == other:
                raise same_id(schema.id_of(one), rows[place], rows[place + 1])

    def _mapped(self, name: str) -> NDArray[Any]:
        return _MappedFile(self._folder / f"{name}.npy", self._form(name)).array

    def _form(self, name: str) -> Form:
        writer = self._writers[name]
        return writer.dtype.str, [writer.length, *writer.row], writer.checksum

    def _open(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        writer = self._writers[name] = ArrayWriter(
            self._folder / f"{name}.npy", kind.base, kind.shape
        )
        self._stack.enter_context(writer)
        return writer
