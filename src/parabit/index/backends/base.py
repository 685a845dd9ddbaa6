"""What every back end offers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from parabit.index.results import Found
from parabit.progress import Report, silent

Arrays = Mapping[str, NDArray[Any]]


class Backend(ABC):
    """A way to search codes where they lie, which may be a memory map: they are neither changed nor copied.

    All back ends give the same answer: hits come nearest first, and of equally near ones the lowest row first. What is
    asked is checked by the caller.
    """

    name: ClassVar[str]

    def __init__(self, codes: NDArray[np.uint8], bits: int, arrays: Arrays | None = None) -> None:
        """Open what `build` gave for these codes, in a time that does not grow with them; without it, build it."""
        # faiss needs contiguous rows; and of a np.memmap every slice takes time.
        self.codes, self.bits = np.ascontiguousarray(codes), bits

    @classmethod
    def build(cls, codes: NDArray[np.uint8], bits: int, report: Report = silent) -> dict[str, NDArray[Any]]:
        """The arrays that the back end needs beside the codes, to be stored with them."""
        return {}

    @abstractmethod
    def search(self, queries: NDArray[np.uint8], most: int | None = None, radius: int | None = None) -> Found:
        """The nearest `most` codes of each query, or all within `radius` bits, or the nearest of those."""
