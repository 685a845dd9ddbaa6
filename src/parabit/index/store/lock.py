"""One writer at a time, in all processes of the machine."""

import os
from pathlib import Path
from types import TracebackType
from weakref import finalize

from parabit.errors import IndexFolderError

LOCK = "lock"


class WriterLock:
    """The right to change an index, held until `close` or the end of the process, however it ends.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, WriterLock(Path(folder)):
        ...     WriterLock(Path(folder))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        parabit.errors.IndexFolderError: ... is being written by process ...; wait until it is done
    """

    def __init__(self, folder: Path) -> None:
        import fcntl  # here: Windows has none, and reading needs none

        path = folder / LOCK
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as problem:
            raise IndexFolderError(
                f"{folder} cannot be written: {problem.strerror}", hint="open it for reading, or change its permissions"
            ) from problem
        self._close = finalize(self, os.close, self._handle)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever locks the file of a folder that was removed meanwhile has locked nothing.
            if os.fstat(self._handle).st_ino != path.stat().st_ino:
                raise BlockingIOError
            os.pwrite(self._handle, f"{os.getpid():<20}\n".encode(), 0)  # for the message to others
        except (BlockingIOError, FileNotFoundError) as problem:
            holder = os.pread(self._handle, 20, 0).decode("ascii", "replace").strip()
            self.close()
            raise IndexFolderError(
                f"{folder} is being written by process {holder or 'unknown'}", hint="wait until it is done"
            ) from problem
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "WriterLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the right back."""
        self._close()
