"""The index: exact Hamming search over codes, ranking by more than the distance, and files that are safe to keep."""

from parabit.index.hits import Hit, Hits
from parabit.index.index import Index, Pairs
from parabit.index.ranking import RANKS

__all__ = ["RANKS", "Hit", "Hits", "Index", "Pairs"]
