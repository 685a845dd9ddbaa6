"""`parabit pairs`: documents of an index that are near each other."""

import json as json_module
import sys
import time
from pathlib import Path
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, err, out, print_json, progress, say, verb
from parabit.cli.index_options import IndexFolder
from parabit.errors import ParabitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parabit.index import Pairs

_IN_MEMORY = 16 << 20  # bytes of JSON; more goes to a temporary file


@verb
def pairs(
    index: IndexFolder,
    radius: Annotated[
        int, typer.Option(min=0, help="How many bits may differ; 0 finds equal codes.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A table to write to, .tsv, .csv, .jsonl or .parquet. Default: lines on standard output.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an old file.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find all pairs of documents whose codes differ in a few bits: duplicates, and nearly so.

    Each pair comes once, as a line ID, ID, distance with tabs between, as soon as it is found. With --json they are the
    list `pairs` of the object, which comes when all are found, or, with -o, in the file. Examples:

        parabit pairs news.index --radius 2 | head

        parabit pairs news.index --radius 4 -o duplicates.parquet
    """
    from parabit.index import Index
    from parabit.index.pair_files import need_room_for_pairs, write_pairs, write_rows

    if output is not None:
        need_room_for_pairs(output, overwrite)
    elif sys.stdout is None:
        raise ParabitError("standard output is closed", hint="give it somewhere to go")
    start = time.perf_counter()
    # Lines that come to a terminal would tear the bars.
    with progress(quiet or json or (output is None and out.is_terminal)) as report, Index.open(index) as opened:
        result: dict[str, Any] = {"index": str(index), "radius": radius, "documents": len(opened)}
        if notes := opened.info().get("notes"):
            result["notes"] = notes
        found = opened.pairs(radius, report)
        if output is not None:
            result["count"] = write_pairs(found, output, overwrite)
        elif json:
            _print_all(found, result, start)
            return
        else:
            result["count"] = write_rows(found, sys.stdout)
    result["seconds"] = round(time.perf_counter() - start, 3)
    if json:
        print_json({"output": str(output), **result})
    elif output is not None:
        say(f"[bold]{escape(str(output))}[/bold]: {_told(result)}")
        for note in result.get("notes", ()):
            say(f"  {note}")
    elif not quiet:
        for line in (_told(result), *result.get("notes", ())):
            err.print(line, markup=False, soft_wrap=True)


def _print_all(found: "Iterator[Pairs]", result: dict[str, Any], start: float) -> None:
    """One JSON object with all pairs, once they are found: half of one would be of no use to anybody.

    Meanwhile they are on the disk, as together they may be larger than memory.
    """
    from parabit.index.pair_files import COLUMNS, each

    count = 0
    with SpooledTemporaryFile(_IN_MEMORY, "w+", encoding="utf-8", prefix="parabit-") as kept:
        for count, pair in enumerate(each(found), 1):
            kept.write(("" if count == 1 else ", ") + json_module.dumps(dict(zip(COLUMNS, pair, strict=True))))
        kept.seek(0)
        sys.stdout.write('{"pairs": [')
        copyfileobj(kept, sys.stdout)
    figures = {**result, "count": count, "seconds": round(time.perf_counter() - start, 3)}
    sys.stdout.write(f"], {json_module.dumps(figures)[1:]}\n")


def _told(result: dict[str, Any]) -> str:
    return (
        f"{result['count']:,} pairs of {result['documents']:,} documents within {result['radius']} bits, "
        f"{result['seconds']:.1f} s"
    )
