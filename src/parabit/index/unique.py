"""Ids must be unique; this finds the first that is not, at 8 bytes a document."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parabit.corpus.document import Corpus
from parabit.errors import CorpusError


class SeenIds:
    """Watches ids go by. Only 64-bit hashes are kept.

    Example:
        >>> seen = SeenIds()
        >>> seen.add(["a", "b"]), seen.add([]), seen.add(["b", "c"])
        (set(), set(), {'b'})
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []  # ordered hashes; each run at least twice as long as the next

    def add(self, ids: Sequence[str]) -> set[str]:
        """Take note of the next ids; those that may have been there already, as others have the same hash."""
        if not ids:
            return set()
        hashes = pl.Series(ids, dtype=pl.String).hash().to_numpy()
        ordered = np.sort(hashes)
        again = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, ordered), len(run) - 1)
            again.update(ordered[run[places] == ordered].tolist())
        while self._runs and len(self._runs[-1]) < 2 * len(ordered):
            ordered = np.sort(np.concatenate([self._runs.pop(), ordered]))
        self._runs.append(ordered)
        return {identity for identity, code in zip(ids, hashes.tolist(), strict=True) if code in again}


class UniqueIds:
    """Watches the ids of a corpus go by and raises at the first that occurs again.

    Two ids with one hash are looked up in the corpus, so nothing is refused wrongly.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._seen = SeenIds()

    def add(self, ids: Sequence[str]) -> None:
        """Take note of the next ids."""
        if again := self._seen.add(ids):
            self._look_up(again)

    def _look_up(self, suspects: set[str]) -> None:
        first: dict[str, int] = {}
        for position, document in enumerate(self._corpus):
            if document.id not in suspects:
                continue
            if document.id in first:
                raise same_id(document.id, first[document.id], position)
            first[document.id] = position


def same_id(identity: str, first: int, second: int) -> CorpusError:
    """The error that tells of two documents with one id, by their positions in the corpus."""
    return CorpusError(
        f"two documents have the id {identity!r}: numbers {first} and {second}, from 0",
        hint="ids must be unique; choose another field with --id-field, or leave duplicates out",
    )
