"""Corpora from files: a file, a folder of shards, a folder of text files, standard input."""

import os
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from parabit.corpus.document import Document
from parabit.corpus.pdf import need_pdf
from parabit.corpus.readers import (
    READABLE,
    READERS,
    WHOLE_FILES,
    Reader,
    ReadOptions,
    Record,
    is_binary,
    read_file,
)
from parabit.corpus.remote import is_address, remote_sources
from parabit.corpus.sources import PipeSource, Source, SourceCorpus, StandardInput, first_bytes
from parabit.errors import CorpusError

_ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "lines",
    ".text": "lines",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
_RECORD_FORMATS = {"jsonl", "csv", "tsv", "parquet"}
_COMPRESSED = {".gz", ".zst", ".zstd", ".bz2"}
FORMATS = (*READERS, "folder")


class FileCorpus(SourceCorpus):
    """The records of one or more files in one format, as documents."""

    def __init__(self, sources: Sequence[Source], reader: Reader, options: ReadOptions) -> None:
        super().__init__(sources)
        self._reader = reader
        self._options = options

    def shards(self) -> list["Shard"]:
        """Each file as a corpus of its own."""
        return [Shard(source, self._reader, self._options) for source in self.sources]

    def _documents(self) -> Iterator[Document]:
        yielded = False
        for document in self._read(0):
            yielded = True
            yield document
        if not yielded:
            raise CorpusError(f"no documents in {self._name()}", hint=self._why_empty())

    def _read(self, position: int) -> Iterator[Document]:
        """The documents, of which the first has this position in the corpus."""
        for source in self._each_source():
            for record in self._reader(source, self._options):
                document = record if isinstance(record, CorpusError) else self._document(source, record, position)
                if isinstance(document, Document):
                    yield document
                    position += 1
                elif self._options.skip_bad:
                    self.skipped += 1
                else:
                    raise document

    def _document(self, source: Source, record: Record, position: int) -> Document | CorpusError:
        try:
            return document_from(record.values, self._options, position)
        except CorpusError as problem:
            return CorpusError(f"{record.where}: {problem.problem}", hint=problem.hint)

    def _name(self) -> str:
        return self.sources[0].name if len(self.sources) == 1 else f"the {len(self.sources)} files"

    def _why_empty(self) -> str:
        if self.skipped:
            return f"all {self.skipped} records were bad; without --skip-bad the first is shown"
        return "the file is empty" if sum(source.size for source in self.sources) == 0 else "it holds no records"


class Shard(FileCorpus):
    """One file of a corpus: it may be empty, and its first document has a position in the whole corpus.

    `unnamed` are the documents, from 0, that the latest reading has found to have no other id than their position.
    """

    def __init__(self, source: Source, reader: Reader, options: ReadOptions, first: int = 0) -> None:
        super().__init__([source], reader, options)
        self.first = first
        self.unnamed: list[int] = []

    @property
    def source(self) -> Source:
        """The file."""
        return self.sources[0]

    def at(self, first: int) -> "Shard":
        """The same, where the first document has another position."""
        return Shard(self.source, self._reader, self._options, first)

    @property
    def reading(self) -> str:
        """How it is read."""
        return f"{self._reader.__name__} {self._options}"

    def has_ids(self) -> bool:
        """Whether its first document has an id of its own; of an empty file nobody can say no."""
        records = (record for record in self._reader(self.source, self._options) if isinstance(record, Record))
        return all(self._is_named(record) for record in islice(records, 1))

    def _is_named(self, record: Record) -> bool:
        return self._options.id_field is not None or "id" in record.values

    def _document(self, source: Source, record: Record, position: int) -> Document | CorpusError:
        document = super()._document(source, record, position)
        if isinstance(document, Document) and not self._is_named(record):
            self.unnamed.append(position - self.first)
        return document

    def _documents(self) -> Iterator[Document]:
        self.unnamed = []
        return self._read(self.first)


class WholeFileCorpus(FileCorpus):
    """Files that are a document each; the id of a single one is its name."""

    def __init__(self, sources: Sequence[Source], reader: Reader, options: ReadOptions) -> None:
        super().__init__(sources, reader, options)
        if options.names_fields:
            raise CorpusError(
                f"files that are a document each, as in {self._name()}, have no fields",
                hint="leave --text-field, --id-field and --label-field out: the id is the path, the label its folder",
            )

    def _documents(self) -> Iterator[Document]:
        # Not when it is first needed: where bad files are skipped it would seem that all of these are bad.
        if self._reader is READERS["pdf"] or any(_format_of(source.path) == "pdf" for source in self.sources):
            need_pdf()
        return super()._documents()

    def _document(self, source: Source, record: Record, position: int) -> Document | CorpusError:
        name = str(position) if isinstance(source, PipeSource) else self._id_of(Path(source.path.name))
        return Document(id=name, text=record.values[self._options.text_fields[0]])

    @staticmethod
    def _id_of(path: Path) -> str:
        """A path as an id; of a name that is not UTF-8 the bytes are written out."""
        return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


class FolderCorpus(WholeFileCorpus):
    """A folder of files, each a document: its id is its path below the folder, its label the sub-folder."""

    def __init__(self, folder: Path, paths: Sequence[Path], options: ReadOptions) -> None:
        self._folder = folder
        super().__init__(_sources(paths), _read_by_ending, options)

    def _documents(self) -> Iterator[Document]:
        try:
            yield from super()._documents()
        except CorpusError:
            # One file among many is told by its name, a folder of nothing else as such.
            if all(_holds_no_text(source, self._options.encoding) for source in self.sources):
                count = f"{len(self.sources):,} file{'s' if len(self.sources) > 1 else ''}, all binary"
                raise CorpusError(f"no text in {self._folder}: {count}", hint=f"parabit reads {READABLE}") from None
            raise

    def _document(self, source: Source, record: Record, position: int) -> Document | CorpusError:
        below = source.path.relative_to(self._folder)
        labels = () if below.parent == Path() else (below.parent.as_posix(),)
        return Document(id=self._id_of(below), text=record.values[self._options.text_fields[0]], labels=labels)

    def _name(self) -> str:
        return str(self._folder)

    def _why_empty(self) -> str:
        return f"none of its {self.skipped:,} files can be read: they are binary, damaged, locked or otherwise encoded"


def open_files(path: str | Path, options: ReadOptions, format: str | None = None) -> FileCorpus:
    """Open a file, a folder, or `-` for standard input; the format follows from the name unless it is given."""
    if format is not None and format not in FORMATS:
        raise CorpusError(f"no such format: {format}", hint=f"the formats are {', '.join(FORMATS)}")
    if is_address(path):
        return _open_remote(str(path), options, format)
    path = Path(path)
    if path.is_dir():
        return _open_folder(path, options, format)
    if format == "folder":
        raise CorpusError(f"{path} is not a folder", hint="leave --format out, or name its folder")
    if str(path) in ("-", "/dev/stdin"):
        return _open_pipe(StandardInput(), options, format)
    if not path.exists():
        raise CorpusError(f"no such file or folder: {path}", hint=_similar(path))
    if not path.is_file():
        return _open_pipe(PipeSource(path), options, format)
    known = format or _format_of(path)
    if known is None:
        raise CorpusError(
            f"the ending of {path} tells no format",
            hint=f"name one with --format: {', '.join(READERS)}; or give the folder to read each file as a document",
        )
    return _corpus([Source(path)], known, options)


def _open_pipe(source: PipeSource, options: ReadOptions, format: str | None) -> FileCorpus:
    return _corpus([source], format or _format_of(source.path) or _sniffed(source, options.encoding), options)


def _corpus(sources: Sequence[Source], format: str, options: ReadOptions) -> FileCorpus:
    kind = WholeFileCorpus if format in WHOLE_FILES else FileCorpus
    return kind(sources, READERS[format], options)


def document_from(values: dict[str, Any], options: ReadOptions, position: int) -> Document:
    """Make a document of a record's fields, as the options name them.

    Example:
        >>> document_from({"text": "Hubble repaired", "label": "space", "year": 1993}, ReadOptions(), position=7)
        Document(id='7', text='Hubble repaired', labels=('space',), fields={'year': 1993})
    """
    text = "\n\n".join(_text_of(values, field) for field in options.text_fields)
    id_field = options.id_field or ("id" if "id" in values else None)
    label_field = options.label_field or next((name for name in ("labels", "label") if name in values), None)
    used = {*options.text_fields, id_field, label_field}
    return Document(
        id=str(position) if id_field is None else _id_of(values, id_field),
        text=text,
        labels=() if label_field is None else _labels_of(values, label_field),
        fields={name: value for name, value in values.items() if name not in used},
    )


def _value(values: dict[str, Any], field: str, option: str) -> Any:
    if field not in values:
        raise CorpusError(
            f"no field {field!r}; there are: {', '.join(map(str, values)) or 'none'}", hint=f"name one with {option}"
        )
    return values[field]


def _text_of(values: dict[str, Any], field: str) -> str:
    text = _value(values, field, "--text-field")
    if not isinstance(text, str):
        raise CorpusError(f"the field {field!r} holds {_kind(text)}, not text", hint="name another with --text-field")
    return text


def _id_of(values: dict[str, Any], field: str) -> str:
    value = _value(values, field, "--id-field")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise CorpusError(f"the id in {field!r} is {_kind(value)}", hint="an id is a string or a whole number")
    return str(value)


def _labels_of(values: dict[str, Any], field: str) -> tuple[str, ...]:
    value = _value(values, field, "--label-field")
    several = value if isinstance(value, list) else [] if value is None or value == "" else [value]
    if not all(isinstance(label, str | int) for label in several):
        raise CorpusError(
            f"the labels in {field!r} are {_kind(value)}", hint="labels are a string or a list of strings"
        )
    return tuple(dict.fromkeys(str(label) for label in several))


def _kind(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _open_folder(folder: Path, options: ReadOptions, format: str | None) -> FileCorpus:
    paths = list(_files_below(folder))
    if not paths:
        raise CorpusError(f"no files in the folder {folder}", hint="hidden files do not count")
    records = [path for path in paths if _format_of(path) in _RECORD_FORMATS]
    if format in WHOLE_FILES:
        chosen = [path for path in paths if _format_of(path) == format]
        if not chosen:
            raise CorpusError(f"no {format} file in {folder}", hint="leave --format out to read all files")
        return FolderCorpus(folder, chosen, options)
    if format in READERS:
        return FileCorpus(
            _sources([path for path in paths if _format_of(path) == format] or paths), READERS[format], options
        )
    # A folder of shards (part-0.parquet, part-1.parquet) is one table, with marks such as Spark's _SUCCESS beside them;
    # in any other each file is a document.
    others = [path for path in paths if path not in records and not path.name.startswith("_")]
    formats = {_format_of(path) for path in records}
    if format is None and records and (others or len(formats) > 1):
        raise CorpusError(
            f"{folder} has files of several kinds, such as {records[0].name} and {(others or records)[-1].name}",
            hint=f"name what to read with --format: {', '.join(sorted(map(str, formats)))} for the records, "
            "folder for a document a file",
        )
    if format is None and records:
        return FileCorpus(_sources(records), READERS[formats.pop() or ""], options)
    return FolderCorpus(folder, paths, options)


def _files_below(folder: Path, above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Path]:
    """All files but hidden ones, by name and through links; a folder that may not be listed is an error."""
    here = folder.stat()
    identity = (here.st_dev, here.st_ino)
    if identity in above:  # a link to a folder above
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _files_below(path, above | {identity})
        elif path.is_file():
            yield path


def _read_by_ending(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A file that is one document, in the format that its name says."""
    format = _format_of(source.path)
    return (READERS[format] if format in WHOLE_FILES else read_file)(source, options)


def _holds_no_text(source: Source, encoding: str) -> bool:
    return _format_of(source.path) not in WHOLE_FILES and is_binary(first_bytes(source), encoding)


def _open_remote(address: str, options: ReadOptions, format: str | None) -> FileCorpus:
    """Files of records on storage that is reached through fsspec."""
    # Marks such as Spark's _SUCCESS are no files of a corpus.
    sources = [
        source
        for source in remote_sources(address)
        if format is not None or _format_of(source.path) in _RECORD_FORMATS or not source.path.name.startswith("_")
    ]
    if not sources:
        raise CorpusError(f"no files at {address}", hint="hidden files do not count")
    formats = {_format_of(source.path) or "" for source in sources} if format is None else {format}
    [wanted, *others] = sorted(formats)
    whole = wanted in WHOLE_FILES or wanted in ("", "folder") or (format is None and wanted == "lines")
    if others or whole:
        kinds = ", ".join(kind or "no format" for kind in sorted(formats))
        raise CorpusError(
            f"{address} has files of {'several kinds' if others else 'a kind that is not read there'}: {kinds}",
            hint=f"name what to read with --format: {', '.join(sorted(_RECORD_FORMATS))}, or lines",
        )
    return _corpus([source for source in sources if _format_of(source.path) == wanted] or sources, wanted, options)


def _sources(paths: Sequence[Path]) -> list[Source]:
    return [Source(path) for path in paths]


def _format_of(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _ENDINGS.get(suffixes[-1]) if suffixes else None


def _sniffed(source: Source, encoding: str) -> str:
    """The format of a pipe: Parquet and JSON lines show in the first bytes, all else is a document a line."""
    start = first_bytes(source)
    if start.startswith(b"PAR1"):
        return "parquet"
    text = start.decode(encoding, "ignore").removeprefix("\ufeff").lstrip()
    return "jsonl" if text.startswith("{") else "lines"


def _similar(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f"the folder {path.parent} is not there either"
    close = get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "`parabit datasets` lists the data sets by name"
