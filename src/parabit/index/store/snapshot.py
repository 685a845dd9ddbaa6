"""The documents of an index at one moment: a generation on disk, and in memory what the log added
since.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexDamagedError
from parabit.index.filters import ORDER, UNEQUAL, Condition, ids_among, need_field, no_numbers
from parabit.index.results import Found
from parabit.index.store import schema
from parabit.index.store.damage import REMEDY
from parabit.index.store.generation import OFFSETS, Generation
from parabit.index.store.manifest import Manifest
from parabit.index.store.schema import (
    CODES,
    IDS,
    RECORDS,
    SERIALS,
    VECTORS,
    Change,
    Columns,
    Id,
    Value,
)
from parabit.untrusted import LARGEST_COUNT

_BLOCK_BYTES = 16 << 20  # of records that are read together


def _last_of(serials: NDArray[np.uint64], before: int) -> int:
    """The last of the serial numbers that a log gave some documents: they ascend."""
    ascends = (serials[1:] > serials[:-1]).all() and int(serials[0]) > before
    last = int(serials[-1])
    if not ascends or last > LARGEST_COUNT:
        raise IndexDamagedError("a log is damaged: serial numbers must ascend", hint=REMEDY)
    return last


class Tail:
    """The documents that the log added, their rows counted from 0. It only grows: each snapshot
    sees a beginning of it.

    What finds documents by their fields is made when it is first needed, so that a log is read
    quickly.
    """

    def __init__(self, kinds: dict[str, np.dtype[Any]]) -> None:
        self.arrays = {
            name: np.zeros(16, kind) for name, kind in kinds.items()
        }  # with room at their ends
        self.ids: list[bytes] = []
        self.records: list[bytes] = []
        self.rows: dict[
            bytes, list[int]
        ] = {}  # that an id has had, ascending; all but the last were deleted
        self._lock = Lock()  # threads that read may be the first to need what follows
        self._found = 0  # documents whose fields are in these
        self._entries: dict[int, tuple[list[int], list[float]]] = {}  # rows and numbers by key
        self._names: dict[str, None] = {}  # of fields

    def extend(self, added: Columns) -> None:
        first, end = len(self.ids), len(self.ids) + len(added.ids)
        for name, array in added.arrays.items():
            room = self.arrays[name]
            if end > len(
                room
            ):  # twice as much, so that a row costs the same however many there are
                room = self.arrays[name] = np.resize(
                    room, (max(end, 2 * len(room)), *room.shape[1:])
                )
            room[first:end] = array
        for row, identity in enumerate(added.ids, first):
            self.rows.setdefault(identity, []).append(row)
        self.ids += added.ids
        self.records += added.records

    def find(self, key: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows that have a key of their fields, and their numbers."""
        with self._lock:
            self._find_new()
            rows, numbers = self._entries.get(key, ([], []))
            return np.array(rows, dtype=np.int64), np.array(numbers)

    def names(self) -> list[str]:
        with self._lock:
            self._find_new()
            return list(self._names)

    def _find_new(self) -> None:
        for record in self.records[self._found :]:
            fields = schema.fields_in(record)
            for key, number in schema.entries_of(fields):
                rows, numbers = self._entries.setdefault(key, ([], []))
                rows.append(self._found)
                numbers.append(number)
            self._names.update(dict.fromkeys(fields))
            self._found += 1


class Snapshot:
    """The documents of an index at one moment. Later changes are not seen; rows stay valid as long
    as it lives.

    A row is a document's place: first those of the generation, then those that came later; deleted
    ones keep theirs.
    """

    def __init__(
        self,
        manifest: Manifest,
        base: Generation,
        tail: Tail,
        added: int = 0,
        alive: NDArray[np.bool_] | None = None,
    ) -> None:
        self.manifest, self.base, self.tail = manifest, base, tail
        self.bits = manifest.bits
        self.added = added  # rows that came after the generation, deleted ones among them
        self.rows = base.documents + added
        self.alive = alive  # (rows,), None if nothing was deleted
        self.documents = self.rows if alive is None else int(np.count_nonzero(alive))

    def after(self, changes: Sequence[Change]) -> "Snapshot":
        """What the documents are after some changes; only for the newest snapshot."""
        deleted = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(change.deleted for change in changes)]
        )
        rows, serial = self.rows, self.last_serial
        for change in changes:
            if change.deleted.min(initial=0) < 0 or change.deleted.max(initial=-1) >= rows:
                raise IndexDamagedError(
                    f"the log of generation {self.manifest.generation} is damaged: it deletes a "
                    "document that was never there",
                    hint=REMEDY,
                )
            if len(change.added.ids):
                serial = _last_of(change.added.arrays[SERIALS], serial)
            rows += len(change.added.ids)
            self.tail.extend(change.added)
        added, alive = len(self.tail.ids), None
        if self.alive is not None or len(deleted):
            alive = np.ones(self.base.documents + added, dtype=np.bool_)
            alive[: self.rows] = True if self.alive is None else self.alive
            alive[deleted] = False
        return Snapshot(self.manifest, self.base, self.tail, added, alive)

    @cached_property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return list(dict.fromkeys([*self.manifest.field_names, *self.tail.names()]))

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each id; -1 if there is no such document."""
        written = [schema.id_bytes(identity) for identity in ids]
        rows = self.base.rows_of(written)
        for place, identity in enumerate(written if self.added else ()):
            for row in self.tail.rows.get(
                identity, ()
            ):  # of those that an id has had, the last counts
                if row < self.added:
                    rows[place] = self.base.documents + row
        return self._if_alive(rows)

    def ids_of(self, rows: NDArray[np.int64]) -> list[Id]:
        """The ids in some rows."""
        return [schema.id_of(written) for written in self._strings(IDS, rows)]

    def fields_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The fields, text among them, of the documents in some rows."""
        return [schema.fields_in(record) for record in self._strings(RECORDS, rows)]

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes in some rows, (rows, bytes)."""
        return self._fixed(CODES, rows)

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """The vectors in some rows, (rows, dim)."""
        return self._fixed(VECTORS, rows)

    def columns(self, rows: NDArray[np.int64]) -> Columns:
        """All that is stored of the documents in some rows."""
        arrays = {name: self._fixed(name, rows) for name in self.manifest.kinds}
        return Columns(self._strings(IDS, rows), self._strings(RECORDS, rows), arrays)

    def select(self, where: Sequence[Condition]) -> NDArray[np.bool_]:
        """Which rows meet all conditions, (rows,); deleted documents do not."""
        selected = np.ones(self.rows, dtype=np.bool_) if self.alive is None else self.alive.copy()
        for condition in where:
            need_field(condition, self.field_names)
            selected &= self._meeting(condition)
        return selected

    def _meeting(self, condition: Condition) -> NDArray[np.bool_]:
        field, operator, values = condition
        if operator in ORDER:
            numbers = self.numbers(field)
            if np.isnan(numbers).all():
                raise no_numbers(field)
            ordered: NDArray[np.bool_] = ORDER[operator](
                numbers, values[0]
            )  # False where it is NaN
            return ordered
        mask = np.zeros(self.rows, dtype=np.bool_)
        if field == "id":
            rows = self.rows_of(ids_among(values))
            mask[rows[rows >= 0]] = True
        else:
            for value in values:
                mask[self._rows_having(field, value)] = True
        return ~mask if operator == UNEQUAL else mask

    def first(self, most: int, allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """The first rows of those that a filter lets through."""
        return np.flatnonzero(self.select(()) if allowed is None else allowed)[:most]

    def count(self, field: str, value: Value) -> int:
        """How many documents have this value in a field, or in its list of values."""
        return len(self._rows_having(field, value))

    def numbers(self, field: str) -> NDArray[np.float64]:
        """The numbers in a field, (rows,), with NaN if a document has none; dates as seconds since
        1970.
        """
        rows, found = self._find(schema.number_key(field))
        if len(rows) == self.rows:
            return found
        numbers = np.full(self.rows, np.nan)
        numbers[rows] = found
        return numbers

    @cached_property
    def serials(self) -> NDArray[np.int64]:
        """The serial numbers of all rows, ascending, (rows,). A document keeps its number when the
        index is merged.
        """
        base = self.base.arrays[SERIALS]
        serials = (
            np.concatenate([base, self.tail.arrays[SERIALS][: self.added]]) if self.added else base
        )
        return serials.view(np.int64)

    def rows_of_serials(self, serials: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each serial number; -1 if its document was deleted or there never was one."""
        if not self.rows:
            return np.full(len(serials), -1, dtype=np.int64)
        first = self.serials[0]
        is_whole = (
            self.serials[-1] - first == self.rows - 1
        )  # no number is missing, as in an index that was built
        rows = (serials - first if is_whole else self.serials.searchsorted(serials)).clip(
            0, self.rows - 1
        )
        return self._if_alive(np.where(self.serials[rows] == serials, rows, -1))

    @property
    def last_serial(self) -> int:
        """The highest serial number that a document was given."""
        return (
            int(self.tail.arrays[SERIALS][self.added - 1])
            if self.added
            else self.manifest.last_serial
        )

    def find(
        self,
        codes: NDArray[np.uint8],
        most: int | None,
        radius: int | None,
        allowed: NDArray[np.bool_] | None = None,
        backend: str = "auto",
    ) -> Found:
        """The nearest `most` documents of each code, or all within the radius, or both; of
        `allowed` rows only.
        """
        if self.alive is not None:
            allowed = self.alive if allowed is None else allowed & self.alive
        tail = self.tail.arrays[CODES][: self.added]
        try:
            return self.base.searcher.search(codes, most, radius, allowed, backend, tail)
        except IndexError as problem:  # what a back end built leads beyond the codes
            raise IndexDamagedError(
                f"what finds the codes of generation {self.manifest.generation} is damaged",
                hint=REMEDY,
            ) from problem

    def sample(self, most: int) -> NDArray[np.int64]:
        """The rows of all documents, ascending; of more than `most` a random sample, always the
        same.
        """
        rows = self.first(self.rows, None)
        if len(rows) <= most:
            return rows
        return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))

    def blocks(self, documents: int) -> Iterator[NDArray[np.int64]]:
        """The rows of all documents, ascending, in blocks of at most so many documents and 16 MB of
        records.

        A document that is larger comes alone: memory must not grow with the size of documents.
        """
        return self.blocks_of(self.first(self.rows, None), documents)

    def blocks_of(self, rows: NDArray[np.int64], documents: int) -> Iterator[NDArray[np.int64]]:
        """Some rows, in blocks of at most so many documents and 16 MB of records."""
        start = 0
        while start < len(rows):
            block = rows[start : start + documents]
            ends = self._record_lengths(block).cumsum()
            count = max(1, int(np.searchsorted(ends, _BLOCK_BYTES, side="right")))
            yield block[:count]
            start += count

    def _record_lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many bytes the fields of some documents take."""
        lengths = np.zeros(len(rows), dtype=np.int64)
        in_base = rows < self.base.documents
        offsets = self.base.arrays[RECORDS + OFFSETS]
        lengths[in_base] = offsets[rows[in_base] + 1] - offsets[rows[in_base]]
        added = rows[~in_base] - self.base.documents
        lengths[~in_base] = [len(self.tail.records[row]) for row in added.tolist()]
        return np.maximum(lengths, 0)  # a damaged offset is found when the record is read

    def _if_alive(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows with -1 instead of those that were deleted."""
        # A row of -1 looks at the last document, and stays -1 whatever it finds.
        return rows if self.alive is None else np.where(self.alive[rows], rows, -1)

    def _find(self, key: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows that have a key, deleted ones among them, and their numbers."""
        rows, numbers = self.base.find(key)
        if self.added:
            more, their = self.tail.find(key)
            seen = more < self.added
            rows = np.concatenate([rows, self.base.documents + more[seen]])
            numbers = np.concatenate([numbers, their[seen]])
        return rows, numbers

    def _rows_having(self, field: str, value: Value) -> NDArray[np.int64]:
        rows, _ = self._find(schema.field_key(field, value))
        return rows if self.alive is None else rows[self.alive[rows]]

    def _fixed(self, name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
        in_base, base = rows < self.base.documents, self.base.arrays[name]
        if in_base.all():
            return base[rows]
        found = np.empty((len(rows), *base.shape[1:]), dtype=base.dtype)
        found[in_base] = base[rows[in_base]]
        found[~in_base] = self.tail.arrays[name][rows[~in_base] - self.base.documents]
        return found

    def _strings(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        tail, first = self.tail.ids if name == IDS else self.tail.records, self.base.documents
        old = iter(self.base.strings(name, rows[rows < first]))
        return [next(old) if row < first else tail[row - first] for row in rows.tolist()]
