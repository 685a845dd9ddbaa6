"""The folder of an index whose documents are on a Milvus server: the model, and where the documents are."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from parabit.errors import IndexFolderError
from parabit.index.milvus.place import Milvus
from parabit.index.store.folder import MANIFEST, check_sealed, kinds_of_json, kinds_to_json, write_sealed
from parabit.index.store.schema import Kind

FORMAT = 1
_BACKEND = "milvus"


class Manifest(NamedTuple):
    """What an index on Milvus is; all but its place is also kept with the collection."""

    place: Milvus
    bits: int
    fingerprint: str  # of the model that made the codes
    meta: dict[str, Any]
    extra: dict[str, Kind]

    @property
    def collection(self) -> str:
        """The collection's name."""
        assert self.place.collection is not None
        return self.place.collection

    def about(self) -> dict[str, Any]:
        """What the collection is told of the index."""
        return {"parabit": FORMAT, "bits": self.bits, "fingerprint": self.fingerprint, "meta": self.meta}


def is_on_milvus(folder: Path | str) -> bool:
    """Whether a folder is that of an index whose documents are on a Milvus server."""
    try:
        return bool(json.loads(Path(folder, MANIFEST).read_text()).get("backend") == _BACKEND)
    except (OSError, ValueError, AttributeError):  # which whoever opens it as an embedded index is told
        return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Have the folder be that of an index on Milvus, in one step."""
    parts = {"place": asdict(manifest.place), "extra": kinds_to_json(manifest.extra)}
    write_sealed(folder, FORMAT, {"backend": _BACKEND, **manifest._asdict(), **parts})


def read_manifest(folder: Path) -> Manifest:
    """Read where an index is; anything wrong with it is told."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text())
        newer = content["format"] > FORMAT
        foreign = content.get("backend") != _BACKEND
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise IndexFolderError(f"{path} cannot be read", hint="restore it from a copy") from problem
    if foreign and not newer:  # which a reader may find that was there before
        raise IndexFolderError(f"{folder} is no index on Milvus any more", hint="open it again")
    check_sealed(folder, FORMAT, content)
    place = Milvus(**content["place"]).check()
    return Manifest(place, content["bits"], content["fingerprint"], content["meta"], kinds_of_json(content["extra"]))
