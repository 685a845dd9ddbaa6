"""Readers, one function per format: they turn a source into records, or into the text of one document."""

import codecs
import csv
import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from parabit.corpus.document import REPLACED, Document, RefusedError, checked, document_from
from parabit.corpus.sources import PipeSource, Source, UnreadableError
from parabit.errors import CorpusError

READABLE = "text, Markdown, HTML, PDF, JSON, JSON lines, CSV, TSV and Parquet"
# The longer ones first: one of UTF-32 begins like one of UTF-16.
WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
GUESSED = "decoded as Windows-1252"
_ENDINGS = {
    "txt": "text", "text": "text", "md": "markdown", "markdown": "markdown", "html": "html", "htm": "html",
    "xhtml": "html", "pdf": "pdf", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "csv": "csv", "tsv": "tsv",
    "tab": "tsv", "parquet": "parquet", "pq": "parquet",
}  # fmt: skip
_COMPRESSED = re.compile(r"\.(?:gz|zst|zstd|bz2)$", re.I)
_LONGEST = 100_000_000  # bytes of a text file that is one document
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HEADER = re.compile(
    r"[A-Za-z][\w-]*:(?:\s|$)|[ \t]"
)  # a line of a mail's head, or one that continues it


@dataclass(frozen=True)
class ReadOptions:
    """How to read files: which fields hold what, in which format and encoding, which files, and whether to be strict.

    Several text fields are joined by a blank line. The id of a record is its field `id`, or the one that `id_field`
    names; without such a field, and always if `id_field` is empty, it is the path and line of the record. Without a
    label field, one named `labels` or `label` is used. `format` is that of files whose names do not say one; files of a
    folder whose names say another are skipped. Without an encoding, files are UTF-8, UTF-16 or UTF-32 as their first
    bytes say, or else Windows-1252. `include` and `exclude` are patterns such as `*.md` or `drafts/**`, matched with
    the path below the folder and with the name alone. What cannot be read is skipped and listed in `Corpus.skipped`;
    with `strict` the first one is an error.

    Example:
        >>> ReadOptions(text_fields=("title", "body"), exclude=("drafts/**",)).strict
        False
    """

    text_fields: tuple[str, ...] = ("text",)
    id_field: str | None = None
    label_field: str | None = None
    format: str | None = None
    encoding: str | None = None
    quotes: bool = True  # of CSV and TSV: a field may be quoted
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    strict: bool = False

    def __post_init__(self) -> None:
        for name in ("text_fields", "include", "exclude"):
            if isinstance(getattr(self, name), str) or (
                name == "text_fields" and not self.text_fields
            ):
                raise CorpusError(
                    f"{name} is {getattr(self, name)!r}",
                    hint='it is a tuple, such as ("title", "body")',
                )
        if self.format not in (None, *READERS):
            raise CorpusError(
                f"no such format: {self.format}", hint=f"the formats are {', '.join(READERS)}"
            )
        try:
            "x".encode(
                self.encoding or "utf-8"
            )  # not an empty string, for which Python does not even look
        except (LookupError, UnicodeError) as problem:
            raise CorpusError(
                f"no such encoding: {self.encoding}", hint="for example utf-8 or latin-1"
            ) from problem


class Record(NamedTuple):
    """The fields of a record, and the line where it starts, or its number, from 1; None for the head of a table."""

    values: dict[str, Any]
    line: int | None


# A file is one document or has records. A bad record comes as an error; an error of the whole file is raised.
Item = Document | Record | UnreadableError


def format_of(name: str) -> str | None:
    """The format that the name of a file says, compressed or not."""
    ending = re.search(r"\.(\w+)$", _COMPRESSED.sub("", name))
    return _ENDINGS.get(ending[1].lower()) if ending else None


def read(source: Source, options: ReadOptions) -> Iterator[Document | UnreadableError]:
    """The documents of a file; where one cannot be read, the error that describes it."""
    number = -1
    try:
        for number, item in enumerate(_items(source, options)):
            source.line = item.line if isinstance(item, Record) else None
            if isinstance(item, Record):
                # The name of a pipe says nothing.
                id = str(number) if isinstance(source, PipeSource) else f"{source.id}:{item.line}"
                yield _storable(_document(item, id, source, options), source)
            else:
                yield _storable(item, source)
        if number < 0:
            yield UnreadableError(source.name, "no records")
    except UnreadableError as problem:
        yield problem


def _storable(item: Document | UnreadableError, source: Source) -> Document | UnreadableError:
    """A document as it can be stored, or the error that says why it cannot be."""
    if isinstance(item, UnreadableError):
        return item
    try:
        document = checked(item)
    except RefusedError as problem:
        return UnreadableError(source.name, problem.problem, problem.hint, source.line)
    if document is not item:
        source.note = source.note or REPLACED
    return document


def _document(
    record: Record, id: str, source: Source, options: ReadOptions
) -> Document | UnreadableError:
    try:
        return document_from(
            record.values, id, options.text_fields, options.id_field, options.label_field
        )
    except CorpusError as problem:
        return UnreadableError(source.name, problem.problem, problem.hint, record.line)


def _items(source: Source, options: ReadOptions) -> Iterator[Item]:
    """What a file holds; one that is empty or binary is refused before more than its first 8 KB are read."""
    with source.open() as stream:
        start = stream.read(8192)
    if not start:
        raise UnreadableError(source.name, "empty file")
    mark = next((encoding for mark, encoding in WIDE_MARKS.items() if start.startswith(mark)), None)
    encoding = options.encoding or mark
    format = options.format or format_of(source.id)
    if format in (None, "text"):
        format = (
            "pdf"
            if start.startswith(b"%PDF-")
            else "parquet"
            if start.startswith(b"PAR1")
            else format
        )
    if format is None and isinstance(source, PipeSource):
        text = start.decode(encoding or "utf-8", "ignore").lstrip("\ufeff\0 \t\r\n")
        format = "jsonl" if text.startswith("{") else "lines"
    # Text has no zero bytes, unless in UTF-16 or UTF-32.
    if format not in ("pdf", "parquet") and b"\0" in start and not _is_wide(encoding):
        raise UnreadableError(source.name, "binary file", f"parabit reads {READABLE}")
    return READERS[format or "text"](source, options, encoding)


def read_lines(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """One document per line; an empty line is an empty document, so that lines and codes stay aligned."""
    for number, line, problem in _lines(source, encoding):
        text = line.removesuffix("\n").removesuffix("\r")
        yield problem or Record({options.text_fields[0]: text}, number)


def read_json_lines(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """One JSON object per line; blank lines do not count."""
    for number, line, problem in _lines(source, encoding):
        if problem or not line.isspace():
            yield problem or _json_record(line, source, number)


def read_json(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """JSON lines, one object, or an array of objects, whose number stands for the line."""
    first = next((line for _, line, _ in _lines(source, encoding) if not line.isspace()), "")
    if isinstance(_json_record(first, source, 1), Record):
        yield from read_json_lines(source, options, encoding)
        return
    text = _text_of(source, encoding)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UnreadableError(
            source.name, f"not valid JSON: {getattr(problem, 'msg', problem)}"
        ) from problem
    for number, value in enumerate(values if isinstance(values, list) else [values], start=1):
        yield _json_record(json.dumps(value), source, number)


def read_delimited(
    source: Source, options: ReadOptions, encoding: str | None, delimiter: str = ","
) -> Iterator[Item]:
    """CSV or TSV with a header line; quoted fields may hold line breaks."""
    csv.field_size_limit(sys.maxsize)  # the default would refuse documents of over 128 KiB
    problems: list[UnreadableError] = []  # with the lines of the record that is being read

    def lines() -> Iterator[str]:
        for _, line, problem in _lines(source, encoding):
            if problem:
                problems.append(problem)
            yield line

    rows = csv.reader(
        lines(),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE,
        strict=True,
    )
    header: list[str] = []
    while True:
        first = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as problem:
            row, hint = (
                [],
                "close every quote, take quotes as plain characters with --no-quotes, or end lines with \\n",
            )
            reason = (
                "a carriage return within a line" if "new-line" in str(problem) else str(problem)
            )
            problems.append(UnreadableError(source.name, f"not valid CSV: {reason}", hint, first))
        if row is None:
            return
        if problems:
            if not header:
                raise problems[0]  # without a header no record can be read
            yield problems[0]
            problems.clear()
        elif not row:
            continue
        elif not header:
            header = row
            _check_fields(header, source, options)
        elif len(row) != len(header):
            reason = f"wrong number of fields: {len(row)} where the header names {len(header)}"
            yield UnreadableError(
                source.name, reason, "quote fields that hold the delimiter or a line break", first
            )
        else:
            yield Record(dict(zip(header, row, strict=True)), first)


def read_parquet(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """The rows of a Parquet file, of which polars holds a row group or two at a time."""
    import polars as pl  # here: it takes longer to import than most files take to read

    with source.on_disk() as path:
        row = 0
        try:
            table = pl.scan_parquet(path, glob=False)
            schema = table.collect_schema()
            _check_fields(schema.names(), source, options)
            named = {
                *options.text_fields,
                options.id_field,
                options.label_field,
                "id",
                "labels",
                "label",
            }
            # Vectors, pictures and nested records are not fields to filter by, and may be most of the file.
            wanted = [
                name
                for name, kind in schema.items()
                if name in named
                or kind == pl.List(pl.String)
                or not (kind.is_nested() or kind == pl.Binary)
            ]
            rows = (
                table.select(pl.len()).collect().item()
            )  # from the end of the file, without reading the rest
            for frame in table.select(wanted).collect_batches(chunk_size=1024, maintain_order=True):
                for values in frame.iter_rows(named=True):
                    row += 1
                    yield Record(values, row)
            if row < rows:  # some damage makes polars end early without an error
                raise pl.exceptions.ComputeError(f"{row} of {rows} rows can be read")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
            reason = str(problem).partition("\n")[0]
            raise UnreadableError(
                source.name, f"damaged or cut off: {reason}", "write or copy it again"
            ) from problem


def read_page(
    source: Source, options: ReadOptions, encoding: str | None, format: str = "text"
) -> Iterator[Item]:
    """A file that is one document: what a reader sees of it. If a text starts like a mail, its subject is the title."""
    if format == "text":
        text = _text_of(source, encoding)
        title = _subject(text)
    else:
        from parabit.corpus import (
            extract,
        )  # here: its libraries take longer to import than most files take to read

        if format == "markdown":
            text, title = extract.from_markdown(_text_of(source, encoding))
        elif format == "html":
            text, title = extract.from_html(_bytes_of(source), options.encoding, source)
        else:
            with source.open() as stream:
                text, title = extract.from_pdf(io.BytesIO(stream.read()), source.name)
    if not text.strip():
        raise UnreadableError(source.name, "no text")
    id = "0" if isinstance(source, PipeSource) else source.id
    yield Document(
        id, text, (source.label,) if source.label else (), {"title": title} if title else {}
    )


# The encoding is None where UTF-8 is tried first and then Windows-1252.
READERS: dict[str, Callable[[Source, ReadOptions, str | None], Iterator[Item]]] = {
    "text": read_page,
    "lines": read_lines,
    "jsonl": read_json_lines,
    "json": read_json,
    "csv": read_delimited,
    "tsv": partial(read_delimited, delimiter="\t"),
    "parquet": read_parquet,
    **{format: partial(read_page, format=format) for format in ("markdown", "html", "pdf")},
}
FORMATS = tuple(READERS)


def _is_wide(encoding: str | None) -> bool:
    return encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _bytes_of(source: Source) -> bytes:
    with source.open() as stream:
        content = stream.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        reason = f"too large: more than {_LONGEST // 10**6} MB in one document"
        raise UnreadableError(source.name, reason, "--format lines reads one document per line")
    return content


def _text_of(source: Source, encoding: str | None) -> str:
    return _decoded(_bytes_of(source), source, encoding).removeprefix("\ufeff")


def _lines(
    source: Source, encoding: str | None
) -> Iterator[tuple[int, str, UnreadableError | None]]:
    """Numbered lines, each decoded alone, so that one bad byte costs one line and its number is known."""
    number = 0
    with source.open() as stream:
        # Where a line break is not one byte, it must be found after decoding: then lines are text, and else bytes.
        lines: Iterator[Any] = (
            io.TextIOWrapper(stream, encoding, newline="\n") if _is_wide(encoding) else stream
        )
        try:
            for number, raw in enumerate(lines, start=1):
                try:
                    line, bad = (
                        raw if isinstance(raw, str) else _decoded(raw, source, encoding, number),
                        None,
                    )
                except (
                    UnreadableError
                ) as problem:  # the rest of the line may still say where a quoted field ends
                    line, bad = raw.decode(encoding or "utf-8", "replace"), problem
                yield number, line.removeprefix("\ufeff") if number == 1 else line, bad
        except UnicodeError as problem:
            reason = f"not valid {encoding}: after line {number}"
            raise UnreadableError(
                source.name, reason, "name the encoding with --encoding"
            ) from problem


def _decoded(raw: bytes, source: Source, encoding: str | None, line: int | None = None) -> str:
    try:
        return raw.decode(encoding or "utf-8")
    except UnicodeDecodeError as problem:
        reason = f"not valid {encoding}: byte 0x{raw[problem.start]:02x} at {problem.start}"
    if encoding is None:
        start = raw[:8192]
        if len(_CONTROLS.findall(start)) * 100 > len(start):
            raise UnreadableError(source.name, "binary file", f"parabit reads {READABLE}", line)
        try:
            text = raw.decode("cp1252")
            source.note = GUESSED
            return text
        except UnicodeDecodeError:
            reason = "unknown encoding: neither UTF-8 nor Windows-1252"
    raise UnreadableError(
        source.name, reason, "name the encoding with --encoding, for example latin-1", line
    )


def _subject(text: str) -> str | None:
    """The subject of a text that starts with the head of a mail."""
    head = text[:10_000].replace("\r\n", "\n").partition("\n\n")[0]
    if not all(_HEADER.match(line) for line in head.split("\n")):
        return None
    from email import message_from_string, policy  # here: few need it

    try:
        subject = message_from_string(head, policy=policy.default)["subject"]
    except Exception:  # the parser raises many things for broken heads, which then have no title
        return None
    return " ".join(subject.split()) if subject else None


def _json_record(text: str, source: Source, line: int) -> Record | UnreadableError:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as problem:
        return UnreadableError(
            source.name, f"not valid JSON: {getattr(problem, 'msg', problem)}", line=line
        )
    if not isinstance(values, dict):
        reason = f"not a JSON object: {json.dumps(values)[:20]}"
        return UnreadableError(source.name, reason, 'write each record as {"text": "…"}', line)
    return Record(values, line)


def _check_fields(names: list[str], source: Source, options: ReadOptions) -> None:
    """Raise for a table that lacks a field which every record needs."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UnreadableError(
            source.name, f"two fields of one name: {twice[0]!r}", "rename one of them"
        )
    example = _document(Record(dict.fromkeys(names, "?"), None), "", source, options)
    if isinstance(example, UnreadableError):
        raise example
