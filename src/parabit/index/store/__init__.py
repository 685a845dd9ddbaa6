"""Keeping an index: a folder of memory-mapped arrays, a log of the changes since, and one writer at a time."""

from parabit.index.store.manifest import MAP, backend_of
from parabit.index.store.schema import VECTORS, Batch, Id, Kind, Value
from parabit.index.store.snapshot import Snapshot
from parabit.index.store.store import Store

__all__ = [
    "MAP",
    "VECTORS",
    "Batch",
    "Id",
    "Kind",
    "Snapshot",
    "Store",
    "Value",
    "backend_of",
]
