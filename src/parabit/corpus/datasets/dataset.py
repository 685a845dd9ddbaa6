"""What a data set is to parabit: a name, its files, where they come from, and how they are read."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from parabit.corpus.document import Corpus, Document
from parabit.corpus.download import Download
from parabit.corpus.sources import Source, SourceCorpus


@dataclass(frozen=True)
class Dataset:
    """A public collection that parabit reads in the form in which its makers give it.

    `files` is a pattern below the data folder; it is empty where the data set is made from what is installed here.
    `corpus` reads those files: the documents of a split, or all of them where the split is None.
    `obtain` says what to put where, for a data set that may not be downloaded.
    """

    name: str
    about: str
    licence: str
    splits: tuple[str, ...]
    files: str
    corpus: Callable[[Sequence[Path], str | None], Corpus]
    download: Download | None = None
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
