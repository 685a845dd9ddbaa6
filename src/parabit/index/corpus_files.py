"""What an index remembers of its corpus: where it is and how it is read, and each file with its documents.

The manifest has the first, a Parquet file beside it the second: one row per file, with what changes when the file does,
and the ids and digests of its documents. That file is derived. It is written before documents change, without
versions and digests, and again afterwards; so a kill leaves a file that says which documents may be in the index, and
the next sync reads those files again. If it is missing or damaged, sync reads all files.
"""

import os
import secrets
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import Source, UnreadableError, is_address, may_pass
from parabit.errors import CorpusError
from parabit.index.documents import stored_fields
from parabit.index.store.schema import TEXT, record_of
from parabit.storage import plain_disk_errors, whole_file

_AT_ONCE = 1 << 16  # documents that are noted as Python objects
# A file that changes twice within a tick of the file system's clock looks unchanged after the second time. What was
# written so recently is read again. Times in whole seconds are those of a slow clock.
_TICK, _SLOW_TICK = 50_000_000, 2_000_000_000  # nanoseconds

_DOCUMENTS = {"file": pl.String, "id": pl.String, "text": pl.UInt64, "rest": pl.UInt64}


class Files(NamedTuple):
    """The files of a corpus, and the documents in them."""

    versions: pl.DataFrame  # file, version: empty if the file is to be read again
    documents: pl.DataFrame  # file, id, and digests of the text and of the rest; null if they are not known

    @classmethod
    def read(cls, path: Path) -> "Files | None":
        """What `write` wrote; None if it is missing or damaged."""
        try:
            table = pl.read_parquet(path)
            return cls(
                table.select("file", "version"), table.drop("version").explode("id", "text", "rest").drop_nulls("id")
            )
        except (OSError, pl.exceptions.PolarsError):
            return None

    def write(self, path: Path) -> None:
        """Write the table, complete or not at all."""
        documents = self.documents.group_by("file", maintain_order=True).agg(pl.all())
        table = self.versions.join(documents, on="file", how="left", maintain_order="left")
        with plain_disk_errors(), whole_file(path, durable=True) as partial:
            table.write_parquet(partial)

    def without(self, files: pl.Series | Collection[str]) -> "Files":
        """The others."""
        names = pl.Series(list(files), dtype=pl.String).implode()
        return Files(*(table.filter(~pl.col("file").is_in(names)) for table in self))

    def unsure(self) -> "Files":
        """The same while documents change: which ones there may be, and nothing about them."""
        nothing = pl.lit(None, dtype=pl.UInt64)
        return Files(
            self.versions.with_columns(version=pl.lit("")), self.documents.with_columns(text=nothing, rest=nothing)
        )

    def with_others(self, others: "Files") -> "Files":
        """Both; if a document is in both, its file is that of the others."""
        versions = pl.concat([self.versions, others.versions]).unique("file", keep="last", maintain_order=True)
        documents = pl.concat([self.documents, others.documents]).unique("id", keep="last", maintain_order=True)
        return Files(versions, documents)


class Notes:
    """Takes note of documents as they are read."""

    def __init__(self) -> None:
        self._parts = [pl.DataFrame(schema=_DOCUMENTS)]
        self._rows: list[tuple[str, str, int | None, int | None]] = []

    def add(self, file: str, document: Document) -> None:
        """Take note of a document of a file."""
        self.add_digests(file, document.id, digests(stored_fields(document, text=True)))

    def add_digests(self, file: str, identity: str, of: tuple[int, int] | tuple[None, None]) -> None:
        """Take note of a document by what is known of it."""
        self._rows.append((file, identity, *of))
        if len(self._rows) == _AT_ONCE:
            self._flush()

    def table(self) -> pl.DataFrame:
        """The documents so far."""
        self._flush()
        return pl.concat(self._parts)

    def _flush(self) -> None:
        self._parts.append(pl.DataFrame(self._rows, schema=_DOCUMENTS, orient="row"))
        self._rows = []


class NotedCorpus(Corpus):
    """A corpus of files that takes note of them as it is read."""

    def __init__(self, corpus: FileCorpus, memory: dict[str, Any], asked: Corpus | None = None) -> None:
        self._corpus, self.memory, self._asked = corpus, memory, asked or corpus

    def __iter__(self) -> Iterator[Document]:
        # Before the files are read: a file that changes meanwhile has another version then.
        self._versions = versions_of(self._corpus)
        self._notes = Notes()
        for document in self._corpus:
            self._notes.add(self._corpus.source.id, document)
            yield document
        self._asked.skipped, self._asked.notes = self._corpus.skipped, self._corpus.notes

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read

    def files(self) -> Files:
        """What the latest reading found."""
        unsure = {place for place, reason in self._corpus.skipped if may_pass(reason)}
        versions = {file: "" if file in unsure else version for file, version in self._versions.items()}
        return Files(version_table(versions), self._notes.table())

    def note(self, folder: Path, sure: bool) -> None:
        """Add the files to those of an index, whose documents are being added, or were, if that is sure."""
        table = folder / self.memory["files"]
        old, files = Files.read(table), self.files() if sure else self.files().unsure()
        if old is None:  # then all files will be read
            return
        both = old.with_others(files)
        # Documents that a file has no more are deleted by the next sync.
        again = old.documents.filter(pl.col("file").is_in(files.versions["file"].implode()))
        stale = again.join(files.documents, on="id", how="anti")["file"]
        Files(forget_versions(both.versions, stale), both.documents).write(table)


def version_table(versions: Mapping[str, str]) -> pl.DataFrame:
    """The files of a corpus and their versions."""
    return pl.DataFrame(
        {"file": list(versions), "version": list(versions.values())},
        schema_overrides={"file": pl.String, "version": pl.String},
    )


def digests(fields: Mapping[str, Any]) -> tuple[int, int]:
    """64 bits that stand for the text of a document, and 64 for all else that is kept of it."""
    rest = record_of({name: value for name, value in fields.items() if name != TEXT}, "")
    return _digest(str(fields.get(TEXT, "")).encode("utf-8", "surrogatepass")), _digest(rest)


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def versions_of(corpus: FileCorpus) -> dict[str, str]:
    """What changes when each file does, by file; empty if that cannot be said."""
    now = time.time_ns()
    return {source.id: _version(source, now) for source in corpus.sources}


def _version(source: Source, now: int) -> str:
    try:
        if not source.local:
            return source.version
        about = os.stat(source.place)  # noqa: PTH116 - twice as fast, for many thousand files
    except (OSError, UnreadableError):
        return ""
    tick = _TICK if about.st_mtime_ns % 1_000_000_000 else _SLOW_TICK
    return "" if abs(now - about.st_mtime_ns) < tick else f"{about.st_size}-{about.st_mtime_ns}"


# The corpus


def memory_of(corpus: FileCorpus, folder: Path | str | None, files: str | None = None) -> dict[str, Any]:
    """What the manifest of the index in a folder remembers; `files` is the name of the table, if there is one."""
    return {
        "index": None if folder is None else os.path.abspath(folder),  # noqa: PTH100
        "roots": list(corpus.roots),
        "paths": [root if is_address(root) else os.path.abspath(root) for root in corpus.roots],  # noqa: PTH100
        "format": corpus.format,
        "options": asdict(corpus.options),
        "files": files or f"files-{secrets.token_hex(4)}.parquet",  # a name that no other index has had
    }


def remembered_options(memory: Mapping[str, Any]) -> ReadOptions:
    """How the files of a remembered corpus are read."""
    options: dict[str, Any] = memory["options"]
    given: dict[str, Any] = {k: tuple(value) if isinstance(value, list) else value for k, value in options.items()}
    return ReadOptions(**given)


def remembered_paths(memory: Mapping[str, Any], folder: Path) -> list[str]:
    """Where the files of an index are: if it was moved, and they with it, at the same places beside it."""
    before, now = memory["index"], os.path.abspath(folder)  # noqa: PTH100
    paths: list[str] = list(memory["paths"])
    for place, path in enumerate(paths):
        if before not in (None, now) and not is_address(path):
            beside = os.path.normpath(Path(now, os.path.relpath(path, before)))
            paths[place] = beside if Path(beside).exists() else path
    return paths


def open_remembered(memory: Mapping[str, Any], folder: Path) -> FileCorpus:
    """The corpus of the index in a folder as it is now."""
    corpus = open_corpus(remembered_paths(memory, folder), remembered_options(memory), memory["format"])
    assert isinstance(corpus, FileCorpus)
    return corpus


def note_files(corpus: Corpus, folder: Path | str | None) -> NotedCorpus | None:
    """A corpus that the index in a folder is to remember; None if it is not one of files."""
    return NotedCorpus(corpus, memory_of(corpus, folder)) if isinstance(corpus, FileCorpus) and corpus.roots else None


def note_below(corpus: Corpus, memory: dict[str, Any] | None, folder: Path) -> NotedCorpus | None:
    """A corpus whose files lie below the folder of an index, with the ids that they have there; None if they do not."""
    if memory is None or not isinstance(corpus, FileCorpus) or not corpus.roots:
        return None
    roots = [os.path.realpath(path) for path in remembered_paths(memory, folder) if not is_address(path)]
    places = [os.path.realpath(source.place) for source in corpus.sources if source.local]
    below = [place for place in places if any(place == root or place.startswith(root + os.sep) for root in roots)]
    if not below:
        return None
    whole, wanted = open_remembered(memory, folder), set(below)
    sources = [source for source in whole.sources if os.path.realpath(source.place) in wanted]
    if len(below) < len(corpus.sources) or len(sources) < len(wanted):
        raise CorpusError(
            f"some of {', '.join(corpus.roots)} is in {', '.join(memory['roots'])}, which the index was made of, "
            "and some is not, or is excluded there",
            hint="add them one after the other, or index with other --include and --exclude",
        )
    return NotedCorpus(FileCorpus(sources, whole.options, whole.format, ", ".join(corpus.roots)), memory, corpus)


def forget_versions(versions: pl.DataFrame, files: pl.Series | Collection[str]) -> pl.DataFrame:
    """Have some files read again next time."""
    some = pl.col("file").is_in(pl.Series(list(files), dtype=pl.String).implode())
    return versions.with_columns(version=pl.when(some).then(pl.lit("")).otherwise("version"))
