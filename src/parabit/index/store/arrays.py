"""Arrays on disk: `.npy` files with a checksum each, written piece by piece and memory-mapped, and tables of keys."""

import json
import mmap
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.schema import Layout
from parabit.storage import ArrayWriter, array_header, sync

KEYS, ROWS, VALUES = ".keys", ".rows", ".values"  # the arrays of a table
_REMEDY = "restore it from a copy, or build the index again"
_PIECE = 1 << 24  # bytes that a checksum reads at a time


class Form(NamedTuple):
    """The type and the shape of an array, and the CRC-32 of its bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    checksum: int = 0

    @property
    def size(self) -> int:
        """How many bytes it takes, without its header."""
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def header(self) -> bytes:
        """How its file begins."""
        return array_header(self.dtype, self.shape)

    def to_json(self) -> list[Any]:
        """For a manifest."""
        return [self.dtype.str, list(self.shape), self.checksum]

    @classmethod
    def of_json(cls, written: list[Any]) -> "Form":
        """What `to_json` gave."""
        dtype, shape, *checksum = written
        return cls(np.dtype(dtype), tuple(shape), *checksum)

    def of_buffer(self, buffer: Any, start: int) -> NDArray[Any]:
        """The array whose bytes are there in a buffer; it uses the buffer's memory."""
        count = self.size // self.dtype.itemsize
        flat = np.frombuffer(buffer, self.dtype, count, start) if count else np.zeros(0, self.dtype)
        return flat.reshape(self.shape)


class CheckedWriter(ArrayWriter):
    """Writes an array piece by piece and computes its checksum; it is on the disk when the block ends."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout.dtype, layout.row)
        self._path, self._layout, self._checksum = path, layout, 0

    def append(self, array: NDArray[Any]) -> None:
        """Add a piece."""
        array = np.ascontiguousarray(array, dtype=self._layout.dtype)
        super().append(array)
        self._checksum = zlib.crc32(array.reshape(-1).view(np.uint8).data, self._checksum)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            sync(self._path)

    @property
    def form(self) -> Form:
        """What the manifest says of it."""
        return Form(self._layout.dtype, (self.length, *self._layout.row), self._checksum)


class MappedArrays:
    """The arrays of a folder, memory-mapped: opened at once whatever their size, and valid as long as they are used.

    Opening checks that every file has the size and the header that were written; `verify` checks every byte.
    """

    def __init__(self, folder: Path, forms: Mapping[str, Form]) -> None:
        self._folder, self._forms = folder, forms
        self._maps = {name: _mapped(folder / f"{name}.npy", form) for name, form in forms.items()}
        self._arrays: dict[str, NDArray[Any]] = {}

    @property
    def size(self) -> int:
        """How many bytes all arrays take."""
        return sum(form.size for form in self._forms.values())

    def names(self, start: str) -> list[str]:
        """The names of arrays that begin so, without that beginning."""
        return [name.removeprefix(start) for name in self._forms if name.startswith(start)]

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            form = self._forms[name]
            array = form.of_buffer(self._maps[name], len(form.header))
            array.flags.writeable = False
            self._arrays[name] = array
        return self._arrays[name]

    def verify(self) -> None:
        """Raise unless every byte is what was written."""
        for name, form in self._forms.items():
            checksum = 0
            with memoryview(self._maps[name]) as content:
                for start in range(len(form.header), len(content), _PIECE):
                    checksum = zlib.crc32(content[start : start + _PIECE], checksum)
            if checksum != form.checksum:
                raise IndexFolderError(f"{self._folder / name}.npy is damaged", hint=_REMEDY)


def _mapped(path: Path, form: Form) -> mmap.mmap:
    header = form.header
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size != len(header) + form.size:
            raise IndexFolderError(
                f"{path} has {size} bytes where {len(header) + form.size} were written", hint=_REMEDY
            )
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[: len(header)] != header:
        raise IndexFolderError(f"{path} is damaged: it does not begin as it was written", hint=_REMEDY)
    return data


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Some arrays as one byte string."""
    forms = {name: Form(array.dtype, array.shape).to_json()[:2] for name, array in arrays.items()}
    head = json.dumps(forms).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays.values())])


def unpacked(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays that `packed` wrote."""
    start = 8 + int.from_bytes(content[:8], "little")
    arrays = {}
    for name, written in json.loads(content[8:start]).items():
        form = Form.of_json(written)
        arrays[name] = form.of_buffer(content, start)
        start += form.size
    return arrays


class TableWriter:
    """Collects entries, each a key and one or two columns, and sorts them by key: 16 or 24 bytes of memory per entry.

    Entries of one key stay in the order they came in.
    """

    def __init__(self, columns: Mapping[str, DTypeLike]) -> None:
        types = {KEYS: np.dtype(np.uint64)} | {name: np.dtype(of) for name, of in columns.items()}
        self.layouts = {name: Layout(dtype) for name, dtype in types.items()}
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(self, keys: NDArray[np.uint64], *columns: NDArray[Any]) -> None:
        """Add entries."""
        self._parts.append((keys, *columns))

    def finish(self, writers: Mapping[str, CheckedWriter]) -> None:
        """Write the table."""
        columns = list(zip(*self._parts, strict=True)) or [() for _ in self.layouts]
        self._parts.clear()
        order = np.argsort(np.concatenate([np.zeros(0, np.uint64), *columns[0]]), kind="stable")
        for name, layout in self.layouts.items():
            writers[name].append(np.concatenate([np.zeros(0, layout.dtype), *columns.pop(0)])[order])


class Table:
    """Finds the rows, and their values if there are any, that were added with a key."""

    def __init__(self, arrays: MappedArrays, name: str) -> None:
        self.keys: NDArray[np.uint64] = arrays[name + KEYS]
        self.columns = [arrays[name + part] for part in (ROWS, VALUES) if part in arrays.names(name)]

    def bounds(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the entries of each key begin and end."""
        return np.searchsorted(self.keys, keys), np.searchsorted(self.keys, keys, side="right")

    def find(self, key: int) -> list[NDArray[Any]]:
        """The columns of the entries with a key."""
        (start,), (stop,) = self.bounds(np.array([key], dtype=np.uint64))
        return [column[start:stop] for column in self.columns]
