"""What a data set is: a name, its files, where they come from, how they are read, and how it is split."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import platformdirs

from parabit.corpus.document import Corpus, Document
from parabit.corpus.sources import Source, SourceCorpus
from parabit.errors import DownloadError
from parabit.progress import Progress, Report, silent

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Dataset:
    """A public collection that parabit reads in the form in which its makers publish it.

    `files` is a pattern below the data folder; it is empty if the data set is made from what is installed here.
    `corpus` reads those files: the documents of a split, or all of them if the split is None. A data set that may be
    downloaded is one file with a SHA-256 and the addresses to try in order; for others `obtain` says what to put where.
    """

    name: str
    about: str
    licence: str
    files: str
    corpus: Callable[[Sequence[Path], str | None], Corpus]
    splits: tuple[str, ...] = SPLITS
    urls: tuple[str, ...] = ()
    sha256: str = ""
    obtain: str = ""

    def found(self, data: Path) -> list[Path]:
        """The files of the data set that are in the data folder, in order."""
        return sorted(data.glob(self.files)) if self.files else []


class DatasetCorpus(SourceCorpus):
    """Documents that a function reads from each of a data set's files in turn."""

    def __init__(self, paths: Sequence[Path], read: Callable[[Source], Iterator[Document]]) -> None:
        super().__init__([Source(path) for path in paths])
        self._read = read

    def _documents(self) -> Iterator[Document]:
        for source in self._each_source():
            yield from self._read(source)


class CommonLabels(Corpus):
    """A corpus without its rare labels and without the documents that have no other: the paper's rule for Wikipedia.

    The labels are counted in a first reading, once. With `least` of 1, only documents without a label are left out.
    """

    def __init__(self, corpus: Corpus, least: int = 20) -> None:
        self._corpus = corpus
        self._least = least

    @cached_property
    def counts(self) -> Counter[str]:
        """How many documents have each label, rare or not."""
        return Counter(label for document in self._corpus for label in set(document.labels))

    def __iter__(self) -> Iterator[Document]:
        counts = self.counts
        for document in self._corpus:
            labels = tuple(label for label in document.labels if counts[label] >= self._least)
            if labels:
                yield replace(document, labels=labels)

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read


def in_split(name: str, split: str | None, held_out: float) -> bool:
    """Whether the document of this name belongs to a split: `test`, a given share of all, or `train`, the others.

    It follows from a hash of the name, so it is the same on every machine, whatever other documents there are. If
    no split is asked for, every document belongs.

    Example:
        >>> sum(in_split(f"article {i}", "test", held_out=0.1) for i in range(10_000))
        1010
    """
    if split is None:
        return True
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") >= (1 - held_out) * 2**64) == (split == "test")


def cache_folder() -> Path:
    """The folder for what can be made or downloaded again: `parabit` in the user's cache folder."""
    return platformdirs.user_cache_path("parabit", appauthor=False, opinion=False)


def data_folder() -> Path:
    """The folder of the data sets: `PARABIT_DATA`, or `parabit` in the user's cache folder."""
    if chosen := os.environ.get("PARABIT_DATA"):
        return Path(os.path.expanduser(chosen))  # noqa: PTH111 - Path.expanduser raises for an unknown user
    return cache_folder()


def fetch(dataset: Dataset, report: Report = silent) -> Path:
    """Download a data set's file into the data folder and check it; it is there whole or not at all."""
    import pooch  # here: with requests it takes longer to import than most data sets to open
    import requests

    target = data_folder() / dataset.files
    pooch.get_logger().setLevel("WARNING")
    failures = []
    for url in dataset.urls:
        downloader = pooch.HTTPDownloader(progressbar=_Bar(target.name, report), chunk_size=1 << 18, timeout=30)
        source = pooch.create(
            target.parent,
            base_url="",
            registry={target.name: dataset.sha256},
            urls={target.name: url},
            retry_if_failed=2,
        )
        try:
            return Path(source.fetch(target.name, downloader=downloader))
        except requests.RequestException as problem:
            failures.append(f"{url} could not be downloaded: {problem}")
        except ValueError:
            failures.append(f"{url} has another SHA-256 than {dataset.sha256}: the file is damaged or another one")
        except OSError as problem:
            raise DownloadError(
                f"{target.name} cannot be written to {target.parent}: {problem.strerror or problem}",
                hint="set PARABIT_DATA to a folder that can be written and has room",
            ) from problem
    raise DownloadError("; ".join(failures), hint=f"try again, or put the file at {target} yourself")


class _Bar:
    """A progress bar as pooch wants one, which only reports."""

    total = 0

    def __init__(self, name: str, report: Report) -> None:
        self._name, self._report, self._done = name, report, 0

    def update(self, count: int) -> None:
        self._done += count
        share = min(1.0, self._done / self.total) if self.total else None
        self._report(Progress(f"downloading {self._name}", self._done, "bytes", share))

    def reset(self) -> None:
        # pooch resets a bar when the file is complete, and then adds its size once more.
        self._done = 0

    def close(self) -> None:
        pass
