"""Pairs of near documents as a file, written as they are found."""

import csv
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from parabit.errors import ParabitError
from parabit.index.pairing import Pairs
from parabit.index.store import Id
from parabit.storage import need_room_for_file, plain_disk_errors, whole_file

SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet")
_PART = 1 << 20  # pairs held at a time on the way to Parquet
COLUMNS = ("first", "second", "distance")

Pair = tuple[Id, Id, int]


def each(blocks: Iterable[Pairs]) -> Iterator[Pair]:
    """One pair after the other."""
    for block in blocks:
        yield from zip(block.first, block.second, block.distances.tolist(), strict=True)


def need_room_for_pairs(path: Path, overwrite: bool = False) -> None:
    """Raise if pairs could not be written to a file of this name; to ask before long work."""
    if path.suffix not in SUFFIXES:
        raise ParabitError(f"{path} ends in none of {', '.join(SUFFIXES)}", hint="give one of these endings")
    if (path.exists() or path.is_symlink()) and not overwrite:
        raise ParabitError(f"{path} is there already", hint="choose another name, or replace it with --overwrite")
    need_room_for_file(path)


def write_pairs(blocks: Iterable[Pairs], path: Path, overwrite: bool = False) -> int:
    """Write pairs to a table with the columns first, second and distance; how many. Memory does not grow with them.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     blocks = [Pairs(["a"], ["b"], np.array([3], dtype=np.int32))]
        ...     print(write_pairs(blocks, Path(folder, "pairs.csv")), Path(folder, "pairs.csv").read_text().split())
        1 ['first,second,distance', 'a,b,3']
    """
    need_room_for_pairs(path, overwrite)
    with whole_file(path) as partial:
        if path.suffix == ".parquet":
            return _write_parquet(blocks, partial)
        with partial.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".jsonl":
                return write_lines(blocks, file)
            return write_rows(blocks, file, "," if path.suffix == ".csv" else "\t", header=True)


def write_rows(blocks: Iterable[Pairs], file: IO[str], separator: str = "\t", header: bool = False) -> int:
    """Write a row a pair; an id that has a separator in it is quoted."""
    writer, count = csv.writer(file, delimiter=separator, lineterminator="\n"), 0
    if header:
        writer.writerow(COLUMNS)
    for pair in each(blocks):
        writer.writerow(pair)
        count += 1
    return count


def write_lines(blocks: Iterable[Pairs], file: IO[str]) -> int:
    """Write a JSON object a pair."""
    count = 0
    for pair in each(blocks):
        file.write(json.dumps(dict(zip(COLUMNS, pair, strict=True))) + "\n")
        count += 1
    return count


def _write_parquet(blocks: Iterable[Pairs], path: Path) -> int:
    import polars as pl

    schema = {"first": pl.String(), "second": pl.String(), "distance": pl.Int32()}
    # By way of parts, as polars writes no Parquet piece by piece; ids that are numbers become strings.
    rows = ((str(first), str(second), distance) for first, second, distance in each(blocks))
    parts: list[Path] = []
    count = 0
    with TemporaryDirectory(prefix=f"{path.name}.", dir=path.parent) as folder, plain_disk_errors():
        while (some := list(islice(rows, _PART))) or not parts:
            frame = pl.DataFrame(some, schema=schema, orient="row")
            parts.append(Path(folder, f"{len(parts)}.parquet"))
            frame.write_parquet(parts[-1])
            count += len(frame)
        pl.scan_parquet(parts, glob=False).sink_parquet(path)
    return count
