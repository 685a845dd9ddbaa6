"""The number of each word, for many words at once."""

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

STOP = -2  # the number of stop words, which are left out
UNKNOWN = -1

# A word of up to 15 bytes is two integers of 8 bytes, the last of them its length: comparing these compares words.
_LONGEST = 15
_LOW = np.array([*((1 << 8 * min(n, 8)) - 1 for n in range(_LONGEST + 1)), 0], dtype=np.uint64)
_HIGH = np.array([*((1 << 8 * max(n - 8, 0)) - 1 for n in range(_LONGEST + 1)), 0], dtype=np.uint64)
_LENGTH = np.arange(_LONGEST + 2, dtype=np.uint64) << np.uint64(56)

_SLOTS = 1 << 19  # of a dictionary that grows or is large: 10 MB; with more, the processor's cache misses more


class Tokens(NamedTuple):
    """The tokens of some texts, in UTF-8."""

    text: bytes  # the tokens with separators between them
    starts: NDArray[np.int64]  # (tokens,)
    ends: NDArray[np.int64]  # (tokens,)
    low: NDArray[np.uint64]  # (tokens,) the first 8 bytes
    high: NDArray[np.uint64]  # (tokens,) the next 7 bytes and the length; 16 stands for any longer token
    lengths: NDArray[np.int64]  # (texts,) tokens per text


def split(spaced: Iterable[str], shortest: int, longest: int) -> Tokens:
    """The tokens of texts in which spaces stand between tokens, and newlines nowhere.

    Tokens of fewer or more characters are left out.
    """
    # Separators after the last token, so that 16 bytes can be read from any start.
    text = "\n".join(["", *spaced, " " * 16]).encode()
    data = np.frombuffer(text, dtype=np.uint8)
    inside = (data != ord(" ")) & (data != ord("\n"))
    borders = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    starts, ends = borders[::2], borders[1::2]
    sizes = ends - starts
    characters = sizes
    if not text.isascii():
        following = np.cumsum((data & 0xC0) == 0x80)  # bytes of a character after its first
        characters = sizes - following[ends - 1] + following[starts - 1]
    fits = (characters >= shortest) & (characters <= longest)
    if not fits.all():
        starts, ends, sizes = starts[fits], ends[fits], sizes[fits]
    sizes = np.minimum(sizes, _LONGEST + 1)
    at = np.ndarray(len(text) - 7, "<u8", text, strides=(1,))  # the 8 bytes from each place
    return Tokens(
        text,
        starts,
        ends,
        at[starts] & _LOW[sizes],
        at[starts + 8] & _HIGH[sizes] | _LENGTH[sizes],
        np.diff(np.searchsorted(starts, np.flatnonzero(data == ord("\n")))),
    )


class Dictionary:
    """Words and their numbers; a defaultdict gives new words new numbers, in any other dict they are unknown.

    In front of it there is a table in which a word's hash says where its number is. The first word of a hash has the
    place; the others, few or rare because the table is large, are looked up one by one.
    """

    def __init__(self, numbers: dict[str, int]) -> None:
        self.numbers = numbers
        self._grows = isinstance(numbers, defaultdict)

    def look_up(self, tokens: Tokens) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The numbers of tokens without stop words, -1 for unknown ones, and how many each text has."""
        table = self._table
        slots = table.slots(tokens)
        numbers = table.numbers[slots]
        missed = np.flatnonzero((table.low[slots] != tokens.low) | (table.high[slots] != tokens.high))
        if self._grows:
            own = slots[missed]
            new = table.firsts(own, tokens, missed)
            table.put(slots[new], tokens, new, self._one_by_one(tokens, new))
            numbers[missed] = table.numbers[own]
            missed = missed[(table.low[own] != tokens.low[missed]) | (table.high[own] != tokens.high[missed])]
        numbers[missed] = self._one_by_one(tokens, missed)
        kept = numbers != STOP
        before = np.concatenate([[0], np.cumsum(kept)])
        return numbers[kept], np.diff(before[np.cumsum(tokens.lengths)], prepend=0)

    def forget(self, words: Collection[str]) -> None:
        """Remove words. Their numbers are not given again."""
        for word in words:
            del self.numbers[word]
        del self._table

    @cached_property  # so that a few words can be looked up in `numbers` without it
    def _table(self) -> "_Table":
        size = _SLOTS if self._grows else min(_SLOTS, 1 << (8 * len(self.numbers) + 1).bit_length())
        table = _Table(np.zeros(size, np.uint64), np.zeros(size, np.uint64), np.zeros(size, np.int32))
        words = split([" ".join(self.numbers)], 1, sys.maxsize)
        slots = table.slots(words)
        first = table.firsts(slots, words, np.arange(len(slots)))
        numbers = np.fromiter(self.numbers.values(), np.int32, len(self.numbers))
        table.put(slots[first], words, first, numbers[first])
        return table

    def _one_by_one(self, tokens: Tokens, places: NDArray[np.intp]) -> list[int]:
        text, numbers = tokens.text, self.numbers
        spans = zip(tokens.starts[places].tolist(), tokens.ends[places].tolist(), strict=True)
        words = (text[start:end].decode() for start, end in spans)
        return [numbers[word] for word in words] if self._grows else [numbers.get(word, UNKNOWN) for word in words]


class _Table(NamedTuple):
    low: NDArray[np.uint64]  # (slots,) a word as in Tokens
    high: NDArray[np.uint64]  # (slots,) 0 in a free slot
    numbers: NDArray[np.int32]  # (slots,)

    def slots(self, tokens: Tokens) -> NDArray[np.intp]:
        """Where the number of each token is, if anywhere."""
        # Multiplied by large odd numbers, so that every byte changes the first bits.
        mixed = (tokens.high * np.uint64(0xC2B2AE3D27D4EB4F) + tokens.low) * np.uint64(0x9E3779B97F4A7C15)
        slots: NDArray[np.intp] = (mixed >> np.uint64(65 - len(self.low).bit_length())).astype(np.intp)
        return slots

    def firsts(self, slots: NDArray[np.intp], tokens: Tokens, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """The first of some places for each free slot, if its token is short enough."""
        free = (self.high[slots] == 0) & (tokens.high[places] < _LENGTH[-1])
        slots, places = slots[free], places[free]
        self.numbers[slots[::-1]] = places[::-1]  # of places with the same slot, the last that is written stays
        first: NDArray[np.intp] = places[self.numbers[slots] == places]
        return first

    def put(self, slots: NDArray[np.intp], tokens: Tokens, places: NDArray[np.intp], numbers: ArrayLike) -> None:
        """Write the tokens at some places, and their numbers, to slots."""
        self.numbers[slots] = numbers
        self.low[slots], self.high[slots] = tokens.low[places], tokens.high[places]
