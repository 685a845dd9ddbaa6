"""The public data sets: their names, what each is, where its files are, and how they are split and downloaded."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from parabit.corpus.document import Corpus, Document
from parabit.corpus.sources import Source, SourceCorpus
from parabit.errors import CorpusError, ParabitError
from parabit.progress import Progress, Report, silent

DATASETS = (
    "20newsgroups",
    "20newsgroups-raw",
    "reuters21578",
    "rcv1",
    "wikipedia",
    "enwiki",
    "arxiv",
    "docstrings",
)
SPLITS = ("train", "test")  # of every data set


@dataclass(frozen=True)
class Dataset:
    """A public collection that parabit reads in the form in which its makers publish it.

    A data set that may be downloaded is one file with a SHA-256 and the addresses to try in order; for others `obtain`
    says what to put where.
    """

    about: str
    licence: str
    files: str  # a pattern below the data folder; empty if the data set is made from what is installed here
    corpus: Callable[
        [Sequence[Path], str | None], Corpus
    ]  # of those files: a split's documents, or all if it is None
    urls: tuple[str, ...] = ()
    sha256: str = ""
    obtain: str = ""

    def found(self, data: Path) -> list[Path]:
        """The files of the data set that are in the data folder, in order."""
        return sorted(data.glob(self.files)) if self.files else []


class DatasetCorpus(SourceCorpus):
    """The documents of a split that a function reads from each of a data set's files in turn."""

    def __init__(
        self,
        paths: Sequence[Path],
        split: str | None,
        read: Callable[[Source, str | None], Iterator[Document]],
    ) -> None:
        super().__init__([Source(path) for path in paths])
        self._split, self._read = split, read

    def __iter__(self) -> Iterator[Document]:
        for source in self._each_source():
            yield from self._read(source, self._split)


def in_split(name: str, split: str | None, held_out: float) -> bool:
    """Whether a document belongs to a split: `test`, a given share of all, `train`, the others, or None, which is all.

    It follows from a hash of the name, so it is the same on every machine, whatever other documents there are.
    """
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return split is None or (int.from_bytes(digest[:8], "big") >= (1 - held_out) * 2**64) == (
        split == "test"
    )


def cache_folder() -> Path:
    """The folder for what can be made or downloaded again: `parabit` in the user's cache folder."""
    import platformdirs  # here: few commands need it

    return platformdirs.user_cache_path("parabit", appauthor=False, opinion=False)


def data_folder() -> Path:
    """The folder of the data sets: `PARABIT_DATA`, or `parabit` in the user's cache folder."""
    chosen = os.environ.get("PARABIT_DATA")
    # Not Path.expanduser, which raises for an unknown user.
    return Path(os.path.expanduser(chosen)) if chosen else cache_folder()  # noqa: PTH111


def find_dataset(name: str) -> Dataset:
    """The description of a data set, from the module that reads it, which is imported only now."""
    module = name if name in ("wikipedia", "docstrings") else "news"
    found: Dataset = import_module(f"{__name__}.{module}").DATASETS[name]
    return found


def open_dataset(name: str, report: Report = silent) -> Corpus:
    """Open `NAME/SPLIT`, or `NAME` for all of it; a missing data set is downloaded if that is allowed."""
    base, _, split = name.partition("/")
    if split and split not in SPLITS:
        raise CorpusError(
            f"{base} has no split {split!r}", hint=f"its splits are {' and '.join(SPLITS)}"
        )
    dataset = find_dataset(base)
    paths = dataset.found(data_folder())
    if dataset.files and not paths:
        if not dataset.urls:
            hint = f"{dataset.obtain}; or set PARABIT_DATA to the folder that has it"
            raise CorpusError(f"the data set {base} is not in {data_folder()}", hint)
        paths = [fetch(dataset, data_folder(), report)]
    return dataset.corpus(paths, split or None)


def fetch(dataset: Dataset, data: Path, report: Report = silent) -> Path:
    """Download a data set's file into the data folder and check it; it is there whole or not at all."""
    from parabit.storage import whole_file  # here, as it needs numpy

    target = data / dataset.files
    report(Progress(f"downloading {target.name}", 0, "bytes", None))
    hint = "set PARABIT_DATA to a folder that can be written and has room"
    failures = []
    for url in dataset.urls * 2:  # a connection may break
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(target) as partial, partial.open("wb") as file:
                file.writelines(_download(url, dataset.sha256))
            return target
        except CorpusError as problem:
            failures.append(problem.problem)
        except ParabitError as problem:
            raise CorpusError(problem.problem, hint) from problem
        except OSError as problem:
            reason = (
                f"{target.name} cannot be written to {target.parent}: {problem.strerror or problem}"
            )
            raise CorpusError(reason, hint) from problem
    raise CorpusError(
        "; ".join(dict.fromkeys(failures)), hint=f"try again, or put the file at {target} yourself"
    )


def _download(url: str, checksum: str) -> Iterator[bytes]:
    """The bytes at an address, piece by piece; an error if they end early or do not have this SHA-256."""
    from http.client import HTTPException  # here, as both take long to import
    from urllib.request import urlopen

    digest = sha256()
    try:
        with urlopen(url, timeout=30) as response:
            while piece := response.read(1 << 18):
                digest.update(piece)
                yield piece
            if response.length:  # of a cut-off file, urllib reads what there is
                raise ConnectionError(f"{response.length:,} bytes are missing")
    except (OSError, HTTPException) as problem:
        raise CorpusError(f"{url} could not be downloaded: {problem}") from problem
    if digest.hexdigest() != checksum:
        raise CorpusError(
            f"{url} has another SHA-256 than {checksum}: the file is damaged or another one"
        )
