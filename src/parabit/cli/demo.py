"""`parabit demo`: the main job on documents that every machine has."""

import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.frame import Json, Quiet, print_json, progress, say, verb
from parabit.codes import hamming
from parabit.corpus import open_corpus

QUERIES = [
    "read a file line by line",
    "eigenvalues and eigenvectors of a symmetric matrix",
    "open a network socket",
]
_HITS = 4


@verb
def demo(
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="What to look for.", show_default=False)
    ] = None,
    bits: Annotated[int, typer.Option(min=1, help="Bits of a code.")] = 128,
    epochs: Annotated[int, typer.Option(min=1, help="How long to train.")] = 10,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn codes for the documentation of the Python packages installed here, and find what is nearest to a query.

    Nothing is downloaded, no package is imported or run, and nothing is kept.
    """
    from parabit.encoding import ParagraphVectors

    start = time.perf_counter()
    asked = queries or QUERIES
    with progress(quiet or json) as report:
        documents = list(open_corpus("docstrings", report=report))
        model = ParagraphVectors(bits, epochs=epochs, min_count=2)
        codes = model.fit_transform(documents, report=report)
    trained = time.perf_counter() - start
    distances = hamming(model.transform(asked), codes)  # (queries, documents)
    hits = [
        [(documents[place].id, int(row[place])) for place in row.argsort(kind="stable")[:_HITS]] for row in distances
    ]
    if json:
        print_json(_result(asked, hits, len(documents), codes.nbytes, trained))
        return
    size = sum(len(document.text) for document in documents)
    say(
        f"{len(documents):,} pieces of documentation, {size / 1e6:.0f} MB of text, learned as {bits}-bit codes in "
        f"{trained:.0f} s: {codes.nbytes / 1e3:,.0f} KB\n"
    )
    for query, found in zip(asked, hits, strict=True):
        say(f"[bold]{escape(query)}[/bold]")
        for name, distance in found:
            say(f"  {distance:3} bits away  {escape(name)}")
    say("\nYour own question: [bold]parabit demo 'join two tables'[/bold]")
    say("Your own documents: [bold]parabit train FILE-OR-FOLDER -o MODEL[/bold]")


def _result(
    queries: list[str], hits: list[list[tuple[str, int]]], documents: int, size: int, seconds: float
) -> dict[str, Any]:
    found = [
        {"query": query, "hits": [{"id": name, "distance": distance} for name, distance in row]}
        for query, row in zip(queries, hits, strict=True)
    ]
    return {"documents": documents, "bytes": size, "seconds": round(seconds, 3), "queries": found}
