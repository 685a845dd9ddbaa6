"""Keeping an index: a folder of memory-mapped arrays, a log of what was done since, and one writer at a time."""

from parabit.index.store.fields import Value
from parabit.index.store.generation import Derive
from parabit.index.store.manifest import MAP
from parabit.index.store.schema import Batch, Id, Kind, Ragged
from parabit.index.store.segment import Segment
from parabit.index.store.snapshot import State
from parabit.index.store.store import Store

__all__ = ["MAP", "Batch", "Derive", "Id", "Kind", "Ragged", "Segment", "State", "Store", "Value"]
