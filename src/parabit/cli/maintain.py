"""`parabit info`, `add`, `delete`, `compact` and `retrain`: what an index holds, and changes to it."""

from dataclasses import asdict
from typing import Annotated

import typer

from parabit.cli.command import Result, verb
from parabit.cli.index import engine_line, say_unknown, unknown_words
from parabit.cli.options import CorpusNames, IndexFolder, Reading, argument, option
from parabit.cli.output import escape, headline, readable_size, say, say_skipped
from parabit.cli.search import read_input
from parabit.progress import Report


def _show_info(result: Result) -> None:
    model = f", {readable_size(result['model_bytes'])} of it the model" if result["model_bytes"] else ""
    size = f"{readable_size(result['bytes'])} on disk{model}"
    headline(result, "folder", "{documents:,} documents, {bits} bits per code, {size}", size=size)
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
    if result["verified"]:
        say("  all files are as they were written")


@verb(_show_info)
def info(
    index: IndexFolder,
    verify: Annotated[bool, option("Read everything, and check it against its checksums.", "--verify")] = False,
) -> Result:
    """Show what an index holds.

    Examples:
        parabit info news.index
        parabit info news.index --verify --json
    """
    from parabit.index import Index

    with Index.open(index) as opened:
        if verify:
            opened.verify()
        return {**opened.info(), "verified": verify}


def _show_added(result: Result) -> None:
    also = f", {result['replaced']:,} replaced" if result["replaced"] else ""
    headline(result, "index", "{added:,} documents added{also}, {documents:,} now; {seconds:.1f} s", also=also)
    if result["left_out"]:
        older = f"; an older version of {result['removed']:,} of them was deleted" if result["removed"] else ""
        say(f"  {result['left_out']:,} documents skipped: no words to find them by{older}")
    say_unknown(result)
    say_skipped(result)


@verb(_show_added)
def add(
    index: IndexFolder,
    corpus: CorpusNames,
    update: Annotated[bool, option("Replace documents whose ids are in the index.", "--update")] = False,
    *,
    reading: Reading,
    report: Report,
) -> Result:
    """Add documents to an index.

    Nothing is changed if an id is in the index already (without --update) or comes twice. If it is interrupted, what
    was added stays, and the same command with --update continues.

    Examples:
        parabit add news.index more.jsonl
        zcat today.jsonl.gz | parabit add news.index - --update
    """
    from parabit.index import Index, Written

    with Index.open(index, write=True) as opened:
        documents = reading.open(corpus, report)
        unknown = unknown_words(opened.model, documents)
        if update:
            written = opened.put(documents, report)
        else:
            written = Written(added=opened.add(documents, report), left_out=opened.left_out)
        return {**asdict(written), "documents": len(opened), "unknown_words": unknown}


@verb("{deleted:,} documents deleted, {documents:,} left")
def delete(
    index: IndexFolder,
    ids: Annotated[list[str] | None, argument("Ids, or - for one per line of standard input.", "ID|-")] = None,
    where: Annotated[
        list[str] | None, option("All with labels=spam, year=..1999 or year!=2000; repeatable.", "CONDITION")
    ] = None,
) -> Result:
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
        return {"deleted": len(gone), "documents": len(opened)}


def _show_compacted(result: Result) -> None:
    sizes = f"{readable_size(result['bytes'])} on disk, {readable_size(result['bytes_before'])} before"
    headline(result, "index", "{documents:,} documents, {sizes}; {seconds:.1f} s", sizes=sizes)
    say(f"  {result['added']:,} additions and {result['deleted']:,} deletions merged")


@verb(_show_compacted)
def compact(index: IndexFolder, *, report: Report) -> Result:
    """Merge what was added and deleted since an index was built.

    It then opens and searches as fast as a new one. Everything is checked on the way, and searches continue meanwhile.

    Examples:
        parabit compact news.index
    """
    from parabit.index import Index

    with Index.open(index, write=True) as opened:
        before = opened.info()
        opened.compact(report)
        after = opened.info()
    return {
        **{name: after[name] for name in ("documents", "bytes", "backends")},
        **{name: before["to_merge"][name] for name in ("added", "deleted")},
        "bytes_before": before["bytes"],
    }


@verb("learned from {sampled:,} of {documents:,} documents, {words:,} words, {bits} bits; {seconds:.1f} s")
def retrain(
    index: IndexFolder,
    bits: Annotated[int | None, option("Bits per code.", show_default="as before")] = None,
    sample: Annotated[int | None, option("Learn from N documents; 0: all.", min=0, show_default="as before")] = None,
    seed: Annotated[int | None, option("The same seed gives the same model.", min=0, show_default="as before")] = None,
    *,
    report: Report,
) -> Result:
    """Learn a new model from the documents of an index.

    They are then encoded again. The index changes in one step when all is done. Searches continue meanwhile, and an
    interrupt leaves the index as it was.

    Examples:
        parabit retrain notes.index
        parabit retrain notes.index --bits 256
    """
    from parabit.index import Index

    with Index.open(index, write=True) as opened:
        opened.retrain(bits=bits, sample=sample, seed=seed, report=report)
        training = opened.model.config["training"]
        return {
            "documents": len(opened),
            "bits": opened.bits,
            **{name: training[name] for name in ("sampled", "words", "bigrams")},
        }
