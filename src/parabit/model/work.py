"""The folder for what long training keeps."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from parabit.errors import ParabitError
from parabit.storage import CHECKPOINT

BAGS, SCRATCH = "bags", "scratch"


class Work(NamedTuple):
    """Where long training keeps its state, and how often it saves it."""

    folder: Path
    every: float  # seconds
    resume: bool  # go on from what is there, or forget it


@contextmanager
def work_folder(work: Work | None) -> Iterator[Path]:
    """A temporary folder, or the caller's, in which only checkpoints outlive an end of any kind."""
    if work is None:
        with tempfile.TemporaryDirectory(prefix="parabit-", ignore_cleanup_errors=True) as folder:
            yield Path(folder)
        return
    if work.folder.exists() and not is_work_folder(work.folder):
        raise ParabitError(
            f"{work.folder} is there and is something else", hint="nothing was touched; choose another name"
        )
    try:
        work.folder.mkdir(exist_ok=True)
    except OSError as problem:
        raise ParabitError(
            f"{work.folder} cannot be made: {problem.strerror}", hint="choose another place"
        ) from problem
    clear_scratch(work.folder)  # what a kill has left
    try:
        yield work.folder
    finally:
        clear_scratch(work.folder)
        if not any(work.folder.iterdir()):
            work.folder.rmdir()


def is_work_folder(folder: Path) -> bool:
    """Whether a folder holds what training keeps, and nothing else."""
    try:
        return all(_is_scratch(path) or path.name.startswith(CHECKPOINT) for path in folder.iterdir())
    except OSError:
        return False


def clear_scratch(folder: Path) -> None:
    """Remove all but checkpoints."""
    for path in folder.iterdir():
        if _is_scratch(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_scratch(path: Path) -> bool:
    half_written = path.name.startswith(".") and path.name.endswith((".partial", ".old"))
    return path.name in (BAGS, SCRATCH) or half_written
