"""Where the bits of a code differ from a query's, as a few characters."""

import numpy as np
from numpy.typing import NDArray

_DOTS = np.array([0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80])  # of a Braille cell, down the left column first
_BRAILLE = 0x2800
_BARS = " ▁▂▃▄▅▆▇█"
_MOST = 32  # characters


def bit_pattern(differing: NDArray[np.bool_], plain: bool = False) -> str:
    """A code beside a query's: the emptier, the nearer.

    A character stands for 8 bits, and each of its Braille dots for a bit that differs. Where that would be more than
    32 characters, each stands for more bits, as a bar: the higher, the more of them differ. `plain` is for terminals
    that have neither: how many bits differ, a point for none and a + for more than 9. These add up to the distance.

    Example:
        >>> differing = np.zeros(28, dtype=np.bool_)
        >>> differing[[0, 3, 9, 27]] = True
        >>> bit_pattern(differing), bit_pattern(differing, plain=True)
        ('⡁⠂⠀⡀', '21.1')
        >>> bit_pattern(np.arange(512) < 250)
        '███████████████▅                '
    """
    bits = len(differing)
    group = 8 if bits <= 8 * _MOST else -(-bits // _MOST)
    padded = np.zeros(-(-bits // group) * group, dtype=np.bool_)
    padded[:bits] = differing
    groups = padded.reshape(-1, group)
    counts = groups.sum(axis=1).tolist()
    if plain:
        return "".join("." if not count else str(count) if count < 10 else "+" for count in counts)
    if group > 8:
        return "".join(_BARS[-(-count * (len(_BARS) - 1) // group)] for count in counts)
    return "".join(chr(_BRAILLE + cell) for cell in (groups @ _DOTS).tolist())
