"""The index: search by codes and words, and files that are safe to keep."""

from parabit.index.documents import Stored
from parabit.index.index import Index
from parabit.index.retrieval import Hit, Hits, Piece, Why, marked, matching
from parabit.index.sync import Synced
from parabit.index.writing import Written

__all__ = [
    "Hit",
    "Hits",
    "Index",
    "Piece",
    "Stored",
    "Synced",
    "Why",
    "Written",
    "marked",
    "matching",
]
