"""The index: search by codes and words, and files that are safe to keep."""

from parabit.choices import RANKS
from parabit.index.documents import Stored
from parabit.index.filters import Where, conditions
from parabit.index.index import Index
from parabit.index.retrieval import Hit, Hits, Piece, Why, marked, matching, passage
from parabit.index.sync import Synced
from parabit.index.writing import Written

__all__ = [
    "RANKS",
    "Hit",
    "Hits",
    "Index",
    "Piece",
    "Stored",
    "Synced",
    "Where",
    "Why",
    "Written",
    "conditions",
    "marked",
    "matching",
    "passage",
]
