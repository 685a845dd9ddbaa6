"""Readers, one function a format: they turn a source into records and say of each bad one where it stands."""

import codecs
import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from parabit.corpus.sources import Source, first_bytes
from parabit.errors import CorpusError

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
    skip_bad: bool = False

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError as problem:
            raise CorpusError(f"no such encoding: {self.encoding}", hint="for example utf-8 or latin-1") from problem


class Record(NamedTuple):
    """One record of a file: its fields, and where it stands."""

    values: dict[str, Any]
    where: str


# A bad record is handed on as the error that describes it, for the corpus to raise or to count.
Reader = Callable[[Source, ReadOptions], Iterator[Record | CorpusError]]


def read_lines(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A text file with a document a line; an empty line is an empty document, so that lines and codes stay aligned."""
    for number, line in _lines(source, options.encoding):
        if isinstance(line, CorpusError):
            yield line
        else:
            yield Record({options.text_fields[0]: line}, f"{source.name}, line {number}")


def read_json_lines(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A JSON object a line; blank lines are nothing."""
    for number, line in _lines(source, options.encoding):
        where = f"{source.name}, line {number}"
        if isinstance(line, CorpusError):
            yield line
        elif line and not line.isspace():
            yield _json_record(line, where)


def read_delimited(source: Source, options: ReadOptions, delimiter: str) -> Iterator[Record | CorpusError]:
    """CSV or TSV with a header line; quoted fields may hold line breaks."""
    csv.field_size_limit(sys.maxsize)  # the default would refuse documents of over 128 KiB
    problems: list[CorpusError] = []

    def good_lines() -> Iterator[str]:
        for _, line in _lines(source, options.encoding, keep_ends=True):
            if isinstance(line, CorpusError):
                problems.append(line)
            else:
                yield line

    rows = csv.reader(good_lines(), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    before = 0
    while True:
        where = f"{source.name}, line {before + 1}"
        try:
            row = next(rows, None)
        except csv.Error as problem:
            row = []
            yield CorpusError(f"{where}: not valid CSV: {problem}", hint="check the quotes around it")
        before = rows.line_num
        yield from problems
        problems.clear()
        if row is None:
            return
        if not row:
            continue
        if header is None:
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
    """The rows of a Parquet file, a few thousand at a time."""
    with source.open(decompress=False):  # for the errors of a missing or forbidden file, and for standard input
        pass
    try:
        row = 0
        for frame in pl.scan_parquet(source.path).collect_batches(chunk_size=_PARQUET_ROWS, maintain_order=True):
            for values in frame.iter_rows(named=True):
                yield Record(values, f"{source.name}, row {row}")
                row += 1
    except pl.exceptions.PolarsError as problem:
        raise CorpusError(
            f"{source.name} is not a whole Parquet file: {_first_line(problem)}", hint="write or copy it again"
        ) from problem


def read_file(source: Source, options: ReadOptions) -> Iterator[Record | CorpusError]:
    """A text file that is one document."""
    with source.open() as stream:
        content = stream.read()
    try:
        refuse_binary(content[:8192], source.name, options.encoding)
        text = _decoded(content.removeprefix(codecs.BOM_UTF8), options.encoding, source.name)
        yield Record({options.text_fields[0]: text}, source.name)
    except CorpusError as problem:
        yield problem


READERS: dict[str, Reader] = {
    "jsonl": read_json_lines,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "lines": read_lines,
}


def refuse_binary(start: bytes, name: str, encoding: str) -> None:
    """Raise if these first bytes of a file cannot be text: text has no zero bytes, unless in UTF-16 or UTF-32."""
    if b"\0" not in start or _is_wide(encoding):
        return
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise CorpusError(f"{name} is UTF-16, not {encoding}", hint="read it with --encoding utf-16")
    raise CorpusError(f"{name} is a binary file, not text", hint="parabit reads text, JSON lines, CSV, TSV and Parquet")


def _lines(source: Source, encoding: str, keep_ends: bool = False) -> Iterator[tuple[int, str | CorpusError]]:
    """Numbered lines, each decoded alone, so that one bad byte costs one line and its number is known."""
    start = first_bytes(source)
    refuse_binary(start, source.name, encoding)
    if _is_wide(encoding):
        yield from _wide_lines(source, encoding, keep_ends)
        return
    with source.open() as stream:
        for number, raw in enumerate(stream, start=1):
            if number == 1:
                raw = raw.removeprefix(codecs.BOM_UTF8)
            try:
                line = _decoded(raw, encoding, f"{source.name}, line {number}")
                yield number, line if keep_ends else line.removesuffix("\n").removesuffix("\r")
            except CorpusError as problem:
                yield number, problem


def _wide_lines(source: Source, encoding: str, keep_ends: bool) -> Iterator[tuple[int, str]]:
    """Lines of UTF-16 and UTF-32, where a line break is not one byte and must be found after decoding."""
    number = 0
    with source.open() as stream:
        try:
            for number, line in enumerate(codecs.getreader(encoding)(stream), start=1):
                yield number, line if keep_ends else line.removesuffix("\n").removesuffix("\r")
        except UnicodeError as problem:
            raise CorpusError(
                f"{source.name}, after line {number}: not valid {encoding}", hint="name the encoding with --encoding"
            ) from problem


def _json_record(line: str, where: str) -> Record | CorpusError:
    try:
        values = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else "nested too deeply"
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


def _decoded(raw: bytes, encoding: str, where: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as problem:
        raise CorpusError(
            f"{where}: not valid {encoding}: byte 0x{raw[problem.start]:02x} at {problem.start}",
            hint="name the encoding with --encoding, for example latin-1",
        ) from problem


def _check_header(header: list[str], source: Source) -> None:
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise CorpusError(f"{source.name} names the field {twice[0]!r} twice in its header", hint="rename one of them")


def _is_wide(encoding: str) -> bool:
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
