"""Packed bits: the one place that knows their order.

A code of n bits is a row of ceil(n / 8) bytes. The first bit is the highest of the first byte, as in `np.packbits`, and
zeros fill the last byte.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parabit.errors import CodesError

# Pairs compared at a time: few enough that a block stays in the cache. Sixteen times as many take 1.5 times as long.
_BLOCK = 1 << 18


def bytes_per_code(bits: int) -> int:
    """The size of a code in bytes.

    Parameters:
        bits: The length of the code.

    Example:
        >>> bytes_per_code(128), bytes_per_code(9)
        (16, 2)
    """
    return (bits + 7) // 8


def pack(bits: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pack bits into codes, (…, bits) to (…, bytes).

    Example:
        >>> pack(np.array([[1, 0, 0, 0, 0, 0, 0, 1, 1]], dtype=np.uint8))
        array([[129, 128]], dtype=uint8)
    """
    if bits.dtype not in (np.bool_, np.uint8):
        raise CodesError(
            f"bits must be bool or uint8, found {bits.dtype}",
            hint="convert them, as in `vectors > 0`",
        )
    if bits.ndim == 0 or bits.shape[-1] == 0:
        raise CodesError(
            f"there are no bits to pack in an array of shape {bits.shape}",
            hint="give one bit or more",
        )
    # Codes that are packed already would be taken for bits, and lose most of their information.
    if bits.dtype == np.uint8 and bits.size and bits.max() > 1:
        raise CodesError(
            f"bits must be 0 or 1, found {bits.max()}", hint="packed codes need no packing"
        )
    return np.packbits(bits, axis=-1)


def unpack(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Unpack codes into bits, each 0 or 1, (…, bytes) to (…, bits).

    Example:
        >>> unpack(np.array([[129, 128]], dtype=np.uint8), bits=9)
        array([[1, 0, 0, 0, 0, 0, 0, 1, 1]], dtype=uint8)
    """
    check_codes(codes, bits)
    return np.unpackbits(codes, axis=-1, count=bits)


def hamming(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.int32]:
    """The number of bits in which each code of a differs from each code of b, (len(a), len(b)).

    Example:
        >>> a = pack(np.array([[0, 0, 0], [1, 1, 0]], dtype=np.uint8))
        >>> b = pack(np.array([[0, 0, 1], [1, 1, 1], [1, 1, 0]], dtype=np.uint8))
        >>> hamming(a, b)
        array([[1, 3, 2],
               [3, 1, 0]], dtype=int32)
    """
    for codes in (a, b):
        if codes.ndim != 2:
            problem = f"codes to compare must be rows of a 2-d array, found {codes.ndim} dimensions"
            raise CodesError(problem, hint="give a single code as `code[None]`")
        check_codes(codes)
    if a.shape[1] != b.shape[1]:
        problem = f"codes of {a.shape[1]} bytes cannot be compared with codes of {b.shape[1]}"
        raise CodesError(problem, hint="encode both with the same model")
    queries, documents = (
        _words(a),
        np.ascontiguousarray(_words(b).T),
    )  # (len(a), words), (words, len(b))
    distances = np.zeros((len(a), len(b)), dtype=np.int32)
    rows = max(1, _BLOCK // max(1, len(b)))
    for start in range(0, len(a), rows):
        block = slice(start, start + rows)
        for word, column in enumerate(documents):
            distances[block] += np.bitwise_count(queries[block, word, None] ^ column)
    return distances


def check_codes(codes: NDArray[Any], bits: int | None = None) -> None:
    """Raise CodesError unless these are packed codes and, if `bits` is given, of that many bits."""
    if codes.dtype != np.uint8:
        raise CodesError(
            f"packed codes are uint8, found {codes.dtype}", hint="convert bits to codes with `pack`"
        )
    if codes.ndim == 0 or codes.shape[-1] == 0:
        raise CodesError(
            f"there are no codes in an array of shape {codes.shape}", hint="give rows of bytes"
        )
    if bits is None:
        return
    width, padding = bytes_per_code(bits), 0xFF >> (bits % 8) if bits % 8 else 0
    problem = ""
    if bits < 1:
        problem = f"a code has 1 bit or more, found bits={bits}"
    elif codes.shape[-1] != width:
        problem = f"{bits} bits take {width} bytes, but the codes have {codes.shape[-1]}"
    elif (codes[..., -1] & padding).any():
        problem = (
            f"the codes have bits after the first {bits}, where zeros should fill the last byte"
        )
    if problem:
        raise CodesError(problem, hint="give the bits they were packed from")


def _words(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The codes as 64-bit words, (codes, words): an eighth of the steps; the zeros that fill them add no distance."""
    missing = -codes.shape[1] % 8
    padded = np.pad(codes, ((0, 0), (0, missing))) if missing else codes
    return np.ascontiguousarray(padded).view(np.uint64)
