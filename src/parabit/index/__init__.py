"""The index: search by codes and words, and files that are safe to keep."""

from parabit.choices import RANKS
from parabit.index.documents import Stored
from parabit.index.filters import Where, conditions
from parabit.index.index import Index
from parabit.index.map import Map, draw_map, keep_map, kept_map
from parabit.index.overview import Field, field_types, newest, typical_phrases
from parabit.index.retrieval import Hit, Hits, Piece, Why, marked, matching, passage
from parabit.index.sync import Synced
from parabit.index.writing import Written

__all__ = [
    "RANKS",
    "Field",
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
    "draw_map",
    "field_types",
    "keep_map",
    "kept_map",
    "marked",
    "matching",
    "newest",
    "passage",
    "typical_phrases",
]
