"""A map of the documents in an index: points in the plane, near where codes are near; drawn once and kept."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from parabit.errors import IndexFolderError
from parabit.index.backends import Flat
from parabit.index.layout import embed_codes
from parabit.index.store import Id, Snapshot
from parabit.progress import Report, silent
from parabit.storage import whole_file

SIDE = 65_535  # of the square that the points lie in
_POINTS = 20_000  # drawn at most: of a larger index a sample, and the others lie among these
_NEIGHBOURS = 5  # of a code that is not on the map
_FORMAT = 1
_WORTH = 0.2  # the share of documents that may have come or gone before it is drawn anew


class Map(NamedTuple):
    """Documents of an index as points; where others lie is told by `place`."""

    ids: list[Id]
    codes: NDArray[np.uint8]  # (points, bytes)
    points: NDArray[np.uint16]  # (points, 2)
    bits: int
    documents: int  # in the index when it was drawn

    def place(self, codes: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """Where codes lie on the map, (codes, 2): at their own point, or amid their nearest.

        Example:
            >>> codes = np.array([[0], [1], [255]], dtype=np.uint8)
            >>> chart = Map([0, 1, 2], codes, np.array([[0, 0], [2, 2], [9, 9]], np.uint16), 8, 3)
            >>> chart.place(np.array([[255], [3]], dtype=np.uint8)).tolist()
            [[9, 9], [2, 2]]
        """
        count = min(_NEIGHBOURS, len(self.codes))
        nearest = Flat(self.codes, self.bits).search(codes, count)
        rows, distances = (array.reshape(-1, count) for array in (nearest.rows, nearest.distances))
        around = np.median(self.points[rows], axis=1)  # the middle one, as a mean may lie in no man's land
        return np.where(distances[:, :1] == 0, self.points[rows[:, 0]], around).astype(np.uint16)

    def is_worn(self, view: Snapshot) -> bool:
        """Whether too many of its documents have changed or gone, or too many come, for it to show the index."""
        rows = view.rows_of(self.ids)
        there = np.flatnonzero(rows >= 0)
        same = 0
        if len(there) and self.bits == view.bits:
            same = int((view.codes(rows[there]) == self.codes[there]).all(axis=1).sum())
        return same < (1 - _WORTH) * len(self.ids) or view.documents > (1 + _WORTH) * self.documents

    def save(self, path: Path) -> None:
        """Write it to a file, in one step."""
        meta = {"format": _FORMAT, **self._asdict()}
        arrays = {name: np.ascontiguousarray(meta.pop(name)) for name in ("codes", "points")}
        with whole_file(path) as partial:
            save_file(arrays, partial, metadata={"map": json.dumps(meta)})

    @classmethod
    def load(cls, path: Path) -> "Map | None":
        """Read it; None where there is none, or none that this version can read: it can always be drawn anew."""
        try:
            with safe_open(path, framework="numpy") as file:
                meta = json.loads((file.metadata() or {}).get("map", "{}"))
                if meta.pop("format", None) != _FORMAT:
                    return None
                read = cls(codes=file.get_tensor("codes"), points=file.get_tensor("points"), **meta)
        except (OSError, SafetensorError, ValueError, TypeError):
            return None
        fits = len(read.ids) == len(read.codes) == len(read.points) and read.points.shape[1:] == (2,)
        return read if fits else None


def draw(view: Snapshot, report: Report = silent, most: int = _POINTS, seed: int = 0) -> Map:
    """Draw the map of the documents that are in an index now, or of a sample of them.

    Example:
        >>> from tempfile import mkdtemp
        >>> from parabit.index.store import Batch, Store
        >>> codes = np.array([[0], [1], [2], [3], [252], [253]], dtype=np.uint8)
        >>> Store.create(folder := mkdtemp() + "/a.index", 8, [Batch(list("abcdef"), codes)])
        >>> draw(Store.open(folder).snapshot()).points.shape
        (6, 2)
    """
    rows = view.sample(most, seed)
    if len(rows) < 4:
        raise IndexFolderError(f"a map needs 4 documents, and there are {len(rows)}", hint="add some")
    codes = np.ascontiguousarray(view.codes(rows))
    points = _in_square(embed_codes(codes, seed, report))
    return Map(view.ids_of(rows), codes, points, view.bits, view.documents)


def _in_square(points: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Points moved and stretched alike in both directions, to fill the square."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    middle = (points - (low + high) / 2) / size + 0.5
    whole: NDArray[np.uint16] = np.round(middle * SIDE).clip(0, SIDE).astype(np.uint16)
    return whole
