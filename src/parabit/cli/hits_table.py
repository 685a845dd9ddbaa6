"""Hits as lines for people."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from parabit.cli.bit_pattern import bit_pattern

if TYPE_CHECKING:
    from parabit.index import Hit

_SHORTEST, _LONGEST = 8, 32  # an id or labels: what is longer is cut, in a narrow terminal sooner
_WIDE = 1 << 30  # wider than any terminal
_ROOM = 40  # that a text needs to stand on the line of its hit; with less it goes below
_INDENT = 4
_GAP = "  "
_HEADS = ("", "bits", "score", "differing", "id", "labels")


def hits_table(
    hits: "Sequence[Hit]", differing: NDArray[np.bool_], width: int | None, plain: bool = False
) -> Iterator[str]:
    """A line a hit, no wider than a terminal, the text on the next one where there is no room beside the rest.

    Without a width nothing is cut.
    """
    if not hits:
        return
    width = 2 * _WIDE if width is None else width
    more = "..." if plain else "…"
    figures = [
        [str(number), str(hit.distance), f"{hit.score:.3f}", bit_pattern(bits, plain)]
        for number, (hit, bits) in enumerate(zip(hits, differing, strict=True), 1)
    ]
    names = [(_on_a_line(hit.id), _on_a_line(", ".join(map(str, _several(hit.fields.get("labels")))))) for hit in hits]
    rooms = _rooms(names, width - max(len(_GAP.join(row)) for row in figures) - 2 * len(_GAP))
    rows = [
        [*row, *(_cut(name, room, more) for name, room in zip(own, rooms, strict=True))]
        for row, own in zip(figures, names, strict=True)
    ]
    heads = list(_HEADS)
    if not any(row[-1] for row in rows):  # no document has a label
        for row in (heads, *rows):
            row.pop()
    widths = [max(map(cell_len, column)) for column in zip(heads, *rows, strict=True)]
    texts = [_on_a_line("".join(piece.text for piece in hit.snippet)).replace("…", more) for hit in hits]
    used = sum(widths) + len(_GAP) * len(widths)
    beside = width - used >= _ROOM
    room = width - used if beside else width - _INDENT
    yield _cut(_line(heads, widths, "text" if beside and any(texts) else ""), width, more)
    for row, text in zip(rows, texts, strict=True):
        start = _cut(text, max(room, 1), more, between_words=True)
        yield _cut(_line(row, widths, start if beside else ""), width, more)
        if start and not beside:
            yield " " * _INDENT + start


def _rooms(names: Sequence[tuple[str, str]], room: int) -> list[int]:
    """How wide ids and labels may be: half of the room each, or what the other leaves."""
    ids, labels = (max(map(cell_len, column)) for column in zip(*names, strict=True))
    wanted = [max(room // 2, room - labels), max(room // 2, room - ids)]
    return [max(most if room > _WIDE else min(most, _LONGEST), _SHORTEST) for most in wanted]


def _line(cells: Sequence[str], widths: Sequence[int], text: str) -> str:
    padded = [
        " " * (width - cell_len(cell)) + cell if place < 3 else cell + " " * (width - cell_len(cell))
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join([*padded, text]).rstrip(" ")


def _several(labels: Any) -> list[Any]:
    if labels is None:
        return []
    return labels if isinstance(labels, list) else [labels]


def _on_a_line(value: object) -> str:
    """Without what would move the cursor of a terminal or change its colours."""
    return " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())


def _cut(text: str, width: int, more: str, between_words: bool = False) -> str:
    if cell_len(text) <= width:
        return text
    start = set_cell_size(text, max(width - len(more), 0))
    if between_words and text[len(start) : len(start) + 1] != " ":
        start = start.rpartition(" ")[0] or start  # not in languages that are written without spaces
    return start.rstrip() + more
