"""Keeping an index: a folder of memory-mapped arrays, a log of the changes since, and one writer at
a time.
"""

from parabit.index.store.manifest import (
    MAP,
    CorpusSettings,
    Engine,
    FileTable,
    Home,
    Manifest,
    WordSettings,
)
from parabit.index.store.schema import Batch, Id, Value
from parabit.index.store.snapshot import Snapshot
from parabit.index.store.store import Store, open_snapshot

__all__ = [
    "MAP",
    "Batch",
    "CorpusSettings",
    "Engine",
    "FileTable",
    "Home",
    "Id",
    "Manifest",
    "Snapshot",
    "Store",
    "Value",
    "WordSettings",
    "open_snapshot",
]
