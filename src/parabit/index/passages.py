"""What to show of a document: the passage with most of the query's words, and where these stand."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from parabit.text import Tokenizer

READ = 20_000  # characters of a text that a passage is looked for in


class Piece(NamedTuple):
    """A stretch of a text."""

    text: str
    mark: bool  # whether it is a word of the query


def marked(tokenizer: Tokenizer, text: str, words: Collection[str]) -> list[Piece]:
    """A whole text in pieces, with the words marked."""
    return _pieces(text, tokenizer.places(text, words), 0, len(text))


def passage(tokenizer: Tokenizer, text: str, words: Collection[str], length: int = 300) -> list[Piece]:
    """The passage of a text that has most different words of the query, some `length` characters long."""
    text = text[:READ]
    spans = tokenizer.places(text, words)
    start = _best_start(text, spans, length) if len(text) > length else 0
    start, end = _to_spaces(text, start, min(len(text), start + length))
    pieces = _pieces(text, [span for span in spans if start <= span[0] and span[1] <= end], start, end)
    before, after = [Piece("… ", False)] if start else [], [Piece("…", False)] if end < len(text) else []
    return [*before, *pieces, *after]


def _best_start(text: str, spans: Sequence[tuple[int, int]], length: int) -> int:
    """Where the stretch with most different words begins, and of these the one with most words, and the first."""
    best, start, first = (0, 0), 0, 0
    words = [text[slice(*span)].lower() for span in spans]
    for last, (_, end) in enumerate(spans):
        while spans[first][0] < end - length:
            first += 1
        inside = words[first : last + 1]
        if (found := (len({*inside}), len(inside))) > best:
            # In the middle, with what comes before it and after.
            best, start = found, max(0, (spans[first][0] + end - length) // 2)
    return min(start, max(0, len(text) - length))


def _to_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """Edges moved inwards to the next space, if there is one near."""
    if start:
        space = text.find(" ", start, start + 30)
        start = start if space < 0 else space + 1
    if end < len(text):
        space = text.rfind(" ", end - 30, end)
        end = end if space < 0 else space
    return start, max(start, end)


def _pieces(text: str, spans: Sequence[tuple[int, int]], start: int, end: int) -> list[Piece]:
    pieces, place = [], start
    for first, last in spans:
        if first > place:
            pieces.append(Piece(text[place:first], False))
        pieces.append(Piece(text[first:last], True))
        place = last
    return [*pieces, Piece(text[place:end], False)] if place < end else pieces
