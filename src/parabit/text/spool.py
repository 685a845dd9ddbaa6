"""Tokens put aside on disk while the corpus is counted, so that its text is read and cut into words only once."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import polars as pl

from parabit.storage import plain_disk_errors
from parabit.text.tokenizer import Tokens


class TokenSpool:
    """Batches of tokens in a temporary folder: 4 bytes a token, and each batch's own dictionary with its counts.

    No dictionary of all words is kept while reading, so memory does not grow with the corpus.
    """

    def __init__(self, beside: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=".parabit-", suffix=".partial", dir=beside))
        self.batches = 0
        self.rows = 0  # in all the dictionaries together
        self.tokens = 0
        self.documents = 0

    def __enter__(self) -> "TokenSpool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def append(self, tokens: Tokens) -> None:
        """Put a batch aside."""
        counts = np.bincount(tokens.codes, minlength=len(tokens.words))
        frame = pl.DataFrame({"word": tokens.words, "count": counts})
        with plain_disk_errors():
            frame.write_ipc(self._path(self.batches, "words"))
        for name, array in (("codes", tokens.codes), ("lengths", tokens.lengths)):
            with self._path(self.batches, name).open("wb") as file:
                file.write(np.ascontiguousarray(array).data)
        self.batches += 1
        self.rows += len(frame)
        self.tokens += len(tokens.codes)
        self.documents += len(tokens.lengths)

    def __iter__(self) -> Iterator[Tokens]:
        for batch in range(self.batches):
            yield Tokens(
                pl.scan_ipc(self._path(batch, "words"), glob=False).select("word").collect()["word"],
                np.fromfile(self._path(batch, "codes"), dtype=np.uint32),
                np.fromfile(self._path(batch, "lengths"), dtype=np.int64),
            )

    def scan_words(self) -> pl.LazyFrame:
        """All dictionaries one after the other: `word` and its `count` in a batch."""
        return pl.scan_ipc([self._path(batch, "words") for batch in range(self.batches)], glob=False)

    def _path(self, batch: int, what: str) -> Path:
        return self.folder / f"{batch:06d}.{what}"
