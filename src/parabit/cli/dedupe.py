"""`parabit dedupe`: near-duplicates of a corpus or an index, in groups."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import parabit
from parabit.choices import Keep
from parabit.cli.command import Overwrite, Reading, Result, Table, argument, option, verb
from parabit.cli.output import (
    check_file,
    counted,
    escape,
    headline,
    say,
    say_skipped,
    write_ids,
    write_table,
)
from parabit.errors import ParabitError
from parabit.progress import Progress, Report

if TYPE_CHECKING:
    import polars as pl

    from parabit.text import Group

_GROUPS, _COPIES = 10, 3  # that are shown


def _show(result: Result) -> None:
    groups = result["groups"]
    copies = f"{result['copies']:,} of {counted(result['documents'], 'document')}"
    others = counted(len(groups), "other")
    headline(
        result["corpus"], f"{copies} are near-duplicates of {others}; {result['seconds']:.1f} s"
    )
    for group in sorted(groups, key=lambda group: -len(group["copies"]))[:_GROUPS]:
        say(f"  {escape(group['kept'])}  [dim]{escape(group['title'])}[/dim]")
        for copy in group["copies"][:_COPIES]:
            bits = "" if copy["bits"] is None else f", {counted(copy['bits'], 'bit')}"
            say(f"    {escape(copy['id'])}  [dim]{copy['shared']:.0%} of the words{bits}[/dim]")
        if (more := len(group["copies"]) - _COPIES) > 0:
            say(f"    and {more:,} more")
    if (more := len(groups) - _GROUPS) > 0:
        say(
            f"  and {counted(more, 'more group')}"
            + ("" if "output" in result else "; -o FILE.csv writes them all")
        )
    if "output" in result:
        say(f"  all groups are in {escape(result['output'])}")
    say_skipped(result)


@verb(_show)
def dedupe(
    corpus: Annotated[
        list[str], argument("As for other verbs, or the folder of an index.", "CORPUS|INDEX")
    ],
    output: Table = None,
    overwrite: Overwrite = False,
    keep: Annotated[
        Keep, option("Which document of a group is kept.", "first|longest|newest")
    ] = "first",
    date_field: Annotated[str, option("The field with the date, for newest.", "FIELD")] = "date",
    shared: Annotated[
        float, option("The least share of common words that makes two documents copies.", "SHARE")
    ] = 0.5,
    print_delete: Annotated[
        bool, option("Print only ids that are not kept, one per line.", "--print-delete")
    ] = False,
    print0: Annotated[
        bool, option("The same, each ended by a NUL, for delete -0.", "--print0", "-0")
    ] = False,
    *,
    reading: Reading,
    report: Report,
    json: bool,
) -> Result | None:
    """Find near-duplicates, in groups.

    Documents that share at least half of their words are near-duplicates. One document of each group is kept, and all
    others are near-duplicates of that one. Nothing is deleted.

    Examples:
        parabit dedupe posts/
        parabit dedupe news.index --keep longest -o groups.csv
        parabit dedupe news.index --print0 | parabit delete news.index - -0
    """
    from parabit.corpus.files import INDEX_FILES
    from parabit.text import find_duplicates

    check_file(output, overwrite)
    if json and (print_delete or print0):
        flag = "--print0" if print0 else "--print-delete"
        raise ParabitError(
            f"{flag} and --json are two kinds of output", hint="leave out one of them"
        )
    result: Result = {"documents": 0}

    def count(state: Progress) -> None:
        if state.stage == "reading":
            result["documents"] = state.done
        report(state)

    how: dict[str, Any] = {"shared": shared, "date": date_field, "report": count}
    indexes = [one for one in corpus if all(Path(one, name).is_file() for name in INDEX_FILES)]
    if indexes and len(corpus) > 1:
        raise ParabitError(
            f"{indexes[0]} is an index, and more is named beside it", hint="an index is read alone"
        )
    if indexes:
        with parabit.Index.open(indexes[0]) as opened:
            found = opened.duplicates(keep, **how)
    else:
        found = find_duplicates(reading.open(corpus, report), keep, **how)
    result["copies"] = sum(len(group.copies) for group in found)
    groups = [*map(as_json, found)]
    if output is not None:
        write_table(_table(groups), output)
        result["output"] = str(output)
    if print_delete or print0:
        copies = [str(copy["id"]) for group in groups for copy in group["copies"]]
        write_ids(copies, ended_by_nul=print0)
        return None
    return {**result, "groups": groups}


def as_json(group: "Group") -> Result:
    return {
        "kept": group.kept,
        "title": group.title,
        "copies": [copy._asdict() for copy in group.copies],
    }


def _table(groups: list[Result]) -> "pl.DataFrame":
    """One row per document, the one that is kept first in its group."""
    import polars as pl

    rows = [
        {"group": number, "kept": str(group["kept"]), **document, "id": str(document["id"])}
        for number, group in enumerate(groups, 1)
        for document in ({"id": group["kept"], "title": group["title"]}, *group["copies"])
    ]
    columns = {
        "group": pl.Int64,
        "id": pl.String,
        "kept": pl.String,
        "shared": pl.Float64,
        "bits": pl.Int32,
    }
    return pl.DataFrame(rows, schema={**columns, "title": pl.String})
