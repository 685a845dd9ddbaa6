"""Codes cut into substrings: which bit goes where, and the substrings as numbers.

Bits that tend to be equal go to different substrings. Two bits in one substring that say the same make its buckets half
as many and twice as full.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SAMPLED = 20_000  # codes that show which bits go together
_AT_A_TIME = 8192  # codes whose substrings are read at once, so that what that takes stays in the cache


def spread(codes: NDArray[np.uint8], bits: int, lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    """Bits for substrings of these lengths, each bit at most once, so that those in one agree by chance alone.

    Example:
        >>> codes = np.array([[0b00110000], [0b11000000], [0b11110000], [0b00000000]], dtype=np.uint8)
        >>> spread(codes, bits=4, lengths=[2, 2])  # the first two bits are always equal, and so are the last two
        [array([0, 2]), array([1, 3])]
    """
    step = max(1, len(codes) // _SAMPLED)
    signs = np.unpackbits(np.ascontiguousarray(codes[::step]), axis=1, count=bits).astype(np.float32) * 2 - 1
    together = (signs.T @ signs / max(1, len(signs))) ** 2  # (bits, bits), 1 where two bits always say the same
    mean = signs.mean(axis=0) if len(signs) else np.zeros(bits)
    groups: list[list[int]] = [[] for _ in lengths]
    # The most balanced bits first: should there be more bits than places, those that say least are left.
    for bit in np.argsort(np.round(np.abs(mean), 2), kind="stable"):
        open_ones = [place for place, length in enumerate(lengths) if len(groups[place]) < length]
        if not open_ones:
            break
        loads = [
            (float(together[bit, groups[place]].sum()), len(groups[place]) - lengths[place]) for place in open_ones
        ]
        groups[open_ones[loads.index(min(loads))]].append(int(bit))
    return [np.sort(np.array(group, dtype=np.int64)) for group in groups]


class Substrings:
    """Reads substrings out of codes, each as a number.

    Example:
        >>> substrings = Substrings(12, [np.array([0, 1, 2]), np.array([3, 11])])
        >>> substrings.read(np.array([[0b10100000, 0b00010000]], dtype=np.uint8))
        array([[5, 1]], dtype=uint32)
    """

    def __init__(self, bits: int, groups: Sequence[NDArray[Any]]) -> None:
        self.bits, self.lengths = groups, [len(group) for group in groups]
        width = -(-bits // 8)
        # What each value of each byte adds to each substring: a look-up a byte, whatever bits go where.
        self._parts = np.zeros((width, 256, len(groups)), dtype=np.uint32)
        values = np.arange(256)
        for substring, group in enumerate(groups):
            for rank, bit in enumerate(group.tolist()):
                here = (values >> (7 - bit % 8)) & 1
                self._parts[bit // 8, :, substring] |= (here << (len(group) - 1 - rank)).astype(np.uint32)
        self._bytes = np.arange(width)

    def read(self, codes: NDArray[np.uint8]) -> NDArray[np.uint32]:
        """The substrings of codes, (codes, substrings)."""
        if len(codes) <= _AT_A_TIME:
            few: NDArray[np.uint32] = np.bitwise_or.reduce(self._parts[self._bytes, codes], axis=1)
            return few
        read = np.empty((len(codes), len(self.bits)), dtype=np.uint32)
        for start in range(0, len(codes), _AT_A_TIME):
            some = slice(start, start + _AT_A_TIME)
            np.bitwise_or.reduce(self._parts[self._bytes, codes[some]], axis=1, out=read[some])
        return read
