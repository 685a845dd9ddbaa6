"""The folder of an index and its manifest, the one file that says which of the others count."""

import json
import re
import shutil
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parabit import __version__
from parabit.errors import IndexFolderError
from parabit.index.store.arrays import Form
from parabit.index.store.lock import LOCK
from parabit.index.store.schema import Kind
from parabit.model import is_model
from parabit.storage import whole_file

FORMAT = 1
MANIFEST = "manifest.json"
MAP = "map.safetensors"  # of those who look at the index; it counts for nothing in it, and goes with it
_GENERATION = re.compile(r"generation-(\d+)")
_LOG = re.compile(r"log-(\d+)")
_MODEL = re.compile(r"\.?model-\w+(\..*)?")  # also what a kill leaves of one
_PARTIAL = re.compile(rf"\.{re.escape(MANIFEST)}\..*\.partial")  # what a kill leaves of a manifest
_MAP = re.compile(rf"\.?{re.escape(MAP)}(\..*)?")
_REMEDY = "restore it from a copy, or build the index anew"


class Manifest(NamedTuple):
    """What an index is, and which generation of it counts."""

    bits: int
    fingerprint: str  # of the model that made the codes
    meta: dict[str, Any]  # what the caller wants to know again
    extra: dict[str, Kind]
    generation: int
    token: str  # made anew for each generation, and in its log too, so that files of two indexes cannot be mixed
    documents: int
    last_serial: int  # that a document was given; no number is given twice, also when its document is deleted
    field_names: list[str]
    arrays: dict[str, Form]
    checksum: int  # of the checksums of the arrays


def generation_folder(folder: Path, number: int) -> Path:
    """Where a generation is."""
    return folder / f"generation-{number}"


def model_folder(folder: Path, fingerprint: str) -> Path:
    """Where the model that made the codes is, if it was kept."""
    return folder / f"model-{fingerprint}"


def log_file(folder: Path, number: int) -> Path:
    """Where a generation's log is."""
    return folder / f"log-{number}"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Have the index be what the manifest says, in one step and for good."""
    arrays = {name: form.to_json() for name, form in manifest.arrays.items()}
    write_sealed(folder, FORMAT, {**manifest._asdict(), "extra": kinds_to_json(manifest.extra), "arrays": arrays})


def write_sealed(folder: Path, version: int, content: Mapping[str, Any]) -> None:
    """Write the manifest of an index of any kind, with a digest of it."""
    content = {"format": version, "parabit": __version__, **content}
    # As it will be read: JSON knows no tuples, and whoever reads computes the digest of what JSON has made of them.
    content = json.loads(json.dumps(content))
    with whole_file(folder / MANIFEST, durable=True) as partial:
        partial.write_text(json.dumps({**content, "digest": _digest(content)}, indent=2) + "\n")


def check_sealed(folder: Path, version: int, content: Mapping[str, Any]) -> None:
    """Refuse a manifest that a later version wrote, or that is not as it was written."""
    if content["format"] > version:
        raise IndexFolderError(
            f"{folder} has format {content['format']}, this version of parabit reads up to {version}",
            hint="upgrade parabit",
        )
    if content.get("digest") != _digest({name: value for name, value in content.items() if name != "digest"}):
        raise IndexFolderError(f"{folder / MANIFEST} is damaged", hint=_REMEDY)


def kinds_to_json(extra: Mapping[str, Kind]) -> dict[str, Any]:
    """The kinds of extra arrays, for a manifest."""
    return {
        name: {"dtype": Form(np.dtype(kind.dtype), ()).to_json()[0], "width": kind.width, "ragged": kind.ragged}
        for name, kind in extra.items()
    }


def kinds_of_json(content: Mapping[str, Any]) -> dict[str, Kind]:
    """The kinds of extra arrays, from a manifest."""
    return {
        name: Kind(Form.of_json([kind["dtype"], []]).dtype, kind["width"], kind["ragged"])
        for name, kind in content.items()
    }


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index; anything wrong with it is told."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text())
        newer = content["format"] > FORMAT
        foreign = not {"generation", "digest"} <= content.keys()
    except (FileNotFoundError, NotADirectoryError) as problem:
        if is_model(folder):
            raise IndexFolderError(
                f"{folder} is a model, not an index",
                hint=f"index documents with `parabit index {folder} CORPUS -o INDEX`",
            ) from problem
        raise IndexFolderError(
            f"no index in {folder}", hint="make one with `parabit index MODEL CORPUS -o FOLDER`"
        ) from problem
    except PermissionError as problem:
        raise IndexFolderError(f"{path} cannot be read: {problem.strerror}", hint="change its permissions") from problem
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise IndexFolderError(f"{path} is damaged, or not that of an index", hint=_REMEDY) from problem
    if foreign and not newer:
        raise IndexFolderError(f"{path} is not that of an index", hint="name the folder of an index")
    check_sealed(folder, FORMAT, content)
    return _manifest_of(content)


def is_index(folder: Path) -> bool:
    """Whether a folder holds an index, damaged or not, and nothing else: no file of anybody's is lost with it."""
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return False
    ours = {name for name in names if name in {MANIFEST, LOCK} or _MAP.fullmatch(name) or _is_data(name)}
    return names == ours and MANIFEST in names and LOCK in names


def next_generation(folder: Path) -> int:
    """A number that no generation in the folder has, not even what is left of one."""
    found = (_GENERATION.fullmatch(path.name) or _LOG.fullmatch(path.name) for path in folder.iterdir())
    return 1 + max((int(match[1]) for match in found if match), default=0)


def remove_leftovers(folder: Path, generation: int, fingerprint: str) -> None:
    """Remove what old generations and killed writers have left; for the one who holds the lock."""
    current = {
        generation_folder(folder, generation),
        log_file(folder, generation),
        model_folder(folder, fingerprint),
    }
    for path in folder.iterdir():
        if _is_data(path.name) and path not in current:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_data(name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in (_GENERATION, _LOG, _MODEL, _PARTIAL))


def _manifest_of(content: Mapping[str, Any]) -> Manifest:
    arrays = {name: Form.of_json(form) for name, form in content["arrays"].items()}
    known = {name: content[name] for name in Manifest._fields}
    return Manifest(**{**known, "extra": kinds_of_json(content["extra"]), "arrays": arrays})


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
