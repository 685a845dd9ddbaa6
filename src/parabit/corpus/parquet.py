"""The rows of a Parquet file in small tables, of which a few are in memory at a time."""

import io
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import polars as pl

from parabit.corpus.limits import MB, ReadLimits, over_limit
from parabit.errors import UnreadableError

_ROWS = 1024  # of a table
_TABLE_MB = 16  # of text in a table, unless one row has more


class Table(NamedTuple):
    """Rows of a file; the first table has none, and names all columns of the file."""

    columns: list[str]
    rows: bytes  # as Arrow writes a stream


def tables_of(path: str, named: Collection[str], limits: ReadLimits) -> Iterator[Table]:
    """The columns of a file, and then its rows, with those of its columns that are named or can be fields.

    Raises:
        UnreadableError: if the file is damaged or over a limit.
    """
    try:
        table = pl.scan_parquet(path, glob=False)
        schema = table.collect_schema()
        if len(schema) > limits.columns:
            raise over_limit("", f"{len(schema):,} columns", limits, "columns")
        yield Table(schema.names(), b"")
        # Vectors, pictures and nested records are not fields to filter by, and may be most of the file.
        wanted = [
            name
            for name, kind in schema.items()
            if name in named
            or kind == pl.List(pl.String)
            or not (kind.is_nested() or kind == pl.Binary)
        ]
        # From the end of the file, without reading the rest.
        rows = table.select(pl.len()).collect().item()
        rows_read = 0
        for frame in table.select(wanted).collect_batches(chunk_size=_ROWS, maintain_order=True):
            for rows_together in _of_bounded_size(frame, limits):
                rows_read += len(rows_together)
                stream = io.BytesIO()
                rows_together.write_ipc_stream(stream)
                yield Table(wanted, stream.getvalue())
        if rows_read < rows:  # some damage makes polars end early without an error
            raise pl.exceptions.ComputeError(f"{rows_read} of {rows} rows can be read")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as problem:
        reason = str(problem).partition("\n")[0]
        raise UnreadableError(
            "", f"damaged or cut off: {reason}", "write or copy it again"
        ) from problem


def _of_bounded_size(frame: pl.DataFrame, limits: ReadLimits) -> Iterator[pl.DataFrame]:
    """A table in pieces: a few bytes of a file can stand for the same long text in each row."""
    kinds: dict[str, Any] = dict(frame.schema)
    lengths = [pl.col(name).str.len_bytes() for name in kinds if kinds[name] == pl.String]
    lengths += [
        pl.col(name).list.eval(pl.element().str.len_bytes()).list.sum()
        for name in kinds
        if kinds[name] == pl.List(pl.String)
    ]
    if not lengths:
        yield frame
        return
    sizes = frame.select(pl.sum_horizontal(lengths).fill_null(0)).to_series().to_list()
    if max(sizes, default=0) > limits.document_bytes:
        what = f"a row with more than {limits.document_mb} MB of text"
        raise over_limit("", what, limits, "document_mb")
    if sum(sizes) <= _TABLE_MB * MB:
        yield frame
        return
    start = 0
    size = 0
    for row, row_size in enumerate(sizes):
        if row > start and size + row_size > _TABLE_MB * MB:
            yield frame.slice(start, row - start)
            start = row
            size = 0
        size += row_size
    yield frame.slice(start)
