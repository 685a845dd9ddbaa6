"""The index: exact Hamming search over codes, ranking by more than the distance, and files that are safe to keep."""

from parabit.choices import RANKS
from parabit.index.filtering import where_of
from parabit.index.hits import Hit, Hits
from parabit.index.index import Index
from parabit.index.labels import Labels, labels_in
from parabit.index.map import Map
from parabit.index.pairing import Pairs
from parabit.index.passages import Piece, marked, passages
from parabit.index.stored import Stored
from parabit.index.writing import Written

__all__ = [
    "RANKS",
    "Hit",
    "Hits",
    "Index",
    "Labels",
    "Map",
    "Pairs",
    "Piece",
    "Stored",
    "Written",
    "labels_in",
    "marked",
    "passages",
    "where_of",
]
