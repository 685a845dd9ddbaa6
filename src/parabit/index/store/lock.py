"""One writer at a time, in all processes of the machine."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from parabit.errors import IndexFolderError

LOCK = "lock"


class WriterLock:
    """The right to change an index, held until `close` or the end of the process, however it ends."""

    def __init__(self, folder: Path) -> None:
        from filelock import FileLock, Timeout  # here: reading needs no lock

        path = folder / LOCK
        # The file is part of the index, so it stays; any thread may close the index.
        self._lock = FileLock(path, timeout=0, thread_local=False, preserve_lock_file=True)
        try:
            self._lock.acquire()
        except Timeout as problem:
            raise IndexFolderError(
                f"{folder} is being written by process {_holder(path) or 'unknown'}", hint="wait until it is done"
            ) from problem
        except OSError as problem:
            raise IndexFolderError(
                f"{folder} cannot be written: {problem.strerror}", hint="open it for reading, or change its permissions"
            ) from problem
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            file.seek(1)  # Windows lets nobody read the first byte of a locked file
            file.write(f"{os.getpid():<20}\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the right back."""
        self._lock.release()


def _holder(path: Path) -> str:
    """The process that wrote its number to the lock file."""
    with suppress(OSError), path.open("rb", buffering=0) as file:
        file.seek(1)
        return file.read(20).decode("ascii", "replace").strip()
    return ""
