"""Files and folders that appear complete or not at all, and nothing left of those that did not.

What is written to NAME is first written beside it. One writer's temporaries share 8 random
hexadecimal digits, HEX:

    .NAME.HEX.lock      the companion: an empty file, locked by the writer for as long as it lives
    .NAME.HEX.partial   the new file or folder, until it is complete
    .NAME.HEX.parts     pieces that a new file is put together from
    .NAME.HEX.old       a complete folder that is about to take the place of NAME, or has lost it
    .NAME.HEX.removed   such a folder, while it is being removed

**Whose is a temporary?** The companion is created and locked before the first temporary, and
removed after the last one. The lock ends with the process, however that ends. So if a companion
exists and can be locked, the writer that made its temporaries is dead, and whoever writes NAME next
removes them. A temporary without a companion is not touched: a user's own folder may have any name.
A companion without temporaries, which is what a kill before the first or after the last of them
leaves, is removed too. If two processes clean up at once, one of them has the lock and the other
goes on. A writer whose new companion is taken for a stale one, because it has not locked it yet,
takes another HEX.

**A file** is renamed over the old one. Before that step a kill leaves the old file and temporaries,
after it the new one.

**A new folder** is renamed to a name that is free: the same two cases.

**A folder in place of an old one**: NAME must never be missing. Where the system can exchange two
names in one step (Linux), the new folder is renamed from .partial to .old and then exchanged:

- a kill before the exchange leaves NAME as it was, and .old is the new folder;
- a kill after it leaves the new NAME, and .old is the old folder.

Either way NAME is there, and .old is removed by the next writer that may replace NAME. Elsewhere
the old folder is renamed to .old, then the new one to NAME:

- a kill between the two leaves no NAME. A reader then reads .old where it is (`folder_to_read`);
  the next writer renames it back;
- a kill after the second leaves the new NAME and .old, as above.

.old is removed only if its content is of the kind that may be replaced. If somebody put something
else at NAME at the last moment, that is put back. .old is renamed to .removed before it is removed:
a folder that is half removed must not come back.

**Readers** change nothing. **Power cuts**: content is flushed before it gets its name, and so is
the name, always for folders and for files that are `durable`.
"""

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from parabit.errors import ParabitError

if TYPE_CHECKING:
    from filelock import BaseFileLock

CHECKPOINT = "checkpoint-"  # how the names of checkpoint folders begin

Replaces = Callable[[Path], bool]  # whether an old folder may be replaced

# Folders that belong to parabit as a whole: all of these names in a folder mean that it is one.
_INDEX_NAMES = ("manifest.json", "lock")
_MODEL_NAMES = ("config.json", "model.safetensors")
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}  # of a file system without locks
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}  # or without exchanges
# What had a name is gone, or the reverse.
_NAME_CHANGED = {errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY}


@contextmanager
def whole_file(
    path: Path, durable: bool = False, *, locked: bool = True, inside: bool = False
) -> Iterator[Path]:
    """Give a temporary name to write to; the file gets its real name when the block ends, in one step.

    After an error or an interrupt the old file is still there and the new one is gone; what a kill
    leaves is removed by the next writer of the same name.

    Parameters:
        path: The file. The folder it is in must exist, and must not be that of an index or a model.
        durable: Flush the file to disk before it gets its name, so that it is complete after a
            power cut too.
        locked: Hold a companion lock meanwhile. False is for who holds the lock of the folder that
            the file is a part of, and removes leftovers there itself.
        inside: The file is a part of the index or the model in whose folder it is.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(Path(folder, "notes.txt")) as partial:
        ...         written = partial.write_text("whole or not at all")
        ...     names = os.listdir(folder)
        >>> names
        ['notes.txt']
    """
    if locked and not inside:
        _check_surroundings(path)
    _check_file(path)
    if locked:
        remove_leftovers(path)
    with _temporaries(path, Path.touch, locked) as names:
        yield names.partial
        if durable:
            sync(names.partial)
        names.partial.replace(path)
        if durable:
            sync(path.parent)


@contextmanager
def whole_folder(
    path: Path, replaces: Replaces | None = None, *, locked: bool = True
) -> Iterator[Path]:
    """Give a new folder with a temporary name to fill; flushed to disk, it gets its real name when the block ends.

    After an error or an interrupt an old folder is still there and the new one is gone. A kill
    leaves the old one or the new one, and temporaries that the next writer of the name removes.

    Parameters:
        path: The folder. The one it is in must exist, and must not be that of an index or a model.
        replaces: Whether an old folder may be replaced: a mistyped name must not cost anybody their
            documents. None replaces nothing.
        locked: Hold a companion lock meanwhile. False is for who holds the lock of the folder that
            this one is a part of, and removes leftovers there itself.
    """
    if locked:
        _check_surroundings(path)
        remove_leftovers(path.resolve(), replaces)
    _check_folder(path, replaces)
    path = path.resolve()  # what a link points to is replaced, not the link
    with _temporaries(path, Path.mkdir, locked, replaces) as names:
        yield names.partial
        for file in (*names.partial.iterdir(), names.partial):
            sync(file)
        _put_folder(names, replaces)
        sync(path.parent)


@contextmanager
def parts_folder(partial: Path) -> Iterator[Path]:
    """A folder for the pieces of a file that is being written, removed at the end or after a kill.

    `partial` is the name that `whole_file` gave.
    """
    parts = partial.with_suffix(".parts")
    try:
        parts.mkdir()
        yield parts
    finally:
        remove(parts)


def folder_to_read(path: Path, is_kind: Replaces) -> Path:
    """Where the folder of this name is, also if a killed writer has set it aside.

    Parameters:
        path: The folder's name.
        is_kind: Whether a folder is of the kind that is wanted; one that was set aside counts only
            if it is.
    """
    if os.path.lexists(path):
        return path
    form = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.old")
    try:
        beside = [other for other in path.parent.iterdir() if form.fullmatch(other.name)]
    except OSError:
        return path
    set_aside = [other for other in beside if is_kind(other)]
    if len(set_aside) == 1:
        return set_aside[0]
    return path


def remove_leftovers(path: Path, replaces: Replaces | None = None) -> None:
    """Remove what killed writers of this name left; what a living one uses stays.

    Parameters:
        path: The name that was written to.
        replaces: Whether an old folder may be replaced; None keeps old folders.
    """
    _remove_leftovers(path.parent, re.escape(path.name), replaces)


def remove_leftover_checkpoints(folder: Path) -> None:
    """Remove what killed writers of checkpoints left in a folder of them.

    Parameters:
        folder: Where the checkpoints are.
    """
    _remove_leftovers(folder, rf"{re.escape(CHECKPOINT)}\d+", None)


def need_new(path: Path, overwrite: bool) -> None:
    """Raise if something has this name and may not be replaced."""
    if os.path.lexists(path) and not overwrite:
        raise ParabitError(
            f"{path} exists already", hint="choose another name, or replace it with --overwrite"
        )


def need_room(path: Path, folder: bool = False, replaces: Replaces | None = None) -> None:
    """Raise if `whole_file` or `whole_folder` cannot write to this name; to call before long work.

    What killed writers of this name left is removed, so that its room can be used.
    """
    _check_surroundings(path)
    if folder:
        remove_leftovers(path.resolve(), replaces)
        _check_folder(path, replaces)
        path = path.resolve()
    else:
        _check_file(path)
        remove_leftovers(path)
    with _temporaries(path, Path.touch, replaces=replaces):
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


def copy_folder(source: Path, target: Path, *, locked: bool = True) -> None:
    """Copy the files of a folder to a new one; links are refused, not followed.

    Parameters:
        source: The folder. It has no folders in it.
        target: The new folder. Permissions are those of new files.
        locked: As `whole_folder` has it.
    """
    with whole_folder(target, locked=locked) as partial:
        for file in source.iterdir():
            if not is_regular(file):
                raise ParabitError(
                    f"{file} is not a regular file", hint="nothing was copied; remove it first"
                )
            shutil.copyfile(file, partial / file.name)


def is_regular(path: Path) -> bool:
    """Whether something is a file itself: no link to one, no folder, no pipe."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


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
    """Remove a file, a link or a folder; what a link points to stays.

    For temporaries, of which it is known that parabit made them. What cannot be removed is left:
    Windows keeps what somebody still uses.
    """
    try:
        os.unlink(path)  # noqa: PTH108 (on the way of every commit, where half the time was Path's)
    except FileNotFoundError:
        return
    except OSError:  # a folder, or what must stay
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class _Names:
    """The names beside a path that one writer uses."""

    path: Path
    digits: str

    def ending_in(self, ending: str) -> Path:
        return self.path.parent / f".{self.path.name}.{self.digits}.{ending}"

    @cached_property
    def lock(self) -> Path:
        return self.ending_in("lock")

    @cached_property
    def partial(self) -> Path:
        return self.ending_in("partial")

    @cached_property
    def old(self) -> Path:
        return self.ending_in("old")

    @cached_property
    def removed(self) -> Path:
        return self.ending_in("removed")

    @cached_property
    def all_but_lock(self) -> tuple[Path, ...]:
        return (self.partial, self.ending_in("parts"), self.old, self.removed)


@contextmanager
def _temporaries(
    path: Path,
    create: Callable[[Path], None],
    locked: bool = True,
    replaces: Replaces | None = None,
) -> Iterator[_Names]:
    """Temporary names beside a path, removed at the end; errors name the path that users know."""
    if not path.parent.is_dir():
        raise ParabitError(
            f"there is no folder {path.parent} to write {path.name} in", hint="create it first"
        )
    if not locked:
        names = _Names(path, secrets.token_hex(4))
        try:
            with _plain_refusal(path):
                create(names.partial)
            yield names
        finally:
            if replaces is None:  # then nothing was set aside; every commit comes here
                remove(names.partial)
            else:
                _clear(names, replaces)
        return
    with _companion(path, replaces) as names:
        with _plain_refusal(path):
            create(names.partial)
        yield names


@contextmanager
def _companion(path: Path, replaces: Replaces | None) -> Iterator[_Names]:
    """Names of temporaries whose companion is locked until the block ends, and removed last."""
    while True:
        names = _Names(path, secrets.token_hex(4))
        lock = _file_lock(names.lock)
        try:
            with _plain_refusal(path):
                # Who cleans up may take it for a stale one, before it is locked.
                if not _acquire(lock):
                    continue
            yield names
        finally:
            _clear(names, replaces)
            _release(names, lock)
        return


def _remove_leftovers(folder: Path, name: str, replaces: Replaces | None) -> None:
    """Remove what killed writers left of names of a form, a regular expression, in a folder."""
    form = re.compile(rf"\.({name})\.([0-9a-f]{{8}})\.lock")
    stale = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = entry.name.endswith(".lock") and form.fullmatch(entry.name)
            # A companion is an empty file. What is called so and is something else is not ours.
            if match and entry.is_file(follow_symlinks=False) and entry.stat().st_size == 0:
                stale.append(_Names(folder / match[1], match[2]))
    for names in stale:
        lock = _file_lock(names.lock)
        try:
            with suppress(OSError):  # that of another user; or a folder that cannot be written
                if _acquire(lock):
                    _clear(names, replaces)
        finally:
            _release(names, lock)


def _clear(names: _Names, replaces: Replaces | None) -> None:
    """Put back or remove the temporaries of one writer; for who holds their companion."""
    if os.path.lexists(names.old):
        if not os.path.lexists(names.path):
            with suppress(OSError):  # somebody else's folder came first
                names.old.rename(names.path)
        elif replaces is not None and replaces(names.old):
            _discard(names)
    for temporary in names.all_but_lock:
        if temporary != names.old:
            remove(temporary)


def _discard(names: _Names) -> None:
    """Remove the folder that was set aside."""
    remove(names.removed)
    with suppress(OSError):
        names.old.rename(names.removed)  # half removed, it must not be put back
    remove(names.removed)


def _put_folder(names: _Names, replaces: Replaces | None) -> None:
    """Give the new folder its name; an old one is set aside, for `_clear` to remove."""
    path = names.path
    while True:
        _check_folder(path, replaces)  # another process may have written it meanwhile
        try:
            if not os.path.lexists(path):
                names.partial.rename(path)
                return
            if os.path.lexists(names.old):
                _discard(names)  # set aside in the last round, and then another process was faster
            if replaces is not None and _exchange_folders(names, replaces):
                return
            if replaces is not None:
                _set_aside(names, replaces)
        except OSError as problem:
            # Another process may give the name to its folder, or take it away, between any two of
            # these steps.
            if problem.errno not in _NAME_CHANGED or not names.partial.exists():
                raise


def _exchange_folders(names: _Names, replaces: Replaces) -> bool:
    """Exchange the old folder and the new one in one step; False if the system cannot do that."""
    exchanged = False
    names.partial.rename(names.old)
    try:
        exchanged = _exchange(names.old, names.path)
        if exchanged and not replaces(names.old):
            _exchange(names.old, names.path)  # it was put there at the last moment
            exchanged = False
    finally:
        if not exchanged:
            names.old.rename(names.partial)
    return exchanged


def _set_aside(names: _Names, replaces: Replaces) -> None:
    """Free the name: the old folder gets another one."""
    names.path.rename(names.old)
    if not replaces(names.old):  # it was put there at the last moment
        names.old.rename(names.path)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; False where that is not possible."""
    rename = _renameat2()
    if rename is None:
        return False
    here = -100  # AT_FDCWD: paths are relative to the working directory
    both = 2  # RENAME_EXCHANGE
    if rename(here, os.fsencode(first), here, os.fsencode(second), both) == 0:
        return True
    import ctypes

    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(first), None, str(second))


@cache
def _renameat2() -> Any:
    """Linux's rename that can exchange, or None; Python has no name for it."""
    if sys.platform != "linux":
        return None
    import ctypes  # here: only replacing a folder needs it

    try:
        return ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # another C library
        return None


def _file_lock(path: Path) -> "BaseFileLock":
    from filelock import FileLock  # here: reading needs no lock

    # Any thread may end a block that another began, as generators do.
    return FileLock(path, timeout=0, thread_local=False, preserve_lock_file=True)


def _acquire(lock: "BaseFileLock") -> bool:
    """Lock a companion; False if somebody else has it. A disk without locks gets no companion."""
    from filelock import Timeout

    try:
        lock.acquire()
    except Timeout:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LOCKS:
            raise
        remove(Path(lock.lock_file))
    return True


def _release(names: _Names, lock: "BaseFileLock") -> None:
    """Give a companion back; it stays, as the proof, if a temporary could not be removed."""
    if not lock.is_locked:
        return
    is_last = not any(map(os.path.lexists, names.all_but_lock))
    on_windows = os.name == "nt"  # which removes no file that is open
    # Removed while it is locked, so that nobody locks it in between.
    if is_last and not on_windows:
        remove(names.lock)
    lock.release()
    if is_last and on_windows:
        remove(names.lock)


@contextmanager
def _plain_refusal(path: Path) -> Iterator[None]:
    """Whatever the disk refuses is an error that names the path that the user knows."""
    try:
        yield
    except OSError as problem:
        reason = f"{path} cannot be written: {problem.strerror}"
        raise ParabitError(reason, hint="choose another place or name") from problem


def _check_surroundings(path: Path) -> None:
    """Raise if a path is in the folder of an index or a model, which would remove it some day."""
    if not path.parent.is_dir():
        return  # which is an error of its own
    parents = {path.parent.resolve(), path.resolve().parent}  # two if the path is a link
    for parent in parents:
        for folder in (parent, parent.parent):  # an index has folders, and these have none
            for kind, names in (("an index", _INDEX_NAMES), ("a model", _MODEL_NAMES)):
                if all(is_regular(folder / name) for name in names):
                    raise ParabitError(
                        f"{path} would be in {folder}, the folder of {kind}",
                        hint="choose a place outside it",
                    )


def _check_file(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise ParabitError(f"{path} is not a file", hint="choose another name")


def _check_folder(path: Path, replaces: Replaces | None) -> None:
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
