"""The folder of an index whose documents are on a Milvus server: the model, and where the documents are."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from parabit import __version__
from parabit.errors import IndexFolderError
from parabit.index.milvus.place import Milvus
from parabit.index.store.arrays import Form
from parabit.index.store.folder import MANIFEST
from parabit.index.store.schema import Kind
from parabit.storage import whole_file

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
    kinds = {
        name: {"dtype": Form(np.dtype(kind.dtype), ()).to_json()[0], "width": kind.width, "ragged": kind.ragged}
        for name, kind in manifest.extra.items()
    }
    content = {
        "format": FORMAT,
        "parabit": __version__,
        "backend": _BACKEND,
        **manifest._asdict(),
        "place": asdict(manifest.place),
        "extra": kinds,
    }
    content = json.loads(json.dumps(content))  # as it will be read
    with whole_file(folder / MANIFEST, durable=True) as partial:
        partial.write_text(json.dumps({**content, "digest": _digest(content)}, indent=2) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read where an index is; anything wrong with it is told."""
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text())
        newer = content["format"] > FORMAT
        whole = content.pop("digest", None) == _digest(content)
        foreign = content.get("backend") != _BACKEND
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise IndexFolderError(f"{path} cannot be read", hint="restore it from a copy") from problem
    if newer:
        raise IndexFolderError(
            f"{folder} has format {content['format']}, this version of parabit reads up to {FORMAT}",
            hint="upgrade parabit",
        )
    if foreign:  # which a reader may find that was there before
        raise IndexFolderError(f"{folder} is no index on Milvus any more", hint="open it again")
    if not whole:
        raise IndexFolderError(f"{path} is damaged", hint="restore it from a copy, or build the index anew")
    extra = {
        name: Kind(Form.of_json([kind["dtype"], []]).dtype, kind["width"], kind["ragged"])
        for name, kind in content["extra"].items()
    }
    place = Milvus(**content["place"]).check()
    return Manifest(place, content["bits"], content["fingerprint"], content["meta"], extra)


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
