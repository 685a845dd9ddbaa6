"""Names to choose from: the shell completes them, and where one is mistyped the nearest is told."""

import os
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from pathlib import Path

from parabit.corpus.datasets import DATASETS, SPLITS
from parabit.errors import ParabitError, did_you_mean

_MOST_BESIDE = 1000  # names that are compared with one that is not there


def completing(names: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes an option in the shell."""

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_corpus(incomplete: str) -> list[str]:
    """Data sets, with and without their splits, that begin like this, and paths that do.

    Where no data set does, the shell completes paths by itself, and better: it knows what a folder is.
    """
    named = [
        name
        for dataset in DATASETS
        for name in (dataset, *(f"{dataset}/{split}" for split in SPLITS))
        if name.startswith(incomplete)
    ]
    if not named:
        return []
    folder, _, start = incomplete.rpartition("/")
    try:
        there = sorted(path.name for path in Path(folder or ".").iterdir() if path.name.startswith(start))
    except OSError:
        there = []
    return named + [f"{folder}/{name}" if folder else name for name in there if not name.startswith(".")]


def check_spelling(what: str, given: str | None, known: Collection[str]) -> None:
    """Raise for a name that is nearly one of those known. What is like none of them is the library's to refuse.

    Example:
        >>> check_spelling("rank", "hybird", ("hamming", "hybrid"))
        Traceback (most recent call last):
        parabit.errors.ParabitError: no rank 'hybird'; did you mean hybrid? There are hamming, hybrid
    """
    if given is not None and given not in known and (hint := did_you_mean(given, known)):
        raise ParabitError(f"no {what} {given!r}", hint=f"{hint} There are {', '.join(known)}")


def folder_beside(path: Path) -> str:
    """The hint for a folder that is not there, where one of a similar name is."""
    try:
        folders = [entry.name for entry in islice(os.scandir(path.parent), _MOST_BESIDE) if entry.is_dir()]
    except OSError:
        return ""
    return did_you_mean(str(path), [str(path.parent / name) for name in folders])
