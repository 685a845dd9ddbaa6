"""`parabit add`: more documents for an index."""

import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.index_options import IndexFolder
from parabit.cli.options import CorpusNames, name_of, reading_of, reads_corpus, say_skipped
from parabit.corpus import ReadOptions, open_corpus


@verb
@reads_corpus
def add(
    index: IndexFolder,
    corpus: CorpusNames,
    update: Annotated[
        bool, typer.Option("--update", help="Replace the documents whose ids are there, and add the others.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Add the documents of a corpus to an index.

    The whole corpus is looked at first: where an id is there already (without --update) or comes twice, nothing is
    changed. Readers of the index see the documents batch by batch. Interrupted, it keeps the batches that are done, and
    the same command with --update goes on. Examples:

        parabit add news.index more.jsonl

        zcat today.jsonl.gz | parabit add news.index - --update
    """
    from parabit.index import Index, Written

    start = time.perf_counter()
    with progress(quiet or json) as report, Index.open(index, write=True) as opened:
        documents = open_corpus(corpus, options, format, report)
        if update:
            written = opened.put(documents, report)
        else:
            written = Written(added=opened.add(documents, report), left_out=opened.left_out)
        total = len(opened)
    result = {
        "index": str(index),
        "corpus": name_of(corpus),
        "added": written.added,
        "replaced": written.replaced,
        "removed": written.removed,
        "left_out": written.left_out,
        "skipped": len(documents.skipped),
        "reading": reading_of(documents),
        "documents": total,
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
    else:
        _show(result, update)


def _show(result: dict[str, Any], update: bool) -> None:
    replaced = f", {result['replaced']:,} replaced" if update else ""
    say(
        f"[bold]{escape(result['index'])}[/bold]: {result['added']:,} documents added{replaced}, "
        f"{result['documents']:,} now; {result['seconds']:.1f} s"
    )
    if result["left_out"]:
        say(f"  {result['left_out']:,} skipped: no words to find them by")
    if result["removed"]:
        say(f"  {result['removed']:,} of these had an older version, which was deleted")
    say_skipped(result["reading"])
