"""`parabit datasets`: which collections there are, which are here, and what each needs."""

from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, say, verb
from parabit.cli.output import say_table
from parabit.corpus.datasets import DATASETS, SPLITS, data_folder, find_dataset


@verb
def datasets(json: Json = False, quiet: Quiet = False) -> None:
    """List the data sets that can be read by name.

    They are kept in the folder PARABIT_DATA, by default the user's cache folder. Read one as a corpus with its split,
    such as 20newsgroups/train, or all of it by its bare name.

    Examples:
        parabit datasets
        PARABIT_DATA=~/corpora parabit datasets --json
    """
    rows = []
    for name in DATASETS:
        dataset = find_dataset(name)
        here = bool(dataset.found(data_folder())) or not dataset.files
        needs = f"downloaded on first use, from {dataset.urls[0]}" if dataset.urls else dataset.obtain
        rows.append(
            {
                "name": name,
                "splits": list(SPLITS),
                "about": dataset.about,
                "licence": dataset.licence,
                "here": here,
                "needs": needs,
            }
        )
    if json:
        print_json({"folder": str(data_folder()), "datasets": rows})
        return
    from rich.table import Table

    say(f"Data sets in {escape(str(data_folder()))}")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for row in rows:
        state = "[green]here[/green]" if row["here"] else "missing"
        about = f"{row['about']} ({row['licence']})" + ("" if row["here"] else f"; {row['needs']}")
        table.add_row(f"[bold]{row['name']}[/bold]", state, escape(about))
    say_table(table)
