"""Readers, one function a format: they turn a source into records and say of each bad one where it stands."""

import codecs
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from parabit.corpus.markdown import markdown_to_text
from parabit.corpus.markup import decoded_html, has_wide_mark, html_to_text
from parabit.corpus.pdf import pdf_to_text
from parabit.corpus.sources import Source, first_bytes
from parabit.errors import CorpusError

READABLE = "text, Markdown, HTML, PDF, JSON lines, CSV, TSV and Parquet"
_PARQUET_ROWS = 1024


@dataclass(frozen=True)
class ReadOptions:
    """How to read files: which fields hold what, in which encoding, and what to do with a bad record.

    Several text fields are joined by a blank line. Without an id field a field named `id` is used, or else the
    document's position in the corpus, counted from 0; without a label field, one named `labels` or `label`.
    """

    text_fields: tuple[str, ...] = ("text",)
    id_field: str | None = None
    label_field: str | None = None
    encoding: str = "utf-8"
    quotes: bool = True  # of CSV and TSV: a field may be quoted
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.text_fields, str) or not self.text_fields:
            raise CorpusError(
                f"text_fields is {self.text_fields!r}",
                hint='it is a tuple of one or more names, such as ("title", "body")',
            )
        try:
            "x".encode(self.encoding)  # not an empty string, for which Python does not even look
        except (LookupError, UnicodeError) as problem:
            raise CorpusError(f"no such encoding: {self.encoding}", hint="for example utf-8 or latin-1") from problem

    @property
    def names_fields(self) -> bool:
        """Whether a field was named, where there may be none."""
        return (self.text_fields, self.id_field, self.label_field) != (("text",), None, None)


class Record(NamedTuple):
    """One record of a file: its fields, and where it stands."""

    values: dict[str, Any]
    where: str


# A bad record is handed on as the error that describes it, for the corpus to raise or to count.
Reader = Callable[[Source, ReadOptions], Iterator[Record | CorpusError]]


def read_lines(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A text file with a document a line; an empty line is an empty document, so that lines and codes stay aligned."""
    for number, text, problem in _lines(source, options.encoding):
        yield problem or Record({options.text_fields[0]: text}, f"{source.name}, line {number}")


def read_json_lines(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A JSON object a line; blank lines are nothing."""
    for number, text, problem in _lines(source, options.encoding):
        if problem:
            yield problem
        elif text and not text.isspace():
            yield _json_record(text, f"{source.name}, line {number}")


def read_delimited(source: Source, options: ReadOptions, delimiter: str) -> Iterator[Record | CorpusError]:
    """CSV or TSV with a header line; quoted fields may hold line breaks."""
    csv.field_size_limit(sys.maxsize)  # the default would refuse documents of over 128 KiB
    problems: list[CorpusError] = []  # with the lines of the record that is being read

    def lines() -> Iterator[str]:
        for _, line, problem in _lines(source, options.encoding, keep_ends=True):
            if problem:
                problems.append(problem)
            yield line

    rows = csv.reader(
        lines(), delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if options.quotes else csv.QUOTE_NONE, strict=True
    )
    header: list[str] = []
    while True:
        first = rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error as problem:
            row = []
            problems.append(_bad_row(source, first, rows.line_num, problem))
        if row is None:
            return
        where = f"{source.name}, line {first}"
        if problems:
            if not header:
                raise problems[0]  # without a header no record can be read
            yield problems[0]
            problems.clear()
        elif not row:
            continue
        elif not header:
            header = row
            _check_header(header, source)
        elif len(row) != len(header):
            yield CorpusError(
                f"{where}: {len(row)} fields where the header names {len(header)}",
                hint="quote fields that hold the delimiter or a line break",
            )
        else:
            yield Record(dict(zip(header, row, strict=True)), where)


def read_csv(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """Fields separated by commas."""
    return read_delimited(source, options, ",")


def read_tsv(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """Fields separated by tabs."""
    return read_delimited(source, options, "\t")


def read_parquet(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """The rows of a Parquet file, of which polars holds a row group or two at a time."""
    import polars as pl  # here: it takes longer to import than most files take to read

    with source.on_disk() as path:
        row, rows = 0, 0
        problem: BaseException | None = None
        try:
            table = pl.scan_parquet(path, glob=False)
            rows = table.select(pl.len()).collect().item()  # from the end of the file, without reading the rest
            for frame in table.collect_batches(chunk_size=_PARQUET_ROWS, maintain_order=True):
                for values in frame.iter_rows(named=True):
                    yield Record(values, f"{source.name}, row {row}")
                    row += 1
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as found:
            problem = found
        # Some damage makes polars end early without an error.
        if problem is not None or row < rows:
            reason = _first_line(problem) if problem else f"row {row} of {rows} cannot be read"
            raise CorpusError(
                f"{source.name} is not a whole Parquet file: {reason}", hint="write or copy it again"
            ) from problem


def read_file(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A text file that is one document."""
    try:
        with source.open() as stream:
            content = stream.read()
        refuse_binary(content[:8192], source.name, options.encoding)
        text, problem = _decoded(content.removeprefix(codecs.BOM_UTF8), options.encoding, source.name)
        yield problem or Record({options.text_fields[0]: text.removeprefix("\ufeff")}, source.name)
    except CorpusError as problem:
        yield problem


def read_markdown(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A Markdown file that is one document, without its marks."""
    field = options.text_fields[0]
    for record in read_file(source, options):
        yield (
            record
            if isinstance(record, CorpusError)
            else Record({field: markdown_to_text(record.values[field])}, record.where)
        )


def read_html(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A page that is one document: what it shows, its title first."""
    try:
        with source.open() as stream:
            content = stream.read()
        if not has_wide_mark(content):
            refuse_binary(content[:8192], source.name, options.encoding)
        text = html_to_text(decoded_html(content, options.encoding))
        yield Record({options.text_fields[0]: text}, source.name)
    except CorpusError as problem:
        yield problem


def read_pdf(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A PDF file that is one document: the text of all its pages."""
    try:
        with source.open() as stream:
            content = io.BytesIO(stream.read())
        yield Record({options.text_fields[0]: pdf_to_text(content, source.name)}, source.name)
    except CorpusError as problem:
        yield problem


READERS: dict[str, Reader] = {
    "jsonl": read_json_lines,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "lines": read_lines,
    "markdown": read_markdown,
    "html": read_html,
    "pdf": read_pdf,
}
WHOLE_FILES = ("markdown", "html", "pdf")  # formats in which a file is one document, whatever it holds


def refuse_binary(start: bytes, name: str, encoding: str) -> None:
    """Raise if these first bytes of a file cannot be text: text has no zero bytes, unless in UTF-16 or UTF-32."""
    if not is_binary(start, encoding):
        return
    if start.startswith(
        (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
    ):  # before UTF-16, whose mark one of them begins with
        raise CorpusError(f"{name} is UTF-32, not {encoding}", hint="read it with --encoding utf-32")
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CorpusError(f"{name} is UTF-16, not {encoding}", hint="read it with --encoding utf-16")
    hint = "give it the ending .pdf" if start.startswith(b"%PDF-") else f"parabit reads {READABLE}"
    raise CorpusError(f"{name} is a binary file, not text", hint=hint)


def is_binary(start: bytes, encoding: str) -> bool:
    """Whether these first bytes of a file cannot be text in this encoding."""
    return b"\0" in start and not _is_wide(encoding)


class _Line(NamedTuple):
    number: int
    text: str  # bytes that are not valid in it are replaced
    problem: CorpusError | None


def _lines(source: Source, encoding: str, keep_ends: bool = False) -> Iterator[_Line]:
    """Numbered lines, each decoded alone, so that one bad byte costs one line and its number is known."""
    refuse_binary(first_bytes(source), source.name, encoding)
    if _is_wide(encoding):
        yield from _wide_lines(source, encoding, keep_ends)
        return
    with source.open() as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            text, problem = _decoded(raw, encoding, f"{source.name}, line {number}")
            yield _Line(number, text if keep_ends else _without_end(text), problem)


def _wide_lines(source: Source, encoding: str, keep_ends: bool) -> Iterator[_Line]:
    """Lines of UTF-16 and UTF-32, where a line break is not one byte and must be found after decoding."""
    number = 0
    with source.open() as stream:
        try:
            with io.TextIOWrapper(stream, encoding, newline="\n") as decoded:
                for number, line in enumerate(decoded, start=1):
                    text = line.removeprefix("\ufeff") if number == 1 else line
                    yield _Line(number, text if keep_ends else _without_end(text), None)
        except UnicodeError as problem:
            raise CorpusError(
                f"{source.name}, after line {number}: not valid {encoding}", hint="name the encoding with --encoding"
            ) from problem


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _json_record(line: str, where: str) -> Record | CorpusError:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError) as problem:  # a plain ValueError: a number of over 4,300 digits
        reasons = {json.JSONDecodeError: getattr(problem, "msg", ""), RecursionError: "nested too deeply"}
        reason = reasons.get(type(problem), "a number is too long")
        return CorpusError(f"{where}: not valid JSON: {reason}", hint="--skip-bad counts such lines and goes on")
    if not isinstance(values, dict):
        return CorpusError(
            f"{where}: a JSON {_json_name(values)} where an object is needed", hint='write {"text": "…"} on each line'
        )
    # Only an escape such as \ud800 can bring half a surrogate pair, which no encoding can write.
    if "\\ud" in line or "\\uD" in line:
        try:
            json.dumps(values, ensure_ascii=False).encode()
        except UnicodeError:
            return CorpusError(f"{where}: half of a surrogate pair in a \\u escape", hint="write the text as UTF-8")
    return Record(values, where)


def _json_name(value: object) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "value")


def _decoded(raw: bytes, encoding: str, where: str) -> tuple[str, CorpusError | None]:
    try:
        return raw.decode(encoding), None
    except UnicodeDecodeError as problem:
        return raw.decode(encoding, "replace"), CorpusError(
            f"{where}: not valid {encoding}: byte 0x{raw[problem.start]:02x} at {problem.start}",
            hint="name the encoding with --encoding, for example latin-1",
        )


def _bad_row(source: Source, first: int, last: int, problem: csv.Error) -> CorpusError:
    lines = f"line {first}" if last <= first else f"lines {first} to {last}"
    if "new-line" in str(problem):
        return CorpusError(
            f"{source.name}, {lines}: a carriage return within a line",
            hint="end lines with a line feed, or quote the field that holds it",
        )
    return CorpusError(
        f"{source.name}, {lines}: not valid CSV: {problem}",
        hint="a quote that opens must close; --no-quotes takes quotes as plain characters",
    )


def _check_header(header: list[str], source: Source) -> None:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise CorpusError(f"{source.name} names the field {twice[0]!r} twice in its header", hint="rename one of them")


def _is_wide(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _first_line(problem: BaseException) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
