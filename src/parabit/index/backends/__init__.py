"""Ways to search codes, one file each, all with the same answers; and `auto`, which takes the fastest."""

from collections.abc import Collection

from parabit.index.backends.base import Arrays, Backend
from parabit.index.backends.flat import Flat
from parabit.index.backends.hashing import SHORT, Hashing

__all__ = ["BACKENDS", "Arrays", "Backend", "Flat", "Hashing", "choose", "choose_built"]

BACKENDS: dict[str, type[Backend]] = {backend.name: backend for backend in (Flat, Hashing)}

# From so many codes on hashing is faster than a scan: of short or long codes, for a radius or k, a query alone or in a
# batch. Measured by benchmarks/index_speed.py.
_FASTER_FROM = {
    ("short", "radius", "alone"): 60_000,
    ("short", "radius", "batch"): 50_000,
    ("short", "k", "alone"): 300_000,
    ("short", "k", "batch"): 150_000,
    ("long", "radius", "alone"): 700_000,
    ("long", "radius", "batch"): 100_000,
    ("long", "k", "alone"): 1_000_000,
    ("long", "k", "batch"): 250_000,
}
_BATCH = 8  # queries that count as a batch
_FARTHEST = {"short": 1 / 7, "long": 1 / 5}  # of the bits: what lies within a larger radius is faster scanned
# With fewer codes for each of the k hits, the last is too far to be looked up: of a million, 250 and 50 hits pay.
_CODES_PER_HIT = {"short": 4_000, "long": 20_000}


def choose_built(codes: int, bits: int) -> str:
    """The back end that is worth building beside the codes: 'flat' if none is."""
    least = min(codes for (kind, _, _), codes in _FASTER_FROM.items() if kind == _kind(bits))
    return "hashing" if codes >= least else "flat"


def choose(
    codes: int,
    bits: int,
    k: int | None = None,
    radius: int | None = None,
    batch: int = 1,
    among: Collection[str] = tuple(BACKENDS),
) -> str:
    """The back end that answers so many queries fastest, of those that were built."""
    kind, asked = _kind(bits), "k" if radius is None else "radius"
    if "hashing" not in among or codes < _FASTER_FROM[kind, asked, "alone" if batch < _BATCH else "batch"]:
        return "flat"
    if (k or 0) * _CODES_PER_HIT[kind] > codes or (radius or 0) > _FARTHEST[kind] * bits:
        return "flat"
    return "hashing"


def _kind(bits: int) -> str:
    return "short" if bits <= SHORT else "long"
