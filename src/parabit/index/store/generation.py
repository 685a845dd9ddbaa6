"""Writing a generation: all documents of an index at some time, as files that are written once and never changed."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.code_search import build_arrays
from parabit.index.store.arrays import KEYS, OFFSETS, ROWS, VALUES, Form, MappedArrays
from parabit.index.store.log import new_log
from parabit.index.store.manifest import (
    Manifest,
    generation_folder,
    log_file,
    read_manifest,
    remove,
    write_manifest,
)
from parabit.index.store.schema import (
    CODES,
    IDS,
    RECORDS,
    Arrays,
    Batch,
    Columns,
    columns_of,
    entries_of,
    hashes,
    id_of,
)
from parabit.index.store.snapshot import DERIVED, FIELDS, Snapshot
from parabit.progress import Report
from parabit.storage import ArrayWriter, sync

_ROWS = 1 << 13  # documents that are copied at a time
_TABLES = {
    IDS: np.dtype([(KEYS, "<u8"), (ROWS, "<i8")]),
    FIELDS: np.dtype([(KEYS, "<u8"), (ROWS, "<i8"), (VALUES, "<f8")]),
}

Recode = Callable[[NDArray[np.int64]], Arrays]  # from rows to other codes and extra arrays
SaveModel = Callable[[Path], None]


def write_generation(
    folder: Path,
    manifest: Manifest,
    documents: Iterable[Batch] | Snapshot,
    report: Report,
    save_model: SaveModel | None = None,
    recode: Recode | None = None,
) -> Manifest:
    """Write a generation, an empty log and perhaps a model, and then the manifest that makes them the index.

    The documents of a snapshot keep their codes, unless `recode` gives them others.
    Memory grows with the documents by what finds them (16 bytes per id, 24 per label and number) and by what the
    back end needs to be built; texts and codes are not held.
    """
    number, token, model = manifest.generation, secrets.token_hex(8), manifest.model
    try:
        if save_model is not None:  # to a new folder, as the one of an old generation may be damaged
            model = f"model-{number}"
            remove(folder / model)  # what a killed writer has left
            save_model(folder / model)
        with ExitStack() as stack:
            writer = GenerationWriter(generation_folder(folder, number), manifest, stack)
            if isinstance(documents, Snapshot):
                writer.copy(documents, recode)
            else:
                for batch in documents:
                    columns = columns_of(batch, manifest.bits, manifest.dim, 1 + writer.documents)
                    writer.add(columns, batch.fields or [])
            arrays = writer.finish(manifest.meta.get("backend", "flat"), manifest.bits, report)
        new_log(log_file(folder, number), token)
        sync(folder)
        manifest = replace(
            manifest,
            model=model,
            token=token,
            documents=writer.documents,
            last_serial=max(manifest.last_serial, writer.documents),
            field_names=list(writer.field_names),
            arrays=arrays,
        )
        write_manifest(folder, manifest)
    except BaseException:
        with suppress(IndexFolderError):
            if read_manifest(folder).token == token:  # it is the index already
                raise
        for path in (generation_folder(folder, number), log_file(folder, number)):
            remove(path)
        if save_model is not None:
            remove(folder / f"model-{number}")
        raise
    return manifest


class GenerationWriter:
    """Writes the arrays and tables of a generation; all is on the disk after `finish`."""

    def __init__(self, folder: Path, manifest: Manifest, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._writers: dict[str, ArrayWriter] = {}
        self._tables = {name: [np.empty(0, kind)] for name, kind in _TABLES.items()}
        self.field_names: dict[str, None] = {}
        folder.mkdir()
        for name, kind in manifest.kinds.items():
            self._open(name, kind)
        for name in (IDS, RECORDS):
            self._open(name, np.dtype("u1"))
            self._open(name + OFFSETS, np.dtype("<i8")).append(np.zeros(1))

    @property
    def documents(self) -> int:
        """How many there are so far."""
        return self._writers[CODES].length

    def add(self, columns: Columns, fields: Sequence[Mapping[str, Any]], found: int = 0) -> None:
        """Add documents, and what finds them; the tables have the first `found` of them already."""
        first, ids = self.documents + found, columns.ids[found:]
        table = np.empty(len(ids), _TABLES[IDS])
        table[KEYS], table[ROWS] = hashes(ids), np.arange(first, first + len(ids))
        self._tables[IDS].append(table)
        entries = [(key, row, number) for row, some in enumerate(fields, first) for key, number in entries_of(some)]
        self._tables[FIELDS].append(np.array(entries, _TABLES[FIELDS]))
        for some in fields:
            self.field_names.update(dict.fromkeys(some))
        for name, array in columns.arrays.items():
            self._writers[name].append(array)
        for name, strings in ((IDS, columns.ids), (RECORDS, columns.records)):
            ends = np.cumsum([len(written) for written in strings], dtype=np.int64)
            self._writers[name + OFFSETS].append(self._writers[name].length + ends)
            self._writers[name].append(np.frombuffer(b"".join(strings), dtype=np.uint8))

    def copy(self, snapshot: Snapshot, recode: Recode | None = None) -> None:
        """Add the documents of a snapshot, in their order and with their serial numbers."""
        base, alive = snapshot.base, snapshot.select(())
        base.arrays.verify()  # a flipped byte must not get a new checksum
        self.field_names = dict.fromkeys(snapshot.manifest.field_names)
        places = np.cumsum(alive) - 1  # the new rows
        for name, kind in _TABLES.items():
            kept = alive[base.arrays[name + ROWS]]
            table = np.empty(np.count_nonzero(kept), kind)
            for part in kind.names or ():
                table[part] = base.arrays[name + part][kept]
            table[ROWS] = places[table[ROWS]]
            self._tables[name].append(table)
        for rows in snapshot.blocks(_ROWS):
            columns = snapshot.columns(rows)
            if recode is not None:
                columns.arrays.update(recode(rows))
            old = int(np.searchsorted(rows, base.documents))
            self.add(columns, snapshot.fields_of(rows[old:]), found=old)

    def finish(self, backend: str, bits: int, report: Report) -> dict[str, Form]:
        """Write the tables and a back end's arrays; returns what the manifest says of all arrays."""
        self._stack.close()
        for name in _TABLES:
            self._write_table(name)
        for name, array in build_arrays(backend, self._mapped(CODES)[CODES], bits, report).items():
            self._open(DERIVED + name, np.dtype((array.dtype, array.shape[1:]))).append(array)
        self._stack.close()
        for path in (*self._folder.iterdir(), self._folder):
            sync(path)
        return {name: self._form(name) for name in self._writers}

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
        mapped = self._mapped(IDS, IDS + OFFSETS)
        for place in np.flatnonzero(keys[1:] == keys[:-1]).tolist():
            one, other = mapped.strings(IDS, rows[place : place + 2])
            if one == other:
                raise IndexFolderError(
                    f"two documents have the id {id_of(one)!r}: numbers {rows[place]} and {rows[place + 1]}, from 0",
                    hint="choose another field with --id-field; --id-field '' names records by path and line",
                )

    def _mapped(self, *names: str) -> MappedArrays:
        return MappedArrays(self._folder, {name: self._form(name) for name in names})

    def _form(self, name: str) -> Form:
        writer = self._writers[name]
        return Form(writer.dtype.str, [writer.length, *writer.row], writer.checksum)

    def _open(self, name: str, kind: np.dtype[Any]) -> ArrayWriter:
        writer = self._writers[name] = ArrayWriter(self._folder / f"{name}.npy", kind.base, kind.shape)
        self._stack.enter_context(writer)
        return writer
