"""What a Milvus server finds near a code."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.index.milvus.entities import KEY, NUMBER


class Near(NamedTuple):
    """What is near a code: keys, numbers and distances, in no order that counts."""

    keys: list[str]
    numbers: NDArray[np.int64]
    distances: NDArray[np.int32]
    cut: bool = False  # whether the server may have others

    def take(self, places: NDArray[Any]) -> "Near":
        """Some of them, in another order."""
        keys = [self.keys[place] for place in places.tolist()]
        return self._replace(keys=keys, numbers=self.numbers[places], distances=self.distances[places])

    def sorted(self) -> "Near":
        """Nearest first, of equally near ones the one that came first."""
        return self.take(np.lexsort((self.numbers, self.distances)))

    def first(self, most: int | None) -> "Near":
        """At most so many."""
        return self._replace(keys=self.keys[:most], numbers=self.numbers[:most], distances=self.distances[:most])


def together(parts: Sequence[Near]) -> Near:
    """Several as one."""
    return Near(
        [key for part in parts for key in part.keys],
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.numbers for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.int32), *(part.distances for part in parts)]),
    )


def near_of(answer: Any, limit: int, highest: int) -> Near:
    """What Milvus answered to a request for so many, without what is farther than asked."""
    numbers = np.fromiter((hit["entity"][NUMBER] for hit in answer), dtype=np.int64, count=len(answer))
    given = np.fromiter((hit["distance"] for hit in answer), dtype=np.float64, count=len(answer))
    distances = given.round().astype(np.int32)
    near = Near([hit[KEY] for hit in answer], numbers, distances)
    inside = near if (distances <= highest).all() else near.take(np.flatnonzero(distances <= highest))
    return inside._replace(cut=len(answer) == limit == len(inside.keys))
