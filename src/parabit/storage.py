"""Writing to disk so that a name never stands for half of a thing."""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parabit.errors import ParabitError

CHECKPOINT = "checkpoint-"  # how the names of checkpoint folders begin


@contextmanager
def whole_file(path: Path, durable: bool = False) -> Iterator[Path]:
    """Give a name to write to, beside `path`; what is there when the block ends becomes `path`, in one step.

    After an error or an interrupt the old file is still there and the new one is gone. What is `durable` is on the disk
    before it takes the name, so that a power cut leaves it whole too.
    """
    _need_place_for_file(path)
    partial = _beside(path)
    try:
        with _told_of(path):
            partial.touch(mode=0o600, exist_ok=False)
        yield partial
        partial.chmod(0o666 & ~_umask())
        if durable:
            settle(partial)
        partial.replace(path)
        if durable:
            settle(path.parent)
    finally:
        with suppress(OSError):  # what went wrong before is what is told
            partial.unlink()


@contextmanager
def whole_folder(path: Path, replaces: Callable[[Path], bool] | None = None, durable: bool = False) -> Iterator[Path]:
    """Give a new folder beside `path` to fill; it takes the name when the block ends.

    An old folder is replaced only if `replaces` says that it is of the same kind: a slip of the pen must not cost
    anybody their documents. After an error or an interrupt it is still there and the new one is gone. What is `durable`
    is on the disk before it takes the name, so that a power cut leaves it whole too.
    """
    _need_place_for_folder(path, replaces)
    partial = _beside(path)
    try:
        with _told_of(path):
            partial.mkdir(mode=0o700)
        yield partial
        partial.chmod(0o777 & ~_umask())
        if durable:
            for written in (*partial.iterdir(), partial):
                settle(written)
        _take_name(partial, path)
        if durable:
            settle(path.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def need_room_for_folder(path: Path, replaces: Callable[[Path], bool] | None = None) -> None:
    """Raise if `whole_folder` could not write a folder of this name; to ask before long work."""
    _need_place_for_folder(path, replaces)
    partial = _beside(path)
    try:
        with _told_of(path):
            partial.mkdir(mode=0o700)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _beside(path: Path) -> Path:
    """A name beside another one, of which nothing is there yet.

    It is known before anything is made, so that a signal in between finds what is to be cleared away.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def _need_place_for_folder(path: Path, replaces: Callable[[Path], bool] | None) -> None:
    _need_parent(path)
    if path.exists() or path.is_symlink():
        if replaces is None:
            raise ParabitError(f"{path} is there already", hint="choose another name, or ask for it to be overwritten")
        if not replaces(path):
            raise ParabitError(
                f"{path} is there and is something else", hint="nothing was touched; choose another name"
            )


def settle(path: Path) -> None:
    """Wait until a file or a folder's list of names is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy_folder(source: Path, place: Path) -> None:
    """Copy a folder of files to a new name, and wait until they are on the disk."""
    shutil.copytree(source, place)
    for written in (*place.iterdir(), place):
        settle(written)


@contextmanager
def plain_disk_errors(*others: type[Exception]) -> Iterator[None]:
    """Turn what polars raises for a full disk, each time something else, into the OSError that all others raise.

    `others` are what other libraries in Rust raise for it.
    """
    import polars as pl  # here: training writes checkpoints where there is no polars

    kinds: tuple[type[Exception], ...] = (pl.exceptions.PolarsError, OSError, *others)
    try:
        yield
    except kinds as problem:
        number = re.search(r"\(os error (\d+)\)", str(problem))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from problem


class ArrayWriter:
    """Writes a `.npy` file piece by piece, its length known only at the end; `row` is the shape of one of its rows.

    Plain writes, not a memory map: a full disk is then an error that can be told, where a map would kill the process.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with ArrayWriter(Path(folder, "a.npy"), np.int32) as writer:
        ...         writer.append(np.array([1, 2])); writer.append(np.array([3]))
        ...     np.load(Path(folder, "a.npy")).tolist()
        [1, 2, 3]
    """

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._row = row
        self._file = path.open("wb")
        self.length = 0

    def __enter__(self) -> "ArrayWriter":
        self._write_header()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            if error is None:
                self._file.seek(0)
                self._write_header()

    def append(self, array: NDArray[Any]) -> None:
        """Add a piece; it must fit the file's type without loss."""
        self._file.write(np.ascontiguousarray(array, dtype=self._dtype).data)
        self.length += len(array)

    def _write_header(self) -> None:
        # numpy leaves room in the header for the first dimension to grow, so that it can be written again.
        self._file.write(array_header(self._dtype, (self.length, *self._row)))


def array_header(dtype: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """How the `.npy` file of such an array begins; as long for every length of the first dimension.

    Example:
        >>> len(array_header(np.int32, (5, 2))) == len(array_header(np.int32, (5_000_000, 2)))
        True
    """
    header = BytesIO()
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _take_name(partial: Path, path: Path) -> None:
    if not path.exists():
        partial.rename(path)
        return
    # No system call swaps two folders everywhere; the old one keeps another name until the new one has its place.
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    try:
        path.rename(old / path.name)
        try:
            partial.rename(path)
        except BaseException:
            (old / path.name).rename(path)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def need_room_for_file(path: Path) -> None:
    """Raise if a file of this name could not be written, or would replace what is no file; to ask before long work."""
    _need_place_for_file(path)
    partial = _beside(path)
    try:
        with _told_of(path):
            partial.touch(mode=0o600, exist_ok=False)
    finally:
        with suppress(OSError):  # what went wrong before is what is told
            partial.unlink()


def _need_place_for_file(path: Path) -> None:
    _need_parent(path)
    if path.exists() and not path.is_file():
        raise ParabitError(f"{path} is there and is no file", hint="choose another name")


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Tell what goes wrong with a partial file by the name that the user knows."""
    try:
        yield
    except OSError as problem:
        raise ParabitError(
            f"{path} cannot be written: {problem.strerror}", hint="choose another place or name"
        ) from problem


def _need_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise ParabitError(f"there is no folder {path.parent} to write {path.name} in", hint="make it first")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
