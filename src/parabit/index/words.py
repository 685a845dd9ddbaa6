"""The word index: BM25 over the texts of an index, by tantivy.

It lies in the folder `words` beside the codes and is derived from the store, which is the truth. It knows documents by
their serial numbers, which only ascend and outlive compaction, so two questions tell whether it is up to date: its
highest serial number, and how many documents it has. What is missing is added and what is too much is deleted when an
index is opened; if a file is damaged, everything is built again.

A word is a token of parabit's tokenizer, so `c++`, `486` and Chinese text are searchable, stemmed by tantivy. Every
file of tantivy ends with a checksum of its own. `meta.json`, which has none, is checked by the one in `parabit.json`.
"""

import json
import os
import shutil
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tantivy
from numpy.typing import NDArray

from parabit.errors import IndexFolderError, ParabitError
from parabit.storage import whole_file
from parabit.text import Tokenizer, english_stop_words

FORMAT = 1
LANGUAGES = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian", "pt": "portuguese",
    "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
# Bytes of new words that are collected before they are written as one segment. To search a million abstracts in 7
# segments takes a quarter longer than in one.
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
TEXT, SERIAL = "text", "serial"
_REMEMBERED = 1 << 17  # stems


def check_language(language: str | None) -> None:
    """Raise unless words of this language can be stemmed."""
    if language is not None and language not in LANGUAGES:
        hint = f"there are {', '.join(LANGUAGES)}, and none"
        raise ParabitError(f"no stemmer for the language {language!r}", hint)


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
        """Those of some tokens, and perhaps others, that are stop words; of some languages there is no list of them."""
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
            known.update(zip(new, self.analyzer.analyze(" ".join(new)), strict=True))
        return [known[token] for token in tokens]


class Words(Stems):
    """The words of an index: one process writes them, any number search them."""

    def __init__(self, folder: Path, language: str | None, fold_accents: bool) -> None:
        super().__init__(language, fold_accents)
        self.folder, self.fold_accents = folder, fold_accents
        # tantivy locks a file to open an index. If the folder is read-only, a temporary one has links to its files.
        may_write = all(os.access(path, os.W_OK) for path in (folder, *folder.glob("*.lock")))
        self._links = (
            None if may_write else TemporaryDirectory(prefix="parabit-", ignore_cleanup_errors=True)
        )
        self._link()
        builder = tantivy.SchemaBuilder()
        builder.add_text_field(TEXT, stored=False, tokenizer_name="words", index_option="position")
        builder.add_integer_field(SERIAL, stored=False, indexed=True, fast=True)
        self._index = tantivy.Index(
            builder.build(), path=str(folder) if self._links is None else self._links.name
        )
        self._index.register_tokenizer("words", self.analyzer)
        self._index.config_reader("manual")  # no thread that watches the folder
        self.schema = self._index.schema
        self.searcher = self._index.searcher()
        self._writer: Any = None

    @classmethod
    def create(
        cls, folder: Path, language: str | None = "en", fold_accents: bool = False
    ) -> "Words":
        """An empty word index, in the place of whatever is there."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        words = cls(folder, language, fold_accents)
        words._seal()
        return words

    @classmethod
    def open(cls, folder: Path) -> "Words":
        """Open what is there; an IndexFolderError says that it is damaged, and has to be created again."""
        about = _sealed(folder)
        try:
            files = list(_files(folder))
            if sum(path.stat().st_size for path in files) <= _SMALL:
                _check(files)
            with _readable(folder):
                return cls(folder, about["language"], about["fold_accents"])
        except OSError as problem:  # files that a writer removes meanwhile
            raise _damaged(folder) from problem

    def verify(self) -> None:
        """Read every byte and raise if one is not what was written."""
        _sealed(self.folder)
        _check(_files(self.folder))

    def reload(self) -> None:
        """See what was committed since; searches that have begun go on with what they saw."""
        self._link()
        self._index.reload()
        self.searcher = self._index.searcher()

    def _link(self) -> None:
        if self._links is None:
            return
        for path in self.folder.iterdir():
            link = Path(self._links.name, path.name)
            if path.suffix != ".lock" and not link.is_symlink():
                link.symlink_to(path.resolve())

    @property
    def documents(self) -> int:
        """How many documents were committed."""
        return int(self.searcher.num_docs)

    @property
    def last_serial(self) -> int:
        """The highest serial number that was committed; 0 if there is none."""
        with _readable(self.folder):
            hits = self.searcher.search(
                tantivy.Query.all_query(), 1, count=False, order_by_field=SERIAL
            ).hits
        return int(hits[0][0]) if hits else 0

    def add(self, serials: Iterable[int], texts: list[str]) -> None:
        """Add documents; they count once they are committed."""
        writer = self._writing()
        for serial, text in zip(serials, self.tokenizer.spaced(texts), strict=True):
            writer.add_document(tantivy.Document.from_dict({SERIAL: int(serial), TEXT: text}))

    def delete(self, serials: Iterable[int]) -> None:
        """Delete documents; those that are not there do not matter."""
        writer = self._writing()
        for serial in serials:
            writer.delete_documents_by_term(SERIAL, int(serial))

    def commit(self) -> None:
        """Have all that was added and deleted count, on the disk."""
        if self._writer is None:
            return
        writer, self._writer = self._writer, None
        try:
            writer.commit()
        except ValueError as problem:
            hint = "documents are stored and deleted as asked; their words catch up when the index is opened again"
            raise IndexFolderError(
                f"words cannot be written to {self.folder}: {problem}", hint
            ) from problem
        self._seal()  # for processes that open it meanwhile
        writer.wait_merging_threads()  # which change meta.json again
        self._seal()
        self.reload()

    @property
    def pending(self) -> bool:  # added or deleted, and not committed
        return self._writer is not None

    def _writing(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(_HEAP, 1)
            self._writer.garbage_collect_files()  # of a commit that was killed, whose names are given again
        return self._writer

    def _seal(self) -> None:
        about = {"format": FORMAT, "language": self.language, "fold_accents": self.fold_accents}
        about["checksum"] = _checksum(self.folder, about)
        with whole_file(self.folder / "parabit.json") as partial:
            partial.write_text(json.dumps(about) + "\n")
        mode = (self.folder / "parabit.json").stat().st_mode
        for name in ("meta.json", ".managed.json"):  # which tantivy lets nobody else read
            (self.folder / name).chmod(mode)

    def search(
        self, query: tantivy.Query, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The serial numbers of the best documents for a query, at most so many, and their BM25."""
        with _readable(self.folder):
            hits = self.searcher.search(query, count, count=False).hits
            serials = self.searcher.fast_field_values(SERIAL, [address for _, address in hits])
        return np.array(serials, dtype=np.int64), np.array(
            [score for score, _ in hits], dtype=np.float32
        )


def _sealed(folder: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        about: dict[str, Any] = json.loads((folder / "parabit.json").read_text())
        if about.pop("checksum") == _checksum(folder, about) and about["format"] == FORMAT:
            return about
    raise _damaged(folder)


def _checksum(folder: Path, about: dict[str, Any]) -> int:
    """Of `meta.json`, and of everything else in `parabit.json`."""
    return zlib.crc32((folder / "meta.json").read_bytes(), zlib.crc32(json.dumps(about).encode()))


def _files(folder: Path) -> Iterable[Path]:
    """The files that count; others may lie in the folder."""
    for segment in json.loads((folder / "meta.json").read_text())["segments"]:
        deleted = [f"{segment['deletes']['opstamp']}.del"] if segment["deletes"] else []
        yield from (
            folder / f"{segment['segment_id'].replace('-', '')}.{part}"
            for part in (*_PARTS, *deleted)
        )


def _check(files: Iterable[Path]) -> None:
    for path in files:
        with suppress(FileNotFoundError, struct.error, ValueError, KeyError, TypeError):
            content = path.read_bytes()
            length, magic = _FOOTER.unpack(content[-8:])
            footer = json.loads(content[-8 - length : -8])
            if magic == _MAGIC and zlib.crc32(memoryview(content)[: -8 - length]) == footer["crc"]:
                continue
        raise _damaged(path)


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Explain how tantivy ends if a file is damaged: large ones are not checked at opening."""
    try:
        yield
    except BaseException as problem:
        if (
            isinstance(problem, ValueError) or type(problem).__name__ == "PanicException"
        ):  # Rust's, not an Exception
            raise _damaged(folder) from problem
        raise


def _damaged(path: Path) -> IndexFolderError:
    return IndexFolderError(
        f"{path} is damaged", hint="remove the whole folder words-…, which is then built again"
    )
