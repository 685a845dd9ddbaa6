"""Keeping an index: a folder of memory-mapped arrays, a log of the changes since, and one writer at a time."""

from parabit.index.store.manifest import MAP, Manifest
from parabit.index.store.schema import Batch, Id, Value
from parabit.index.store.snapshot import Snapshot
from parabit.index.store.store import Store

__all__ = ["MAP", "Batch", "Id", "Manifest", "Snapshot", "Store", "Value"]
