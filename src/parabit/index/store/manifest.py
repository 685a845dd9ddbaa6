"""The folder of an index: its manifest, the one file that says which of the others count, and its lock."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from parabit import __version__
from parabit.errors import IndexFolderError, folder_like
from parabit.index.store.schema import CODES, SERIALS, VECTORS
from parabit.model import is_model
from parabit.storage import remove, whole_file

Form: TypeAlias = tuple[
    str, list[int], int
]  # of an array: its type, its shape, and the CRC-32 of its bytes

FORMAT = 1
MANIFEST, LOCK = "manifest.json", "lock"
MAP = "map.safetensors"  # drawn for the search page; nothing in the index depends on it
REMEDY = "restore it from a copy, or build the index again"
_NUMBERED = r"(?:generation|log|model)-(\d+)"
# These, word indexes (derived from the documents), what is remembered of the corpus; and what a kill leaves of a model,
# of files or of a manifest.
_DATA = re.compile(
    rf"{_NUMBERED}|words-[0-9a-f]+|\.?model-\w+(\..*)?|\.?files-[0-9a-f]+\.json\.gz(\..*)?"
    rf"|\.{re.escape(MANIFEST)}\..*\.partial"
)
_OTHERS = re.compile(rf"{re.escape(MANIFEST)}|{LOCK}|\.?{re.escape(MAP)}(\..*)?")


@dataclass(frozen=True)
class Manifest:
    """What an index is, and which generation of it is current."""

    bits: int
    fingerprint: str = ""  # of the model that made the codes
    meta: dict[str, Any] = field(default_factory=dict)  # what the caller wants to know again
    dim: int = 0  # of the vectors that are kept; 0 if none are
    engine: dict[str, str] = field(
        default_factory=dict
    )  # its "name" and where it keeps the documents; empty: here
    model: str = ""  # the folder of the model, if it is kept
    generation: int = 1
    token: str = ""  # new for each generation, and in its log too, so that files of two indexes cannot be mixed
    documents: int = 0  # of the generation
    last_serial: int = (
        0  # that a document was given; none is given twice, even if its document is deleted
    )
    field_names: list[str] = field(default_factory=list)
    arrays: dict[str, Form] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, np.dtype[Any]]:
        """The arrays that documents have a row in, in a generation, in the log and in memory."""
        kinds = {CODES: np.dtype(("u1", (-(-self.bits // 8),))), SERIALS: np.dtype("<u8")}
        return kinds | {VECTORS: np.dtype(("<f2", (self.dim,)))} if self.dim else kinds

    @property
    def folder(self) -> str:
        """The name of the folder with the arrays of the generation."""
        return f"generation-{self.generation}"

    @property
    def log(self) -> str:
        return f"log-{self.generation}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make the index what the manifest says, in one durable step."""
    # As it will be read: JSON makes lists of tuples, and the reader computes the digest of what JSON gives.
    content = json.loads(json.dumps({"format": FORMAT, "parabit": __version__, **vars(manifest)}))
    with whole_file(folder / MANIFEST, durable=True) as partial:
        partial.write_text(json.dumps({**content, "digest": _digest(content)}, indent=2) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index; anything wrong with it is an IndexFolderError."""
    path = folder / MANIFEST
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        newer = content["format"] > FORMAT
    except (FileNotFoundError, NotADirectoryError) as problem:
        if is_model(folder):
            raise IndexFolderError(
                f"{folder} is a model, not an index",
                hint=f"index documents with `parabit index CORPUS -o INDEX --model {folder}`",
            ) from problem
        if (folder / LOCK).is_file():
            raise IndexFolderError(f"{path} is missing", hint=REMEDY) from problem
        hint = folder_like(folder) or "make one with `parabit index CORPUS -o FOLDER`"
        raise IndexFolderError(f"no index in {folder}", hint) from problem
    except PermissionError as problem:
        raise IndexFolderError(
            f"{path} cannot be read: {problem.strerror}", hint="change its permissions"
        ) from problem
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise IndexFolderError(
            f"{path} is damaged, or not that of an index", hint=REMEDY
        ) from problem
    if newer:
        raise IndexFolderError(
            f"{folder} has format {content['format']}, this version of parabit reads up to {FORMAT}",
            hint="upgrade parabit",
        )
    if content.pop("digest", "") != _digest(content):
        raise IndexFolderError(f"{path} is damaged, or not that of an index", hint=REMEDY)
    return Manifest(**{one.name: content[one.name] for one in fields(Manifest)})


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index, damaged or not, and nothing else: no other file is lost with it."""
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return False
    return {MANIFEST, LOCK} <= names and all(
        _DATA.fullmatch(name) or _OTHERS.fullmatch(name) for name in names
    )


def next_generation(folder: Path) -> int:
    """A number that no generation and no model in the folder has, not even a partly removed one."""
    found = (re.fullmatch(_NUMBERED, path.name) for path in folder.iterdir())
    return 1 + max((int(match[1]) for match in found if match), default=0)


def remove_leftovers(folder: Path) -> None:
    """Remove what old generations and killed writers have left; for the one who holds the lock."""
    manifest = read_manifest(folder)
    words = (manifest.meta.get("words") or {}).get("folder")
    files = (manifest.meta.get("corpus") or {}).get("files")
    current = {manifest.folder, manifest.log, manifest.model, words, files}
    for path in folder.iterdir():
        if _DATA.fullmatch(path.name) and path.name not in current:
            remove(path)


@contextmanager
def writer_lock(folder: Path) -> Iterator[None]:
    """The right to change an index, in all processes of the machine; at the latest given back as the process ends."""
    from filelock import FileLock, Timeout  # here: reading needs no lock

    path = folder / LOCK
    # The file is part of the index, so it stays; any thread may close the index.
    lock = FileLock(path, timeout=0, thread_local=False, preserve_lock_file=True)
    try:
        held = lock.acquire()
    except Timeout as problem:
        holder = b"unknown"
        with suppress(OSError), path.open("rb", buffering=0) as file:
            file.seek(1)  # Windows lets nobody read the first byte of a locked file
            holder = file.read(20).strip() or holder
        raise IndexFolderError(
            f"{folder} is being written by process {holder.decode('ascii', 'replace')}",
            hint="wait until it is done",
        ) from problem
    except OSError as problem:
        raise IndexFolderError(
            f"{folder} cannot be written: {problem.strerror}",
            hint="search it as it is, or change its permissions",
        ) from problem
    with held:
        with suppress(OSError), path.open("r+b", buffering=0) as file:
            file.seek(1)
            file.write(f"{os.getpid():<20}\n".encode())
        yield


def bytes_in(folder: Path) -> int:
    """How much room a folder takes; a writer may remove files meanwhile."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += path.stat().st_size if path.is_file() else 0
    return size


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
