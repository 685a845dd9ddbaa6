"""What there is in an index, beyond searching it: its fields, typical phrases, the newest documents, and a map."""

from parabit.explore.map import Map, draw_map, embed_codes, keep_map, kept_map
from parabit.explore.overview import field_types, newest, typical_phrases

__all__ = [
    "Map",
    "draw_map",
    "embed_codes",
    "field_types",
    "keep_map",
    "kept_map",
    "newest",
    "typical_phrases",
]
