"""A search of all codes in an index: those of a generation by the fastest back end, those added since by a scan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit import choices
from parabit.errors import CodesError
from parabit.index.backends import BACKENDS, Arrays, Backend, Flat, choose, choose_built
from parabit.index.results import Found, join, merge
from parabit.progress import Report

_QUERIES_AT_A_TIME = 1 << 14  # so that the results of a batch stay small
# Fetching a code from its place costs as much as scanning about ten that lie side by side, and a back end that looks at
# few codes is faster than that: up to this share of the rows, allowed ones are scanned by themselves.
_FEW = 0.02
_SCANNED = 4096  # so few are always scanned


def check_backend(name: str) -> None:
    """Raise CodesError unless there is such a back end."""
    if name not in choices.BACKENDS:
        raise CodesError(f"no back end {name!r}", hint=f"there are {', '.join(choices.BACKENDS)}")


def build_arrays(backend: str, codes: NDArray[np.uint8], bits: int, report: Report) -> dict[str, NDArray[Any]]:
    """The arrays of a back end, to be stored beside the codes, which may be a memory map."""
    chosen = choose_built(len(codes), bits) if backend == "auto" else backend
    arrays = BACKENDS[chosen].build(codes, bits, report) if len(codes) else {}
    return {f"{chosen}.{name}": values for name, values in arrays.items()}


class Searcher:
    """Searches the codes of a generation with the back ends built beside them, each opened when first used."""

    def __init__(self, codes: NDArray[np.uint8], bits: int, derived: Arrays) -> None:
        self._codes, self._bits, self._derived = codes, bits, derived
        self._names = {"flat", *(name.partition(".")[0] for name in derived)}
        self._open: dict[str, Backend] = {}

    def search(
        self,
        queries: NDArray[np.uint8],
        most: int | None = None,
        radius: int | None = None,
        allowed: NDArray[np.bool_] | None = None,
        backend: str = "auto",
        tail: NDArray[np.uint8] | None = None,
    ) -> Found:
        """The nearest `most` documents of each query, or all within the radius, or the nearest of those.

        The tail has the codes that were added later; its rows follow those of the generation. `allowed` says which rows
        may be found, those of the tail included; all if it is None.
        """
        check_backend(backend)
        first, parts = len(self._codes), []
        old, new = (None, None) if allowed is None else (allowed[:first], allowed[first:])
        for start in range(0, len(queries), _QUERIES_AT_A_TIME):
            block = queries[start : start + _QUERIES_AT_A_TIME]
            found = find(self._backend(backend, most, radius, old, len(block)), block, most, radius, old)
            if tail is not None and len(tail):
                added = find(Flat(tail, self._bits), block, most, radius, new)
                found = merge([found, added], [0, first], self._bits, most)
            parts.append(found)
        return join(parts)

    def _backend(
        self, name: str, most: int | None, radius: int | None, mask: NDArray[np.bool_] | None, queries: int
    ) -> Backend:
        if not len(self._codes):
            name = "flat"
        elif name == "auto":
            hits = _hits_to_ask_for(most, mask) if most is not None and mask is not None else most
            name = choose(len(self._codes), self._bits, hits, radius, queries, self._names)
        if name not in self._names:
            raise CodesError(
                f"the index was not built with the back end {name}",
                hint=f"build it with backend={name!r}, or choose {' or '.join(['auto', *sorted(self._names)])}",
            )
        if name not in self._open:
            arrays = {array.removeprefix(f"{name}."): values for array, values in self._derived.items()}
            self._open[name] = BACKENDS[name](self._codes, self._bits, arrays)
        return self._open[name]


def find(
    backend: Backend,
    queries: NDArray[np.uint8],
    most: int | None = None,
    radius: int | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> Found:
    """What a back end finds among the allowed rows; `allowed` is one bool per row, or None for all."""
    if allowed is None or allowed.all():
        return backend.search(queries, most, radius)
    count = int(np.count_nonzero(allowed))
    if count <= max(_SCANNED, _FEW * len(allowed)):
        rows = np.flatnonzero(allowed)
        found = Flat(backend.codes[rows], backend.bits).search(queries, most, radius)
        return found._replace(rows=rows[found.rows])  # rows ascend, so hits stay in order
    if most is None:
        found = backend.search(queries, radius=radius)
        return found.keep(allowed[found.rows])
    # As many hits as should have `most` allowed ones, and twice as many where they have not.
    most = min(most, count)
    total, asked = len(allowed), _hits_to_ask_for(most, allowed)
    found, waiting = Found.nothing(len(queries)), np.arange(len(queries))
    while len(waiting):
        hits = backend.search(queries[waiting], asked, radius)
        kept = hits.keep(allowed[hits.rows])
        # Fewer hits than were asked for: there are no others.
        done = (kept.counts >= most) | (hits.counts < asked) | (asked >= total)
        found = found.replace(waiting, kept.first(most))
        waiting, asked = waiting[~done], min(total, 2 * asked)
    return found


def _hits_to_ask_for(most: int, allowed: NDArray[np.bool_]) -> int:
    count = max(1, int(np.count_nonzero(allowed)))
    return min(len(allowed), int(1.2 * most * len(allowed) / count) + 8)
