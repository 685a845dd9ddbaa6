"""`parabit dedupe`: near-duplicates of a corpus or an index, in groups."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from parabit.choices import Keep
from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import Overwrite, complete_corpus, reads_corpus
from parabit.cli.output import check_table, reading_of, say_skipped, write_table
from parabit.corpus import ReadOptions, open_corpus
from parabit.errors import ParabitError
from parabit.progress import Progress

if TYPE_CHECKING:
    import polars as pl

    from parabit.index import Group

_GROUPS, _COPIES = 10, 3  # that are shown


@verb
@reads_corpus
def dedupe(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS|INDEX",
            help="Files and folders, a data set, - for standard input, or the folder of an index.",
            show_default=False,
            autocompletion=complete_corpus,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write all groups to a table: .csv, .tsv, .jsonl or .parquet."
        ),
    ] = None,
    overwrite: Overwrite = False,
    keep: Annotated[Keep, typer.Option(help="Which document of a group is kept.")] = "first",
    date_field: Annotated[str, typer.Option(metavar="FIELD", help="The field with the date, for newest.")] = "date",
    shared: Annotated[float, typer.Option(help="The share of common words that makes two documents copies.")] = 0.5,
    print_delete: Annotated[
        bool,
        typer.Option("--print-delete", help="Print only the ids of the documents that are not kept, one per line."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Find near-duplicates, in groups.

    Documents that share at least half of their words are near-duplicates. One document of each group is kept, and all
    others are near-duplicates of that one. Nothing is deleted.

    Examples:
        parabit dedupe posts/
        parabit dedupe news.index --keep longest -o groups.csv
        parabit dedupe news.index --print-delete | parabit delete news.index -
    """
    from parabit.index import Index, find_duplicates
    from parabit.index.store.manifest import is_index

    if output is not None:
        check_table(output, overwrite)
    if print_delete and json:
        raise ParabitError("--print-delete and --json are two kinds of output", hint="leave out one of them")
    start, count = time.perf_counter(), 0
    with progress(quiet or json or print_delete) as report:
        if len(corpus) == 1 and is_index(Path(corpus[0])):
            reading = None
            with Index.open(corpus[0]) as opened:
                groups, count = opened.duplicates(keep, shared=shared, date=date_field, report=report), len(opened)
        else:
            documents = open_corpus(corpus, options, format, report)

            def watch(state: Progress) -> None:
                nonlocal count
                count = state.done if state.stage == "reading" else count
                report(state)

            groups = find_duplicates(documents, keep, shared=shared, date=date_field, report=watch)
            reading = reading_of(documents)
    result: dict[str, Any] = {
        "corpus": " ".join(corpus),
        "documents": count,
        "copies": sum(len(group.copies) for group in groups),
        "seconds": round(time.perf_counter() - start, 3),
        **({} if reading is None else {"reading": reading}),
    }
    if output is not None:
        write_table(_table(groups), output)
        result["output"] = str(output)
    if print_delete:
        sys.stdout.writelines(f"{copy.id}\n" for group in groups for copy in group.copies)
    elif json:
        print_json({**result, "groups": [_as_json(group) for group in groups]})
    else:
        _show(result, groups)


def _as_json(group: "Group") -> dict[str, Any]:
    return {"kept": group.kept, "title": group.title, "copies": [copy._asdict() for copy in group.copies]}


def _table(groups: "list[Group]") -> "pl.DataFrame":
    """One row per document, the one that is kept first in its group."""
    import polars as pl

    rows = [
        (number, str(id), str(group.kept), shared, bits, title)
        for number, group in enumerate(groups, 1)
        for id, title, shared, bits in ((group.kept, group.title, None, None), *group.copies)
    ]
    columns = {"group": pl.Int64, "id": pl.String, "kept": pl.String, "shared": pl.Float64, "bits": pl.Int32}
    return pl.DataFrame(rows, schema={**columns, "title": pl.String}, orient="row")


def _show(result: dict[str, Any], groups: "list[Group]") -> None:
    say(
        f"[bold]{escape(result['corpus'])}[/bold]: {result['copies']:,} of {result['documents']:,} documents are "
        f"near-duplicates of {len(groups):,} others; {result['seconds']:.1f} s"
    )
    for group in sorted(groups, key=lambda group: -len(group.copies))[:_GROUPS]:
        say(f"  {escape(str(group.kept))}  [dim]{escape(group.title)}[/dim]")
        for copy in group.copies[:_COPIES]:
            bits = "" if copy.bits is None else f", {copy.bits} bit{'' if copy.bits == 1 else 's'}"
            say(f"    {escape(str(copy.id))}  [dim]{copy.shared:.0%} of the words{bits}[/dim]")
        if (more := len(group.copies) - _COPIES) > 0:
            say(f"    and {more:,} more")
    if (more := len(groups) - _GROUPS) > 0:
        say(f"  and {more:,} more groups" + ("" if "output" in result else "; -o FILE.csv writes them all"))
    if "output" in result:
        say(f"  all groups are in {escape(result['output'])}")
    if "reading" in result:
        say_skipped(result["reading"])
