"""A search of all codes in an index: those of a generation by the fastest back end, those added since by a scan."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit import choices
from parabit.errors import CodesError
from parabit.index.backends.flat import Arrays, Codes, Flat
from parabit.index.backends.hashing import SHORT, Hashing
from parabit.index.results import Found, Keys, Mask
from parabit.progress import Report

BACKENDS: dict[str, type[Flat]] = {"flat": Flat, "hashing": Hashing}

# From so many codes on hashing is faster than a scan: of short or long codes, for a radius or k, a query alone or in a
# batch. Measured by benchmarks/index_speed.py.
_FASTER_FROM = {
    ("short", "radius"): {"alone": 60_000, "batch": 50_000},
    ("short", "k"): {"alone": 300_000, "batch": 150_000},
    ("long", "radius"): {"alone": 700_000, "batch": 100_000},
    ("long", "k"): {"alone": 1_500_000, "batch": 250_000},
}
_BATCH = 8  # queries that count as a batch
_FARTHEST = {
    "short": 1 / 7,
    "long": 1 / 5,
}  # of the bits: what lies within a larger radius is faster scanned
# With fewer codes for each of the k hits, the last is too far to be looked up: of a million, 250 and 50 hits pay.
_CODES_PER_HIT = {"short": 4_000, "long": 20_000}
# Fetching a code from its place costs as much as scanning about ten that lie side by side, and a back end that looks at
# few codes is faster than that: up to this share of the rows, allowed ones are scanned by themselves.
_FEW = 0.02
_SCANNED = 4096  # so few are always scanned


def check_backend(name: str) -> None:
    """Raise CodesError unless there is such a back end."""
    if name not in choices.BACKENDS:
        raise CodesError(f"no back end {name!r}", hint=f"there are {', '.join(choices.BACKENDS)}")


def choose_built(codes: int, bits: int) -> str:
    """The back end that is worth building beside the codes: 'flat' if none is."""
    least = min(
        min(faster.values()) for (kind, _), faster in _FASTER_FROM.items() if kind == _kind(bits)
    )
    return "hashing" if codes >= least else "flat"


def choose(
    codes: int,
    bits: int,
    k: int | None = None,
    radius: int | None = None,
    batch: int = 1,
    among: Collection[str] = BACKENDS,
) -> str:
    """The back end that answers so many queries fastest, of those that were built."""
    kind, asked = _kind(bits), "k" if radius is None else "radius"
    if (
        "hashing" not in among
        or codes < _FASTER_FROM[kind, asked]["alone" if batch < _BATCH else "batch"]
    ):
        return "flat"
    if (k or 0) * _CODES_PER_HIT[kind] > codes or (radius or 0) > _FARTHEST[kind] * bits:
        return "flat"
    return "hashing"


def _kind(bits: int) -> str:
    return "short" if bits <= SHORT else "long"


def build_arrays(backend: str, codes: Codes, bits: int, report: Report) -> dict[str, NDArray[Any]]:
    """The arrays of a back end, to be stored beside the codes, which may be a memory map."""
    chosen = choose_built(len(codes), bits) if backend == "auto" else backend
    arrays = BACKENDS[chosen].build(codes, bits, report) if len(codes) else {}
    return {f"{chosen}.{name}": values for name, values in arrays.items()}


class Searcher:
    """Searches the codes of a generation with the back ends built beside them, each opened when first used."""

    def __init__(self, codes: Codes, bits: int, derived: Arrays) -> None:
        self._codes, self._bits, self._derived = codes, bits, derived
        self._names = {"flat", *(name.partition(".")[0] for name in derived)}
        self._open: dict[str, Flat] = {}

    def search(
        self,
        queries: Codes,
        most: int | None,
        radius: int | None,
        allowed: Mask | None,
        backend: str,
        tail: Codes,
    ) -> Found:
        """The nearest `most` documents of each query, or all within the radius, or the nearest of those.

        The tail has the codes that were added later; its rows follow those of the generation. `allowed` says which rows
        may be found, those of the tail included; all if it is None.
        """
        first = len(self._codes)
        old, new = (None, None) if allowed is None else (allowed[:first], allowed[first:])
        found = find(
            self._backend(backend, most, radius, old, len(queries)), queries, most, radius, old
        )
        if not len(tail):
            return found
        added = find(Flat(tail, self._bits), queries, most, radius, new)
        keys = Keys(first + len(tail), self._bits)
        old_hits = keys.pack(found.queries, found.distances, found.rows)
        new_hits = keys.pack(added.queries, added.distances, added.rows + first)
        return keys.found(np.sort(np.concatenate([old_hits, new_hits])), len(queries)).first(most)

    def _backend(
        self, name: str, most: int | None, radius: int | None, mask: Mask | None, queries: int
    ) -> Flat:
        if not len(self._codes):
            name = "flat"
        elif name == "auto":
            hits = _hits_to_ask_for(most, mask) if most is not None and mask is not None else most
            name = choose(len(self._codes), self._bits, hits, radius, queries, self._names)
        if name not in self._names:
            hint = f"build it with backend={name!r}, or choose {' or '.join(['auto', *sorted(self._names)])}"
            raise CodesError(f"the index was not built with the back end {name}", hint)
        if name not in self._open:
            arrays = {
                array.removeprefix(f"{name}."): values for array, values in self._derived.items()
            }
            self._open[name] = BACKENDS[name](self._codes, self._bits, arrays)
        return self._open[name]


def find(
    backend: Flat,
    queries: Codes,
    most: int | None = None,
    radius: int | None = None,
    allowed: Mask | None = None,
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
    asked = _hits_to_ask_for(most, allowed)
    found, waiting = Found.nothing(len(queries)), np.arange(len(queries))
    while len(waiting):
        hits = backend.search(queries[waiting], asked, radius)
        kept = hits.keep(allowed[hits.rows])
        # Fewer hits than were asked for: there are no others.
        done = (kept.counts >= most) | (hits.counts < asked)
        found = found.replace(waiting, kept.first(most))
        waiting, asked = waiting[~done], min(len(allowed), 2 * asked)
    return found


def _hits_to_ask_for(most: int, allowed: Mask) -> int:
    count = max(1, int(np.count_nonzero(allowed)))
    return min(len(allowed), int(1.2 * most * len(allowed) / count) + 8)
