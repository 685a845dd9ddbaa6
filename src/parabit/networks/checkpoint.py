"""Checkpoints: the whole state of training on disk, so that it can go on after any end."""

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from parabit.errors import TrainingError
from parabit.networks.group import ALONE, Group
from parabit.storage import CHECKPOINT, whole_folder

FORMAT = 1
_ABOUT = "about.json"


class Checkpoints:
    """A folder with the last checkpoint of one training.

    `identity` is all that decides the outcome: a checkpoint of another training is refused, with what differs.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "news.training"
        >>> Checkpoints(folder, {"bits": 32}).save(7, {"words": torch.ones(2)}, {"epoch": 1})
        >>> about, tensors = Checkpoints(folder, {"bits": 32}).load()
        >>> about["epoch"], tensors["words"].tolist()
        (1, [1.0, 1.0])
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], every: float = 60.0) -> None:
        self.folder = folder
        self.every = every  # seconds
        self._identity = json.loads(json.dumps(identity))  # as it will be read back

    def save(self, step: int, tensors: Mapping[str, Tensor], about: Mapping[str, Any], group: Group = ALONE) -> None:
        """Keep the state after so many steps, then forget the one before; a kill at any moment leaves one of them.

        Each worker of a group keeps its own, and forgets the one before when all have theirs.
        """
        self.folder.mkdir(exist_ok=True)
        older, new = self._kept(group), self.folder / f"{CHECKPOINT}{_of(group)}{step:012d}"
        with whole_folder(new, replaces=lambda old: old in older, durable=True) as partial:
            for name, tensor in tensors.items():
                # numpy writes a mapped array straight from disk to disk; nothing is copied in memory.
                np.save(partial / f"{name}.npy", tensor.numpy(force=True))
            stored = {"format": FORMAT, "identity": self._identity, "tensors": sorted(tensors), **about}
            (partial / _ABOUT).write_text(json.dumps(stored, indent=2))
        group.wait()
        for folder in older:
            if folder != new:
                shutil.rmtree(folder, ignore_errors=True)

    def load(self, group: Group = ALONE) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The last state that all workers have, or None; tensors are mapped from disk, to be copied."""
        kept = {folder.name[len(CHECKPOINT + _of(group)) :]: folder for folder in self._kept(group)}
        common = set.intersection(*map(set, group.gathered(list(kept))))
        if not common:
            self._need_no_others(group)
            return None
        folder = kept[max(common)]
        try:
            about: dict[str, Any] = json.loads((folder / _ABOUT).read_text())
            if about["format"] > FORMAT:
                raise TrainingError(f"{folder} has format {about['format']}, newer than this version of parabit reads")
            self._need_same(about["identity"])
            tensors = {
                name: torch.from_numpy(np.load(folder / f"{name}.npy", mmap_mode="c")) for name in about["tensors"]
            }
        except (OSError, EOFError, ValueError, KeyError, TypeError) as problem:
            if isinstance(problem, TrainingError):
                raise
            raise TrainingError(f"the checkpoint {folder} is damaged", hint="remove it to start anew") from problem
        return about, tensors

    def forget(self) -> None:
        """Start anew."""
        for folder in self.folder.glob(f"{CHECKPOINT}*"):
            shutil.rmtree(folder, ignore_errors=True)

    def _kept(self, group: Group) -> list[Path]:
        name = re.compile(rf"{re.escape(CHECKPOINT + _of(group))}\d+")
        return sorted(path for path in self.folder.glob(f"{CHECKPOINT}*") if name.fullmatch(path.name))

    def _need_no_others(self, group: Group) -> None:
        """A training of another number of workers is not begun anew without a word."""
        for path in self.folder.glob(f"{CHECKPOINT}*"):
            found = re.fullmatch(rf"{re.escape(CHECKPOINT)}(?:\d+-of-(\d+)-)?\d+", path.name)
            if found is not None and int(found[1] or 1) != group.size:
                raise TrainingError(
                    f"the checkpoint in {self.folder} is of {found[1] or 1} workers, and there are {group.size} now",
                    hint="take as many workers as before, or remove it to start anew",
                )

    def _need_same(self, found: Mapping[str, Any]) -> None:
        differences = [
            f"{name} {found.get(name)!r} there, {self._identity.get(name)!r} here"
            for name in sorted({*found, *self._identity})
            if found.get(name) != self._identity.get(name)
        ]
        if differences:
            raise TrainingError(
                f"the checkpoint in {self.folder} is of another training: {'; '.join(differences)}",
                hint="give the same corpus and parameters, or remove it to start anew",
            )


def _of(group: Group) -> str:
    """What a worker's checkpoints have in their names."""
    return "" if group.alone else f"{group.rank}-of-{group.size}-"
