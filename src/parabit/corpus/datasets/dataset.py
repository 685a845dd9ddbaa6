"""What a data set is: its files, where they come from, how they are read, and how it is split."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from parabit.corpus.document import Corpus, Document
from parabit.corpus.sources import Source, SourceCorpus


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
