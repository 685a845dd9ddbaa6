"""The embedded index: a store of memory-mapped files, and the back ends that search their codes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.about import about
from parabit.index.found import Found
from parabit.index.reading import Reading
from parabit.index.searching import Searcher, derive_with
from parabit.index.store import Segment, State, Store, Value
from parabit.index.store.lock import WriterLock
from parabit.progress import Report


class Seen(Reading):
    """The documents of a store as they are at one moment; what is written later is not seen.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.array([[1], [2]], np.uint8))])
        >>> seen = Embedded.open(folder).view()
        >>> seen.ids_of(seen.find(np.array([[3]], dtype=np.uint8), most=None, radius=1).rows)
        ['a', 'b']
    """

    def __init__(self, state: State, searcher: Searcher) -> None:
        self._state, self._searcher = state, searcher
        self.segments = state.segments
        super().__init__(self.segments)
        self.bits = state.manifest.bits
        self.rows = sum(len(segment) for segment in self.segments)
        self.last_serial = state.last_serial  # the highest that a document was given
        self.rows_of, self.ids_of, self.fields_of = state.rows_of, state.ids_of, state.fields_of

    @property
    def documents(self) -> int:
        """How many there are."""
        return self._state.documents

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return self._state.field_names

    @cached_property
    def alive(self) -> NDArray[np.bool_] | None:
        """Which rows hold documents that were not deleted, (rows,); None where nothing was deleted."""
        if all(segment.alive is None for segment in self.segments):
            return None
        return np.concatenate([alive_in(segment) for segment in self.segments])

    def having(self, field: str, value: Value) -> NDArray[np.bool_]:
        """Which rows have this value in a field, or among its values if it is a list, (rows,)."""
        return np.concatenate([segment.matching(field, value) for segment in self.segments])

    @cached_property
    def serials(self) -> NDArray[np.uint64]:
        """The serial numbers of all rows, ascending, (rows,); those of deleted documents too."""
        base, tail = (segment.serials for segment in self.segments)
        return np.concatenate([base, tail]) if len(tail) else base

    def numbers(self, field: str) -> NDArray[np.float64]:
        """The number in a field of each row, or its date as seconds since 1970; NaN if it has neither, (rows,)."""
        from parabit.index.filters import number_of

        return np.array([number_of(fields.get(field)) for fields in self.fields_of(np.arange(self.rows))], np.float64)

    def rows_of_serials(self, serials: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The row of each serial number; -1 where its document was deleted or there never was one."""
        serials = np.asarray(serials, dtype=np.uint64)
        rows = np.searchsorted(self.serials, serials)
        there = rows < self.rows
        there[there] = self.serials[rows[there]] == serials[there]
        if self.alive is not None:
            there[there] = self.alive[rows[there]]
        return np.where(there, rows, -1)

    def notes(self, backend: str) -> tuple[str, ...]:
        """Nothing that is not told of the index."""
        return ()

    def order(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows are in order."""
        return rows

    def forget(self) -> None:
        """Nothing was kept: what was read are pages of files."""

    def find(
        self,
        codes: NDArray[np.uint8],
        most: int | None,
        radius: int | None,
        allowed: NDArray[np.bool_] | None = None,
        backend: str = "auto",
    ) -> Found:
        """The nearest documents of each code; see `Searcher.search`. `allowed` says which rows may be found."""
        masks = None if allowed is None else [allowed[s.first : s.first + len(s)] for s in self.segments]
        return self._searcher.search(self.segments, codes, most, radius, masks, backend)

    def sample(self, most: int, seed: int = 0) -> NDArray[np.int64]:
        """The rows of documents that were not deleted, ascending; of more than `most` a random sample.

        Example:
            >>> from tempfile import mkdtemp
            >>> from parabit.index.store import Batch
            >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(["a", "b"], np.zeros((2, 1), np.uint8))])
            >>> Embedded.open(folder).view().sample(most=5)
            array([0, 1])
        """
        rows = self._alive()
        if len(rows) <= most:
            return rows
        return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))

    def blocks(self, size: int) -> Iterator[NDArray[np.int64]]:
        """The rows of documents that were not deleted, so many at a time."""
        rows = self._alive()
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def counts(self, field: str, sampled: Mapping[str, int], share: float) -> dict[str, int]:
        """How many documents have each value in a field, exactly: the sample is not needed."""
        return {value: sum(int(segment.matching(field, value).sum()) for segment in self.segments) for value in sampled}

    def _alive(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.concatenate([alive_in(segment) for segment in self.segments]))


def alive_in(segment: Segment) -> NDArray[np.bool_]:
    """Which documents of a segment were not deleted."""
    return np.ones(len(segment), dtype=np.bool_) if segment.alive is None else segment.alive.copy()


class Embedded(Store):
    """A store that is searched."""

    _opened: tuple[State, Searcher] | None = None

    def view(self) -> Seen:
        """The documents as they are now."""
        state = self.state
        # What was opened of a generation serves for as long as it is that of the index.
        if self._opened is None or self._opened[0] is not state:
            self._opened = (state, Searcher(self.bits))
        return Seen(state, self._opened[1])

    @contextmanager
    def writing(self) -> Iterator[None]:
        """The right to write files beside the store; a reader has it if nobody writes."""
        if self._lock is not None:
            yield
            return
        with WriterLock(self.folder):
            self.refresh()
            yield

    def merge(self, report: Report) -> None:
        """Merge what was added and deleted, with the back end that the index was built with."""
        self.compact(derive_with(self.meta["backend"], self.bits, report))

    def copy_to(self, folder: Path | str, overwrite: bool, report: Report, meta: Mapping[str, Any]) -> None:
        """Write it to another folder, merged."""
        self.save(folder, derive_with(self.meta["backend"], self.bits, report), meta, overwrite)

    def about(self) -> dict[str, Any]:
        """What it is, what it keeps, and what is left to be merged; for JSON."""
        return about(self)
