"""A folder of results on storage that all nodes reach: a path or an address that fsspec knows."""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from parabit.corpus.remote import is_address, storage_of
from parabit.errors import ClusterError
from parabit.extras import need
from parabit.storage import whole_file

_LONG_AGO = 3600.0  # seconds: nobody writes a file for so long


class Place:
    """A folder in which a file is whole or not there at all.

    Example:
        >>> place = Place(tempfile.mkdtemp())
        >>> place.write_json("about.json", {"bits": 128})
        >>> place.read_json("about.json"), place.read_json("nothing.json")
        ({'bits': 128}, None)
    """

    def __init__(self, name: str) -> None:
        if re.match("(file|local)://", name):  # a path as any other
            name = storage_of(name)[1]
        self.name = re.sub(r"(?<![:/])/+$", "", name) if is_address(name) else str(Path(name).absolute())

    def put(self, file: Path, name: str) -> None:
        """Copy a file of this machine to the folder, where it takes its name in one step.

        Object stores do so by themselves. Elsewhere half a Parquet file is still known by its missing end.
        """
        with self._in_words(name, "written") as (storage, path):
            storage.makedirs(str(path.parent), exist_ok=True)
            if is_address(self.name):
                storage.put_file(str(file), str(path))
                return
            with whole_file(Path(path), durable=True) as partial:
                shutil.copyfile(file, partial)

    def write_json(self, name: str, about: Mapping[str, Any]) -> None:
        """Write a small file."""
        with tempfile.NamedTemporaryFile("w", prefix="parabit-", suffix=".json") as file:
            json.dump(about, file, indent=2)
            file.flush()
            self.put(Path(file.name), name)

    def read_json(self, name: str) -> Any:
        """What a small file says; None where it is not there, and nothing where it is damaged."""
        with self._in_words(name, "read") as (storage, path):
            try:
                return json.loads(storage.cat_file(str(path)))
            except FileNotFoundError:
                return None
            except ValueError:
                return {}

    def parquet_metadata(self, name: str) -> dict[str, str]:
        """What a Parquet file tells of itself, from its last bytes; nothing where there is none that is whole."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._in_words(name, "read") as (storage, path):
            try:
                with storage.open(str(path), "rb") as file:
                    metadata = pq.read_metadata(file).metadata or {}
            except (FileNotFoundError, pa.ArrowException):
                return {}
        return {key.decode(): value.decode() for key, value in metadata.items() if key != b"ARROW:schema"}

    def files(self) -> list[str]:
        """The names of all files below the folder."""
        with self._in_words("", "read") as (storage, path):
            base = len(path.parts)
            found = storage.find(str(path)) if storage.exists(str(path)) else []
            return sorted("/".join(PurePosixPath(one).parts[base:]) for one in found)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._in_words(name, "removed") as (storage, path):
            storage.rm_file(str(path))

    def tidy(self) -> None:
        """Remove what workers that were killed long ago have left half-written."""
        if is_address(self.name):
            return
        for path in Path(self.name).rglob(".*.partial"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _LONG_AGO:
                    path.unlink()

    @contextmanager
    def _in_words(self, name: str, what: str) -> Iterator[tuple[Any, PurePosixPath]]:
        """The storage and the path of a file there; what goes wrong with it is told by its name."""
        try:
            if is_address(self.name):
                storage, folder = storage_of(self.name)
            else:  # a path is not looked at, as it may look like an address
                storage, folder = need("fsspec", "remote", ClusterError).filesystem("file"), self.name
            yield storage, PurePosixPath(folder, name)
        except Exception as problem:
            reason = " ".join(str(problem).split()) or type(problem).__name__
            where = f"{self.name}/{name}" if name else self.name
            hint = "check the place and your access"
            raise ClusterError(f"{where} cannot be {what}: {reason}", hint=hint) from problem
