"""Ways to search codes, all with the same contract; see `base.Backend`.

`auto` takes the back end that answers fastest, by rules from benchmarks/results/index_speed.json.
"""

from collections.abc import Collection

from parabit.index.backends.base import Arrays, Backend
from parabit.index.backends.flat import Flat
from parabit.index.backends.multi import Multi
from parabit.index.backends.tables import Tables

__all__ = ["BACKENDS", "Arrays", "Backend", "Flat", "Multi", "Tables", "choose", "choose_built"]

BACKENDS: dict[str, type[Backend]] = {backend.name: backend for backend in (Flat, Tables, Multi)}

_SHORT = 40  # bits up to which one table beats several
# From so many codes on hashing is faster than a scan: for the back end, a radius or k, and a query alone or in a batch.
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
_FARTHEST = {"tables": 1 / 7, "multi": 1 / 5}  # of the bits: at larger radii what lies inside is faster scanned
_MOST = 0.01  # of the codes: for a larger k too


def choose_built(codes: int, bits: int) -> str:
    """The back end that is worth building beside the codes: 'flat' where none is.

    Example:
        >>> choose_built(5_000_000, bits=28), choose_built(5_000_000, bits=128), choose_built(1000, bits=128)
        ('tables', 'multi', 'flat')
    """
    best = _hashing(bits)
    least = min(codes for (name, _, _), codes in _FASTER_FROM.items() if name == best)
    return best if codes >= least else "flat"


def choose(
    codes: int,
    bits: int,
    k: int | None = None,
    radius: int | None = None,
    batch: int = 1,
    among: Collection[str] = ("flat", "tables", "multi"),
) -> str:
    """The back end that answers so many queries fastest, of those that were built.

    Example:
        >>> choose(5_000_000, bits=28, radius=2), choose(50_000, bits=28, radius=2)
        ('tables', 'flat')
        >>> choose(5_000_000, bits=128, k=10, among=("flat", "tables"))
        'flat'
    """
    best = _hashing(bits)
    if best not in among:
        return "flat"
    asked = "k" if radius is None else "radius"
    if codes < _FASTER_FROM[best, asked, "alone" if batch < _BATCH else "batch"]:
        return "flat"
    if (k or 0) > _MOST * codes or (radius or 0) > _FARTHEST[best] * bits:
        return "flat"
    return best


def _hashing(bits: int) -> str:
    return "tables" if bits <= _SHORT else "multi"
