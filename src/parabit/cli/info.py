"""`parabit info`: what an index holds."""

from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, say, verb
from parabit.cli.index_options import IndexFolder, engine_line, readable_size, size_on_disk


@verb
def info(
    index: IndexFolder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte of the documents and compare it with its checksum.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Tell what an index holds: documents, bits, room on the disk, back ends, what it keeps, what is to be merged.

    Opening an index checks what is small; --verify reads all of it, the model too. Examples:

        parabit info news.index

        parabit info news.index --verify --json
    """
    from parabit.index import Index

    with Index.open(index) as opened:
        if verify:
            opened.verify()
        result = {**opened.info(), "verified": verify}
    if json:
        print_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    say(
        f"[bold]{escape(result['folder'])}[/bold]: {result['documents']:,} documents of {result['bits']} bits "
        f"({result['bytes_a_code']} bytes), {size_on_disk(result)}"
    )
    say(f"  keeps codes, ids{''.join(f', {name}' for name in result['keeps'])}")
    say(f"  fields: {escape(', '.join(result['fields'])) or 'none'}")
    say(f"  back ends: {', '.join(result['backends'])}")
    if "engine" in result:
        say(f"  {engine_line(result['engine'])}")
    if result["fingerprint"]:
        say(f"  model {result['fingerprint'][:16]}")
    else:
        say("  made of codes, without a model")
    merge = result["to_merge"]
    if merge["added"] or merge["deleted"]:
        say(
            f"  {merge['added']:,} added and {merge['deleted']:,} deleted since it was merged, "
            f"{readable_size(merge['bytes'])}; `parabit compact` merges them"
        )
    if result["verified"]:
        say("  every byte is what was written")
