"""Arrays on disk: `.npy` files with a checksum for each block, written piece by piece and mapped into memory."""

import json
import mmap
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from parabit.errors import IndexFolderError
from parabit.index.store.schema import Layout
from parabit.storage import ArrayWriter, array_header, sync

# What one check reads: little enough for the text of a hit to come at once. Checksums are a 16,000th of the data.
BLOCK = 1 << 16
CHECKSUMS = "checksums"
_REMEDY = "restore it from a copy, or build the index anew"


class Form(NamedTuple):
    """The type and the shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))

    @property
    def blocks(self) -> int:
        return -(-self.size // BLOCK)

    def to_json(self) -> list[Any]:
        """For a manifest."""
        return [np.lib.format.dtype_to_descr(self.dtype), list(self.shape)]

    @classmethod
    def of_json(cls, written: list[Any]) -> "Form":
        """What `to_json` gave; JSON has made lists of the tuples of a structured type."""
        descr, shape = written
        if isinstance(descr, list):
            descr = [tuple(part) for part in descr]
        return cls(np.lib.format.descr_to_dtype(descr), tuple(shape))


class CheckedWriter(ArrayWriter):
    """Writes an array piece by piece, with the checksums of its blocks; on the disk when the block ends."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path, layout.dtype, layout.row)
        self._path = path
        self._layout = layout
        self._checksums: list[int] = []
        self._filled = BLOCK  # of the block that was begun last

    def append(self, array: NDArray[Any]) -> None:
        """Add a piece, and take note of its bytes."""
        array = np.ascontiguousarray(array, dtype=self._layout.dtype)
        super().append(array)
        data = array.reshape(-1).view(np.uint8).data
        while data:
            if self._filled == BLOCK:
                self._checksums.append(0)
                self._filled = 0
            piece, data = data[: BLOCK - self._filled], data[BLOCK - self._filled :]
            self._checksums[-1] = zlib.crc32(piece, self._checksums[-1])
            self._filled += len(piece)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        if error is None:
            sync(self._path)

    @property
    def form(self) -> Form:
        return Form(self._layout.dtype, (self.length, *self._layout.row))

    @property
    def checksums(self) -> NDArray[np.uint32]:
        return np.array(self._checksums, dtype="<u4")


def write_checksums(folder: Path, writers: Mapping[str, CheckedWriter]) -> int:
    """Write the checksums of all blocks of all arrays, in the order of the arrays; gives the checksum of these."""
    content = b"".join(writer.checksums.tobytes() for writer in writers.values())
    (folder / CHECKSUMS).write_bytes(content)
    sync(folder / CHECKSUMS)
    return zlib.crc32(content)


class MappedArrays:
    """The arrays of a folder, mapped: opened at once whatever their size, and there until nobody uses them.

    Opening checks that every file is as long as it was written, begins as it was written, and has the first block that
    was written. Rows that are asked for one by one are checked when first read (`need`); arrays that a search scans
    whole are not, as that would take longer than the search: `verify` checks everything.
    """

    def __init__(self, folder: Path, forms: Mapping[str, Form], checksum: int) -> None:
        self._folder = folder
        self._forms = forms
        self._maps = {name: _mapped(folder / f"{name}.npy", form) for name, form in forms.items()}
        self._checksums = self._read_checksums(checksum)
        self._checked = {name: np.zeros(form.blocks, dtype=np.bool_) for name, form in forms.items()}
        self._arrays: dict[str, NDArray[Any]] = {}
        for name, form in forms.items():
            _need_header(folder / f"{name}.npy", form, self._maps[name])
            if form.blocks:
                self._check(name, 0)

    @property
    def size(self) -> int:
        """The size of all arrays together."""
        return sum(form.size for form in self._forms.values())

    def names(self, start: str) -> list[str]:
        """The names of arrays that begin so, without that beginning."""
        return [name.removeprefix(start) for name in self._forms if name.startswith(start)]

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            dtype, shape = self._forms[name]
            skip = len(array_header(dtype, shape))
            count = self._forms[name].size // dtype.itemsize
            flat = np.frombuffer(self._maps[name], dtype, count, skip) if count else np.zeros(0, dtype)
            self._arrays[name] = flat.reshape(shape)
            self._arrays[name].flags.writeable = False
        return self._arrays[name]

    def need(self, name: str, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        """Raise unless the elements between these bounds are what was written; each block is looked at once."""
        size = self._forms[name].dtype.itemsize
        blocks: set[int] = set()
        full = stops > starts
        first, last = starts[full] * size // BLOCK, (stops[full] * size - 1) // BLOCK
        for start, stop in zip(first.tolist(), last.tolist(), strict=True):
            blocks.update(range(start, stop + 1))
        checked = self._checked[name]
        for block in sorted(blocks):
            if not checked[block]:
                self._check(name, block)

    def verify(self) -> None:
        """Raise unless every byte is what was written."""
        for name, form in self._forms.items():
            for block in range(form.blocks):
                self._check(name, block)

    def _check(self, name: str, block: int) -> None:
        form, data = self._forms[name], self._maps[name]
        start = len(data) - form.size + block * BLOCK
        with memoryview(data)[start : start + BLOCK] as piece:
            checksum = zlib.crc32(piece)
        if checksum != self._checksums[name][block]:
            raise IndexFolderError(f"{self._folder / name}.npy is damaged", hint=_REMEDY)
        self._checked[name][block] = True

    def _read_checksums(self, checksum: int) -> dict[str, NDArray[np.uint32]]:
        path = self._folder / CHECKSUMS
        content = path.read_bytes()
        ends = np.cumsum([form.blocks for form in self._forms.values()], dtype=np.int64)
        if zlib.crc32(content) != checksum or len(content) != 4 * ends[-1]:
            raise IndexFolderError(f"{path} is damaged", hint=_REMEDY)
        parts = np.split(np.frombuffer(content, dtype="<u4"), ends[:-1])
        return dict(zip(self._forms, parts, strict=True))


def _mapped(path: Path, form: Form) -> mmap.mmap:
    header = array_header(form.dtype, form.shape)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size != len(header) + form.size:
            raise IndexFolderError(
                f"{path} has {size} bytes where {len(header) + form.size} were written", hint=_REMEDY
            )
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_WILLNEED"):  # the disk fetches the beginnings of all files while the first is checked
        data.madvise(mmap.MADV_WILLNEED, 0, min(len(data), len(header) + BLOCK))
    return data


def _need_header(path: Path, form: Form, data: mmap.mmap) -> None:
    header = array_header(form.dtype, form.shape)
    if data[: len(header)] != header:
        raise IndexFolderError(f"{path} is damaged: it does not begin as it was written", hint=_REMEDY)


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Some arrays as one string of bytes.

    Example:
        >>> unpacked(packed({"a": np.arange(3), "b": np.zeros((0, 2))}))["a"].tolist()
        [0, 1, 2]
    """
    forms = {name: Form(array.dtype, array.shape).to_json() for name, array in arrays.items()}
    head = json.dumps(forms).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays.values())])


def unpacked(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays that `packed` wrote; they use the memory of what is given."""
    start = 8 + int.from_bytes(content[:8], "little")
    arrays = {}
    for name, written in json.loads(content[8:start]).items():
        form = Form.of_json(written)
        count = form.size // form.dtype.itemsize
        flat = np.frombuffer(content, form.dtype, count, start) if count else np.zeros(0, form.dtype)
        arrays[name] = flat.reshape(form.shape)
        start += form.size
    return arrays
