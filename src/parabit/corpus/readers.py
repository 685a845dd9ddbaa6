"""Readers, one function per format: they turn a source into records, or into the text of one document."""

import csv
import importlib.util
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from logging import getLogger
from typing import TYPE_CHECKING, Any, NamedTuple

from parabit.corpus.document import REPLACED, Document, RefusedError, checked, document_from
from parabit.corpus.limits import ReadLimits, over_limit
from parabit.corpus.pages import (
    START,
    check_size,
    check_text,
    decoded,
    encoding_at,
    is_wide,
)
from parabit.corpus.sources import PipeSource, Source, is_disk_full, why
from parabit.errors import CorpusError, UnreadableError, need

if TYPE_CHECKING:
    from parabit.corpus import sandbox
    from parabit.corpus.messages import Message

_ENDINGS = {
    "txt": "text", "text": "text", "md": "markdown", "markdown": "markdown", "html": "html", "htm": "html",
    "xhtml": "html", "pdf": "pdf", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json", "csv": "csv", "tsv": "tsv",
    "tab": "tsv", "parquet": "parquet", "pq": "parquet",
}  # fmt: skip
_COMPRESSED = re.compile(r"\.(?:gz|zst|zstd|bz2)$", re.I)
# Of shorter ones the fields can as well be counted after they were taken apart.
_LONG_LINE = 100_000
_LONGEST_REASON = 1_000  # characters
_HEADER = re.compile(
    r"[A-Za-z][\w-]*:(?:\s|$)|[ \t]"
)  # a line of a mail's head, or one that continues it
_log = getLogger(__name__)


@dataclass(frozen=True)
class ReadOptions:
    """How to read files: which fields hold what, in which format and encoding, which files, and whether to be strict.

    Several text fields are joined by a blank line. The id of a record is its field `id`, or the one that `id_field`
    names; without such a field, and always if `id_field` is empty, it is the path and line of the record. Without a
    label field, one named `labels` or `label` is used. `format` is that of files whose names do not say one; files of a
    folder whose names say another are skipped. Without an encoding, files are UTF-8, UTF-16 or UTF-32 as their first
    bytes say, or else Windows-1252. `include` and `exclude` are patterns such as `*.md` or `drafts/**`, matched with
    the path below the folder and with the name alone. What cannot be read is skipped and listed in `Corpus.skipped`;
    with `strict` the first one is an error. `limits` says what one file may cost; by default they are those of
    `ReadLimits`, changed by the environment variable PARABIT_LIMITS.

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
    limits: ReadLimits = field(default_factory=ReadLimits.from_environment)

    def __post_init__(self) -> None:
        for name in ("text_fields", "include", "exclude"):
            if isinstance(getattr(self, name), str) or (
                name == "text_fields" and not self.text_fields
            ):
                raise CorpusError(
                    f"{name} is {getattr(self, name)!r}",
                    hint='it is a tuple, such as ("title", "body")',
                )
        if self.format not in (None, *FORMATS):
            raise CorpusError(
                f"no such format: {self.format}", hint=f"the formats are {', '.join(FORMATS)}"
            )
        try:
            # Some encodings of Python are none of text, and some take only whole files.
            b"x\xff".decode(self.encoding or "utf-8", "replace")
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


def read(
    source: Source, options: ReadOptions, pages: "PagesAhead | None" = None
) -> Iterator[Document | UnreadableError]:
    """The documents of a file; where one cannot be read, the error that describes it.

    Args:
        source: The file.
        options: How to read it.
        pages: Where the text of HTML and Markdown comes from, if the file is one of several.
    """
    pages = pages or PagesAhead([source], options)
    number = -1
    try:
        for number, item in enumerate(_items(source, options, pages)):
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
    except CorpusError:  # it is not this file that is wrong
        raise
    except MemoryError:
        yield UnreadableError(source.name, "cannot be read: out of memory", "free some memory")
    except OSError as problem:
        if is_disk_full(problem):
            raise
        yield UnreadableError(source.name, why(problem))
    except Exception as problem:  # no file may end the reading of the others
        _log.debug("%s cannot be read", source.name, exc_info=True)
        message = f"{type(problem).__name__}: {problem}".partition("\n")[0][:200]
        yield UnreadableError(source.name, f"cannot be read: {message}")


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
        reason = problem.problem
        if len(reason) > _LONGEST_REASON:  # of a table with thousands of columns
            reason = f"{reason[:_LONGEST_REASON]}…"
        return UnreadableError(source.name, reason, problem.hint, record.line)


def _items(source: Source, options: ReadOptions, pages: "PagesAhead") -> Iterator[Item]:
    """What a file holds; one that is empty or binary is refused before more than its first 8 KB are read."""
    format = options.format or format_of(source.id)
    if format in PAGES_AHEAD:
        return iter([_document_of(pages.take(source), source)])
    with source.open(options.limits) as stream:
        start = stream.read(START)
    encoding = options.encoding or encoding_at(start, source.name)
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
    if format not in ("pdf", "parquet"):
        check_text(start, source.name, encoding)
    return READERS[format or "text"](source, options, encoding)


def read_lines(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """One document per line; an empty line is an empty document, so that lines and codes stay aligned."""
    for number, line, problem in _lines(source, encoding, options.limits):
        text = line.removesuffix("\n").removesuffix("\r")
        yield problem or Record({options.text_fields[0]: text}, number)


def read_json_lines(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """One JSON object per line; blank lines do not count."""
    for number, line, problem in _lines(source, encoding, options.limits):
        if problem or not line.isspace():
            yield problem or _json_record(line, source, number, options.limits)


def read_json(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """JSON lines, one object, or an array of objects, whose number stands for the line."""
    lines = _lines(source, encoding, options.limits)
    first = next((line for _, line, _ in lines if not line.isspace()), "")
    if isinstance(_json_record(first, source, 1, options.limits), Record):
        yield from read_json_lines(source, options, encoding)
        return
    text = _text_of(source, encoding, options.limits)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UnreadableError(
            source.name, f"not valid JSON: {getattr(problem, 'msg', problem)}"
        ) from problem
    del text
    if not isinstance(values, list):
        values = [values]
    for number, value in enumerate(values, start=1):
        yield _record_of(value, source, number, options.limits)


def read_delimited(
    source: Source, options: ReadOptions, encoding: str | None, delimiter: str = ","
) -> Iterator[Item]:
    """CSV or TSV with a header line; quoted fields may hold line breaks."""
    csv.field_size_limit(sys.maxsize)  # the default would refuse documents of over 128 KiB
    limits = options.limits
    problems: list[UnreadableError] = []  # with the lines of the record that is being read
    record_length = 0  # of the lines of the record that is being read

    def lines() -> Iterator[str]:
        nonlocal record_length
        for number, line, problem in _lines(source, encoding, limits):
            if problem:
                problems.append(problem)
            record_length += len(line)
            if record_length > limits.document_bytes:
                what = (
                    f"more than {limits.document_mb} MB in one record, or a quote is never closed"
                )
                raise over_limit(source.name, what, limits, "document_mb", number)
            if len(line) > _LONG_LINE and _has_too_many_columns(line):
                what = f"more than {limits.columns:,} columns"
                raise over_limit(source.name, what, limits, "columns", number)
            yield line

    def _has_too_many_columns(line: str) -> bool:
        """Whether that is certain before they are taken apart, as no delimiter is quoted."""
        may_be_quoted = options.quotes and '"' in line
        return not may_be_quoted and line.count(delimiter) >= limits.columns

    rows = csv.reader(
        lines(),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE,
        strict=True,
    )
    header: list[str] = []
    while True:
        first = rows.line_num + 1
        record_length = 0
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
    """The rows of a Parquet file, of which polars holds a row group or two at a time, in a process of its own."""
    from parabit.corpus import sandbox

    named = [*options.text_fields, "id", "labels", "label"]
    named += [name for name in (options.id_field, options.label_field) if name]
    with source.on_disk(options.limits) as path:
        request = sandbox.Request(
            source.name,
            "parquet",
            options.limits,
            size=0,  # the limit of time is that of a batch of rows
            options={"path": str(path), "fields": named},
        )
        tables = sandbox.parse(request)
        head = next(tables)
        import polars as pl  # here: the parser reads the first rows while this takes its time

        _check_fields(head.header["columns"], source, options)
        row = 0
        for table in tables:
            for values in pl.read_ipc_stream(table.content).iter_rows(named=True):
                row += 1
                yield Record(values, row)


def read_text(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """A file that is one document. If it starts like a mail, its subject is the title."""
    text = _text_of(source, encoding, options.limits)
    yield _document_of(ParsedPage(text, _subject(text)), source)


def read_pdf(source: Source, options: ReadOptions, encoding: str | None) -> Iterator[Item]:
    """A PDF, which is one document."""
    from parabit.corpus import sandbox  # here: most files need none

    _check_pypdf(source)
    with source.on_disk(options.limits) as path:
        size = path.stat().st_size
        request = sandbox.Request(
            source.name, "pdf", options.limits, size, options={"path": str(path)}
        )
        [answer] = sandbox.parse_each(iter([request]))
    yield _document_of(_parsed(answer), source)


class ParsedPage(NamedTuple):
    """What a reader sees of a file, its title if it has one, and a note if it should be looked at."""

    text: str
    title: str | None
    note: str = ""


def _parsed(answer: "Message | UnreadableError") -> ParsedPage:
    if isinstance(answer, UnreadableError):
        raise answer
    text = answer.content.decode("utf-8", "surrogatepass")
    return ParsedPage(text, answer.header["title"], answer.header["note"])


def _document_of(page: ParsedPage, source: Source) -> Document:
    """A file that is one document."""
    if page.note:
        source.note = page.note
    if not page.text.strip():
        raise UnreadableError(source.name, "no text")
    id = "0" if isinstance(source, PipeSource) else source.id
    labels = (source.label,) if source.label else ()
    return Document(id, page.text, labels, {"title": page.title} if page.title else {})


PAGES_AHEAD = ("html", "markdown")


class PagesAhead:
    """The text of HTML and Markdown files, which are read and parsed in another process, several at a time.

    Args:
        sources: All files to read, in order; those of other kinds are passed over.
        options: How to read them.
    """

    def __init__(self, sources: Sequence[Source], options: ReadOptions) -> None:
        self._sources = sources
        self._options = options
        self._answers: Iterator[Message | UnreadableError] | None = None

    def take(self, source: Source) -> ParsedPage:
        """The page of a file. Each file is asked for once, and in order."""
        from parabit.corpus import sandbox  # here: most other files need none

        if not _is_on_disk(source):
            request = _request_with_content(source, self._options)
            [answer] = sandbox.parse_each(iter([request]))
            return _parsed(answer)
        if self._answers is None:
            self._answers = sandbox.parse_each(self._requests())
        return _parsed(next(self._answers))

    def _requests(self) -> "Iterator[sandbox.Request]":
        """The files that the parser reads itself."""
        for source in self._sources:
            format = self._options.format or format_of(source.id)
            if format in PAGES_AHEAD and _is_on_disk(source):
                yield _request_by_path(source, self._options, format)


def _is_on_disk(source: Source) -> bool:
    return source.local and not isinstance(source, PipeSource)


def _request_by_path(source: Source, options: ReadOptions, format: str) -> "sandbox.Request":
    """A page that the parser reads itself: it need not go through a pipe."""
    from parabit.corpus import sandbox

    parser_options = {"encoding": options.encoding, "path": os.path.abspath(source.location)}  # noqa: PTH100
    return sandbox.Request(source.name, format, options.limits, source.size, options=parser_options)


def _request_with_content(source: Source, options: ReadOptions) -> "sandbox.Request":
    from parabit.corpus import sandbox

    format = options.format or format_of(source.id) or ""
    content = _bytes_of(source, options.limits)
    parser_options = {"encoding": options.encoding}
    return sandbox.Request(
        source.name, format, options.limits, len(content), content, parser_options
    )


def _check_pypdf(source: Source) -> None:
    """Raise if pypdf is not installed: a folder's other files can still be read."""
    if importlib.util.find_spec("pypdf") is not None:
        return
    try:
        need("pypdf", "pdf", CorpusError)
    except CorpusError as problem:
        raise UnreadableError(source.name, f"{problem.problem}: {problem.hint}") from problem


# The encoding is None where UTF-8 is tried first and then Windows-1252.
READERS: dict[str, Callable[[Source, ReadOptions, str | None], Iterator[Item]]] = {
    "text": read_text,
    "lines": read_lines,
    "jsonl": read_json_lines,
    "json": read_json,
    "csv": read_delimited,
    "tsv": partial(read_delimited, delimiter="\t"),
    "parquet": read_parquet,
    "pdf": read_pdf,
}
FORMATS = (*READERS, *PAGES_AHEAD)


def _bytes_of(source: Source, limits: ReadLimits) -> bytes:
    with source.open(limits) as stream:
        content = stream.read(limits.document_bytes + 1)
    check_size(content, source.name, limits)
    return content


def _text_of(source: Source, encoding: str | None, limits: ReadLimits) -> str:
    return _decoded(_bytes_of(source, limits), source, encoding).removeprefix("\ufeff")


def _lines(
    source: Source, encoding: str | None, limits: ReadLimits
) -> Iterator[tuple[int, str, UnreadableError | None]]:
    """Numbered lines, each decoded alone, so that one bad byte costs one line and its number is known.

    A line that is too long costs that line, too, and never more memory than the limit.
    """
    number = 0
    with source.open(limits) as stream:
        # Where a line break is not one byte, it must be found after decoding: then lines are text, and else bytes.
        reader: Any = stream
        if is_wide(encoding):
            reader = io.TextIOWrapper(stream, encoding, newline="\n")
        read_line = partial(reader.readline, limits.document_bytes + 1)
        try:
            while raw := read_line():
                number += 1
                if len(raw) > limits.document_bytes:
                    _skip_line(raw, read_line)
                    what = f"more than {limits.document_mb} MB in one line"
                    yield number, "", over_limit(source.name, what, limits, "document_mb", number)
                    continue
                problem = None
                if isinstance(raw, str):
                    line = raw
                else:
                    try:
                        line = _decoded(raw, source, encoding, number)
                    except UnreadableError as error:
                        # The rest of the line may still say where a quoted field ends.
                        line = raw.decode(encoding or "utf-8", "replace")
                        problem = error
                yield number, line.removeprefix("\ufeff") if number == 1 else line, problem
        except UnicodeError as problem:
            reason = f"not valid {encoding}: after line {number}"
            raise UnreadableError(
                source.name, reason, "name the encoding with --encoding"
            ) from problem


def _skip_line(start: bytes | str, read_line: Callable[[], bytes | str]) -> None:
    """Read up to the end of a line."""
    piece = start
    while piece and piece[-1] not in ("\n", ord("\n")):
        piece = read_line()


def _decoded(raw: bytes, source: Source, encoding: str | None, line: int | None = None) -> str:
    text, note = decoded(raw, source.name, encoding, line)
    if note:
        source.note = note
    return text


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


def _json_record(
    text: str, source: Source, line: int, limits: ReadLimits
) -> Record | UnreadableError:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as problem:
        return UnreadableError(
            source.name, f"not valid JSON: {getattr(problem, 'msg', problem)}", line=line
        )
    return _record_of(values, source, line, limits)


def _record_of(
    values: Any, source: Source, line: int, limits: ReadLimits
) -> Record | UnreadableError:
    """What JSON holds, if it is an object that can be a record."""
    if not isinstance(values, dict):
        reason = f"not a JSON object: {_start_of(values)}"
        hint = 'write each record as {"text": "…"}'
        return UnreadableError(source.name, reason, hint, line)
    if _is_nested_deeper(values, limits.depth):
        what = f"nested more than {limits.depth} deep"
        return over_limit(source.name, what, limits, "depth", line)
    return Record(values, line)


def _start_of(values: Any) -> str:
    """How something begins in JSON, without writing all of it."""
    pieces = json.JSONEncoder().iterencode(values)
    return "".join(islice(pieces, 20))[:20]


def _is_nested_deeper(values: dict[str, Any], most: int) -> bool:
    """Whether lists and objects are inside each other more often than this."""
    level: list[Any] = [values]
    for _ in range(most):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _check_fields(names: list[str], source: Source, options: ReadOptions) -> None:
    """Raise for a table that lacks a field which every record needs."""
    limits = options.limits
    if len(names) > limits.columns:
        raise over_limit(source.name, f"{len(names):,} columns", limits, "columns")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UnreadableError(
            source.name, f"two fields of one name: {twice[0]!r}", "rename one of them"
        )
    example = _document(Record(dict.fromkeys(names, "?"), None), "", source, options)
    if isinstance(example, UnreadableError):
        raise example
