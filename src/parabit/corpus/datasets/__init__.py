"""The public data sets: their names, where their files are, and how one is opened."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from parabit.errors import CorpusError, did_you_mean
from parabit.progress import Report, silent

if TYPE_CHECKING:
    from parabit.corpus.datasets.dataset import Dataset
    from parabit.corpus.document import Corpus

__all__ = ["DATASETS", "SPLITS", "cache_folder", "data_folder", "find_dataset", "names_dataset", "open_dataset"]

# The module that describes and reads each; it is imported only if the data set is asked for.
DATASETS = {
    "20newsgroups": "news",
    "20newsgroups-raw": "news",
    "reuters21578": "news",
    "rcv1": "news",
    "wikipedia": "wikipedia",
    "enwiki": "samples",
    "arxiv": "samples",
    "docstrings": "docstrings",
}
SPLITS = ("train", "test")  # of every data set


def cache_folder() -> Path:
    """The folder for what can be made or downloaded again: `parabit` in the user's cache folder."""
    import platformdirs

    return platformdirs.user_cache_path("parabit", appauthor=False, opinion=False)


def data_folder() -> Path:
    """The folder of the data sets: `PARABIT_DATA`, or `parabit` in the user's cache folder."""
    if chosen := os.environ.get("PARABIT_DATA"):
        return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for an unknown user
    return cache_folder()


def names_dataset(name: str) -> bool:
    """Whether a corpus name is that of a data set, with or without a split, and not a path."""
    return name.partition("/")[0] in DATASETS


def find_dataset(name: str) -> "Dataset":
    """The description of a data set."""
    return cast("Dataset", import_module(f"{__name__}.{DATASETS[name]}").DATASETS[name])


def open_dataset(name: str, report: Report = silent) -> "Corpus":
    """Open `NAME/SPLIT`, or `NAME` for all of it; a missing data set is downloaded if that is allowed."""
    base, _, split = name.partition("/")
    if split and split not in SPLITS:
        raise CorpusError(
            f"{base} has no split {split!r}",
            hint=did_you_mean(split, SPLITS) or f"its splits are {' and '.join(SPLITS)}",
        )
    dataset = find_dataset(base)
    paths = dataset.found(data_folder())
    if dataset.files and not paths:
        if not dataset.urls:
            raise CorpusError(
                f"the data set {base} is not in {data_folder()}",
                hint=f"{dataset.obtain}; or set PARABIT_DATA to the folder that has it",
            )
        from parabit.corpus.datasets.dataset import fetch

        paths = [fetch(dataset, data_folder(), report)]
    return dataset.corpus(paths, split or None)
