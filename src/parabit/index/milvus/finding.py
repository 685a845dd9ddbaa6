"""The nearest documents of codes, told by Milvus, without what it leaves open.

Milvus cuts a list of hits wherever there are enough, though others may be as near as the last, and gives no more than
16,384. An index orders equally near documents by when they came in, and gives as many as are asked for. So where a list
may have been cut, the rest is asked for.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parabit.index.milvus.collection import WINDOW, between, halved
from parabit.index.milvus.near import Near, together

_FIRST = 1024  # hits that are asked for at first, where all are wanted
_SPARE = 64  # hits beside twice as many as are wanted, for those that are as near as the last


class Ask(Protocol):
    """A request: the nearest of each code between two distances, that meet a condition; `again` after the first."""

    def __call__(
        self, codes: NDArray[np.uint8], limit: int, lowest: int, highest: int, condition: str = "", again: bool = True
    ) -> list[Near]: ...


def find(ask: Ask, codes: NDArray[np.uint8], most: int | None, farthest: int) -> list[Near]:
    """The nearest `most` of each code within a distance, or all; nearest first, then by number."""
    limit = _FIRST if most is None else min(WINDOW, 2 * most + _SPARE)
    found = [near.sorted() for near in ask(codes, limit, 0, farthest, again=False)]
    done = [near.first(most) for near in found]
    cut = [place for place, near in enumerate(found) if _is_cut(near, limit, most)]
    if most is None:
        for place, near in zip(cut, _between(ask, codes[cut], 0, farthest), strict=True):
            done[place] = near.sorted()
        return done
    # Those that are nearer than the last are all here; of those that are as near, or farther, some may be lacking.
    last = {place: int(done[place].distances[-1]) for place in cut}
    for place in cut:
        done[place] = done[place].take(np.flatnonzero(done[place].distances < last[place]))
    while last:
        distance = min(last.values())  # one after the other, as a request has one distance for all of its codes
        mine = [place for place in last if last[place] == distance]
        lacking = max(most - len(done[place].keys) for place in mine)
        for place, more in zip(mine, _between(ask, codes[mine], distance, distance, lacking), strict=True):
            done[place] = together([done[place], more.sorted()]).first(most)
            last[place] += 1
            if len(done[place].keys) == most or last[place] > farthest:
                del last[place]
    return done


def _is_cut(near: Near, limit: int, most: int | None) -> bool:
    """Whether a document may be lacking that belongs to the answer."""
    return near.cut and (most is None or limit <= most or bool(near.distances[most - 1] == near.distances[-1]))


def _between(ask: Ask, codes: NDArray[np.uint8], lowest: int, highest: int, enough: int | None = None) -> list[Near]:
    """All documents between two distances of each code, or, if there are more than `enough`, that many that came first.

    `enough` is for a single distance.
    """
    if not len(codes):
        return []
    found = ask(codes, WINDOW, lowest, highest)
    for place, near in enumerate(found):
        if near.cut:
            code = codes[place : place + 1]
            found[place] = _piece_by_piece(partial(_one, ask, code, lowest, highest), near, lowest, enough)
    return [_not_nearer(near, lowest) for near in found]


def _not_nearer(near: Near, lowest: int) -> Near:
    inside = near.distances >= lowest
    return near if inside.all() else near.take(np.flatnonzero(inside))


def _one(ask: Ask, code: NDArray[np.uint8], lowest: int, highest: int, condition: str) -> Near:
    return ask(code, WINDOW, lowest, highest, condition)[0]


def _piece_by_piece(ask: Callable[[str], Near], near: Near, lowest: int, enough: int | None) -> Near:
    """What has more hits than Milvus gives at a time: by ranges of numbers, which are cut until each gives fewer."""
    middle = halved(0, near.numbers.tolist())
    ranges: list[tuple[int, int | None]] = [(middle, None), (0, middle)]
    parts: list[Near] = []
    while ranges and (enough is None or sum(len(part.keys) for part in parts) < enough):
        first, end = ranges.pop()
        near = ask(between(first, end))
        if not near.cut:
            parts.append(_not_nearer(near, lowest))
        else:
            middle = halved(first, near.numbers.tolist())
            ranges += [(middle, end), (first, middle)]
    return together(parts)
