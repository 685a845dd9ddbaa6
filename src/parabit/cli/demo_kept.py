"""What a demo keeps, so that its second start is instant: where it lies, and whether it still holds."""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from parabit import __version__
from parabit.corpus import Corpus, ReadOptions, cache_folder, data_folder, names_dataset
from parabit.corpus.datasets import find_dataset
from parabit.corpus.sources import is_address
from parabit.errors import ParabitError

MODEL, INDEX, FIGURES = "model", "index", "figures.json"  # the parts of a demo's folder
_FORMAT = 1  # of the figures; those of another are made anew
_DAY = 24 * 60 * 60.0


@dataclass(frozen=True)
class Place:
    """Where a demo is kept: its name tells what was read, from where, in what state."""

    folder: Path
    family: str  # how the names of all states of the same documents begin

    @property
    def index(self) -> Path:
        """The index, to be searched or served."""
        return self.folder / INDEX

    def figures(self) -> dict[str, Any] | None:
        """What was kept of the work beside model and index; None where nothing whole is there."""
        try:
            kept = json.loads((self.folder / FIGURES).read_bytes())
        except (OSError, ValueError):
            return None
        return kept["figures"] if isinstance(kept, dict) and kept.get("format") == _FORMAT else None

    def prepare(self) -> None:
        """Make the folder above; what cannot be kept is told before the work."""
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ParabitError(
                f"{self.folder.parent} cannot be made: {problem.strerror}",
                hint="the demo keeps its index there; set XDG_CACHE_HOME to a folder that can be written",
            ) from problem

    def forget_others(self) -> None:
        """Remove what is kept of earlier states of the same documents, and what a kill or a power cut left."""
        for path in self.folder.parent.iterdir():
            outdated = path.name.startswith(self.family) and path != self.folder
            if outdated or (path.name.startswith(".") and _age(path) > _DAY):
                shutil.rmtree(path, ignore_errors=True)


def write_figures(folder: Path, figures: dict[str, Any]) -> None:
    """Write what is told of a demo, the last of its parts."""
    (folder / FIGURES).write_text(json.dumps({"format": _FORMAT, "figures": figures}))


def is_demo(folder: Path) -> bool:
    """Whether a folder is that of a demo, whole or damaged, and may be replaced."""
    parts = {path.name for path in folder.iterdir()} if folder.is_dir() else {"no folder"}
    return {name for name in parts if not name.startswith(".")} <= {MODEL, INDEX, FIGURES}


def place_of(name: str | None, corpus: Corpus | None, options: ReadOptions, format: str | None, bits: int) -> Place:
    """Where a demo of a corpus is kept; of the installed packages without a name.

    Documents that have changed have another place, so that they are learned anew.
    """
    if name is None:
        base, origin, state = "docstrings", sys.prefix, [sys.version, *_installed()]
    elif names_dataset(name):
        paths = find_dataset(name.partition("/")[0]).found(data_folder())
        base, origin, state = name, name, list(_stamps(paths))
    else:
        state = [f"{source.name} {source.version}" for source in getattr(corpus, "sources", ())]
        origin = name if is_address(name) else str(Path(name).resolve())
        base = Path(name).absolute().name
    asked = [__version__, repr(options), str(format)]
    readable = re.sub(r"[^\w.-]+", "-", base)[:40].strip("-.") or "documents"
    family = f"{readable}-{bits}-{_digest([origin, *asked[1:]], 8)}-"
    return Place(cache_folder() / "demo" / f"{family}{_digest([*asked, *state], 12)}", family)


def _installed() -> Iterator[str]:
    """The distributions beside this one, with their versions."""
    for distribution in sorted(distributions(), key=lambda one: str(one.name)):
        yield f"{distribution.name} {distribution.version}"


def _stamps(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        stat = path.stat()
        yield f"{path} {stat.st_size} {stat.st_mtime_ns}"


def _digest(parts: list[str], length: int) -> str:
    return sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:length]


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
