"""A map of the documents in an index: points in the plane, near where codes are near; drawn once and kept."""

import json
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from parabit.codes import bytes_per_code, check_codes, unpack
from parabit.errors import CodesError, need
from parabit.index.backends.flat import Flat
from parabit.index.store import MAP, Id
from parabit.index.store.manifest import MOST_BITS
from parabit.progress import Progress, Report, silent
from parabit.storage import whole_file
from parabit.untrusted import (
    Rule,
    check_object,
    need_regular,
    need_short_header,
    parse_object,
    tensor_forms,
    whole,
)

if TYPE_CHECKING:
    from parabit.index.index import Index

SIDE = 65_535  # of the square that the points lie in
_POINTS = 20_000  # drawn at most: of a larger index a sample, and the others lie among these
_NEIGHBOURS = 5  # of a code that is not on the map
_WORTH = 0.2  # the share of documents that may have come or gone before it is drawn again
_ROUNDS = (250, 500)  # with attraction exaggerated, and without: t-SNE's usual ones
_REPORTED_EVERY = 25  # rounds
_MOST_HEADER = 16 << 20  # bytes of a map's file that hold ids: of 20,000 points, 800 bytes each
_ID = Rule(lambda value: type(value) in (str, int), "a string or a whole number")
_RULES = {
    "ids": Rule(
        lambda value: isinstance(value, list) and len(value) >= 1 and all(map(_ID.holds, value)),
        f"a list, and each item {_ID.must}",
    ),
    "bits": whole(1, MOST_BITS),
    "documents": whole(),
}


class Map(NamedTuple):
    """Documents of an index as points; where others lie is given by `place`."""

    ids: list[Id]
    codes: NDArray[np.uint8]  # (points, bytes)
    points: NDArray[np.uint16]  # (points, 2)
    bits: int
    documents: int  # in the index when it was drawn

    def place(self, codes: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """Where codes lie on the map, (codes, 2): at their own point, or amid their nearest."""
        rows, distances = _nearest(self.codes, self.bits, codes, min(_NEIGHBOURS, len(self.codes)))
        around = np.median(
            self.points[rows], axis=1
        )  # the median, as a mean may lie between clusters
        return np.where(distances[:, :1] == 0, self.points[rows[:, 0]], around).astype(np.uint16)

    def save(self, path: Path) -> None:
        """Write it to a file, in one step."""
        meta = self._asdict()
        arrays = {name: np.ascontiguousarray(meta.pop(name)) for name in ("codes", "points")}
        with whole_file(path, inside=True) as partial:
            save_file(arrays, partial, metadata={"map": json.dumps(meta)})

    @classmethod
    def load(cls, path: Path) -> "Map | None":
        """Read it; None if there is none that this version can read, as it can be drawn again."""
        try:
            need_regular(path)
            need_short_header(path, _MOST_HEADER)
            with safe_open(path, framework="numpy") as file:
                meta = parse_object((file.metadata() or {}).get("map", ""))
                check_object(meta, _RULES)
                points = len(meta["ids"])
                expected_forms = {
                    "codes": ("U8", (points, bytes_per_code(meta["bits"]))),
                    "points": ("U16", (points, 2)),
                }
                if tensor_forms(file) != expected_forms:
                    return None
                codes = file.get_tensor("codes")
                check_codes(codes, meta["bits"])
                return cls(codes=codes, points=file.get_tensor("points"), **meta)
        except (OSError, SafetensorError, ValueError):
            return None


def draw_map(index: "Index", report: Report = silent) -> Map:
    """Draw the map of the documents of an index, or of a sample of them; 20,000 points take a minute or two."""
    snapshot = index.snapshot()
    rows = snapshot.sample(_POINTS)
    codes = np.ascontiguousarray(snapshot.codes(rows))
    points = embed_codes(codes, report=report)
    low, high = points.min(axis=0), points.max(axis=0)
    # Moved and stretched alike in both directions, to fill the square.
    points = (points - (low + high) / 2) / max(float((high - low).max()), 1e-12) + 0.5
    whole = np.round(points * SIDE).clip(0, SIDE).astype(np.uint16)
    return Map(snapshot.ids_of(rows), codes, whole, snapshot.bits, snapshot.documents)


def keep_map(index: "Index", drawn: Map) -> None:
    """Keep a map in the folder of an index for its search page; nothing else depends on it, and it may be removed."""
    drawn.save(index.folder / MAP)


def kept_map(index: "Index") -> Map | None:
    """The map that was drawn of an index, unless too many of its documents have changed, gone or come since."""
    drawn, snapshot = Map.load(index.folder / MAP), index.snapshot()
    if (
        drawn is None
        or drawn.bits != snapshot.bits
        or snapshot.documents > (1 + _WORTH) * drawn.documents
    ):
        return None
    rows = snapshot.rows_of(drawn.ids)
    there = np.flatnonzero(rows >= 0)
    same = (
        int((snapshot.codes(rows[there]) == drawn.codes[there]).all(axis=1).sum())
        if len(there)
        else 0
    )
    return drawn if same >= (1 - _WORTH) * len(drawn.ids) else None


def embed_codes(codes: NDArray[np.uint8], report: Report = silent) -> NDArray[np.float64]:
    """A point for each code, (codes, 2), by t-SNE over exact Hamming neighbours; the same each time.

    The perplexity is 30, and lower if there are fewer than 91 codes.

    Reference: L. van der Maaten and G. Hinton, "Visualizing data using t-SNE", JMLR 2008, as openTSNE computes it.
    """
    check_codes(codes)
    if codes.ndim != 2 or len(codes) < 4:
        raise CodesError(
            f"a map needs 4 documents or more, found codes of shape {codes.shape}", hint="add some"
        )
    tsne = need("openTSNE", "plot", CodesError)
    # With three times as many neighbours as the perplexity, those left out would weigh next to nothing.
    perplexity = min(30.0, (len(codes) - 1) / 3)
    most, bits = round(3 * perplexity), codes.shape[1] * 8
    rows, distances = _nearest(codes, bits, codes, most + 1)
    others = rows != np.arange(len(codes))[:, None]
    others[others.all(axis=1), -1] = (
        False  # the code itself is one of more equal codes than were asked for
    )
    neighbours = tsne.nearest_neighbors.PrecomputedNeighbors(
        rows[others].reshape(-1, most), distances[others].reshape(-1, most).astype(np.float64)
    )
    affinities = tsne.affinity.PerplexityBasedNN(
        knn_index=neighbours, perplexity=perplexity, n_jobs=1
    )
    # Two principal components, so that what is far apart begins far apart; equal codes have none.
    different = (codes != codes[0]).any()
    start = tsne.initialization.pca(unpack(codes, bits), random_state=0) if different else "random"
    done = count(_REPORTED_EVERY, _REPORTED_EVERY)  # openTSNE counts its two stages each from 0

    def show(_iteration: int, error: float, _embedding: object) -> None:
        rounds, note = next(done), f"divergence {error:.2f}"
        report(Progress("drawing the map", rounds, "rounds", min(1.0, rounds / sum(_ROUNDS)), note))

    # One thread: with more, the order of sums, and with it the picture, would change from run to run.
    layout = tsne.TSNE(
        perplexity=perplexity, early_exaggeration_iter=_ROUNDS[0], n_iter=_ROUNDS[1], random_state=0, n_jobs=1,
        callbacks=show, callbacks_every_iters=_REPORTED_EVERY,
    )  # fmt: skip
    return np.array(layout.fit(affinities=affinities, initialization=start), dtype=np.float64)


def _nearest(
    codes: NDArray[np.uint8], bits: int, queries: NDArray[np.uint8], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The nearest codes of each query and how far they are, both (queries, most); of equally near ones the first."""
    found = Flat(codes, bits).search(queries, most)
    return found.rows.reshape(-1, most), found.distances.reshape(-1, most)
