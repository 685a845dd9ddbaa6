"""The index: search by codes and words, and files that are safe to keep."""

from typing import TYPE_CHECKING

from parabit.choices import RANKS
from parabit.errors import lazy
from parabit.index.documents import Stored, Written
from parabit.index.duplicates import Copy, Group, copies_among, find_duplicates
from parabit.index.filters import Where, conditions
from parabit.index.hits import Hit, Hits, Why
from parabit.index.index import Index
from parabit.index.map import Map
from parabit.index.overview import Field
from parabit.index.passages import Piece, marked, passages

if TYPE_CHECKING:
    from parabit.index.sync import Synced

__all__ = [
    "RANKS",
    "Copy",
    "Field",
    "Group",
    "Hit",
    "Hits",
    "Index",
    "Map",
    "Piece",
    "Stored",
    "Synced",
    "Where",
    "Why",
    "Written",
    "conditions",
    "copies_among",
    "find_duplicates",
    "marked",
    "passages",
]

__getattr__ = lazy(__name__, {"parabit.index.sync": ("Synced",)})  # it needs polars, and a search does not
