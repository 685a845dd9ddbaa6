"""The embedded index: a store of memory-mapped files, and the back ends that search their codes."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.index.about import about
from parabit.index.filtering import Where, alive_in, masks_of
from parabit.index.reading import Reading
from parabit.index.results import Found
from parabit.index.search import Searcher, derive_with
from parabit.index.store import State, Store
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
        self.rows_of, self.ids_of, self.fields_of = state.rows_of, state.ids_of, state.fields_of

    @property
    def documents(self) -> int:
        """How many there are."""
        return self._state.documents

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""
        return self._state.field_names

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
        where: Where | None = None,
        backend: str = "auto",
        reads: Collection[str] = (),
    ) -> Found:
        """The nearest documents of each code; see `Searcher.search`."""
        allowed = None
        if where:
            allowed = np.concatenate(masks_of(self._state, self.segments, where))
        elif any(segment.alive is not None for segment in self.segments):
            allowed = np.concatenate([alive_in(segment) for segment in self.segments])
        return self._searcher.search(codes, most, radius, allowed, backend, tail=self.segments[1].codes)

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


class Embedded(Store):
    """A store that is searched."""

    _opened: tuple[State, Searcher] | None = None

    def view(self) -> Seen:
        """The documents as they are now."""
        state = self.state
        # What was opened of a generation serves for as long as it is that of the index.
        if self._opened is None or self._opened[0] is not state:
            base = state.segments[0]
            self._opened = (state, Searcher(base.codes, self.bits, base.derived))
        return Seen(state, self._opened[1])

    def merge(self, report: Report) -> None:
        """Merge what was added and deleted, with the back end that the index was built with."""
        self.compact(derive_with(self.meta["backend"], self.bits, report))

    def copy_to(self, folder: Path | str, overwrite: bool, report: Report) -> None:
        """Write it to another folder, merged."""
        self.save(folder, derive_with(self.meta["backend"], self.bits, report), overwrite=overwrite)

    def about(self) -> dict[str, Any]:
        """What it is, what it keeps, and what is left to be merged; for JSON."""
        return about(self)
