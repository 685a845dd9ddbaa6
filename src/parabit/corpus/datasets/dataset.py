"""What a data set is: its files, how they are read, split and downloaded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from parabit.corpus.document import Corpus, Document
from parabit.corpus.sources import Source, SourceCorpus
from parabit.errors import DownloadError
from parabit.progress import Progress, Report, silent


@dataclass(frozen=True)
class Dataset:
    """A public collection that parabit reads in the form in which its makers publish it.

    `files` is a pattern below the data folder; it is empty if the data set is made from what is installed here.
    `corpus` reads those files: the documents of a split, or all of them if the split is None. A data set that may be
    downloaded is one file with a SHA-256 and the addresses to try in order; for others `obtain` says what to put where.
    """

    about: str
    licence: str
    files: str
    corpus: Callable[[Sequence[Path], str | None], Corpus]
    urls: tuple[str, ...] = ()
    sha256: str = ""
    obtain: str = ""

    def found(self, data: Path) -> list[Path]:
        """The files of the data set that are in the data folder, in order."""
        return sorted(data.glob(self.files)) if self.files else []


class DatasetCorpus(SourceCorpus):
    """The documents of a split that a function reads from each of a data set's files in turn."""

    def __init__(
        self, paths: Sequence[Path], split: str | None, read: Callable[[Source, str | None], Iterator[Document]]
    ) -> None:
        super().__init__([Source(path) for path in paths])
        self._split, self._read = split, read

    def __iter__(self) -> Iterator[Document]:
        for source in self._each_source():
            yield from self._read(source, self._split)


def in_split(name: str, split: str | None, held_out: float) -> bool:
    """Whether the document of this name belongs to a split: `test`, a given share of all, or `train`, the others.

    It follows from a hash of the name, so it is the same on every machine, whatever other documents there are. If
    no split is asked for, every document belongs.
    """
    if split is None:
        return True
    digest = sha256(name.encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:8], "big") >= (1 - held_out) * 2**64) == (split == "test")


def fetch(dataset: Dataset, data: Path, report: Report = silent) -> Path:
    """Download a data set's file into the data folder and check it; it is there whole or not at all."""
    import pooch  # here, as both take long to import
    import requests

    target = data / dataset.files
    pooch.get_logger().setLevel("WARNING")
    report(Progress(f"downloading {target.name}", 0, "bytes", None))
    failures = []
    for url in dataset.urls:
        downloader = pooch.HTTPDownloader(chunk_size=1 << 18, timeout=30)
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
