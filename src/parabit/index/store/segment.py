"""A segment: rows of documents to search, as they were when it was asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.fields import Value, field_key
from parabit.index.store.schema import CODES, EXTRA, OFFSETS, SERIALS, Kind, Ragged


@dataclass(frozen=True)
class Segment:
    """Documents in rows; row i of the segment is row `first + i` of the store.

    `alive` is None where nothing was deleted. `derived` are a back end's own arrays, made of these codes.
    """

    first: int
    rows: int
    alive: NDArray[np.bool_] | None  # (rows,)
    derived: Mapping[str, NDArray[Any]]
    kinds: Mapping[str, Kind]
    array: Callable[[str], NDArray[Any]]
    rows_with: Callable[[int], NDArray[np.int64]]

    def __len__(self) -> int:
        return self.rows

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The codes, (rows, bytes)."""
        codes: NDArray[np.uint8] = self.array(CODES)[: self.rows]
        return codes

    @property
    def serials(self) -> NDArray[np.uint64]:
        """The serial numbers, ascending, (rows,)."""
        serials: NDArray[np.uint64] = self.array(SERIALS)[: self.rows]
        return serials

    def extra(self, name: str) -> NDArray[Any]:
        """An extra array of fixed rows, (rows,) or (rows, width)."""
        self._need(name, ragged=False)
        return self.array(EXTRA + name)[: self.rows]

    def ragged(self, name: str) -> Ragged:
        """An extra array of ragged rows."""
        self._need(name, ragged=True)
        return Ragged(self.array(EXTRA + name), self.array(EXTRA + name + OFFSETS)[: self.rows + 1])

    def matching(self, field: str, value: Value) -> NDArray[np.bool_]:
        """Which documents have this value in a field, or among its values if it is a list; deleted ones have not."""
        mask = np.zeros(self.rows, dtype=np.bool_)
        rows = self.rows_with(field_key(field, value))
        mask[rows[rows < self.rows]] = True
        if self.alive is not None:
            mask &= self.alive
        return mask

    def _need(self, name: str, ragged: bool) -> None:
        there = sorted(name for name, kind in self.kinds.items() if kind.ragged == ragged)
        if name not in there:
            form = "ragged" if ragged else "fixed"
            raise IndexFolderError(
                f"the index has no extra array {name!r} of {form} rows; there are {there}",
                hint="build the index with it",
            )
