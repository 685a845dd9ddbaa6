"""The public data sets: their names, where they are kept, and how one is opened."""

import os
import sys
from difflib import get_close_matches
from pathlib import Path

from parabit.corpus.datasets.dataset import CommonLabels, Dataset
from parabit.corpus.datasets.docstrings import DOCSTRINGS
from parabit.corpus.datasets.newsgroups import NEWSGROUPS, NEWSGROUPS_RAW
from parabit.corpus.datasets.rcv1 import RCV1
from parabit.corpus.datasets.reuters import REUTERS
from parabit.corpus.datasets.samples import ARXIV, ENWIKI
from parabit.corpus.datasets.wikipedia import WIKIPEDIA
from parabit.corpus.document import Corpus
from parabit.corpus.download import fetch
from parabit.errors import CorpusError
from parabit.progress import Report, silent

__all__ = ["DATASETS", "CommonLabels", "Dataset", "cache_folder", "data_folder", "names_dataset", "open_dataset"]

DATASETS = {
    dataset.name: dataset
    for dataset in (NEWSGROUPS, NEWSGROUPS_RAW, REUTERS, RCV1, WIKIPEDIA, ENWIKI, ARXIV, DOCSTRINGS)
}


def data_folder() -> Path:
    """Where data sets are kept: `PARABIT_DATA`, or `parabit` in the user's cache folder."""
    if chosen := os.environ.get("PARABIT_DATA"):
        return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for an unknown user
    return cache_folder()


def cache_folder() -> Path:
    """Where things are kept that can be made or fetched again: `parabit` in the user's cache folder."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - the same where there is no home
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = home / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return cache / "parabit"


def names_dataset(name: str) -> bool:
    """Whether a corpus name is that of a data set, with or without a split, and not a path.

    Example:
        >>> names_dataset("20newsgroups/train"), names_dataset("./20newsgroups/train")
        (True, False)
    """
    return name.partition("/")[0] in DATASETS


def open_dataset(name: str, report: Report = silent) -> Corpus:
    """Open `NAME/SPLIT`, or `NAME` for all of it; what is missing is downloaded where that may be done.

    Example:
        >>> len(next(iter(open_dataset("docstrings"))).labels) in (1, 2)
        True
    """
    base, _, split = name.partition("/")
    dataset = DATASETS[base]
    if split and split not in dataset.splits:
        close = get_close_matches(split, dataset.splits, n=1)
        raise CorpusError(
            f"{base} has no split {split!r}",
            hint=f"did you mean {base}/{close[0]}?" if close else f"its splits are {' and '.join(dataset.splits)}",
        )
    paths = dataset.found(data_folder())
    if dataset.files and not paths:
        paths = [_obtained(dataset, report)]
    return dataset.corpus(paths, split or None)


def _obtained(dataset: Dataset, report: Report) -> Path:
    if dataset.download is None:
        raise CorpusError(
            f"the data set {dataset.name} is not in {data_folder()}",
            hint=f"{dataset.obtain}; or set PARABIT_DATA to the folder that has it",
        )
    return fetch(dataset.download, data_folder(), report)
