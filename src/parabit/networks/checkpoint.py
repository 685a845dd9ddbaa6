"""Checkpoints: the whole state of training on disk, so that it can go on after any interruption."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from parabit.errors import TrainingError
from parabit.storage import CHECKPOINT, whole_folder

_ABOUT = "about.json"


class Checkpoints:
    """A folder with the last checkpoint of one training run.

    `identity` is everything that decides the outcome: a checkpoint of another run is refused, with the differences.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], every: float = 60.0) -> None:
        self.folder = folder
        self.every = every  # seconds
        self._identity = json.loads(json.dumps(identity))  # as it will be read back

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write the state after this many steps, then delete the one before; a kill leaves one of the two."""
        self.folder.mkdir(exist_ok=True)
        older, new = self._found(), self.folder / f"{CHECKPOINT}{step:012d}"
        if new in older:
            return  # the state after the same steps is the same
        with whole_folder(new, durable=True) as partial:
            for name, tensor in tensors.items():
                np.save(partial / f"{name}.npy", tensor.numpy(force=True))
            stored = {"identity": self._identity, "tensors": sorted(tensors), **about}
            (partial / _ABOUT).write_text(json.dumps(stored, indent=2))
        for folder in older:
            shutil.rmtree(folder, ignore_errors=True)

    def load(self) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The last state, or None; tensors are memory-mapped, to be copied."""
        found = self._found()
        if not found:
            return None
        try:
            about: dict[str, Any] = json.loads((found[-1] / _ABOUT).read_text())
            theirs = dict(about["identity"])
            names = about["tensors"]
            tensors = {name: torch.from_numpy(np.load(found[-1] / f"{name}.npy", mmap_mode="c")) for name in names}
        except (OSError, EOFError, ValueError, KeyError, TypeError) as problem:
            raise TrainingError(f"the checkpoint {found[-1]} is damaged", hint="delete it to start over") from problem
        ours = self._identity
        differences = [
            f"{name} was {theirs.get(name)!r}, now {ours.get(name)!r}"
            for name in sorted(theirs.keys() | ours)
            if theirs.get(name) != ours.get(name)
        ]
        if differences:
            raise TrainingError(
                f"the checkpoint in {self.folder} is from another training run: {'; '.join(differences)}",
                hint="use the same corpus and parameters, or delete it to start over",
            )
        return about, tensors

    def forget(self) -> None:
        """Start over."""
        for folder in self._found():
            shutil.rmtree(folder, ignore_errors=True)

    def _found(self) -> list[Path]:
        return sorted(self.folder.glob(f"{CHECKPOINT}*"))
