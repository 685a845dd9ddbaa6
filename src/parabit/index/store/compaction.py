"""Writing a new generation: of documents that come in batches, or of all that are alive in an open index."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.store.fields import fields_in
from parabit.index.store.generation import Derive, GenerationWriter
from parabit.index.store.log import new_log
from parabit.index.store.manifest import Manifest, generation_folder, log_file
from parabit.index.store.schema import OFFSETS, RECORDS, Arrays, Batch, Ragged, Schema, taken
from parabit.index.store.snapshot import State
from parabit.storage import sync

_ROWS = 1 << 13  # documents copied at a time
_ENTRIES = 1 << 20  # entries of a table copied at a time


def write_generation(
    folder: Path,
    number: int,
    schema: Schema,
    fill: Callable[[GenerationWriter], None],
    derive: Derive | None,
    fingerprint: str,
    meta: Mapping[str, Any],
    last_serial: int | None = None,
) -> Manifest:
    """Write a generation and an empty log; they count once the manifest that this gives is written."""
    token = secrets.token_hex(8)
    try:
        with GenerationWriter(generation_folder(folder, number), schema) as writer:
            fill(writer)
            written = writer.finish(derive)
        new_log(log_file(folder, number), token)
        sync(folder)
    except BaseException:
        remove_generation(folder, number)
        raise
    return Manifest(
        bits=schema.bits,
        fingerprint=fingerprint,
        meta=dict(meta),
        extra=schema.extra,
        generation=number,
        token=token,
        documents=written.documents,
        last_serial=written.documents if last_serial is None else last_serial,
        field_names=written.field_names,
        arrays=written.forms,
        checksum=written.checksum,
    )


def remove_generation(folder: Path, number: int) -> None:
    """Remove a generation that does not count."""
    shutil.rmtree(generation_folder(folder, number), ignore_errors=True)
    log_file(folder, number).unlink(missing_ok=True)


def fill_with(batches: Iterable[Batch]) -> Callable[[GenerationWriter], None]:
    """Fill a generation with documents."""

    def fill(writer: GenerationWriter) -> None:
        for batch in batches:
            writer.add(batch)

    return fill


def fill_from(state: State) -> Callable[[GenerationWriter], None]:
    """Fill a generation with the documents that are alive, in the order of their rows."""

    def fill(writer: GenerationWriter) -> None:
        # A byte that has flipped must not get a new checksum, and so become right.
        state.base.arrays.verify()
        _copy_base(state, writer)
        _copy_tail(state, writer)

    return fill


def _copy_base(state: State, writer: GenerationWriter) -> None:
    alive, size = state.marks.alive, state.base.documents
    for start in range(0, size, _ROWS):
        rows = np.arange(start, min(start + _ROWS, size))
        rows = rows if alive is None else rows[alive[rows]]
        writer.append(_taken(state.schema, state.base.arrays.__getitem__, rows))
    place = None if alive is None else np.cumsum(alive) - 1  # of each row that is alive, among these
    for table, into in ((state.base.ids, writer.ids), (state.base.fields, writer.fields)):
        for start in range(0, len(table.keys), _ENTRIES):
            keys, rows = table.keys[start : start + _ENTRIES], table.rows[start : start + _ENTRIES]
            if alive is not None and place is not None:
                kept = alive[rows]
                keys, rows = keys[kept], place[rows[kept]]
            into.add(keys, rows)
    writer.name_fields(state.manifest.field_names)


def _copy_tail(state: State, writer: GenerationWriter) -> None:
    alive, size = state.tail.marks.alive, state.tail.documents
    for start in range(0, size, _ROWS):
        rows = np.arange(start, min(start + _ROWS, size))
        rows = rows if alive is None else rows[alive[rows]]
        arrays = _taken(state.schema, state.tail.__getitem__, rows)
        fields = [fields_in(record) for record in state.tail.read(RECORDS, rows)]
        first = writer.documents
        writer.append(arrays)
        writer.index(arrays, fields, first)


def _taken(schema: Schema, array: Callable[[str], NDArray[Any]], rows: NDArray[np.int64]) -> Arrays:
    arrays: Arrays = {}
    for name in schema.layouts:
        if name + OFFSETS in schema.layouts:
            arrays[name], arrays[name + OFFSETS] = taken(Ragged(array(name), array(name + OFFSETS)), rows)
        elif not name.endswith(OFFSETS):
            arrays[name] = array(name)[rows]
    return arrays
