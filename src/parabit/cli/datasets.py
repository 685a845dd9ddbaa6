"""`parabit datasets`: what collections there are, which are here, and what each needs."""

from typing import Any

from rich.table import Table

from parabit.cli.frame import Json, Quiet, out, print_json, verb
from parabit.corpus import DATASETS, Dataset, data_folder


@verb
def datasets(json: Json = False, quiet: Quiet = False) -> None:
    """List the data sets that parabit reads by name, whether they are here, and what each needs.

    They are kept in the folder that PARABIT_DATA names, by default the user's cache folder. Read one as a corpus with
    its split, such as 20newsgroups/train, or whole by its bare name.
    """
    rows = [_row(dataset) for dataset in DATASETS.values()]
    if json:
        print_json({"folder": str(data_folder()), "datasets": rows})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "splits", "here", "what"):
        table.add_column(column, no_wrap=column in ("name", "here"))
    for row in rows:
        here = "[green]yes[/green]" if row["here"] else "no"
        need = "" if row["here"] else f"\n[dim]{row['needs']}[/dim]"
        table.add_row(str(row["name"]), ", ".join(row["splits"]), here, f"{row['about']} ({row['licence']}){need}")
    out.print(f"Data sets in {data_folder()}", markup=False)
    out.print(table)


def _row(dataset: Dataset) -> dict[str, Any]:
    found = dataset.found(data_folder())
    if dataset.download is not None:
        needs = f"downloaded when first used, from {dataset.download.urls[0]}"
    else:
        needs = dataset.obtain
    return {
        "name": dataset.name,
        "splits": list(dataset.splits),
        "about": dataset.about,
        "licence": dataset.licence,
        "here": bool(found) or not dataset.files,
        "needs": needs,
    }
