"""What an index remembers of its corpus: where it is and how it is read, and each file with its documents.

The manifest has the first, a file beside it the second: for each file what changes when it does, and the ids and
digests of its documents. That table is derived. It is written before documents change, without versions and digests,
and again afterwards; so a kill leaves a table that says which documents may be in the index, and the next sync reads
those files again. If it is missing or damaged, sync reads all files, and documents that are in none of them stay.
"""

import gzip
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, TypeAlias

from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import UnreadableError, is_address, may_pass
from parabit.errors import CorpusError
from parabit.index.documents import stored_fields
from parabit.index.store.schema import TEXT, record_of
from parabit.storage import whole_file

# A file that changes twice within a tick of the file system's clock looks unchanged after the second time. What was
# written so recently is read again. The slowest clocks tick every two seconds.
_TICK = 2_000_000_000  # nanoseconds

TEXT_DIGEST = (
    16  # characters of a digest that stand for the text of a document, and as many for the rest
)


class File(NamedTuple):
    """A file of a corpus, as it was when it was read."""

    version: str  # what changes when the file does; empty if it is to be read again
    documents: dict[str, str]  # the digest of each by its id; empty if it is not known


Files: TypeAlias = dict[str, File]


def read_files(path: Path) -> Files:
    """What `write_files` wrote; nothing if it is missing or damaged, so that all files are read."""
    with suppress(OSError, EOFError, zlib.error, ValueError):
        return {
            name: File(*file)
            for name, file in json.loads(gzip.decompress(path.read_bytes())).items()
        }
    return {}


def write_files(path: Path, files: Files) -> None:
    """Write a table of files, complete or not at all."""
    with whole_file(path, durable=True) as partial:
        partial.write_bytes(gzip.compress(json.dumps(files).encode(), compresslevel=1))


def unsure(*tables: Files) -> Files:
    """Files while their documents change: which documents there may be, and nothing about them."""
    files: Files = {}
    for table in tables:
        for name, file in table.items():
            files.setdefault(name, File("", {})).documents.update(dict.fromkeys(file.documents, ""))
    return files


def digest_of(fields: Mapping[str, Any]) -> str:
    """What stands for a document: a digest of its text, and one of all else that is kept of it."""
    text = str(fields.get(TEXT, "")).encode("utf-8", "surrogatepass")
    rest = record_of({name: value for name, value in fields.items() if name != TEXT}, "")
    return "".join(blake2b(part, digest_size=TEXT_DIGEST // 2).hexdigest() for part in (text, rest))


def versions_of(corpus: FileCorpus) -> dict[str, str]:
    """What changes when each file does, by file; empty if that cannot be said."""
    now, versions = time.time_ns(), dict[str, str]()
    for source in corpus.sources:
        versions[source.id] = ""
        with suppress(OSError, UnreadableError):
            version = source.version
            if not source.local or abs(now - int(version.rpartition("-")[2])) >= _TICK:
                versions[source.id] = version
    return versions


class NotedCorpus(Corpus):
    """A corpus of files that takes note of them as it is read: `files` is what the latest reading found."""

    def __init__(self, corpus: FileCorpus, named: Corpus | None = None) -> None:
        self._corpus, self._named = corpus, named or corpus

    def __iter__(self) -> Iterator[Document]:
        # Before the files are read: a file that changes meanwhile has another version then.
        self.files = {
            name: File(version, {}) for name, version in versions_of(self._corpus).items()
        }
        for document in self._corpus:
            self.files[self._corpus.source.id].documents[document.id] = digest_of(
                stored_fields(document, text=True)
            )
            yield document
        self._named.skipped, self._named.notes = self._corpus.skipped, self._corpus.notes
        for place, reason in self._corpus.skipped:
            if place in self.files and may_pass(reason):
                self.files[place] = self.files[place]._replace(version="")

    @property
    def share_read(self) -> float | None:
        return self._corpus.share_read

    def note(self, table: Path, sure: bool) -> None:
        """Add the files to those of an index, whose documents are being added, or were, if that is sure."""
        old = read_files(table)
        for name, file in (self.files if sure else unsure(self.files)).items():
            before = old.get(name, file).documents
            # Documents that a file has no more are deleted by the next sync.
            version = "" if before.keys() - file.documents.keys() else file.version
            old[name] = File(version, before | file.documents)
        write_files(table, old)


def memory_of(
    corpus: FileCorpus, folder: Path | str | None, files: str | None = None
) -> dict[str, Any]:
    """What the manifest of the index in a folder remembers; `files` is the name of the table, if there is one."""
    return {
        "index": None if folder is None else os.path.abspath(folder),  # noqa: PTH100
        "paths": [root if is_address(root) else os.path.abspath(root) for root in corpus.roots],  # noqa: PTH100
        "options": asdict(corpus.options),
        "files": files or f"files-{token_hex(4)}.json.gz",  # a name that no other index has had
    }


def remembered(memory: Mapping[str, Any], folder: Path) -> tuple[list[str], ReadOptions]:
    """Where the files of an index are and how they are read, as `open_corpus` takes it.

    If the index was moved, and the files with it, they are at the same places beside it.
    """
    before, now = memory["index"], os.path.abspath(folder)  # noqa: PTH100
    paths: list[str] = list(memory["paths"])
    for place, path in enumerate(paths):
        if before not in (None, now) and not is_address(path):
            beside = os.path.normpath(Path(now, os.path.relpath(path, before)))
            paths[place] = beside if Path(beside).exists() else path
    options: dict[str, Any] = dict(memory["options"])
    options |= {
        name: tuple(value) for name, value in options.items() if isinstance(value, list)
    }  # which JSON made
    return paths, ReadOptions(**options)


def note_below(corpus: Corpus, memory: Mapping[str, Any], folder: Path) -> NotedCorpus | None:
    """A corpus whose files lie below the folder of an index, with the ids that they have there; None if they do not."""
    if not memory or not isinstance(corpus, FileCorpus) or not corpus.roots:
        return None
    paths, options = remembered(memory, folder)
    roots = [os.path.realpath(path) for path in paths if not is_address(path)]
    places = [source.place for source in corpus.sources if source.local]
    below = [
        place
        for place in places
        if any(place == root or place.startswith(root + os.sep) for root in roots)
    ]
    if not below:
        return None
    whole, wanted = open_corpus(paths, options), set(below)
    assert isinstance(whole, FileCorpus)
    sources = [source for source in whole.sources if source.place in wanted]
    if len(below) < len(corpus.sources) or len(sources) < len(wanted):
        raise CorpusError(
            f"some of {', '.join(corpus.roots)} is in {', '.join(paths)}, which the index was made of, "
            "and some is not, or is excluded there",
            hint="add them one after the other, or index with other --include and --exclude",
        )
    return NotedCorpus(FileCorpus(sources, options, ", ".join(corpus.roots)), corpus)
