"""`parabit datasets`: what collections there are, which are here, and what each needs."""

from typing import Any

from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, say, verb
from parabit.corpus.datasets import DATASETS, SPLITS, data_folder, find_dataset


@verb
def datasets(json: Json = False, quiet: Quiet = False) -> None:
    """List the data sets that parabit reads by name, whether they are here, and what each needs.

    They are kept in the folder that PARABIT_DATA names, by default the user's cache folder. Read one as a corpus with
    its split, such as 20newsgroups/train, or whole by its bare name. Examples:

        parabit datasets

        parabit vocabulary docstrings

        PARABIT_DATA=~/corpora parabit datasets --json
    """
    rows = [_row(name) for name in DATASETS]
    if json:
        print_json({"folder": str(data_folder()), "datasets": rows})
        return
    say(f"Data sets in {escape(str(data_folder()))}")
    for row in rows:
        here = "[green]here[/green]" if row["here"] else "not here"
        say(f"[bold]{row['name']}[/bold] ({', '.join(row['splits'])}): {here}")
        say(f"  {escape(row['about'])} ({escape(row['licence'])})")
        if not row["here"]:
            say(f"  [dim]{escape(row['needs'])}[/dim]")


def _row(name: str) -> dict[str, Any]:
    dataset = find_dataset(name)
    found = dataset.found(data_folder())
    needs = f"downloaded when first used, from {dataset.urls[0]}" if dataset.urls else dataset.obtain
    return {
        "name": name,
        "splits": list(SPLITS),
        "about": dataset.about,
        "licence": dataset.licence,
        "here": bool(found) or not dataset.files,
        "needs": needs,
    }
