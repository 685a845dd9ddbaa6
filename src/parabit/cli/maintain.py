"""`parabit info`, `add`, `delete` and `compact`: what an index holds, and changes to it."""

import time
from typing import Annotated, Any

import typer
from rich.markup import escape

from parabit.cli.command import Json, Quiet, print_json, progress, say, verb
from parabit.cli.index import engine_line
from parabit.cli.options import CorpusNames, IndexFolder, reads_corpus
from parabit.cli.output import readable_size, reading_of, say_skipped
from parabit.cli.search import read_input
from parabit.corpus import ReadOptions, open_corpus


@verb
def info(
    index: IndexFolder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything, and check it against its checksums.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what an index holds.

    Examples:
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
        return
    model = f", {readable_size(result['model_bytes'])} of it the model" if result["model_bytes"] else ""
    say(
        f"[bold]{escape(result['folder'])}[/bold]: {result['documents']:,} documents, {result['bits']} bits per code, "
        f"{readable_size(result['bytes'])} on disk{model}"
    )
    say(f"  it keeps {', '.join(['codes', 'ids', *result['keeps']])}")
    say(f"  fields: {escape(', '.join(result['fields'])) or 'none'}")
    say(f"  back ends: {', '.join(result['backends'])}")
    if "engine" in result:
        say(f"  {engine_line(result['engine'])}")
    say(f"  model {result['fingerprint'][:16]}" if result["fingerprint"] else "  made from codes, without a model")
    merge = result["to_merge"]
    if merge["added"] or merge["deleted"]:
        say(
            f"  {merge['added']:,} added and {merge['deleted']:,} deleted since the last merge "
            f"({readable_size(merge['bytes'])}); `parabit compact` merges them"
        )
    if verify:
        say("  all files are as they were written")


@verb
@reads_corpus
def add(
    index: IndexFolder,
    corpus: CorpusNames,
    update: Annotated[bool, typer.Option("--update", help="Replace documents whose ids are in the index.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    options: ReadOptions,
    format: str | None,
) -> None:
    """Add documents to an index.

    Nothing is changed if an id is in the index already (without --update) or comes twice. If it is interrupted, what
    was added stays, and the same command with --update continues.

    Examples:
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
        result: dict[str, Any] = {
            "index": str(index),
            "corpus": " ".join(corpus),
            "added": written.added,
            "replaced": written.replaced,
            "removed": written.removed,
            "left_out": written.left_out,
            "skipped": len(documents.skipped),
            "reading": reading_of(documents),
            "documents": len(opened),
            "seconds": round(time.perf_counter() - start, 3),
        }
    if json:
        print_json(result)
        return
    replaced = f", {result['replaced']:,} replaced" if update else ""
    say(
        f"[bold]{escape(result['index'])}[/bold]: {result['added']:,} documents added{replaced}, "
        f"{result['documents']:,} now; {result['seconds']:.1f} s"
    )
    if result["left_out"]:
        older = f"; an older version of {result['removed']:,} of them was deleted" if result["removed"] else ""
        say(f"  {result['left_out']:,} documents skipped: no words to find them by{older}")
    say_skipped(result["reading"])


@verb
def delete(
    index: IndexFolder,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...|-]", help="Ids, or - for one per line of standard input.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Delete what has labels=spam, year=..1999 or year!=2000; repeatable."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Delete documents from an index.

    They are gone at once, all or, if an id is not in the index, none; `parabit compact` frees their space.

    Examples:
        parabit delete news.index 53068 53257
        parabit delete news.index --where labels=spam --where year=..1999
        parabit dedupe news.index --print-delete | parabit delete news.index -
    """
    from parabit.index import Index

    if bool(ids) == bool(where):
        raise typer.BadParameter("give either ids, or - for standard input, or --where", param_hint="ID")
    wanted = [line for line in read_input().splitlines() if line] if ids == ["-"] else ids or []
    with Index.open(index, write=True) as opened:
        gone = opened.ids_where(where) if where else opened.ids_of(wanted)
        if gone:
            opened.delete(gone)
        total = len(opened)
    if json:
        print_json({"index": str(index), "deleted": len(gone), "documents": total})
    else:
        say(f"[bold]{escape(str(index))}[/bold]: {len(gone):,} documents deleted, {total:,} left")


@verb
def compact(index: IndexFolder, json: Json = False, quiet: Quiet = False) -> None:
    """Merge what was added and deleted since an index was built.

    It then opens and searches as fast as a new one. Everything is checked on the way, and searches continue meanwhile.

    Examples:
        parabit compact news.index
    """
    from parabit.index import Index

    start = time.perf_counter()
    with progress(quiet or json) as report, Index.open(index, write=True) as opened:
        before = opened.info()
        opened.compact(report)
        after = opened.info()
    result = {
        "index": str(index),
        "documents": after["documents"],
        "added": before["to_merge"]["added"],
        "deleted": before["to_merge"]["deleted"],
        "bytes_before": before["bytes"],
        "bytes": after["bytes"],
        "backend": after["backends"][-1],
        "seconds": round(time.perf_counter() - start, 3),
    }
    if json:
        print_json(result)
        return
    say(
        f"[bold]{escape(str(index))}[/bold]: {result['documents']:,} documents, {readable_size(result['bytes'])} on "
        f"disk, {readable_size(result['bytes_before'])} before; {result['seconds']:.1f} s"
    )
    say(f"  {result['added']:,} additions and {result['deleted']:,} deletions merged")
