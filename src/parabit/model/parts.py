"""What a long encoding has done so far, kept in a folder so that it can go on after any end."""

import json
import re
import shutil
import time
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from parabit.corpus import Corpus, Document
from parabit.errors import CorpusError, ParabitError
from parabit.progress import Progress, Report
from parabit.storage import plain_disk_errors, whole_file

FORMAT = 1
ROWS = 65_536  # documents of a part
EVERY = 60.0  # seconds after which a part is saved though it is not full
WHOLE = "whole"  # the parts put together, until that takes the output's name
_ABOUT = "about.json"
_OURS = re.compile(rf"{_ABOUT}|part-\d{{8}}\.parquet|{WHOLE}|\.(?:{_ABOUT}|part-\d{{8}}\.parquet|{WHOLE})\..*\.partial")
_ANEW = "start anew with --overwrite"


class _Tail(NamedTuple):
    """The part that grows."""

    number: int
    rows: pl.DataFrame


class Parts:
    """The rows of an encoding in files of `ROWS` each; the last is replaced as it grows.

    So the parts are the same files whether or not somebody stopped in between. `identity` is all that decides what they
    hold: parts of another encoding are refused. Each row has the `id` of its document and a checksum of its `text`, so
    that a changed corpus is noticed. Nothing is written, and nothing old removed, before there is a row to keep.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "codes.npy.encoding"
        >>> schema = {"id": pl.String(), "text": pl.UInt32()}
        >>> parts = Parts(folder, {"mode": "fast"}, schema)
        >>> parts.add(pl.DataFrame({"id": ["a"], "text": [checksum("a telescope")]}, schema=schema))
        >>> parts.save()
        >>> Parts(folder, {"mode": "fast"}, schema, resume=True).documents
        1
    """

    def __init__(
        self, folder: Path, identity: Mapping[str, Any], schema: Mapping[str, pl.DataType], resume: bool = False
    ) -> None:
        self.folder = folder
        self._about = json.loads(json.dumps({"format": FORMAT, **identity}))  # as it will be read back
        self._schema = dict(schema)
        self._begun = self._made = False
        self._found: list[Path] = []  # parts of the run before, to go on from
        self._tail = _Tail(0, pl.DataFrame(schema=self._schema))
        self._saved = (0, 0)  # the tail as it is on the disk: number, rows
        self._when = time.monotonic()
        if resume and has_parts(folder):
            self._open()

    @property
    def documents(self) -> int:
        """Rows kept so far."""
        return self._tail.number * ROWS + self._tail.rows.height

    @property
    def nothing(self) -> pl.DataFrame:
        """No rows, with the columns that rows have."""
        return self._tail.rows.clear()

    @property
    def paths(self) -> list[Path]:
        """The files, in order; save first."""
        return [self._path(number) for number in range(-(-self.documents // ROWS))]

    def add(self, rows: pl.DataFrame) -> None:
        """Keep the next rows; full parts are written at once, the last one every minute."""
        self._tail = _Tail(self._tail.number, pl.concat([self._tail.rows, rows]))
        while self._tail.rows.height >= ROWS:
            self._write()
            # In one step: Ctrl-C between two would have rows twice, or not at all.
            self._tail = _Tail(self._tail.number + 1, self._tail.rows.slice(ROWS))
        if time.monotonic() - self._when > EVERY:
            self.save()

    def save(self) -> None:
        """Write what is not yet on the disk."""
        if self._tail.rows.height and self._saved != (self._tail.number, self._tail.rows.height):
            self._write()

    def remove(self) -> None:
        """Forget all; what a kill leaves of it is still known as ours by its description."""
        for path in self.folder.glob("part-*.parquet"):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tidy(self) -> None:
        """Leave no folder of ours from which nobody could go on."""
        if self._made and not has_parts(self.folder):
            self.remove()

    def begin(self) -> None:
        """Make the folder, and clear what an older encoding or a kill has left in it."""
        if self._begun:
            return
        self.folder.mkdir(exist_ok=True)
        self._made = True
        for path in self.folder.iterdir():
            if path not in self._found and path.name != _ABOUT:
                path.unlink()
        with whole_file(self.folder / _ABOUT, durable=True) as partial:
            partial.write_text(json.dumps(self._about, indent=2) + "\n")
        self._begun = True

    def _write(self) -> None:
        number, rows = self._tail.number, self._tail.rows.head(ROWS)
        self.begin()
        with whole_file(self._path(number), durable=True) as partial, plain_disk_errors():
            rows.write_parquet(partial)
        self._saved, self._when = (number, rows.height), time.monotonic()

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:08d}.parquet"

    def _open(self) -> None:
        """Go on with what is there."""
        try:
            about: dict[str, Any] = json.loads((self.folder / _ABOUT).read_text())
            differences = [
                f"{name} {about.get(name)!r} there, {self._about.get(name)!r} here"
                for name in sorted({*about, *self._about})
                if about.get(name) != self._about.get(name)
            ]
        except (OSError, ValueError, AttributeError, TypeError) as problem:
            raise ParabitError(f"{self.folder / _ABOUT} is damaged", hint=_ANEW) from problem
        if differences:
            raise ParabitError(
                f"{self.folder} is of another encoding: {'; '.join(differences)}",
                hint=f"give the same model, corpus and options, or {_ANEW}",
            )
        found = sorted(self.folder.glob("part-*.parquet"))
        for number, path in enumerate(found):
            last = number == len(found) - 1
            height = read_part(path, ["id"]).height
            if path != self._path(number) or not (height == ROWS or (last and 0 < height < ROWS)):
                raise ParabitError(f"the parts in {self.folder} do not follow on each other", hint=_ANEW)
        tail = read_part(found[-1], list(self._schema))
        if tail.schema != self._schema:
            raise ParabitError(f"{found[-1]} is not the file that was written", hint=_ANEW)
        full = tail.height == ROWS
        self._tail = _Tail(len(found), tail.clear()) if full else _Tail(len(found) - 1, tail)
        self._saved = (self._tail.number, self._tail.rows.height)
        self._found = found


class _Row(NamedTuple):
    """What is kept of a document to know it by."""

    place: int
    id: str
    text: int  # its checksum


class Remaining(Corpus):
    """The documents of a corpus that have no row yet; those before them must be the ones that have."""

    def __init__(self, corpus: Corpus, parts: Parts, report: Report) -> None:
        self._corpus, self._report = corpus, report
        self._paths, self._rows = parts.paths, parts.documents

    def __iter__(self) -> Iterator[Document]:
        kept = self._kept()
        for document in self._corpus:
            row = next(kept, None)
            if row is None:
                yield document
            elif document.id != row.id:
                raise _changed(f"document {row.place:,}, from 0, was {row.id!r} and is {document.id!r}")
            elif checksum(document.text) != row.text:
                raise _changed(f"document {row.place:,}, from 0, {row.id!r}, has another text")
        missing = next(kept, None)
        if missing is not None:
            raise _changed(f"it ends after {missing.place:,} documents, and {self._rows:,} are encoded")

    def _kept(self) -> Iterator[_Row]:
        place = 0
        for path in self._paths:
            for identity, text in read_part(path, ["id", "text"]).iter_rows():
                yield _Row(place, identity, text)
                place += 1
            self._report(Progress("reading what is encoded", place, "documents", self.share_read))

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read


def _changed(how: str) -> CorpusError:
    return CorpusError(f"the corpus has changed: {how}", hint=_ANEW)


def checksum(text: str) -> int:
    """A number that changes when the text does, as good as always."""
    return zlib.crc32(text.encode())


def read_part(path: Path, columns: list[str]) -> pl.DataFrame:
    """Columns of a part; a damaged one is told."""
    try:
        return pl.read_parquet(path, columns=columns, glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        raise ParabitError(f"{path} is damaged or missing", hint=_ANEW) from problem


def is_parts_folder(folder: Path) -> bool:
    """Whether a folder holds what an unfinished encoding keeps, and nothing else."""
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return False
    ours = all(_OURS.fullmatch(name) for name in names)
    return ours and not folder.is_symlink() and (_ABOUT in names or all(name.startswith(".") for name in names))


def has_parts(folder: Path) -> bool:
    """Whether there is anything to go on from."""
    return any(folder.glob("part-*.parquet"))
