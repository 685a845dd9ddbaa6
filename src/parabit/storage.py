"""Files and folders that appear complete or not at all."""

import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parabit.errors import ParabitError

CHECKPOINT = "checkpoint-"  # how the names of checkpoint folders begin

Replaces = Callable[[Path], bool]  # whether an old folder may be replaced


@contextmanager
def whole_file(path: Path, durable: bool = False) -> Iterator[Path]:
    """Give a temporary name to write to; the file gets its real name when the block ends, in one step.

    After an error or an interrupt the old file is still there and the new one is gone. A `durable` file is flushed to
    disk before it gets its name, so that it is complete after a power cut too.
    """
    _check_file(path)
    with _partial(path, Path.touch) as partial:
        yield partial
        if durable:
            sync(partial)
        partial.replace(path)
        if durable:
            sync(path.parent)


@contextmanager
def whole_folder(path: Path, replaces: Replaces | None = None) -> Iterator[Path]:
    """Give a new folder with a temporary name to fill; flushed to disk, it gets its real name when the block ends.

    An old folder is replaced only if `replaces` says that it is of the same kind: a mistyped name must not cost anybody
    their documents. After an error or an interrupt it is still there and the new one is gone; after a kill, `recover`
    puts it back if necessary.
    """
    _check_folder(path, replaces)
    path = path.resolve()  # what a link points to is replaced, not the link
    with _partial(path, Path.mkdir) as partial:
        yield partial
        for file in (*partial.iterdir(), partial):
            sync(file)
        _check_folder(path, replaces)  # another process may have written it meanwhile
        try:
            # No system call swaps two folders everywhere: the old one is set aside under a name that `recover` knows.
            while partial.exists():
                try:
                    partial.rename(path)
                except OSError:
                    if not path.exists():
                        raise
                    recover(path)
                    path.rename(_aside(path))
            sync(path.parent)
        finally:
            recover(path)


def recover(path: Path) -> None:
    """Finish what a killed `whole_folder` left: put the old folder back, or remove it if the new one is in place."""
    path = path.resolve()
    aside = _aside(path)
    with suppress(OSError):  # a folder that cannot be written can still be read
        if aside.exists() and path.exists():
            partial = _temporary(path)
            aside.rename(partial)  # half removed, it must not be put back
            remove(partial)
        elif aside.exists():
            aside.rename(path)


def need_new(path: Path, overwrite: bool) -> None:
    """Raise if something has this name and may not be replaced."""
    if os.path.lexists(path) and not overwrite:
        raise ParabitError(
            f"{path} exists already", hint="choose another name, or replace it with --overwrite"
        )


def need_room(path: Path, folder: bool = False, replaces: Replaces | None = None) -> None:
    """Raise if `whole_file` or `whole_folder` cannot write to this name; to call before long work."""
    if folder:
        _check_folder(path, replaces)
    else:
        _check_file(path)
    with _partial(path, Path.touch):
        pass


def sync(path: Path) -> None:
    """Flush a file, or the list of names in a folder, to disk."""
    if os.name == "nt" and path.is_dir():
        return  # cannot be flushed there
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def copy_folder(source: Path, target: Path) -> None:
    """Copy the files of a folder to a new one. Permissions are those of new files."""
    with whole_folder(target) as partial:
        for file in source.iterdir():
            shutil.copyfile(file, partial / file.name)


@contextmanager
def plain_disk_errors() -> Iterator[None]:
    """Raise an OSError for a full disk, as Python does, where polars raises various errors of its own."""
    import polars as pl  # here: training writes checkpoints without polars

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as problem:
        number = re.search(r"\(os error (\d+)\)", str(problem))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from problem


class ArrayWriter(AbstractContextManager["ArrayWriter"]):
    """Writes a `.npy` file piece by piece, its length known only at the end; `row` is the shape of one row.

    Plain writes, not a memory map: a full disk is then an error, where a memory map would kill the process.
    """

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        self.dtype, self.row, self.length = np.dtype(dtype), row, 0
        self.checksum = 0  # the CRC-32 of the rows
        self._file = path.open("wb")
        self._write_header()

    def __exit__(self, *error: object) -> None:
        with self._file:
            if error[0] is None:
                self._file.seek(0)
                self._write_header()

    def append(self, array: NDArray[Any]) -> None:
        """Add a piece; it must fit the file's type without loss."""
        content = np.ascontiguousarray(array, dtype=self.dtype).data
        self._file.write(content)
        self.checksum = zlib.crc32(content, self.checksum)
        self.length += len(array)

    def _write_header(self) -> None:
        # numpy leaves room in the header for the first dimension to grow, so that it can be written again.
        self._file.write(array_header(self.dtype, (self.length, *self.row)))


def array_header(dtype: DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The header of an array's `.npy` file; its size does not depend on the first dimension."""
    header = BytesIO()
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_1_0(
        header, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return header.getvalue()


def remove(path: Path) -> None:
    """Remove a file or a folder as far as that is possible: Windows keeps what somebody still uses."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}.partial"


@contextmanager
def _partial(path: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    """A temporary file or folder beside a path, removed at the end; an error names the path that the user knows."""
    if not path.parent.is_dir():
        raise ParabitError(
            f"there is no folder {path.parent} to write {path.name} in", hint="create it first"
        )
    partial = _temporary(
        path
    )  # chosen before it is created, so that an interrupt in between finds what to remove
    try:
        try:
            create(partial)
        except OSError as problem:
            reason = f"{path} cannot be written: {problem.strerror}"
            raise ParabitError(reason, hint="choose another place or name") from problem
        yield partial
    finally:
        remove(partial)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _check_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise ParabitError(f"{path} is not a file", hint="choose another name")


def _check_folder(path: Path, replaces: Replaces | None) -> None:
    recover(path)
    if os.path.lexists(path):
        if replaces is None:
            raise ParabitError(
                f"{path} exists already",
                hint="choose another name, or ask for it to be overwritten",
            )
        if not replaces(path):
            raise ParabitError(
                f"{path} exists and is something else",
                hint="nothing was changed; choose another name",
            )
