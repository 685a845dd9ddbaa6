"""Where bytes come from: files, compressed or not, pipes, and through fsspec object stores and other storage."""

import bz2
import errno
import gzip
import io
import os
import re
import stat
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from shutil import copyfileobj
from typing import Any, BinaryIO, cast

from parabit.characters import CONTROLS, without_halves
from parabit.corpus.document import Corpus
from parabit.corpus.limits import ReadLimits, over_limit
from parabit.corpus.pages import open_file
from parabit.errors import CorpusError, UnreadableError, need

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


# By default zstd refuses files made with --long; their window is at most 2 GiB.
_open_zstd = partial(zstd.open, options={zstd.DecompressionParameter.window_log_max: 31})
# A file's first bytes say how it is compressed, whatever its name says.
_MAGIC: dict[re.Pattern[bytes], Callable[[BinaryIO], Any]] = {
    re.compile(rb"\x1f\x8b\x08"): gzip.open,
    re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"): bz2.open,
    re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"): _open_zstd,  # a frame, or one to skip
}

# What decompressors and archives raise for a damaged or cut-off file; bz2 also raises a plain OSError with no errno.
_DAMAGE = (
    EOFError,
    zlib.error,
    zstd.ZstdError,
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
)
# Two letters before the colon: C:/ is a path.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:://|::)")
STANDARD_INPUT = ("-", "/dev/stdin")
_BLOCK = 1 << 17  # bytes that are decompressed at a time


def is_address(name: str | Path) -> bool:
    """Whether a name is an address for fsspec, such as s3://bucket/articles, and not a path."""
    return isinstance(name, str) and _ADDRESS.match(name) is not None


class NoFilesError(CorpusError):
    """A path with nothing to read: it is missing, or it has no files that are read."""


class Source:
    """A file to read, decompressed on the way; it knows how far it has been read."""

    local = True  # on this machine's disk

    def __init__(self, path: Path | str, name: str = "", id: str = "", label: str = "") -> None:
        self.location = os.fspath(path)
        self.name = name or self.location  # for messages
        self.id = id or Path(path).name  # its path below the folder that was asked for
        self.label = label  # the sub-folder it is in
        self.note = ""  # what to know about the latest reading, such as a guessed encoding
        self.line: int | None = None  # of the record that was read last
        self.raw: BinaryIO | None = None  # while it is open: the bytes on disk

    @property
    def place(self) -> Any:
        """What two sources have in common that are the same file."""
        return os.path.realpath(self.location)

    @property
    def size(self) -> int:
        """Bytes on disk; 0 if the file is not there any more."""
        with suppress(OSError, UnreadableError):
            return int(self.version.partition("-")[0])
        return 0

    @property
    def version(self) -> str:
        """Its size in bytes and what else changes when the file does."""
        about = os.stat(self.location)  # noqa: PTH116 - twice as fast, for many thousand files
        return f"{about.st_size}-{about.st_mtime_ns}"

    @contextmanager
    def open(self, limits: ReadLimits | None = None) -> Iterator[BinaryIO]:
        """Open for reading, decompressed; damage found while reading becomes UnreadableError.

        Parameters:
            limits: What the file may cost, if it is a stranger's.

        Raises:
            UnreadableError: if the file is not there, damaged, or expands beyond its limit.
        """
        try:
            with self._open_raw() as self.raw, _decompressed(self.raw) as stream:
                if limits is None or stream is self.raw:
                    yield stream
                else:
                    bounded = _BoundedExpansion(stream, self.raw, self.name, limits)
                    with io.BufferedReader(bounded, _BLOCK) as buffered:
                        yield cast(BinaryIO, buffered)
        except (*_DAMAGE, OSError) as problem:
            if isinstance(problem, _DAMAGE) or (type(problem) is OSError and problem.errno is None):
                reason = f"damaged or cut off: {problem}"
                hint = "copy or download the file again"
                raise UnreadableError(self.name, reason, hint) from problem
            if is_disk_full(problem):  # the disk for temporary files
                raise
            raise UnreadableError(
                self.name, why(problem), "was it moved, or its permissions changed?"
            ) from problem
        finally:
            self.raw = None  # a source that is not open can be sent to another process

    @contextmanager
    def on_disk(self, limits: ReadLimits | None = None) -> Iterator[Path]:
        """The decompressed content as a file.

        It is a copy if the file is compressed or remote, or if its path is not UTF-8.

        Parameters:
            limits: What the file may cost, if it is a stranger's.
        """
        with self.open(limits) as stream:
            is_utf_8 = without_halves(self.location) == self.location
            if stream is self.raw and self.local and is_utf_8:
                yield Path(self.location).absolute()
                return
            with tempfile.NamedTemporaryFile(prefix="parabit-") as copy:
                copyfileobj(stream, copy, 1 << 20)
                copy.flush()
                yield Path(copy.name)

    def _open_raw(self) -> BinaryIO:
        return open(self.location, "rb", opener=open_file)


class PipeSource(Source):
    """Standard input or a named pipe, kept in a temporary file from the first reading on, to be read again."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "standard input" if str(path) in STANDARD_INPUT else "")
        self._kept: tempfile._TemporaryFileWrapper[bytes] | None = None

    def _open_raw(self) -> BinaryIO:
        if self._kept is None:
            is_standard = self.location in STANDARD_INPUT
            if is_standard and (sys.stdin is None or sys.stdin.isatty()):
                state = "closed" if sys.stdin is None else "a terminal, not documents"
                raise CorpusError(
                    f"standard input is {state}",
                    hint="pipe documents in, for example `cat f.jsonl |`",
                )
            kept = tempfile.NamedTemporaryFile(prefix="parabit-")  # noqa: SIM115 - it lives as long as this object
            with sys.stdin.buffer if is_standard else Path(self.location).open("rb") as pipe:
                if is_endless_device(os.fstat(pipe.fileno())):
                    raise UnreadableError(
                        self.name, "not a file: a device", "give a file or a pipe"
                    )
                copyfileobj(pipe, kept, 1 << 20)
            kept.flush()
            self._kept, self.location = kept, kept.name
        return super()._open_raw()


class RemoteSource(Source):
    """A file on other storage, which fsspec reaches from any machine that this object is sent to."""

    local = False

    def __init__(self, storage: Any, path: str, below: str) -> None:
        name = storage.unstrip_protocol(path)
        super().__init__(PurePosixPath(path).name, name, below, label=below.rpartition("/")[0])
        self._storage, self._there = storage, path

    @property
    def place(self) -> Any:
        return self._storage, self._there

    @property
    def version(self) -> str:
        with _in_words(self.name):
            about = self._storage.info(self._there)
        keys = ("ETag", "etag", "mtime", "LastModified", "created")
        return f"{about.get('size') or 0}-{next((about[key] for key in keys if key in about), '')}"

    @contextmanager
    def open(self, limits: ReadLimits | None = None) -> Iterator[BinaryIO]:
        # A connection may break at any moment.
        with _in_words(self.name), super().open(limits) as stream:
            yield stream

    def _open_raw(self) -> BinaryIO:
        with _in_words(self.name):
            return cast(BinaryIO, self._storage.open(self._there, "rb"))


def storage_of(address: str) -> tuple[Any, str]:
    """The file system of fsspec that an address names, and the path there."""
    return cast(tuple[Any, str], need("fsspec", "remote", CorpusError).url_to_fs(address))


def remote_sources(address: str) -> list[RemoteSource]:
    """The files at an address: a file, all below a folder, or those that a pattern with `*` names."""
    with _in_words(address):
        storage, root = storage_of(address)
        parts = PurePosixPath(root).parts
        if "*" in root:
            found = [path for path in storage.glob(root) if not storage.isdir(path)]
            parts = parts[: next(place for place, part in enumerate(parts) if "*" in part)]
        elif storage.isdir(root):
            found = storage.find(root)
        else:
            storage.info(root)  # raises if nothing is there
            found, parts = [root], parts[:-1]
        return [
            RemoteSource(storage, path, in_utf_8("/".join(PurePosixPath(path).parts[len(parts) :])))
            for path in found
        ]


@contextmanager
def _in_words(name: str) -> Iterator[None]:
    """What a storage raises is its own, and all of it means that the file cannot be read."""
    try:
        yield
    except CorpusError:
        raise
    except FileNotFoundError as problem:
        raise UnreadableError(name, "nothing there", "check the address") from problem
    except Exception as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise UnreadableError(
            name, f"cannot be read: {reason}", "check the address and your access"
        ) from problem


class SourceCorpus(Corpus):
    """A corpus read from one or more sources, in order."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = sources
        self._current = 0  # how many sources the latest reading has finished

    @cached_property
    def _sizes(self) -> list[int]:
        return [source.size for source in self.sources]

    def _each_source(self) -> Iterator[Source]:
        """The sources in order, noting for `share_read` which one is being read."""
        self._current = 0
        for source in self.sources:
            yield source
            self._current += 1

    @property
    def source(self) -> Source:
        """The source of the document that was read last."""
        return self.sources[self._current]

    @property
    def share_read(self) -> float | None:
        total, done = sum(self._sizes), sum(self._sizes[: self._current])
        if self._current < len(self.sources) and (stream := self.source.raw):
            done += stream.tell()
        return min(1.0, done / total) if total else None


def in_utf_8(path: str) -> str:
    r"""A path as text on one line, different for each path.

    Bytes that are not UTF-8 are written out, as in \xff, and so are control characters and line
    breaks, as in \n or \u2028. A backslash becomes two, so that no other path looks like one that
    was written out.
    """
    if path.isascii() and path.isprintable() and "\\" not in path:
        return path
    text = os.fsencode(path.replace("\\", r"\\")).decode("utf-8", "backslashreplace")
    return CONTROLS.sub(_written_out, text)


def _written_out(control: re.Match[str]) -> str:
    character = control[0]
    # \x85 is a byte that is not UTF-8, and \u0085 a character.
    return repr(character)[1:-1] if character.isascii() else f"\\u{ord(character):04x}"


def may_pass(reason: str) -> bool:
    """Whether a file may be readable later without being changed, given why it is not now.

    Example:
        >>> may_pass("over a limit: took more than 20 s (limit: seconds=20)")
        True
    """
    return reason.startswith(
        (
            "not there any more",
            "no permission",
            "cannot be read",
            "damaged or cut off",
            "over a limit: took",  # when the machine was busy
        )
    )


def is_disk_full(problem: OSError) -> bool:
    """Whether there is no space for what is written, which is no fault of what is read."""
    return problem.errno in (errno.ENOSPC, errno.EDQUOT)


def is_endless_device(status: os.stat_result) -> bool:
    """Whether something is a device such as /dev/zero or a disk; /dev/null is one that is empty."""
    if stat.S_ISCHR(status.st_mode):
        return status.st_rdev != Path(os.devnull).stat().st_rdev
    return stat.S_ISBLK(status.st_mode)


def why(problem: OSError) -> str:
    """The reason why a file or folder cannot be opened."""
    reasons = {
        errno.ENOENT: "not there any more",
        errno.EACCES: "no permission",
        errno.EPERM: "no permission",
    }
    return reasons.get(problem.errno or 0, f"cannot be read: {problem.strerror or problem}")


def _decompressed(raw: BinaryIO) -> BinaryIO:
    start = raw.read(16)
    raw.seek(0)
    for magic, opener in _MAGIC.items():
        if magic.match(start):
            return cast(BinaryIO, opener(raw))
    return raw


class _BoundedExpansion(io.RawIOBase):
    """A decompressed stream that ends with an error where it becomes much larger than the file."""

    def __init__(self, stream: BinaryIO, raw: BinaryIO, name: str, limits: ReadLimits) -> None:
        self._stream = stream
        self._name = name
        self._limits = limits
        position = raw.tell()
        size = raw.seek(0, os.SEEK_END)
        raw.seek(position)
        self._bytes_left = max(limits.document_bytes, size * limits.expansion) + 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # All decompressors have it, but BinaryIO does not.
        length: int = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        self._bytes_left -= length
        if self._bytes_left <= 0:
            what = f"more than {self._limits.expansion} times its size when decompressed"
            raise over_limit(self._name, what, self._limits, "expansion")
        return length
