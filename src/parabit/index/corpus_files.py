"""What an index remembers of its corpus: where it is and how it is read, and each file with its
documents.

The manifest has the first and the name and checksum of the second, a file beside it: for each file
what changes when it does, and the ids and digests of its documents. That table is written before
documents change, without versions and digests, and again afterwards; so a kill leaves a table that
says which documents may be in the index, and the next sync reads those files again.

What an index says about where its files lie is only followed if it is where it was made: somebody
else's index must not make us read any file, and neither must one that was copied beside other
files.
"""

import gzip
import json
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, TypeAlias

from parabit.corpus import Corpus, Document, ReadOptions, open_corpus
from parabit.corpus.files import FileCorpus
from parabit.corpus.sources import is_address, may_pass
from parabit.errors import CorpusError, IndexDamagedError, UnreadableError
from parabit.index.documents import stored_fields
from parabit.index.store.damage import REMEDY, damaged
from parabit.index.store.manifest import (
    CorpusSettings,
    FileTable,
    Home,
    Manifest,
    is_at_home,
    remove_made,
)
from parabit.index.store.schema import TEXT, record_of
from parabit.index.store.store import BaseStore
from parabit.storage import whole_file
from parabit.untrusted import read_regular

# A file that changes twice within a tick of the file system's clock looks unchanged after the
# second time. What was written so recently is read again. The slowest clocks tick every two
# seconds.
_TICK = 2_000_000_000  # nanoseconds

TEXT_DIGEST = (
    16  # characters of a digest that stand for the text of a document, and as many for the rest
)


class File(NamedTuple):
    """A file of a corpus, as it was when it was read."""

    version: str  # what changes when the file does; empty if it is to be read again
    documents: dict[str, str]  # the digest of each by its id; empty if it is not known


Files: TypeAlias = dict[str, File]

# Bytes of a table, unpacked, and items in it, whatever the number of documents: while files are added
# to an index, the table names documents that it does not have yet. A document takes about 100 bytes
# and one item.
_LEAST_LIMIT = 128 << 20
_BYTES_PER_DOCUMENT = 4096
_MOST_ITEMS = 3_000_000

_NAME_THEM = "name the files and how to read them: parabit sync INDEX CORPUS"


def read_files(folder: Path, manifest: Manifest) -> Files:
    """The table of files of an index, empty if it has none; an IndexFolderError says that it is
    damaged.
    """
    table = manifest.files
    if table is None:
        return {}
    path = folder / table.name
    longest = _LEAST_LIMIT + manifest.documents * _BYTES_PER_DOCUMENT
    try:
        content = read_regular(path, longest)
        if sha256(content).hexdigest() != table.checksum:
            raise damaged(path)
        with gzip.open(BytesIO(content)) as unpacked:
            written = unpacked.read(longest + 1)
        items = written.count(b",")
        if len(written) > longest or items > _MOST_ITEMS + 16 * manifest.documents:
            raise damaged(path, "it has more than the documents can have")
        return _files_of(json.loads(written))
    except FileNotFoundError as problem:
        raise IndexDamagedError(f"{path} is missing", REMEDY) from problem
    except (OSError, EOFError, zlib.error, ValueError, TypeError, RecursionError) as problem:
        if isinstance(problem, IndexDamagedError):
            raise
        raise damaged(path, str(problem)) from problem


def _files_of(content: Any) -> Files:
    files: Files = {}
    for name, (version, documents) in content.items():
        strings = [name, version, *documents, *documents.values()]
        if not all(isinstance(string, str) for string in strings):
            raise ValueError("it holds other things than strings")
        files[name] = File(version, documents)
    return files


def write_files(folder: Path, files: Files) -> FileTable:
    """Write a table of files under a new name. It counts when the manifest names it."""
    content = gzip.compress(json.dumps(files).encode(), compresslevel=1)
    name = f"files-{token_hex(4)}.json.gz"
    with whole_file(folder / name, durable=True, locked=False) as partial:
        partial.write_bytes(content)
    return FileTable(name, sha256(content).hexdigest())


def replace_files(store: BaseStore, files: Files, **changes: Any) -> None:
    """Give an index another table of files and perhaps other settings, in one durable step."""
    old = store.manifest.files
    store.change_manifest(files=write_files(store.folder, files), **changes)
    if old is not None:
        remove_made(store.folder / old.name)


def unsure(*tables: Files) -> Files:
    """Files while their documents change: which documents there may be, and nothing about them."""
    files: Files = {}
    for table in tables:
        for name, file in table.items():
            files.setdefault(name, File("", {})).documents.update(dict.fromkeys(file.documents, ""))
    return files


def digest_of(stored: Mapping[str, Any]) -> str:
    """What stands for a document: a digest of its text, and one of all else that is kept of it."""
    text = str(stored.get(TEXT, "")).encode("utf-8", "surrogatepass")
    rest = record_of({name: value for name, value in stored.items() if name != TEXT}, "")
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
    """A corpus of files that takes note of them as it is read: `files` is what the latest reading
    found.
    """

    def __init__(self, corpus: FileCorpus, named: Corpus | None = None) -> None:
        self.corpus, self._named = corpus, named or corpus

    def __iter__(self) -> Iterator[Document]:
        # Before the files are read: a file that changes meanwhile has another version then.
        self.files = {name: File(version, {}) for name, version in versions_of(self.corpus).items()}
        for document in self.corpus:
            self.files[self.corpus.source.id].documents[document.id] = digest_of(
                stored_fields(document, text=True)
            )
            yield document
        self._named.skipped, self._named.notes = self.corpus.skipped, self.corpus.notes
        for place, reason in self.corpus.skipped:
            if place in self.files and may_pass(reason):
                self.files[place] = self.files[place]._replace(version="")

    @property
    def place(self) -> str:
        return self.corpus.place

    @property
    def share_read(self) -> float | None:
        return self.corpus.share_read

    def note(self, store: BaseStore, sure: bool) -> None:
        """Add the files to those of an index, whose documents are being added, or were, if that is
        sure.
        """
        files = read_files(store.folder, store.manifest)
        for name, file in (self.files if sure else unsure(self.files)).items():
            before = files.get(name, file).documents
            # Documents that a file has no more are deleted by the next sync.
            version = "" if before.keys() - file.documents.keys() else file.version
            files[name] = File(version, before | file.documents)
        replace_files(store, files)


def paths_beside(settings: CorpusSettings, home: Home | None, folder: Path) -> list[str]:
    """Where the files of an index seem to be: if both were moved, at the same places beside it."""
    paths = []
    for path in settings.paths:
        if home is not None and not is_address(path):
            relative = os.path.relpath(path, home.path)
            beside = os.path.normpath(Path(os.path.realpath(folder), relative))
            if Path(beside).exists():
                path = beside
        paths.append(path)
    return paths


def settings_of(corpus: FileCorpus) -> CorpusSettings:
    """What an index remembers of its corpus."""
    paths = [
        root if is_address(root) else os.path.abspath(root)  # noqa: PTH100 - links stay links
        for root in corpus.roots
    ]
    options = asdict(corpus.options)
    # They belong to who reads, and not to the files: an index from elsewhere must not raise them.
    del options["limits"]
    return CorpusSettings(tuple(paths), options)


def remembered_options(settings: CorpusSettings) -> ReadOptions:
    """How the files of an index are read; a CorpusError says that the settings are none."""
    known = {option.name for option in fields(ReadOptions)} - {"limits"}
    options: dict[str, Any] = {}
    for name, value in settings.options.items():
        if name not in known:
            raise CorpusError(
                f"the index was made with an unknown option {name!r}", hint=_NAME_THEM
            )
        options[name] = tuple(value) if isinstance(value, list) else value  # which JSON made
    for name in ("text_fields", "include", "exclude"):
        if not all(isinstance(item, str) for item in options.get(name, ())):
            raise CorpusError(f"the index was made with a wrong option {name!r}", hint=_NAME_THEM)
    for name in ("id_field", "label_field", "format", "encoding"):
        if not isinstance(options.get(name), str | None):
            raise CorpusError(f"the index was made with a wrong option {name!r}", hint=_NAME_THEM)
    return ReadOptions(**options)


def note_below(corpus: Corpus, manifest: Manifest, folder: Path) -> NotedCorpus | None:
    """A corpus whose files lie below the folder of an index, with the ids that they have there;
    None if they do not.

    What an index says that somebody else has made, or that was moved, is not followed: its files
    are those of others.
    """
    settings = manifest.corpus
    if settings is None or not isinstance(corpus, FileCorpus) or not corpus.roots:
        return None
    if not is_at_home(manifest, folder):
        return None
    paths = settings.paths
    options = remembered_options(settings)
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
