"""`parabit delete`: documents out of an index."""

from typing import Annotated

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, say, verb
from parabit.cli.index_options import IndexFolder, read_text
from parabit.errors import ParabitError


@verb
def delete(
    index: IndexFolder,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="The ids of documents.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE|-", help="Read ids, one a line, from a file or standard input."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Delete documents from an index by their ids: all of them, or, where one is not there, none.

    They are found no more at once; `parabit compact` frees their room. Examples:

        parabit delete news.index 53068 53257

        parabit delete news.index --from spam.txt
    """
    from parabit.index import Index

    wanted = list(ids or [])
    if source is not None:
        wanted += [line for line in read_text(source).splitlines() if line]
    if not wanted:
        raise ParabitError("there are no ids to delete", hint="name them after INDEX, or give --from FILE")
    with Index.open(index, write=True) as opened:
        opened.delete(opened.ids_of(wanted))
        total = len(opened)
    if json:
        print_json({"index": str(index), "deleted": len(wanted), "documents": total})
    else:
        say(f"[bold]{escape(str(index))}[/bold]: {len(wanted):,} documents deleted, {total:,} left")
