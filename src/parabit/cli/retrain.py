"""`parabit retrain`: a new model for an index."""

import time
from typing import Annotated

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.options import IndexFolder


@verb
def retrain(
    index: IndexFolder,
    bits: Annotated[int | None, typer.Option(help="Bits per code.", show_default="as before")] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=0, help="Learn from this many documents; 0 for all.", show_default="as before"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same model.", show_default="as before")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a new model from the documents of an index.

    They are then encoded again. The index changes in one step when all is done. Searches continue meanwhile, and an
    interrupt leaves the index as it was.

    Examples:
        parabit retrain notes.index
        parabit retrain notes.index --bits 256
    """
    from parabit.index import Index

    start = time.perf_counter()
    with progress(quiet or json) as report, Index.open(index, write=True) as opened:
        opened.retrain(bits=bits, sample=sample, seed=seed, report=report)
        training, documents, size = opened.model.config["training"], len(opened), opened.bits
    seconds = time.perf_counter() - start
    if json:
        words = {"sampled": training["sampled"], "words": training["words"], "bigrams": training["bigrams"]}
        result = {"index": str(index), "documents": documents, "bits": size, **words, "seconds": round(seconds, 3)}
        print_json(result)
    else:
        say(
            f"[bold]{escape(str(index))}[/bold]: learned from {training['sampled']:,} of {documents:,} documents, "
            f"{training['words']:,} words, {size} bits; {seconds:.1f} s"
        )
