"""Ways to search codes, one file each, all with the same answers; and `auto`, which takes the fastest."""

from collections.abc import Collection

from parabit.index.backends.base import Arrays, Backend
from parabit.index.backends.flat import Flat
from parabit.index.backends.multi import Multi
from parabit.index.backends.tables import Tables

__all__ = ["BACKENDS", "Arrays", "Backend", "Flat", "Multi", "Tables", "choose", "choose_built"]

BACKENDS: dict[str, type[Backend]] = {backend.name: backend for backend in (Flat, Tables, Multi)}

_SHORT = 40  # bits up to which one table beats several
# From so many codes on hashing is faster than a scan: for the back end, a radius or k, and a query alone or in a batch.
# Measured by benchmarks/index_speed.py.
_FASTER_FROM = {
    ("tables", "radius", "alone"): 60_000,
    ("tables", "radius", "batch"): 50_000,
    ("tables", "k", "alone"): 300_000,
    ("tables", "k", "batch"): 150_000,
    ("multi", "radius", "alone"): 700_000,
    ("multi", "radius", "batch"): 100_000,
    ("multi", "k", "alone"): 1_000_000,
    ("multi", "k", "batch"): 250_000,
}
_BATCH = 8  # queries that count as a batch
_FARTHEST = {"tables": 1 / 7, "multi": 1 / 5}  # of the bits: what lies within a larger radius is faster scanned
# With fewer codes for each of the k hits, the last is too far to be looked up: of a million, 250 and 50 hits pay.
_CODES_PER_HIT = {"tables": 4_000, "multi": 20_000}


def choose_built(codes: int, bits: int) -> str:
    """The back end that is worth building beside the codes: 'flat' if none is."""
    best = _hashing(bits)
    least = min(codes for (name, _, _), codes in _FASTER_FROM.items() if name == best)
    return best if codes >= least else "flat"


def choose(
    codes: int,
    bits: int,
    k: int | None = None,
    radius: int | None = None,
    batch: int = 1,
    among: Collection[str] = tuple(BACKENDS),
) -> str:
    """The back end that answers so many queries fastest, of those that were built."""
    best = _hashing(bits)
    asked = "k" if radius is None else "radius"
    if best not in among or codes < _FASTER_FROM[best, asked, "alone" if batch < _BATCH else "batch"]:
        return "flat"
    if (k or 0) * _CODES_PER_HIT[best] > codes or (radius or 0) > _FARTHEST[best] * bits:
        return "flat"
    return best


def _hashing(bits: int) -> str:
    return "tables" if bits <= _SHORT else "multi"
