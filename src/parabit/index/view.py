"""What an index asks of the place its documents are kept in: the embedded store, or a server."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from parabit.index.filtering import Where
from parabit.index.results import Found
from parabit.index.store import Batch, Id, Kind
from parabit.progress import Report


class Rows(Protocol):
    """What ranking reads of documents, by their rows."""

    def codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The codes in some rows, (rows, bytes)."""

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float16]:
        """The vectors in some rows, (rows, dim)."""

    def words(self, rows: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The words of the documents in some rows, one document after the other, and where each begins."""


class View(Rows, Protocol):
    """Documents as one search sees them. A row stands for the same document until the view ends, or is to forget."""

    @property
    def bits(self) -> int:
        """How many bits a code has."""

    @property
    def documents(self) -> int:
        """How many there are."""

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""

    def notes(self, backend: str) -> tuple[str, ...]:
        """What a search by a back end does not promise, in words."""

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """The row of each id; -1 where there is none."""

    def ids_of(self, rows: NDArray[np.int64]) -> list[Id]:
        """The ids in some rows."""

    def fields_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """The fields, text among them, of the documents in some rows."""

    def order(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers that say which of some rows came first."""

    def forget(self) -> None:
        """Let go of what was read, after a block of many: nobody will ask for its rows again."""

    def find(
        self,
        codes: NDArray[np.uint8],
        most: int | None,
        radius: int | None,
        where: Where | None = None,
        backend: str = "auto",
        reads: Collection[str] = (),
    ) -> Found:
        """The nearest `most` documents of each code, or all within the radius, or both.

        Nearest first, and of equally near ones the one that came first. `reads` names what will be read of them.
        """

    def sample(self, most: int, seed: int = 0) -> NDArray[np.int64]:
        """The rows of all documents; of more than `most` a sample."""

    def blocks(self, size: int) -> Iterator[NDArray[np.int64]]:
        """The rows of all documents, in the order they came in, so many at a time."""

    def counts(self, field: str, sampled: Mapping[str, int], share: float) -> dict[str, int]:
        """How many documents have each value in a field; `sampled` tells how many in a sample of this share."""


class Home(Protocol):
    """Where the documents of an index are kept: a folder alone, or a folder and a server."""

    folder: Path

    @property
    def bits(self) -> int:
        """How many bits a code has."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model that made the codes."""

    @property
    def model_folder(self) -> Path:
        """Where that model is, if it was kept."""

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the index wanted to find again."""

    @property
    def extra(self) -> Mapping[str, Kind]:
        """What is kept beside codes and fields, by name."""

    @property
    def documents(self) -> int:
        """How many documents there are."""

    @property
    def field_names(self) -> list[str]:
        """The names of fields that documents have, or had."""

    def view(self) -> View:
        """The documents as they are now."""

    def rows_of(self, ids: Sequence[Id]) -> NDArray[np.int64]:
        """A number for each id; -1 where there is no such document."""

    def append(self, batch: Batch) -> None:
        """Add documents with new ids."""

    def update(self, batch: Batch) -> None:
        """Replace the documents that have these ids."""

    def put(self, batch: Batch, gone: Sequence[Id] = ()) -> int:
        """Add documents, in the place of those that have their ids; delete others. How many were replaced."""

    def delete(self, ids: Sequence[Id]) -> None:
        """Delete documents; where one is not there, none."""

    def merge(self, report: Report) -> None:
        """Have it be as fast, and as small, as if it had been built as it is."""

    def copy_to(self, folder: Path | str, overwrite: bool, report: Report) -> None:
        """Write all documents to another folder, as an embedded index."""

    def refresh(self) -> bool:
        """See what another process has written since; whether there was anything."""

    def verify(self) -> None:
        """Read all and raise if something is not what was written."""

    def about(self) -> dict[str, Any]:
        """What it is, what it keeps, and what is left to be merged; for JSON."""

    def close(self) -> None:
        """Give back the right to write."""
