"""The public data sets: their names, and how one is opened."""

from parabit.corpus.datasets.dataset import CommonLabels, Dataset, cache_folder, data_folder, fetch
from parabit.corpus.datasets.docstrings import DOCSTRINGS
from parabit.corpus.datasets.news import NEWSGROUPS, NEWSGROUPS_RAW, RCV1, REUTERS
from parabit.corpus.datasets.samples import ARXIV, ENWIKI
from parabit.corpus.datasets.wikipedia import WIKIPEDIA
from parabit.corpus.document import Corpus
from parabit.errors import CorpusError, did_you_mean
from parabit.progress import Report, silent

__all__ = ["DATASETS", "CommonLabels", "Dataset", "cache_folder", "data_folder", "names_dataset", "open_dataset"]

DATASETS = {
    dataset.name: dataset
    for dataset in (NEWSGROUPS, NEWSGROUPS_RAW, REUTERS, RCV1, WIKIPEDIA, ENWIKI, ARXIV, DOCSTRINGS)
}


def names_dataset(name: str) -> bool:
    """Whether a corpus name is that of a data set, with or without a split, and not a path.

    Example:
        >>> names_dataset("20newsgroups/train"), names_dataset("./20newsgroups/train")
        (True, False)
    """
    return name.partition("/")[0] in DATASETS


def open_dataset(name: str, report: Report = silent) -> Corpus:
    """Open `NAME/SPLIT`, or `NAME` for all of it; a missing data set is downloaded if that is allowed.

    Example:
        >>> len(next(iter(open_dataset("docstrings"))).labels) in (1, 2)
        True
    """
    base, _, split = name.partition("/")
    dataset = DATASETS[base]
    if split and split not in dataset.splits:
        raise CorpusError(
            f"{base} has no split {split!r}",
            hint=did_you_mean(split, dataset.splits) or f"its splits are {' and '.join(dataset.splits)}",
        )
    paths = dataset.found(data_folder())
    if dataset.files and not paths:
        if not dataset.urls:
            raise CorpusError(
                f"the data set {dataset.name} is not in {data_folder()}",
                hint=f"{dataset.obtain}; or set PARABIT_DATA to the folder that has it",
            )
        paths = [fetch(dataset, report)]
    return dataset.corpus(paths, split or None)
