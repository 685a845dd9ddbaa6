"""The word index: BM25 over the texts of an index, by tantivy.

It lies in a folder `words-…` beside the codes and is derived from the store, which is the truth. It
knows documents by their serial numbers, which only ascend and outlive compaction, so two questions
tell whether it is up to date: its highest serial number, and how many documents it has. What is
missing is added and what is too much is deleted when an index is opened. If a file is damaged,
everything is built again, in a new folder: the old one is removed when the manifest names the new
one. A word index knows which index it belongs to, so that it is not taken for that of another.

A word is a token of parabit's tokenizer, so `c++`, `486` and Chinese text are searchable, stemmed
by tantivy. Every file of tantivy ends with a checksum of its own. `meta.json`, which has none, is
kept in `parabit.json`, too, which has.
"""

import json
import os
import re
import shutil
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
import tantivy
from numpy.typing import NDArray

from parabit.errors import IndexDamagedError, IndexFolderError, ParabitError
from parabit.index.store.damage import need_folder, read_twice
from parabit.storage import is_regular, whole_file
from parabit.text import Tokenizer, english_stop_words
from parabit.text.languages import LANGUAGES
from parabit.untrusted import (
    FLAG,
    Rule,
    UnexpectedError,
    check_object,
    one_of,
    optional,
    read_object,
    whole,
)

FORMAT = 1
ABOUT = "parabit.json"  # what we say about a word index
META, MANAGED = "meta.json", ".managed.json"  # what tantivy says, and which files it has made
# Bytes of new words that are collected before they are written as one segment. To search a million
# abstracts in 7 segments takes a quarter longer than in one.
_HEAP = 512 << 20
_PARTS = (
    "fast",
    "fieldnorm",
    "idx",
    "pos",
    "store",
    "term",
)  # the files of a segment, beside that of its deletions
_SMALL = 64 << 20  # bytes that are all checked at opening
_FOOTER = struct.Struct("<II")  # the length of a file's footer, and a magic number
_MAGIC = 1337
_LONGEST_FOOTER = 1 << 16  # bytes; they have about a hundred
_READ_AT_A_TIME = 1 << 20  # bytes
_LONGEST_ABOUT = 4 << 20  # bytes of `parabit.json`; a segment takes about 200
_ABOUT_RULES = {
    "format": whole(FORMAT, FORMAT),
    "lineage": Rule(lambda value: isinstance(value, str), "a string"),
    "language": optional(one_of(LANGUAGES)),
    "fold_accents": FLAG,
    "meta": Rule(lambda value: isinstance(value, str), "a string"),
}
TEXT, SERIAL = "text", "serial"
_REMEMBERED = 1 << 17  # stems
# Of a killed writer.
_LEFTOVER = re.compile(r"\.tmp\w+|\.parabit\.json\.[0-9a-f]{8}\.(partial|lock)")
# Letters of a token whose stem is remembered, so that all of them take about 30 MB at most.
_LONGEST_REMEMBERED = 40


class Stems:
    """Cuts texts into words and stems them."""

    def __init__(self, language: str | None, fold_accents: bool) -> None:
        self.tokenizer, self.language = Tokenizer(fold_accents=fold_accents), language
        analyzer = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        if language is not None:
            analyzer = analyzer.filter(tantivy.Filter.stemmer(LANGUAGES[language]))
        self.analyzer = analyzer.build()
        self._stems: dict[str, str] = {}  # of tokens, which come again and again

    def stop_words(self, tokens: Sequence[str]) -> Collection[str]:
        """Those of some tokens, and perhaps others, that are stop words; of some languages there is
        no list of them.
        """
        if self.language in (None, "en"):
            return english_stop_words()
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        try:
            others = (
                builder.filter(tantivy.Filter.stopword(LANGUAGES[self.language]))
                .build()
                .analyze(" ".join(tokens))
            )
        except ValueError:
            return ()
        return {*tokens}.difference(others)

    def stems(self, text: str) -> list[tuple[str, str]]:
        """The words of a text in order, as they are written and as they are searched for."""
        tokens = self.tokenizer.words(text)
        return list(zip(tokens, self.stemmed(tokens), strict=True))

    def stemmed(self, tokens: Sequence[str]) -> list[str]:
        """Each token as it is searched for."""
        known = self._stems
        if new := [token for token in dict.fromkeys(tokens) if token not in known]:
            if len(known) > _REMEMBERED:
                known = self._stems = {}  # another thread may still read the old ones
                new = list(dict.fromkeys(tokens))
            stems = dict(zip(new, self.analyzer.analyze(" ".join(new)), strict=True))
            known.update(
                (token, stem) for token, stem in stems.items() if len(token) <= _LONGEST_REMEMBERED
            )
            return [known[token] if token in known else stems[token] for token in tokens]
        return [known[token] for token in tokens]


class WordReader:
    """The words of an index as they were when they were last committed.

    It does not change: a search that has begun goes on with what it saw, whatever another thread
    commits.
    """

    def __init__(self, folder: Path, searcher: tantivy.Searcher) -> None:
        self._folder, self._searcher = folder, searcher

    @property
    def documents(self) -> int:
        """How many documents were committed."""
        return int(self._searcher.num_docs)

    @cached_property
    def last_serial(self) -> int:
        """The highest serial number that was committed; 0 if there is none."""
        with _readable(self._folder):
            everything = tantivy.Query.all_query()
            result = self._searcher.search(everything, 1, count=False, order_by_field=SERIAL)
        return int(result.hits[0][0]) if result.hits else 0

    @cached_property
    def serials(self) -> NDArray[np.int64]:
        """The serial numbers of all documents, ascending."""
        serials, _ = self.search(tantivy.Query.all_query(), max(1, self.documents))
        return np.sort(serials)

    def search(
        self, query: tantivy.Query, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The serial numbers of the best documents for a query, at most so many, and their BM25."""
        with _readable(self._folder):
            hits = self._searcher.search(query, count, count=False).hits
            addresses = [address for _, address in hits]
            serials = self._searcher.fast_field_values(SERIAL, addresses)
        scores = [score for score, _ in hits]
        return np.array(serials, dtype=np.int64), np.array(scores, dtype=np.float32)

    def frequencies(self, stems: Iterable[str]) -> dict[str, int]:
        """How many documents have each word."""
        with _readable(self._folder):
            return {stem: int(self._searcher.doc_freq(TEXT, stem)) for stem in stems}

    def starting_with(self, prefix: str) -> list[tuple[str, int]]:
        """The words that begin so, each with the number of documents that have it."""
        with _readable(self._folder):
            return list(self._searcher.terms_with_prefix(TEXT, prefix))


@dataclass(frozen=True)
class Seal:
    """What a word index says about itself in `parabit.json`, each time that words were committed."""

    lineage: str  # of the index that it belongs to
    language: str | None
    fold_accents: bool
    meta: str  # the content of tantivy's `meta.json`, which has no checksum of its own


class Words(Stems):
    """The words of an index: one process writes them, any number search them.

    tantivy locks a file to open an index, and lets nobody else read what it has just written until
    it is sealed. So who may not write opens a temporary folder with links to the files and with
    `meta.json` as it was sealed last.
    """

    def __init__(
        self,
        folder: Path,
        language: str | None,
        fold_accents: bool,
        lineage: str,
        sealed: Seal | None = None,
    ) -> None:
        """Open a folder itself or, as it was `sealed`, by links to its files."""
        super().__init__(language, fold_accents)
        self.folder, self.fold_accents = folder, fold_accents
        self.lineage = lineage
        self._links: Path | None = None
        if sealed is not None:
            self._links = Path(mkdtemp(prefix="parabit-"))
            finalize(self, shutil.rmtree, self._links, ignore_errors=True)
            _link(folder, self._links, sealed)
        opened = self._links or folder
        builder = tantivy.SchemaBuilder()
        builder.add_text_field(TEXT, stored=False, tokenizer_name="words", index_option="position")
        builder.add_integer_field(SERIAL, stored=False, indexed=True, fast=True)
        self._index = tantivy.Index(builder.build(), path=str(opened))
        self._index.register_tokenizer("words", self.analyzer)
        self._index.config_reader("manual")  # no thread that watches the folder
        self.schema = self._index.schema
        self.reader = WordReader(folder, self._index.searcher())
        self._reloading = Lock()
        self._writer: Any = None

    @classmethod
    def create(
        cls,
        folder: Path,
        language: str | None = "en",
        fold_accents: bool = False,
        lineage: str = "",
    ) -> "Words":
        """An empty word index in a new folder."""
        folder.mkdir()
        with _writable(folder):
            words = cls(folder, language, fold_accents, lineage)
            words._seal()
        return words

    @classmethod
    def open(cls, folder: Path, by_links: bool = False) -> "Words":
        """Open what is there; an IndexDamagedError says that it has to be created again.

        What is opened `by_links` is what was sealed last, whatever a writer does at this moment.
        """
        return read_twice(lambda: cls._open(folder, by_links))

    @classmethod
    def _open(cls, folder: Path, by_links: bool) -> "Words":
        try:
            _need_plain_files(folder)
            seal = _read_seal(folder)
            by_links = by_links or not _may_write(folder)
            if not by_links:
                _need_sealed(folder, seal)
            files = list(_files(folder, seal))
            if sum(path.stat().st_size for path in files) <= _SMALL:
                _check(files)
            with _readable(folder):
                return cls(
                    folder,
                    seal.language,
                    seal.fold_accents,
                    seal.lineage,
                    seal if by_links else None,
                )
        except OSError as problem:  # files that a writer removes meanwhile
            raise _damaged(folder) from problem

    def remove_leftovers(self) -> None:
        """Remove what killed writers have left; for the one who may write."""
        for path in self.folder.iterdir():
            if _LEFTOVER.fullmatch(path.name):
                path.unlink()

    def verify(self) -> None:
        """Read every byte and raise if one is not what was written."""
        read_twice(self._verify)

    def _verify(self) -> None:
        try:
            _need_plain_files(self.folder)
            seal = _read_seal(self.folder)
            if self._links is None:
                _need_sealed(self.folder, seal)
            _check(_files(self.folder, seal))
        except OSError as problem:
            raise _damaged(self.folder) from problem

    def reload(self) -> None:
        """See what was committed since; searches that have begun go on with what they saw."""
        with self._reloading, _readable(self.folder):
            if self._links is not None:
                _link(self.folder, self._links, _read_seal(self.folder))
            self._index.reload()
            self.reader = WordReader(self.folder, self._index.searcher())

    def add(self, serials: Iterable[int], texts: list[str]) -> None:
        """Add documents; they count once they are committed."""
        with _writable(self.folder):
            writer = self._writing()
            for serial, text in zip(serials, self.tokenizer.spaced(texts), strict=True):
                document = tantivy.Document.from_dict({SERIAL: int(serial), TEXT: text})
                writer.add_document(document)

    def delete(self, serials: Iterable[int]) -> None:
        """Delete documents; those that are not there do not matter."""
        with _writable(self.folder):
            writer = self._writing()
            for serial in serials:
                writer.delete_documents_by_term(SERIAL, int(serial))

    def commit(self) -> None:
        """Have all that was added and deleted count, on the disk."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            with _writable(self.folder):
                writer.commit()
                self._seal()  # for processes that open it meanwhile
                writer.wait_merging_threads()  # which change meta.json again
                self._seal()
        finally:
            del writer  # whoever keeps an error must not keep tantivy's lock with it
        self.reload()

    @property
    def pending(self) -> bool:
        """Whether something was added or deleted that is not committed yet."""
        return self._writer is not None

    def _writing(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP, 1)
            # Of a commit that was killed, whose names are given again.
            self._writer.garbage_collect_files()
        return self._writer

    def _seal(self) -> None:
        meta = (self.folder / META).read_text()
        about = {
            "format": FORMAT,
            "lineage": self.lineage,
            "language": self.language,
            "fold_accents": self.fold_accents,
            "meta": meta,
        }
        with whole_file(self.folder / ABOUT, locked=False) as partial:
            partial.write_text(json.dumps({**about, "checksum": _checksum(about)}) + "\n")
        mode = (self.folder / ABOUT).stat().st_mode
        for name in (META, MANAGED):  # which tantivy lets nobody else read
            (self.folder / name).chmod(mode)


def _may_write(folder: Path) -> bool:
    return all(os.access(path, os.W_OK) for path in (folder, *folder.glob("*.lock")))


def _link(folder: Path, links: Path, seal: Seal) -> None:
    """Have a folder hold links to the files of a word index, and `meta.json` as it was sealed."""
    for path in folder.iterdir():
        link = links / path.name
        is_ours = path.suffix != ".lock" and path.name not in (META, MANAGED)
        if is_ours and not link.is_symlink():
            link.symlink_to(path.absolute())
    with whole_file(links / META, locked=False) as partial:
        partial.write_text(seal.meta)


def _need_plain_files(folder: Path) -> None:
    """Raise if there is anything but files in the folder: a link would lead tantivy elsewhere."""
    need_folder(folder)
    for path in folder.iterdir():
        if not is_regular(path) and os.path.lexists(path):
            raise _damaged(path)


def _read_seal(folder: Path) -> Seal:
    """What the word index in a folder says about itself."""
    try:
        about = read_object(folder / ABOUT, _LONGEST_ABOUT)
        if about.pop("checksum", None) != _checksum(about):
            raise _damaged(folder / ABOUT)
        check_object(about, _ABOUT_RULES)
    except UnexpectedError as problem:
        raise _damaged(folder / ABOUT) from problem
    del about["format"]
    return Seal(**about)


def _need_sealed(folder: Path, seal: Seal) -> None:
    """Raise if `meta.json` is not what was sealed."""
    if (folder / META).read_bytes() != seal.meta.encode():
        raise _damaged(folder / META)


def _checksum(about: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(about, sort_keys=True).encode())


def _files(folder: Path, seal: Seal) -> Iterator[Path]:
    """The files that count; others may lie in the folder."""
    try:
        for segment in json.loads(seal.meta)["segments"]:
            name = segment["segment_id"].replace("-", "")
            if not re.fullmatch("[0-9a-f]{32}", name):
                raise _damaged(folder / META)
            endings = [*_PARTS]
            if segment["deletes"]:
                endings.append(f"{int(segment['deletes']['opstamp'])}.del")
            for ending in endings:
                yield folder / f"{name}.{ending}"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        if isinstance(problem, IndexDamagedError):
            raise
        raise _damaged(folder / META) from problem


def _check(files: Iterable[Path]) -> None:
    for path in files:
        with suppress(OSError, struct.error, ValueError, KeyError, TypeError, RecursionError):
            if _has_its_checksum(path):
                continue
        raise _damaged(path)


def _has_its_checksum(path: Path) -> bool:
    """Whether a file of tantivy has the checksum that its footer says."""
    with path.open("rb") as file:
        file.seek(-8, os.SEEK_END)
        length, magic = _FOOTER.unpack(file.read())
        if magic != _MAGIC or length > _LONGEST_FOOTER:
            return False
        file.seek(-8 - length, os.SEEK_END)
        content_length = file.tell()
        footer = json.loads(file.read(length))
        file.seek(0)
        checksum = 0
        while content_length:
            piece = file.read(min(_READ_AT_A_TIME, content_length))
            checksum = zlib.crc32(piece, checksum)
            content_length -= len(piece)
    return bool(checksum == footer["crc"])


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Explain how tantivy ends if a file is damaged: large ones are not checked at opening."""
    try:
        yield
    except BaseException as problem:
        if isinstance(problem, ParabitError):
            raise
        # Rust's panic is not an Exception.
        if isinstance(problem, ValueError) or type(problem).__name__ == "PanicException":
            raise _damaged(folder) from problem
        raise


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Explain how tantivy ends if it cannot write, as on a full disk."""
    try:
        yield
    except BaseException as problem:
        if isinstance(problem, ParabitError):
            raise
        is_panic = type(problem).__name__ == "PanicException"
        if is_panic or isinstance(problem, ValueError | OSError):
            hint = "documents are stored and deleted as asked; their words catch up later"
            reason = f"words cannot be written to {folder}: {problem}"
            raise IndexFolderError(reason, hint) from problem
        raise


def _damaged(path: Path) -> IndexDamagedError:
    hint = "remove the whole folder words-…, which is then built again"
    return IndexDamagedError(f"{path} is damaged", hint)
