"""Arrays on disk: `.npy` files with a checksum each, written piece by piece and memory-mapped, and tables of keys."""

import mmap
import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.storage import array_header

OFFSETS = ".offsets"  # the array NAME.offsets says where each string of NAME begins, and where the last one ends
KEYS, ROWS, VALUES = ".keys", ".rows", ".values"  # the arrays of a table, sorted by keys
REMEDY = "restore it from a copy, or build the index again"


class Form(NamedTuple):
    """What the manifest says of an array: its type, its shape, and the CRC-32 of its bytes."""

    dtype: str
    shape: list[int]
    checksum: int


class MappedArrays:
    """The arrays of a folder, memory-mapped: opened at once whatever their size, and valid as long as they are used.

    Opening checks that every file has the size and the header that were written; `verify` checks every byte.
    """

    def __init__(self, folder: Path, forms: Mapping[str, Form]) -> None:
        self._folder, self._forms = folder, forms
        self._arrays = {name: _mapped(folder / f"{name}.npy", form) for name, form in forms.items()}
        self.size = sum(array.nbytes for array in self._arrays.values())

    def starting_with(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays whose names begin so, by the rest of their names."""
        return {name.removeprefix(prefix): self[name] for name in self._arrays if name.startswith(prefix)}

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def strings(self, name: str, rows: NDArray[np.int64]) -> list[bytes]:
        """Some strings of an array of bytes."""
        content, offsets = self[name].data, self[name + OFFSETS]
        starts, stops = offsets[rows], offsets[rows + 1]
        if (starts > stops).any() or stops.max(initial=0) > len(content):
            raise IndexFolderError(f"{self._folder / name}{OFFSETS}.npy is damaged", hint=REMEDY)
        return [bytes(content[start:stop]) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def bounds(self, table: str, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each key begin and end in a table."""
        column = self[table + KEYS]
        return np.searchsorted(column, keys), np.searchsorted(column, keys, side="right")

    def verify(self) -> None:
        """Raise unless every byte is what was written."""
        for name, form in self._forms.items():
            if zlib.crc32(self[name].data) != form.checksum:
                raise IndexFolderError(f"{self._folder / name}.npy is damaged", hint=REMEDY)


def _mapped(path: Path, form: Form) -> NDArray[Any]:
    header, dtype = array_header(form.dtype, tuple(form.shape)), np.dtype(form.dtype)
    wanted = len(header) + dtype.itemsize * prod(form.shape)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size != wanted:
            raise IndexFolderError(f"{path} is damaged: it has {size} bytes instead of {wanted}", hint=REMEDY)
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if content[: len(header)] != header:
        raise IndexFolderError(f"{path} is damaged: its header is not the one that was written", hint=REMEDY)
    return np.frombuffer(content, np.uint8)[len(header) :].view(dtype).reshape(form.shape)
