"""Files of an index that are not what was written, and files that are no files but links.

An index is a folder that may come from anybody. Nothing in it is opened through a link, so reading
an index cannot reach a file outside it, and neither can writing to it. "Damaged" is only said of
what was read twice.
"""

import os
import stat
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import TypeVar

from parabit.errors import IndexDamagedError

# Windows has neither flag, and links only for administrators.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for somebody to write to it
_BINARY = getattr(os, "O_BINARY", 0)

REMEDY = "restore it from a copy, or build the index again"

_BEFORE_READING_AGAIN = 0.005  # seconds; a writer replaces a file in less

T = TypeVar("T")


def damaged(path: Path, reason: str = "") -> IndexDamagedError:
    """The error for a file of an index that is not what was written."""
    because = f": {reason}" if reason else ""
    return IndexDamagedError(f"{path} is damaged{because}", hint=REMEDY)


def read_twice(read: Callable[[], T]) -> T:
    """What a function reads. If it finds damage, it reads again: only what it finds twice is
    damage.

    A writer in another process may change files while they are read.
    """
    try:
        return read()
    except IndexDamagedError:
        time.sleep(_BEFORE_READING_AGAIN)
        return read()


def open_regular(path: Path, write: bool = False) -> FileIO:
    """Open a file that exists and is neither a link nor a device; an IndexDamagedError if it is
    one.
    """
    flags = (os.O_RDWR if write else os.O_RDONLY) | _NO_LINK | _NO_WAITING | _BINARY
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError:
        if path.is_symlink():
            raise _not_regular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return FileIO(descriptor, "r+b" if write else "rb")


def need_folder(path: Path) -> None:
    """Raise if this is there and not a folder itself, but a file or a link."""
    if os.path.lexists(path) and not stat.S_ISDIR(path.lstat().st_mode):
        raise IndexDamagedError(f"{path} is a link or a file, not a folder", hint=REMEDY)


def _not_regular(path: Path) -> IndexDamagedError:
    return IndexDamagedError(f"{path} is a link or no plain file", hint=REMEDY)
