"""What came after a generation: documents that the log added, in memory, and marks for those it deleted."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.store.fields import fields_in, keys_of
from parabit.index.store.ids import rows_in
from parabit.index.store.schema import CODES, IDS, OFFSETS, RECORDS, Arrays, Layout, Ragged, Schema, taken


class Growing:
    """An array that grows at its end; what was taken of it before stays as it was."""

    def __init__(self, layout: Layout) -> None:
        self._room = np.zeros((0, *layout.row), dtype=layout.dtype)
        self.length = 0

    @property
    def array(self) -> NDArray[Any]:
        view = self._room[: self.length]
        view.flags.writeable = False
        return view

    def extend(self, more: NDArray[Any]) -> None:
        """Add rows; twice the room each time there is none, so that a row costs the same however many there are."""
        needed = self.length + len(more)
        if needed > len(self._room):
            room = np.zeros((max(needed, 2 * len(self._room), 16), *self._room.shape[1:]), dtype=self._room.dtype)
            room[: self.length] = self._room[: self.length]
            self._room = room
        self._room[self.length : needed] = more
        self.length = needed


class Marks:
    """Which rows are alive. No mask is made before something is deleted, and none that was given out changes."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.dead = 0
        self._alive: NDArray[np.bool_] | None = None
        self._given = False

    @property
    def alive(self) -> NDArray[np.bool_] | None:
        self._given = True
        return self._alive

    def has(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each is alive."""
        return np.ones(len(rows), dtype=np.bool_) if self._alive is None else self._alive[rows]

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Mark rows as deleted; each is alive before."""
        if not len(rows):
            return
        if self._alive is None:
            self._alive = np.ones(self.rows, dtype=np.bool_)
        elif self._given:
            self._alive = self._alive.copy()
        self._given = False
        self._alive[rows] = False
        self.dead += len(rows)

    def extend(self, count: int) -> None:
        """Add rows, alive."""
        self.rows += count
        if self._alive is not None and count:
            self._alive = np.concatenate([self._alive, np.ones(count, dtype=np.bool_)])
            self._given = False


class Tail:
    """The documents that the log added, counted from 0; the deleted ones keep their place."""

    def __init__(self, schema: Schema) -> None:
        self._growing = {name: Growing(layout) for name, layout in schema.layouts.items()}
        for name, array in self._growing.items():
            if name.endswith(OFFSETS):
                array.extend(np.zeros(1, dtype=np.int64))
        self.marks = Marks(0)
        self._rows: dict[bytes, int] = {}  # of the ids that are alive
        # Made of the records when somebody asks for a field: a log should be read quickly.
        self._keys, self._key_rows = Growing(Layout(np.dtype(np.uint64))), Growing(Layout(np.dtype(np.int64)))
        self._names: dict[str, None] = {}
        self._keyed = 0
        self._indexing = Lock()  # readers in several threads may be the first to ask

    @property
    def documents(self) -> int:
        """How many rows, deleted ones among them."""
        return self._growing[CODES].length

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._growing[name].array

    def extend(self, arrays: Arrays) -> None:
        """Add documents."""
        first = self.documents
        for name, array in arrays.items():
            if name.endswith(OFFSETS):
                self._growing[name].extend(array[1:] + self._growing[name.removesuffix(OFFSETS)].length)
        for name, array in arrays.items():
            if not name.endswith(OFFSETS):
                self._growing[name].extend(array)
        for row, written in enumerate(rows_in(Ragged(arrays[IDS], arrays[IDS + OFFSETS])), first):
            self._rows[written] = row
        self.marks.extend(self.documents - first)

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Delete rows."""
        for written in self.read(IDS, rows):
            del self._rows[written]
        self.marks.kill(rows)

    def rows_of(self, ids: Sequence[bytes]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none that is alive."""
        return np.array([self._rows.get(written, -1) for written in ids], dtype=np.int64)

    def read(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        """Some rows of a ragged array of bytes."""
        return rows_in(taken(Ragged(self[name], self[name + OFFSETS]), rows))

    def rows_with(self, key: int) -> NDArray[np.int64]:
        """The rows that have a field's key."""
        self._index()
        rows: NDArray[np.int64] = self._key_rows.array[self._keys.array == np.uint64(key)]
        return rows

    @property
    def field_names(self) -> list[str]:
        """The names of all fields."""
        self._index()
        return list(self._names)

    def _index(self) -> None:
        with self._indexing:
            self._index_new()

    def _index_new(self) -> None:
        rows = np.arange(self._keyed, self.documents)
        for row, record in zip(rows, self.read(RECORDS, rows), strict=True):
            fields = fields_in(record)
            keys = np.array(list(keys_of(fields)), dtype=np.uint64)
            self._keys.extend(keys)
            self._key_rows.extend(np.full(len(keys), row))
            self._names.update(dict.fromkeys(fields))
        self._keyed += len(rows)
