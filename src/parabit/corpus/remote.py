"""Files that are not on this machine: object stores and shared storage, reached through fsspec."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from parabit.corpus.sources import Source, UnreadableError
from parabit.errors import CorpusError, need


class RemoteSource(Source):
    """A file on other storage. Only the address that was given and the path there are kept, so that it can be read on
    another machine.
    """

    local = False

    def __init__(self, address: str, path: str, below: str) -> None:
        folder = address.rstrip("/").removesuffix(below).rstrip("/") if "*" not in address else ""
        name, label = f"{folder}/{below}" if folder else path, below.rpartition("/")[0]
        super().__init__(Path(PurePosixPath(path).name), name, below, label)
        self._address, self._there = address, path

    @property
    def size(self) -> int:
        with _in_words(self.name):
            return int(storage_of(self._address)[0].size(self._there) or 0)

    @property
    def version(self) -> str:
        with _in_words(self.name):
            about = storage_of(self._address)[0].info(self._there)
            keys = ("ETag", "etag", "mtime", "LastModified", "created")
            return f"{about.get('size')}-{next((about[key] for key in keys if key in about), '')}"

    @contextmanager
    def open(self, decompress: bool = True) -> Iterator[BinaryIO]:
        with _in_words(self.name), super().open(decompress) as stream:  # a connection may break at any moment
            yield stream

    def _open_raw(self) -> BinaryIO:
        return cast(BinaryIO, storage_of(self._address)[0].open(self._there, "rb"))


def storage_of(address: str) -> tuple[Any, str]:
    """The file system of fsspec that an address names, and the path there."""
    fsspec = need("fsspec", "remote", CorpusError)
    return cast(tuple[Any, str], fsspec.url_to_fs(address))


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
        elif storage.exists(root):
            found, parts = [root], parts[:-1]
        else:
            raise FileNotFoundError
        return [RemoteSource(address, path, "/".join(PurePosixPath(path).parts[len(parts) :])) for path in found]


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
        raise UnreadableError(name, f"cannot be read: {reason}", "check the address and your access") from problem
