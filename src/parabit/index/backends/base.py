"""What every back end offers, and what it may be asked."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from parabit.codes import check_codes
from parabit.errors import CodesError
from parabit.index.results import Found, Nearest
from parabit.progress import Report, silent

Arrays = Mapping[str, NDArray[Any]]


class Backend(Protocol):
    """A way to search codes where they lie, which may be a memory map: they are neither changed nor held twice.

    Hits come nearest first, and of equally near ones the lowest row first, so every back end gives the same answer.
    """

    name: ClassVar[str]
    codes: NDArray[np.uint8]  # (n, bytes)
    bits: int

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> Self:
        """Make what the back end needs beside the codes."""
        ...

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was built, to be kept beside the codes."""
        ...

    @classmethod
    def of_arrays(cls, codes: NDArray[np.uint8], bits: int, arrays: Arrays) -> Self:
        """Open what was kept, in a time that does not grow with the codes."""
        ...

    def nearest(self, queries: NDArray[np.uint8], k: int) -> Nearest:
        """The k nearest codes of each query."""
        ...

    def within(self, queries: NDArray[np.uint8], radius: int, most: int | None = None) -> Found:
        """All codes that differ from a query in `radius` bits or fewer; the nearest `most` where that is given."""
        ...


def check_searched(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The codes as a plain array, or a CodesError where they cannot be searched; looks at their shape alone.

    Example:
        >>> check_searched(np.zeros((5, 4), dtype=np.uint8), bits=28).shape
        (5, 4)
    """
    if codes.ndim != 2 or not codes.flags.c_contiguous:
        raise CodesError(
            f"codes to search must be rows of a contiguous 2-d array, found shape {codes.shape}",
            hint="copy them with `np.ascontiguousarray`",
        )
    check_codes(codes[:1], bits)
    return np.asarray(codes)  # not a np.memmap, whose every slice takes time


def check_asked(queries: NDArray[np.uint8], bits: int, k: int | None = None, radius: int | None = None) -> None:
    """Raise CodesError unless these queries can be asked of codes of so many bits.

    Example:
        >>> check_asked(np.zeros((5, 4), dtype=np.uint8), bits=28, k=0)
        Traceback (most recent call last):
        parabit.errors.CodesError: k must be 1 or more, found 0; ask for at least one hit
    """
    if queries.ndim != 2:
        raise CodesError(
            f"queries must be rows of a 2-d array, found shape {queries.shape}",
            hint="give a single code as `code[None]`",
        )
    check_codes(queries, bits)
    if k is not None and k < 1:
        raise CodesError(f"k must be 1 or more, found {k}", hint="ask for at least one hit")
    if radius is not None and radius < 0:
        raise CodesError(f"a radius is 0 or more, found {radius}", hint="0 finds equal codes")


def check_kept(name: str, arrays: Arrays, expected: dict[str, tuple[int, ...]]) -> None:
    """Raise CodesError unless the arrays that a back end kept are there, in the shapes that the codes ask for.

    Example:
        >>> check_kept("multi", {"rows": np.zeros(3)}, {"rows": (4,)})
        Traceback (most recent call last):
        parabit.errors.CodesError: the array rows of multi should have the shape (4,), found (3,); build it again
    """
    for array, shape in expected.items():
        found = arrays[array].shape if array in arrays else None
        if found != shape:
            raise CodesError(
                f"the array {array} of {name} should have the shape {shape}, found {found}",
                hint="build it again",
            )
